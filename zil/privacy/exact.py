"""The exact trade-off curve of a finite number of noised columns (beyond the paper: mathematics 3.4).

The curve is parametrised by the log-likelihood-ratio threshold t >= 0 of its upper half (the
other half is its mirror image).  Four functions of t are kept as logarithms:

    U = log alpha(t)                      by quadrature in C (src/c/tradeoff.c)
    D = log delta(t) = log Int_t^inf exp(s + U(s)) ds        summed from the far end
    V = log(1 - beta(t)) = log(exp(D) + exp(t + U))
    W = log beta(t) = log(beta(0) + Int_0^t exp(s) d(-alpha))   summed from the middle

because d beta/d alpha = -exp(t) and d delta/d t = -exp(t) alpha.  Every sum has positive terms,
so all four keep their relative accuracy from the middle, alpha = beta = exp(-c/sqrt 2)/2 in closed
form, to where a double underflows.

Design: piecewise Chebyshev series in tau = asinh(t/(sqrt(2) c)), the variable in which the limit
curve is free of c, with panels halved until the last coefficients vanish.  About 600 calls of the
quadrature make the table (14 ms at d = 6, 90 ms at d = 1000); a point of the curve is then a
search, three Newton steps and a short sum (src/c/panels.c), against 12 us for its own quadrature.  The errors that are
left can be seen: exp(V) + exp(W) = 1 and delta(0) = 1 - exp(-c/sqrt 2) are not built in.
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from zil._core import panels, tradeoff
from zil._validate import FloatArray
from zil.privacy.curves import SQRT2, Curve, gaussian_mu_at_centre

NODES: int = panels.NODES
GAUSS = 10
UNDERFLOW = 790.0  # exp of minus this is 0 in double precision, with room for the factors around it
MAX_HALVINGS = 14
WIDEST = 0.8
SMALLEST_SHIFT = 1e-6
LARGEST_SHIFT = 1e4
NAMES = "UVWD"
STEEPEST = 60.0  # ten Gauss points on a tenth of a panel integrate exp(6 x) to 1e-14


def _chebyshev_matrices() -> tuple[FloatArray, ...]:
    """Nodes on [-1, 1] (ascending), values to coefficients, and values to Gauss points between the nodes."""
    x = -np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)
    to_coefficients = np.linalg.inv(np.polynomial.chebyshev.chebvander(x, NODES - 1))
    points, weights = np.polynomial.legendre.leggauss(GAUSS)
    stops = np.concatenate([[-1.0], x, [1.0]])
    half = 0.5 * np.diff(stops)
    inside = 0.5 * (stops[:-1] + stops[1:])[:, None] + half[:, None] * points
    values = np.polynomial.chebyshev.chebvander(inside, NODES - 1) @ to_coefficients
    matrices = (x, to_coefficients, inside, half[:, None] * weights, values)
    return tuple(np.asarray(matrix, dtype=np.float64) for matrix in matrices)


_X, _TO_COEFFICIENTS, _INSIDE, _WEIGHTS, _TO_INSIDE = _chebyshev_matrices()


def _derivative(coefficients: FloatArray) -> FloatArray:
    """Chebyshev coefficients of the derivative, along the last axis, padded to the same length."""
    result = np.asarray(np.polynomial.chebyshev.chebder(coefficients, axis=-1), dtype=np.float64)
    return np.concatenate([result, np.zeros_like(coefficients[..., :1])], axis=-1)


class LaplaceExact(Curve):
    """Curve of ``SL_dim(I)`` against itself moved by ``c``; dim >= 2, c > 0.

    Attributes
    ----------
    error : float
        Bound on the relative error of alpha, beta and delta, from the quadrature's own estimate and
        the two identities that the table satisfies only if it is right.
    """

    def __init__(self, dim: int, c: float) -> None:
        self.dim = dim
        self.c = c
        self.unit = SQRT2 * c
        self._quadrature_error = 0.0
        self._build(self._first_panels())

    # ---- building the table ------------------------------------------------------------------

    def _log_alpha(self, tau: FloatArray) -> FloatArray:
        t = np.ascontiguousarray(self.unit * np.sinh(tau)).reshape(-1)
        value, error = np.empty_like(t), np.empty_like(t)
        tradeoff.tail(self.dim, self.c, t, value, error)
        self._quadrature_error = max(self._quadrature_error, float(error.max()))
        return value.reshape(tau.shape)

    def _first_panels(self) -> FloatArray:
        """Edges of panels from t = 0 to where neither alpha nor delta nor 1 - beta is a positive double.

        At most WIDEST wide in tau, with ``exp(t + U)`` falling by no more than exp(STEEPEST) within one.
        """
        corner = math.asinh(1.0)  # t = sqrt(2) c, where the region becomes bounded: smooth, not analytic
        if self.dim == 2:
            t_end = self.unit + 40.0 + 4.0 * max(0.0, -math.log(self.c))
        else:
            t_end = 1.5 * self.unit + 3.0 * UNDERFLOW + UNDERFLOW * (self.dim - 2)
        tau = sizes = np.empty(0)
        low, high, last = 0.05, math.asinh(t_end / self.unit), -math.inf
        while last < -1.3 * UNDERFLOW:
            grid = np.linspace(low, high, 24)
            tau, sizes = np.append(tau, grid), np.append(sizes, self.unit * np.sinh(grid) + self._log_alpha(grid))
            order = np.argsort(tau)
            tau, sizes = tau[order], sizes[order]
            alive = np.flatnonzero(sizes > -UNDERFLOW)
            end = min(int(alive[-1]) + 1, len(tau) - 1)
            low, high, last = float(tau[end - 1]), float(tau[end]), float(sizes[end])
        self._quadrature_error = 0.0  # the points beyond the end do not matter
        tau, sizes = tau[: end + 1], sizes[: end + 1]
        load = np.maximum(np.diff(tau) / WIDEST, np.abs(np.diff(sizes)) / (0.8 * STEEPEST))
        measure = np.concatenate([[0.0], np.cumsum(load)])
        count = math.ceil(measure[-1]) + 1
        edges = np.interp(np.linspace(0.0, measure[-1], count + 1), measure, tau)
        edges[0] = 0.0
        if corner < 0.999 * edges[-1]:
            inner = edges[1:-1]
            inner = inner[np.abs(inner - corner) > 0.2 * min(corner, edges[-1] - corner)]
            edges = np.concatenate([edges[:1], inner, [corner], edges[-1:]])
        return np.unique(edges)

    def _build(self, edges: FloatArray) -> None:
        panels = list(itertools.pairwise(edges.tolist()))
        done: list[tuple[float, float, FloatArray]] = []
        for halving in range(MAX_HALVINGS + 1):
            ends = np.array(panels)
            middle, half = ends.mean(axis=1)[:, None], 0.5 * np.diff(ends, axis=1)
            values = self._log_alpha(middle + half * _X)
            coefficients = values @ _TO_COEFFICIENTS.T
            # rounding of the quadrature grows with the dimension, with the logarithm itself and, as t is
            # rounded, with its slope
            steepness = np.abs(values[:, -1] - values[:, 0]) / (2.0 * half[:, 0])
            noise = 2e-13 + 2e-15 * (np.abs(values[:, 0]) + self.dim) + 1e-15 * steepness
            fall = np.abs(self.unit * np.diff(np.sinh(ends), axis=1)[:, 0] + values[:, -1] - values[:, 0])
            rough = (np.abs(coefficients[:, -3:]).max(axis=1) > noise) | (fall > STEEPEST)
            if halving == MAX_HALVINGS:
                rough[:] = False
            done += [(*panels[k], values[k]) for k in np.flatnonzero(~rough)]
            panels = [
                part
                for k in np.flatnonzero(rough)
                for part in ((ends[k, 0], float(middle[k, 0])), (float(middle[k, 0]), ends[k, 1]))
            ]
            if not panels:
                break
        done.sort(key=lambda panel: panel[0])
        self.edges = np.array([panel[0] for panel in done] + [done[-1][1]])
        self._integrate(np.array([panel[2] for panel in done]))

    def _integrate(self, u: FloatArray) -> None:
        """From U at the nodes of all panels, shape (panels, NODES), to the series of U, V, W, D."""
        middle, half = 0.5 * (self.edges[1:] + self.edges[:-1]), 0.5 * np.diff(self.edges)
        tau = middle[:, None] + half[:, None] * _X
        t = self.unit * np.sinh(tau)
        coefficients = u @ _TO_COEFFICIENTS.T
        inside_tau = middle[:, None, None] + half[:, None, None] * _INSIDE
        inside_u = np.einsum("kgn,pn->pkg", _TO_INSIDE, u)
        slope = np.einsum("kgn,pn->pkg", _TO_INSIDE, self._values(_derivative(coefficients))) / half[:, None, None]
        log_q = self.unit * np.sinh(inside_tau) + inside_u + np.log(half)[:, None, None]
        with np.errstate(divide="ignore"):
            log_speed = np.log(self.unit * np.cosh(inside_tau))
            log_fall = np.log(np.maximum(-slope, 0.0))
        to_delta = special.logsumexp(log_q + log_speed, b=_WEIGHTS, axis=2)  # (panels, NODES + 1)
        to_beta = special.logsumexp(log_q + log_fall, b=_WEIGHTS, axis=2)

        # beyond the last node exp(t + U) decays at a rate that no longer changes
        last_rate = -(1.0 + float(slope[-1, -1, -1]) / (self.unit * math.cosh(float(self.edges[-1]))))
        rest = float(log_q[-1, -1, -1]) - math.log(float(half[-1])) - math.log(max(last_rate, 1e-12))
        delta = np.logaddexp.accumulate(np.concatenate([[rest], to_delta[::-1, ::-1].reshape(-1)]))[::-1]
        centre = -self.c / SQRT2 - math.log(2.0)
        beta = np.logaddexp.accumulate(np.concatenate([[centre], to_beta.reshape(-1)]))

        def at_nodes(stops: FloatArray) -> FloatArray:
            """Entries 1 .. NODES of each panel's NODES + 2 stops (the ends are shared)."""
            return stops[:-1].reshape(-1, NODES + 1)[:, 1:]

        d, w = at_nodes(delta), at_nodes(beta)
        v = np.logaddexp(d, t + u)
        self.delta_zero = -math.expm1(-self.c / SQRT2)
        identities = [
            float(np.abs(np.exp(v) + np.exp(w) - 1.0).max()),
            abs(math.exp(float(delta[0])) / self.delta_zero - 1.0),
        ]
        self.error = 4.0 * max(*identities, self._quadrature_error) + 2e-13
        # where beta > 1/2 its complement is the more exact one
        w = np.where(v < -math.log(2.0), np.log1p(-np.exp(np.minimum(v, -0.5))), np.minimum(w, 0.0))
        self._node_tau = tau.reshape(-1)
        table = []
        for values in (u, v, w, d):
            series = values @ _TO_COEFFICIENTS.T
            table.append([series, _derivative(series) / half[:, None], values])
        self._table = np.array(table)  # (U V W D, series derivative values, panels, NODES)

    @staticmethod
    def _values(coefficients: FloatArray) -> FloatArray:
        result: FloatArray = coefficients @ np.polynomial.chebyshev.chebvander(_X, NODES - 1).T
        return result

    # ---- reading the table -------------------------------------------------------------------

    def _at(self, name: str, tau: FloatArray) -> FloatArray:
        """One of U, V, W, D at tau in [0, last edge]."""
        flat = np.ascontiguousarray(tau).reshape(-1)
        result = np.empty_like(flat)
        panels.at(self.edges, self._node_tau, self._table, NAMES.index(name), flat, result)
        return result.reshape(np.shape(tau))

    def _solve(self, name: str, value: FloatArray) -> FloatArray:
        """tau at which a function takes a value: interpolation between nodes, then Newton within the table."""
        flat = np.ascontiguousarray(value).reshape(-1)
        result = np.empty_like(flat)
        panels.solve(self.edges, self._node_tau, self._table, NAMES.index(name), flat, result)
        return result.reshape(np.shape(value))

    def _threshold(self, alpha: FloatArray, rest: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """(tau, upper): where each alpha in (0, 1) lies; on the upper half it is alpha(t), else beta(t)."""
        middle = 0.5 * math.exp(-self.c / SQRT2)
        upper = alpha <= middle
        tau = np.zeros_like(alpha)
        small = ~upper & (alpha < 0.5)
        for mask, name, value in (
            (upper, "U", alpha),
            (small, "W", alpha),
            (~upper & ~small, "V", rest),
        ):
            if mask.any():
                tau[mask] = self._solve(name, np.log(value[mask]))
        return tau, upper

    def _beta_of(self, tau: FloatArray) -> FloatArray:
        w = self._at("W", tau)
        return np.where(w < -0.5, np.exp(w), -np.expm1(self._at("V", tau)))

    def beta(self, alpha: FloatArray, rest: FloatArray) -> FloatArray:
        shape = np.shape(alpha)
        alpha, rest = (np.ascontiguousarray(values).reshape(-1) for values in (alpha, rest))
        result = np.empty_like(alpha)
        middle = 0.5 * math.exp(-self.c / SQRT2)
        panels.beta(self.edges, self._node_tau, self._table, middle, alpha, rest, result)
        return result.reshape(shape)

    def delta(self, epsilon: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            tau = np.arcsinh(epsilon / self.unit)
        inside = tau <= self.edges[-1]
        value = np.where(inside, np.exp(self._at("D", np.where(inside, tau, 0.0))), 0.0)
        return np.where(epsilon == 0.0, self.delta_zero, value)

    def exceeds(self, epsilon: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            tau = np.arcsinh(epsilon / self.unit)
        inside = tau <= self.edges[-1]
        return np.where(inside, np.minimum(np.exp(self._at("V", np.where(inside, tau, 0.0))), 1.0), 0.0)

    def epsilon(self, delta: FloatArray) -> FloatArray:
        inside = (delta > 0.0) & (delta < self.delta_zero)
        # to the safe side by the error of the table
        tau = self._solve("D", np.log(np.where(inside, delta, 0.5 * self.delta_zero)) - self.error)
        return np.where(inside, self.unit * np.sinh(tau), np.where(delta > 0.0, 0.0, math.inf))

    def bounds(self, alpha: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Supporting line at the threshold of alpha, and chord between two around it, less and plus the error.

        Each tabulated alpha, beta is within ``error`` of the truth, relatively; a supporting line of slope
        -k moves by at most ``error (beta + k alpha)``, the ends of a chord likewise.
        """
        inside = (alpha > 0.0) & (rest > 0.0)
        a, r = np.where(inside, alpha, 0.5), np.where(inside, rest, 0.5)
        tau, upper = self._threshold(a, r)
        value, slope = self._point(tau, upper, a)
        pad = self.error * (value + slope * np.minimum(a, r))
        width = 1e-7
        lower_tau, upper_tau = np.maximum(tau - width, 0.0), np.minimum(tau + width, self.edges[-1])
        first, second = self._pair(lower_tau, upper), self._pair(upper_tau, upper)
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.clip((a - first[0]) / (second[0] - first[0]), 0.0, 1.0)
        part = np.where(np.isfinite(part), part, 0.0)
        chord = first[1] + part * (second[1] - first[1])
        outside = np.where(alpha <= 0.0, 1.0, 0.0)
        low = np.where(inside, np.maximum(value - pad, 0.0), outside)
        # no curve passes 1 - alpha, but for the last digit of the value itself
        high = np.where(inside, np.maximum(np.minimum(np.maximum(chord, value) + pad, rest), value), outside)
        return low, high

    def _pair(self, tau: FloatArray, upper: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
        """(alpha, beta) of a threshold, mirrored on the lower half."""
        size, other = np.exp(self._at("U", tau)), self._beta_of(tau)
        return np.where(upper, size, other), np.where(upper, other, size)

    def _point(self, tau: FloatArray, upper: NDArray[np.bool_], alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Value of the curve and minus its slope."""
        t = self.unit * np.sinh(tau)
        with np.errstate(over="ignore"):
            slope = np.where(upper, np.exp(t), np.exp(-t))
        # at the steep end the slope times alpha is at most 1 - beta
        slope = np.minimum(slope, 1.0 / alpha)
        return np.where(upper, self._beta_of(tau), np.exp(self._at("U", tau))), slope

    def gaussian_mu(self) -> float:
        if self.dim > 2:
            return math.inf  # the pole of the density: 1 - T(alpha) falls like alpha^(2/dim), slower than any Gaussian
        u, v = (self._table[NAMES.index(name), 2].reshape(-1) for name in "UV")
        gap = special.ndtri_exp(v) - special.ndtri_exp(u)
        best = int(np.argmax(gap))
        around = np.linspace(self._node_tau[max(best - 1, 0)], self._node_tau[min(best + 1, len(u) - 1)], 2001)
        fine = special.ndtri_exp(self._at("V", around)) - special.ndtri_exp(self._at("U", around))
        at_centre = gaussian_mu_at_centre(self.delta_zero, -self.c / SQRT2 - math.log(2.0))
        return max(at_centre, float(fine.max()) * (1.0 + 1e-9))


@functools.lru_cache(maxsize=32)
def exact_curve(dim: int, c: float) -> LaplaceExact:
    """The table of (dim, c); the last few are kept, a mechanism asks for its own again and again."""
    return LaplaceExact(dim, c)
