"""Corrected objectives of losses that are evaluated in numpy, row by row.

The compiled objective (objective.py) knows one scalar function of one index.  Losses of a location
(``Mean``), of a user's scalar function (``Index``) or of anything at all (``Custom``) answer for whole
blocks of rows instead; everything else -- terms, weights, copies, truncation, solvers, inference -- is shared.

Design: a subclass that replaces the one method that calls the kernel, so no caller asks which kind it holds.
Derivatives beyond the first come from central differences of the mean score: p is small, and a user's
second derivative would be wrong more often than a difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zil._validate import FloatArray
from zil.estimation.indexloss import Loss
from zil.estimation.objective import IndexObjective, Part
from zil.estimation.smoother import NotSmoothError

# Central differences: relative steps for a first derivative of a value and of a gradient.
STEP = float(np.finfo(float).eps) ** (1 / 3)
# Values whose squares would overflow count as infinite.
HUGE = 1e140
# Rows evaluated at once.
BLOCK = 1 << 16


@dataclass(frozen=True)
class RowLoss(Loss):
    """A loss that evaluates blocks of rows.

    Attributes
    ----------
    exact_rb : bool
        The Laplace-smoothed loss is known; else "rb" is DR averaged over antithetic copies of the second noise.
    """

    block: ClassVar[str] = "rows"

    @property
    def exact_rb(self) -> bool:
        return False

    @property
    def affine(self) -> tuple[float, float, float, float, float]:
        return (0.0, 0.0, 0.0, 0.0, 0.0)

    def rows(self, part: Part, theta: FloatArray, objective: RowObjective) -> tuple[FloatArray, FloatArray]:
        """Values (n,) and scores (n, p) of one term, row weights left out."""
        raise NotImplementedError

    def values(self, part: Part, theta: FloatArray, objective: RowObjective) -> FloatArray:
        """Values (n,) alone."""
        return self.rows(part, theta, objective)[0]

    def sums(self, part: Part, theta: FloatArray, objective: RowObjective) -> FloatArray:
        """``[sum of values, sums of scores]`` of one term, shape (1 + p,), row weights included."""
        value, score = self.rows(part, theta, objective)
        weights = part.rows.weights
        if weights is None:
            return np.concatenate([[value.sum()], score.sum(axis=0)])
        return np.concatenate([[weights @ value], weights @ score])

    def step_unit(self, part: Part) -> float:
        """Natural unit of the index, for steps of differences."""
        del part
        return 1.0

    def argument(self, part: Part, theta: FloatArray, objective: RowObjective) -> tuple[FloatArray, FloatArray]:
        """``t`` and ``dt/deta`` of every row; what spreads and kernel widths are measured in."""
        return IndexObjective.argument(objective, part, theta)

    def hessian(self, part: Part, theta: FloatArray, objective: RowObjective) -> FloatArray | None:
        """Sum of second derivatives over the rows of one term, row weights included; None: take differences."""
        return None


@dataclass(frozen=True)
class IndexRows(RowLoss):
    """A loss of one index: a term is ``F(eta, Q)`` per row, ``Q`` the squared noise scale of the index.

    Scores and second derivatives by theta follow from derivatives by eta and Q, and sums need no (n, p) array.
    """

    def terms(self, part: Part, theta: FloatArray, objective: RowObjective) -> tuple[FloatArray, ...]:
        """``F``, ``F_eta``, ``F_Q`` of every row, each of shape (n,)."""
        raise NotImplementedError

    def bends(self, part: Part, theta: FloatArray, objective: RowObjective) -> tuple[FloatArray, ...] | None:
        """``F_eta,eta``, ``F_eta,Q``, ``F_QQ``, ``F_Q`` of every row; None: take differences."""
        return None

    def rows(self, part: Part, theta: FloatArray, objective: RowObjective) -> tuple[FloatArray, FloatArray]:
        value, slope, spread = self.terms(part, theta, objective)
        score = columns(part, objective).T * slope[:, None]
        return value, score + spread[:, None] * (2.0 * objective.noise * theta)

    def values(self, part: Part, theta: FloatArray, objective: RowObjective) -> FloatArray:
        return self.terms(part, theta, objective)[0]

    def sums(self, part: Part, theta: FloatArray, objective: RowObjective) -> FloatArray:
        value, slope, spread = self.terms(part, theta, objective)
        if (weights := part.rows.weights) is not None:
            value, slope, spread = value * weights, slope * weights, spread * weights
        gradient = 2.0 * float(spread.sum()) * objective.noise * theta
        one = int(objective.intercept)
        gradient[:one] += slope.sum()
        gradient[one:] += part.rows.features @ slope
        return np.concatenate([[value.sum()], gradient])

    def hessian(self, part: Part, theta: FloatArray, objective: RowObjective) -> FloatArray | None:
        found = self.bends(part, theta, objective)
        if found is None:
            return None
        weights = part.rows.weights
        bend, cross, twice, spread = found if weights is None else (weights * each for each in found)
        design, grows = columns(part, objective), 2.0 * objective.noise * theta
        across = np.outer(design @ cross, grows)
        by_noise = float(twice.sum()) * np.outer(grows, grows) + np.diag(2.0 * objective.noise * float(spread.sum()))
        return np.asarray((design * bend) @ design.T + across + across.T + by_noise)


@dataclass(frozen=True)
class RowObjective(IndexObjective):
    """An ``IndexObjective`` whose rows are evaluated by the loss itself.

    Attributes
    ----------
    size : int
        Number of parameters; -1: intercept and one per feature.
    """

    size: int = -1

    @property
    def n_params(self) -> int:
        return self.size if self.size >= 0 else super().n_params

    def index_noise(self, theta: FloatArray) -> float:
        return super().index_noise(theta) if self.size < 0 else 0.0

    def value_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        sums = self.sums(theta) / self.total
        if not float(np.abs(sums).max()) < HUGE:  # nan too
            return math.inf, np.full(self.n_params, np.nan)
        penalty = self.penalty(theta)
        return float(sums[0] + 0.5 * penalty @ theta), sums[1:] + penalty

    def value(self, theta: FloatArray) -> float:
        """The objective without its gradient; inf where it is not finite."""
        loss = self.loss
        assert isinstance(loss, RowLoss)
        total = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for part in self.parts:
                own = loss.values(part, theta, self)
                total += float(own.sum() if part.rows.weights is None else own @ part.rows.weights)
        value = total / self.total + 0.5 * float(self.penalty(theta) @ theta)
        return value if abs(value) < HUGE else math.inf

    def undefined(self, theta: FloatArray) -> str:
        """A loss that grows too fast for the noise has an infinite value there (see ``rows``)."""
        theta = np.asarray(theta, dtype=np.float64)
        try:
            if all(part.e == 0.0 for part in self.parts) or math.isfinite(self.value_gradient(theta)[0]):
                return ""
        except NotSmoothError as error:
            return str(error)
        return f"{self.loss.name}: phi grows too fast for this noise, smoothed by it it has no finite mean"

    def _run(self, name: str, part: Part, theta: FloatArray, width: int, scores: FloatArray | None) -> FloatArray:
        loss = self.loss
        assert isinstance(loss, RowLoss)
        n = part.rows.features.shape[1]
        sums = np.zeros(width)
        for first in range(0, n, BLOCK):
            block = slice(first, min(first + BLOCK, n))
            own = part if n <= BLOCK else part.block(block)
            with np.errstate(over="ignore", invalid="ignore"):  # far trial points; what is not finite is refused
                if scores is None:
                    sums += loss.sums(own, theta, self)
                    continue
                value, score = loss.rows(own, theta, self)
            if own.rows.weights is not None:
                value, score = value * own.rows.weights, score * own.rows.weights[:, None]
            sums[0] += value.sum()
            sums[1:] += score.sum(axis=0)
            scores[block] += score
        return sums

    def argument(self, part: Part, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        loss = self.loss
        return loss.argument(part, theta, self) if isinstance(loss, RowLoss) else super().argument(part, theta)

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Second derivative, shape (p, p): the loss's own, or central differences of the gradient."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        loss = self.loss
        assert isinstance(loss, RowLoss)
        total = np.zeros((self.n_params, self.n_params))
        for part in self.parts:
            own = loss.hessian(part, theta, self)
            if own is None:
                break
            total += own
        else:
            return total / self.total + self.penalty_curvature()
        return symmetric_difference(lambda at: self.value_gradient(at)[1], theta, self.steps(theta))

    def steps(self, theta: FloatArray) -> FloatArray:
        """Steps of a central difference in each parameter: small beside its natural unit."""
        unit = np.ones(self.n_params)
        if self.size < 0:
            features = self.parts[0].rows.features
            size = np.sqrt((features**2).mean(axis=1)) if features.shape[1] else np.ones(len(features))
            unit[int(self.intercept) :] = 1.0 / np.where(size > 0.0, size, 1.0)
            if isinstance(self.loss, RowLoss):
                unit *= self.loss.step_unit(self.parts[0])
        return np.asarray(STEP * np.maximum(np.abs(theta), unit))


def symmetric_difference(
    function: Callable[[FloatArray], FloatArray], theta: FloatArray, steps: FloatArray
) -> FloatArray:
    """Jacobian of a gradient, made symmetric."""
    p = len(theta)
    out = np.empty((p, p))
    for j in range(p):
        shift = np.zeros(p)
        shift[j] = steps[j]
        high, low = theta + shift, theta - shift
        out[j] = (function(high) - function(low)) / (high[j] - low[j])
    return 0.5 * (out + out.T)


def columns(part: Part, objective: RowObjective) -> FloatArray:
    """Features with the intercept's ones before them, shape (p, n)."""
    features = part.rows.features
    return np.vstack([np.ones(features.shape[1]), features]) if objective.intercept else features


def smoothing_scale(part: Part, noise: float) -> float:
    """Scale of the Laplace noise that a smoothed term averages over."""
    return math.sqrt(part.q0 + part.kappa * noise)
