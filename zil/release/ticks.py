"""The public lattice of a release: every published value is an integer number of ticks.

Design: a value is clipped to its bounds, moved to the nearest tick *inside* the bounds, and noise
that is itself a whole number of ticks is added.  Rounding the noise is post-processing (the
value is on the lattice), and the lattice inside the bounds is never wider than the bounds, so
``c = width/scale`` is what it says.  (Moving the bounds outward instead would widen c by up to two
ticks, 2e-6 relative, for a gain of at most one tick in values at the very edge.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zil import _validate
from zil._core import lattice as kernel
from zil._random import Key as StreamKey
from zil._validate import FloatArray

FINE = 20  # ticks are near 2**-20 of the scale: error bound of the sampler against fineness
REACH = 64.0  # no 64-bit uniform gives noise beyond 62.8 scales
LIMIT = 2.0**51  # number of ticks that nothing reaches: up to there the kernel's rounding is exact
COARSEST = 8.0  # a declared resolution is used as tick if the scale has at least so many
FINEST = 2.0**44  # and the sampler takes fewer than so many


@dataclass(frozen=True)
class Lattice:
    """Tick and range of each column; arrays of shape (d,), ranges in ticks (whole numbers as float64)."""

    tick: FloatArray
    low: FloatArray
    high: FloatArray


def resolutions(names: Sequence[Any], resolution: Any) -> list[float | None]:
    """Declared resolutions by column: None, a number, a dictionary by name, or one entry per column."""
    if resolution is None or (np.ndim(resolution) == 0 and not isinstance(resolution, Mapping)):
        entries: list[Any] = [resolution] * len(names)
    elif isinstance(resolution, Mapping):
        unknown = [name for name in resolution if name not in names]
        if unknown:
            raise ValueError(f"resolution names {unknown[0]!r}, which has no bounds")
        entries = [resolution.get(name) for name in names]
    else:
        entries = list(resolution)
        if len(entries) != len(names):
            raise ValueError(f"resolution has {len(entries)} entries for {len(names)} columns")
    return [
        None if e is None else _validate.positive(f"resolution of {n!r}", e)
        for n, e in zip(names, entries, strict=True)
    ]


def lattice(names: Sequence[Any], bounds: FloatArray, scale: FloatArray, resolution: Sequence[float | None]) -> Lattice:
    """The lattice of bounds (d, 2) and scales (d,).

    A declared resolution is the tick if the scale holds at least eight; else the tick is a power
    of two in (2**-21, 2**-20] scale, coarser only if the bounds are so far from 0 that float64
    cannot hold it.

    Raises
    ------
    ValueError
        If the bounds lie beyond what float64 can hold at eight ticks per scale, or a declared resolution is so fine
        that the scale holds 2^44.
    """
    rows = []
    for name, (low, high), width, declared in zip(names, bounds.tolist(), scale.tolist(), resolution, strict=True):
        far = max(abs(low), abs(high))
        if declared is not None and width / declared >= COARSEST:
            tick = declared
        else:
            tick = math.ldexp(1.0, max(math.frexp(width)[1] - 1 - FINE, math.frexp(far)[1] - 50, -1021))
        if declared is not None and width / declared >= FINEST:
            raise ValueError(
                f"column {name!r}: a resolution of {declared:g} is too fine for scale {width:g}, which must hold fewer "
                "than 2**44 steps"
            )
        if not math.isfinite(far + REACH * width):
            raise ValueError(f"column {name!r}: with scale {width:g} the noise is larger than float64 can hold")
        if not (far / tick + REACH * (width / tick) < LIMIT and width / tick >= COARSEST):
            raise ValueError(
                f"column {name!r}: with scale {width:g} the bounds ({low:g}, {high:g}) are too far from 0 for float64; "
                "subtract a public constant first"
            )
        rows.append((tick, *_inside(low, high, tick)))
    table = np.array(rows)
    return Lattice(table[:, 0].copy(), table[:, 1].copy(), table[:, 2].copy())


def smallest_scale(bounds: FloatArray) -> FloatArray:
    """The least noise that float64 can hold beside bounds (d, 2); shape (d,)."""
    exponent = np.frexp(np.abs(bounds).max(axis=1))[1]
    result: FloatArray = COARSEST * np.ldexp(1.0, np.maximum(exponent - 50, -1021))
    return result


def _inside(low: float, high: float, tick: float) -> tuple[float, float]:
    """First and last tick inside [low, high], up to rounding of a decimal tick; the nearest one if there is none."""
    first, last = low / tick, high / tick
    if math.frexp(tick)[0] == 0.5:  # a power of two: the quotients are exact
        lowest, highest = float(math.ceil(first)), float(math.floor(last))
    else:
        lowest, highest = (
            float(round(q)) if abs(round(q) - q) <= 4e-16 * abs(q) else float(outward(q))
            for q, outward in ((first, math.ceil), (last, math.floor))
        )
    if lowest > highest:
        lowest = highest = float(round(0.5 * (first + last)))
    return lowest, highest


class Kernel:
    """The lattice as the compiled loops want it (src/c/lattice.h)."""

    def __init__(self, grid: Lattice) -> None:
        fraction, exponent = np.frexp(grid.tick)
        binary = bool(((fraction == 0.5) & (np.abs(exponent) <= 900)).all())
        shift = 1.5 * 2.0**52 * grid.tick if binary else None
        self._lattice = (grid.low * grid.tick, grid.high * grid.tick, grid.tick, shift)

    def publish(self, values: FloatArray, noise: NDArray[np.int64], out: FloatArray) -> None:
        """``values`` (n, d), clipped and moved to ticks, plus ``noise`` (n, d) in ticks, as values into ``out``.

        Infinite entries become the bound on their side.  There are no negative zeros, which would
        tell a sign.
        """
        kernel.publish(*self._lattice, values, noise, out)

    def simulate(
        self,
        values: FloatArray,
        key: StreamKey,
        zero_prob: float,
        scale: FloatArray,
        out: FloatArray,
        first_chunk: int,
        last_chunk: int,
    ) -> bool:
        """The same for the rows of a range of chunks of `zil._core.sampling.CHUNK` rows, with noise from a stream.

        ``scale`` (d,) is in ticks.  Answers whether all those values are finite.
        """
        return kernel.simulate(*self._lattice, values, key, zero_prob, scale, out, first_chunk, last_chunk)


def effective_scale(scale: FloatArray, tick: FloatArray) -> FloatArray:
    """``sqrt(scale^2 + tick^2/12)``: the standard deviation of noise rounded to ticks, for the analyst."""
    return np.hypot(scale, tick / math.sqrt(12.0))
