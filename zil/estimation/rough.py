"""Objectives with kinks at unknown places: a user's ``Custom`` loss with ``kinks=True``.

Only values and one-sided gradients are to be had, so what a kernel does for a known kink is done in the space of
parameters: value and gradient are averaged over offsets of a few standard errors, the curvature is the regression of
the gradient on the offsets (induced smoothing: Brown and Wang, Biometrika 92, 2005).  Newton on averages over
shrinking offsets leads near a minimum; the rest is direct search.

Direct search: around the best point the ends of a random orthogonal frame are tried; a lower one is moved to and the
frame grows, else it shrinks.  As the frames are dense among all directions, the limit has no direction of descent
(mesh adaptive direct search: Audet and Dennis, SIAM Journal on Optimization 17, 2006); a search along coordinates or
gradients alone can stop on a crease.  What is claimed at the end is what is tested there: no lower point at some
dozens of fresh directions and a few radii, the smallest a hundredth of a standard error.

Design: a loss that says where its kinks are gets the exact activeset.py instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from zil._validate import FloatArray
from zil.estimation.rowwise import RowObjective

# Offsets: frames of different size, as multiples of the steps; their mean square is 1.
SIZES = np.sqrt(np.array([0.3, 0.7, 1.2, 1.8]))
# Steps: standard errors times n^(1/6), the rate of Hall and Sheather's kernel; the factor makes them as wide as
# that kernel for a median.
WIDE = 1.2
# Direct search: radii as a share of the steps (first, and smallest), and the test at the end.
FIRST, LAST = 0.25, 3e-3
MAX_FRAMES = 2000
DIRECTIONS, RADII = 12, (1.0, 10.0)


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
        shared = {field.name: getattr(objective, field.name) for field in fields(RowObjective)}
        return cls(**shared, offsets=steps)

    def _points(self) -> FloatArray:
        assert self.offsets is not None
        p = len(self.offsets)
        stream = np.random.Generator(np.random.Philox(0))
        return np.concatenate([size * np.sqrt(p) * _frame(stream, p) for size in SIZES]) * self.offsets

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
    the gradient was made small, so the step must not be below the sampling error (as ``inference.kernel_reach``).
    """
    steps = start_steps(theta)
    scores = objective.scores(theta)
    meat = scores.T @ scores / len(scores) ** 2
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


def descend(
    value: Callable[[FloatArray], float], theta: FloatArray, steps: FloatArray
) -> tuple[FloatArray, float, int, bool]:
    """Direct search from ``theta`` down to a local minimum on the scale of ``LAST * steps``.

    Parameters
    ----------
    value : callable of (p,)
        May be infinite.
    theta : (p,) array
    steps : (p,) array
        Natural size of a change of each parameter.

    Returns
    -------
    theta, value, frames, settled
    """
    stream = np.random.Generator(np.random.Philox(0))
    p = len(theta)
    low = value(theta)
    radius, frames = FIRST, 0
    while frames < MAX_FRAMES:
        frames += 1
        if radius >= LAST:
            points = theta + radius * steps * _frame(stream, p)
        else:  # the test
            draws = stream.standard_normal((len(RADII) * DIRECTIONS * p, p))
            draws *= (np.repeat(RADII, DIRECTIONS * p) / np.linalg.norm(draws, axis=1))[:, None]
            points = theta + LAST * steps * draws
        for point in points:
            trial = value(point)
            if trial < low:
                move = point - theta
                theta, low = point, trial
                further = theta + move  # as long as it goes down this way
                while (trial := value(further)) < low:
                    theta, low = further, trial
                    move = 2.0 * move
                    further = theta + move
                radius = min(2.0 * max(radius, LAST), FIRST)
                break
        else:
            if radius < LAST:
                return theta, low, frames, True
            radius *= 0.5
    return theta, low, frames, False


def _frame(stream: np.random.Generator, p: int) -> FloatArray:
    """Both ends of p random orthogonal directions, shape (2 p, p)."""
    frame = np.linalg.qr(stream.standard_normal((p, p)))[0].T
    return np.concatenate([frame, -frame])
