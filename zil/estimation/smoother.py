"""Laplace smoothing of any smooth scalar function: ``u(t) = E phi(t + L)``, L of scale s (mathematics 4.1).

``u = (F+ + F-)/2`` with the one-sided integrals ``F+-(t) = Int_0^inf phi(t +- s v) e^-v dv``.  The line is cut
into panels; in each one phi is a polynomial through Gauss-Legendre nodes, its integral against ``e^-v`` is
exact (product integration, so no panel need be short beside s or s short beside a panel), and panels are
joined by ``F+(t) = local + e^(-h/s) F+(t + h)``: one first-order recursion per side.  All operators act on node
values, so derivatives are smoothed the same way: ``u_t`` from phi', and ``u_q = E u_tt(t + L)``, q = s^2, by
smoothing phi'' twice.

Design: panels are halved until the Legendre coefficients of phi' have decayed to 1e-12, which is also how a
function that is not smooth is told; a quadrature per row would evaluate phi some thousand times per row
instead of some thousand times in all.  Derivation: docs/proof_rao_blackwell.md, 5.2.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre
from scipy.signal import lfilter

from zil._validate import FloatArray

NODES = 16
# Smoothing beyond this many scales is below 1 ulp.
REACH = 40.0
# Coefficients of phi' that must have decayed, and to what share of the largest.
TAIL, RESOLVED = 3, 1e-12
MAX_PANELS = 1 << 15
# Node values held at once.
MAX_VALUES = 1 << 22

Scalar = Callable[[FloatArray, FloatArray], FloatArray]


@functools.cache
def _rule() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes on [-1, 1], node values -> Legendre coefficients, node values -> node values of the derivative."""
    nodes, weights = legendre.leggauss(NODES)
    basis = legendre.legvander(nodes, NODES - 1)
    to_coefficients = (np.arange(NODES) + 0.5)[:, None] * (basis * weights[:, None]).T
    slopes = np.stack([legendre.legval(nodes, legendre.legder(row)) for row in np.eye(NODES)], axis=1)
    return nodes, to_coefficients, slopes @ to_coefficients


@dataclass(frozen=True)
class _Panels:
    """The smoothing operator on node values of shape (panels, NODES, functions)."""

    inner: FloatArray
    edge: FloatArray
    reach: FloatArray
    decay: float

    @classmethod
    def of(cls, ratio: float) -> _Panels:
        """``ratio`` = panel width over s."""
        nodes, to_coefficients, _ = _rule()
        start = np.append(0.5 * (nodes + 1.0), 0.0)  # places in [0, 1]; the last is the left edge
        fine, weight = legendre.leggauss(64)
        length = np.minimum((1.0 - start) * ratio, 45.0)
        v = 0.5 * length[:, None] * (fine + 1.0)
        mass = 0.5 * length[:, None] * weight * np.exp(-v)
        basis = legendre.legvander(2.0 * (start[:, None] + v / ratio) - 1.0, NODES - 1)
        forward = np.einsum("iv,ivk->ik", mass, basis) @ to_coefficients
        return cls(forward[:-1], forward[-1], np.exp(-(1.0 - start[:-1]) * ratio), math.exp(-ratio))

    def smooth(self, f: FloatArray, growth: tuple[FloatArray, FloatArray]) -> FloatArray:
        """``E f(. + L)`` at the nodes; ``growth``: factors for the tails beyond the left and right end."""
        total = np.zeros_like(f)
        to_edge = _rule()[1].sum(axis=0)  # Legendre polynomials are 1 at the right edge
        for side in (0, 1):
            g = f if side else f[::-1, ::-1]  # the left integral is the right one of the mirrored function
            local = np.einsum("j,kjy->ky", self.edge, g)[::-1]
            beyond = (to_edge @ g[-1]) * growth[side]
            edges = lfilter([1.0], [1.0, -self.decay], local, axis=0, zi=self.decay * beyond[None])[0][::-1]
            following = np.concatenate([edges[1:], beyond[None]])
            one = np.matmul(self.inner, g) + self.reach[:, None] * following[:, None, :]
            total += one if side else one[::-1, ::-1]
        return 0.5 * total


def _growth(slope: FloatArray, s: float, width: float) -> FloatArray | None:
    """``1/(1 - s rate)`` for a tail that grows like ``e^(rate t)`` outwards; None if its mean is infinite.

    ``slope``: phi' at nodes, outward end last.
    """
    panels = len(slope)
    back = min(panels - 1, max(1, round(0.5 * REACH * s / width)))
    last, before = np.abs(slope[-1, -1]), np.abs(slope[-1 - back, -1])
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.log(np.maximum(last, 1e-300) / np.maximum(before, 1e-300)) / (back * width)
    if not np.isfinite(slope).all():
        return None
    exponent = s * np.clip(rate, 0.0, None)
    if (exponent >= 1.0 - 1e-6).any():
        return None
    return np.asarray(1.0 / (1.0 - exponent))


class NotSmoothError(ValueError):
    """phi has a kink or a jump, or varies too fast for the grid."""


def smooth(
    phi: Scalar, dphi: Scalar, d2phi: Scalar | None, eta: FloatArray, y: FloatArray, s: float
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """``u, u_t, u_q`` at every row; None where phi grows so fast that ``E phi(t + L)`` is infinite.

    Parameters
    ----------
    phi, dphi, d2phi : vectorised functions of (eta, y); d2phi may be None
    eta, y : (n,) arrays
    s : float > 0

    Raises
    ------
    NotSmoothError
        The panels do not resolve phi'.
    """
    values, place = np.unique(y, return_inverse=True)
    first_t, length = float(eta.min()) - REACH * s, float(np.ptp(eta)) + 2.0 * REACH * s
    width = max(1.0, length / 4096)
    while True:
        # a whole panel on either side: what the ends get wrong must not touch a panel that is read
        panels, low = math.ceil(length / width) + 2, first_t - width
        if panels > MAX_PANELS:
            raise NotSmoothError("phi has no smooth derivative (a kink, or too fast a change for the grid)")
        if _resolved(dphi, low, width, panels, values):
            break
        width *= 0.5
    operator = _Panels.of(width / s)
    out = np.empty((3, len(eta)))
    share = max(1, MAX_VALUES // (panels * NODES))
    for first in range(0, len(values), share):
        mine = np.flatnonzero((place >= first) & (place < first + share))
        table = _table(phi, dphi, d2phi, operator, low, width, panels, values[first : first + share], s)
        if table is None:
            return None
        at = (eta[mine] - low) / width
        k = np.minimum(at.astype(np.intp), panels - 1)
        x = 2.0 * (at - k) - 1.0
        basis = legendre.legvander(x, NODES - 1)
        for row, coefficients in zip(out, table, strict=True):
            row[mine] = np.einsum("ij,ij->i", basis, coefficients[k, place[mine] - first])
    return out[0], out[1], out[2]


def _nodes(low: float, width: float, panels: int) -> FloatArray:
    return np.asarray(low + width * (np.arange(panels)[:, None] + 0.5 * (_rule()[0] + 1.0)))


def _at(function: Scalar, t: FloatArray, values: FloatArray) -> FloatArray:
    """The function at all nodes and all responses, shape (panels, NODES, responses)."""
    grid_t, grid_y = np.broadcast_arrays(t[:, :, None], values)
    with np.errstate(over="ignore", invalid="ignore"):
        result = np.asarray(function(grid_t.ravel(), grid_y.ravel()), dtype=np.float64)
    return result.reshape(grid_t.shape)


def _resolved(dphi: Scalar, low: float, width: float, panels: int, values: FloatArray) -> bool:
    """Whether phi' is a polynomial in every panel, to rounding; judged on at most 16 of the responses."""
    some = values[np.unique(np.linspace(0, len(values) - 1, 16).astype(int))]
    slope = _at(dphi, _nodes(low, width, panels), some)
    if not np.isfinite(slope).all():
        return True  # overflow far out: found again where the tail is judged
    coefficients = np.abs(np.einsum("cj,kjy->kcy", _rule()[1], slope))
    scale = np.maximum(coefficients.max(axis=1), 1e-9 * coefficients.max(initial=0.0))
    return bool((coefficients[:, -TAIL:].max(axis=1) <= RESOLVED * scale).all())


def _table(
    phi: Scalar,
    dphi: Scalar,
    d2phi: Scalar | None,
    operator: _Panels,
    low: float,
    width: float,
    panels: int,
    values: FloatArray,
    s: float,
) -> list[FloatArray] | None:
    """Legendre coefficients of u, u_t, u_q, each of shape (panels, responses, NODES)."""
    t = _nodes(low, width, panels)
    _, to_coefficients, derivative = _rule()
    slope = _at(dphi, t, values)
    tails = (_growth(slope[::-1, ::-1], s, width), _growth(slope, s, width))
    if tails[0] is None or tails[1] is None:
        return None
    growth = (tails[0], tails[1])
    second = np.matmul(derivative, slope) * (2.0 / width) if d2phi is None else _at(d2phi, t, values)
    smoothed = [
        operator.smooth(_at(phi, t, values), growth),
        operator.smooth(slope, growth),
        operator.smooth(operator.smooth(second, growth), growth),
    ]
    return [np.ascontiguousarray(np.einsum("cj,kjy->kyc", to_coefficients, f)) for f in smoothed]
