"""From a privacy target to the largest admissible shift ``c``, and from a shift to scales.

Design: all rounding goes one way.  The shift is computed by well-conditioned formulas (every
step a few ulp at most, no root finder, no bracket) and shrunk by a relative 2**-48, more than
all of them together; scales are rounded up.  So the guarantee recomputed in any precision
from the scale really used satisfies the target.  The price is 4e-15 more noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from zil import _validate
from zil._validate import FloatArray
from zil.privacy.exact import exact_curve
from zil.privacy.tradeoff import tradeoff

MARGIN = 2.0**-48


EXACT_RANGE = (1e-3, 50.0)  # shifts for which the exact curve's accuracy is tested
EXACT_DIM = 1000  # and dimensions


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """Where an increasing function of c changes sign in [low, high]; an end if it does not."""
    if excess(low) >= 0.0:
        return low
    if excess(high) <= 0.0:
        return high
    log_c = brentq(lambda x: excess(math.exp(x)), math.log(low), math.log(high), xtol=1e-13, rtol=1e-14, maxiter=200)
    return math.exp(log_c)


def _largest(satisfied: Callable[[float], bool], start: float, floor: float, step: float = MARGIN) -> float:
    """``start`` shrunk until the certified guarantee holds, but never below ``floor``, which is known to be safe."""
    c = start
    while c > floor and not satisfied(c):
        c *= 1.0 - step
        step *= 2.0
    return max(c, floor)


def exact_shift(dim: int, epsilon: float, delta: float, zero_prob: float) -> float:
    """Largest shift for ``dim >= 2`` noised columns by the exact curve: never below that of the limit curve.

    The curve at the answer, with its own error bound added, satisfies the target.  Beyond the range in
    which that curve is tested the limit curve decides.
    """
    floor = limit_shift(epsilon, delta, zero_prob)
    low, high = max(floor, EXACT_RANGE[0]), min(laplace_shift(epsilon, delta, zero_prob), EXACT_RANGE[1])
    if low >= high or dim > EXACT_DIM:
        return floor
    log_target = math.log((delta - zero_prob) / (1.0 - zero_prob))

    def log_delta(c: float) -> float:
        value = float(exact_curve(dim, c).delta(np.array(epsilon)))
        return math.log(value) if value > 0.0 else -1e4

    def satisfied(c: float) -> bool:  # 4e-16: the target itself was rounded when it was divided
        return log_delta(c) + exact_curve(dim, c).error + 4e-16 <= log_target

    if not satisfied(low):
        return floor
    # one step is about the error of the curve's table
    return _largest(satisfied, _root(lambda c: log_delta(c) - log_target, low, high), floor, 2.0**-41)


def exact_gaussian_shift(dim: int, mu: float) -> float:
    """Largest shift with mu-GDP for two noised columns."""
    start = gaussian_shift(mu)
    if not EXACT_RANGE[0] <= start <= EXACT_RANGE[1]:
        raise ValueError(f"mu must lie between 0.001 and about 12 for two noised columns, got {mu}")
    start = _root(lambda c: exact_curve(dim, c).gaussian_mu() - mu, EXACT_RANGE[0], start)
    return _largest(lambda c: exact_curve(dim, c).gaussian_mu() <= mu, start, EXACT_RANGE[0])


def point_shift(dim: float, alpha: float, beta: float, zero_prob: float) -> float:
    """Largest shift with ``f(alpha) >= beta``: a test of size alpha misses at least a share beta."""
    a, b = _validate.probability("alpha", alpha), _validate.probability("beta", beta)
    if not (0.0 < a < 1.0 and 0.0 < b < 1.0 - zero_prob - a):
        raise ValueError(
            "a point needs alpha > 0, beta > 0 and alpha + beta < 1 - zero_prob, "
            f"got alpha = {alpha}, beta = {beta} with zero_prob = {zero_prob}"
        )
    if dim > EXACT_DIM:
        dim = math.inf
    exact = dim not in (1, math.inf)
    low, high = EXACT_RANGE if exact else (1e-15, 1e4)

    def excess(c: float) -> float:
        return b - float(tradeoff(dim, c, zero_prob).bounds(a)[0])

    if excess(low) > 0.0:
        if exact:
            return point_shift(math.inf, alpha, beta, zero_prob)
        raise ValueError(f"alpha + beta = {a + b} is too close to 1 - zero_prob")
    return _largest(lambda c: excess(c) <= 0.0, _root(excess, low, high), low)


def gaussian_shift(mu: float) -> float:
    """Shift whose curve has the advantage of ``G_mu``, the most that mu-GDP can allow: ``erf(mu/sqrt(8))``."""
    value = _validate.positive("mu", mu)
    x = value / math.sqrt(8.0)
    minus_log = -math.log1p(-math.erf(x)) if x < 0.5 else -(math.log(2.0) + float(log_ndtr(-0.5 * value)))
    return shrink(math.sqrt(2.0) * minus_log)


def _log_ratio(low: float, high: float) -> float:
    """``log((1 - low)/(1 - high))`` for low < high, to a few ulp even when the two are close."""
    return math.log1p((high - low) / (1.0 - high))


def shrink(c: float) -> float:
    """``c`` less the margin (the last step matters only among subnormal numbers)."""
    return math.nextafter(c * (1.0 - MARGIN), 0.0)


def check_delta(delta: float, zero_prob: float) -> float:
    """The total delta, which must leave room for the rows that are published as they are."""
    value = _validate.probability("delta", delta)
    if not zero_prob < value < 1.0:
        raise ValueError(f"delta needs zero_prob < delta < 1, got delta = {delta} with zero_prob = {zero_prob}")
    return value


def check_epsilon(epsilon: float) -> float:
    return _validate.in_range("epsilon", epsilon, 0.0, math.inf, open_high=True)


def limit_shift(epsilon: float, delta: float, zero_prob: float) -> float:
    """Largest shift whose limit curve (safe in every dimension) satisfies (epsilon, delta).

    ``L = 2 log((1 - zero_prob)/(1 - delta))``, ``c = sqrt(L (L + 2 epsilon)/2)``: solve
    ``delta = zero_prob + (1 - zero_prob)(1 - exp((epsilon - s)/2))`` for ``s = sqrt(epsilon^2 + 2 c^2)``
    (beyond the paper: mathematics 3.3).
    """
    log_ratio = 2.0 * _log_ratio(zero_prob, check_delta(delta, zero_prob))
    return shrink(math.sqrt(log_ratio) * math.sqrt(0.5 * log_ratio + check_epsilon(epsilon)))


def laplace_shift(epsilon: float, delta: float, zero_prob: float) -> float:
    """Largest shift for one noised column: ``c = (epsilon + L)/sqrt(2)`` (mathematics 3.2)."""
    log_ratio = 2.0 * _log_ratio(zero_prob, check_delta(delta, zero_prob))
    return shrink(math.sqrt(0.5) * (check_epsilon(epsilon) + log_ratio))


def advantage_shift(advantage: float, zero_prob: float) -> float:
    """Largest shift with attack advantage (total variation) at most ``advantage``, in every dimension.

    The best test at equal prices is the half-space, so the advantage is
    ``zero_prob + (1 - zero_prob)(1 - exp(-c/sqrt(2)))`` whatever the dimension (mathematics 3.4).
    """
    value = _validate.probability("advantage", advantage)
    if not zero_prob < value < 1.0:
        raise ValueError(
            f"advantage needs zero_prob < advantage < 1, got advantage = {advantage} with zero_prob = {zero_prob}"
        )
    return shrink(math.sqrt(2.0) * _log_ratio(zero_prob, value))


def _at_least(value: float, exact: Fraction) -> float:
    """``value`` or its upper neighbour, whichever is not below the exact number it stands for."""
    return value if Fraction(value) >= exact else math.nextafter(value, math.inf)


def widths(bounds: FloatArray) -> FloatArray:
    """``high - low`` of bounds of shape (d, 2), rounded up; shape (d,)."""
    result = []
    for low, high in bounds.tolist():
        width = high - low
        if math.isinf(width):
            raise ValueError(f"bounds ({low:g}, {high:g}) are wider than float64 can say")
        result.append(_at_least(width, Fraction(high) - Fraction(low)))
    return np.array(result)


def norm(values: list[float]) -> float:
    """Euclidean norm, rounded up (``math.hypot`` is right to one ulp)."""
    result = math.hypot(*values)
    if math.isinf(result):
        return result
    return (
        result if Fraction(result) ** 2 >= sum(Fraction(v) ** 2 for v in values) else math.nextafter(result, math.inf)
    )


def ratios(width: FloatArray, scale: FloatArray) -> FloatArray:
    """``width_j/scale_j`` rounded up, shape (d,)."""
    pairs = zip(width.tolist(), scale.tolist(), strict=True)
    return np.array([_at_least(w / s, Fraction(w) / Fraction(s)) for w, s in pairs])


def shift(ratio: FloatArray, unit: str) -> float:
    """``c`` of two neighbouring rows from the ``width_j/scale_j``, rounded up.

    Attribute level: one entry changes, so the largest.  Record level: the whole row changes, so
    the Euclidean norm.
    """
    return float(ratio.max()) if unit == "attribute" else norm(ratio.tolist())


def scales(width: FloatArray, c: float, unit: str, scaling: str) -> FloatArray:
    """Scales of shape (d,) whose shift is at most ``c``, rounded up.

    ``scaling="per-column"`` gives every column noise in proportion to its width,
    ``"common"`` gives all columns the same scale.  A column whose bounds are equal adds nothing
    to the shift; it gets the largest scale of the others, never 0.
    """
    used = width[width > 0.0]
    if len(used) == 0:
        raise ValueError("the bounds of all columns are equal: there is nothing to protect")
    if unit == "attribute":
        factor = (
            np.where(width > 0.0, width, used.max()) if scaling == "per-column" else np.full_like(width, used.max())
        )
    else:
        root = math.nextafter(math.sqrt(len(used)), math.inf) if len(used) > 1 else 1.0
        factor = root * np.where(width > 0.0, width, used.max())
        if scaling == "common":
            factor = np.full_like(width, norm(used.tolist()))
    with np.errstate(over="ignore", divide="ignore"):
        result: FloatArray = np.nextafter(factor / c, np.inf)
    if not (np.isfinite(result).all() and (result > 0.0).all()):
        raise ValueError("the target and the bounds ask for a scale outside the range of float64")
    return result
