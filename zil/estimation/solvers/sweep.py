"""Kinked corrected losses along a line: every kink is looked at.

Along ``theta + lambda d`` a piecewise linear loss is a sum of kinks, so its values at all of them come from one sort
and two running sums; a corrected objective adds a smooth part, the loss averaged over the noise.  Between the kinks of
positively weighted rows the whole is concave, so its minimum over the line is one of these kinks.  With one parameter
the line is everything and the minimum is the lowest there is; with more, lines through a local minimum find lower
ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zil._validate import FloatArray
from zil.estimation.objective.index import IndexObjective

# Rows up to which a smooth part that changes along the line is computed at every kink (n^2 exponentials: a second).
ALL_KINKS = 2000
# Places where it is computed otherwise; between them it is interpolated, and the lowest kinks are computed exactly.
GRID, FINALISTS = 33, 12


@dataclass(frozen=True)
class Line:
    """Kinks of positively weighted rows along a line, and the objective there (approximately where ``exact`` is
    false), both sorted by place; ``falls``: it falls to -infinity along the line by its piecewise linear part."""

    places: FloatArray
    values: FloatArray
    exact: bool
    falls: bool


def _effects(objective: IndexObjective, part: Any, theta: FloatArray, direction: FloatArray) -> tuple[Any, Any, Any]:
    """``t`` at theta, its slope along the direction, and the weight of each row of a part."""
    rows = part.rows
    k = objective.loss.affine
    t = objective.argument(part, theta)[0]
    slope = (k[2] + k[3] * rows.y) * objective.index(part, direction)
    weight = np.ones(len(t)) if rows.weights is None else rows.weights
    return t, slope, weight / objective.total


def _decayed(places: FloatArray, weights: FloatArray, at: FloatArray, length: float) -> FloatArray:
    """``sum_j weights_j exp(-(at_i - places_j)/length)`` over the places at or below each ``at``; both sorted."""
    out = np.zeros(len(at))
    upto = np.searchsorted(places, at, side="right")
    first, carried, origin = 0, 0.0, float(places[0]) if len(places) else 0.0
    while first < len(places):
        # within a block exponents stay below 500, so that nothing overflows
        carried *= math.exp(max(-(float(places[first]) - origin) / length, -745.0))
        origin = float(places[first])
        last = int(np.searchsorted(places, origin + 500.0 * length, side="right"))
        rising = carried + np.cumsum(weights[first:last] * np.exp((places[first:last] - origin) / length))
        mine = np.flatnonzero((upto > first) & (upto <= last))
        out[mine] = rising[upto[mine] - first - 1] * np.exp(np.maximum(-(at[mine] - origin) / length, -745.0))
        carried, first = float(rising[-1]), last
    return out


def line(objective: IndexObjective, theta: FloatArray, direction: FloatArray) -> Line | None:
    """The objective (ridge apart) at the kinks along ``theta + lambda direction``; None if there are none."""
    up, down = objective.loss.constants
    jump_size = up + down
    places, jumps, good = [], [], []
    before, level, smooth = 0.0, 0.0, []
    for part in objective.parts:
        t, slope, weight = _effects(objective, part, theta, direction)
        share = part.a + part.e  # u(t, q) is the loss itself plus what the noise rounds off
        if share != 0.0:
            moving = slope != 0.0
            before += share * float(np.sum(weight[moving] * np.where(slope > 0.0, -down, up)[moving] * slope[moving]))
            level += share * float(np.sum(weight * np.where(t > 0.0, up * t, -down * t)))
            places.append(-t[moving] / slope[moving])
            jumps.append(share * jump_size * weight[moving] * np.abs(slope[moving]))
            good.append(part.a * weight[moving] > 0.0)
        if part.e != 0.0:
            smooth.append((part, t, slope, weight))
    if not places:
        return None
    place, jump, wanted = (np.concatenate(each) for each in (places, jumps, good))
    order = np.argsort(place, kind="stable")
    place, jump, wanted = place[order], jump[order], wanted[order] & np.isfinite(place[order])
    if not wanted.any():
        return None
    slopes = before + np.cumsum(jump)
    with np.errstate(invalid="ignore"):
        values = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(place))])
    # the level is known at lambda = 0
    after = int(np.searchsorted(place, 0.0, side="right"))
    at_zero = values[after - 1] + slopes[after - 1] * (0.0 - place[after - 1]) if after else before * (0.0 - place[0])
    values = values - at_zero + level
    scale = float(np.abs(jump).sum())
    falls = before > 1e-12 * scale or slopes[-1] < -1e-12 * scale
    at, values = place[wanted], values[wanted]
    exact = True
    for part, t, slope, weight in smooth:
        added, sure = _rounded(objective, part, (t, slope, weight), (theta, direction), at)
        values = values + 0.5 * jump_size * part.e * added
        exact = exact and sure
    return Line(at, values, exact, falls)


def _rounded(
    objective: IndexObjective, part: Any, rows: tuple[Any, Any, Any], ray: tuple[FloatArray, FloatArray], at: FloatArray
) -> tuple[FloatArray, bool]:
    """``sum_i weight_i s exp(-|t_i|/s)`` at sorted places of the line, and whether it is exact."""
    t, slope, weight = rows
    theta, direction = ray

    def scale(place: float) -> float:
        return math.sqrt(part.q0 + part.kappa * objective.index_noise(theta + place * direction))

    size = np.abs(slope)
    if part.kappa == 0.0 or not (objective.noise @ (direction * direction) > 0.0):
        s = scale(0.0)
        if s == 0.0:
            return np.zeros(len(at)), True
        if len(size) and size.min() > 0.0 and size.max() <= size.min() * (1.0 + 1e-12):  # a location
            place = -t / slope
            order = np.argsort(place, kind="stable")
            place, own = place[order], weight[order]
            reach = s / float(size[0])
            below = _decayed(place, own, at, reach)
            above = _decayed(-place[::-1], own[::-1], -at[::-1], reach)[::-1]
            # a row that lies on the place is in both
            lower, upper = (np.searchsorted(place, at, side=side) for side in ("left", "right"))
            running = np.concatenate([[0.0], np.cumsum(own)])
            return s * (below + above - (running[upper] - running[lower])), True

    def direct(points: FloatArray) -> FloatArray:
        out = np.empty(len(points))
        for k, point in enumerate(points):
            s = scale(float(point))
            out[k] = 0.0 if s == 0.0 else s * float(weight @ np.exp(-np.abs(t + slope * point) / s))
        return out

    if len(at) <= ALL_KINKS and len(t) <= ALL_KINKS:
        return direct(at), True
    # as many places among the kinks near the middle as far out
    grid = np.unique(np.concatenate([np.quantile(at, np.linspace(0.0, 1.0, GRID)), np.linspace(at[0], at[-1], 5)]))
    return np.interp(at, grid, direct(grid)), False


def lowest(objective: IndexObjective, theta: FloatArray, direction: FloatArray) -> tuple[FloatArray, float] | None:
    """The lowest kink along a line and the objective there; None if there is none or it falls without end."""
    found = line(objective, theta, direction)
    if found is None or found.falls:
        return None
    count = 3 if found.exact else FINALISTS
    # the sums are right to rounding, the objective itself decides
    order = np.argsort(found.values, kind="stable")[:count]
    best: tuple[FloatArray, float] | None = None
    for place in found.places[np.sort(order)]:
        point = theta + place * direction
        value = objective.value_gradient(point)[0]
        if best is None or value < best[1]:
            best = (point, value)
    return best


def one_parameter(objective: IndexObjective) -> tuple[FloatArray, float] | None:
    """The global minimum of a kinked objective of one parameter; None where the sweep cannot tell.

    It cannot where the coefficient is penalised or the objective falls without end.
    """
    if objective.n_params != 1 or (objective.ridge > 0.0 and not objective.intercept):
        return None
    found = lowest(objective, np.zeros(1), np.ones(1))
    if found is None:
        return None
    # a second look from there: far from 0 the running sums have lost digits
    again = lowest(objective, found[0], np.ones(1))
    return found if again is None or again[1] >= found[1] else again


def lower(
    objective: IndexObjective, theta: FloatArray, value: float, matrix: FloatArray, margin: float
) -> tuple[FloatArray, float] | None:
    """A point lower than ``value`` by ``margin`` on a line through ``theta`` along a column of ``matrix``; None if the
    sweep finds none."""
    plain = replace(objective, ridge=0.0)
    best: tuple[FloatArray, float] | None = None
    for column in matrix.T:
        found = lowest(plain, theta, column)
        if found is not None and found[1] < (value if best is None else best[1]) - margin:
            best = found
    return best
