"""The comparator sCL: smoothed corrected quantile loss (Wang, Stefanski, Zhu 2012), Laplace form.

The check loss is replaced by ``phi_h(t) = t (tau - 1 + G(t/h))``, G the normal distribution function, and the
twice differentiable ``phi_h`` takes the SL correction on the doubly randomised rows (mathematics 4.5):

    rho*(t, h) = phi_h(t) - (Q/2) { (2/h) K(t/h) + (t/h^2) K'(t/h) },   Q = |(scale_y, scale_j theta_j)|^2

It is kept for comparison: it has a bias from h, a variance that grows as h shrinks, and needs the bandwidth below.

Bandwidth by the SIMEX idea: add one and two further layers of noise to X2.  Choose ``h1`` so that sCL on one layer
is nearest to the plain quantile fit on X2, ``h2`` so that sCL on two layers is nearest to the plain fit on one; the
same step back from one layer to none gives ``h = h1^2/h2``.  The search is over a grid of multiples of the residual
spread, distances averaged over a few draws of the layers.  Below the grid's low end the objective has many local
minima with errors that look small and are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zil import _validate
from zil._validate import FloatArray
from zil.estimation.losses.base import Loss
from zil.estimation.losses.compiled import Quantile
from zil.estimation.objective.build import Second, doubled
from zil.estimation.objective.coordinates import coordinates
from zil.estimation.objective.index import IndexObjective
from zil.estimation.objective.parts import Part
from zil.estimation.rows import Rows
from zil.estimation.sample import Sample
from zil.estimation.solvers.minimise import minimise
from zil.privacy.doubling import double

# Bandwidths tried, in units of the residual spread on X2.
GRID = (0.4, 0.54, 0.73, 0.99, 1.33, 1.8)
# Rows and draws of the layers used for the choice.
MAX_ROWS, DRAWS = 5000, 2
# The public second noise has its first copies in other uses.
FIRST_COPY = 1000


@dataclass(frozen=True)
class SmoothCheck(Loss):
    """``t (tau - 1 + G(t/h))``, ``t = y - eta``: the check loss with its kink rounded off over a width h."""

    tau: float = 0.5
    h: float = 1.0
    block: ClassVar[str] = "soft_check"
    smooth: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _validate.positive("h", self.h)

    @property
    def constants(self) -> tuple[float, float]:
        return (self.tau, self.h)


@dataclass(frozen=True)
class _Layers:
    """X2 with further layers of the same noise, and the two kinds of fit on each."""

    tau: float
    rows: tuple[Rows, ...]
    noise: FloatArray
    noise_response: float
    intercept: bool

    def objective(self, layer: int, h: float | None) -> IndexObjective:
        """The plain quantile loss (h None), or sCL at bandwidth h."""
        rows = self.rows[layer]
        n = rows.features.shape[1]
        total = float(n if rows.weights is None else rows.weights.sum())
        shared = (self.noise, self.noise_response, self.intercept, n, total)
        if h is None:
            return IndexObjective(Quantile(self.tau), (Part(rows, a=1.0),), *shared)
        return IndexObjective(SmoothCheck(self.tau, h), (Part(rows, a=1.0, c=-0.5),), *shared, noise_share=1.0)

    def distance(self, layer: int, target: FloatArray, h: float) -> float:
        """How far sCL on the layer is from the target, in standardised coefficients; inf if it has no minimum."""
        objective = self.objective(layer, h)
        solution = minimise(objective, start=target)
        if not solution.converged:
            return math.inf
        return float(np.linalg.norm(coordinates(objective).z(solution.theta - target)))


def bandwidth(
    loss: Quantile, second: Rows, scale: FloatArray, scale_y: float, intercept: bool, rng: object = None
) -> float:
    """The SIMEX-type bandwidth, in units of the response.

    Parameters
    ----------
    second : Rows
        X2.
    scale, scale_y : noise scales of the features and of the response
    """
    response = second.response
    assert response is not None
    weights = None if second.weights is None else second.weights[:MAX_ROWS]
    noise = np.concatenate([np.zeros(int(intercept)), scale**2])
    x2 = np.ascontiguousarray(np.vstack([second.features[:, :MAX_ROWS], response[:MAX_ROWS]]).T)
    scales = np.append(scale, scale_y)
    gaps = np.zeros((2, len(GRID)))
    grid: list[float] = []
    for draw in range(DRAWS):
        stack = [x2]
        for layer in (1, 2):
            copy = FIRST_COPY + 2 * draw + layer
            stack.append(double(stack[-1], 1.0, scales, first_copy=copy, rng=rng)[0])
        layers = tuple(
            Rows(np.ascontiguousarray(rows[:, :-1].T), np.ascontiguousarray(rows[:, -1]), weights) for rows in stack
        )
        made = _Layers(loss.tau, layers, noise, scale_y**2, intercept)
        plain = [minimise(made.objective(layer, None), exact=False).theta for layer in (0, 1)]
        if not grid:
            objective = made.objective(0, None)
            residual = objective.argument(objective.parts[0], plain[0])[0]
            low, high = np.quantile(residual, [0.25, 0.75])
            spread = float(high - low) / 1.349 or float(np.std(residual)) or 1.0
            grid = [spread * h for h in GRID]
        for layer in (0, 1):
            gaps[layer] += [made.distance(layer + 1, plain[layer], h) for h in grid]
    if not np.isfinite(gaps).any(axis=1).all():  # no bandwidth gave a minimum: the widest has the least variance
        return grid[-1]
    first, last = (grid[int(np.argmin(row))] for row in gaps)
    return min(max(first * first / last, grid[0]), grid[-1])


def prepared(
    loss: Loss, sample: Sample, second: Second | None, copies: int, intercept: bool, rng: Any, n_threads: int | None
) -> tuple[SmoothCheck, Second]:
    """The loss of method "scl" for these doubly randomised rows (drawn here if they are None), and the rows."""
    assert isinstance(loss, Quantile)
    second = doubled(sample, copies, rng, n_threads) if second is None else second
    x2, y2 = second[0]
    rows = Rows(np.ascontiguousarray(x2.T), np.ascontiguousarray(y2), sample.weights)
    return SmoothCheck(loss.tau, bandwidth(loss, rows, sample.scale, sample.scale_y, intercept, rng)), second
