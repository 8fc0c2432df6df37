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

import functools
import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from zil._validate import FloatArray
from zil.estimation import inference, solve
from zil.estimation.objective import IndexObjective, Part, Rows
from zil.estimation.solve import Solution
from zil.privacy.doubling import double

LEVELS = (math.inf, 2.5, 1.6, 1.25, 1.0)
INSIDE = LEVELS[:0:-1]
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
class Shells:
    """The rows of a noisy data set inside the largest finite level, sorted from the inside out.

    Levels are nested, so the rows inside one are a prefix: no level copies rows.

    Attributes
    ----------
    rows : Rows
    ends : (levels - 1,) array
        How many rows lie inside each finite level, smallest level first.
    coefficient : float
        Weight of the uncorrected loss on these rows.
    """

    rows: Rows
    ends: NDArray[np.intp]
    coefficient: float

    def part(self, weights: FloatArray) -> Part | None:
        """The rows under ``weights`` of the levels (levels,); None if no row counts."""
        own = np.cumsum(weights[1:])[::-1]
        counts = np.diff(self.ends, prepend=0)
        used = np.flatnonzero((own != 0.0) & (counts > 0))
        if not len(used):
            return None
        kept = Part(self.rows, a=self.coefficient).block(slice(0, int(self.ends[used[-1]])))
        total = np.repeat(own, counts)[: self.ends[used[-1]]]
        if kept.rows.weights is not None:
            total = total * kept.rows.weights
        return replace(kept, rows=replace(kept.rows, weights=total))

    def shells(self) -> list[Part]:
        """Rows between one level and the next, from the inside out."""
        whole = Part(replace(self.rows, index=None), a=self.coefficient)
        return [whole.block(slice(int(a), int(b))) for a, b in itertools.pairwise([0, *self.ends])]


def _sorted(rows: Rows, reach: FloatArray, coefficient: float) -> Shells:
    """Rows that lie within ``reach`` times the box, from the inside out."""
    shell = np.searchsorted(INSIDE, reach)
    order = np.argsort(shell, kind="stable")
    ends = np.searchsorted(shell[order], np.arange(len(INSIDE)), side="right")
    return Shells(rows.take(order), ends, coefficient)


@dataclass(frozen=True)
class Versions:
    """All truncated versions of one corrected objective.

    Attributes
    ----------
    plain : IndexObjective
        Level inf: RB.
    first, second : Shells
        X1 and the copies of X2.
    """

    plain: IndexObjective
    first: Shells
    second: Shells

    def combined(self, weights: FloatArray) -> IndexObjective:
        """``sum_k weights[k] * objective at LEVELS[k]``; weights sum to 1."""
        parts = [
            replace(part, a=part.a * weights[0], e=part.e * weights[0])
            for part in self.plain.parts
            if weights[0] != 0.0
        ]
        parts += [part for shells in (self.first, self.second) if (part := shells.part(weights)) is not None]
        # positive parts first: the solvers read scale and spread off the first one
        parts.sort(key=lambda part: part.a <= 0.0)
        # inside a box the noise is cut off: its variance is not to be taken off the spread of the rows
        return replace(self.plain, parts=tuple(parts), noise_share=0.0)

    def level(self, k: int) -> IndexObjective:
        """The objective at ``LEVELS[k]``."""
        return self.combined(np.eye(len(LEVELS))[k])

    def gradients(self, theta: FloatArray, width: float = 0.0) -> FloatArray:
        """Gradient of every version, shape (levels, p), ridge apart; ``width`` > 0 smooths the loss."""
        sums = np.zeros((len(LEVELS), self.plain.n_params))
        sums[0] = _smoothed(self.plain, width).sums(theta)[1:]
        for shells in (self.first, self.second):
            for k, part in enumerate(shells.shells()):
                if part.rows.features.shape[1]:
                    sums[-1 - k] += _smoothed(replace(self.plain, parts=(part,)), width).sums(theta)[1:]
        sums[:0:-1] = np.cumsum(sums[:0:-1], axis=0)
        return sums / self.plain.total

    def scores(self, theta: FloatArray, width: float = 0.0) -> Scores:
        """Joint row scores at every level; ``width`` > 0 smooths the loss."""
        n, p, levels = self.plain.n_rows, self.plain.n_params, len(LEVELS)
        blocks = np.zeros((n, levels, p))
        blocks[:, 0] = _smoothed(self.plain, width).scores(theta)
        for shells in (self.first, self.second):
            size = int(shells.ends[-1])
            if not size:
                continue
            part = Part(replace(shells.rows, index=None), a=shells.coefficient)
            alone = replace(self.plain, parts=(part,), n_rows=size, total=float(size))
            own = _smoothed(alone, width).scores(theta)
            # a row of the sample occurs once per copy: one sparse product adds its scores, shell by shell
            shell = np.repeat(np.arange(levels - 1, 0, -1), np.diff(shells.ends, prepend=0))
            place = shells.rows.index * levels + shell
            ones = np.full(size, n / self.plain.total)
            add = sparse.csr_array((ones, (place, np.arange(size))), shape=(n * levels, size))
            blocks += (add @ own).reshape(n, levels, p)
        for k in range(levels - 2, 0, -1):
            blocks[:, k] += blocks[:, k + 1]
        blocks[:, 1:] -= blocks[:, :1]
        return Scores(blocks)


def _smoothed(objective: IndexObjective, width: float) -> IndexObjective:
    return objective.smoothed(width) if width else objective


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
        first=_sorted(rows.take(near), reach[near], 1.0 / zero_prob),
        second=_sorted(second, np.concatenate(kept_reach), -(1.0 - zero_prob) / (zero_prob * copies)),
    )


@dataclass(frozen=True)
class Scores:
    """Joint row scores of all versions at one theta.

    Attributes
    ----------
    blocks : (n, levels, p) array
        Level inf, then what each finite level adds to it: differences of versions, mean zero at every theta.
    """

    blocks: FloatArray

    @property
    def columns(self) -> FloatArray:
        """The blocks side by side, shape (n, levels p)."""
        return self.blocks.reshape(len(self.blocks), -1)

    @functools.cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the columns over rows."""
        mean = self.columns.mean(axis=0)
        return np.asarray(self.columns.T @ self.columns / len(self.blocks) - np.outer(mean, mean))

    def level_weights(self, hessian: FloatArray) -> FloatArray:
        """Scalar weights of the levels, summing to 1, that minimise the trace of the estimator's covariance
        measured in units of the present standard errors."""
        levels, p = self.blocks.shape[1:]
        inverse = np.linalg.inv(hessian)
        # covariance of the influence functions, parameter by parameter, for blocks and then for levels
        blocks = np.einsum("kalb,aj,bj->jkl", self.covariance.reshape(levels, p, levels, p), inverse, inverse)
        sums = np.eye(levels)
        sums[:, 0] = 1.0
        each = sums @ blocks @ sums.T
        scale = np.diagonal(each, axis1=1, axis2=2).min(axis=1)
        moments = np.asarray((each / np.where(scale > 0.0, scale, 1.0)[:, None, None]).sum(axis=0))
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

    def mixture(self, weights: FloatArray) -> FloatArray:
        """The combination of the columns that is the weighted score, shape (levels p, p)."""
        p = self.blocks.shape[2]
        return np.asarray(np.vstack([np.eye(p), *(weight * np.eye(p) for weight in weights[1:])]))

    def residual(self, weights: FloatArray) -> FloatArray:
        """The combination that is the weighted score minus its regression on the differences, shape (levels p, p)."""
        p = self.blocks.shape[2]
        out = self.mixture(weights)
        gram, cross = self.covariance[p:, p:], self.covariance[p:] @ out
        spread = np.sqrt(np.maximum(np.diag(gram), 0.0))
        # levels that (nearly) coincide: a relative cut-off in standardised regressors leaves them alone
        scale = np.where(spread > 1e-7 * float(spread.max(initial=0.0)), spread, np.inf)
        standard = gram / np.outer(scale, scale)
        out[p:] -= np.linalg.lstsq(standard, cross / scale[:, None], rcond=1e-8)[0] / scale[:, None]
        return out


def curvature(objects: Versions, theta: FloatArray, weights: FloatArray, width: float | None = None) -> FloatArray:
    """Estimate of V from the versions: every level has the same expected Hessian.

    The kernel of a kinked loss is widened while the estimate is not positive definite (a rare group of rows).
    """
    objective = objects.combined(weights)
    if not objective.loss.kinked:
        return objective.hessian(theta)
    width = kernel_width(objects, theta) if width is None else width
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


def box_curvature(objects: Versions, theta: FloatArray, scores: FloatArray) -> FloatArray:
    """V of a kinked loss from the version truncated to the box itself, the one with the least noise.

    ``scores`` (n, p) are those of the estimate.  The kernel follows Hall and Sheather with the *effective* number of
    rows, and is no narrower than the sampling error of the index: the noise makes the estimate of V vary (and an
    estimate from the same rows too large), and intervals whose length varies cover too little.
    """
    box = objects.level(len(LEVELS) - 1)
    alone = np.eye(len(LEVELS))[-1]
    width = inference.kernel_width(box, theta)
    width = inference.kernel_width(box, theta, inference.effective_rows(box, theta, width))
    hessian = curvature(objects, theta, alone, width)
    covariance = inference.sandwich(scores, hessian)
    if not np.isfinite(covariance).all():
        return hessian
    wide = inference.kernel_reach(box, theta, covariance)
    return curvature(objects, theta, alone, wide) if wide > width else hessian


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
    scores = levels.columns @ levels.mixture(weights)
    refined = _refine(objects, theta, levels.residual(weights), hessian, levels, width)
    if refined is not None and (box is None or ((refined[0] > box[0]) & (refined[0] < box[1])).all()):
        theta, scores, steps = refined
        n_iter += steps
    if objects.plain.loss.kinked:
        final = box_curvature(objects, theta, scores)
        hessian = final if positive(final) else curvature(objects, theta, weights)
    else:
        hessian = curvature(objects, theta, weights)
    value = objective.value_gradient(theta)[0]
    return Optimal(Solution(theta, value, n_iter, True, "converged"), scores, hessian, weights)


def pilot_weights(objects: Versions) -> FloatArray:
    """All on one level: the box for a kinked loss, no truncation for others."""
    return np.asarray(np.eye(len(LEVELS))[-1 if objects.plain.loss.kinked else 0])


def choose_weights(objects: Versions, theta: FloatArray, weights: FloatArray, width: float) -> FloatArray | None:
    """Weights of the levels at a pilot estimate; None where no curvature is positive definite."""
    levels = objects.scores(theta, width)
    kernel = kernel_width(objects, theta) if objects.plain.loss.kinked else 0.0
    # in a small sample the preferred level may be indefinite at the estimate of another one
    alone = [weights, *np.eye(len(LEVELS))[::-1]]
    own = next((w for w in alone if positive(curvature(objects, theta, w, kernel))), None)
    if own is None:
        return None
    weights = own
    for _ in range(2):  # weights and curvature depend on each other
        best = levels.level_weights(curvature(objects, theta, weights, kernel))
        for share in (1.0, 0.5, 0.25, 0.0):  # in a small sample the best mixture may have no minimum
            weights = share * best + (1.0 - share) * own
            if positive(curvature(objects, theta, weights, kernel)):
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
    objects: Versions, theta: FloatArray, mix: FloatArray, hessian: FloatArray, levels: Scores, width: float
) -> tuple[FloatArray, FloatArray, int] | None:
    """Newton steps on the residual score; None if they do not settle nearby.

    Scalar weights are best on average over parameters, the regression for each of them.  The steps need the mean
    of the residual score only, a fixed combination of the gradients of the versions.
    """
    errors = np.sqrt(np.diag(inference.sandwich(levels.columns @ mix, hessian)))
    if not np.isfinite(errors).all():
        return None
    start = theta
    for step in range(1, MAX_STEPS + 1):
        means = objects.gradients(theta, width)
        means[1:] -= means[0]
        move = -np.linalg.solve(hessian, means.ravel() @ mix + objects.plain.penalty(theta))
        if not (np.abs(theta + move - start) <= 3.0 * errors).all():
            return None
        theta = theta + move
        if float(np.max(np.abs(move) / errors)) < TOLERANCE:
            return theta, objects.scores(theta, width).columns @ mix, step
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
