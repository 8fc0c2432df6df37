"""Rows through the mechanism: clip, move to ticks, add noise in ticks, turn into values.

Design: batches of `sampler.BATCH_ROWS` rows pass through all steps while they are in cache; whole-table
temporaries cost more than the noise itself (page faults).  A batch is the same work whoever does
it, so the bytes do not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from zil import _threads
from zil._core import sampling
from zil._random import Key as StreamKey
from zil._validate import FloatArray
from zil.release import sampler, ticks
from zil.release.keystream import Key

BATCH_ROWS = sampler.BATCH_ROWS


def _batches(
    values: FloatArray, grid: ticks.Lattice, add_noise: Callable[[int, FloatArray], None], n_threads: int | None
) -> FloatArray:
    """``add_noise(batch, counts)`` adds the noise of one batch, in ticks, in place."""
    tiles = ticks.Tiles(grid)
    out = np.empty(values.shape)

    def task(first: int, last: int) -> None:
        for batch in range(first, last):
            rows = slice(batch * BATCH_ROWS, (batch + 1) * BATCH_ROWS)
            counts = out[rows]
            tiles.to_ticks(values[rows], counts)
            add_noise(batch, counts)
            tiles.to_values(counts)

    _threads.run_chunks(task, -(-len(values) // BATCH_ROWS), n_threads)
    return out


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

    def add_noise(batch: int, counts: FloatArray) -> None:
        drawn = np.empty(counts.shape, np.int64)
        noise.into(drawn, first_row + batch * BATCH_ROWS)
        counts += drawn

    return _batches(values, grid, add_noise, n_threads)


def simulated(
    values: FloatArray,
    grid: ticks.Lattice,
    scale: FloatArray,
    zero_prob: float,
    key: StreamKey,
    *,
    n_threads: int | None = None,
) -> FloatArray:
    """The same law from the fast kernel; ``key`` is public."""

    def add_noise(batch: int, counts: FloatArray) -> None:
        first = batch * BATCH_ROWS // sampling.CHUNK
        last = first + -(-len(counts) // sampling.CHUNK)
        sampling.add_noise(key, sampling.NOISE, zero_prob, scale, None, counts, counts, batch * BATCH_ROWS, first, last)

    return _batches(values, grid, add_noise, n_threads)
