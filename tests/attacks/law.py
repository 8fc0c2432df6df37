"""What a sample of noise in ticks must look like, and the mutants that must not pass for it.

`alarms` names each property of the zero-inflated symmetric Laplace law that a sample contradicts;
each test has a false-alarm rate of at most 1e-9, for any key.  An audit of (epsilon, delta) alone would
miss most of the mutants: a scale 0.5 % too small and one W per entry both stay under the claimed curve.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from zil._core import certified

LEVEL = 1e-9
SIGMAS = 6.5  # two-sided normal tail 8e-11, with room for the slow tails of the averages below


def _off(values, expected):
    """Whether the mean of independent values is farther from its expectation than chance allows."""
    return abs(values.mean() - expected) > SIGMAS * values.std() / np.sqrt(len(values))


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


def marginal_law(sample):
    laplace = stats.laplace(scale=np.sqrt(0.5))
    return any(stats.kstest(column, laplace.cdf).pvalue < LEVEL for column in sample.noisy(50_000).T)


def scale(sample):
    """E |z_j| = 1/sqrt 2; averaged over a row first, entries of a row share W."""
    return _off(np.abs(sample.noisy()).mean(axis=1), np.sqrt(0.5))


def common_w(sample):
    """log|z_j| = log(W)/2 + log|n_j| with independent normals n_j: the covariance of two columns is pi^2/24."""
    logs = np.log(np.abs(sample.noisy(200_000))) + np.euler_gamma + np.log(2) / 2
    return _off(logs[:, 0] * logs[:, 1], np.pi**2 / 24)


def direction(sample):
    z = sample.noisy(50_000)
    turns = np.arctan2(z[:, 1], z[:, 0]) / (2 * np.pi) % 1
    return stats.kstest(turns, "uniform").pvalue < LEVEL


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


@dataclass(frozen=True)
class Defect:
    """One thing done wrong by an implementation of the sampler in plain numpy."""

    root: bool = True
    w_per_entry: bool = False
    zero_per_entry: bool = False
    single: bool = False
    same_key: bool = False
    period: int = 0


MUTANTS = {
    "no sqrt of W": Defect(root=False),
    "W per entry": Defect(w_per_entry=True),
    "zero draw per entry": Defect(zero_per_entry=True),
    "float32 noise": Defect(single=True),
    "key reuse": Defect(same_key=True),
    "chunk repeat": Defect(period=65_536),
}


def draw(key, n, d, scale, zero_prob, defect=None):
    """The sampler of docs/certified_sampler.md in numpy, from the same words; ``defect`` spoils one thing.

    Without a defect its rows equal the certified ones but for near ties.
    """
    defect = defect or Defect()
    if defect.same_key:
        key = bytes(32)
    width = certified.words_per_row(d)
    words = np.empty(n * width, np.uint64)
    certified.stream(key, certified.level_nonce(0), 0, words)
    words = words.reshape(n, width)
    if defect.period:
        words = words[np.arange(n) % defect.period]
    unit = words / 2.0**64
    spare = np.random.default_rng().random((2, n, d))  # what a mutant draws beyond the words of the design
    pairs = np.arange(d) // 2
    w = -np.log(unit[:, [1]])
    if defect.w_per_entry:
        w = -np.log(1 - spare[0])
    e = -np.log(unit[:, 2 + 2 * pairs])
    angle = 2 * np.pi * unit[:, 3 + 2 * pairs]
    normal = np.sqrt(2 * e) * np.where(np.arange(d) % 2, np.sin(angle), np.cos(angle))
    t = scale * (np.sqrt(w) if defect.root else w) * normal
    if defect.single:
        t = t.astype(np.float32).astype(np.float64)
    zero = spare[1] < zero_prob if defect.zero_per_entry else words[:, [0]] < np.uint64(zero_prob * 2**64)
    return np.where(zero, 0, np.rint(t)).astype(np.int64)
