"""Exact probabilities of the noise of a release, in ticks: what an audit counts is compared with these.

A row of noise is zero with probability ``zero_prob``, else ``t_j = round(s_j z_j)`` with ``z = sqrt(W) N`` symmetric
Laplace and ``s_j`` the scale in ticks.  Where rounding keeps a probability from being exact the functions give an
enclosure, because an audit must never blame the right sampler for a rounding.

Three facts carry everything (mathematics 1 and 2; derived in docs/audit.md).  (1) ``|t_j|`` is geometric beyond 0:
``P(|t_j| >= k) = exp(-a (k - 1/2))``, ``a = sqrt(2)/s_j``; so the binary digits of ``|t_j| - 1`` are independent.
(2) The direction of z is uniform, and any ``b.z`` is Laplace with scale |b|.  (3) The radius has
``P(|z| > r) = S_d(r)`` with ``S_1 = exp(-sqrt(2) r)``, ``S_2 = sqrt(2) r K_1(sqrt(2) r)`` and
``S_{d+2} = S_d + V_d(r) g_d(r)`` (V_d the volume of the ball, g_d the density), and
``E |z|^p = 2^{p/2} Gamma(1 + p/2) Gamma((d+p)/2)/Gamma(d/2)``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from zil._validate import FloatArray
from zil.privacy.density import log_density

ROUNDING = 1e-12  # relative, far above what the few operations of a probability lose
_QUANTILES = 1 << 14


def beyond(r: Any, dim: int) -> FloatArray:
    """``P(|z| > r)`` for radii ``r >= 0`` of any shape, z symmetric Laplace in ``dim`` dimensions with scale 1."""
    radius = np.atleast_1d(np.asarray(r, dtype=float))
    far = math.sqrt(2) * radius
    with np.errstate(invalid="ignore", divide="ignore"):
        result = np.exp(-far) if dim % 2 else np.where(far > 0, far * special.k1(far), 1.0)
        for m in range(2 - dim % 2, dim, 2):
            volume = 0.5 * m * math.log(math.pi) - math.lgamma(0.5 * m + 1) + m * np.log(radius)
            result = result + np.where(radius > 0, np.exp(log_density(m, radius, 1) + volume), 0.0)
    return np.asarray(np.minimum(result, 1.0))


def radii(shares: FloatArray, dim: int) -> FloatArray:
    """Where `beyond` is ``shares``, to about 1e-12; only the place of a threshold depends on it."""
    top = 4.0
    while beyond(top, dim)[0] > shares.min():
        top *= 2.0
    return np.array([optimize.brentq(lambda r, q=q: beyond(r, dim)[0] - q, 0.0, top) for q in shares.tolist()])


def at_least(k: Any, scale: Any) -> FloatArray:
    """``P(|round(s z)| >= k)`` for integers ``k >= 1``."""
    return np.asarray(np.exp(-math.sqrt(2) / np.asarray(scale) * (np.asarray(k, dtype=float) - 0.5)))


def zero_entry(scale: Any) -> FloatArray:
    """``P(round(s z) = 0)``: rounding alone, without the zero draw."""
    return np.asarray(-np.expm1(-math.sqrt(0.5) / np.asarray(scale, dtype=float)))


def zero_row(scale: FloatArray) -> tuple[float, float]:
    """Enclosure of the probability that rounding alone makes all entries zero; scales (d,) in ticks.

    Given W it is ``prod erf(1/(2 s_j sqrt(2 W)))``, decreasing in W: sums over quantiles of W enclose the mean.
    """
    one = float(zero_entry(scale).min())
    if len(scale) == 1:
        return one, one
    w = -np.log1p(-np.arange(1, _QUANTILES) / _QUANTILES)
    given = special.erf(0.5 / (scale * np.sqrt(2 * w)[:, None])).prod(axis=1).sum() / _QUANTILES
    return float(given) * (1 - ROUNDING), min(one, float(given + 1 / _QUANTILES))


def odd_bit(bit: int, scale: Any) -> FloatArray:
    """``P(binary digit of |t| - 1 is 1 | t != 0) = 1/(1 + exp(a 2^bit))``."""
    return np.asarray(special.expit(-math.sqrt(2) / np.asarray(scale) * 2.0**bit))


def equal_entries(scale: Any) -> FloatArray:
    """``P(t = t' != 0)`` for two independent entries without their zero draws."""
    a = math.sqrt(2) / np.asarray(scale)
    return np.asarray(0.5 * np.exp(-a) * -np.expm1(-a) / (1 + np.exp(-a)))


def equal_rows(scale: FloatArray) -> float:
    """Upper bound of ``P(t = t')`` for two independent rows of noise without zero draws.

    Given V = W + W' ~ Gamma(2) the differences are normal with variance V, so column j agrees with probability at most
    ``2/(s_j sqrt(2 pi V))``; three columns (the finest) are enough, and ``E V^{-m/2} = Gamma(2 - m/2)``.
    """
    finest = np.sort(scale)[::-1][:3]
    return min(1.0, math.gamma(2 - 0.5 * len(finest)) * float(np.prod(2 / (finest * math.sqrt(2 * math.pi)))))


def geometric_tails(total: float, count: int, scale: float) -> tuple[float, float]:
    """Bounds of the lower and the upper tail of the sum of ``|t| - 1`` over ``count`` entries not zero (Chernoff)."""
    if count == 0:
        return 1.0, 1.0
    mu, mean = 1 / math.expm1(math.sqrt(2) / scale), total / count
    gap = mean - mu
    entropy = -math.log1p(gap / (1 + mu))  # mean log(mean/mu) - (1 + mean) log((1 + mean)/(1 + mu)) without cancelling
    if mean > 0:
        entropy += mean * math.log1p(gap / (mu * (1 + mean)))
    tail = math.exp(-count * max(entropy, 0.0))
    return (tail, 1.0) if gap < 0 else (1.0, tail)


def log_radius_tails(low: float, high: float, count: int, scale: FloatArray) -> tuple[float, float]:
    """Bounds of the lower and the upper tail of the sum of log radii over ``count`` rows that are not zero, d >= 2.

    ``low`` is the sum of ``log(|t/s| + h)``, ``high`` that of ``log |t/s|``, with ``h = |1/s|/2`` the rounding at most.
    Chernoff: ``E (|t/s| + h)^p <= E |z|^p`` for p < 0, and ``E |t/s|^p <= E |z|^p + p h E |z|^{p-1}`` for 0 < p < 1.
    """
    if count == 0:
        return 1.0, 1.0
    dim, h = len(scale), 0.5 * math.sqrt(sum(s**-2 for s in scale.tolist()))
    powers: FloatArray = 0.95 * 0.85 ** np.arange(64.0)
    left = count * math.log1p(-zero_row(scale)[1])  # rows that rounding makes zero are not among the summands

    def moment(p: FloatArray) -> FloatArray:
        gammas = special.gammaln(1 + p / 2) + special.gammaln((dim + p) / 2) - special.gammaln(dim / 2)
        return np.asarray(p / 2 * math.log(2) + gammas)

    below = powers * low + count * moment(-powers) - left
    rounded = np.log1p(powers * h * np.exp(moment(powers - 1) - moment(powers)))
    above = -powers * high + count * (moment(powers) + rounded) - left
    return math.exp(min(0.0, below.min())), math.exp(min(0.0, above.min()))


def binomial_tails(
    count: ArrayLike, trials: ArrayLike, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """``P(Bin(trials, low) <= count)`` and ``P(Bin(trials, high) >= count)``, elementwise; exact for any size."""
    k, n = np.asarray(count, dtype=float), np.asarray(trials, dtype=float)
    p, q = np.maximum(low * (1 - ROUNDING), 0.0), np.minimum(high * (1 + ROUNDING), 1.0)
    lower = np.where(k < n, special.betaincc(k + 1, np.maximum(n - k, 1), p), 1.0)
    upper = np.where(k > 0, special.betainc(np.maximum(k, 1), n - k + 1, q), 1.0)
    return lower, upper
