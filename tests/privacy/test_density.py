"""Log-likelihood ratio of a shift."""

import math

import mpmath as mp
import numpy as np
import pytest
import reference

import zil
from zil.privacy.density import BLOCK_VALUES, ROWS_PER_CHUNK, log_density


def exact(s, c):
    """The ratio in 40 digits."""
    with mp.workdps(40):
        s = [mp.mpf(v) for v in s]
        a = mp.sqrt(mp.fsum(v * v for v in s))
        b = mp.sqrt((s[0] - mp.mpf(c)) ** 2 + mp.fsum(v * v for v in s[1:]))
        return reference.sl_log_density(len(s), b, 40) - reference.sl_log_density(len(s), a, 40)


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 6, 7, 30])
def test_against_mpmath(dim):
    rng = np.random.default_rng()
    for c in (1e-6, 0.3, 2.0, 40.0):
        s = rng.normal(size=(8, dim)) * 10 ** rng.uniform(-3, 2, (8, 1))
        got = zil.log_likelihood_ratio(s, c)
        for row, value in zip(s.tolist(), got.tolist(), strict=True):
            right = exact(row, c)
            # the logarithms of the two densities are rounded to 1e-15 each; the rest keeps its digits
            assert abs(value - right) <= 1e-12 * abs(right) + 3e-14


def test_far_samples_keep_their_digits():
    s = np.array([[3e9, 1e9, -2e9], [-1e12, 5.0, 7.0]])
    got = zil.log_likelihood_ratio(s, 1e-3)
    for row, value in zip(s.tolist(), got.tolist(), strict=True):
        assert value == pytest.approx(float(exact(row, 1e-3)), rel=1e-10)


def test_poles_and_symmetry():
    for dim in (1, 2, 3, 10, 200):
        origin, shift = np.zeros((1, dim)), np.zeros((1, dim))
        shift[0, 0] = 0.5
        at_origin, at_shift = zil.log_likelihood_ratio(origin, 0.5)[0], zil.log_likelihood_ratio(shift, 0.5)[0]
        if dim == 1:
            assert at_shift == -at_origin == pytest.approx(math.sqrt(2) * 0.5)
        else:
            assert (at_origin, at_shift) == (-math.inf, math.inf)
        assert zil.log_likelihood_ratio(origin, 0.0)[0] == 0.0
        halfway = np.ones((1, dim)) * 0.25
        assert zil.log_likelihood_ratio(halfway, 0.5)[0] == 0.0
        s = np.random.default_rng().normal(size=(50, dim))
        mirrored = -s
        mirrored[:, 0] += 0.5
        np.testing.assert_allclose(
            zil.log_likelihood_ratio(mirrored, 0.5), -zil.log_likelihood_ratio(s, 0.5), rtol=1e-9, atol=1e-12
        )


def test_extreme_rows_are_never_nan():
    for dim in (1, 2, 3, 6, 51):
        values = [0.0, 5e-324, 1e-200, 1e-160, 0.5, 1e155, 1e300]
        s = np.array([[v] + [w] * (dim - 1) for v in values for w in values])
        assert not np.isnan(zil.log_likelihood_ratio(s, 0.5)).any()


def test_input_kinds():
    s = np.array([[1.0, 2.0], [0.5, -3.0], [4.0, 0.0]])
    right = zil.log_likelihood_ratio(s, 1.0)
    assert right.shape == (3,)
    for other in (np.asfortranarray(s), s.tolist(), s[::-1][::-1], s.astype(">f8"), s.astype(np.float32)):
        np.testing.assert_array_equal(zil.log_likelihood_ratio(other, 1.0), right)
    frozen = s.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(zil.log_likelihood_ratio(frozen, 1.0), right)
    np.testing.assert_array_equal(
        zil.log_likelihood_ratio([1.0, -2.0], 1.0), zil.log_likelihood_ratio([[1.0], [-2.0]], 1.0)
    )
    assert zil.log_likelihood_ratio(np.empty((0, 3)), 1.0).shape == (0,)


def test_same_bytes_for_any_thread_count():
    s = np.random.default_rng().normal(size=(max(2 * ROWS_PER_CHUNK, BLOCK_VALUES) + 17, 3))
    base = zil.log_likelihood_ratio(s, 0.5, n_threads=1)
    for n in (2, 3, 7):
        assert zil.log_likelihood_ratio(s, 0.5, n_threads=n).tobytes() == base.tobytes()
    for law in (zil.SymmetricLaplace(3, 2.0), zil.SymmetricLaplace(cov=np.eye(3) + 0.2)):
        for call in (law.logpdf, law.pdf):
            base = call(s, n_threads=1)
            assert all(call(s, n_threads=n).tobytes() == base.tobytes() for n in (None, 2, 3, 7))
    r = np.abs(s[:, 0])
    assert log_density(4, r, 1).tobytes() == log_density(4, r, 3).tobytes()


@pytest.mark.parametrize("law", [zil.SymmetricLaplace(3, [1.0, 2.0, 3.0]), zil.SymmetricLaplace(cov=np.eye(3) + 0.2)])
def test_layouts_of_points(law):
    """More rows than one block; every layout and width of the same numbers gives the same bytes, and is left alone."""
    x = np.random.default_rng().normal(size=(BLOCK_VALUES // 3 + 501, 3)).astype(np.float32)
    right = law.logpdf(x.astype(np.float64))
    wide = np.zeros((len(x), 7), dtype=np.float32)
    wide[:, 1:7:2] = x
    frozen = np.asfortranarray(x, dtype=np.float64)
    frozen.flags.writeable = False
    for same in (x, np.asfortranarray(x), x[::-1][::-1], wide[:, 1:7:2], x.astype(">f8"), frozen, x.astype(object)):
        before = same.tobytes()
        assert law.logpdf(same).tobytes() == right.tobytes()
        assert same.tobytes() == before
        np.testing.assert_allclose(law.pdf(same), np.exp(right), rtol=1e-15)
    assert law.logpdf(np.ones((2, 3), dtype=int)).tobytes() == law.logpdf(np.ones((2, 3), dtype=bool)).tobytes()
    assert law.logpdf(x[:1].astype(float)) == law.logpdf(x[0]) == right[0]
    assert law.logpdf(np.empty((0, 3))).shape == (0,)


def test_nan_stays_in_its_row():
    x = np.ones((5, 3))
    x[2, 1] = math.nan
    x[3, 0], x[3, 2] = math.inf, math.nan
    for law in (zil.SymmetricLaplace(3), zil.SymmetricLaplace(cov=np.eye(3) + 0.2)):
        assert np.isnan(law.logpdf(x)).tolist() == np.isnan(law.pdf(x)).tolist() == [False, False, True, True, False]


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_bad_input(bad):
    with pytest.raises(ValueError, match="c must"):
        zil.log_likelihood_ratio(np.ones((2, 2)), bad)
    with pytest.raises(ValueError, match="s must"):
        zil.log_likelihood_ratio([[1.0, math.nan]], 1.0)
    with pytest.raises(ValueError, match="column"):
        zil.log_likelihood_ratio(np.empty((2, 0)), 1.0)


def test_law_with_scales_and_covariance():
    x = np.random.default_rng().normal(size=(40, 3))
    scale = np.array([0.5, 2.0, 3.0])
    got = zil.SymmetricLaplace(scale=scale).logpdf(x)
    radius = np.sqrt(np.square(x / scale).sum(axis=1))
    np.testing.assert_allclose(got, log_density(3, radius) - np.log(scale).sum(), rtol=1e-13)
    cov = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 0.7]])
    law = zil.SymmetricLaplace(cov=cov)
    quadratic = np.einsum("ni,ij,nj->n", x, np.linalg.inv(cov), x)
    right = log_density(3, np.sqrt(quadratic)) - 0.5 * np.linalg.slogdet(cov)[1]
    np.testing.assert_allclose(law.logpdf(x), right, rtol=1e-12)
    np.testing.assert_allclose(law.pdf(x), np.exp(right), rtol=1e-11)
    np.testing.assert_allclose(zil.SymmetricLaplace(cov=np.diag(scale**2)).logpdf(x), got, rtol=1e-13)


def test_density_of_one_column_and_ends():
    law = zil.SymmetricLaplace(scale=2.0)
    x = np.linspace(-5, 5, 11)
    np.testing.assert_allclose(law.pdf(x), np.exp(-math.sqrt(2) * np.abs(x) / 2) / (math.sqrt(2) * 2), rtol=1e-14)
    assert law.pdf(0.0) == pytest.approx(math.sqrt(0.5) / 2)
    for cov in (None, np.eye(4)):
        far = zil.SymmetricLaplace(4, cov=cov)
        assert far.logpdf(np.zeros(4)) == math.inf
        assert far.pdf(np.zeros(4)) == math.inf
        assert far.logpdf([math.inf, 0, 0, 0]) == -math.inf
        assert far.pdf([math.inf, 0, 0, 0]) == 0.0
        assert math.isfinite(far.logpdf([1e200, 1e200, 0, 0]))
        assert math.isfinite(far.logpdf([1e-200, 1e-200, 0, 0]))
    with pytest.raises(ValueError, match="scale of 0"):
        zil.SymmetricLaplace(scale=[1.0, 0.0]).logpdf([[0.0, 0.0]])


def test_density_integrates_to_one():
    law = zil.SymmetricLaplace(scale=[1.0, 0.5])
    grid = (np.arange(-600, 600) + 0.5) / 60
    points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
    assert law.pdf(points).sum() / 3600 == pytest.approx(1.0, abs=2e-4)
