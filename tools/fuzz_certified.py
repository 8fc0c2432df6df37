"""Fuzz the error bound of the tick sampler against ball arithmetic (needs python-flint).

    python tools/fuzz_certified.py [--coordinates 10000000] [--kind edge|random|both] [--seed S]

Each row of words is evaluated by the compiled fast path and by Arb with 192 bits over the *whole*
cell of uniforms that begin with these 64 bits, so every continuation of the key stream is covered.  A
row that the fast path decides is a violation unless, for each column, the ball of the real noise lies
within the bound around the computed value and rounds to the answered tick.  Where the ball is too
wide to tell (a cell near 0 or 1) the eight corners of the cell decide.

Edge-biased words are what finds holes: a wrong bound can pass a million ordinary coordinates.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import product
from pathlib import Path

import numpy as np
from flint import arb, ctx, fmpz

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import reference

from zil._core import certified

SCALES = [1.0, 8.0, 1234.5, 2.0**20, 2.0**21 - 1, 2.0**30]
BATCH = 20_000
CELL = arb(2) ** -64


def noise(log_u0: arb, u1: arb, u2: arb) -> tuple[arb, arb]:
    radius = (2 * log_u0 * u1.log()).sqrt()
    sine, cosine = (2 * u2).sin_cos_pi()
    return radius * cosine, radius * sine


def cell(word: int) -> arb:
    """The ball [word, word + 1] 2^-64."""
    return arb(2 * word + 1, 1) * CELL / 2


def inside(real: arb, scale: float, value: float, bound: float, tick: int) -> bool:
    real = real * arb(scale)
    nearest = (real + arb(0.5)).floor().unique_fmpz()
    return abs(real - arb(value)) <= arb(bound) and nearest == fmpz(tick)


def pair_holds(words: list[int], log_u0: arb, columns: list[tuple[float, float, float, int]]) -> bool:
    """Whether the answers for a pair of columns hold over the whole cell of (U0, U1, U2)."""
    reals = noise(log_u0, cell(words[1]), cell(words[2]))
    if all(inside(real, *column) for real, column in zip(reals, columns, strict=False)):
        return True
    for corner in product((0, 1), repeat=3):
        u0, u1, u2 = (arb(word + step) * CELL for word, step in zip(words, corner, strict=True))
        if not all(inside(real, *column) for real, column in zip(noise(u0.log(), u1, u2), columns, strict=False)):
            return False
    return True


def run(kind: str, coordinates: int, rng: np.random.Generator) -> int:
    scales = np.array(SCALES)
    d = len(SCALES)
    width = certified.words_per_row(d)
    rows = decided = violations = 0
    worst = 0.0
    started = time.perf_counter()
    while decided * d < coordinates:
        shape = (BATCH, width)
        words = reference.edge_words(rng, shape) if kind == "edge" else rng.integers(0, 2**64, shape, dtype=np.uint64)
        ticks, value, bound = np.empty((BATCH, d), np.int64), np.empty((BATCH, d)), np.empty((BATCH, d))
        redo = np.empty(BATCH, np.uint8)
        certified.evaluate(words, scales, ticks, value, bound, redo)
        for i in np.flatnonzero(redo == 0).tolist():
            row = words[i].tolist()
            log_u0 = cell(row[1]).log()
            for p in range(d // 2):
                columns = list(
                    zip(
                        SCALES[2 * p : 2 * p + 2],
                        value[i, 2 * p : 2 * p + 2].tolist(),
                        bound[i, 2 * p : 2 * p + 2].tolist(),
                        ticks[i, 2 * p : 2 * p + 2].tolist(),
                        strict=True,
                    )
                )
                if not pair_holds([row[1], row[2 + 2 * p], row[3 + 2 * p]], log_u0, columns):
                    violations += 1
                    print("VIOLATION", row, p, columns)
            decided += 1
        rows += BATCH
        if rows == BATCH:  # how tight the bound is, from one batch: the largest error in units of it
            for i in np.flatnonzero(redo == 0).tolist():
                row = words[i].tolist()
                u0, u1, u2 = (arb(2 * row[k] + 1) * CELL / 2 for k in (1, 2, 3))
                middle = noise(u0.log(), u1, u2)
                for j in range(2):
                    if bound[i, j] > 0:
                        worst = max(worst, float(abs(middle[j] * arb(SCALES[j]) - arb(value[i, j]))) / bound[i, j])
    print(
        f"{kind:6s}: {decided * d} coordinates decided, {violations} violations, "
        f"{rows - decided} of {rows} rows left to the slow path, largest error {worst:.2f} of the bound, "
        f"{time.perf_counter() - started:.0f} s"
    )
    return violations


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--coordinates", type=int, default=10_000_000)
    parser.add_argument("--kind", choices=["edge", "random", "both"], default="both")
    parser.add_argument("--seed", type=int, default=None)
    given = parser.parse_args()
    ctx.prec = 192
    rng = np.random.default_rng(given.seed)
    kinds = ["edge", "random"] if given.kind == "both" else [given.kind]
    sys.exit(1 if sum(run(kind, given.coordinates, rng) for kind in kinds) else 0)


if __name__ == "__main__":
    main()
