"""Support control variates: using the public box (beyond the paper: mathematics 4.4).

The original rows lie in the public box, so a loss only has to be right there.  Truncating it outside
``k`` times the box, ``l(x) 1{x in k box}``, changes nothing in expectation once corrected, and for every
``k`` gives another unbiased version of the same objective (objective/truncated.py).  Differences of two versions have
mean exactly zero at every theta: they are free control variates.

The optimal estimator: a pilot fit; the joint scores at the levels ``inf, 2.5, 1.6, 1.25, 1``; weights of the levels
and a minimum of the weighted objective; regression of the score on the differences between levels; Newton steps on
what remains.  Estimated regression weights do not change the first-order law, and the sandwich uses the combined
score (proofs: docs/proof_rao_blackwell.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from zil._validate import FloatArray
from zil.estimation.inference import covariance
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.truncated import LEVELS, Combined, Scores, Versions
from zil.estimation.solvers.minimise import minimise
from zil.estimation.solvers.outcome import Outcome, Solution

MAX_STEPS = 15
# Steps end below this many standard errors.
TOLERANCE = 1e-4
# Least curvature of a mixture of levels, as a share of that of the level it starts from.
STEEP = 0.5


def curved(objects: Versions, theta: FloatArray, weights: FloatArray, width: float | None = None) -> IndexObjective:
    """The weighted objective, smooth: its Hessian estimates V (every level has the same expected Hessian).

    The kernel of a kinked loss is widened while the estimate is not positive definite (a rare group of rows).
    """
    objective = objects.combined(weights)
    if not objective.loss.kinked:
        return objective
    width = kernel_width(objects, theta) if width is None else width
    for _ in range(5):
        smooth = objective.smoothed(width)
        if positive(smooth.hessian(theta)):
            break
        width *= 1.5
    return smooth


def curvature(objects: Versions, theta: FloatArray, weights: FloatArray, width: float | None = None) -> FloatArray:
    """Estimate of V from the weighted objective: the Hessian of ``curved``."""
    if not objects.plain.loss.kinked:
        return objects.hessian(theta, weights)
    width = kernel_width(objects, theta) if width is None else width
    for _ in range(5):
        found = objects.hessian(theta, weights, width)
        if positive(found):
            break
        width *= 1.5
    return found


def kernel_width(objects: Versions, theta: FloatArray) -> float:
    """Hall-Sheather width from the rows inside the box."""
    return covariance.kernel_width(objects.level(len(LEVELS) - 1), theta)


@dataclass(frozen=True)
class Optimal:
    """What the optimal method found.

    Attributes
    ----------
    solution : Solution
    smooth : IndexObjective
        Its Hessian estimates V.
    weights : (levels,) array
        Of the truncation levels.
    levels : Scores or None
        At the estimate; None where there is none.
    mixes : sequence of arrays
        How each fold combines the columns of ``levels`` into its score.
    width : float
        By which a kinked loss was smoothed for its scores.
    """

    solution: Solution
    smooth: IndexObjective
    weights: FloatArray
    levels: Scores | None = None
    mixes: Sequence[FloatArray] = ()
    width: float = 0.0

    def combined(self, penalty: FloatArray | None = None) -> Combined:
        """Sums of the combined scores."""
        assert self.levels is not None
        return self.levels.combine(self.mixes, penalty)

    def hessian(self) -> FloatArray:
        """Estimate of V.  For a kinked loss without the rows' own influence on the estimate; not for RB, whose errors
        in samples of this size are smaller than the asymptotic law says."""
        theta = self.solution.theta
        plain = self.smooth.hessian(theta)
        if not self.smooth.loss.kinked or not positive(plain):
            return plain
        held_out = covariance.held_out_hessian(self.smooth, theta, self.combined())
        return held_out if positive(held_out) else plain

    def notes(self) -> tuple[str, ...]:
        """Which levels carried the weight, for the reader of a summary."""
        if not self.solution.converged:
            return ()
        shares = ", ".join(
            f"{'no truncation' if math.isinf(level) else f'{level:g} x box'}: {weight:.2f}"
            for level, weight in zip(LEVELS, self.weights, strict=True)
        )
        return (f"weights of the truncation levels: {shares}",)


def box_curved(objects: Versions, theta: FloatArray, meat: FloatArray) -> IndexObjective:
    """A kinked objective truncated to the box itself, the version with the least noise: its Hessian estimates V.

    ``meat`` (p, p) is the mean outer product of the scores of the estimate.  The kernel follows Hall and Sheather with
    the *effective* number of rows, and is no narrower than the sampling error of the index: the noise makes the
    estimate of V vary (and an estimate from the same rows too large), and intervals whose length varies cover too
    little.
    """
    box = objects.level(len(LEVELS) - 1)
    alone = np.eye(len(LEVELS))[-1]
    width = covariance.kernel_width(box, theta)
    width = covariance.kernel_width(box, theta, covariance.effective_rows(box, theta, width))
    smooth = curved(objects, theta, alone, width)
    own = covariance.sandwich(meat, smooth.hessian(theta), objects.plain.n_rows)
    if not np.isfinite(own).all():
        return smooth
    wide = covariance.kernel_reach(box, own)
    return curved(objects, theta, alone, wide) if wide > width else smooth


def pilot(
    objects: Versions, start: FloatArray | None, naive: IndexObjective | None, box: tuple[FloatArray, FloatArray] | None
) -> tuple[Solution, FloatArray]:
    """A consistent first estimate, and the weights of the levels that it minimises: all on one level.

    For a kinked loss the box version where it has a minimum, else RB.  A smooth loss has both, and takes the one with
    the smaller errors by its own sandwich (sum of the logarithms of the variances, which no unit changes): RB has the
    smaller ones under little noise, but under much of it an estimate far off, from which nothing leads back.
    """
    last = len(LEVELS) - 1
    kinked = objects.plain.loss.kinked
    tried: list[tuple[float, Solution, FloatArray]] = []
    for k in (last, 0) if kinked else (0, last):
        found = minimise(objects.level(k), start=start, naive=naive, box=box, exact=False)
        alone = np.eye(len(LEVELS))[k]
        if found.converged and kinked:
            return found, alone
        tried.append((_log_variance(objects, found.theta, alone) if found.converged else math.inf, found, alone))
    if kinked:
        return tried[0][1:]
    converged = [one for one in tried if one[1].converged]
    return min(converged or tried, key=lambda one: one[0])[1:]


def _log_variance(objects: Versions, theta: FloatArray, weights: FloatArray) -> float:
    """Sum over the parameters of the logarithm of the variance that a smooth version states; inf if it states none."""
    levels = objects.scores(theta)
    meat = levels.combine([levels.mixture(weights)]).meat
    found = np.diag(covariance.sandwich(meat, objects.hessian(theta, weights), levels.n))
    return float(np.log(found).sum()) if (found > 0.0).all() else math.inf


def fit(
    objects: Versions,
    *,
    start: FloatArray | None = None,
    naive: IndexObjective | None = None,
    box: tuple[FloatArray, FloatArray] | None = None,
) -> Optimal:
    """Pilot, weights, Newton steps on the combined score."""
    first, weights = pilot(objects, start, naive, box)
    theta, n_iter = first.theta, first.n_iter
    nothing = Optimal(first, objects.plain, weights)
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
    solution = minimise(smooth, start=theta, box=box, smooth=True)
    n_iter += solution.n_iter
    if not solution.converged:
        return replace(nothing, solution=replace(solution, n_iter=n_iter))
    theta = solution.theta
    hessian = curvature(objects, theta, weights)
    levels = objects.scores(theta, width)
    mixes: Sequence[FloatArray] = [levels.mixture(weights)]
    refined = _refine(objects, theta, weights, hessian, levels, width)
    if refined is not None and (box is None or ((refined[0] > box[0]) & (refined[0] < box[1])).all()):
        theta, mixes, steps = refined
        levels = objects.scores(theta, width)
        n_iter += steps
    final = curved(objects, theta, weights)
    if objects.plain.loss.kinked:
        box_final = box_curved(objects, theta, levels.combine(mixes).meat)
        final = box_final if positive(box_final.hessian(theta)) else final
    value = objective.value_gradient(theta)[0]
    return Optimal(Solution(theta, value, n_iter, Outcome.CONVERGED), final, weights, levels, mixes, width)


def choose_weights(objects: Versions, theta: FloatArray, weights: FloatArray, width: float) -> FloatArray | None:
    """Weights of the levels at a pilot estimate; None where no curvature is positive definite."""
    levels = objects.scores(theta, width)
    kernel = kernel_width(objects, theta) if objects.plain.loss.kinked else 0.0
    # in a small sample the preferred level may be indefinite at the estimate of another one
    preferred = [weights, *np.eye(len(LEVELS))[::-1]]
    found = ((w, curvature(objects, theta, w, kernel)) for w in preferred)
    own, alone = next(((w, hessian) for w, hessian in found if positive(hessian)), (None, None))
    if own is None or alone is None:
        return None
    weights = own
    for _ in range(2):  # weights and curvature depend on each other
        best = levels.level_weights(curvature(objects, theta, weights, kernel))
        for share in (1.0, 0.5, 0.25, 0.0):
            weights = share * best + (1.0 - share) * own
            if steep(curvature(objects, theta, weights, kernel), alone):
                break
    return weights


def combined_objective(objects: Versions, naive: IndexObjective) -> tuple[IndexObjective, str]:
    """The objective with weights from a pilot fit, and why they could not be estimated ("" if they were)."""
    first, weights = pilot(objects, None, naive, None)
    if not first.converged:
        return objects.combined(weights), first.message
    width = 0.5 * kernel_width(objects, first.theta) if objects.plain.loss.kinked else 0.0
    chosen = choose_weights(objects, first.theta, weights, width)
    if chosen is None:
        return objects.combined(weights), "the Hessian is not positive definite at the pilot"
    return objects.combined(chosen), ""


def _refine(
    objects: Versions, theta: FloatArray, weights: FloatArray, hessian: FloatArray, levels: Scores, width: float
) -> tuple[FloatArray, Sequence[FloatArray], int] | None:
    """Newton steps on the residual score, and how each fold combines its columns; None if they do not settle nearby.

    Scalar weights are best on average over parameters, the regression for each of them.  The steps need the mean
    of the residual score only, a fixed combination of the gradients of the versions.
    """
    mixes = levels.held_out(weights)
    scores = levels.combine(mixes)
    errors = np.sqrt(np.diag(covariance.sandwich(scores.meat, hessian, scores.n)))
    if not np.isfinite(errors).all():
        return None
    # what folds with coefficients of their own add to the mean score; it hardly moves with theta
    mix = levels.residual(weights)[:-1]
    apart = scores.mean - levels.means @ mix
    start = theta
    for step in range(1, MAX_STEPS + 1):
        means = objects.gradients(theta, width)
        means[1:] -= means[0]
        move = -np.linalg.solve(hessian, means.ravel() @ mix + apart + objects.plain.penalty(theta))
        if not (np.abs(theta + move - start) <= 3.0 * errors).all():
            return None
        theta = theta + move
        if float(np.max(np.abs(move) / errors)) < TOLERANCE:
            return theta, mixes, step
    return None


def positive(matrix: FloatArray) -> bool:
    """Positive definite beyond rounding, whatever the units of the parameters."""
    scale = np.sqrt(np.abs(np.diag(matrix)))
    if not np.isfinite(matrix).all() or not (scale > 0.0).all():
        return False
    values = np.linalg.eigvalsh(matrix / np.outer(scale, scale))
    return bool(values[0] > 1e-10 * values[-1])


def steep(hessian: FloatArray, reference: FloatArray) -> bool:
    """At least ``STEEP`` times as curved as the (positive definite) reference in every direction.

    All levels estimate the same V.  In a small sample weights of both signs can leave a mixture with next to no
    curvature, or none: a minimum far away, or no minimum (means of an indicator, 500 rows, zero_prob .05: errors of
    1 to 6 in 13 of 5000 samples before there was a bound).
    """
    if not np.isfinite(hessian).all():
        return False
    scale = np.sqrt(np.diag(reference))
    values = linalg.eigh(hessian / np.outer(scale, scale), reference / np.outer(scale, scale), eigvals_only=True)
    return bool(values[0] >= STEEP)


def _failed(solution: Solution, message: str) -> Solution:
    return replace(solution, outcome=Outcome.INDEFINITE, message=message)
