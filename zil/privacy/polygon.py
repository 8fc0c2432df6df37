"""A trade-off curve given by finitely many tests: the chords between their error pairs."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from zil._validate import FloatArray
from zil.privacy.curves import Curve


class Polygon(Curve):
    """Convex polygon through vertices, ``alpha`` ascending from 0 and ``beta`` descending to 0.

    Parameters
    ----------
    alpha, power : (n,) arrays
        Vertices as type I error and ``1 - beta``; the complement keeps its digits where beta is near 1.
    beta : (n,) array
        ``1 - power`` with the digits it has.
    """

    def __init__(self, alpha: FloatArray, power: FloatArray, beta: FloatArray) -> None:
        self.alpha, self.power, self.vertex_beta = alpha, power, beta

    @functools.cached_property
    def log_slope(self) -> FloatArray:
        """Log of minus the slope of each edge, descending; from the complement where beta is near 1."""
        drop = np.where(self.vertex_beta[:-1] > 0.5, np.diff(self.power), -np.diff(self.vertex_beta))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(drop) - np.log(np.diff(self.alpha)), dtype=np.float64)

    def beta(self, alpha: FloatArray, rest: FloatArray) -> FloatArray:
        result: FloatArray = np.interp(alpha, self.alpha, self.vertex_beta)
        return result

    def _vertex_delta(self, vertex: NDArray[np.intp], epsilon: FloatArray) -> FloatArray:
        alpha, power = self.alpha[vertex], self.power[vertex]
        with np.errstate(over="ignore", invalid="ignore"):
            cost = np.where(alpha > 0.0, np.exp(epsilon + np.log(np.maximum(alpha, 1e-320))), 0.0)
        return np.asarray(np.maximum(power - cost, 0.0), dtype=np.float64)

    def delta(self, epsilon: FloatArray) -> FloatArray:
        # the touching vertex is where the slope passes exp(epsilon)
        vertex = np.searchsorted(-self.log_slope, -epsilon, side="left")
        return self._vertex_delta(vertex, epsilon)

    def exceeds(self, epsilon: FloatArray) -> FloatArray:
        result: FloatArray = self.power[np.searchsorted(-self.log_slope, -epsilon, side="right")]
        return result

    def epsilon(self, delta: FloatArray) -> FloatArray:
        slopes = self.log_slope[np.isfinite(self.log_slope)]
        at_slope = self.delta(slopes)  # ascending with falling slope
        index = np.searchsorted(at_slope, delta, side="right")
        # beyond the last passed slope the touching vertex is the one before it
        ceiling = np.where(index > 0, slopes[np.maximum(index - 1, 0)], math.inf)
        vertex = np.searchsorted(-self.log_slope, -np.minimum(ceiling, 1e308), side="right")
        alpha, gain = self.alpha[vertex], self.power[vertex] - delta
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(gain > 0.0, np.log(np.maximum(gain, 1e-320)) - np.log(alpha), -math.inf)
        value = np.where(np.isfinite(ceiling), np.minimum(value, ceiling), value)
        return np.where(delta < self.power[0], math.inf, np.maximum(value, 0.0))

    def gaussian_mu(self) -> float:
        if self.power[0] > 0.0:
            return math.inf
        with np.errstate(divide="ignore"):
            gap = special.ndtri_exp(np.log(self.power[1:-1])) - special.ndtri_exp(np.log(self.alpha[1:-1]))
        # a chord between two points above a convex curve is above it: the vertices decide
        return float(max(0.0, gap.max())) if gap.size else math.inf
