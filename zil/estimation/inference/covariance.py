"""Covariance of the estimates from the joint row scores and the curvature of the objective.

``sqrt(n)(theta^ - theta0) -> N(0, V^-1 A V^-1)``: ``A`` is the mean outer product of the n *joint* scores
(all terms of a row added first; stacking the two noisy data sets would count every person twice), ``V``
the Hessian of the expected loss.  For kinked losses ``V`` is the Hessian of the corrected loss smoothed
at a Hall-Sheather bandwidth, a Powell-type kernel estimate with a Laplace kernel.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import stats

from zil._validate import FloatArray
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.truncated import Combined


def hall_sheather(n: float, tau: float) -> float:
    """Hall-Sheather bandwidth on the probability scale for the tau-quantile, at level 0.05.

    ``n^(-1/3) z^(2/3) [1.5 f^2 / (2 x^2 + 1)]^(1/3)`` with ``x = Phi^-1(tau)``, ``f = phi(x)``, ``z = Phi^-1(.975)``.
    """
    x = float(stats.norm.ppf(tau))
    density = float(stats.norm.pdf(x))
    z = float(stats.norm.ppf(0.975))
    return float(n ** (-1 / 3) * z ** (2 / 3) * (1.5 * density**2 / (2 * x * x + 1)) ** (1 / 3))


def spread(objective: IndexObjective, theta: FloatArray) -> float:
    """Spread of ``t`` for the original rows: the variance that the noise added is taken off; robust to tails."""
    part = objective.parts[0]
    t = objective.argument(part, theta)[0]
    if part.rows.weights is not None:
        t = t[part.rows.weights != 0.0]
    total = float(np.var(t))
    gross = math.sqrt(max(total - objective.noise_variance(theta), 0.05 * total))
    low, high = np.quantile(t, [0.25, 0.75])
    robust = float(high - low) / 1.349
    return min(gross, robust) if robust > 0.0 else gross


def kernel_width(objective: IndexObjective, theta: FloatArray, n: float | None = None) -> float:
    """Scale of the Laplace kernel for the Hessian of a kinked loss, in units of ``t``.

    ``n`` is the number of rows that Hall and Sheather's rule is to count, by default those of the first part.
    """
    up, down = objective.loss.constants
    tau = 0.5 if objective.loss.classifier else up / (up + down)
    unit = spread(objective, theta)
    if n is None:  # a row of weight zero is no row
        first = objective.parts[0].rows
        n = first.features.shape[1] if first.weights is None else int(np.count_nonzero(first.weights))
    probability = min(hall_sheather(max(n, 2), tau), 0.98 * min(tau, 1 - tau))
    low_tau, high_tau = max(tau - probability, 1e-6), min(tau + probability, 1 - 1e-6)
    window = unit * float(stats.norm.ppf(high_tau) - stats.norm.ppf(low_tau))
    # quantile regression's uniform kernel on (-window/2, window/2) has variance window^2/12, Laplace 2 s^2
    return max(window / math.sqrt(24.0), 1e-12 * max(unit, 1e-300))


def effective_rows(objective: IndexObjective, theta: FloatArray, width: float) -> float:
    """Clean rows that would estimate the density at the kink as well as the rows of this objective.

    The weights ``k_i`` of the Laplace kernel, all terms of a row added, have mean ``f``; without noise their variance
    is ``f / (4 width)`` but for terms of lower order, so ``n_eff = n f / (4 width var(k))``.
    """
    noise = objective.index_noise(theta)
    weights = np.zeros(objective.n_rows)
    for part in objective.smoothed(width).parts:
        scale = math.sqrt(part.q0 + part.kappa * noise)
        own = part.e / (2.0 * scale) * np.exp(-np.abs(objective.argument(part, theta)[0]) / scale)
        if part.rows.weights is not None:
            own = own * part.rows.weights
        index = part.rows.index
        weights += own if index is None else np.bincount(index, own, minlength=objective.n_rows)
    weights *= objective.n_rows / objective.total
    density, variance = float(weights.mean()), float(weights.var())
    return objective.n_rows * density / (4.0 * width * variance) if density > 0.0 else 1.0


def index_error(objective: IndexObjective, covariance: FloatArray) -> float:
    """Sampling error of the index under an estimate's covariance, root mean square over the rows of the first part."""
    rows = objective.parts[0].rows
    features, one = rows.features, int(objective.intercept)
    if one:  # an intercept takes up where a column has its zero
        centre = features.mean(axis=1) if rows.weights is None else features @ rows.weights / rows.weights.sum()
        features = features - centre[:, None]
    moments = features @ features.T / features.shape[1]
    return math.sqrt(max(float((covariance[one:, one:] * moments).sum()), 0.0))


def kernel_reach(objective: IndexObjective, covariance: FloatArray) -> float:
    """Narrowest kernel for a Hessian at an estimate: 1.3 times the sampling error of the index.  A narrower one would
    measure how well the rows were fitted."""
    return 1.3 * index_error(objective, covariance)


def curved(objective: IndexObjective, theta: FloatArray) -> IndexObjective:
    """The objective itself, or a kinked one smoothed by a kernel: its Hessian at ``theta`` estimates V.

    For a kinked loss the estimate is minimised over the same rows that it measures, so at a narrow kernel it is far
    too large (a factor 3 to 7 for DR at scale 1 to 2): the kernel is widened to the sampling error of the index.
    """
    if not objective.loss.kinked:
        return objective
    width = kernel_width(objective, theta)
    if all(part.a >= 0.0 and part.e >= 0.0 for part in objective.parts):
        return objective.smoothed(width)
    meat = row_objective(objective, theta).meat(theta, penalised=False)
    wide = max(width, 0.5 * spread(objective, theta))
    for _ in range(2):
        covariance = sandwich(meat, objective.smoothed(wide).hessian(theta), objective.n_rows)
        if not np.isfinite(covariance).all():
            break
        wide = max(width, kernel_reach(objective, covariance))
    return objective.smoothed(wide)


def held_out_hessian(smooth: IndexObjective, theta: FloatArray, scores: Combined) -> FloatArray:
    """Hessian of a smooth objective with every tenth of the rows taken at the estimate of the others.

    Without it the estimate of V comes from the rows that were fitted and is too large: the minimiser looks for places
    where the sample is more curved than its expectation (7 % at the .9 quantile of 20000 rows at scale 1; 1 % so).
    The estimates of the others are one Newton step away: ``theta + V^-1 (sum of the left-out scores) / (rows kept)``.

    ``scores`` are those of the estimate.
    """
    n, folds = scores.n, len(scores.counts)
    fold = np.arange(n) % folds
    hessian, penalty = smooth.hessian(theta), smooth.penalty_curvature()
    centred = scores.sums - np.outer(scores.counts, scores.mean)
    total = np.zeros_like(hessian)
    for k in range(folds):
        out = fold == k
        without = theta + np.linalg.solve(hessian, centred[k]) / (n - int(scores.counts[k]))
        parts = [
            replace(part, rows=part.rows.take(out if part.rows.index is None else out[part.rows.index]))
            for part in smooth.parts
        ]
        total += replace(smooth, parts=tuple(parts)).hessian(without) - penalty
    return total + penalty


def row_objective(objective: IndexObjective, theta: FloatArray) -> IndexObjective:
    """The objective whose row scores at an estimate are the joint scores of the sandwich.

    A vertex puts p rows exactly on their kink; rounding would give each one side or the other, so a kinked loss is
    smoothed by a millionth of the kernel: they get the mean of both sides.
    """
    if not objective.loss.kinked:
        return objective
    return objective.smoothed(1e-6 * kernel_width(objective, theta))


def natural_meat(objective: IndexObjective, theta: FloatArray, natural: FloatArray) -> FloatArray:
    """Mean outer product of the penalised row scores in natural coordinates (Coordinates.matrix), shape (p, p).

    The centres of the columns come off row by row: a column far from 0 would cost the product its digits.
    """
    spread = np.diag(natural).copy()
    centre = -natural[0] / spread
    centre[0] = 0.0
    if not objective.intercept or objective.loss.free:
        return np.asarray(objective.meat(theta) * np.outer(spread, spread))
    return np.asarray(objective.meat(theta, centre) * np.outer(spread, spread))


def sandwich(meat: FloatArray, hessian: FloatArray, n: int) -> FloatArray:
    """``V^-1 A V^-1 / n``, ``A`` the mean outer product of n scores (p, p); nan where V is not positive definite."""
    p = len(meat)
    nothing = np.full((p, p), np.nan)
    scale = np.sqrt(np.abs(np.diag(hessian)))
    if not np.isfinite(hessian).all() or not (scale > 0.0).all():
        return nothing
    scaled = hessian / np.outer(scale, scale)  # the units of the columns leave the matrix
    values, vectors = np.linalg.eigh(scaled)
    if values[0] <= 1e-12 * values[-1]:
        return nothing
    inside = (vectors / values) @ vectors.T / np.outer(scale, scale)
    found = inside @ meat @ inside.T / n
    return np.asarray(0.5 * (found + found.T))
