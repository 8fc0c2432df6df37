"""Corrected objectives of losses that are evaluated in numpy, row by row.

The compiled objective (index.py) knows one scalar function of one index.  Losses of a location
(``Mean``), of a user's scalar function (``Index``) or of anything at all (``Custom``) answer for whole
blocks of rows instead; everything else -- terms, weights, copies, truncation, solvers, inference -- is shared.

Design: a subclass that replaces the one method that calls the kernel, so no caller asks which kind it holds.
Derivatives beyond the first come from central differences of the mean score: p is small, and a user's
second derivative would be wrong more often than a difference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from zil._validate import FloatArray
from zil.estimation.losses.blockwise import STEP, Block, RowLoss
from zil.estimation.losses.smoothing import NotSmoothError
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.parts import Part, Shells
from zil.estimation.rows import lower

# Values whose squares would overflow count as infinite.
HUGE = 1e140
# Rows evaluated at once.
BLOCK = 1 << 16


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

    def block(self, part: Part) -> Block:
        """The rows of a part as the loss sees them."""
        rows = part.rows
        return Block(rows.features, rows.y, rows.weights, self.intercept, self.noise, self.noise_response)

    def value(self, theta: FloatArray) -> float:
        """The objective without its gradient; inf where it is not finite."""
        loss = self.loss
        assert isinstance(loss, RowLoss)
        total = 0.0
        with np.errstate(over="ignore", invalid="ignore"):
            for part in self.parts:
                own = loss.values(part, self.block(part), theta)
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

    def _blocks(self, part: Part) -> Iterator[tuple[slice, Part]]:
        n = part.rows.features.shape[1]
        for first in range(0, n, BLOCK):
            rows = slice(first, min(first + BLOCK, n))
            yield rows, part if n <= BLOCK else part.block(rows)

    def sums(self, theta: FloatArray, want: int = 0) -> FloatArray:
        loss = self.loss
        assert isinstance(loss, RowLoss)
        assert want == 0
        sums = np.zeros(self.n_params + 1)
        for part in self.parts:
            for _, own in self._blocks(part):
                with np.errstate(over="ignore", invalid="ignore"):  # far trial points; what is not finite is refused
                    sums += loss.sums(own, self.block(own), theta)
        return sums

    def _row_scores(self, theta: FloatArray, parts: Sequence[Part], out: FloatArray) -> None:
        loss = self.loss
        assert isinstance(loss, RowLoss)
        out[:] = 0.0
        for part in parts:
            for rows, own in self._blocks(part):
                with np.errstate(over="ignore", invalid="ignore"):
                    score = loss.rows(own, self.block(own), theta)[1]
                out[rows] += score if own.rows.weights is None else score * own.rows.weights[:, None]

    def meat(self, theta: FloatArray, centre: FloatArray | None = None, penalised: bool = True) -> FloatArray:
        offset = self.penalty(theta) if penalised and self.ridge > 0.0 else None
        return self._row_meat(theta, centre, offset)

    def level_sums(
        self, theta: FloatArray, sets: Sequence[Shells], n_slots: int, n_folds: int, outer: bool
    ) -> FloatArray:
        columns = self.level_columns(theta, sets, n_slots)
        k = columns.shape[1]
        out = []
        for fold in range(n_folds):
            own = columns[fold::n_folds]
            sums = own.sum(axis=0)
            out.append(np.concatenate([sums, (own.T @ own)[lower(k)]]) if outer else sums)
        return np.stack(out)

    def bends(self, theta: FloatArray, direction: FloatArray) -> tuple[float, float]:
        """From differences of scores over a thousandth of the direction."""
        step = 1e-3 * direction
        rows = (self.scores(theta + step) - self.scores(theta - step)) @ direction / 2e-3
        return float(rows.mean()), float((rows * rows).mean())

    def probe(self, theta: FloatArray) -> tuple[float, FloatArray]:
        return self.value_gradient(theta)

    def evaluate(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        return (*self.value_gradient(theta), self.hessian(theta))

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Second derivative, shape (p, p): the loss's own, or central differences of the gradient."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        loss = self.loss
        assert isinstance(loss, RowLoss)
        total = np.zeros((self.n_params, self.n_params))
        for part in self.parts:
            own = loss.hessian(part, self.block(part), theta)
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
                unit *= self.loss.step_unit(self.block(self.parts[0]).y)
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
