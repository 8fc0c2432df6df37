"""The curves behind ``TradeOff``: symmetric convex trade-off functions without an atom.

A curve is the trade-off function ``T`` of two laws P and Q with likelihood ratio L = q/p:
``T(alpha)`` is the smallest type II error of a test of size alpha.  Every curve here is its own
inverse, starts at (0, 1) and ends at (1, 0).  ``TradeOff`` adds the atom of ``zero_prob`` and
checks input; a curve gets clean float64 arrays.

Formulas are written so that nothing cancels: differences of numbers near 1 go through
``expm1``, ``log1p`` or the complement ``rest = 1 - alpha`` that the caller supplies.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import special

from zil._core import tradeoff as kernel
from zil._validate import FloatArray

SQRT2 = math.sqrt(2.0)


def gaussian_mu_at_centre(advantage: float, log_alpha: float) -> float:
    """The mu of the Gaussian curve through the symmetric point (alpha, alpha), alpha = (1 - advantage)/2."""
    if advantage < 0.5:
        return 2.0 * SQRT2 * float(special.erfinv(advantage))
    return -2.0 * float(special.ndtri_exp(log_alpha))


class Curve:
    """What ``TradeOff`` asks of a curve; ``bounds`` is the curve itself where it is a closed form."""

    def beta(self, alpha: FloatArray, rest: FloatArray) -> FloatArray:
        """T(alpha); ``rest`` is ``1 - alpha`` without cancellation."""
        raise NotImplementedError

    def delta(self, epsilon: FloatArray) -> FloatArray:
        """max(1 - T(alpha) - exp(epsilon) alpha), epsilon >= 0."""
        raise NotImplementedError

    def epsilon(self, delta: FloatArray) -> FloatArray:
        """Smallest epsilon >= 0 with ``delta(epsilon) <= delta``; inf where there is none."""
        raise NotImplementedError

    def exceeds(self, epsilon: FloatArray) -> FloatArray:
        """Q(log L >= epsilon), epsilon > 0: ``delta - d delta/d epsilon``, from the left where there is a kink."""
        raise NotImplementedError

    def gaussian_mu(self) -> float:
        """Smallest mu whose Gaussian curve lies below this one; inf if there is none."""
        raise NotImplementedError

    def bounds(self, alpha: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
        value = self.beta(alpha, rest)
        return value, value.copy()


class Perfect(Curve):
    """P = Q: nothing can be told apart, ``T(alpha) = 1 - alpha``."""

    def beta(self, alpha: FloatArray, rest: FloatArray) -> FloatArray:
        return rest.copy()

    def delta(self, epsilon: FloatArray) -> FloatArray:
        return np.zeros_like(epsilon)

    def epsilon(self, delta: FloatArray) -> FloatArray:
        return np.where(delta >= 0.0, 0.0, math.inf)

    def exceeds(self, epsilon: FloatArray) -> FloatArray:
        return np.zeros_like(epsilon)

    def gaussian_mu(self) -> float:
        return 0.0


class LaplaceLine(Curve):
    """One noised column: two Laplace laws at distance ``c`` standard deviations (mathematics of the paper, d = 1).

    ``q = sqrt(2) c``; T is linear, hyperbolic, linear, and the likelihood ratio never leaves [-q, q].
    """

    def __init__(self, c: float) -> None:
        self.q = SQRT2 * c

    def beta(self, alpha: FloatArray, rest: FloatArray) -> FloatArray:
        q = self.q
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            # log(alpha) + q <= -log(2) on the first piece, so the exponential is at most 1/2
            log_alpha = np.log(alpha)
            first = -np.expm1(np.where(alpha > 0.0, log_alpha + q, -math.inf))
            middle = 0.25 * np.exp(-q - log_alpha)
        last = rest * math.exp(-q)
        return np.where(log_alpha < -q - math.log(2.0), first, np.where(alpha <= 0.5, middle, last))

    def delta(self, epsilon: FloatArray) -> FloatArray:
        return -np.expm1(np.minimum(0.0, 0.5 * (epsilon - self.q)))

    def epsilon(self, delta: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.maximum(0.0, self.q + 2.0 * np.log1p(-np.maximum(delta, 0.0)))
        return np.where(delta >= 0.0, value, math.inf)

    def exceeds(self, epsilon: FloatArray) -> FloatArray:
        inside = 1.0 - 0.5 * np.exp(np.minimum(0.0, 0.5 * (epsilon - self.q)))
        return np.where(epsilon <= self.q, inside, 0.0)

    def gaussian_mu(self) -> float:
        # The outer pieces are chords between points of the Gaussian curve's upper side, and on the hyperbola
        # log-concavity of the normal tail puts the binding point at alpha = beta.
        return gaussian_mu_at_centre(-math.expm1(-self.q / 2), -self.q / 2 - math.log(2.0))


class LaplaceLimit(Curve):
    """The limit of many noised columns, a lower bound for every dimension (closed form: beyond the paper).

    With ``m = c/sqrt(2)`` and thresholds written ``log k = sqrt(2) c sinh(log y)``:
    ``alpha = exp(-m y)/(1 + y^2)`` and ``beta`` the same at ``1/y``;
    ``delta(eps) = -expm1(-c^2/(eps + s))``, ``s = sqrt(eps^2 + 2 c^2)``.
    """

    def __init__(self, c: float) -> None:
        self.c = c

    def beta(self, alpha: FloatArray, rest: FloatArray) -> FloatArray:
        shape = np.shape(alpha)
        alpha, rest = (np.ascontiguousarray(values).reshape(-1) for values in (alpha, rest))
        result = np.empty_like(alpha)
        kernel.limit_beta(self.c / SQRT2, alpha, rest, result)
        return result.reshape(shape)

    def delta(self, epsilon: FloatArray) -> FloatArray:
        c = self.c
        # c * (c / sum), so that neither a tiny nor a huge c leaves the range of a double
        with np.errstate(over="ignore"):
            return -np.expm1(-c * (c / (epsilon + np.hypot(epsilon, SQRT2 * c))))

    def epsilon(self, delta: FloatArray) -> FloatArray:
        c = self.c
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = -np.log1p(-np.maximum(delta, 0.0))
            value = np.maximum(0.0, 0.5 * (c - SQRT2 * loss) * ((c + SQRT2 * loss) / loss))
        return np.where(delta > 0.0, np.where(delta < 1.0, value, 0.0), math.inf)

    def exceeds(self, epsilon: FloatArray) -> FloatArray:
        root = np.hypot(epsilon, SQRT2 * self.c)
        # 1 - (1 + t/s)/2 exp(-(s - t)/2), s - t = 2 c^2/(s + t) without cancellation
        gap = self.c * (self.c / (0.5 * root + 0.5 * epsilon))
        return -np.expm1(np.log1p(-0.5 * gap / root) - 0.5 * gap)

    def gaussian_mu(self) -> float:
        return math.inf  # 1 - T(alpha) falls like 1/log(1/alpha)^2, slower than any Gaussian curve


class Gaussian(Curve):
    """N(0, 1) against N(mu, 1): ``T(alpha) = Phi(Phi^-1(1 - alpha) - mu)``."""

    def __init__(self, mu: float) -> None:
        self.mu = mu

    def beta(self, alpha: FloatArray, rest: FloatArray) -> FloatArray:
        quantile = np.where(alpha < rest, -special.ndtri(alpha), special.ndtri(rest))
        value: FloatArray = special.ndtr(quantile - self.mu)
        return value

    def delta(self, epsilon: FloatArray) -> FloatArray:
        mu = self.mu
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            upper = epsilon / mu - 0.5 * mu  # delta = P(N > upper) - exp(epsilon) P(N > upper + mu)
            # the two normal densities agree after the factor exp(epsilon): a difference of Mills ratios
            x = np.clip(upper, 0.0, 1e8)  # the density is 0 long before
            density = np.exp(-0.5 * x * x)
            tail = density * self._mills_drop(x)
            centre = special.ndtr(-upper) - np.exp(epsilon + special.log_ndtr(-upper - mu))
        value = np.where(upper > 0.0, tail, centre)
        exact_at_zero = math.erf(mu / (2.0 * SQRT2))
        return np.where(epsilon == 0.0, exact_at_zero, np.maximum(0.0, value))

    def _mills_drop(self, x: FloatArray) -> FloatArray:
        """(mills(x) - mills(x + mu))/sqrt(2 pi); a short step integrates the derivative, which does not cancel."""
        mu = self.mu
        root = math.sqrt(math.pi / 2.0)
        if mu > 0.5:
            drop = root * (special.erfcx(x / SQRT2) - special.erfcx((x + mu) / SQRT2))
        else:
            nodes, weights = np.polynomial.legendre.leggauss(8)
            z = x[..., None] + 0.5 * mu * (1.0 + nodes)
            drop = 0.5 * mu * ((1.0 - z * root * special.erfcx(z / SQRT2)) @ weights)
        result: FloatArray = drop / math.sqrt(2.0 * math.pi)
        return result

    def epsilon(self, delta: FloatArray) -> FloatArray:
        return solve_epsilon(self.delta, delta)

    def exceeds(self, epsilon: FloatArray) -> FloatArray:
        value: FloatArray = special.ndtr(0.5 * self.mu - epsilon / self.mu)
        return value

    def gaussian_mu(self) -> float:
        return self.mu


class PureEpsilon(Curve):
    """The two lines of (epsilon, 0) indistinguishability."""

    def __init__(self, epsilon: float) -> None:
        self.limit = epsilon

    def beta(self, alpha: FloatArray, rest: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            steep = -np.expm1(np.log(alpha) + self.limit)
        return np.maximum(steep, rest * math.exp(-self.limit))

    def delta(self, epsilon: FloatArray) -> FloatArray:
        return -np.expm1(np.minimum(epsilon - self.limit, 0.0)) / (1.0 + math.exp(-self.limit))

    def epsilon(self, delta: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.limit + np.log1p(-np.minimum(1.0, delta * (1.0 + math.exp(-self.limit))))
        return np.where(delta >= 0.0, np.maximum(0.0, value), math.inf)

    def exceeds(self, epsilon: FloatArray) -> FloatArray:
        return np.where(epsilon <= self.limit, 1.0 / (1.0 + math.exp(-self.limit)), 0.0)

    def gaussian_mu(self) -> float:
        return gaussian_mu_at_centre(math.tanh(self.limit / 2), -self.limit - math.log1p(math.exp(-self.limit)))


def solve_epsilon(delta_of: Callable[[FloatArray], FloatArray], target: FloatArray) -> FloatArray:
    """Smallest epsilon with ``delta_of(epsilon) <= target``, ``delta_of`` decreasing; errs to the large side."""
    low = np.zeros_like(target)
    high = np.ones_like(target)
    wanted = np.where(target > 0.0, target, 1.0)
    for _ in range(1100):
        short = delta_of(high) > wanted
        if not short.any():
            break
        low = np.where(short, high, low)
        high = np.where(short, 2.0 * high, high)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if ((middle <= low) | (middle >= high)).all():
            break
        short = delta_of(middle) > wanted
        low = np.where(short, middle, low)
        high = np.where(short, high, middle)
    nothing_needed = delta_of(np.zeros_like(target)) <= target
    return np.where(nothing_needed, 0.0, np.where(target > 0.0, high, math.inf))
