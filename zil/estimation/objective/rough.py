"""Objectives with kinks at unknown places: a user's ``Custom`` loss with ``kinks=True``.

Only values and one-sided gradients are to be had, so what a kernel does for a known kink is done in the space of
parameters: value and gradient are averaged over offsets of a few standard errors, the curvature is the regression of
the gradient on the offsets (induced smoothing: Brown and Wang, Biometrika 92, 2005).  Newton on averages over
shrinking offsets leads near a minimum; the rest is direct search (solvers/directsearch.py).

Design: a loss that says where its kinks are gets the exact activeset.py instead.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from zil._validate import FloatArray
from zil.estimation.objective.rowwise import RowObjective

# Offsets: frames of different size, as multiples of the steps; their mean square is 1.
SIZES = np.sqrt(np.array([0.3, 0.7, 1.2, 1.8]))
# Steps: standard errors times n^(1/6), the rate of Hall and Sheather's kernel; the factor makes them as wide as
# that kernel for a median.
WIDE = 1.2


@dataclass(frozen=True)
class RoughObjective(RowObjective):
    """A ``RowObjective`` whose curvature is taken over a few standard errors."""

    def hessian(self, theta: FloatArray) -> FloatArray:
        return curvature(self, np.ascontiguousarray(theta, dtype=np.float64))[0]


@dataclass(frozen=True)
class Averaged(RowObjective):
    """The mean of an objective over offsets, ``mean of f(theta + steps * u)``.

    Attributes
    ----------
    offsets : (p,) array
        The steps; the directions u are fixed.
    """

    offsets: FloatArray | None = None

    @classmethod
    def of(cls, objective: RowObjective, steps: FloatArray) -> Averaged:
        shared = {field.name: getattr(objective, field.name) for field in fields(RowObjective) if field.init}
        return cls(**shared, offsets=steps)

    def _points(self) -> FloatArray:
        assert self.offsets is not None
        p = len(self.offsets)
        stream = np.random.Generator(np.random.Philox(0))
        return np.concatenate([size * np.sqrt(p) * frame(stream, p) for size in SIZES]) * self.offsets

    def value_gradient(self, theta: FloatArray) -> tuple[float, FloatArray]:
        found = [super(Averaged, self).value_gradient(theta + move) for move in self._points()]
        return float(np.mean([value for value, _ in found])), np.mean([gradient for _, gradient in found], axis=0)

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Regression of the gradient on the offsets, made symmetric; their second moments are diagonal."""
        assert self.offsets is not None
        points = self._points()
        gradients = np.array([super(Averaged, self).value_gradient(theta + move)[1] for move in points])
        slope = gradients.T @ points / len(points) / self.offsets**2
        return np.asarray(0.5 * (slope + slope.T))


def curvature(objective: RowObjective, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Curvature over a few standard errors, shape (p, p), and the steps it was taken over, (p,).

    At kinks the limit of small steps is of no use: it measures how many kinks lie near theta.  An estimate sits where
    the gradient was made small, so the step must not be below the sampling error (as ``covariance.kernel_reach``).
    """
    steps = start_steps(theta)
    meat = objective.meat(theta, penalised=False) / objective.n_rows
    wide = WIDE * objective.n_rows ** (1.0 / 6.0)
    for _ in range(4):
        hessian = Averaged.of(objective, steps).hessian(theta)
        values, vectors = np.linalg.eigh(hessian) if np.isfinite(hessian).all() else (np.zeros(1), hessian)
        if values[0] <= 0.0:
            break
        inverse = (vectors / values) @ vectors.T
        new = wide * np.sqrt(np.diag(inverse @ meat @ inverse))
        settled = bool((np.abs(new - steps) <= 0.2 * steps).all())
        steps = np.clip(new, 1e-3 * steps, 3.0 * steps)
        if settled:
            break
    return hessian, steps


def start_steps(theta: FloatArray) -> FloatArray:
    """Steps before anything is known."""
    return np.asarray(0.1 * np.maximum(1.0, np.abs(theta)))


def frame(stream: np.random.Generator, p: int) -> FloatArray:
    """Both ends of p random orthogonal directions, shape (2 p, p)."""
    directions = np.linalg.qr(stream.standard_normal((p, p)))[0].T
    return np.concatenate([directions, -directions])
