"""Laplace smoothing of any piecewise smooth scalar function: ``u(t) = E phi(t + L)``, L of scale s (mathematics 4.1).

``u = (F+ + F-)/2`` with the one-sided integrals ``F+-(t) = Int_0^inf phi(t +- s v) e^-v dv``.  The line is cut
into panels; in each one phi is a polynomial through Gauss-Legendre nodes, its integral against ``e^-v`` is
exact (product integration, so no panel need be short beside s or s short beside a panel), and panels are
joined by ``F+(t) = local + e^(-h/s) F+(t + h)``: one first-order recursion per side.  All operators act on node
values, so derivatives are smoothed the same way: ``u_t`` from phi', and, with q = s^2 and k the density of L,

    u_tt = k * phi'',   u_q = k * k * phi'',   u_qq = 2 (k * k * k * phi'')_tt.

Declared kinks are edges of panels.  There phi'' has a point mass J, the jump of phi', whose part of these is
elementary: with ``x = |t|/s`` and ``e = e^-x``, ``J e/(2 s)``, ``J (1 + x) e/(4 s)`` and ``J (x^2 - x - 1) e/(8 s^3)``.

Design: panels that do not resolve phi' (Legendre coefficients that have not decayed to 1e-12) are halved, which is
also how a kink that was not declared is told; near declared kinks panels shrink to the size of s, because u has a
layer of that width there.  A quadrature per row would evaluate phi some thousand times per row instead of some
thousand times in all.  Derivation: docs/proof_rao_blackwell.md, 5.2.

Over 400 lines because one mesh for all rows and panels of every row's own are two ways to the same integrals.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import legendre
from numpy.typing import NDArray
from scipy.signal import lfilter

from zil._core import series
from zil._validate import FloatArray

NODES = 16
# Smoothing beyond this many scales is below 1 ulp.
REACH = 40.0
# Coefficients of phi' that must have decayed, and to what share of the largest.
TAIL, RESOLVED = 3, 1e-12
# Beyond the rows the weight of an error falls off; how much the demand may fall with it.
RELAXED = 1e4
MAX_PANELS, MAX_HALVINGS = 1 << 14, 26
# Share of the largest coefficient below which a panel is taken as it is if halving did not help.
ROUGH = 1e-7
# Panels next to a declared kink: at most this many scales wide.
LAYER = 4.0
# Panels whose operators are multiplied in one call.
BATCH = 2048
# Beyond the rows panels double in width after this many.
RUN = 16
# Panels between two kinks this close (to numbers of size 1) are not judged: their nodes differ by rounding.
SLIVER = 1e-9
# Place of the grid, in panels.
OFFSET = 0.3819660112501051
# Node values held at once.
MAX_VALUES = 1 << 22

NOT_SMOOTH = "phi has no smooth derivative (a kink that was not declared, or too fast a change)"

Scalar = Callable[[FloatArray, FloatArray], FloatArray]


def _polynomials(x: FloatArray) -> FloatArray:
    """Legendre polynomials at points, shape (..., NODES)."""
    return np.asarray(legendre.legvander(x, NODES - 1), dtype=np.float64)


@functools.cache
def _rule() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes on [-1, 1], node values -> Legendre coefficients, node values -> node values of the derivative."""
    nodes, weights = legendre.leggauss(NODES)
    basis = legendre.legvander(nodes, NODES - 1)
    to_coefficients = (np.arange(NODES) + 0.5)[:, None] * (basis * weights[:, None]).T
    slopes = np.stack([legendre.legval(nodes, legendre.legder(row)) for row in np.eye(NODES)], axis=1)
    return nodes, to_coefficients, slopes @ to_coefficients


@functools.cache
def _places() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Start of each integral in [0, 1] (nodes, then the left edge); points and weights of a fine rule on [0, 1]."""
    fine, weights = legendre.leggauss(64)
    return np.append(0.5 * (_rule()[0] + 1.0), 0.0), 0.5 * (fine + 1.0), 0.5 * weights


@functools.cache
def _short_basis() -> FloatArray:
    """Polynomials at the points of the fine rule from each start to the right edge, shape (starts, points, NODES)."""
    start, fine, _ = _places()
    return _polynomials(2.0 * (start[:, None] + (1.0 - start)[:, None] * fine) - 1.0)


def _integrals(ratio: float) -> FloatArray:
    """Node values -> integrals against ``e^-v`` from each start to the right edge, shape (starts, NODES).

    ``ratio`` = panel width over s; beyond 45 scales the weight is below rounding.
    """
    start, fine, weights = _places()
    length = np.minimum((1.0 - start) * ratio, 45.0)
    v = length[:, None] * fine
    mass = length[:, None] * weights * np.exp(-v)
    long = ratio > 45.0
    basis = _polynomials(2.0 * (start[:, None] + v / ratio) - 1.0) if long else _short_basis()
    return np.asarray(np.matmul(mass[:, None, :], basis)[:, 0] @ _rule()[1])


@dataclass(frozen=True)
class Mesh:
    """Panels between ``edges`` and the smoothing operator of scale ``s`` on node values (panels, NODES, functions).

    Attributes
    ----------
    group : (panels,) integer array
        Which of the widths a panel has: the rows of ``integrals``.
    """

    edges: FloatArray
    s: float
    group: NDArray[np.intp]
    integrals: FloatArray

    @classmethod
    def of(cls, edges: FloatArray, width: float, s: float) -> Mesh:
        """``width``: of the panels before they were halved or doubled."""
        power = np.log2(np.diff(edges) / width)
        # edges far from 0 are rounded: panels that were meant to be equal are
        rounded = np.where(np.abs(power - np.round(power)) < 1e-6, np.round(power), power)
        different, group = np.unique(rounded, return_inverse=True)
        return cls(edges, s, group.ravel(), np.stack([_integrals(float(r)) for r in np.exp2(different) * width / s]))

    @property
    def nodes(self) -> FloatArray:
        """Shape (panels, NODES)."""
        return _nodes(self.edges[:-1], np.diff(self.edges))

    def smooth(self, f: FloatArray, growth: tuple[FloatArray, FloatArray]) -> FloatArray:
        """``E f(. + L)`` at the nodes; ``growth``: factors for the tails beyond the left and right end."""
        total = np.zeros_like(f)
        to_edge = _rule()[1].sum(axis=0)  # Legendre polynomials are 1 at the right edge
        ratio = np.diff(self.edges) / self.s
        to_right = np.exp(-(1.0 - _places()[0][:-1]) * ratio[:, None])
        for side in (0, 1):
            # the left integral is the right one of the mirrored function
            g, group = (f, self.group) if side else (f[::-1, ::-1], self.group[::-1])
            width = ratio if side else ratio[::-1]
            if len(g) <= BATCH:
                values = np.matmul(self.integrals[group], g)
            else:
                values = np.empty((len(g), NODES + 1, g.shape[2]))
                for number, integral in enumerate(self.integrals):
                    values[group == number] = np.matmul(integral, g[group == number])
            one, local = values[:, :-1], values[:, -1]
            beyond = (to_edge @ g[-1]) * growth[side]
            following = np.concatenate([_joined(local, np.exp(-width), group, beyond)[1:], beyond[None]])
            one = one + (to_right if side else to_right[::-1])[:, :, None] * following[:, None, :]
            total += one if side else one[::-1, ::-1]
        return 0.5 * total

    def derivative(self, f: FloatArray) -> FloatArray:
        """Node values of the derivative."""
        return np.asarray(np.matmul(_rule()[2], f) * (2.0 / np.diff(self.edges))[:, None, None])

    def panel(self, t: FloatArray) -> NDArray[np.intp]:
        """Panel of each point."""
        return np.asarray(np.clip(np.searchsorted(self.edges, t, "right") - 1, 0, len(self.edges) - 2))


def _joined(local: FloatArray, decay: FloatArray, group: NDArray[np.intp], beyond: FloatArray) -> FloatArray:
    """``E[k] = local[k] + decay[k] E[k + 1]`` with ``E[K] = beyond``, shape (K, functions)."""
    out = np.empty_like(local)
    cuts = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), len(decay)]
    after = beyond
    for first, last in zip(cuts[-2::-1], cuts[:0:-1], strict=True):  # stretches of equal panels, right to left
        d = float(decay[first])
        if last - first > 24:
            run = lfilter([1.0], [1.0, -d], local[first:last][::-1], axis=0, zi=d * after[None])[0]
            out[first:last] = run[::-1]
            after = out[first]
            continue
        for k in range(last - 1, first - 1, -1):
            after = local[k] + d * after
            out[k] = after
    return out


def _growth(mesh: Mesh, slope: FloatArray, right: bool) -> FloatArray | None:
    """``1/(1 - s rate)`` for a tail that grows like ``e^(rate t)`` outwards; None if its mean is infinite."""
    if not np.isfinite(slope).all():
        return None
    t = mesh.nodes
    if not right:
        slope, t = slope[::-1, ::-1], -t[::-1, ::-1]
    far = t[-1, -1]
    k = max(0, min(len(t) - 2, int(np.searchsorted(t[:, -1], far - 0.5 * REACH * mesh.s))))
    last, before = np.abs(slope[-1, -1]), np.abs(slope[k, -1])
    rate = np.log(np.maximum(last, 1e-300) / np.maximum(before, 1e-300)) / (far - t[k, -1])
    exponent = mesh.s * np.clip(rate, 0.0, None)
    if (exponent >= 1.0 - 1e-6).any():
        return None
    return np.asarray(1.0 / (1.0 - exponent))


class NotSmoothError(ValueError):
    """phi has a kink or a jump, or varies too fast for the grid."""


def smooth(
    phi: Scalar,
    dphi: Scalar,
    d2phi: Scalar | None,
    eta: FloatArray,
    y: FloatArray,
    s: float,
    kinks: FloatArray | None = None,
    curved: bool = False,
) -> tuple[FloatArray, ...] | None:
    """``u, u_t, u_q`` at every row; None where phi grows so fast that ``E phi(t + L)`` is infinite.

    Parameters
    ----------
    phi, dphi, d2phi : vectorised functions of (eta, y); d2phi may be None
    eta, y : (n,) arrays
    s : float > 0
    kinks : (m, n) array, optional
        Places of the kinks of each row as values of eta.
    curved : bool
        Also ``u_tt, u_tq, u_qq``.

    Raises
    ------
    NotSmoothError
        The panels do not resolve phi', or phi itself jumps at a kink.
    """
    kinks = np.empty((0, len(eta))) if kinks is None else np.sort(kinks, axis=0)
    different = len(np.unique(y))
    offsets = kinks - kinks[0] if len(kinks) else kinks
    size = float(np.abs(kinks).max(initial=1e-300))
    if different > max(16, len(y) // 8) or (np.ptp(offsets, axis=1) > 1e-12 * size).any():
        return _row_by_row(phi, dphi, d2phi, eta, y, s, kinks, curved)
    base = kinks[0] if len(kinks) else np.zeros(len(y))
    return _table_of_all(phi, dphi, d2phi, eta, y, base, np.unique(offsets[:, 0]), s, curved)


def _table_of_all(
    phi: Scalar,
    dphi: Scalar,
    d2phi: Scalar | None,
    eta: FloatArray,
    y: FloatArray,
    base: FloatArray,
    kinks: FloatArray,
    s: float,
    curved: bool,
) -> tuple[FloatArray, ...] | None:
    """Few responses, and kinks at the same values of ``t = eta - base``: one mesh for all rows."""
    responses, row, place = np.unique(y, return_index=True, return_inverse=True)
    starts = base[row]  # kinks go by the response
    t = eta - base
    mesh = _mesh(dphi, t, responses, starts, kinks, s)
    out = np.empty((6 if curved else 3, len(eta)))
    share = max(1, MAX_VALUES // (mesh.nodes.size * (2 if curved else 1)))
    panel = mesh.panel(t)
    for first in range(0, len(responses), share):
        mine = np.flatnonzero((place >= first) & (place < first + share))
        some = slice(first, first + share)
        table = _table(phi, dphi, d2phi, mesh, responses[some], starts[some], kinks, curved)
        if table is None:
            return None
        coefficients, jumps = table
        own = place[mine] - first
        made = np.empty((len(out), len(mine)))
        series.evaluate(t[mine], mesh.edges, panel[mine], own, coefficients, made)
        out[:, mine] = made
        for kink, jump in zip(kinks, jumps, strict=True):
            _add_point_mass(out, mine, (t[mine] - kink) / s, jump[own], s)
    return tuple(out)


def _add_point_mass(out: FloatArray, mine: NDArray[np.intp], x: FloatArray, jump: FloatArray, s: float) -> None:
    """What a kink adds to the derivatives of u that contain phi''."""
    away = np.abs(x)
    mass = jump * np.exp(-away)
    out[2, mine] += mass * (1.0 + away) / (4.0 * s)
    if len(out) > 3:
        out[3, mine] += mass / (2.0 * s)
        out[4, mine] -= mass * x / (4.0 * s * s)
        out[5, mine] += mass * (away * away - away - 1.0) / (8.0 * s**3)


def _nodes(low: FloatArray, width: FloatArray) -> FloatArray:
    return np.asarray(low[:, None] + width[:, None] * (0.5 * (_rule()[0] + 1.0)))


def _at(function: Scalar, t: FloatArray, responses: FloatArray, starts: FloatArray) -> FloatArray:
    """The function at nodes (panels, NODES) and all responses, shape (panels, NODES, responses)."""
    grid_t = t[:, :, None] + starts
    grid_y = np.broadcast_to(responses, grid_t.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        result = np.asarray(function(grid_t.ravel(), grid_y.ravel()), dtype=np.float64)
    return result.reshape(grid_t.shape)


def _mesh(dphi: Scalar, t: FloatArray, responses: FloatArray, starts: FloatArray, kinks: FloatArray, s: float) -> Mesh:
    """Panels of width 1 (or 4096 in all) where there are rows, wider beyond, cut at kinks.

    Halved where phi' or the layer of a kink asks for it.  Judged on at most 16 of the responses.
    """
    low, high = float(t.min()), float(t.max())
    width = max(1.0, (high - low) / 4096)
    # off round numbers: an edge on a kink that was not declared would hide it
    within = width * (np.arange(math.floor(low / width) - 2, math.ceil(high / width) + 2) + OFFSET)
    # a whole panel at the end on either side: what the ends get wrong must not touch a panel that is read
    stages = max(1, math.ceil(math.log2((REACH * s / width + 2.0) / RUN + 1.0)))
    beyond = np.cumsum(np.repeat(width * np.exp2(np.arange(stages)), RUN))
    beyond = beyond[: int(np.searchsorted(beyond, REACH * s + 2.0 * width)) + 1]
    grid = np.concatenate([within[0] - beyond[::-1], within, within[-1] + beyond])
    near = kinks[(kinks > low - REACH * s) & (kinks < high + REACH * s)]
    if len(near):  # panels that double away from a kink, instead of those of the grid
        steps = LAYER * s * np.exp2(np.arange(max(0, math.ceil(math.log2(width / (LAYER * s))))))
        room = max(1e-3 * width, float(steps.max(initial=0.0)))  # no slivers: what is left of their width is rounding
        grid = grid[np.abs(grid[:, None] - near).min(axis=1) > room]
        layers = np.concatenate([[0.0], steps, -steps])
        added = (near[:, None] + layers).ravel()
        gap = np.abs(added[:, None] - near)
        # where layers of two kinks overlap each keeps what is nearer to it
        own = np.repeat(np.arange(len(near)), len(layers))
        grid = np.concatenate([grid, added[gap.argmin(axis=1) == own]])
    edges = np.unique(np.concatenate([grid, near]))
    chosen = np.unique(np.linspace(0, len(responses) - 1, 16).astype(int))
    left, right = edges[:-1], edges[1:]
    before = np.full(len(left), np.inf)
    done: list[FloatArray] = []
    largest, count = 0.0, 0
    for halving in range(MAX_HALVINGS + 1):
        size = right - left
        slope = _at(dphi, _nodes(left, size), responses[chosen], starts[chosen])
        slope[~np.isfinite(slope).all(axis=(1, 2))] = 0.0  # overflow far out: found again where the tail is judged
        coefficients = np.abs(np.einsum("cj,kjy->kcy", _rule()[1], slope))
        largest = max(largest, float(coefficients.max(initial=0.0)))
        scale = np.maximum(coefficients.max(axis=1), 1e-9 * largest)
        outside = np.maximum(np.maximum(low - right, left - high), 0.0) / s
        demand = RESOLVED * np.minimum(np.exp(np.minimum(0.5 * outside, 50.0)), RELAXED)
        tail = (coefficients[:, -TAIL:].max(axis=1) / np.maximum(scale, 1e-300)).max(axis=1)
        # halving gains nothing more: rounding of phi' itself, or a jump of phi'' in a panel that is narrow by now
        stalled = (tail < ROUGH) & (tail > 0.25 * before)
        split = (tail > demand) & ~stalled & (size > SLIVER * (1.0 + np.abs(left)))
        done.append(left[~split])
        count += len(left)
        if not split.any():
            break
        if count > MAX_PANELS or halving == MAX_HALVINGS:
            raise NotSmoothError(NOT_SMOOTH)
        middle = 0.5 * (left[split] + right[split])
        left, right = np.concatenate([left[split], middle]), np.concatenate([middle, right[split]])
        before = np.tile(tail[split], 2)
    return Mesh.of(np.append(np.sort(np.concatenate(done)), edges[-1]), width, s)


def _table(
    phi: Scalar,
    dphi: Scalar,
    d2phi: Scalar | None,
    mesh: Mesh,
    responses: FloatArray,
    starts: FloatArray,
    kinks: FloatArray,
    curved: bool,
) -> tuple[FloatArray, list[FloatArray]] | None:
    """Legendre coefficients of u, u_t, u_q (u_tt, u_tq, u_qq), shape (panels, responses, functions, NODES), without the
    point masses at kinks; and the masses (responses,) of each kink."""
    t, to_coefficients = mesh.nodes, _rule()[1]
    value, slope = _at(phi, t, responses, starts), _at(dphi, t, responses, starts)
    tails = (_growth(mesh, slope, False), _growth(mesh, slope, True))
    if tails[0] is None or tails[1] is None:
        return None
    growth = (tails[0], tails[1])
    second = mesh.derivative(slope) if d2phi is None else _at(d2phi, t, responses, starts)
    three = (np.tile(growth[0], 3), np.tile(growth[1], 3))
    u, u_t, u_tt = np.split(mesh.smooth(np.concatenate([value, slope, second], axis=2), three), 3, axis=2)
    u_q = mesh.smooth(u_tt, growth)
    smoothed = [u, u_t, u_q]
    if curved:
        third = mesh.smooth(u_q, growth)
        smoothed += [u_tt, mesh.derivative(u_q), 2.0 * mesh.derivative(mesh.derivative(third))]
    size = float(np.abs(value).max(initial=0.0))
    for kink in kinks[(kinks > mesh.edges[0]) & (kinks < mesh.edges[-1])]:
        if (np.abs(_jump(mesh, value, float(kink))) > 1e-8 * size).any():
            raise NotSmoothError("phi itself jumps at a kink")
    jumps = [_jump(mesh, slope, float(kink)) for kink in kinks]
    values = np.stack(smoothed, axis=2)  # (panels, NODES, functions, responses)
    panels, _, functions, columns = values.shape
    coefficients = np.matmul(to_coefficients, values.reshape(panels, NODES, -1))
    coefficients = coefficients.reshape(panels, NODES, functions, columns).transpose(0, 3, 2, 1)
    return np.ascontiguousarray(coefficients), jumps


def _jump(mesh: Mesh, f: FloatArray, kink: float) -> FloatArray:
    """Right limit minus left limit at an edge, shape (responses,); 0 at a kink out of reach."""
    k = int(np.searchsorted(mesh.edges, kink))
    if k == 0 or k >= len(mesh.edges) - 1 or mesh.edges[k] != kink:
        return np.zeros(f.shape[2])
    at_right = _rule()[1].sum(axis=0)
    at_left = ((-1.0) ** np.arange(NODES)) @ _rule()[1]
    return np.asarray(at_left @ f[k] - at_right @ f[k - 1])


def _row_by_row(
    phi: Scalar,
    dphi: Scalar,
    d2phi: Scalar | None,
    eta: FloatArray,
    y: FloatArray,
    s: float,
    kinks: FloatArray,
    curved: bool,
) -> tuple[FloatArray, ...] | None:
    """Every row with panels of its own, about its eta and cut at its kinks: the integrals of the module's head.

    Panels in units of s are halved until they resolve phi' on at most 16 rows.
    """
    out = np.empty((6 if curved else 3, len(eta)))
    chosen = np.unique(np.linspace(0, len(eta) - 1, 16).astype(int))
    reach = _tail_reach(dphi, eta[chosen], y[chosen], s)
    if reach is None:
        return None
    half = np.unique(np.concatenate([np.arange(0.0, 4.0, 1.0), np.arange(4.0, 16.0, 2.0), np.arange(16.0, reach, 4.0)]))
    cuts = np.concatenate([-half[:0:-1], half, [-reach, reach]])
    cuts = np.unique(cuts)
    for halving in range(MAX_HALVINGS):
        edges = _row_edges(cuts, eta[chosen], kinks[:, chosen], s)
        slope = _row_values(dphi, edges, eta[chosen], y[chosen], s)
        coefficients = np.abs(np.einsum("cj,rkj->rkc", _rule()[1], np.where(np.isfinite(slope), slope, 0.0)))
        scale = np.maximum(coefficients.max(axis=2), 1e-9 * coefficients.max(axis=(1, 2))[:, None])
        away = np.minimum(np.abs(edges[:, 1:]), np.abs(edges[:, :-1]))
        demand = RESOLVED * np.minimum(np.exp(0.5 * np.minimum(away, 50.0)), RELAXED)
        if halving >= 8:
            demand = np.maximum(demand, ROUGH)
        bad = coefficients[:, :, -TAIL:].max(axis=2) > demand * scale
        bad &= np.diff(edges, axis=1) * s > SLIVER * (1.0 + np.abs(eta[chosen]))[:, None]
        if not bad.any():
            break
        middle = 0.5 * (edges[:, 1:] + edges[:, :-1])[bad]
        place = np.unique(np.searchsorted(cuts, middle) - 1)
        cuts = np.sort(np.concatenate([cuts, 0.5 * (cuts[place] + cuts[place + 1])]))
        if len(cuts) > 4096 or halving == MAX_HALVINGS - 1:
            raise NotSmoothError(NOT_SMOOTH)
    share = max(1, MAX_VALUES // ((len(cuts) + len(kinks)) * NODES))
    for first in range(0, len(eta), share):
        rows = slice(first, first + share)
        out[:, rows] = _integrated(phi, dphi, d2phi, cuts, eta[rows], y[rows], s, kinks[:, rows], curved)
    return tuple(out)


def _tail_reach(dphi: Scalar, eta: FloatArray, y: FloatArray, s: float) -> float | None:
    """How many s to integrate over so that what is left is below 1e-12; None if the mean is infinite."""
    rate = 0.0
    with np.errstate(all="ignore"):
        for side in (-1.0, 1.0):
            near, far = (np.abs(dphi(eta + side * v * s, y)) for v in (15.0, 30.0))
            growth = np.log(np.maximum(far, 1e-300) / np.maximum(near, 1e-300)) / 15.0
            if not np.isfinite(far).all():
                return None
            rate = max(rate, float(growth.max(initial=0.0)))
    return None if rate > 0.9 else 30.0 / (1.0 - rate)


def _row_edges(cuts: FloatArray, eta: FloatArray, kinks: FloatArray, s: float) -> FloatArray:
    """Edges in units of s about each eta, shape (rows, edges): the cuts and the row's kinks."""
    own = np.clip((kinks - eta) / s, cuts[0], cuts[-1]).T
    return np.sort(np.concatenate([np.broadcast_to(cuts, (len(eta), len(cuts))), own], axis=1), axis=1)


def _row_nodes(edges: FloatArray) -> FloatArray:
    return np.asarray(edges[:, :-1, None] + np.diff(edges, axis=1)[:, :, None] * (0.5 * (_rule()[0] + 1.0)))


def _row_values(function: Scalar, edges: FloatArray, eta: FloatArray, y: FloatArray, s: float) -> FloatArray:
    """The function at the nodes of every row, shape (rows, panels, NODES)."""
    t = eta[:, None, None] + s * _row_nodes(edges)
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.asarray(function(t.ravel(), np.broadcast_to(y[:, None, None], t.shape).ravel()), dtype=np.float64)
    return values.reshape(t.shape)


def _integrated(
    phi: Scalar,
    dphi: Scalar,
    d2phi: Scalar | None,
    cuts: FloatArray,
    eta: FloatArray,
    y: FloatArray,
    s: float,
    kinks: FloatArray,
    curved: bool,
) -> FloatArray:
    edges = _row_edges(cuts, eta, kinks, s)
    width = np.diff(edges, axis=1)
    v = _row_nodes(edges)
    weight = 0.5 * width[:, :, None] * legendre.leggauss(NODES)[1]
    value, slope = (_row_values(f, edges, eta, y, s) for f in (phi, dphi))
    if d2phi is None:
        second = (
            np.matmul(slope, _rule()[2].T) * np.where(width > 0.0, 2.0 / np.maximum(width * s, 1e-300), 0.0)[:, :, None]
        )
    else:
        second = _row_values(d2phi, edges, eta, y, s)
    x, mass = np.abs(v), np.exp(-np.abs(v))
    jump = slope[:, 1:] @ (((-1.0) ** np.arange(NODES)) @ _rule()[1]) - slope[:, :-1] @ _rule()[1].sum(axis=0)
    at = edges[:, 1:-1]
    away, point = np.abs(at), jump * np.exp(-np.abs(at))
    out = [
        (weight * 0.5 * mass * value).sum(axis=(1, 2)),
        (weight * 0.5 * mass * slope).sum(axis=(1, 2)),
        (weight * 0.25 * (1.0 + x) * mass * second).sum(axis=(1, 2)) + (0.25 / s * (1.0 + away) * point).sum(axis=1),
    ]
    if curved:
        bent = 0.125 * (x * x - x - 1.0) * mass / s**2
        out += [
            (weight * 0.5 * mass * second).sum(axis=(1, 2)) + (0.5 / s * point).sum(axis=1),
            (weight * 0.25 / s * v * mass * second).sum(axis=(1, 2)) + (0.25 / s**2 * at * point).sum(axis=1),
            (weight * bent * second).sum(axis=(1, 2)) + (0.125 / s**3 * (away * away - away - 1.0) * point).sum(axis=1),
        ]
    return np.array(out)
