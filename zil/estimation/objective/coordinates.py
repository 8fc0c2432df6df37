"""Standardised coordinates of the parameters: results do not depend on the units of a column."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from zil._validate import FloatArray
from zil.estimation.objective.index import IndexObjective


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
    features = rows.features
    weights = None if rows.weights is None else np.abs(rows.weights)
    total = float(features.shape[1] if weights is None else weights.sum()) or 1.0

    def mean(values: FloatArray) -> FloatArray:
        return np.asarray((values.sum(axis=-1) if weights is None else values @ weights) / total)

    centre = mean(features) if objective.intercept else np.zeros(len(features))
    spread = np.empty(len(features))
    for j, column in enumerate(features):
        peak = float(np.abs(column - centre[j]).max(initial=0.0)) or 1.0  # squares of 1e-200 would vanish
        spread[j] = peak * math.sqrt(max(float(mean(((column - centre[j]) / peak) ** 2)), 0.0))
    spread[spread == 0.0] = 1.0
    p = objective.n_params
    matrix = np.zeros((p, p))
    one = int(objective.intercept)
    matrix[range(one, p), range(one, p)] = 1.0 / spread
    if one:
        matrix[0, 0] = 1.0
        matrix[0, 1:] = -centre / spread
    unit = 1.0
    if not objective.loss.classifier and rows.response is not None and objective.loss.residual(rows.response):
        response = objective.loss.target(rows.response)
        middle = float(mean(response)) if objective.intercept else 0.0
        unit = math.sqrt(max(float(mean((response - middle) ** 2)), 0.0)) or abs(middle) or 1.0
    return Coordinates(matrix, unit)
