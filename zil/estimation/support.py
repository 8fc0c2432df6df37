"""Support control variates: using the public box (beyond the paper: mathematics 4.4).

The original rows lie in the public box, so a loss only has to be right there.  Truncating it outside
``k`` times the box, ``l(x) 1{x in k box}``, changes nothing in expectation once corrected, and for every
``k`` gives another unbiased version of the same objective.  Differences of two versions have mean
exactly zero at every theta: they are free control variates.

The optimal estimator: a pilot fit; the joint scores at the levels ``inf, 2.5, 1.6, 1.25, 1``;
regression of one on the differences to the others; Newton steps on what remains.  Estimated
regression weights do not change the first-order law, and the sandwich uses the combined score
(proofs: docs/proof_rao_blackwell.md).

Design: scores are computed once per data set and masked by level; rows outside every finite level never
reach a kernel.  The level ``inf`` is RB; finite levels are DR with ``copies`` second noises (a truncated loss
has no closed form).  A little over 400 lines: the versions and their combination are one idea, read together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zil._validate import FloatArray
from zil.estimation import inference, solve
from zil.estimation.objective import IndexObjective, Part, Rows
from zil.estimation.solve import Solution
from zil.privacy.doubling import double

LEVELS = (math.inf, 2.5, 1.6, 1.25, 1.0)
# Copies of the second noise; fewer when rows times columns times copies would not fit in memory comfortably.
COPIES = 8
MAX_ENTRIES = 400_000_000
MAX_STEPS = 15
# Steps end below this many standard errors.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Box:
    """Public bounds of the columns that carry noise, response last if it is noised.

    ``noised`` are column numbers of x (the number of columns stands for the response).
    """

    noised: NDArray[np.intp]
    low: FloatArray
    high: FloatArray

    def level(self, columns: FloatArray) -> FloatArray:
        """Smallest multiple of the box that holds each row of ``columns`` (n, noised)."""
        centre, half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        return np.asarray((np.abs(columns - centre) / half).max(axis=1))


@dataclass(frozen=True)
class Versions:
    """All truncated versions of one corrected objective.

    Attributes
    ----------
    plain : IndexObjective
        Level inf: RB.
    first, second : Rows
        X1 and the copies of X2 inside the largest finite level.
    reach_first, reach_second : arrays
        Multiple of the box that holds each of their rows.
    """

    plain: IndexObjective
    first: Rows
    second: Rows
    reach_first: FloatArray
    reach_second: FloatArray
    a: float
    b: float

    def combined(self, weights: FloatArray) -> IndexObjective:
        """``sum_k weights[k] * objective at LEVELS[k]``; weights sum to 1."""
        parts = [
            replace(part, a=part.a * weights[0], e=part.e * weights[0])
            for part in self.plain.parts
            if weights[0] != 0.0
        ]
        for rows, reach, coefficient in (
            (self.first, self.reach_first, self.a),
            (self.second, self.reach_second, self.b),
        ):
            own = np.zeros(len(reach))
            for level, weight in zip(LEVELS[1:], weights[1:], strict=True):
                own += weight * (reach <= level)
            inside = np.flatnonzero(own != 0.0)
            if len(inside):
                kept = rows.take(inside)
                total = own[inside] if kept.weights is None else own[inside] * kept.weights
                parts.append(Part(replace(kept, weights=total), a=coefficient))
        # positive parts first: the solvers read scale and spread off the first one
        parts.sort(key=lambda part: part.a <= 0.0)
        # inside a box the noise is cut off: its variance is not to be taken off the spread of the rows
        return replace(self.plain, parts=tuple(parts), noise_share=0.0)

    def level(self, k: int) -> IndexObjective:
        """The objective at ``LEVELS[k]``."""
        return self.combined(np.eye(len(LEVELS))[k])

    def scores(self, theta: FloatArray, width: float = 0.0) -> FloatArray:
        """Joint row scores at every level, shape (levels, n, p); ``width`` > 0 smooths the loss."""
        n, p = self.plain.n_rows, self.plain.n_params
        out = np.zeros((len(LEVELS), n, p))
        out[0] = (self.plain.smoothed(width) if width else self.plain).scores(theta)
        factor = n / self.plain.total
        for rows, reach, coefficient in (
            (self.first, self.reach_first, self.a),
            (self.second, self.reach_second, self.b),
        ):
            index = rows.index
            if index is None or not len(index):
                continue
            own = replace(rows, index=None)
            alone = replace(self.plain, parts=(Part(own, a=coefficient),), n_rows=len(index), total=float(len(index)))
            scores = (alone.smoothed(width) if width else alone).scores(theta).T * factor
            # levels are nested: sum once by shell between two levels, then add up shells from the inside
            key = np.searchsorted(LEVELS[:0:-1], reach) * n + index
            shells = len(LEVELS) - 1
            for j in range(p):
                by_shell = np.bincount(key, scores[j], minlength=shells * n).reshape(shells, n)
                out[1:, :, j] += by_shell.cumsum(axis=0)[::-1]
        return out


def versions(
    plain: IndexObjective,
    zero_prob: float,
    scale: FloatArray,
    scale_y: float,
    box: Box,
    copies: int,
    rng: object = None,
) -> Versions:
    """Draw the second noises and keep what lies inside the largest finite level.

    Parameters
    ----------
    plain : IndexObjective
        The RB objective; its first part holds X1.
    scale, scale_y : noise scales of x's columns (d,) and of the response
    """
    rows = plain.parts[0].rows
    features, response = rows.features, rows.response
    d, n = features.shape
    joined = np.empty((n, d + 1))
    joined[:, :d] = features.T
    joined[:, d] = 0.0 if response is None else response
    scales = np.append(scale, scale_y)
    copies = max(2, min(copies, MAX_ENTRIES // max(1, n * (d + 1))))
    largest = LEVELS[1]
    reach = box.level(joined[:, box.noised])
    near = np.flatnonzero(reach <= largest)
    kept_rows, kept_reach, kept_index = [], [], []
    for copy in range(copies):
        x2 = double(joined, zero_prob, scales, first_copy=copy, rng=rng)[0]
        distance = box.level(x2[:, box.noised])
        inside = np.flatnonzero(distance <= largest)
        kept_rows.append(x2[inside])
        kept_reach.append(distance[inside])
        kept_index.append(inside)
    stacked = np.concatenate(kept_rows)
    index = np.concatenate(kept_index)
    weights = rows.weights
    second = Rows(
        np.ascontiguousarray(stacked[:, :d].T),
        np.ascontiguousarray(stacked[:, d]) if scale_y > 0.0 or response is None else response[index],
        None if weights is None else weights[index],
        index,
    )
    return Versions(
        plain=plain,
        first=rows.take(near),
        second=second,
        reach_first=reach[near],
        reach_second=np.concatenate(kept_reach),
        a=1.0 / zero_prob,
        b=-(1.0 - zero_prob) / (zero_prob * copies),
    )


def level_weights(scores: FloatArray, curvature: FloatArray) -> FloatArray:
    """Scalar weights of the levels, summing to 1, that minimise the trace of the estimator's covariance
    measured in units of the present standard errors."""
    levels, n, p = scores.shape
    inverse = np.linalg.inv(curvature)
    influence = np.asarray(scores @ inverse)
    influence = influence - influence.mean(axis=1, keepdims=True)
    scale = np.sqrt((influence**2).mean(axis=1).min(axis=0))
    scale[scale == 0.0] = 1.0
    flat = (influence / scale).reshape(levels, n * p)
    moments = flat @ flat.T / n
    base = int(np.argmin(np.diag(moments)))
    others = [k for k in range(levels) if k != base]
    difference = moments[np.ix_(others, others)] - moments[others, base][:, None] - moments[base, others][None, :]
    difference += moments[base, base]
    right = moments[base, base] - moments[others, base]
    # levels that hardly differ make this singular; least squares with a cut-off leaves them alone
    share = np.linalg.lstsq(difference, right, rcond=1e-9)[0]
    weights = np.zeros(levels)
    weights[others] = share
    weights[base] = 1.0 - share.sum()
    return weights


def _differences(scores: FloatArray) -> FloatArray:
    """Scores of the finite levels minus that of level inf, shape (n, (levels - 1) p): mean zero at every theta."""
    levels, n, p = scores.shape
    return np.asarray((scores[1:] - scores[0]).transpose(1, 0, 2).reshape(n, (levels - 1) * p))


def regression(scores: FloatArray, weights: FloatArray) -> FloatArray:
    """Coefficients of the weighted score on the differences between levels, shape ((levels - 1) p, p)."""
    base = np.tensordot(weights, scores, axes=1)
    differences = _differences(scores)
    spread = differences.std(axis=0)
    # levels that (nearly) coincide: a relative cut-off in standardised regressors leaves them alone
    scale = np.where(spread > 1e-12 * max(float(spread.max(initial=0.0)), 1e-300), spread, np.inf)
    regressors = (differences - differences.mean(axis=0)) / scale
    gram = regressors.T @ regressors / len(base)
    cross = regressors.T @ (base - base.mean(axis=0)) / len(base)
    return np.asarray(np.linalg.lstsq(gram, cross, rcond=1e-8)[0] / scale[:, None])


def combine(scores: FloatArray, weights: FloatArray, coefficients: FloatArray) -> FloatArray:
    """Residual score (n, p): the weighted score minus its regression on the differences between levels."""
    return np.asarray(np.tensordot(weights, scores, axes=1) - _differences(scores) @ coefficients)


def curvature(objects: Versions, theta: FloatArray, weights: FloatArray) -> FloatArray:
    """Estimate of V from the versions: every level has the same expected Hessian.

    The kernel of a kinked loss is widened while the estimate is not positive definite (a rare group of rows).
    """
    objective = objects.combined(weights)
    if not objective.loss.kinked:
        return objective.hessian(theta)
    width = kernel_width(objects, theta)
    for _ in range(5):
        hessian = objective.smoothed(width).hessian(theta)
        if positive(hessian):
            break
        width *= 1.5
    return hessian


def kernel_width(objects: Versions, theta: FloatArray) -> float:
    """Hall-Sheather width from the rows inside the box."""
    return inference.kernel_width(objects.level(len(LEVELS) - 1), theta)


@dataclass(frozen=True)
class Optimal:
    """What the optimal method found: the solution, its combined scores and curvature, the weights of the levels."""

    solution: Solution
    scores: FloatArray
    hessian: FloatArray
    weights: FloatArray

    def notes(self) -> tuple[str, ...]:
        """Which levels carried the weight, for the reader of a summary."""
        if not self.solution.converged:
            return ()
        shares = ", ".join(
            f"{'no truncation' if math.isinf(level) else f'{level:g} x box'}: {weight:.2f}"
            for level, weight in zip(LEVELS, self.weights, strict=True)
        )
        return (f"weights of the truncation levels: {shares}",)


def box_curvature(objects: Versions, theta: FloatArray) -> FloatArray:
    """V of a kinked loss from the version truncated to the box itself, the one with the least noise."""
    return curvature(objects, theta, np.eye(len(LEVELS))[-1])


def pilot(objects: Versions, start: Solution | None, naive: IndexObjective | None, box: object) -> Solution:
    """A consistent first estimate: the box version where it has a minimum, else RB."""
    limits = box if isinstance(box, tuple) else None
    order = (len(LEVELS) - 1, 0) if objects.plain.loss.kinked else (0, len(LEVELS) - 1)
    first = None if start is None else start.theta
    best: Solution | None = None
    for k in order:
        found = solve.minimise(objects.level(k), start=first, naive=naive, box=limits, exact=False)
        if found.converged:
            return found
        best = best or found
    assert best is not None
    return best


def fit(
    objects: Versions,
    *,
    start: FloatArray | None = None,
    naive: IndexObjective | None = None,
    box: tuple[FloatArray, FloatArray] | None = None,
) -> Optimal:
    """Pilot, weights, Newton steps on the combined score."""
    given = None if start is None else Solution(start, math.nan, 0, False, "")
    first = pilot(objects, given, naive, box)
    theta, n_iter = first.theta, first.n_iter
    p = objects.plain.n_params
    weights = pilot_weights(objects)
    nothing = Optimal(first, np.full((objects.plain.n_rows, p), np.nan), np.full((p, p), np.nan), weights)
    if not first.converged:
        return nothing
    # kinked scores jump as theta moves; half a kernel width (a bias of order n^(-2/3)) makes the equation smooth
    width = 0.5 * kernel_width(objects, theta) if objects.plain.loss.kinked else 0.0
    chosen = choose_weights(objects, theta, weights, width)
    if chosen is None:
        return replace(nothing, solution=_failed(first, "the Hessian is not positive definite at the pilot"))
    weights = chosen
    objective = objects.combined(weights)
    smooth = objective.smoothed(width) if width else objective
    solution = solve.minimise(smooth, start=theta, box=box, smooth=True)
    n_iter += solution.n_iter
    if not solution.converged:
        return replace(nothing, solution=replace(solution, n_iter=n_iter))
    theta = solution.theta
    hessian = curvature(objects, theta, weights)
    levels = objects.scores(theta, width)
    scores = np.asarray(np.tensordot(weights, levels, axes=1))
    refined = _refine(objects, theta, weights, hessian, levels, width)
    if refined is not None and (box is None or ((refined[0] > box[0]) & (refined[0] < box[1])).all()):
        theta, scores, steps = refined
        hessian = curvature(objects, theta, weights)
        n_iter += steps
    value = objective.value_gradient(theta)[0]
    return Optimal(Solution(theta, value, n_iter, True, "converged"), scores, hessian, weights)


def pilot_weights(objects: Versions) -> FloatArray:
    """All on one level: the box for a kinked loss, no truncation for others."""
    return np.asarray(np.eye(len(LEVELS))[-1 if objects.plain.loss.kinked else 0])


def choose_weights(objects: Versions, theta: FloatArray, weights: FloatArray, width: float) -> FloatArray | None:
    """Weights of the levels at a pilot estimate; None where no curvature is positive definite."""
    levels = objects.scores(theta, width)
    # in a small sample the preferred level may be indefinite at the estimate of another one
    alone = [weights, *np.eye(len(LEVELS))[::-1]]
    own = next((w for w in alone if positive(curvature(objects, theta, w))), None)
    if own is None:
        return None
    weights = own
    for _ in range(2):  # weights and curvature depend on each other
        best = level_weights(levels, curvature(objects, theta, weights))
        for share in (1.0, 0.5, 0.25, 0.0):  # in a small sample the best mixture may have no minimum
            weights = share * best + (1.0 - share) * own
            if positive(curvature(objects, theta, weights)):
                break
    return weights


def combined_objective(objects: Versions, naive: IndexObjective) -> tuple[IndexObjective, str]:
    """The objective with weights from a pilot fit, and why they could not be estimated ("" if they were)."""
    first, weights = pilot(objects, None, naive, None), pilot_weights(objects)
    if not first.converged:
        return objects.combined(weights), first.message
    width = 0.5 * kernel_width(objects, first.theta) if objects.plain.loss.kinked else 0.0
    chosen = choose_weights(objects, first.theta, weights, width)
    if chosen is None:
        return objects.combined(weights), "the Hessian is not positive definite at the pilot"
    return objects.combined(chosen), ""


def _refine(
    objects: Versions, theta: FloatArray, weights: FloatArray, hessian: FloatArray, levels: FloatArray, width: float
) -> tuple[FloatArray, FloatArray, int] | None:
    """Newton steps on the residual score, one regression per parameter; None if they do not settle nearby.

    Scalar weights are best on average over parameters, the regression for each of them.
    """
    coefficients = regression(levels, weights)
    start = theta
    for step in range(1, MAX_STEPS + 1):
        scores = combine(levels, weights, coefficients)
        errors = np.sqrt(np.diag(inference.sandwich(scores, hessian)))
        move = -np.linalg.solve(hessian, scores.mean(axis=0))
        if not np.isfinite(errors).all() or not (np.abs(theta + move - start) <= 3.0 * errors).all():
            return None
        theta = theta + move
        if float(np.max(np.abs(move) / errors)) < TOLERANCE:
            return theta, scores, step
        levels = objects.scores(theta, width)
    return None


def positive(matrix: FloatArray) -> bool:
    """Positive definite beyond rounding, whatever the units of the parameters."""
    scale = np.sqrt(np.abs(np.diag(matrix)))
    if not np.isfinite(matrix).all() or not (scale > 0.0).all():
        return False
    values = np.linalg.eigvalsh(matrix / np.outer(scale, scale))
    return bool(values[0] > 1e-10 * values[-1])


def _failed(solution: Solution, message: str) -> Solution:
    return replace(solution, converged=False, message=message)
