"""Standardised coordinates of the parameters: results do not depend on the units of a column."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zil._validate import FloatArray
from zil.estimation.losses.base import Loss
from zil.estimation.objective.index import IndexObjective
from zil.estimation.rows import Rows


@dataclass(frozen=True)
class Coordinates:
    """``theta = matrix @ z``: columns centred (with an intercept) and of unit standard deviation.

    ``unit`` is the natural size of an index: 1 for margins, the spread of the response for residuals.
    """

    matrix: FloatArray
    unit: float

    def theta(self, z: FloatArray) -> FloatArray:
        return np.asarray(self.matrix @ z)

    def z(self, theta: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.solve(self.matrix, theta))


def coordinates(objective: IndexObjective) -> Coordinates:
    """Coordinates from the first data set of the objective."""
    if objective.loss.free:
        return Coordinates(np.eye(objective.n_params), 1.0)
    rows = objective.parts[0].rows
    loss, one = objective.loss, int(objective.intercept)
    d = len(rows.features)
    moments = rows.moments(objective.n_threads)
    if moments.sound and (rows.weights is None or rows.index is None):
        centre = moments.mean[:d] if one else np.zeros(d)
        spread = np.sqrt(np.diag(moments.covariance)[:d] + (0.0 if one else moments.mean[:d] ** 2))
    else:
        centre, spread = _centre_spread(rows, bool(one))
    p = objective.n_params
    matrix = np.zeros((p, p))
    matrix[range(one, p), range(one, p)] = 1.0 / spread
    if one:
        matrix[0, 0] = 1.0
        matrix[0, 1:] = -centre / spread
    if loss.classifier or rows.response is None or not loss.residual(rows.response):
        return Coordinates(matrix, 1.0)
    if moments.sound and (rows.weights is None or rows.index is None) and type(loss).target is Loss.target:
        middle = float(moments.mean[d]) if one else 0.0
        square = float(moments.covariance[d, d]) + (0.0 if one else float(moments.mean[d]) ** 2)
    else:
        response, share = loss.target(rows.response), _share(rows)
        middle = float(response @ share) if one else 0.0
        square = max(float((response - middle) ** 2 @ share), 0.0)
    return Coordinates(matrix, math.sqrt(square) or abs(middle) or 1.0)


def _share(rows: Rows) -> FloatArray:
    """Weights of the rows that sum to 1; negative ones (a part may carry them) count by their size."""
    n = rows.features.shape[1]
    weights = np.ones(n) if rows.weights is None else np.abs(rows.weights)
    return np.asarray(weights / (float(weights.sum()) or 1.0))


def _centre_spread(rows: Rows, intercept: bool) -> tuple[FloatArray, FloatArray]:
    """Means and spreads column by column, for columns whose squares leave the range of numbers."""
    share = _share(rows)
    centre = np.asarray(rows.features @ share) if intercept else np.zeros(len(rows.features))
    spread = np.empty(len(centre))
    for j, column in enumerate(rows.features):
        peak = float(np.abs(column - centre[j]).max(initial=0.0)) or 1.0  # squares of 1e-200 would vanish
        spread[j] = peak * math.sqrt(max(float(((column - centre[j]) / peak) ** 2 @ share), 0.0))
    spread[spread == 0.0] = 1.0
    return centre, spread
