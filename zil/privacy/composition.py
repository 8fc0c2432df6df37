"""Composition of trade-off functions by convolving their privacy losses on a grid (beyond the paper: mathematics 3.7).

A curve is replaced by the polygon of its supporting lines at slopes ``exp(+-i h)``, which lies
below it and belongs to a pair of laws whose log-likelihood ratio lives on the grid ``i h`` (Doroshenko
et al. 2022 call it connecting the dots).  With ``delta_i = delta(i h)``, the mass at ``i h`` under Q is

    q_i = (delta_(i-1) - delta_i)/(1 - e^-h) - (delta_i - delta_(i+1))/(e^h - 1),   q_-i = e^(-i h) q_i

and what is left of delta at the end of the grid, atoms included, sits at +infinity.  A polygon below
the curve composes to a curve below the composition, so the answer is always on the safe side; losses that
leave the grid go to infinity or are rounded up, and the rounding of the Fourier transform is added.
The distance to the truth is of order h^2: the same with 2 h gives the stated error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import signal

from zil._validate import FloatArray
from zil.privacy.polygon import Polygon

GRID = 1 << 13  # points of one loss on each side; more would let the rounding of delta in
LONGEST = 1 << 21  # points of a composed loss
TAIL = 1e-15  # mass that may be moved to infinity per convolution
ROUNDING = 1e-16  # of one Fourier convolution of probabilities, per value and relative to 1

# delta and epsilon of a curve, and how many times it is released
Part = tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray], int]


@dataclass
class Loss:
    """Masses ``q[i]`` of the privacy loss at ``(first + i) step`` under Q, and at +infinity."""

    step: float
    first: int
    q: FloatArray
    infinite: float


class Composed(Polygon):
    """The polygon of a composition; the truth lies at most ``error`` above it, its estimate doubled in ``bounds``."""

    def __init__(self, alpha: FloatArray, power: FloatArray, beta: FloatArray, error: float) -> None:
        super().__init__(alpha, power, beta)
        self.error = error

    def bounds(self, alpha: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
        lower = self.beta(alpha, rest)
        return lower, lower + 2.0 * self.error


def discretise(delta_of: Callable[[FloatArray], FloatArray], step: float, points: int) -> Loss:
    """The loss of the supporting polygon with slopes ``exp(+-i step)``, i up to ``points``."""
    delta = delta_of(np.asarray(step * np.arange(points + 1), dtype=np.float64))
    fall = np.maximum(-np.diff(delta), 0.0)
    following = np.append(fall[1:], 0.0)
    q = np.maximum(fall / -math.expm1(-step) - following / math.expm1(step), 0.0)
    mirrored = q * np.exp(-step * np.arange(1, points + 1))
    infinite = float(delta[-1])
    centre = max(0.0, 1.0 - infinite - float(q.sum() + mirrored.sum()))
    return Loss(step, -points, np.concatenate([mirrored[::-1], [centre], q]), infinite)


def convolve(left: Loss, right: Loss) -> Loss:
    """The loss of both releases together, trimmed to what carries mass."""
    q = np.maximum(signal.fftconvolve(left.q, right.q), 0.0)
    infinite = 1.0 - (1.0 - left.infinite) * (1.0 - right.infinite)
    return trim(Loss(left.step, left.first + right.first, q, infinite + ROUNDING * 8.0))


def trim(loss: Loss) -> Loss:
    """The top TAIL of mass to infinity, the bottom TAIL up to the lowest point that stays."""
    from_top = np.cumsum(loss.q[::-1])[::-1]
    last = max(int(np.count_nonzero(from_top > TAIL)), 1)
    first = min(int(np.count_nonzero(np.cumsum(loss.q) <= TAIL)), last - 1)
    q = loss.q[first:last].copy()
    q[0] += loss.q[:first].sum()
    infinite = loss.infinite + float(loss.q[last:].sum())
    if len(q) > LONGEST:
        infinite += float(q[LONGEST:].sum())
        q = q[:LONGEST]
    return Loss(loss.step, loss.first + first, q, infinite)


def power(loss: Loss, k: int) -> Loss:
    """The k-fold loss by repeated squaring."""
    result: Loss | None = None
    while True:
        if k & 1:
            result = loss if result is None else convolve(result, loss)
        k >>= 1
        if k == 0:
            assert result is not None
            return result
        loss = convolve(loss, loss)


def vertices(loss: Loss) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(alpha, power, beta) of the symmetric polygon, scaled to the part without the atom."""
    index = np.arange(loss.first, loss.first + len(loss.q))
    positive = index > 0
    at = loss.q[positive][::-1]
    size = loss.step * index[positive][::-1]
    noisy = 1.0 - loss.infinite
    alpha, gain = np.cumsum(at * np.exp(-size)) / noisy, np.cumsum(at) / noisy
    all_alpha = np.concatenate([[0.0], alpha, 1.0 - gain[::-1], [1.0]])
    all_power = np.concatenate([[0.0], gain, 1.0 - alpha[::-1], [1.0]])
    all_beta = np.concatenate([[1.0], 1.0 - gain, alpha[::-1], [0.0]])
    keep = np.concatenate([[True], (np.diff(all_alpha) > 0.0) & (np.diff(all_beta) < 0.0)])
    keep[-1] = True
    keep[-2] = all_alpha[-2] < 1.0
    return all_alpha[keep], all_power[keep], all_beta[keep]


def compose(
    parts: list[Part],
) -> tuple[Composed, float]:
    """Composition of curves given as (delta, epsilon, how many times), and its atom.

    The grid of each reaches to where all but 1e-13 of its delta has gone, at most to 4000.
    """
    reaches = []
    for delta_of, epsilon_of, _ in parts:
        floor = float(delta_of(np.array([1e308]))[0])
        end = float(epsilon_of(np.array([min(1.0, floor + 1e-13)]))[0])
        at_floor = float(epsilon_of(np.array([floor]))[0])
        reaches.append(min(at_floor if math.isfinite(at_floor) else end, 4000.0))
    longest = max(reaches)
    if longest == 0.0:
        atom = 1.0
        for delta_of, _, k in parts:
            atom *= (1.0 - float(delta_of(np.array([0.0]))[0])) ** k
        ends = np.array([0.0, 1.0])
        return Composed(ends, ends, ends[::-1].copy(), 0.0), 1.0 - atom
    fine = _composed(parts, reaches, longest / GRID)
    coarse = _composed(parts, reaches, 2.0 * longest / GRID)
    curve = Polygon(*vertices(fine))
    other = Polygon(*vertices(coarse))
    grid = np.concatenate([np.linspace(0.0, 1.0, 501), np.geomspace(1e-9, 1e-2, 200)])
    noisy, coarse_noisy = 1.0 - fine.infinite, 1.0 - coarse.infinite
    # the two polygons as curves with their atoms
    value = noisy * np.interp(grid / noisy, curve.alpha, curve.vertex_beta)
    coarser = coarse_noisy * np.interp(grid / coarse_noisy, other.alpha, other.vertex_beta)
    error = float(np.abs(value - coarser).max()) + fine.infinite - _atom(parts)
    return Composed(curve.alpha, curve.power, curve.vertex_beta, error), fine.infinite


def _atom(parts: list[Part]) -> float:
    """Mass at infinity that no grid could avoid."""
    kept = 1.0
    for delta_of, _, k in parts:
        kept *= (1.0 - float(delta_of(np.array([1e308]))[0])) ** k
    return 1.0 - kept


def _composed(
    parts: list[Part],
    reaches: list[float],
    step: float,
) -> Loss:
    result: Loss | None = None
    for (delta_of, _, k), reach in zip(parts, reaches, strict=True):
        loss = power(discretise(delta_of, step, max(1, math.ceil(reach / step - 1e-9))), k)
        result = loss if result is None else convolve(result, loss)
    assert result is not None
    return result
