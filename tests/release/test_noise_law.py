"""Exact probabilities of noise in ticks, against quadrature over W and against slow sums that share no code."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from zil.release import noise_law as law


def over_w(given):
    """The mean of ``given(W)``, W ~ Exp(1), to 15 digits."""
    return float(mpmath.quad(lambda w: mpmath.exp(-w) * given(w), [0, 1e-6, 1e-3, 0.03, 0.3, 1, 3, 10, 40, mpmath.inf]))


@pytest.mark.parametrize("dim", [1, 2, 3, 4, 6, 7, 20])
@pytest.mark.parametrize("r", [0.05, 0.5, 2.0, 8.0])
def test_radius(dim, r):
    expected = over_w(lambda w: mpmath.gammainc(dim / 2, r * r / (2 * w), mpmath.inf, regularized=True))
    assert law.beyond(r, dim)[0] == pytest.approx(expected, rel=1e-10)
    assert law.beyond(0.0, dim)[0] == 1.0
    assert law.beyond(law.radii(np.array([0.9, 0.01]), dim), dim) == pytest.approx([0.9, 0.01], rel=1e-9)


@pytest.mark.parametrize("scale", [8.0, 37.5])
def test_entries(scale):
    def outside(x):
        return over_w(lambda w: mpmath.erfc(x / (scale * mpmath.sqrt(2 * w))))

    for k in (1, 5, 40):
        assert float(law.at_least(k, scale)) == pytest.approx(outside(k - 0.5), rel=1e-12)
    assert float(law.zero_entry(scale)) == pytest.approx(1 - outside(0.5), rel=1e-12)
    k = np.arange(1, 4000)
    p = law.at_least(k, scale) - law.at_least(k + 1, scale)
    assert float(law.equal_entries(scale)) == pytest.approx((p**2 / 2).sum(), rel=1e-11)
    for bit in range(6):
        odd = p[(k - 1 >> bit & 1) == 1].sum() / p.sum()
        assert float(law.odd_bit(bit, scale)) == pytest.approx(odd, rel=1e-11)


@pytest.mark.parametrize("scale", [[8.0], [8.0, 8.0], [8.0, 1e6], [30.0, 8.0, 11.0]])
def test_zero_rows_are_enclosed(scale):
    exact = over_w(lambda w: mpmath.fprod(mpmath.erf(0.5 / (s * mpmath.sqrt(2 * w))) for s in scale))
    low, high = law.zero_row(np.array(scale))
    assert low * (1 - 1e-9) <= exact <= high * (1 + 1e-9)
    assert high - low < 1e-4


@pytest.mark.parametrize("scale", [[8.0], [8.0, 9.0], [8.0] * 3, [8.0] * 5])
def test_equal_rows_are_bounded(scale):
    """Against 4e5 pairs of rows; the bound may be too large by what rounding and three columns give away."""
    scale = np.array(scale)
    rng = np.random.default_rng()
    n = 400_000
    rows = [
        np.rint(scale * np.sqrt(rng.exponential(size=(n, 1))) * rng.standard_normal((n, len(scale)))) for _ in range(2)
    ]
    count = int((rows[0] == rows[1]).all(axis=1).sum())
    assert stats.binom.sf(count - 1, n, law.equal_rows(scale)) > 1e-9


@pytest.mark.parametrize("scale", [8.0, 2.0**20])
@pytest.mark.parametrize("shift", [-6.0, -1.0, 0.0, 2.0, 6.0])
def test_sums_of_entries(scale, shift):
    """Chernoff's bound lies above the exact tail (negative binomial), by less than 40 times."""
    count, q = 10_000, math.exp(-math.sqrt(2) / scale)
    exact = stats.nbinom(count, 1 - q)
    total = round(exact.mean() + shift * exact.std())
    tails = law.geometric_tails(total, count, scale)
    for bound, tail in zip(tails, (exact.cdf(total), exact.sf(total - 1)), strict=True):
        assert tail * (1 - 1e-6) <= bound <= min(1.0, 40 * tail)
    assert law.geometric_tails(0.0, 0, scale) == (1.0, 1.0)
    assert law.geometric_tails(0.0, 10, scale)[0] == pytest.approx((1 - q) ** 10)


@pytest.mark.parametrize("dim", [2, 6])
@pytest.mark.parametrize("bits", [3, 20])
def test_log_radius(dim, bits):
    """Uniform at worst: P(bound <= p) <= p, here for p = 0.05 over 2000 samples; a scale 10 % off gives tiny bounds."""
    rng, scale, n = np.random.default_rng(), np.full(dim, 2.0**bits), 500
    h = 0.5 * math.sqrt(dim) / 2.0**bits

    def tails(factor):
        z = factor * np.sqrt(rng.exponential(size=(n, 1))) * rng.standard_normal((n, dim))
        radius = np.sqrt(((np.rint(z * scale) / scale) ** 2).sum(axis=1))
        radius = radius[radius > 0]
        return law.log_radius_tails(float(np.log(radius + h).sum()), float(np.log(radius).sum()), len(radius), scale)

    found = np.array([tails(1.0) for _ in range(2000)])
    for side in (0, 1):
        assert stats.binom.sf(int((found[:, side] <= 0.05).sum()) - 1, 2000, 0.05) > 1e-9
    if bits == 20:
        assert tails(0.7)[0] < 1e-6
        assert tails(1.5)[1] < 1e-6


def test_binomial_tails():
    count, trials = np.array([0, 3, 10, 10, 5]), np.array([10, 10, 10, 10, 0])
    count[-1] = 0
    low, high = np.array([0.2, 0.2, 0.2, 0.0, 0.5]), np.array([0.3, 0.3, 0.3, 0.0, 0.5])
    lower, upper = law.binomial_tails(count, trials, low, high)
    np.testing.assert_allclose(lower, stats.binom.cdf(count, trials, low), rtol=1e-10)
    np.testing.assert_allclose(upper, stats.binom.sf(count - 1, trials, high), rtol=1e-10)
