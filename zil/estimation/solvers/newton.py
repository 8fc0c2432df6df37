"""Trust-region Newton for corrected objectives, which may be indefinite.

p is small, so the step comes from one eigendecomposition and handles indefinite Hessians exactly.

Design: scipy's trust-exact solves the same subproblem, but its stopping rule is an absolute
gradient norm and it knows no box; L-BFGS-B stops on relative changes that depend on units
(it returns a wrong point as a success for a column in millions).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zil._validate import FloatArray
from zil.estimation.losses.smoothing import NotSmoothError
from zil.estimation.objective.coordinates import Coordinates
from zil.estimation.objective.index import IndexObjective
from zil.estimation.solvers.outcome import Outcome, Solution

MAX_ITERATIONS = 200
# A Newton step below this many natural units is taken and ends the iteration (the error squares).
STEP_TOLERANCE = 1e-7
# Where even that step is rounding, the point is left as it is.
SETTLED = 1e-13
# Values and slopes whose squares would overflow are infinite.
HUGE = 1e140


def trust_region_step(gradient: FloatArray, hessian: FloatArray, radius: float) -> tuple[FloatArray, float, bool]:
    """Minimiser of the quadratic model inside the ball; also the model's change and "interior Newton step".

    Exact for indefinite Hessians, the hard case included.
    """
    values, vectors = np.linalg.eigh(hessian)
    g = vectors.T @ gradient
    # a Hessian of zeros (a piecewise linear loss) still needs a finite step
    floor = 1e-12 * max(abs(values[0]), abs(values[-1]), float(np.linalg.norm(g)) / radius, 1e-280)
    if values[0] > floor:
        step = -g / values
        if np.linalg.norm(step) <= radius:
            return vectors @ step, float(g @ step + 0.5 * values @ step**2), True
    low = max(0.0, -values[0]) + floor
    high = low + np.linalg.norm(g) / radius + abs(values[-1]) + floor
    step = -g / (values + low)
    if np.linalg.norm(step) < radius:  # hard case: walk along the lowest direction to the sphere
        short = float(step @ step)
        extra = math.sqrt(max(radius**2 - short, 0.0))
        step[0] += extra if g[0] <= 0 else -extra
    else:
        mu = low
        for _ in range(100):  # |step(mu)| = radius: Newton on 1/|step|, nearly linear in mu, bisection where it leaves
            step = -g / (values + mu)
            length = float(np.linalg.norm(step))
            if abs(length - radius) <= 1e-10 * radius or high - low <= 1e-10 * high:
                break
            if length > radius:
                low = mu
            else:
                high = mu
            along = step / length
            mu += (length / radius - 1.0) / float(along @ (along / (values + mu)))
            if not low < mu < high:
                mu = 0.5 * (low + high)
    return vectors @ step, float(g @ step + 0.5 * values @ step**2), False


@dataclass(frozen=True)
class Region:
    """Where the search may go: ``low <= theta <= high`` if declared, and a ball-like default in z."""

    low: FloatArray | None
    high: FloatArray | None
    radius: float

    def reach(self, coords: Coordinates, z: FloatArray, step: FloatArray) -> float:
        """Largest fraction of the step that stays inside."""
        if self.low is None or self.high is None:
            return _reach(z, step, -self.radius, self.radius)
        return _reach(coords.theta(z), coords.theta(step), self.low, self.high)

    def inside(self, coords: Coordinates, z: FloatArray) -> bool:
        """Whether the point is inside and not on an edge."""
        if self.low is None or self.high is None:
            return bool((np.abs(z) < self.radius).all())
        theta = coords.theta(z)
        return bool(((theta > self.low) & (theta < self.high)).all())


def _reach(point: FloatArray, step: FloatArray, low: FloatArray | float, high: FloatArray | float) -> float:
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step > 0, (high - point) / step, np.where(step < 0, (low - point) / step, np.inf))
    return float(min(1.0, max(0.0, room.min())))


def _finite(objective: IndexObjective, theta: FloatArray, trial: bool = True) -> tuple[float, FloatArray]:
    """Value and gradient; an infinite value where they cannot be computed.

    A loss of the user may lose its digits far out and look as if it had kinks there: at a trial point that is a
    point not to go to, at the start (``trial`` False) it is an error.
    """
    try:
        value, gradient = objective.probe(theta)
    except NotSmoothError:
        if not trial:
            raise
        return math.inf, np.full(len(theta), np.nan)
    huge = not max(abs(value), float(np.abs(gradient).max(initial=0.0))) < HUGE  # nan too
    return (math.inf if huge else value), gradient


def newton(objective: IndexObjective, coords: Coordinates, z: FloatArray, box: Region, tolerance: float) -> Solution:
    """Trust-region Newton from ``z``; the value never rises."""
    to_theta = coords.matrix
    radius = 2.0 * coords.unit
    value, gradient = _finite(objective, to_theta @ z, trial=False)
    if not math.isfinite(value):
        reason = objective.undefined(to_theta @ z) or "the objective is not finite at the start"
        return Solution(to_theta @ z, objective.value_gradient(to_theta @ z)[0], 0, Outcome.UNDEFINED, reason)
    blocked = 0
    for iteration in range(1, MAX_ITERATIONS + 1):
        hessian = to_theta.T @ objective.hessian(to_theta @ z) @ to_theta
        g = to_theta.T @ gradient
        if not (np.isfinite(hessian).all() and np.isfinite(g).all()):
            return Solution(to_theta @ z, value, iteration, Outcome.UNDEFINED)
        scale = max(coords.unit, float(np.abs(z).max(initial=0.0)))
        while True:
            step, change, interior = trust_region_step(g, hessian, radius)
            size = float(np.abs(step).max(initial=0.0))
            share = box.reach(coords, z, step)
            if interior and share == 1.0 and size <= SETTLED * scale:
                return Solution(to_theta @ z, value, iteration, Outcome.CONVERGED)
            trial = z + share * step
            new_value, new_gradient = _finite(objective, to_theta @ trial)
            if interior and share == 1.0 and size <= tolerance * scale:
                if new_value <= value + 1e-12 * max(abs(value), abs(change)):
                    z, value = trial, min(value, new_value)
                return Solution(to_theta @ z, value, iteration, Outcome.CONVERGED)
            predicted = share * float(g @ step) + 0.5 * share**2 * float(step @ hessian @ step)
            if interior and share == 1.0 and abs(predicted) <= 1e-11 * abs(value) and size <= 1e-3 * scale:
                # what is left to gain drowns in the rounding of the value (columns far from 0): the gradient decides
                better = np.abs(to_theta.T @ new_gradient).max() < np.abs(g).max()
                return Solution(to_theta @ (trial if better else z), value, iteration, Outcome.CONVERGED)
            gain = (new_value - value) / predicted if predicted < 0 else -1.0
            if math.isfinite(new_value) and new_value < value and gain > 1e-4:
                break
            radius = 0.25 * min(radius, float(np.linalg.norm(step)))
            if radius <= 1e-13 * scale:
                flat = Outcome.FLAT.value
                if objective.loss.classifier:
                    flat += " (separated classes?)"
                reason = objective.undefined(to_theta @ (z + 1e-3 * step / max(size, 1e-300)))
                if reason:
                    return Solution(to_theta @ z, value, iteration, Outcome.UNDEFINED, reason)
                if share < 1.0:
                    return Solution(to_theta @ z, value, iteration, Outcome.BOX, _box_message(hessian))
                return Solution(to_theta @ z, value, iteration, Outcome.FLAT, flat)
        if gain > 0.75:
            radius = max(radius, 2.0 * float(np.linalg.norm(step)))
        elif gain < 0.25:
            radius = 0.25 * float(np.linalg.norm(step))
        blocked = blocked + 1 if share < 1.0 else 0
        z, value, gradient = trial, new_value, new_gradient
        if blocked >= 2:
            return Solution(to_theta @ z, value, iteration, Outcome.BOX, _box_message(hessian))
    message = f"no convergence in {MAX_ITERATIONS} iterations"
    return Solution(to_theta @ z, value, MAX_ITERATIONS, Outcome.EXHAUSTED, message)


def _box_message(hessian: FloatArray) -> str:
    if np.linalg.eigvalsh(hessian)[0] < 0.0:
        return "box reached, indefinite Hessian: the objective has no minimum inside the box"
    return Outcome.BOX.value
