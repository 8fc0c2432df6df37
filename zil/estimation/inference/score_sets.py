"""Confidence sets from inverting a score test, for scores that are linear in the parameters (least squares).

Under noise the curvature of least squares, the variance of the originals, is the difference of two large numbers.  A
Wald interval takes it for known and is then too short or in the wrong place.  The score test does not: at a hypothesis
``theta`` the mean score has mean zero and a variance that can be estimated, however badly the curvature is known.  The
set of hypotheses that it does not refuse covers as it should; where the data cannot tell the curvature from zero it is
unbounded, and that is the answer (Anderson and Rubin's idea for weak instruments, here with joint row scores).

Row scores ``g_i(t) = G_i t`` with ``t = (z, 1)``, ``z`` standardised coordinates around the estimate:

    S(t) = n (Gbar t)' A(t)^-1 (Gbar t),   A(t) = sum_ab t_a t_b cov(G_a, G_b)
    T_j(b) = S where the j-th parameter is b and the others are what generalised least squares gives under it
    F_j    = the same for directions (last entry 0, j-th parameter 1): T_j at infinity

Generalised least squares is repeated with the variance at its own result, and the smallest S on the way counts.  The
nuisance parameters are then estimated efficiently under the hypothesis, so ``T_j(b)`` is compared with a chi-square of
one degree of freedom; ``F_j`` at most that quantile: unbounded.  (The exact minimum over the nuisance parameters also
goes to where *they* are infinite: then one coefficient that is not identified makes the intervals of all others
unbounded.  Simulated coverage does not ask for that: docs/coverage.md.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from zil._validate import FloatArray

# Steps of generalised least squares for the nuisance parameters.
STEPS = 6
# Hypotheses that are tried on each side: multiples of the Wald error from a twentieth to a million.
PLACES = np.concatenate([np.linspace(0.05, 4.0, 32)[:-1], np.geomspace(4.0, 1e6, 49)])
# Strengths F below which a coefficient is unbounded at 95 %, weakly known, and its Wald error too small.
UNBOUNDED, WEAK, WALD = float(stats.chi2.ppf(0.95, 1)), 10.0, 50.0
# Numbers held at once for the row scores.
MAX_ENTRIES = 120_000_000


@dataclass(frozen=True)
class ScoreSets:
    """What the sets need: sums over rows, no row.

    Attributes
    ----------
    n : int
    mean : (p, p + 1) array
        Mean of ``G_i``.
    covariance : (p + 1, p, p + 1, p) array
        Covariance of the columns of ``G_i``.
    matrix : (p, p) array
        From ``z`` to the user's parameters, relative to the estimate.
    center : (p,) array
        The estimate.
    errors : (p,) array
        Wald standard errors: the yardstick of the search.
    """

    n: int
    mean: FloatArray
    covariance: FloatArray
    matrix: FloatArray
    center: FloatArray
    errors: FloatArray

    def statistic(self, t: FloatArray) -> FloatArray:
        """S at each row of t, shape (k, p + 1)."""
        g = t @ self.mean.T
        return np.asarray(self.n * np.einsum("ka,ka->k", g, np.linalg.solve(self._variance(t), g[..., None])[..., 0]))

    def _variance(self, t: FloatArray) -> FloatArray:
        spread = np.einsum("ka,aibj,kb->kij", t, self.covariance, t, optimize=True)
        # never singular: a direction without variance would have to be without score
        ridge = 1e-13 * np.trace(spread, axis1=1, axis2=2) / spread.shape[1] + 1e-300
        return np.asarray(spread + ridge[:, None, None] * np.eye(spread.shape[1]))

    def lowest(self, rows: FloatArray, fixed: FloatArray, direction: bool = False) -> FloatArray:
        """S where ``rows @ z = fixed[k]`` and the rest of z is least squares under it, for each k; shape (k,).

        ``rows`` (r, p), ``fixed`` (k, r).  ``direction``: the last entry of t is 0, not 1.
        """
        k, p = len(fixed), self.mean.shape[0]
        basis, triangle = np.linalg.qr(rows.T, mode="complete")
        r = len(rows)
        shortest = np.linalg.solve(triangle[:r].T, fixed.T).T @ basis[:, :r].T
        t = np.column_stack([shortest, np.full(k, 0.0 if direction else 1.0)])
        if r == p:
            return self.statistic(t)
        free = np.vstack([basis[:, r:], np.zeros((1, p - r))])
        best = np.full(k, np.inf)
        t = self._least_squares(t, free, self._variance(np.broadcast_to(np.eye(p + 1)[p], t.shape)))
        for _ in range(STEPS):
            best = np.minimum(best, self.statistic(t))
            t = self._least_squares(t, free, self._variance(t))
        return np.asarray(best)

    def _least_squares(self, t: FloatArray, free: FloatArray, variance: FloatArray) -> FloatArray:
        slope = self.mean @ free
        solved = np.linalg.solve(variance, np.broadcast_to(slope, (len(t), *slope.shape)))
        left = np.einsum("ia,kib->kab", slope, solved)
        right = np.einsum("kia,ki->ka", solved, t @ self.mean.T)
        left = left + 1e-14 * np.trace(left, axis1=1, axis2=2)[:, None, None] * np.eye(free.shape[1])
        return np.asarray(t - np.linalg.solve(left, right[..., None])[..., 0] @ free.T)

    def _row(self, j: int) -> FloatArray:
        return np.asarray(self.matrix[j : j + 1] / self.errors[j])

    def at(self, j: int, values: FloatArray) -> FloatArray:
        """``T_j`` at values of the j-th parameter."""
        return self.lowest(self._row(j), ((np.asarray(values) - self.center[j]) / self.errors[j])[:, None])

    def at_infinity(self, j: int) -> float:
        """``F_j``: how surely the data tell the j-th parameter from infinity."""
        return float(self.lowest(self._row(j), np.ones((1, 1)), direction=True)[0])

    def strength(self) -> FloatArray:
        """``F_j`` of every parameter, shape (p,)."""
        return np.array([self.at_infinity(j) for j in range(len(self.center))])

    def interval(self, j: int, times: float) -> tuple[float, float]:
        """The smallest interval that holds the set ``T_j <= times^2``; infinite where the set is unbounded."""
        quantile = times * times
        if self.at_infinity(j) <= quantile:
            return -math.inf, math.inf
        low, high = (self._end(j, side, quantile) for side in (-1.0, 1.0))
        return low, high

    def _end(self, j: int, side: float, quantile: float) -> float:
        row = self._row(j)

        def refused(steps: FloatArray) -> NDArray[np.bool_]:
            return np.asarray(self.lowest(row, (side * steps)[:, None]) > quantile)

        inside = np.flatnonzero(~refused(PLACES))
        if len(inside) and inside[-1] == len(PLACES) - 1:
            return side * math.inf
        low = PLACES[inside[-1]] if len(inside) else 0.0
        high = PLACES[inside[-1] + 1] if len(inside) else PLACES[0]
        for _ in range(4):  # sixteen places each time: four digits, then eight
            steps = np.linspace(low, high, 17)
            held = np.flatnonzero(~refused(steps[1:-1]))
            last = held[-1] + 1 if len(held) else 0
            low, high = steps[last], steps[last + 1]
        return float(self.center[j] + side * 0.5 * (low + high) * self.errors[j])

    def pvalues(self) -> FloatArray:
        """p-values of ``theta_j = 0``: the test refuses only what it could refuse at infinity as well."""
        found = [min(float(self.at(j, np.zeros(1))[0]), self.at_infinity(j)) for j in range(len(self.center))]
        return np.asarray(stats.chi2.sf(found, 1))

    def test(self, R: FloatArray, q: FloatArray) -> float:
        """S under ``R theta = q``, a chi-square of as many degrees of freedom as R has rows.

        For one row it is not larger than at infinity, as in ``pvalues``.
        """
        rows = R @ self.matrix
        size = np.linalg.norm(rows, axis=1)
        rows = rows / size[:, None]
        found = float(self.lowest(rows, ((q - R @ self.center) / size)[None])[0])
        return min(found, float(self.lowest(rows, np.ones((1, 1)), direction=True)[0])) if len(R) == 1 else found


def score_sets(
    scores: Callable[[FloatArray], FloatArray],
    theta: FloatArray,
    natural: FloatArray,
    unit: float,
    back: FloatArray,
    covariance: FloatArray,
) -> ScoreSets | None:
    """Sums of linear row scores; None where the row scores at all points would not fit in memory comfortably.

    Parameters
    ----------
    scores : function
        Row scores (n, p) at a theta, linear in it.
    theta, covariance
        The estimate and its covariance, in the coordinates of the fit.
    natural, unit
        Standardised coordinates (``Coordinates``).
    back : (p, p) array
        From the coordinates of the fit to the user's.
    """
    p = len(theta)
    at_estimate = scores(theta) @ natural
    n = len(at_estimate)
    if n * p * (p + 1) > MAX_ENTRIES:
        return None
    step = unit * natural
    columns = [scores(theta + step[:, j]) @ natural - at_estimate for j in range(p)]
    stacked = np.concatenate([*columns, at_estimate], axis=1)
    mean = stacked.mean(axis=0)
    stacked -= mean
    spread = (stacked.T @ stacked / n).reshape(p + 1, p, p + 1, p)
    errors = np.sqrt(np.diag(back @ covariance @ back.T))
    return ScoreSets(n, mean.reshape(p + 1, p).T, spread, back @ step, back @ theta, errors)


def strength_note(names: Sequence[str], strength: FloatArray) -> str:
    """One plain sentence on how well the data know each coefficient; "" where nothing needs to be said."""

    def named(low: float, high: float) -> str:
        return ", ".join(name for name, f in zip(names, strength, strict=True) if low < f <= high)

    told = []
    if lost := named(-math.inf, UNBOUNDED):
        told.append(f"any value of {lost} agrees with these data, because the noise hides how the columns vary")
    if weak := named(UNBOUNDED, WEAK):
        told.append(f"{weak} is known only roughly")
    if doubtful := named(WEAK, WALD):
        told.append(f"the standard error of {doubtful} is too small")
    if not told:
        return ""
    return (
        "WEAK for this noise: "
        + "; ".join(told)
        + ". Read the intervals, which allow for it; more rows or less noise would help"
    )
