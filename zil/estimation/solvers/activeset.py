"""Exact local minima of piecewise smooth corrected objectives, by an active-set method.

The objective is ``sum of w phi(eta) + smooth rest`` with kinks of ``phi`` at known places of the index.  At a point
where some kinks meet, its slope along ``d`` is ``g'd + sum of J_r |a_r'd| / 2``, with ``a_r = d eta_r``, ``J_r`` the
jump of row r and ``g`` the gradient with the mean of both sides at every kink.  For upward jumps the condition for
a minimum, to first order, is

    -g = sum of m_r (J_r / 2) a_r   with all |m_r| <= 1,

a bounded least squares problem in as many unknowns as rows meet.  Its residual, turned around, is the direction of
steepest descent; rows with ``|m_r| < 1`` stay at their kink along it.  On the subspace that keeps them the objective
is smooth up to further kinks, so the step is Newton's there, and the search along the line is exact: it ends at a
kink or at a smooth minimum between two.  A downward jump (a negatively weighted row) holds no minimum; at a point
that lies on one, the condition must hold on both of its sides.  The value never rises.

vertices.py is the special case without curvature between kinks (quantile regression without a ridge), where every
minimum is a vertex and the search along a line is a cumulative sum; here a probe of the line costs one evaluation, so
it serves what vertices.py cannot: a ridge, a declared box, a loss of the user with kinks.  Ties (integer data) need
nothing special here.  A little over 400 lines: the point, the step and the line are one method, read together.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from zil._validate import FloatArray
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.parts import Part
from zil.estimation.solvers.outcome import Outcome, Solution

# Gradients below this share of the sum of absolute slopes are zero; LOOSE where rounding allows no further descent.
TOLERANCE, LOOSE = 1e-10, 1e-6
# Rows nearer to their kink than this share of the unit are at it.
MEET = 1e-10
# Downward kinks at one point of which both sides are tried.
MAX_DOWNWARD = 6

# Largest share of a step that stays inside the box.
Reach = Callable[[FloatArray, FloatArray], float]
# Kinks of each part: which kink of the row, which row.
Kinks = Sequence[tuple[NDArray[np.intp], NDArray[np.intp]]]


@dataclass(frozen=True)
class _Term:
    """Rows of one part, in the coordinates z; ``design`` = ``d eta / dz``, column by column (p, n).

    Sums over rows go through einsum: a threaded BLAS costs more than it saves on vectors (ten times as much on a busy
    machine), and its sums depend on the number of threads.
    """

    design: FloatArray
    response: FloatArray
    weight: FloatArray
    kinks: FloatArray
    left: FloatArray
    right: FloatArray

    def change(self, direction: FloatArray) -> FloatArray:
        """``d eta`` of every row along a direction."""
        return np.asarray(np.einsum("j,jn->n", direction, self.design))


class Pieces:
    """An objective as kinked rows and a smooth rest, in the coordinates ``theta = matrix @ z``."""

    def __init__(self, objective: IndexObjective, matrix: FloatArray, unit: float) -> None:
        self.objective, self.matrix, self.unit = objective, matrix, unit
        self.loss = objective.loss
        self.terms = [self._term(part) for part in objective.parts if part.a != 0.0]
        curved = tuple(replace(part, a=0.0) for part in objective.parts if part.e != 0.0)
        self.rest = replace(objective, parts=curved, ridge=0.0) if curved else None
        nothing = np.empty(0, dtype=np.intp)
        self.none: Kinks = [(nothing, nothing)] * len(self.terms)

    def _term(self, part: Part) -> _Term:
        rows = part.rows
        features = rows.features
        n = features.shape[1]
        if self.objective.intercept:
            features = np.vstack([np.ones(n), features])
        y = np.zeros(n) if rows.response is None else rows.response
        weight = np.full(n, part.a / self.objective.total)
        if rows.weights is not None:
            weight *= rows.weights
        kinks = self.loss.kink_places(y)
        left, right = self.loss.sides(kinks, y)
        return _Term(self.matrix.T @ features, y, weight, kinks, left, right)

    def evaluate(self, z: FloatArray, held: Kinks) -> tuple[float, FloatArray, float]:
        """Value, gradient (rows held at a kink: mean of both sides) and the sum of absolute slopes."""
        theta = self.matrix @ z
        penalty = self.objective.penalty(theta)
        value, gradient = 0.5 * float(penalty @ theta), self.matrix.T @ penalty
        size = float(np.abs(gradient).sum())
        if self.rest is not None:
            rest, slope = self.rest.value_gradient(theta)
            value, gradient = value + rest, gradient + self.matrix.T @ slope
        for term, (j, i) in zip(self.terms, held, strict=True):
            eta = term.change(z)
            eta[i] = term.kinks[j, i]
            phi, slope = self.loss.branch(eta, term.response)
            slope[i] = 0.5 * (term.left[j, i] + term.right[j, i])
            force = term.weight * slope
            value += float(np.einsum("n,n->", term.weight, phi))
            gradient = gradient + np.einsum("jn,n->j", term.design, force)
            size += float(np.abs(force).sum())
        return value, gradient, size

    def hessian(self, z: FloatArray) -> FloatArray:
        """Second derivative between kinks, shape (p, p)."""
        theta = self.matrix @ z
        out = self.objective.penalty_curvature()
        out = self.matrix.T @ (out if self.rest is None else out + self.rest.hessian(theta)) @ self.matrix
        for term in self.terms:
            bend = self.loss.bend(term.change(z), term.response)
            if bend is not None:
                out = out + np.einsum("in,n,jn->ij", term.design, term.weight * bend, term.design)
        return np.asarray(out)

    def meeting(self, z: FloatArray) -> Kinks:
        """The kinks that z lies on."""
        found = []
        for term in self.terms:
            eta = term.change(z)
            near = np.abs(term.kinks - eta) <= MEET * (self.unit + np.abs(eta))
            found.append(np.nonzero(near & (term.left != term.right) & (term.weight != 0.0)))
        return [(j, i) for j, i in found]

    def rows(self, kinks: Kinks) -> tuple[FloatArray, FloatArray, FloatArray]:
        """``d eta / dz`` (m, p), half the jump (m,) and distance to the kink at z = 0 (m,); equal rows are one."""
        rows = np.concatenate([term.design[:, i].T for term, (_, i) in zip(self.terms, kinks, strict=True)])
        half = np.concatenate(
            [
                0.5 * term.weight[i] * (term.right[j, i] - term.left[j, i])
                for term, (j, i) in zip(self.terms, kinks, strict=True)
            ]
        )
        place = np.concatenate([term.kinks[j, i] for term, (j, i) in zip(self.terms, kinks, strict=True)])
        if len(half) < 2:
            return rows, half, place
        keys = np.column_stack([rows, half > 0.0])
        _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        return rows[first], np.asarray(np.bincount(group.ravel(), half, len(first)), dtype=np.float64), place[first]


def _settle(z: FloatArray, rows: FloatArray, place: FloatArray) -> FloatArray:
    """The nearest point with ``rows @ z = place``; rows that depend on others agree with them up to rounding."""
    for _ in range(2):  # the second solve removes the rounding of the first
        z = z + np.linalg.lstsq(rows, place - rows @ z, rcond=1e-8)[0]
    return z


def _null_space(rows: FloatArray, p: int) -> FloatArray:
    """Orthonormal directions that no row feels, shape (p, k)."""
    if not len(rows):
        return np.eye(p)
    _, values, frame = np.linalg.svd(rows / np.linalg.norm(rows, axis=1)[:, None])
    return np.asarray(frame[int((values > 1e-8 * values[0]).sum()) :].T)


@dataclass(frozen=True)
class _Corner:
    """A point with everything that decides where to go from it."""

    value: float
    gradient: FloatArray
    size: float
    rows: FloatArray
    half: FloatArray
    place: FloatArray
    residual: FloatArray
    inner: NDArray[np.bool_]

    def slope(self, direction: FloatArray) -> float:
        """One-sided derivative along a direction."""
        return float(self.gradient @ direction + self.half @ np.abs(self.rows @ direction))


def _corner(pieces: Pieces, z: FloatArray) -> _Corner:
    """Steepest descent from z: the residual of the condition for a minimum, at its worst side of downward kinks."""
    meeting = pieces.meeting(z)
    value, gradient, size = pieces.evaluate(z, meeting)
    rows, half, place = pieces.rows(meeting)
    down = half < 0.0
    upward, length = rows[~down], half[~down]
    worst, residual, inner = -1.0, gradient, np.zeros(len(half), dtype=bool)
    count = int(down.sum())
    for signs in itertools.product((1.0, -1.0), repeat=min(count, MAX_DOWNWARD)):
        push = gradient.copy()
        if count:
            push += (np.resize(signs, count) * half[down]) @ rows[down]
        share = np.zeros(len(length))
        if len(length):
            scaled = (upward * length[:, None]).T / size
            share = optimize.lsq_linear(scaled, -push / size, (-1.0, 1.0), method="bvls", tol=1e-15).x
            push = push + (upward * length[:, None]).T @ share
        if float(np.abs(push).max()) > worst:
            worst, residual = float(np.abs(push).max()), push
            inner[~down] = np.abs(share) < 1.0 - 1e-9
    return _Corner(value, gradient, size, rows, half, place, residual, inner)


class _Line:
    """The objective along ``z + t * direction``; ``still`` kinks stay met all along."""

    def __init__(self, pieces: Pieces, z: FloatArray, direction: FloatArray) -> None:
        self.pieces, self.z, self.direction = pieces, z, direction
        self.still: list[tuple[NDArray[np.intp], NDArray[np.intp]]] = []
        points = []
        for term, (j, i) in zip(pieces.terms, pieces.meeting(z), strict=True):
            change = term.change(direction)
            # a row in the span of the held ones (repeated data) changes by rounding only: it is never met
            moving = np.abs(change) > 1e-9 * np.abs(change).max(initial=0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                distance = np.where(moving, (term.kinks - term.change(z)) / change, -1.0)
            distance[j, i] = -1.0
            self.still.append((j[~moving[i]], i[~moving[i]]))
            points.append(distance[(distance > 0.0) & (term.weight != 0.0) & (term.left != term.right)])
        self.points: FloatArray = np.sort(np.concatenate(points)) if points else np.empty(0)

    def at(self, t: float) -> tuple[float, float]:
        """Value and slope where no kink is met."""
        value, gradient, _ = self.pieces.evaluate(self.z + t * self.direction, self.still)
        return value, float(gradient @ self.direction)

    def kink(self, t: float) -> tuple[float, float, float]:
        """Value, slope before and slope behind a kink."""
        at = self.z + t * self.direction
        meeting = self.pieces.meeting(at)
        value, gradient, _ = self.pieces.evaluate(at, meeting)
        rows, half, _ = self.pieces.rows(meeting)
        slope, jump = float(gradient @ self.direction), float(half @ np.abs(rows @ self.direction))
        return value, slope - jump, slope + jump

    def search(self, low: float, value: float, slope: float, first: float, room: float) -> float | Outcome:
        """A local minimum beyond ``low``, where value and slope are given, with a smaller value.

        The bracket keeps a point that is lower than the start and descends, and one beyond that ascends or is higher.
        BOX if the line descends to the end of the room, FLAT if nothing lower is found.
        """
        start, low_value, low_slope = value, value, slope
        high, high_slope = min(first, room), math.nan
        while True:
            value, slope = self.at(high)
            if not (value < low_value and slope < 0.0):
                high_slope = slope
                break
            low, low_value, low_slope = high, value, slope
            if high >= room:
                return Outcome.BOX
            high = min(4.0 * high, room)
        while True:
            above, below = np.searchsorted(self.points, low, "right"), np.searchsorted(self.points, high, "left")
            inside = self.points[above:below]
            if not len(inside):
                break
            middle = len(inside) // 2
            t = float(inside[middle])
            between = 0.5 * (t + float(inside[middle - 1])) if middle else t
            if middle and float(inside[middle - 1]) < between < t:
                t = between
                value, before = self.at(t)
                behind = before
            else:
                value, before, behind = self.kink(t)
            if value < low_value and behind < 0.0:
                low, low_value, low_slope = t, value, behind
            elif value < low_value and before < 0.0:
                return t
            else:
                high, high_slope = t, before
        best, best_value = low, low_value
        flat = 1e-14 * self.pieces.evaluate(self.z, self.still)[2] * float(np.linalg.norm(self.direction))
        for _ in range(80):  # no kink is left in between: where the slope is zero
            if high - low <= 4e-16 * high or abs(low_slope) <= flat:
                break
            t = 0.5 * (low + high)
            if high_slope > 0.0 and math.isfinite(high_slope):  # secant, kept off the ends
                t = low - low_slope * (high - low) / (high_slope - low_slope)
                t = min(max(t, low + 0.01 * (high - low)), high - 0.01 * (high - low))
            value, slope = self.at(t)
            if value <= best_value:
                best, best_value = t, value
            if value < low_value and slope < 0.0:
                low, low_value, low_slope = t, value, slope
            else:
                high, high_slope = t, slope
            if abs(slope) <= flat:
                break
        return best if best_value < start else Outcome.FLAT


def descend(objective: IndexObjective, theta: FloatArray, matrix: FloatArray, unit: float, reach: Reach) -> Solution:
    """From ``theta`` down to a local minimum.

    Parameters
    ----------
    objective : IndexObjective
        Of a loss that knows its kinks (``Loss.kink_places``).
    theta : (p,) array
        Inside the box.
    matrix, unit
        Standardising coordinates, ``theta = matrix @ z``, and the natural size of an index.
    reach : callable of (z, step)
        Largest share of a step that stays inside the box.

    Returns
    -------
    Solution
        Converged if no direction descends to first order and the curvature on the subspace of the kinks held is
        positive.
    """
    pieces = Pieces(objective, matrix, unit)
    z: FloatArray = np.asarray(np.linalg.solve(matrix, theta), dtype=np.float64)
    limit = 2000 + 30 * len(z)
    outcome, message, steps = Outcome.EXHAUSTED, f"no local minimum after {limit} steps", 0
    while steps < limit:
        found = _step(pieces, z, unit, reach)
        if isinstance(found, Outcome):
            outcome, message = found, ""
            break
        z = found
        steps += 1
    result = matrix @ z
    return Solution(result, objective.value_gradient(result)[0], steps, outcome, message)


def _step(pieces: Pieces, z: FloatArray, unit: float, reach: Reach) -> FloatArray | Outcome:
    """The next point, or how the search ends."""
    corner = _corner(pieces, z)
    if not math.isfinite(corner.value):
        return Outcome.UNDEFINED
    free = _null_space(corner.rows[corner.inner], len(z))
    tight = _null_space(corner.rows, len(z))
    left = float(np.abs(corner.residual).max())
    floor = 1e-9 * corner.size / unit
    hessian = pieces.hessian(z)
    if left > TOLERANCE * corner.size:
        directions = [_newton(free, hessian, corner.residual, floor), -corner.residual]
        # kinks are left once nothing is to be gained along them: two that end a level stretch would be met in turns
        if tight.shape[1] and np.abs(tight.T @ corner.gradient).max() > 0.1 * left:
            directions.insert(0, _newton(tight, hessian, corner.gradient, floor))
        end = Outcome.FLAT
        for direction in directions:
            slope = corner.slope(direction)
            if slope < 0.0:
                found = _search(_Line(pieces, z, direction), corner.value, slope, unit, reach)
                if not isinstance(found, Outcome):
                    return found
                end = found
                if end is Outcome.BOX:
                    break
        if end is Outcome.BOX or left > LOOSE * corner.size:
            return end
        better = _last_step(pieces, z, corner, _newton(tight, hessian, corner.gradient, floor), unit)
        if better is not None:
            return better
    # level or downward inside: to a kink on one of both sides, or there is no minimum.  A level stretch between two
    # kinks has a minimum at both.
    for space, level in ((tight, True), (free, False)):
        if not space.shape[1]:
            continue
        values, vectors = np.linalg.eigh(space.T @ hessian @ space)
        if values[0] <= (floor if level else -floor):
            for sign in (1.0, -1.0):
                moved = _along_level(pieces, z, sign * (space @ vectors[:, 0]), corner, unit, reach, level)
                if moved is not None:
                    return moved
            if level:
                return Outcome.FLAT
    return Outcome.CONVERGED


def _newton(space: FloatArray, hessian: FloatArray, gradient: FloatArray, floor: float) -> FloatArray:
    """Newton direction on a subspace, downhill whatever the signs of the curvature."""
    values, vectors = np.linalg.eigh(space.T @ hessian @ space)
    share = vectors.T @ (space.T @ gradient)
    return np.asarray(-space @ (vectors @ (share / np.maximum(np.abs(values), floor))))


def _last_step(pieces: Pieces, z: FloatArray, corner: _Corner, step: FloatArray, unit: float) -> FloatArray | None:
    """A step whose gain drowns in the rounding of the value, if it halves the gradient between the same kinks."""
    trial = z + step
    other = _corner(pieces, trial)
    same = len(other.half) == len(corner.half) and other.value <= corner.value + 1e-14 * corner.size * unit
    return trial if same and np.abs(other.residual).max() <= 0.5 * np.abs(corner.residual).max() else None


def _search(line: _Line, value: float, slope: float, unit: float, reach: Reach) -> FloatArray | Outcome:
    """The next point along a line, exactly on the kinks that it keeps or meets."""
    size = float(np.linalg.norm(line.direction))
    room = reach(line.z, 1e9 * unit / size * line.direction) * 1e9 * unit / size
    if room <= 0.0:
        return Outcome.BOX
    found = line.search(0.0, value, slope, min(1.0, unit / size), room)
    if isinstance(found, Outcome):
        return found
    return _landed(line.pieces, line.z + found * line.direction)


def _landed(pieces: Pieces, z: FloatArray) -> FloatArray:
    rows, _, place = pieces.rows(pieces.meeting(z))
    return _settle(z, rows, place) if len(rows) else z


def _along_level(
    pieces: Pieces, z: FloatArray, direction: FloatArray, corner: _Corner, unit: float, reach: Reach, level: bool
) -> FloatArray | None:
    """Along a direction of slope 0: down if it bends down, else (if ``level``) to the first upward kink at the end of
    a level stretch."""
    if corner.slope(direction) > TOLERANCE * corner.size:
        return None
    line = _Line(pieces, z, direction)
    room = reach(z, 1e9 * unit * direction) * 1e9 * unit
    small = min(1e-4 * unit, 0.5 * room)
    value, slope = line.at(small)
    if value < corner.value - 1e-13 * corner.size * unit and slope < 0.0:
        found = line.search(small, value, slope, 4.0 * small, room)
        return None if isinstance(found, Outcome) else _landed(pieces, z + found * direction)
    for t in line.points[:64].tolist() if level else ():
        value, before, behind = line.kink(t)
        if t >= room or value > corner.value + 1e-13 * corner.size * unit:
            return None
        if behind > before:
            return _landed(pieces, z + t * direction)
    return None
