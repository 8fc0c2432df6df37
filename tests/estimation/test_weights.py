"""A row of weight zero is no row; a frequency is so many rows."""

import numpy as np
import pytest

import zil


@pytest.fixture
def clean():
    """2000 rows, the first 100 of weight 1."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=2000)
    y = x + rng.normal(size=2000)
    return np.column_stack([x, y]), np.where(np.arange(2000) < 100, 1.0, 0.0)


def noised(n=600, seed=1):
    """A release of two noised columns and a response."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, 2))
    y = 0.3 + x @ (1.0, -0.7) + rng.normal(size=n)
    table = {"a": x[:, 0], "b": x[:, 1], "y": y, "label": (y > 0.3) * 1.0}
    import pandas as pd

    mechanism = zil.Mechanism({"a": (-1, 1), "b": (-1, 1)}, zero_prob=0.4, scale=0.3)
    return mechanism.simulate(pd.DataFrame(table), rng=2)


def same(one, other):
    assert one.nobs == other.nobs
    assert one.small_sample == other.small_sample
    assert np.allclose(one.params, other.params, rtol=1e-10, atol=1e-12)
    assert np.allclose(one.covariance, other.covariance, rtol=1e-8, atol=1e-14)


def test_the_errors_are_those_of_the_rows_that_exist(clean):
    rows, weights = clean
    fitted = zil.fit("absolute", rows, y=1, weights=weights)
    assert fitted.bse == pytest.approx([0.14128, 0.11919], abs=5e-6)
    assert zil.fit("quantile:0.9", rows, y=1, weights=weights).bse[1] == pytest.approx(0.12721, abs=5e-6)


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile:0.9", "huber"])
def test_clean_rows_of_weight_zero(clean, loss):
    rows, weights = clean
    same(zil.fit(loss, rows, y=1, weights=weights), zil.fit(loss, rows[:100], y=1))


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge"])
def test_clean_classes_of_weight_zero(clean, loss):
    rows, weights = clean
    rows = np.column_stack([rows[:, 0], rows[:, 1] > 0.0])
    same(zil.fit(loss, rows, y=1, weights=weights), zil.fit(loss, rows[:100], y=1))


@pytest.mark.parametrize("method", ["optimal", "rb", "dr"])
@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic"])
def test_published_rows_of_weight_zero(loss, method):
    release = noised()
    target = "label" if loss == "logistic" else "y"
    weights = np.where(np.arange(600) % 3 == 0, 0.0, 1.0)
    few = release.data[weights > 0.0].reset_index(drop=True)
    options = {"y": target, "x": ["a", "b"], "method": method}
    alone = zil.fit(loss, few, noise=release.noise, bounds=release.bounds, **options)
    weighted = zil.fit(loss, release, weights=weights, **options)
    assert weighted.nobs == alone.nobs == 400
    assert np.allclose(weighted.params, alone.params, rtol=1e-10, atol=1e-10)
    assert np.allclose(weighted.covariance, alone.covariance, rtol=1e-8)


def test_a_third_class_without_weight_is_no_class(clean):
    rows, _ = clean
    rows = np.column_stack([rows[:, 0], np.arange(2000) % 3])
    weights = np.where(rows[:, 1] == 2.0, 0.0, 1.0)
    same(zil.fit("logistic", rows, y=1, weights=weights), zil.fit("logistic", rows[weights > 0.0], y=1))


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile:0.9", "huber"])
def test_frequencies_are_repeated_rows(loss):
    rng = np.random.default_rng(3)
    x = rng.normal(size=150)
    rows = np.column_stack([x, 1.0 + x + rng.normal(size=150)])
    often = rng.integers(0, 4, 150)
    written_out = np.repeat(rows, often, axis=0)
    counted = zil.fit(loss, rows, y=1, weights=often, weights_type="frequency")
    same(counted, zil.fit(loss, written_out, y=1))
    # as probabilities the same weights give the same estimate and other errors
    weighted = zil.fit(loss, rows, y=1, weights=often)
    assert weighted.params == pytest.approx(counted.params, rel=1e-6)
    assert weighted.nobs == np.count_nonzero(often)
    assert not np.allclose(weighted.bse, counted.bse, rtol=0.02)


def test_frequencies_of_published_rows():
    release, often = noised(), np.arange(600) % 3
    options = {"y": "y", "x": ["a", "b"], "noise": release.noise, "bounds": release.bounds}
    counted = zil.fit("absolute", release.data, weights=often, weights_type="frequency", **options)
    written_out = release.data.loc[np.repeat(np.arange(600), often)].reset_index(drop=True)
    same(counted, zil.fit("absolute", written_out, **options))


def test_frequencies_are_whole_numbers(clean):
    rows, weights = clean
    with pytest.raises(ValueError, match=r"weights must be whole numbers with weights_type='frequency'"):
        zil.fit("squared", rows, y=1, weights=weights + 0.5, weights_type="frequency")
    with pytest.raises(ValueError, match="weights_type"):
        zil.fit("squared", rows, y=1, weights=weights, weights_type="importance")
