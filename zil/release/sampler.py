"""Exactly rounded noise in ticks, from a key: the certified sampler.

For ideal uniforms the law of a row is *exactly* that of ``round(Z / tick)`` with Z zero-inflated
symmetric Laplace: the compiled kernel proves which rows double precision decides, and the slow path
decides the others.  There is no numerical delta.  The argument is in ``docs/certified_sampler.md``.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf, nextafter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from zil import _threads, _validate
from zil._core import certified
from zil.release import slowpath
from zil.release.keystream import KEY_BYTES, Key

MAX_SCALE = 2.0**44
"""Largest scale in ticks; the fast path rounds numbers below 2^51."""

BATCH_ROWS = 16_384  # rows of one kernel call: the buffer of undecided rows stays small, and threads share evenly
_WORD = 2**64


def zero_threshold(zero_prob: float) -> int:
    """``floor(zero_prob 2^64)``: a row is zero if its zero word is below."""
    return int(Fraction(_validate.probability("zero_prob", zero_prob)) * _WORD)


def dyadic(zero_prob: float) -> float:
    """The probability that is really used, ``floor(zero_prob 2^64) / 2^64``; never above ``zero_prob``.

    Exact as a float, and equal to ``zero_prob`` from 2^-11 on.
    """
    return zero_threshold(zero_prob) / _WORD


def scale_in_ticks(scale: float, tick: float) -> float:
    """The smallest float that is at least ``scale / tick``: rounding never makes the noise smaller."""
    exact = Fraction(_validate.positive("scale", scale)) / Fraction(_validate.positive("tick", tick))
    ratio = float(exact)
    return ratio if Fraction(ratio) >= exact else nextafter(ratio, inf)


class TickNoise:
    """Rows of noise in ticks, as a function of their number; the parameters are checked once, here.

    Parameters
    ----------
    key : Key or 32 bytes
        Secret; used for one release only.  Holding a Key, this object can be neither copied nor pickled.
    scale_over_tick : array_like (d,)
        Scale of each column in ticks, in [0, 2^44]; taken as exact (see `scale_in_ticks`).  A 0 gives zeros.
    zero_prob : float
        Probability of a zero row; `dyadic` tells the value used.
    """

    __slots__ = ("_all_zero", "_key", "_scales", "_threshold")

    def __init__(self, key: Key | bytearray | bytes, scale_over_tick: ArrayLike, zero_prob: float) -> None:
        self._key = key if isinstance(key, Key) else Key(bytearray(key))
        self._scales = _validate.finite_array("scale_over_tick", scale_over_tick, 1)
        if not ((self._scales >= 0) & (self._scales <= MAX_SCALE)).all():
            raise ValueError(f"scale_over_tick must be in [0, 2**44], got {self._scales.tolist()}")
        threshold = zero_threshold(zero_prob)
        self._all_zero = threshold == _WORD
        self._threshold = threshold - self._all_zero  # 2^64 has no room in a word

    @property
    def dim(self) -> int:
        return len(self._scales)

    def into(self, out: NDArray[np.int64], first_row: int) -> None:
        """Write rows ``first_row ..`` into ``out`` (n, d)."""
        undecided = np.empty(len(out), np.int64)
        count = certified.fill(
            self._key.secret, first_row, self._threshold, self._scales, out, undecided, self._all_zero
        )
        for row in undecided[:count].tolist():
            out[row] = self.exact(first_row + row)

    def exact(self, row: int) -> list[int]:
        """One row by the slow path alone; zero rows do the same work."""
        width = certified.words_per_row(self.dim)

        def words(level: int) -> list[int]:
            drawn = np.empty(width, np.uint64)
            certified.stream(self._key.secret, certified.level_nonce(level), row * width, drawn)
            return drawn.tolist()

        ticks = slowpath.ticks(words, self._scales.tolist())
        zero = self._all_zero or words(0)[0] < self._threshold
        return [0 if zero else tick for tick in ticks]


def draw_ticks(
    key: Key | bytearray | bytes,
    n: int,
    scale_over_tick: ArrayLike,
    zero_prob: float,
    *,
    first_row: int = 0,
    n_threads: int | None = None,
) -> NDArray[np.int64]:
    """Noise of rows ``first_row .. first_row + n - 1`` in ticks.

    Row i is a function of the key, of i, of d and of the parameters alone: batches, threads, instruction
    sets and builds give the same integers.

    Parameters
    ----------
    key, scale_over_tick, zero_prob
        As for `TickNoise`.
    n : int
        Number of rows.
    first_row : int
        Number of the first row within the release, below 2^48.
    n_threads : int, optional
        None: what ``OMP_NUM_THREADS`` and the affinity allow.

    Returns
    -------
    int64 array (n, d)
        ``round(R_j sqrt(2 W E) cos(2 pi U))`` or, in zero rows, 0.

    Raises
    ------
    ValueError, TypeError
        For parameters outside their range; nothing was drawn then.
    """
    noise = TickNoise(key, scale_over_tick, zero_prob)
    rows = _validate.integer("n", n, 0)
    start = _validate.integer("first_row", first_row, 0)
    if start + rows > 2**48:
        raise ValueError(f"a release has at most 2**48 rows, got first_row + n = {start + rows}")
    out = np.empty((rows, noise.dim), np.int64)

    def task(first: int, last: int) -> None:
        for low in range(first * BATCH_ROWS, min(last * BATCH_ROWS, rows), BATCH_ROWS):
            noise.into(out[low : low + BATCH_ROWS], start + low)

    _threads.run_chunks(task, -(-rows // BATCH_ROWS), n_threads)
    return out


# Key 00 01 .. 1f, probability 1/4, from tools/make_certified_vectors.py's oracle; the last row needs the slow path.
_KNOWN_SCALES = [2.0**20, 3.7, 2.0**44]
_KNOWN_TICKS = [
    [-1992409, -12, 5213662113765],
    [0, 0, 0],
    [920544, 0, -5815770094240],
    [581703, 0, -3306493893350],
    [-767351, 5, -37387353062152],
    [0, 0, 0],
    [0, 0, 0],
    [-3473832, -2, -7375210910585],
    [1302108, 4, -18235451302221],
    [-116901, -2, 47311580731920],
    [291065, -2, 19698736544340],
    [117084, -2, 7241525034312],
]


def _check_known_answers() -> None:
    """A build that computes anything else must not release anything."""
    if (
        draw_ticks(bytes(range(KEY_BYTES)), len(_KNOWN_TICKS), _KNOWN_SCALES, 0.25, n_threads=1).tolist()
        != _KNOWN_TICKS
    ):
        raise ImportError("zil.release.sampler: this build does not reproduce the known answers of the tick sampler")


_check_known_answers()
