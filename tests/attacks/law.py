"""What a sample of noise in ticks must look like: eight tests that share no code with `zil.audit`.

`alarms` names each property of the zero-inflated symmetric Laplace law that a sample contradicts; each test has a
false-alarm rate of at most 1e-9, for any key: the tests are exact, or add the most that rounding can do.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

LEVEL = 1e-9


class Sample:
    """Ticks (n, d), d >= 2, all columns of one scale, and what the law says about them."""

    def __init__(self, ticks, scale, zero_prob):
        self.ticks, self.scale, self.zero_prob = ticks, scale, zero_prob
        zeros = ticks == 0
        self.any_zero, self.all_zero = zeros.any(axis=1), zeros.all(axis=1)

    def noisy(self, limit=None):
        """Rows without a zero, in scales."""
        return self.ticks[~self.any_zero][:limit] / self.scale


def share_of_zero_rows(sample):
    return stats.binomtest(int(sample.all_zero.sum()), len(sample.ticks), sample.zero_prob).pvalue < LEVEL


def zeros_not_by_row(sample):
    """Rounding alone makes an entry zero with probability at most 1/(sqrt 2 scale)."""
    n, d = sample.ticks.shape
    lone = int((sample.any_zero & ~sample.all_zero).sum())
    return stats.binom.sf(lone - 1, n, min(1.0, d / sample.scale)) < LEVEL


def _far(cdf, values, rounding):
    """Kolmogorov's distance beyond Massart's bound (exact for any n) and what rounding to ticks adds to it."""
    ordered, n = np.sort(values), len(values)
    places = cdf(ordered)
    distance = max((np.arange(1, n + 1) / n - places).max(), (places - np.arange(n) / n).max())
    return distance > np.sqrt(np.log(2 / LEVEL) / (2 * n)) + rounding


def marginal_law(sample):
    laplace = stats.laplace(scale=np.sqrt(0.5))
    z = sample.noisy(50_000)
    return any(_far(laplace.cdf, column, (2 + z.shape[1]) / sample.scale) for column in z.T)


def scale(sample):
    """|z_j| is exponential, so their sum is a gamma variable; rounding moves each by half a tick, and omits rows."""
    z = np.abs(sample.noisy())
    if not len(z):
        return False
    sums, slack = z.sum(axis=0) * np.sqrt(2), len(z) / sample.scale
    tails = np.minimum(stats.gamma.cdf(sums + slack, len(z)), stats.gamma.sf(sums - slack, len(z)))
    left_out = np.exp(z.size / sample.scale)  # the chance of no zero in any of the rows is at least one over this
    return tails.min() * left_out < LEVEL / (2 * len(sums))


def common_w(sample):
    """z_0/z_1 is Cauchy whatever W is, so |z_0| > 3 |z_1| has probability 1 - (2/pi) atan 3; with two W it is 1/4."""
    z = np.abs(sample.noisy())
    count = int((z[:, 0] > 3 * z[:, 1]).sum())
    p = 1 - 2 / np.pi * np.arctan(3)
    slack = (4 + z.shape[1]) / sample.scale  # |z_0| - 3 |z_1| has a density below 1
    return min(stats.binom.cdf(count, len(z), p - slack), stats.binom.sf(count - 1, len(z), p + slack)) < LEVEL / 2


def direction(sample):
    """Uniform; rounding turns few rows by more than 1e-3 of a turn."""
    z = sample.noisy(50_000)
    turns = np.arctan2(z[:, 1], z[:, 0]) / (2 * np.pi) % 1
    return _far(lambda x: x, turns, 1e-3 + 400 / sample.scale)


def low_bits(sample):
    """Where the scale is many ticks, odd and even are equally likely, and so is every low bit."""
    column = sample.ticks[~sample.any_zero][:200_000, 0]
    return any(stats.binomtest(int((column >> bit & 1).sum()), len(column), 0.5).pvalue < LEVEL for bit in range(4))


def repeated_rows(sample):
    return repeated(sample.ticks) > 0


TESTS = (
    share_of_zero_rows,
    zeros_not_by_row,
    marginal_law,
    scale,
    common_w,
    direction,
    low_bits,
    repeated_rows,
)


def alarms(ticks, scale, zero_prob, tests=TESTS):
    """Names of the tests that the sample fails."""
    sample = Sample(ticks, scale, zero_prob)
    return {test.__name__ for test in tests if test(sample)}


def repeated(*tables):
    """Number of non-zero rows of ticks that occur more than once, in one table or in several."""
    rows = np.concatenate([table[(table != 0).any(axis=1)] for table in tables])
    return len(rows) - len(np.unique(np.ascontiguousarray(rows).view([("", rows.dtype)] * rows.shape[1])))
