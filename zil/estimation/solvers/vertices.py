"""Exact local minima of kinked corrected losses, by descent over vertices.

With a piecewise linear loss the corrected objective is piecewise linear (DR) or piecewise linear minus
a smooth convex function (RB): between the kinks of positively weighted rows it is concave, so every local
minimum is a vertex, a point where p such rows have ``t = 0``.  From a vertex B the edges are the columns
of the inverse of its row matrix, and on each edge only one active kink opens; hence ``2p`` one-sided
derivatives decide whether the vertex is a local minimum.  This is the simplex idea of quantile
regression carried over to a difference of convex functions.

Ties (integer data) make vertices degenerate; then a fixed tiny shift of each row separates them, the
basis found is kept, and the point is computed from the unshifted rows.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zil._validate import FloatArray
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.parts import Part
from zil.estimation.solvers.outcome import Outcome, Solution

# An edge is a descent direction if its slope is below -TOLERANCE times the kink of its row.
TOLERANCE = 1e-7


@dataclass
class _Kinks:
    """All kinked rows of an objective at the current point, in the coordinates z."""

    objective: IndexObjective
    parts: Sequence[Part]
    smooth: IndexObjective | None
    matrix: FloatArray
    shift: list[FloatArray] | None = None

    def __post_init__(self) -> None:
        self.up, self.down = self.objective.loss.constants
        self.one = int(self.objective.intercept)
        affine = self.objective.loss.affine
        self.base, self.slope, self.weight = [], [], []
        for part in self.parts:
            rows = part.rows
            n, share = rows.features.shape[1], part.a / self.objective.total
            y = np.zeros(n) if rows.response is None else rows.response
            self.base.append(affine[0] + affine[1] * y)
            self.slope.append(affine[2] + affine[3] * y)
            self.weight.append(np.full(n, share) if rows.weights is None else share * rows.weights)
        # what a row adds to the gradient with respect to its index, above and below its kink
        self.above = [self.up * w * slope for w, slope in zip(self.weight, self.slope, strict=True)]
        self.below = [-self.down * w * slope for w, slope in zip(self.weight, self.slope, strict=True)]
        self.recent: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=8)

    def index(self, features: FloatArray, z: FloatArray) -> FloatArray:
        theta = self.matrix @ z
        eta = features.T @ theta[self.one :]
        return np.asarray(eta + theta[0] if self.one else eta)

    def argument(self, k: int, z: FloatArray) -> FloatArray:
        t = self.base[k] + self.slope[k] * self.index(self.parts[k].rows.features, z)
        return t if self.shift is None else t + self.shift[k]

    def active_argument(self, z: FloatArray, active: NDArray[np.intp]) -> FloatArray:
        """t of some rows of part 0."""
        index = self.index(self.parts[0].rows.features[:, active], z)
        t = self.base[0][active] + self.slope[0][active] * index
        return t if self.shift is None else t + self.shift[0][active]

    def separate(self, spread: float, arguments: list[FloatArray]) -> None:
        """Shift every row by a fixed tiny amount, so that no two kinks meet by accident."""
        stream = np.random.Generator(np.random.Philox(0))
        self.shift = [1e-9 * spread * stream.uniform(-1.0, 1.0, len(t)) for t in arguments]

    def change(self, k: int, direction: FloatArray) -> FloatArray:
        """dt along ``z + direction`` for every row of part k."""
        return self.slope[k] * self.index(self.parts[k].rows.features, direction)

    def rows(self, k: int, index: NDArray[np.intp]) -> FloatArray:
        """dt/dz of chosen rows, shape (m, p)."""
        features = self.parts[k].rows.features[:, index].T
        if self.one:
            features = np.column_stack([np.ones(len(features)), features])
        return np.asarray((self.slope[k][index, None] * features) @ self.matrix)

    def smooth_gradient(self, z: FloatArray) -> FloatArray:
        """Gradient of the curved parts; a line search and the vertex it ends at share evaluations."""
        if self.smooth is None:
            return np.zeros(len(z))
        near = 1e-14 * float(np.abs(z).max())
        for at, known in self.recent:
            if np.abs(z - at).max() <= near:  # the same point up to rounding
                return known
        gradient = np.asarray(self.matrix.T @ self.smooth.value_gradient(self.matrix @ z)[1])
        self.recent.append((z, gradient))
        return gradient

    def gradient(self, arguments: list[FloatArray], z: FloatArray, active: NDArray[np.intp]) -> FloatArray:
        """Gradient without the active rows (of part 0)."""
        out = self.smooth_gradient(z).copy()
        for k, part in enumerate(self.parts):
            t = arguments[k]
            force = np.where(t > 0.0, self.above[k], self.below[k])
            if np.count_nonzero(t) < len(t):
                kinked = np.flatnonzero(t == 0.0)
                force[kinked] = 0.5 * (self.above[k][kinked] + self.below[k][kinked])
            if k == 0:
                force[active] = 0.0
            by_feature = part.rows.features @ force
            theta = np.concatenate([[force.sum()], by_feature]) if self.one else by_feature
            out += self.matrix.T @ theta
        return out


def _breakpoints(
    kinks: _Kinks,
    arguments: list[FloatArray],
    direction: FloatArray,
    active: NDArray[np.intp],
) -> tuple[FloatArray, FloatArray, NDArray[np.intp]]:
    """Distances at which kinks are met, the slope jumps there, and the row (part 0) or -1."""
    jump_unit = kinks.up + kinks.down
    distances, jumps, owners = [], [], []
    for k, t in enumerate(arguments):
        change = kinks.change(k, direction)
        if k == 0:
            change[active] = 0.0
        # a row in the span of the active ones (repeated or gridded data) changes by rounding only: it is never met
        least = 1e-12 * float(np.abs(change).max(initial=0.0))
        ahead = np.flatnonzero((t < 0.0) == (change > 0.0))
        change = change[ahead]
        size, weight = np.abs(change), kinks.weight[k][ahead]
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = -t[ahead] / change
        met = (distance > 0.0) & (size > least) & (weight != 0.0)
        distances.append(distance[met])
        jumps.append((weight * jump_unit * size)[met])
        owners.append(ahead[met] if k == 0 else np.full(np.count_nonzero(met), -1))
    return np.concatenate(distances), np.concatenate(jumps), np.concatenate(owners)


def _line_search(
    kinks: _Kinks,
    z: FloatArray,
    direction: FloatArray,
    slope: float,
    breakpoints: tuple[FloatArray, FloatArray, NDArray[np.intp]],
) -> tuple[float, int] | None:
    """First local minimum along the edge: (distance, row that becomes active); None if the slope stays negative."""
    distance, jump, owner = breakpoints
    size = min(len(distance), 256)
    smooth_here = float(kinks.smooth_gradient(z) @ direction)

    def smooth_change(at: float) -> float:
        if kinks.smooth is None:
            return 0.0
        return float(kinks.smooth_gradient(z + at * direction) @ direction) - smooth_here

    while size:
        order = np.argpartition(distance, size - 1)[:size] if size < len(distance) else np.arange(len(distance))
        order = order[np.argsort(distance[order], kind="stable")]
        after = slope + np.cumsum(jump[order])
        # before the first of these the slope is negative whatever the (concave) smooth part adds
        turns = np.flatnonzero((after >= 0.0) & (owner[order] >= 0))
        low, high, step = -1, 0, 1
        while high < len(turns):  # gallop to a kink behind which the slope is not negative
            at = float(distance[order[turns[high]]])
            if after[turns[high]] + smooth_change(at) >= 0.0:
                break
            low, high, step = high, high + step, 2 * step
        if high < len(turns):
            while high - low > 1:  # then the first such kink after one that fails: a local minimum on the edge
                middle = (low + high) // 2
                at = float(distance[order[turns[middle]]])
                if after[turns[middle]] + smooth_change(at) >= 0.0:
                    high = middle
                else:
                    low = middle
            found = order[turns[high]]
            return float(distance[found]), int(owner[found])
        if size == len(distance):
            return None
        size = min(len(distance), 16 * size)
    return None


def _first_vertex(kinks: _Kinks, z: FloatArray) -> tuple[FloatArray, NDArray[np.intp]] | None:
    """From any point to a vertex without going up: p line searches, each along the steepest direction that keeps
    the rows already active at their kink, so each adds an independent row.

    (Solving for the p rows nearest to their kink instead can jump far: with a margin loss p rows of one class
    meet where all slopes are 0.)
    """
    p = len(z)
    active = np.empty(0, dtype=np.intp)
    for _ in range(p):
        arguments = [kinks.argument(k, z) for k in range(len(kinks.parts))]
        arguments[0][active] = 0.0
        gradient = kinks.gradient(arguments, z, active)
        free = np.eye(p)
        if len(active):
            frame = np.linalg.qr(kinks.rows(0, active).T, mode="complete")[0]
            free = frame[:, len(active) :]
        along = free.T @ gradient
        size = float(np.linalg.norm(along))
        direction = -free @ (along / size) if size > 0.0 else free[:, 0]
        points = _breakpoints(kinks, arguments, direction, active)
        found = _line_search(kinks, z, direction, float(gradient @ direction), points)
        if found is None and size <= 1e-12 * float(
            np.abs(kinks.weight[0]).sum()
        ):  # flat: the kink lies on one of both sides
            direction = -direction
            points = _breakpoints(kinks, arguments, direction, active)
            found = _line_search(kinks, z, direction, 0.0, points)
        if found is None:
            return None  # it falls without end
        z = z + found[0] * direction
        active = np.append(active, found[1])
    return z, active


def vertex_descent(objective: IndexObjective, theta: FloatArray, matrix: FloatArray) -> Solution:
    """Walk from the vertex nearest to ``theta`` down to a local minimum.

    Parameters
    ----------
    objective : IndexObjective
        Of a kinked loss, without ridge.
    theta : (p,) array
    matrix : (p, p) array
        Standardising coordinates, ``theta = matrix @ z``.

    Returns
    -------
    Solution
        Converged if no edge of the final vertex descends.
    """
    positive = [part for part in objective.parts if part.a > 0.0]
    kinked = [*positive, *(part for part in objective.parts if part.a < 0.0)]
    curved = [replace(part, a=0.0) for part in objective.parts if part.e != 0.0]
    smooth = replace(objective, parts=tuple(curved)) if curved else None
    kinks = _Kinks(objective, kinked, smooth, matrix)
    z: FloatArray = np.asarray(np.linalg.solve(matrix, theta), dtype=np.float64)
    arguments = [kinks.argument(k, z) for k in range(len(kinked))]
    # a perfect fit has residuals of rounding size only: the size of the data themselves keeps the shift above that
    size = float(np.median(np.abs(kinks.argument(0, np.zeros(len(z))))))
    spread = max(float(np.median(np.abs(arguments[0]))), 1e-2 * size) or 1.0
    if (np.abs(arguments[0]) <= 1e-12 * spread).any():
        kinks.separate(spread, arguments)
    first = _first_vertex(kinks, z)
    if first is None:
        return Solution(theta, objective.value_gradient(theta)[0], 0, Outcome.ENDLESS)
    z, arguments = _to_vertex(kinks, *first)
    active = first[1]
    if kinks.shift is None and np.count_nonzero(np.abs(arguments[0]) <= 1e-12 * spread) > len(active):
        kinks.separate(spread, arguments)
        z, arguments = _to_vertex(kinks, z, active)
    limit = 2000 + 30 * objective.n_params
    pivots, outcome, message = 0, Outcome.EXHAUSTED, f"no local minimum after {limit} vertices"
    while pivots < limit:
        gradient = kinks.gradient(arguments, z, active)
        edges = np.linalg.inv(kinks.rows(0, active))
        own = kinks.weight[0][active]
        along = gradient @ edges
        slopes = np.concatenate([along + own * kinks.up, -along + own * kinks.down])
        lengths = np.tile(np.linalg.norm(edges, axis=0), 2)
        threshold = -TOLERANCE * np.tile(own, 2) * (kinks.up + kinks.down)
        if (slopes >= threshold).all():
            outcome, message = Outcome.CONVERGED, ""
            break
        best = int(np.argmin(np.where(slopes < threshold, slopes / lengths, math.inf)))
        k = best % len(active)
        direction = np.asarray(edges[:, k] if best < len(active) else -edges[:, k], dtype=np.float64)
        points = _breakpoints(kinks, arguments, direction, active)
        found = _line_search(kinks, z, direction, float(slopes[best]), points)
        if found is None:
            outcome, message = Outcome.ENDLESS, ""
            break
        pivots += 1
        z = z + found[0] * direction
        active[k] = found[1]
        z, arguments = _to_vertex(kinks, z, active)
    if kinks.shift is not None:
        kinks.shift = None
        z, arguments = _to_vertex(kinks, z, active)
    result = matrix @ z
    return Solution(result, objective.value_gradient(result)[0], pivots, outcome, message)


def _to_vertex(kinks: _Kinks, z: FloatArray, active: NDArray[np.intp]) -> tuple[FloatArray, list[FloatArray]]:
    """The point where the active rows have t = 0, and every row's t there (active ones exactly 0)."""
    rows = kinks.rows(0, active)
    for _ in range(2):  # the second solve removes the rounding of the first
        z = z - np.linalg.solve(rows, kinks.active_argument(z, active))
    arguments = [kinks.argument(k, z) for k in range(len(kinks.parts))]
    arguments[0][active] = 0.0
    return z, arguments
