"""The order in which x names the columns changes no number."""

import itertools

import numpy as np
import pandas as pd
import pytest

import zil


def release(n=500):
    rng = np.random.default_rng(11)
    x = rng.uniform(-1.0, 1.0, (n, 3))
    y = 0.3 + x @ (1.0, -0.7, 0.4) + rng.normal(size=n)
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y, "z": x[:, 2], "label": (y > 0.3) * 1.0})
    mechanism = zil.Mechanism({"a": (-1, 1), "b": (-1, 1)}, zero_prob=0.4, scale={"a": 0.3, "b": 0.2})
    return mechanism.simulate(table, rng=5)


RELEASE = release()
ORDERS = list(itertools.permutations(["a", "b", "z"]))


def by_name(fit):
    values = pd.Series(fit.params, fit.names)
    errors = pd.DataFrame(fit.covariance, fit.names, fit.names)
    names = ["Intercept", "a", "b", "z"]
    return np.append(values[names], errors.loc[names, names].to_numpy().ravel())


@pytest.mark.filterwarnings("ignore:X has no column names")
@pytest.mark.parametrize("method", ["optimal", "dr", "rb", "sl"])
@pytest.mark.parametrize("loss", ["squared", "absolute", "logistic"])
def test_permuted_columns(loss, method):
    if loss == "absolute" and method == "sl":
        pytest.skip("the median has no SL")
    target = "label" if loss == "logistic" else "y"
    first = zil.fit(loss, RELEASE, y=target, x=list(ORDERS[0]), method=method)
    for order in ORDERS[1:]:
        other = zil.fit(loss, RELEASE, y=target, x=list(order), method=method)
        assert list(other.names) == ["Intercept", *order]
        assert np.allclose(by_name(other), by_name(first), rtol=1e-12, atol=0.0)
        assert np.allclose(other.predict(RELEASE.data), first.predict(RELEASE.data), rtol=1e-12, atol=1e-14)
        rows = np.arange(6.0).reshape(2, 3)
        wanted = pd.DataFrame(rows, columns=list(order))
        assert np.allclose(other.predict(rows), first.predict(wanted[["a", "b", "z"]].to_numpy()), rtol=1e-12)


def test_arguments_by_place_follow_x():
    """Bounds, start and box given as arrays go by the place in x."""
    table, noise = RELEASE.data[["a", "b", "z", "y"]], zil.Noise(0.4, {"a": 0.3, "b": 0.2})
    first = zil.fit(
        "absolute",
        table,
        y="y",
        x=["a", "b", "z"],
        noise=noise,
        bounds=[(-1, 1), (-1, 1.5), (0, 1)],
        start=[0.3, 1.0, -0.7, 0.4],
        box=([-2, -3, -4, -5], [2, 3, 4, 5]),
    )
    other = zil.fit(
        "absolute",
        table,
        y="y",
        x=["z", "b", "a"],
        noise=noise,
        bounds=[(0, 1), (-1, 1.5), (-1, 1)],
        start=[0.3, 0.4, -0.7, 1.0],
        box=([-2, -5, -4, -3], [2, 5, 4, 3]),
    )
    assert np.allclose(by_name(other), by_name(first), rtol=1e-12, atol=0.0)


def test_far_columns_and_bootstrap():
    """Columns that are moved towards zero for the arithmetic, and resampled rows."""
    table = RELEASE.data.assign(z=RELEASE.data["z"] + 1e6)
    fits = [
        zil.fit("squared", table, y="y", x=list(order), noise=RELEASE.noise, cov="bootstrap", n_boot=20, rng=1)
        for order in (ORDERS[0], ORDERS[-1])
    ]
    assert np.allclose(by_name(fits[0]), by_name(fits[1]), rtol=1e-9)


def test_several_quantiles():
    first = zil.fit_quantiles([0.25, 0.75], RELEASE, y="y", x=["a", "b", "z"])
    other = zil.fit_quantiles([0.25, 0.75], RELEASE, y="y", x=["z", "b", "a"])
    assert np.allclose(other.params[:, [0, 3, 2, 1]], first.params, rtol=1e-12)
    assert np.allclose(other.bse[:, [0, 3, 2, 1]], first.bse, rtol=1e-12)
