"""Corrected sample objectives of a linear index: value, gradient, Hessian and row scores.

An objective is a sum of compiled terms (``src/objective.pyx``); solvers and inference work on it.
The public object, ``zil.CorrectedLoss`` in corrected.py, builds it from tables.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from zil import _threads
from zil._core import objective as kernel
from zil._validate import FloatArray
from zil.estimation.losses.base import Loss
from zil.estimation.objective.parts import Part, Shells
from zil.estimation.rows import square

# Chunks of 4096 rows per thread below which a second thread costs more than it saves.
GRAIN = 8


@functools.cache
def _softplus_taylor() -> FloatArray:
    taylor = np.empty(kernel.SOFTPLUS_TAYLOR_SIZE)
    kernel.softplus_taylor(taylor)
    taylor.flags.writeable = False
    return taylor


_Packed = tuple[tuple[Any, ...], bool, FloatArray, FloatArray, float, int]


@dataclass(frozen=True)
class IndexObjective:
    """Mean over rows of a sum of terms, as a function of ``theta`` (intercept first).

    Attributes
    ----------
    loss : Loss
    parts : sequence of Part
    noise : (p,) array
        Squared noise scale of each parameter's column; 0 for the intercept and clean columns.
    noise_response : float
        Squared noise scale of the response.
    intercept : bool
    n_rows : int
        Rows of the sample (a part may hold some of them only, or some several times).
    total : float
        What sums are divided by: the number of rows, or the sum of the row weights.
    ridge : float
        Adds ``ridge/2 |coefficients|^2`` (never the intercept).
    noise_share : float
        Variance of the noise in ``t`` of the first part, as a share of ``Q``: ``1 - zero_prob`` on X1, 1 on X2.
    """

    loss: Loss
    parts: Sequence[Part]
    noise: FloatArray
    noise_response: float
    intercept: bool
    n_rows: int
    total: float
    ridge: float = 0.0
    noise_share: float = 0.0
    n_threads: int | None = None
    _memo: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def n_params(self) -> int:
        return int(self.parts[0].rows.features.shape[0]) + int(self.intercept)

    def index_noise(self, theta: FloatArray) -> float:
        """``Q``: squared noise scale of the index (of the residual when the response is noised)."""
        return float(self.noise_response + self.noise @ (theta * theta))

    def noise_variance(self, theta: FloatArray) -> float:
        """Variance that the noise adds to ``t`` on the rows of the first part."""
        return self.noise_share * self.index_noise(theta)

    def _term(self, part: Part, theta: FloatArray, hessian: bool) -> tuple[Any, FloatArray | None]:
        block = self.loss.block
        number = kernel.LOSSES[block]
        q = part.q0 + part.kappa * self.index_noise(theta)
        table = None
        if part.e != 0.0 and block in kernel.TABLED:
            table = np.empty(kernel.SOFTPLUS_TABLE_SIZE)
            # at q = 0 the kernel uses the loss itself and never reads the table
            kernel.softplus_table(_softplus_taylor(), q if q > 0.0 else 1.0, hessian, table)
        numbers = (number, self.loss.constants, self.loss.affine, part.a, part.c, part.e, part.q0, part.kappa)
        return numbers, table

    def undefined(self, theta: FloatArray) -> str:
        """Why a smoothed term has no expectation at theta; "" where all have one."""
        if self.loss.block != "exponential":
            return ""
        q = max((part.q0 + part.kappa * self.index_noise(theta) for part in self.parts if part.e != 0.0), default=0.0)
        if q < 1.0:
            return ""
        return (
            f"{self.loss.name} needs s = sqrt(zero_prob/2) |scale * coefficients| < 1, got s = {math.sqrt(q):.3g}: "
            "exp smoothed by the noise has no finite mean"
        )

    def defined(self, theta: FloatArray) -> bool:
        """False where an expectation does not exist."""
        return not self.undefined(theta)

    def _packed(self, theta: FloatArray, parts: Sequence[Part], want: int) -> _Packed:
        packed = []
        for part in parts:
            term, table = self._term(part, theta, want != 0)
            packed.append((term, table, part.rows.features, part.rows.response, part.rows.weights))
        return tuple(packed), self.intercept, theta, self.noise, self.noise_response, want

    def _pass(
        self,
        theta: FloatArray,
        parts: Sequence[Part],
        want: int,
        centre: FloatArray | None = None,
        offset: FloatArray | None = None,
        direction: FloatArray | None = None,
    ) -> FloatArray:
        """Sums over the rows of parts that belong together, chunk by chunk and folded in the order of the chunks."""
        n_chunks = -(-parts[0].rows.features.shape[1] // kernel.CHUNK)
        sums = np.empty((n_chunks, kernel.width(len(theta), want)))
        packed = self._packed(theta, parts, want)

        def task(first: int, last: int) -> None:
            kernel.sums(*packed, first, last, sums[first:last], centre, offset, direction)

        _threads.run_chunks(task, n_chunks, self.n_threads, grain=GRAIN)
        return np.asarray(np.add.reduce(sums, axis=0))

    def sums(self, theta: FloatArray, want: int = 0) -> FloatArray:
        """``[value, gradient (p), ...]`` summed over rows, before division by ``total`` and without ridge.

        ``want`` is ``kernel.HESSIAN`` or 0: the Hessian's lower triangle follows, row by row.
        """
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        return np.asarray(sum(self._pass(theta, group, want) for group in self._groups()))

    def _groups(self) -> list[list[Part]]:
        """Parts that hold every row of the sample in its order go through one pass together, others one by one."""
        aligned = [part for part in self.parts if part.rows.index is None]
        return ([aligned] if aligned else []) + [[part] for part in self.parts if part.rows.index is not None]

    @property
    def aligned(self) -> bool:
        """Every part holds every row of the sample in its order."""
        return all(part.rows.index is None for part in self.parts)

    def evaluate(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and Hessian in one pass; the last one is remembered."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        key = theta.tobytes()
        if self._memo.get("theta") != key:
            p = self.n_params
            if not self.defined(theta):
                found = math.inf, np.full(p, np.nan), np.full((p, p), np.nan)
            else:
                sums = self.sums(theta, kernel.HESSIAN) / self.total
                penalty = self.penalty(theta)
                curvature = square(sums[1 + p :], p) + self.penalty_curvature()
                found = float(sums[0] + 0.5 * penalty @ theta), sums[1 : 1 + p] + penalty, curvature
            self._memo.update(theta=key, found=found)
        value, gradient, hessian = self._memo["found"]
        return value, gradient.copy(), hessian.copy()

    def probe(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """``value_gradient`` at a point where the Hessian will be asked for next: one pass gives all three."""
        return self.evaluate(theta)[:2]

    def value_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Objective and its gradient; ``(inf, nan)`` where the expectation does not exist."""
        if not self.defined(theta):
            return math.inf, np.full(self.n_params, np.nan)
        sums = self.sums(theta) / self.total
        penalty = self.penalty(theta)
        return float(sums[0] + 0.5 * penalty @ theta), sums[1:] + penalty

    def penalty(self, theta: FloatArray) -> FloatArray:
        """Gradient of the ridge term, shape (p,)."""
        penalty = self.ridge * np.asarray(theta, dtype=np.float64)
        if self.intercept:
            penalty[0] = 0.0
        return penalty

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Second derivative, shape (p, p).  At kinks only the smoothed parts count."""
        return self.evaluate(theta)[2]

    def penalty_curvature(self) -> FloatArray:
        """Hessian of the ridge term."""
        free = np.arange(self.n_params) < self.intercept
        return np.diag(np.where(free, 0.0, self.ridge))

    def scores(self, theta: FloatArray) -> FloatArray:
        """Joint score of each row, shape (n, p): all terms of a row added; their mean is the gradient (ridge apart)."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        out = np.zeros((self.n_rows, self.n_params))
        for group in self._groups():
            index, n = group[0].rows.index, group[0].rows.features.shape[1]
            own = out if index is None else np.empty((n, self.n_params))
            self._row_scores(theta, group, own)
            if index is not None:
                for j in range(self.n_params):
                    out[:, j] += np.bincount(index, own[:, j], minlength=self.n_rows)
        if self.total != self.n_rows:
            out *= self.n_rows / self.total
        return out

    def _row_scores(self, theta: FloatArray, parts: Sequence[Part], out: FloatArray) -> None:
        """Scores of the rows of parts that belong together, written to ``out`` (n, p)."""
        packed = self._packed(theta, parts, 0)

        def task(first: int, last: int) -> None:
            kernel.sums(*packed, first, last, out, scores=True)

        _threads.run_chunks(task, -(-len(out) // kernel.CHUNK), self.n_threads, grain=GRAIN)

    def meat(self, theta: FloatArray, centre: FloatArray | None = None, penalised: bool = True) -> FloatArray:
        """Mean outer product of the joint row scores, shape (p, p), without an array of scores.

        Parameters
        ----------
        centre : (p,) array, optional
            Taken off each column first (0 for the intercept): the scores of the parameters of centred columns.
        penalised : bool
            Each row has its share of the ridge term: it is these scores whose mean is 0 at an estimate.
        """
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        p = self.n_params
        offset = self.penalty(theta) if penalised and self.ridge > 0.0 else None
        if self.aligned:
            sums = self._pass(theta, self.parts, kernel.MEAT, centre, offset)
            return square(sums[1 + p :], p) * (self.n_rows / self.total**2)
        return self._row_meat(theta, centre, offset)

    def _row_meat(self, theta: FloatArray, centre: FloatArray | None, offset: FloatArray | None) -> FloatArray:
        """``meat`` from an array of scores."""
        scores = self.scores(theta)
        if offset is not None:
            assert self.aligned
            weights = self.parts[0].rows.weights
            share = np.ones(self.n_rows) if weights is None else weights * (self.n_rows / self.total)
            scores += np.multiply.outer(share, offset)
        if centre is not None:
            scores -= np.multiply.outer(scores[:, 0], centre)
        return np.asarray(scores.T @ scores / self.n_rows)

    def level_sums(
        self, theta: FloatArray, sets: Sequence[Shells], n_slots: int, n_folds: int, outer: bool
    ) -> FloatArray:
        """Sums over rows of the joint scores slot by slot, and of their outer products, for each fold of the rows.

        A row has ``n_slots p + 1`` numbers: the score of this objective, what the sets add in each slot, and its
        weight.  Row r belongs to fold ``r mod n_folds``.  Shape (n_folds, k), or (n_folds, k + k (k + 1) / 2) with
        ``outer``, the lower triangle row by row.
        """
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        k = n_slots * len(theta) + 1
        want = kernel.MEAT if outer else 0
        parts, intercept, _, noise, noise_y, _ = self._packed(theta, self.parts, 0)
        packed = []
        for each in sets:
            rows = each.rows
            term, table = self._term(each, theta, False)
            packed.append((term, table, rows.features, rows.response, rows.weights, each.starts, rows.index, each.slot))
        n_chunks = -(-self.n_rows // kernel.CHUNK)
        width = k + (k * (k + 1) // 2 if outer else 0)
        # folded run by run: a row of sums per chunk would be as large as the sample
        run = max(1, self._run_of_chunks(n_folds * width))
        out = np.zeros((n_folds, width))
        for start in range(0, n_chunks, run):
            sums = np.empty((min(run, n_chunks - start), n_folds, width))

            def task(first: int, last: int, sums: FloatArray = sums, start: int = start) -> None:
                kernel.levels(
                    parts, tuple(packed), intercept, theta, noise, noise_y, want, n_slots, n_folds,
                    start + first, start + last, sums[first:last],
                )  # fmt: skip

            _threads.run_chunks(task, len(sums), self.n_threads)
            for own in sums:
                out += own
        return out

    @staticmethod
    def _run_of_chunks(width: int) -> int:
        """Chunks whose sums are held at once."""
        return min(64, (1 << 22) // width)

    def level_columns(self, theta: FloatArray, sets: Sequence[Shells], n_slots: int) -> FloatArray:
        """The numbers of each row that ``level_sums`` adds up, shape (n, n_slots p + 1)."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        p = self.n_params
        columns = np.zeros((self.n_rows, n_slots * p + 1))
        by_slot = columns[:, :-1].reshape(self.n_rows, n_slots, p)
        own = np.empty((self.n_rows, p))
        self._row_scores(theta, self.parts, own)
        by_slot[:, 0] = own
        for each in sets:
            own = np.empty((len(each.slot), p))
            self._row_scores(theta, [each], own)
            assert each.rows.index is not None
            np.add.at(by_slot, (each.rows.index, each.slot), own)
        columns[:, -1] = 1.0 if self.parts[0].rows.weights is None else self.parts[0].rows.weights
        return columns

    def bends(self, theta: FloatArray, direction: FloatArray) -> tuple[float, float]:
        """Mean and mean square over rows of the second derivative along a direction, ridge apart."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        if self.aligned:
            sums = self._pass(theta, self.parts, kernel.BEND, direction=direction)[-2:]
            share = self.n_rows / self.total
            return float(sums[0]) / self.total, float(sums[1]) * share * share / self.n_rows
        rows = np.zeros(self.n_rows)
        for group in self._groups():
            index, n = group[0].rows.index, group[0].rows.features.shape[1]
            own = np.empty((n, 1))
            packed = self._packed(theta, group, kernel.BEND)

            def task(first: int, last: int, own: FloatArray = own, packed: _Packed = packed) -> None:
                kernel.sums(*packed, first, last, own, direction=direction, scores=True)

            _threads.run_chunks(task, -(-n // kernel.CHUNK), self.n_threads, grain=GRAIN)
            rows += own[:, 0] if index is None else np.bincount(index, own[:, 0], minlength=self.n_rows)
        rows *= self.n_rows / self.total
        return float(rows.mean()), float((rows * rows).mean())

    def smoothed(self, width: float) -> IndexObjective:
        """The objective with every ``phi`` smoothed by Laplace noise of scale ``width``: has a Hessian at kinks."""
        q = width * width
        parts: list[Part] = []
        for part in self.parts:
            if part.a != 0.0:
                parts.append(replace(part, a=0.0, c=0.0, e=part.a, q0=q, kappa=0.0))
            if part.e != 0.0:
                parts.append(replace(part, a=0.0, c=0.0, q0=part.q0 + q))
        return replace(self, parts=tuple(parts))

    def index(self, part: Part, theta: FloatArray) -> FloatArray:
        """``eta`` of every row, shape (n,)."""
        slope = theta[1:] if self.intercept else theta
        eta = part.rows.features.T @ slope
        return eta + theta[0] if self.intercept else eta

    def argument(self, part: Part, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``t`` and ``dt/deta`` of every row."""
        return self.loss.argument(self.index(part, theta), part.rows.y)
