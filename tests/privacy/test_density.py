"""Log-likelihood ratio of a shift."""

import math

import mpmath as mp
import numpy as np
import pytest
import reference

import zil
from zil.privacy.density import ROWS_PER_CHUNK, log_density


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
    s = np.random.default_rng().normal(size=(2 * ROWS_PER_CHUNK + 17, 3))
    base = zil.log_likelihood_ratio(s, 0.5, n_threads=1)
    for n in (2, 3, 7):
        assert zil.log_likelihood_ratio(s, 0.5, n_threads=n).tobytes() == base.tobytes()
    r = np.abs(s[:, 0])
    assert log_density(4, r, 1).tobytes() == log_density(4, r, 3).tobytes()


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf])
def test_bad_input(bad):
    with pytest.raises(ValueError, match="c must"):
        zil.log_likelihood_ratio(np.ones((2, 2)), bad)
    with pytest.raises(ValueError, match="s must"):
        zil.log_likelihood_ratio([[1.0, math.nan]], 1.0)
    with pytest.raises(ValueError, match="column"):
        zil.log_likelihood_ratio(np.empty((2, 0)), 1.0)
