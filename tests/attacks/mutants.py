"""The registry of mutants: samplers with one thing wrong, which an audit must tell from the certified one.

`ticks` is the sampler of docs/certified_sampler.md in plain numpy, from the same words of the key; a mutant spoils the
words, the parts of a row (zero draw, W, normals) or the ticks.  Without a defect the rows equal the certified ones
but for near ties.  tests/attacks/test_mutants.py and tools/audit.py go through the registry, and docs/audit.md says
what no audit of so many draws can find.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import zil
from zil._core import certified
from zil.release.keystream import KEY_BYTES, Key


@dataclass
class Parts:
    """What a row is made of: zero (n, 1), w (n, 1), normal (n, d); and the values it is added to, from 0 to 1."""

    zero: np.ndarray
    w: np.ndarray
    normal: np.ndarray
    value: np.ndarray
    zero_prob: float
    rng: np.random.Generator = field(default_factory=np.random.default_rng)


def _same(x: Any) -> Any:
    return x


@dataclass(frozen=True)
class Mutant:
    """One defect, and where it is looked for: ``d`` columns, ``zero_prob``, ``bits`` (2^bits ticks per scale)."""

    kinds: tuple[str, ...]  # families of questions of which one at least must find it
    parts: Callable[[Parts], Any] = _same
    words: Callable[[np.ndarray], np.ndarray] = _same
    ticks: Callable[[np.ndarray], np.ndarray] = _same
    same_key: bool = False
    factor: float = 1.0
    more_zeros: float = 0.0
    d: int = 4
    zero_prob: float = 0.05
    bits: int = 20
    draws: int = 1 << 19  # enough in a test; the audit uses 2e6 for all

    def mechanism(self) -> zil.Mechanism:
        return zil.Mechanism([(0, 1)] * self.d, zero_prob=self.zero_prob, scale=1.0, resolution=2.0**-self.bits)


def ticks(
    key: bytes | bytearray, values: np.ndarray, scale: float, zero_prob: float, mutant: Mutant | None = None
) -> np.ndarray:
    """Noise (n, d) in ticks for ``values`` (n, d) in [0, 1]; ``scale`` is in ticks."""
    mutant = mutant or Mutant(())
    n, d = values.shape
    width = certified.words_per_row(d)
    words = np.empty(n * width, np.uint64)
    certified.stream(bytes(KEY_BYTES) if mutant.same_key else key, certified.level_nonce(0), 0, words)
    words = mutant.words(words.reshape(n, width))
    unit = words / 2.0**64
    pairs = np.arange(d) // 2
    e = -np.log(unit[:, 2 + 2 * pairs])
    angle = 2 * np.pi * unit[:, 3 + 2 * pairs]
    normal = np.sqrt(2 * e) * np.where(np.arange(d) % 2, np.sin(angle), np.cos(angle))
    zero = words[:, [0]] < np.uint64((zero_prob + mutant.more_zeros) * 2**64)
    parts = Parts(zero, -np.log(unit[:, [1]]), normal, values, zero_prob)
    mutant.parts(parts)
    t = mutant.ticks(mutant.factor * scale * np.sqrt(parts.w) * parts.normal)
    return np.where(parts.zero, 0, np.rint(t)).astype(np.int64)


def publish(mechanism: zil.Mechanism, mutant: Mutant | None) -> Callable[[np.ndarray], np.ndarray]:
    """What the mechanism would publish with that sampler; all columns have bounds (0, 1) and scale 1."""
    grid = mechanism._grid

    def rows(values: np.ndarray) -> np.ndarray:
        original = np.clip(np.rint(values / grid.tick), grid.low, grid.high)
        with Key.fresh() as key:
            noise = ticks(key.secret, values, float(mechanism._in_ticks[0]), mechanism.zero_prob, mutant)
        return (original + noise) * grid.tick

    return rows


def _no_root(p: Parts) -> None:
    p.w = p.w**2


def _w_per_entry(p: Parts) -> None:
    p.w = p.rng.exponential(size=p.normal.shape)


def _w_per_pair_of_columns(p: Parts) -> None:
    p.w = np.repeat(p.rng.exponential(size=(len(p.w), (p.normal.shape[1] + 1) // 2)), 2, axis=1)[:, : p.normal.shape[1]]


def _own_w_of_one_column(p: Parts) -> None:
    p.w = np.repeat(p.w, p.normal.shape[1], axis=1)
    p.w[:, -1] = p.rng.exponential(size=len(p.w))


def _zero_per_entry(p: Parts) -> None:
    p.zero = p.rng.random(p.normal.shape) < p.zero_prob


def _copy(p: Parts) -> None:
    p.normal[:, 2] = p.normal[:, 0]


def _opposite(p: Parts) -> None:
    p.normal[:, 2] = -p.normal[:, 0]


def _size_of_another(p: Parts) -> None:
    p.normal[:, 2] = np.abs(p.normal[:, 0]) * np.sign(p.normal[:, 2])


def _rare_copy(p: Parts) -> None:
    some = p.rng.random(len(p.w)) < 1e-3
    p.normal[some, 2] = p.normal[some, 0]


def _sum_of_two(p: Parts) -> None:
    p.normal[:, 2] = (p.normal[:, 0] + p.normal[:, 1]) / np.sqrt(2)


def _sign_of_two(p: Parts) -> None:
    p.normal[:, 2] = np.abs(p.normal[:, 2]) * np.sign(p.normal[:, 0] * p.normal[:, 1])


def _w_of_neighbours(p: Parts) -> None:
    p.w = np.repeat(p.w[::2], 2, axis=0)[: len(p.w)]


def _w_of_chunk(p: Parts) -> None:
    p.w = p.w[np.arange(len(p.w)) // 1000 * 1000]


def _w_again_each_batch(p: Parts) -> None:
    p.w = p.w[np.arange(len(p.w)) % 16_384]


def _w_of_the_row_before(p: Parts) -> None:
    """Each row is right alone: half of its exponential variable's bits are those of the row before."""
    p.w = np.where(p.rng.random(p.w.shape) < 0.5, np.roll(p.w, 1, axis=0), p.w)


def _zero_of_neighbours(p: Parts) -> None:
    p.zero = np.repeat(p.zero[::2], 2, axis=0)[: len(p.zero)]


def _zero_by_value(p: Parts) -> None:
    """Right on the average over values from 0 to 1: rows near 0 are left alone more seldom, rows near 1 more often."""
    p.zero = p.rng.random(p.zero.shape) < p.zero_prob * (0.5 + p.value[:, [0]])


def _zero_in_the_middle(p: Parts) -> None:
    p.zero |= (np.abs(p.value[:, [-1]] - 0.5) < 1e-3) & (p.rng.random(p.zero.shape) < 0.02)


def _scale_by_value(p: Parts) -> None:
    p.normal = p.normal * (0.97 + 0.06 * p.value)


def _overlapping(words: np.ndarray) -> np.ndarray:
    """The stream moves on by less than a row: the last two words of a row are the first normal's of the next."""
    words = words.copy()
    words[1:, 2:4] = words[:-1, -2:]
    return words


def _short(t: np.ndarray) -> np.ndarray:
    return t.astype(np.float32).astype(np.float64)


MUTANTS: dict[str, Mutant] = {
    "no sqrt of W": Mutant(("one column",), _no_root),
    "W per entry": Mutant(("columns",), _w_per_entry),
    "W per entry, d = 6": Mutant(("radius",), _w_per_entry, d=6),
    "W per pair of columns, d = 6": Mutant(("radius",), _w_per_pair_of_columns, d=6),
    "W of its own for one of six columns": Mutant(("columns",), _own_w_of_one_column, d=6),
    "zero draw per entry": Mutant(("zero rows",), _zero_per_entry),
    "scale x 0.995": Mutant(("scale",), factor=0.995, zero_prob=0.002, draws=4_000_000),
    "zero_prob + 0.0005": Mutant(("zero rows",), more_zeros=0.0005, zero_prob=0.002, draws=2_000_000),
    "float32 noise": Mutant(("digits",), ticks=_short, bits=30),
    "float32 noise, 2^20 ticks per scale": Mutant(("digits",), ticks=_short),  # ties of half a tick go to even
    "key reuse": Mutant(("equal noise of rows",), same_key=True),
    "chunk repeat": Mutant(("repeated rows",), words=lambda words: words[np.arange(len(words)) % 65_536]),
    "chunk repeat, odd length": Mutant(("repeated rows",), words=lambda words: words[np.arange(len(words)) % 99_991]),
    "a column's noise equal to another's": Mutant(("differences of columns",), _copy),
    "a column's noise opposite to another's": Mutant(("differences of columns",), _opposite),
    "a column's noise of another's size": Mutant(("columns",), _size_of_another),
    "a column's noise equal in one row of 1000": Mutant(("differences of columns",), _rare_copy),
    "a column's noise the sum of two": Mutant(("radius",), _sum_of_two),
    "a sign the product of two": Mutant(("signs",), _sign_of_two),
    "W shared by neighbouring rows": Mutant(("rows, radius",), _w_of_neighbours),
    "W shared by neighbouring rows, one column": Mutant(("rows, columns",), _w_of_neighbours, d=1),
    "W shared by a chunk of rows": Mutant(("rows, radius",), _w_of_chunk),
    "W the same in every batch": Mutant(("rows, radius",), _w_again_each_batch),
    "W often that of the row before": Mutant(("rows, radius",), _w_of_the_row_before),
    "rows that overlap in the key stream": Mutant(("rows, other column", "equal noise of rows"), words=_overlapping),
    "zero draw shared by neighbouring rows": Mutant(("rows, radius",), _zero_of_neighbours),
    "zero draw dependent on the value": Mutant(("zero rows by value",), _zero_by_value),
    "zero draw more likely in the middle": Mutant(("zero rows by value",), _zero_in_the_middle),
    "scale dependent on the value": Mutant(("scale",), _scale_by_value),
}
