"""Rank-score intervals of quantile regression on clean rows.

A standard error of a quantile needs the density of the residuals at it, which a tail of fifty rows hardly knows: Wald
intervals at tau = .95 of 1000 rows cover 87 %.  The regression rank-score test (Gutenbrunner, Jureckova, Koenker and
Portnoy, 1993) needs no density: at ``theta_j = b`` the other parameters are fitted, and

    T_j(b) = sum_i x_ij psi_i / sqrt(tau (1 - tau) |x_j - its projection on the other columns|^2)

is compared with the normal law, ``psi_i = tau - 1{r_i < 0}``, and for the rows with ``r_i = 0`` the values that make
the scores of the other parameters exactly zero (the dual solution).  The interval holds the b that are not refused.
It is exact in large samples for errors of one law; with errors whose spread changes with x it is an approximation.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from zil._validate import FloatArray
from zil.estimation.losses.base import Loss
from zil.estimation.objective.build import index_objective
from zil.estimation.sample import Sample
from zil.estimation.solvers.minimise import minimise

# Hypotheses for each parameter, evenly over so many Wald errors on both sides at first, and the statistic that the
# outermost has to reach (a level of 99.9 %).
PLACES, REACH, LARGEST = 41, 4.0, 3.3
# Rows in the smaller tail below which a Wald interval of a quantile covers less than 92.5 %.
FEW = 200.0


@dataclass(frozen=True)
class RankSets:
    """Profiles of the statistic, made when they are first asked for.  A pickle holds them instead of the rows."""

    loss: Loss
    sample: Sample | None
    intercept: bool
    center: FloatArray
    errors: FloatArray

    @functools.cached_property
    def profiles(self) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """Hypotheses and statistics of every parameter; the statistic falls as the hypothesis rises."""
        return tuple(self._profile(j) for j in range(len(self.center)))

    def __getstate__(self) -> dict[str, Any]:
        profiles = self.profiles
        return {**self.__dict__, "sample": None, "profiles": profiles}

    def interval(self, j: int, times: float) -> tuple[float, float]:
        """Where ``|T_j| <= times``, between the places that were looked at; infinite where none of them is refused."""
        places, values = self.profiles[j]
        falling = np.minimum.accumulate(values)  # it is monotone but for rows that lie on the fit to rounding

        def crossing(k: int, height: float) -> float:
            share = (falling[k] - height) / (falling[k] - falling[k + 1])
            return float(places[k] + share * (places[k + 1] - places[k]))

        above, below = np.flatnonzero(falling >= times), np.flatnonzero(falling <= -times)
        low = crossing(int(above[-1]), times) if len(above) else -math.inf
        high = crossing(int(below[0]) - 1, -times) if len(below) else math.inf
        return low, high

    def _profile(self, j: int) -> tuple[FloatArray, FloatArray]:
        reach = REACH
        for _ in range(6):
            places = self.center[j] + self.errors[j] * np.linspace(-reach, reach, PLACES)
            values = np.array([self._statistic(j, float(b)) for b in places[[0, -1]]])
            if values[0] >= LARGEST and values[1] <= -LARGEST:
                break
            reach *= 2.0
        return places, np.array([self._statistic(j, float(b)) for b in places])

    def _statistic(self, j: int, b: float) -> float:
        assert self.sample is not None
        x, y = self.sample.x, self.sample.y
        design = np.column_stack([np.ones(len(y)), x]) if self.intercept else x
        column, others = design[:, j], np.delete(design, j, axis=1)
        up, down = self.loss.constants
        tau = up / (up + down)
        residual = y - b * column
        if others.shape[1]:
            intercept = self.intercept and j > 0
            kept = others[:, 1:] if intercept else others
            scale = np.zeros(kept.shape[1])
            names = [str(k) for k in range(kept.shape[1])]
            reduced = replace(self.sample, x=np.ascontiguousarray(kept), y=residual, scale=scale, names=names)
            theta = minimise(index_objective(self.loss, reduced, "naive", intercept=intercept)).theta
            residual = residual - others @ theta
        # rows on the fit, up to rounding
        size = np.abs(residual)
        zero = size <= 1e-9 * float(np.median(size) + 1e-300)
        psi = np.where(residual < 0.0, tau - 1.0, tau)
        psi[zero] = 0.0
        if zero.any() and others.shape[1]:
            missing = -others.T @ psi
            psi[zero] = np.clip(np.linalg.lstsq(others[zero].T, missing, rcond=None)[0], tau - 1.0, tau)
        apart = column
        if others.shape[1]:
            apart = column - others @ np.linalg.lstsq(others, column, rcond=None)[0]
        return float(apart @ psi) / math.sqrt(tau * (1.0 - tau) * float(apart @ apart))


def few_rows(loss: Loss, n: int, residual_zeros: int, p: int) -> str:
    """Why the standard error of a quantile of clean rows is in doubt; "" where it is not."""
    up, down = loss.constants
    tail = n * min(up, down) / (up + down)
    if residual_zeros > max(p, 0.05 * n):
        return f"{residual_zeros} of {n} rows lie exactly on the fit, so there is no density to estimate"
    if tail < FEW:
        return f"{tail:.0f} rows in the smaller tail, so the density there is hardly known"
    return ""
