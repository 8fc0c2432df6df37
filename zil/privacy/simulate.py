"""The Neyman-Pearson Monte Carlo of the trade-off function (paper, section 3), with a smaller error.

Draw S from P and let L be its log-likelihood ratio.  The mirror image of S has ratio -L and law Q,
so given ``|L|`` the sign is a coin: P puts the share ``w = 1/(1 + exp(|L|))`` on ``+|L|`` and the
rest on ``-|L|``.  Replacing the sign by its expectation (beyond the paper) gives for t >= 0

    alpha(t) = mean of w 1{|L| > t},      1 - beta(t) = mean of (1 - w) 1{|L| > t}

symmetric, convex and never of larger variance than counting; in the tails much smaller.  A
histogram of ``|L|`` holds all of it, so memory does not depend on the number of draws.  At d = 1
the ratio has an atom at ``sqrt(2) c``: it falls into one bin, whose chord is the randomised test.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from zil import _threads
from zil._core import tradeoff as kernel
from zil._random import Key, resolve_key
from zil._validate import FloatArray, in_range, integer, probability
from zil.privacy.curves import SQRT2, Perfect
from zil.privacy.polygon import Polygon
from zil.privacy.tradeoff import TradeOff

BINS = (1 << 14) + 1  # odd: the atom of d = 1 at v = 1/2 is the middle of a bin


class SimulatedTradeOff(TradeOff):
    """A trade-off function estimated from draws, the polygon of the sample's likelihood-ratio tests.

    Attributes
    ----------
    alpha, beta : (m,) arrays
        Vertices: alpha ascends from 0, beta descends to 0, convex.
    n_samples : int
    """

    def __init__(self, sample: Sample | None, n_samples: int, zero_prob: float, label: str) -> None:
        super().__init__(Perfect() if sample is None else sample.polygon(), zero_prob, label)
        self.n_samples = n_samples
        self._sample = sample
        alpha, beta = _ENDS
        if isinstance(self._curve, Polygon):
            alpha, beta = self._curve.alpha, self._curve.vertex_beta
        self.alpha: FloatArray = (1.0 - zero_prob) * alpha
        self.beta: FloatArray = (1.0 - zero_prob) * beta

    @functools.cached_property
    def std_error(self) -> FloatArray:
        """Standard error of ``f(alpha)`` at each vertex."""
        if self._sample is None:
            return np.zeros_like(self.alpha)
        return (1.0 - self.zero_prob) * self._sample.std_error(self.n_samples)


_ENDS = (np.array([0.0, 1.0]), np.array([1.0, 0.0]))


def simulate_tradeoff(
    dim: int,
    c: float,
    zero_prob: float = 0.0,
    n_samples: int = 100_000,
    rng: Any = None,
    n_threads: int | None = None,
) -> SimulatedTradeOff:
    """Trade-off function of zero-inflated symmetric Laplace noise by simulation.

    Parameters
    ----------
    dim : int >= 1
        Number of noised columns; the cost of a draw hardly depends on it.
    c : float >= 0
        Shift in units of the noise.
    zero_prob : float in [0, 1]
    n_samples : int >= 1
        Memory does not depend on it.
    rng : None, int, SeedSequence, Generator or BitGenerator
    n_threads : int or None
        Never changes the result.

    Returns
    -------
    SimulatedTradeOff
    """
    size, n = integer("dim", dim, 1), integer("n_samples", n_samples, 1)
    shift = in_range("c", c, 0.0, np.inf, open_high=True)
    z = probability("zero_prob", zero_prob)
    label = f"simulated, d = {size}, c = {shift:g}, zero_prob = {z:g}"
    if shift == 0.0:
        return SimulatedTradeOff(None, n, z, label)
    count = _histogram(resolve_key(rng), size, shift, n, n_threads)
    return SimulatedTradeOff(Sample(count, SQRT2 * shift, n), n, z, label)


def _histogram(key: Key, dim: int, c: float, n: int, n_threads: int | None) -> Any:
    """Counts of ``|L|`` by ``v = |L|/(sqrt(2) c + |L|)``; whole numbers, so the order of adding is free."""
    chunks = -(-n // kernel.CHUNK)
    parts: dict[int, Any] = {}

    def work(first: int, last: int) -> None:
        count = np.zeros(BINS, dtype=np.int64)
        kernel.simulate(key, dim, c, n, first, last, count)
        parts[first] = count

    _threads.run_chunks(work, chunks, n_threads)
    return sum(parts.values())


class Sample:
    """What the histogram says, largest ratios first, bins with no draw left out."""

    def __init__(self, count: Any, unit: float, n: int) -> None:
        used = np.flatnonzero(count)[::-1]
        v = (used + 0.5) / BINS
        self.size: FloatArray = unit * v / (1.0 - v)
        with np.errstate(under="ignore"):
            inverse = np.exp(-self.size)
        self.mass: FloatArray = count[used] / n
        self.w: FloatArray = inverse / (1.0 + inverse)

    def polygon(self) -> Polygon:
        """The curve; its lower half is the mirror image of the upper one."""
        alpha, power = np.cumsum(self.mass * self.w), np.cumsum(self.mass * (1.0 - self.w))
        all_alpha = np.concatenate([[0.0], alpha, 1.0 - power[-2::-1], [1.0]])
        all_power = np.concatenate([[0.0], power, 1.0 - alpha[-2::-1], [1.0]])
        all_beta = np.concatenate([[1.0], 1.0 - power, alpha[-2::-1], [0.0]])
        keep = self.kept = np.concatenate([[True], (np.diff(all_alpha) > 0.0) & (np.diff(all_beta) < 0.0)])
        keep[-1] = True
        return Polygon(all_alpha[keep], all_power[keep], all_beta[keep])

    def std_error(self, n: int) -> FloatArray:
        """``f(alpha)`` moves by the mean of (1 - w) - k w over the draws beyond the threshold, k its slope."""
        with np.errstate(under="ignore"):
            odds = np.exp(np.minimum(self.size, 300.0))
            first, second = np.cumsum(self.mass), np.cumsum(self.mass * self.w)
            third = np.cumsum(self.mass * self.w * self.w)
        mean = first - (1.0 + odds) * second
        square = first - 2.0 * (1.0 + odds) * second + (1.0 + odds) ** 2 * third
        error = np.sqrt(np.maximum(square - mean * mean, 0.0) / n)
        # mirrored: a vertical error is the horizontal one times the slope
        result: FloatArray = np.concatenate([[0.0], error, (error / odds)[-2::-1], [0.0]])[self.kept]
        return result
