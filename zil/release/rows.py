"""Rows through the mechanism: clip, move to ticks, add noise in ticks, turn into values.

Design: one pass over the table, in blocks that stay in cache; whole-table temporaries cost more than the
noise itself (page faults).  A block is the same work whoever does it, so the bytes do not depend on the
number of threads.
"""

from __future__ import annotations

import numpy as np

from zil import _threads
from zil._core import sampling
from zil._random import Key as StreamKey
from zil._validate import FloatArray
from zil.release import sampler, ticks
from zil.release.keystream import Key

BATCH_ROWS = sampler.BATCH_ROWS


def certified(
    values: FloatArray,
    grid: ticks.Lattice,
    scale: FloatArray,
    zero_prob: float,
    key: Key,
    *,
    first_row: int = 0,
    n_threads: int | None = None,
) -> FloatArray:
    """Published values (n, d) of ``values`` (n, d): exactly rounded noise from a secret key.

    ``scale`` (d,) is in ticks; ``first_row`` is the number of the first row within the release.
    """
    noise = sampler.TickNoise(key, scale, zero_prob)
    lattice = ticks.Kernel(grid)
    n, d = values.shape
    out = np.empty((n, d))

    def task(first: int, last: int) -> None:
        drawn = np.empty((min(BATCH_ROWS, n), d), np.int64)
        for start in range(first * BATCH_ROWS, min(last * BATCH_ROWS, n), BATCH_ROWS):
            rows = slice(start, min(start + BATCH_ROWS, n))
            counts = drawn[: rows.stop - start]
            noise.into(counts, first_row + start)
            lattice.publish(values[rows], counts, out[rows])

    _threads.run_chunks(task, -(-n // BATCH_ROWS), n_threads)
    return out


def simulated(
    values: FloatArray,
    grid: ticks.Lattice,
    scale: FloatArray,
    zero_prob: float,
    key: StreamKey,
    *,
    n_threads: int | None = None,
) -> tuple[FloatArray, bool]:
    """The same law from the fast kernel, and whether all ``values`` are finite; ``key`` is public."""
    lattice = ticks.Kernel(grid)
    out = np.empty(values.shape)
    finite: list[bool] = []

    def task(first: int, last: int) -> None:
        finite.append(lattice.simulate(values, key, zero_prob, scale, out, first, last))

    _threads.run_chunks(task, -(-len(values) // sampling.CHUNK), n_threads)
    return out, all(finite)
