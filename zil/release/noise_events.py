"""What an audit counts in published rows: binomial events of single rows and of disjoint pairs of rows.

Every family of questions has exact probabilities, or enclosures of them where rounding to ticks keeps them from being
exact (zil/release/noise_law.py).  zil/release/noise_audit.py publishes the rows and judges the counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zil._validate import FloatArray
from zil.release import noise_law as law

Counts = NDArray[np.int64]

TAILS = np.array([0.9, 0.75, 0.5, 0.25, 0.1, 0.01, 1e-3, 1e-4])
RADIAL = np.array([0.99, *np.arange(15, 0, -1) / 16, 0.01, 1e-3, 1e-4])
QUARTERS = np.array([0.75, 0.5, 0.25])
LOW_BITS = 12
MOST_PAIRS = 36  # all pairs of up to nine columns; a random choice of more, another one in every audit
GROUP = 6
LEVELS = ("at its lower bound", "in the middle", "at its upper bound", "anywhere")
SIGN = ("far below", "below", "at", "above", "far above")


@dataclass
class Call:
    """One call's noise in ticks (n, d), where the values were, and what all questions use."""

    ticks: Counts
    levels: NDArray[np.int8]
    off: int
    zero: NDArray[np.bool_]
    u: FloatArray
    radius: FloatArray
    signs: NDArray[np.int8]
    ring: NDArray[np.int8]


@dataclass(frozen=True)
class Family:
    """Questions of one kind: their probabilities (k,), and how to count answers and trials in a pair of calls."""

    kind: str
    labels: Sequence[str]
    low: FloatArray
    high: FloatArray
    count: Callable[[Call, Call], tuple[Counts, Counts]]
    general: bool = False


class Questions:
    """All questions about one mechanism; ``scale`` (d,) in ticks, ``names`` of the columns."""

    def __init__(self, scale: FloatArray, zero_prob: float, names: Sequence[Any]) -> None:
        self.scale, self.zero_prob, self.names = scale, zero_prob, list(names)
        self.dim = len(scale)
        self.half = 0.5 / scale * (1 + 1e-9)  # rounding of an entry, in scales
        self.h = float(np.sqrt((self.half**2).sum()))
        self.noisy = 1.0 - zero_prob
        self.none = law.zero_entry(scale)
        self.no_row = law.zero_row(scale)
        self.median = np.ceil(math.log(2) * scale / math.sqrt(2) + 0.5) - 1
        self.edges = law.radii(QUARTERS, self.dim)
        pairs = list(combinations(range(self.dim), 2))
        if len(pairs) > MOST_PAIRS:
            chosen = np.random.default_rng().choice(len(pairs), MOST_PAIRS, replace=False)
            pairs = [pairs[k] for k in sorted(chosen.tolist())]
        self.pairs = pairs
        far = law.at_least(self.median + 1, scale)
        self.p_sign = np.stack([far, 1 - self.none - far, 2 * self.none, 1 - self.none - far, far], axis=1) * (
            0.5 * self.noisy
        )
        self.p_sign[:, 2] += zero_prob
        self.p_ring = self._rings()

    def prepare(self, ticks: Counts, levels: NDArray[np.int8], off: int) -> Call:
        zero = np.asarray(~ticks.any(axis=1))
        u = ticks / self.scale
        radius = np.sqrt(np.einsum("ij,ij->i", u, u))
        far = np.abs(ticks) > self.median
        signs = (2 + np.sign(ticks) * (1 + far)).astype(np.int8)
        ring = (1 + np.searchsorted(self.edges, radius)).astype(np.int8)
        ring[zero] = 0
        return Call(ticks, levels, off, zero, u, radius, signs, ring)

    def _rings(self) -> tuple[FloatArray, FloatArray]:
        """Enclosures of the probabilities of a zero row and of four rings of the radius, shape (5,) each."""
        inner, outer = np.maximum(self.edges - self.h, 0), self.edges + self.h
        fewest = np.array([*law.beyond(outer, self.dim), 0.0])  # beyond the edge after rounding, at least
        most = np.array([*law.beyond(inner, self.dim), 0.0])
        low = np.array([1 - self.no_row[1], *fewest[:-1]]) - most
        high = np.array([1 - self.no_row[0], *most[:-1]]) - fewest
        zero = self.zero_prob + self.noisy * np.array(self.no_row)
        return np.array([zero[0], *(self.noisy * np.maximum(low, 0))]), np.array([zero[1], *(self.noisy * high)])

    def families(self, n: int) -> list[Family]:
        """``n`` rows in each call."""
        return [
            *self._rows(),
            *self._entries(),
            *([self._radius(), self._signs(), *self._columns()] if self.dim > 1 else []),
            *self._other_rows(n),
        ]

    def _rows(self) -> list[Family]:
        z, d = self.zero_prob, self.dim
        low, high = z + self.noisy * np.array(self.no_row)

        def plain(a: Call, b: Call) -> tuple[Counts, Counts]:
            zero = np.concatenate([a.zero, b.zero])
            lone = sum(int(((c.ticks == 0).any(axis=1) & ~c.zero).sum()) for c in (a, b))
            counts = np.array([zero.sum(), lone, a.off + b.off])
            return counts, np.array([len(zero), len(zero), len(zero) * d])

        def by_level(a: Call, b: Call) -> tuple[Counts, Counts]:
            total = np.zeros((d, 8), np.int64)
            for c in (a, b):
                for j in range(d):
                    total[j] += np.bincount(c.levels[:, j] + 4 * c.zero, minlength=8)
            return total[:, 4:].ravel(), (total[:, :4] + total[:, 4:]).ravel()

        lone = min(1.0, self.noisy * float(self.none.sum())) if d > 1 else 0.0
        where = [f"zero rows with column {name!r} {level}" for name in self.names for level in LEVELS]
        labels = ["zero rows", "rows zero in some columns only", "values off the lattice"]
        return [
            Family("zero rows", labels, np.array([low, 0, 0]), np.array([high, lone, 0]), plain, general=True),
            Family("zero rows by value", where, np.full(4 * d, low), np.full(4 * d, high), by_level),
        ]

    def _entries(self) -> list[Family]:
        d = self.dim
        k = np.ceil(-np.log(TAILS) * self.scale[:, None] / math.sqrt(2) + 0.5)  # (d, tails), rising
        tails = 0.5 * self.noisy * law.at_least(k, self.scale[:, None])

        def marginal(a: Call, b: Call) -> tuple[Counts, Counts]:
            t = np.concatenate([a.ticks, b.ticks])
            result = np.empty((d, 2, len(TAILS)), np.int64)
            for j in range(d):
                for side, column in enumerate((t[:, j], -t[:, j])):
                    place = np.bincount(np.searchsorted(k[j], column, side="right"), minlength=len(TAILS) + 1)
                    result[j, side] = place[::-1].cumsum()[::-1][1:]
            return result.ravel(), np.full(result.size, len(t))

        def levels(a: Call, b: Call) -> tuple[Counts, Counts]:
            total = np.zeros((d, 20), np.int64)
            for c in (a, b):
                for j in range(d):
                    total[j] += np.bincount(5 * c.levels[:, j] + c.signs[:, j], minlength=20)
            cells = total.reshape(d, 4, 5)
            return cells.ravel(), np.repeat(cells.sum(axis=2), 5)

        def bits(a: Call, b: Call) -> tuple[Counts, Counts]:
            t = np.abs(np.concatenate([a.ticks, b.ticks]))
            live = t > 0
            t -= 1
            counts = np.stack([((t >> bit & 1).astype(bool) & live).sum(axis=0) for bit in range(LOW_BITS)], axis=1)
            return counts.ravel(), np.repeat(live.sum(axis=0), LOW_BITS)

        sides = [
            f"column {name!r} {side} by the distance that has probability {q:g}"
            for name in self.names
            for side in ("above", "below")
            for q in TAILS
        ]
        cells = [f"column {n!r} {level}, noise {s} zero" for n in self.names for level in LEVELS for s in SIGN]
        digits = [f"column {name!r}, bit {bit} of the ticks" for name in self.names for bit in range(LOW_BITS)]
        p_tails = np.repeat(tails[:, None], 2, axis=1).ravel()
        p_cells = np.repeat(self.p_sign[:, None], 4, axis=1).ravel()
        p_bits = np.stack([law.odd_bit(bit, self.scale) for bit in range(LOW_BITS)], axis=1).ravel()
        return [
            Family("one column", sides, p_tails, p_tails, marginal),
            Family("noise by value", cells, p_cells, p_cells, levels),
            Family("digits", digits, p_bits, p_bits, bits),
        ]

    def _radius(self) -> Family:
        at = law.radii(RADIAL, self.dim)
        low = self.noisy * law.beyond(at + self.h, self.dim)
        high = self.noisy * law.beyond(np.maximum(at - self.h, 0), self.dim)

        def count(a: Call, b: Call) -> tuple[Counts, Counts]:
            radius = np.concatenate([a.radius, b.radius])
            place = np.bincount(np.searchsorted(at, radius), minlength=len(at) + 1)
            return place[::-1].cumsum()[::-1][1:], np.full(len(at), len(radius))

        return Family("radius", [f"rows with radius beyond {r:.4g} scales" for r in at], low, high, count)

    def _signs(self) -> Family:
        d = self.dim
        groups = [tuple(range(k, min(k + GROUP, d))) for k in range(0, max(1, d - GROUP + 1), GROUP // 2)][:12]
        if d > GROUP:
            rng = np.random.default_rng()
            groups += [tuple(sorted(rng.choice(d, GROUP, replace=False).tolist())) for _ in range(6)]
        labels, p = [], []
        for group in groups:
            for code in range(2 ** len(group)):
                below = [self.names[j] for i, j in enumerate(group) if code >> i & 1]
                labels.append(f"of columns {[self.names[j] for j in group]} just {below} below")
            p += [0.5 ** len(group)] * 2 ** len(group)

        def count(a: Call, b: Call) -> tuple[Counts, Counts]:
            counts, trials = [], []
            signs = np.concatenate([a.signs, b.signs])
            for group in groups:
                code = np.zeros(len(signs), np.int64)
                live = np.ones(len(signs), bool)
                for i, j in enumerate(group):
                    code += (signs[:, j] < 2).astype(np.int64) << i
                    live &= signs[:, j] != 2
                counts.append(np.bincount(code[live], minlength=2 ** len(group)))
                trials.append(np.full(2 ** len(group), live.sum()))
            return np.concatenate(counts), np.concatenate(trials)

        return Family("signs", labels, np.array(p), np.array(p), count)

    def _columns(self) -> list[Family]:
        """Two columns: 16 sectors of the direction by four rings, and near equality."""
        edges = law.radii(QUARTERS, 2)
        slope = math.tan(math.pi / 8)
        share = np.full(4, 1 / 64)  # the rings are quarters
        low, high, labels, near, near_labels = [], [], [], [], []
        for j, k in self.pairs:
            h = math.hypot(self.half[j], self.half[k])
            arcs = law.beyond(np.maximum(edges - h, 0), 2) - law.beyond(edges + h, 2)
            lines = 2 * -math.expm1(-math.sqrt(2) * h)
            moved = lines + (np.array([0.0, *arcs]) + np.array([*arcs, 0.0])) / 16
            moved += 1e-9  # the edges themselves: brentq stops at 2e-12
            low.append(np.tile(self.noisy * np.maximum(share - moved, 0), 16))
            high.append(np.tile(self.noisy * (share + moved), 16))
            names = f"columns {self.names[j]!r} and {self.names[k]!r}"
            labels += [f"{names}: sector {s}, ring {r}" for s in range(16) for r in range(4)]
            near += [self.noisy * -math.expm1(-2 * (self.half[j] + self.half[k]))] * 2
            near_labels += [f"{names}: equal noise", f"{names}: opposite noise"]

        def polar(a: Call, b: Call) -> tuple[Counts, Counts]:
            counts = np.zeros((len(self.pairs), 64), np.int64)
            for c in (a, b):
                live = ~c.zero
                u = np.ascontiguousarray(c.u[live].T)
                size, below = np.abs(u), u < 0
                for i, (j, k) in enumerate(self.pairs):
                    small, large = np.minimum(size[j], size[k]), np.maximum(size[j], size[k])
                    sector = below[j] * 8 + below[k] * 4 + (size[j] > size[k]) * 2 + (small > slope * large)
                    ring = np.searchsorted(edges**2, small * small + large * large)
                    counts[i] += np.bincount(4 * sector + ring, minlength=64)
            return counts.ravel(), np.full(counts.size, len(a.zero) + len(b.zero))

        def equal(a: Call, b: Call) -> tuple[Counts, Counts]:
            counts = np.zeros((len(self.pairs), 2), np.int64)
            for c in (a, b):
                u = np.ascontiguousarray(c.u[~c.zero].T)
                for i, (j, k) in enumerate(self.pairs):
                    width = self.half[j] + self.half[k]
                    counts[i] += [(np.abs(u[j] - u[k]) <= width).sum(), (np.abs(u[j] + u[k]) <= width).sum()]
            return counts.ravel(), np.full(counts.size, len(a.zero) + len(b.zero))

        return [
            Family("columns", labels, np.concatenate(low), np.concatenate(high), polar),
            Family("differences of columns", near_labels, np.zeros(len(near)), np.array(near), equal),
        ]

    def _other_rows(self, n: int) -> list[Family]:
        """Two rows of one call 1, 2, 4, ... apart, and the same row of two calls; disjoint pairs of rows."""
        d = self.dim
        apart = [("1 apart", 1, 0), ("1 apart, odd", 1, 1)] + [
            (f"{2**k} apart", 2**k, 0) for k in range(1, 30) if 2 ** (k + 1) <= n
        ]

        def pairs(a: Call, b: Call, part: str) -> list[list[tuple[Any, Any]]]:
            """For each lag the two halves of its pairs, of call a and of call b; last the two calls."""
            found = []
            for _, lag, shift in apart:
                halves = []
                for c in (a, b):
                    values = getattr(c, part)[shift:]
                    whole = values[: len(values) // (2 * lag) * 2 * lag]
                    whole = whole.reshape(-1, 2, lag, *values.shape[1:])
                    halves.append(
                        (whole[:, 0].reshape(-1, *values.shape[1:]), whole[:, 1].reshape(-1, *values.shape[1:]))
                    )
                found.append(halves)
            return [*found, [(getattr(a, part), getattr(b, part))]]

        lags = [name for name, _, _ in apart] + ["the same of the next call"]
        cross = [] if d == 1 else [*self.pairs, *((k, j) for j, k in self.pairs)]

        def rings(a: Call, b: Call) -> tuple[Counts, Counts]:
            cells = [_added(np.bincount(5 * x + y, minlength=25) for x, y in halves) for halves in pairs(a, b, "ring")]
            return np.concatenate(cells), np.repeat([cell.sum() for cell in cells], 25)

        def columns(a: Call, b: Call) -> tuple[Counts, Counts]:
            cells = [
                _added(np.bincount(5 * x[:, j] + y[:, j], minlength=25) for x, y in halves)
                for halves in pairs(a, b, "signs")
                for j in range(d)
            ]
            return np.concatenate(cells), np.repeat([cell.sum() for cell in cells], 25)

        def other_columns(a: Call, b: Call) -> tuple[Counts, Counts]:
            halves = pairs(a, b, "signs")[0]
            cells = [_added(np.bincount(5 * x[:, j] + y[:, k], minlength=25) for x, y in halves) for j, k in cross]
            return np.concatenate(cells), np.repeat([cell.sum() for cell in cells], 25)

        def same(a: Call, b: Call) -> tuple[Counts, Counts]:
            halves = pairs(a, b, "ticks")
            counts = [sum(((x == y) & (x != 0)).sum(axis=0) for x, y in half) for half in halves]
            return np.concatenate(counts), np.repeat([sum(len(x) for x, _ in half) for half in halves], d)

        low, high = (np.outer(p, p).ravel() for p in self.p_ring)
        square = np.array([np.outer(p, p).ravel() for p in self.p_sign]).ravel()
        crossed = np.array([np.outer(self.p_sign[j], self.p_sign[k]).ravel() for j, k in cross]).ravel()
        alike = self.noisy**2 * law.equal_entries(self.scale)
        what = [
            f"{x} and {y}"
            for x in ("zero", "ring 1", "ring 2", "ring 3", "ring 4")
            for y in ("zero", "ring 1", "ring 2", "ring 3", "ring 4")
        ]
        both = [f"{x} and {y} zero" for x in SIGN for y in SIGN]
        families = [
            Family(
                "rows, columns",
                [f"rows {lag}, column {name!r}: {w}" for lag in lags for name in self.names for w in both],
                np.tile(square, len(lags)),
                np.tile(square, len(lags)),
                columns,
            ),
            Family(
                "equal noise of rows",
                [f"rows {lag}, column {name!r}" for lag in lags for name in self.names],
                np.tile(alike, len(lags)),
                np.tile(alike, len(lags)),
                same,
            ),
        ]
        if d > 1:
            families += [
                Family(
                    "rows, radius",
                    [f"rows {lag}: {w}" for lag in lags for w in what],
                    np.tile(low, len(lags)),
                    np.tile(high, len(lags)),
                    rings,
                ),
                Family(
                    "rows, other column",
                    [
                        f"rows 1 apart, column {self.names[j]!r} and then {self.names[k]!r}: {w}"
                        for j, k in cross
                        for w in both
                    ],
                    crossed,
                    crossed,
                    other_columns,
                ),
            ]
        return families


def _added(parts: Iterable[Counts]) -> Counts:
    return np.asarray(np.sum(list(parts), axis=0), dtype=np.int64)
