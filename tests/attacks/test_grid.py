"""The porous grid of float64 sums (Mironov 2012; Haney et al. 2022), and rows recognised by their digits."""

import numpy as np
import pytest
from attacks import naive
from scipy import stats

import zil

N, ZERO_PROB = 200_000, 0.05
CLAIMED = zil.Mechanism([(0, 1)], zero_prob=ZERO_PROB, scale=1.0)


def published(x, d=1, n=N, **how):
    mechanism = zil.Mechanism([(0, 1)] * d, zero_prob=ZERO_PROB, scale=1.0, **how)
    return mechanism.release(np.full((n, d), float(x))).data


def fine(y):
    """Some entry below 1 that is not a multiple of 2^-53: no sum 1 + z in float64 is one."""
    scaled = y * 2.0**53
    return ((np.abs(y) < 1) & (scaled != np.rint(scaled))).any(axis=1)


@pytest.mark.parametrize(("d", "seen"), [(1, 0.338), (10, 0.9)])
def test_one_bit_betrays_the_naive_sum(d, seen):
    """An event that never happens under x = 1: under x = 0 its probability bounds delta from below."""
    rng = np.random.default_rng()
    shares = [fine(naive.release(np.full((N // d, d), float(x)), (0, 1), 1.0, ZERO_PROB, rng)).mean() for x in (0, 1)]
    assert shares[1] == 0
    assert abs(shares[0] - seen) < 0.05
    assert shares[0] > 5 * ZERO_PROB


@pytest.mark.parametrize("d", [1, 10])
def test_the_bit_says_nothing_about_a_release(d):
    assert not any(fine(published(x, d, N // d)).any() for x in (0, 1))


@pytest.mark.parametrize("how", [{}, {"resolution": 0.01}, {"resolution": 1.0}])
def test_every_value_is_on_the_public_lattice(how):
    """The same attainable values whatever the row was: integers times the tick, in this very rounding."""
    mechanism = zil.Mechanism([(0, 1), (-3, 5)], zero_prob=ZERO_PROB, scale=[1.0, 20.0], **how)
    rng = np.random.default_rng()
    y = mechanism.release(np.column_stack([rng.random(N), rng.uniform(-4, 6, N)])).data
    assert (np.rint(y / mechanism.tick) * mechanism.tick == y).all()


def trailing(y, tick):
    """Number of trailing zero bits of the tick number: what a porous grid would betray."""
    k = np.rint(y[:, 0] / tick).astype(np.int64)
    return np.where(k == 0, 63, np.log2(np.maximum(k & -k, 1)).astype(int))


def excess(p_count, q_count, n, epsilon, level):
    """Lower confidence bound on P(E) - e^epsilon Q(E), each side at ``level``."""
    low = stats.beta.ppf(level, p_count, n - p_count + 1) if p_count else 0.0
    high = stats.beta.ppf(1 - level, q_count + 1, n - q_count) if q_count < n else 1.0
    return low - np.exp(epsilon) * high


def test_no_grain_event_exceeds_the_claimed_delta():
    """Every level of trailing zeros, both directions, two epsilons: 164 tests at 1e-9."""
    tick = CLAIMED.tick[0]
    grains = [trailing(published(x), tick) for x in (0, 1)]
    for epsilon in (0.0, 1.0):
        claimed = CLAIMED.delta(epsilon, "attribute")
        for grain in range(41):
            counts = [int((g == grain).sum()) for g in grains]
            assert excess(*counts, N, epsilon, 1e-9) <= claimed
            assert excess(*counts[::-1], N, epsilon, 1e-9) <= claimed


def test_power_of_the_grain_test():
    """Without an atom the naive sum on a finer lattice would be caught by the same events."""
    rng = np.random.default_rng()
    counts = [int(fine(naive.release(np.full((N, 1), float(x)), (0, 1), 1.0, ZERO_PROB, rng)).sum()) for x in (0, 1)]
    assert excess(*counts, N, 1.0, 1e-9) > 5 * ZERO_PROB


def two_decimals(n):
    return np.random.default_rng().integers(0, 1001, (n, 2)) / 100


def looks_unchanged(y):
    """What a reader of two-decimal data would say: this row has two decimals."""
    return (np.abs(np.rint(y * 100) / 100 - y) < 1e-9).all(axis=1)


def test_digits_betray_unchanged_rows_of_the_naive_sum():
    x = two_decimals(N)
    y = naive.release(x, (0, 10), 5.0, ZERO_PROB)
    unchanged, said = (x == y).all(axis=1), looks_unchanged(y)
    assert unchanged.sum() > 0.8 * ZERO_PROB * N
    assert (unchanged & said).sum() / said.sum() == 1.0  # precision
    assert (unchanged & said).sum() / unchanged.sum() == 1.0  # recall


def test_digits_say_nothing_at_the_declared_resolution():
    """All rows have two decimals, unchanged or not, so pointing at one is no better than drawing lots."""
    x = two_decimals(N)
    mechanism = zil.Mechanism([(0, 10)] * 2, zero_prob=ZERO_PROB, scale=5.0, resolution=0.01)
    y = mechanism.release(x).data
    assert looks_unchanged(y).all()
    np.testing.assert_array_equal(y, np.rint(y / 0.01) * 0.01)


def test_unchanged_rows_are_rounded_like_the_others():
    """The digits of the original float never travel: an unchanged row is its tick, not its value."""
    x = np.random.default_rng().random((N, 1))
    mechanism = zil.Mechanism([(0, 1)], zero_prob=1.0, scale=1.0)
    y = mechanism.release(x).data
    assert np.abs(y - x).max() <= 0.5 * mechanism.tick[0]
    assert (y == x).mean() < 1e-3
