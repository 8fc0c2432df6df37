"""Minimisation of corrected objectives.

The terms of a correction have negative weights, so an objective may be indefinite, have several
local minima, or fall to -infinity far out.  Hence: work in standardised coordinates (results do
not depend on the units of a column), start from the naive fit, go down only, keep to a box, and call
a point a minimum only if its Hessian is positive definite inside the box.

* Smooth losses: trust-region Newton with the exact Hessian (newton.py).
* Kinked losses (quantile, absolute, hinge): the same Newton on a Laplace-smoothed objective while
  the smoothing shrinks, then descent to an exact local minimum: over vertices (vertices.py), or by active sets
  (activeset.py) where minima need not be vertices (a ridge, a user's loss) or the search must stay in a box.
* With one parameter every kink is looked at (sweep.py); with more, lines through the minimum found are.
* A user's loss with kinks at unknown places: Newton on a coarse scale, then direct search (directsearch.py).

The result is never higher than the start, both measured by the objective itself: the smoothing of a kinked loss may
leave a start in a good local minimum for a worse one, then the descent begins at the start instead.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from zil._validate import FloatArray
from zil.estimation.losses.compiled import Squared
from zil.estimation.objective import rough
from zil.estimation.objective.coordinates import Coordinates, coordinates
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.rowwise import RowObjective
from zil.estimation.solvers import activeset, directsearch, sweep, vertices
from zil.estimation.solvers.collapse import collapse
from zil.estimation.solvers.infinity import coercive, thinned, unbounded
from zil.estimation.solvers.newton import STEP_TOLERANCE, Region, newton
from zil.estimation.solvers.outcome import Outcome, Solution

# Default box in standardised units (a slope per standard deviation of its column, over the natural unit).
BOX_RADIUS = 50.0
# How much farther out the minimum of a convex objective that grows in every direction may be.
FAR = 1e8
# Rows of which a first guess is taken.
SOME = 10_000
# A convex kinked objective is first minimised on every THIN-th row (more often where that leaves fewer than FEW), then
# with this share of the rows near their kink.
THIN, FEW, PREPROCESSED = 10, 20_000, 0.05
# Values closer than this share of their size are the same: sums of many terms are not more exact.
SAME = 1e-13
# Times that lines through a local minimum of a kinked objective may lead to a lower one.
SWEEPS = 6


def minimise(
    objective: IndexObjective,
    *,
    start: FloatArray | None = None,
    box: tuple[FloatArray, FloatArray] | None = None,
    naive: IndexObjective | None = None,
    exact: bool = True,
    smooth: bool = False,
) -> Solution:
    """Local minimum of a corrected objective.

    Parameters
    ----------
    objective : IndexObjective
    start : (p,) array, optional
        Default: the minimum of ``naive``, else 0.  Moved into a declared box; the result is not higher than it.
    box : (low, high), optional
        Bounds on theta, in the user's units.
    naive : IndexObjective, optional
        The uncorrected objective on the released rows.
    exact : bool
        False leaves a kinked objective at the end of the smoothing, well within sampling error (a pilot).
    smooth : bool
        The objective is smoothed already: Newton only.

    Returns
    -------
    Solution
        ``converged`` only for a point with positive curvature strictly inside the box, of an objective that is
        not found to be unbounded below.
    """
    coords = coordinates(objective)
    given = start is not None
    if start is None:
        z = np.zeros(objective.n_params)
        if objective.intercept and coords.unit != 1.0 and objective.parts[0].rows.response is not None:
            response = objective.parts[0].rows.response
            some = response[:: max(1, len(response) // SOME)]  # a start need not be exact
            z[0] = float(np.median(objective.loss.target(some)))
        if naive is not None:
            z = coords.z(minimise(naive, box=box).theta)
        elif (projection := _projection(objective)) is not None:
            z = coords.z(projection)
    else:
        z = coords.z(np.asarray(start, dtype=np.float64))
    radius = BOX_RADIUS * coords.unit + _offset(objective)
    if coercive(objective):  # columns that are nearly dependent put the minimum far out
        radius *= FAR
    if objective.loss.free:  # nothing is known of the size of a parameter
        radius = 1e3 * (1.0 + (float(np.abs(z).max(initial=0.0)) if given else 0.0))
    if box is not None:
        limits = Region(box[0], box[1], math.inf)
        z = coords.z(np.clip(coords.theta(z), box[0], box[1]))
    else:
        if given:  # wherever it is, the search goes on from there
            radius = max(radius, 2.0 * float(np.abs(z).max(initial=0.0)))
        elif np.abs(z).max(initial=0.0) >= radius:  # a naive fit that itself ran away
            z = np.zeros(objective.n_params)
        limits = Region(None, None, radius)
    if not given and not objective.defined(coords.theta(z)):
        z = np.zeros(objective.n_params)
    if objective.loss.kinked and not smooth:
        solution = _one_parameter(objective, coords, limits) or _kinked(objective, coords, z, limits, exact)
    elif isinstance(objective, rough.RoughObjective):
        solution = _rough(objective, coords, z, limits)
    else:
        solution = newton(objective, coords, z, limits, STEP_TOLERANCE)
    if solution.converged and unbounded(objective, coords, solution.theta):
        return replace(
            solution,
            outcome=Outcome.ENDLESS,
            message="the objective is unbounded below (the noise is too large for this sample); a local minimum only",
        )
    return solution


def _projection(objective: IndexObjective) -> FloatArray | None:
    """Ordinary least squares from the moments, where that is the objective: Newton then only has to confirm it."""
    part = objective.parts[0]
    moments = part.rows.moments(objective.n_threads)
    plain = len(objective.parts) == 1 and part.a > 0.0 and part.c == part.e == 0.0 and objective.ridge == 0.0
    if not (isinstance(objective.loss, Squared) and plain and objective.intercept and moments.sound):
        return None
    d = len(part.rows.features)
    slopes = np.linalg.solve(moments.covariance[:d, :d], moments.covariance[:d, d]) if d else np.zeros(0)
    return np.concatenate([[moments.mean[d] - moments.mean[:d] @ slopes], slopes])


def _offset(objective: IndexObjective) -> float:
    response = objective.parts[0].rows.response
    if objective.loss.classifier or response is None or not len(response):
        return 0.0
    target = objective.loss.target(response)
    return float(max(target.max(), -target.min()))


def _one_parameter(objective: IndexObjective, coords: Coordinates, box: Region) -> Solution | None:
    """The lowest kink of all, where there is one parameter and the sweep can tell (no declared box, a known loss)."""
    if objective.n_params != 1 or box.low is not None or isinstance(objective, RowObjective):
        return None
    found = sweep.one_parameter(objective)
    if found is None or not box.inside(coords, coords.z(found[0])):
        return None
    return Solution(found[0], found[1], 1, Outcome.CONVERGED)


def _preprocessed(objective: IndexObjective, coords: Coordinates, z: FloatArray, box: Region) -> Solution | None:
    """The minimum of a convex kinked objective of many rows: from some of the rows to those near their kink.

    None where that does not lead to a point which is known to be the minimum for all rows.
    """
    step = min(THIN, objective.n_rows // FEW)
    if step < 2 or not objective.aligned or isinstance(objective, RowObjective):
        return None
    first = _kinked(thinned(objective, step), coords, z, box, False)
    few = None if first.outcome is Outcome.BOX else collapse(objective, first.theta, PREPROCESSED)
    if few is None:
        return None
    found = _kinked(few[0], coords, coords.z(first.theta), box, True, 0.02)
    if not found.converged or not few[1](found.theta):
        return None
    return replace(found, value=objective.value_gradient(found.theta)[0], n_iter=first.n_iter + found.n_iter)


def _kinked(
    objective: IndexObjective, coords: Coordinates, z: FloatArray, box: Region, exact: bool, wide: float = 0.5
) -> Solution:
    """Smoothing continuation from ``wide`` on, then exact minima; never higher than the start."""
    n = objective.n_rows
    convex = all(part.a >= 0.0 and part.e >= 0.0 for part in objective.parts)
    if exact and convex and (known := _preprocessed(objective, coords, z, box)) is not None:
        return known  # a local minimum of a convex function is its minimum, wherever the search began
    start = coords.theta(z)
    # the exact descent takes over when about 4 p rows are left within the smoothing
    last = coords.unit * max(1e-6, min(0.05, 4.0 * objective.n_params / n)) * (1.0 if exact else 0.1)
    width, n_iter = wide * coords.unit, 0
    stages: list[FloatArray] = []
    while True:
        solution = newton(objective.smoothed(width), coords, z, box, 1e-3 * width / coords.unit)
        n_iter += solution.n_iter
        blocked = solution.outcome is Outcome.BOX
        if blocked and box.low is None:  # far out: it ran away
            break
        if not blocked:  # a declared box may be smaller than the smoothing
            stages.append(solution.theta)
            z = coords.z(solution.theta)
        if width <= last:
            break
        width = max(last, 0.25 * width)
    solution = replace(solution, value=objective.value_gradient(solution.theta)[0], n_iter=n_iter)
    if not exact:
        return solution
    found: list[Solution] = []
    convex = all(part.a >= 0.0 and part.e >= 0.0 for part in objective.parts)
    if blocked and box.low is None:
        found.append(solution)
    else:
        # a difference of convex functions has many local minima: keep the lowest of a few
        few = 1 if convex or isinstance(objective, RowObjective) else 3
        for point in stages[: -few - 1 : -1] or [start]:
            found.append(_descend(objective, coords, point, box))
            if found[-1].outcome is Outcome.ENDLESS:
                break
    best = found[-1] if found[-1].outcome is Outcome.ENDLESS else _lowest(found)
    if best.converged and objective.n_params > 1 and box.low is None and not isinstance(objective, RowObjective):
        for _ in range(0 if convex else SWEEPS):
            lower = sweep.lower(objective, best.theta, best.value, coords.matrix, 1e-9 * coords.unit)
            if lower is None or not box.inside(coords, coords.z(lower[0])):
                break
            found.append(_descend(objective, coords, lower[0], box))
            if not found[-1].converged or found[-1].value >= best.value:
                break
            best = found[-1]
    value = objective.value_gradient(start)[0]
    for descent in (_descend, _active):
        if best.value <= value + SAME * (abs(value) + coords.unit):
            break
        best = descent(objective, coords, start, box)
        found.append(best)
    if best.value > value:  # kinks that meet are told apart to 1e-9 of the unit
        settled = best.value - value <= 1e-8 * coords.unit
        best = replace(best, theta=start, value=value)
        if best.converged and not settled:
            best = replace(best, outcome=Outcome.FLAT, message="")
    return replace(best, n_iter=n_iter + sum(one.n_iter for one in found))


def _lowest(found: list[Solution]) -> Solution:
    """The lowest minimum, or the lowest point if none is a minimum."""
    minima = [one for one in found if one.converged]
    return min(minima or found, key=lambda one: one.value)


def _descend(objective: IndexObjective, coords: Coordinates, theta: FloatArray, box: Region) -> Solution:
    """The local minimum below a point inside the box."""
    if objective.ridge == 0.0 and not isinstance(objective, RowObjective):
        few = collapse(objective, theta)
        if few is not None:
            found = vertices.vertex_descent(few[0], theta, coords.matrix)
            if found.converged and few[1](found.theta) and box.inside(coords, coords.z(found.theta)):
                return replace(found, value=objective.value_gradient(found.theta)[0])
        found = vertices.vertex_descent(objective, theta, coords.matrix)
        if box.inside(coords, coords.z(found.theta)):
            return found
    return _active(objective, coords, theta, box)


def _active(objective: IndexObjective, coords: Coordinates, theta: FloatArray, box: Region) -> Solution:
    def reach(z: FloatArray, step: FloatArray) -> float:
        return box.reach(coords, z, step)

    return activeset.descend(objective, theta, coords.matrix, coords.unit, reach)


def _rough(objective: rough.RoughObjective, coords: Coordinates, z: FloatArray, box: Region) -> Solution:
    """Newton on averages over shrinking offsets, then direct search; never higher than the start."""

    def value(theta: FloatArray) -> float:
        return objective.value(theta) if box.inside(coords, coords.z(theta)) else math.inf

    start = coords.theta(z)
    if not math.isfinite(value(start)):
        return newton(objective, coords, z, box, STEP_TOLERANCE)  # says why
    steps, n_iter = rough.start_steps(start), 0
    for level in (1.0, 1.0, 0.25):
        found = newton(rough.Averaged.of(objective, level * steps), coords, z, box, 1e-3)
        n_iter += found.n_iter
        if found.outcome is Outcome.BOX:
            break
        z = coords.z(found.theta)
        if level == 1.0:
            hessian, steps = rough.curvature(objective, found.theta)
            if not np.linalg.eigvalsh(hessian)[0] > 0.0:
                found = replace(found, outcome=Outcome.INDEFINITE, message="")
                break
    else:
        theta, low, count, settled = directsearch.descend(value, found.theta, steps)
        if low > value(start):
            theta, low, count, settled = directsearch.descend(value, start, steps)
        if settled:
            return Solution(theta, low, n_iter + count, Outcome.CONVERGED)
        message = "no local minimum found by direct search"
        return Solution(theta, low, n_iter + count, Outcome.EXHAUSTED, message)
    low = objective.value(found.theta)
    theta = found.theta if low <= value(start) else start
    return Solution(theta, min(low, value(start)), n_iter, found.outcome, found.message)
