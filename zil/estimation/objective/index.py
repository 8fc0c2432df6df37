"""Corrected sample objectives of a linear index: value, gradient, Hessian and row scores.

An objective is a sum of compiled terms (``src/objective.pyx``); solvers and inference work on it.
The public object, ``zil.CorrectedLoss`` in corrected.py, builds it from tables.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zil import _threads
from zil._core import objective as kernel
from zil._validate import FloatArray
from zil.estimation.losses.base import Loss
from zil.estimation.objective.rows import Part

# Chunks of 4096 rows per thread below which a second thread costs more than it saves.
GRAIN = 8


@functools.cache
def _softplus_taylor() -> FloatArray:
    taylor = np.empty(kernel.SOFTPLUS_TAYLOR_SIZE)
    kernel.softplus_taylor(taylor)
    taylor.flags.writeable = False
    return taylor


@functools.cache
def _lower(p: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of a lower triangle: making them costs as much as the Hessian of a thousand rows."""
    return np.tril_indices(p)


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

    def _run(self, name: str, part: Part, theta: FloatArray, width: int, scores: FloatArray | None) -> FloatArray:
        term, table = self._term(part, theta, name == "hessian")
        rows = part.rows
        n_chunks = -(-rows.features.shape[1] // kernel.CHUNK)
        sums = np.empty((n_chunks, width))
        shared = (term, table, rows.features, rows.response, rows.weights, self.intercept, theta, self.noise)

        def task(first: int, last: int) -> None:
            out = sums[first:last]
            if name == "hessian":
                kernel.hessian(*shared, self.noise_response, first, last, out)
            else:
                kernel.gradient(*shared, self.noise_response, first, last, out, scores)

        _threads.run_chunks(task, n_chunks, self.n_threads, grain=GRAIN)
        return np.asarray(np.add.reduce(sums, axis=0))

    def sums(self, theta: FloatArray, scores: FloatArray | None = None) -> FloatArray:
        """``[sum of values, sum of gradients]`` over rows, before division by ``total`` and without ridge."""
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        out = np.zeros(self.n_params + 1)
        for part in self.parts:
            index = part.rows.index
            if scores is None or index is None:
                out += self._run("gradient", part, theta, self.n_params + 1, scores)
                continue
            own = np.zeros((len(index), self.n_params))
            out += self._run("gradient", part, theta, self.n_params + 1, own)
            for j in range(self.n_params):
                scores[:, j] += np.bincount(index, own[:, j], minlength=self.n_rows)
        return out

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
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        p = self.n_params
        if not self.defined(theta):
            return np.full((p, p), np.nan)
        packed = np.zeros(p * (p + 1) // 2)
        for part in self.parts:
            packed += self._run("hessian", part, theta, len(packed), None)
        out = np.zeros((p, p))
        low = _lower(p)
        out[low] = packed / self.total
        out[low[1], low[0]] = out[low]
        return out + self.penalty_curvature()

    def penalty_curvature(self) -> FloatArray:
        """Hessian of the ridge term."""
        free = np.arange(self.n_params) < self.intercept
        return np.diag(np.where(free, 0.0, self.ridge))

    def scores(self, theta: FloatArray) -> FloatArray:
        """Joint score of each row, shape (n, p): all terms of a row added; their mean is the gradient (ridge apart)."""
        out = np.zeros((self.n_rows, self.n_params))
        self.sums(theta, out)
        if self.total != self.n_rows:
            out *= self.n_rows / self.total
        return out

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
