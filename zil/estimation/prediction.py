"""Predicted variances of corrected fits: joint scores of a pilot's rows, the zero draw integrated out.

The scores of all truncated versions are evaluated at the pilot's own estimate, on rows without noise (stratum 0) and
on the same rows with noise (stratum 1); moments are ``z E0 + (1 - z) E1``.  The noise has the same W and N for every
mechanism, so predictions are smooth in zero_prob (beyond the paper).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse, special

from zil._validate import FloatArray
from zil.estimation import losses
from zil.estimation.pilot import Pilot
from zil.privacy.noise import Noise
from zil.release.mechanism import Mechanism

LEVELS = (2.5, 1.6, 1.25, 1.0)  # truncation, multiples of the box; and none
COPIES = 8  # second noises of a truncated version, as `fit` draws
CUTOFF = 0.05  # least eigenvalue of standardised differences that the regression uses

Scores = Callable[[FloatArray], FloatArray]  # theta -> (rows, p)
Versions = Callable[[FloatArray], list[FloatArray]]  # the same for each version


@dataclass(frozen=True)
class Draw:
    """Noise of unit scale for the noised columns: one first noise, several second ones; the same at every point."""

    first: FloatArray  # (N, noised)
    second: FloatArray  # (copies, N, noised)
    laplace: FloatArray  # (N, noised), independent, unit variance

    @classmethod
    def of(cls, sketch: Pilot, rng: np.random.Generator) -> Draw:
        n, d = len(sketch.features), len(sketch.noised)

        def noise(*shape: int) -> FloatArray:
            return np.asarray(np.sqrt(rng.exponential(size=(*shape, 1))) * rng.normal(size=(*shape, d)))

        return cls(noise(n), noise(COPIES, n), rng.laplace(size=(n, d)) / math.sqrt(2.0))


def moved(sketch: Pilot, rows: FloatArray, noise: FloatArray) -> FloatArray:
    result = rows.copy()
    result[:, sketch.noised] += noise
    return result


def _reach(sketch: Pilot, rows: FloatArray) -> FloatArray:
    """Smallest multiple of the box that holds each row."""
    low, high = sketch.box.T
    with np.errstate(divide="ignore", invalid="ignore"):
        result = np.abs(rows[:, sketch.noised] - 0.5 * (low + high)) / (0.5 * (high - low))
    return np.asarray(result.max(axis=1))


def predict(sketch: Pilot, draw: Draw, mechanism: Mechanism) -> tuple[FloatArray, float]:
    """``V^-1 A V^-1`` of the best method (p, p), and kappa, for one mechanism."""
    z = mechanism.zero_prob
    scale = mechanism.scale[sketch.order]
    every = np.zeros(len(sketch.centre) + 1)
    every[sketch.noised] = scale
    clean = sketch.table
    noisy = moved(sketch, clean, scale * draw.first)
    used = every if len(sketch.centre) in sketch.noised else every[:-1]
    law = Noise(z, used)
    if z == 0.0:
        return combined(sketch, [(1.0, alone(sketch.scores(noisy, law, "sl")))])
    strata = []
    for share, rows in ((z, clean), (1.0 - z, noisy)):
        plain = sketch.scores(rows, law, "rb")
        doubled = [moved(sketch, rows, math.sqrt(z) * scale * second) for second in draw.second]
        strata.append((share, _versions(sketch, plain, rows, doubled, z)))
    return combined(sketch, strata)


def alone(scores: Scores) -> Versions:
    return lambda theta: [scores(theta)]


def _versions(sketch: Pilot, plain: Scores, rows: FloatArray, doubled: Sequence[FloatArray], z: float) -> Versions:
    """RB, then DR of the loss truncated outside each level of the box; only rows inside the largest are looked at."""
    n = len(rows)
    stack = np.vstack([rows, *doubled])
    reach = _reach(sketch, stack)
    inside = np.flatnonzero(reach <= LEVELS[0])
    if len(inside) == 0:
        return alone(plain)
    share = np.where(inside < n, 1.0 / z, -(1.0 - z) / (z * len(doubled)))
    place = (inside % n, np.arange(len(inside)))
    adders = [sparse.csr_array((share * (reach[inside] <= k), place), shape=(n, len(inside))) for k in LEVELS]
    response = np.tile(sketch.response, 1 + len(doubled))[inside]
    naive = sketch.scores(stack[inside], None, "naive", response)

    def scores(theta: FloatArray) -> list[FloatArray]:
        each = naive(theta)
        return [plain(theta), *(np.asarray(add @ each) for add in adders)]

    return scores


def combined(sketch: Pilot, strata: Sequence[tuple[float, Versions]]) -> tuple[FloatArray, float]:
    """Variance of the score after regression on the differences between versions, and kappa of that combination."""
    theta, p = sketch.theta, len(sketch.theta)

    def covariance(tables: Sequence[FloatArray]) -> FloatArray:
        weighted = [(share, t) for (share, _), t in zip(strata, tables, strict=True)]
        mean = sum(share * t.mean(axis=0) for share, t in weighted)
        square = sum(share * (t.T @ t) / len(t) for share, t in weighted)
        return np.asarray(square - np.outer(mean, mean))

    def joined(at: FloatArray) -> list[FloatArray]:
        return [np.hstack(versions(at)) for _, versions in strata]

    moments = covariance(joined(theta))
    count = len(moments) // p
    # the base is the version with the least noise; differences from it have mean zero
    parts = [slice(k * p, (k + 1) * p) for k in range(count)]
    noise = [np.log(np.diag(sketch.sandwich(moments[part, part]))).sum() for part in parts]
    base = int(np.argmin(noise))
    swap = np.eye(count)
    swap[:, base] -= 1.0
    swap[base, base] = 1.0
    order = [base, *(k for k in range(count) if k != base)]
    change = np.kron(swap[order], np.eye(p))  # versions to base and differences
    moments = change @ moments @ change.T
    mix = np.zeros((len(moments), p))
    mix[:p] = np.eye(p)
    if count > 1:
        spread = np.sqrt(np.maximum(np.diag(moments)[p:], 0.0))
        unit = np.where(spread > 1e-9 * spread.max(initial=0.0), spread, np.inf)
        gram = moments[p:, p:] / np.outer(unit, unit)
        cross = moments[p:, :p] / unit[:, None]
        mix[p:] = -np.linalg.lstsq(gram, cross, rcond=CUTOFF)[0] / unit[:, None]
    meat = mix.T @ moments @ mix
    to_score = change.T @ mix
    values, vectors = np.linalg.eigh(sketch.hessian)
    kappa = 0.0
    for value, vector in zip(values.tolist(), vectors.T, strict=True):
        v = vector / math.sqrt(value)
        step = sketch.step(v)
        up, down = joined(theta + step * v), joined(theta - step * v)
        turn = to_score @ v / (2.0 * step)
        along = [((a - b) @ turn)[:, None] for a, b in zip(up, down, strict=True)]
        kappa = max(kappa, math.sqrt(max(0.0, float(covariance(along)[0, 0]))))
    return sketch.sandwich(meat), kappa


def laplace_scores(sketch: Pilot, rows: FloatArray, scale: FloatArray) -> Scores:
    """Unbiased scores under independent Laplace noise of the features, standard deviations ``scale`` (d,).

    ``l(x)`` is ``prod_j (1 - c_j D^2)`` applied to the loss of the noised index, ``c_j = (scale_j beta_j)^2/2`` and D
    the
    derivative by the index: with ``e_k`` the elementary symmetric polynomials of the c, ``sum_k (-1)^k e_k D^2k l``.
    Of the squared loss the second derivative is constant; those of the logistic one are polynomials in
    ``p = 1/(1 + exp(-index))`` and free of the response.
    """
    naive = sketch.scores(rows, None, "naive")
    design = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
    squared = isinstance(sketch.loss, losses.Squared)
    curvature = float(sketch.hessian[0, 0])

    def scores(theta: FloatArray) -> FloatArray:
        result = naive(theta)
        beta = theta[1:]
        by_beta = scale**2 * beta  # d c_j/d beta_j
        if squared:
            result = result.copy()
            result[:, 1:] -= curvature * by_beta
            return result
        c = 0.5 * (scale * beta) ** 2
        symmetric = _elementary(c)
        p = special.expit(design @ theta)
        power = np.array([0.0, 1.0, -1.0])  # D^2 l as a polynomial in p
        along, own = np.zeros(len(rows)), np.zeros((len(rows), len(beta)))
        for k in range(1, len(symmetric)):
            sign = -1.0 if k % 2 else 1.0
            even, power = power, _slope(power)
            odd, power = power, _slope(power)
            along += sign * symmetric[k] * np.polynomial.polynomial.polyval(p, odd)
            leave = np.array([_elementary(np.delete(c, j))[k - 1] for j in range(len(c))])
            own += sign * np.outer(np.polynomial.polynomial.polyval(p, even), leave * by_beta)
        result = result + design * along[:, None]
        result[:, 1:] += own
        return np.asarray(result)

    return scores


def _elementary(c: FloatArray) -> FloatArray:
    """Elementary symmetric polynomials e_0 ... e_d of the entries."""
    result = np.array([1.0])
    for value in c.tolist():
        result = np.append(result, 0.0) + value * np.insert(result, 0, 0.0)
    return result


def _slope(polynomial: FloatArray) -> FloatArray:
    """Derivative by the index of a polynomial in p: ``p' = p - p^2``."""
    inner = np.polynomial.polynomial.polyder(polynomial)
    return np.asarray(np.polynomial.polynomial.polymul(inner, [0.0, 1.0, -1.0]))
