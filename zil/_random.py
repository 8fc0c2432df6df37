"""The one place that turns the user's ``rng`` into the key of a chunk-keyed stream.

A key is 256 bits (four 64-bit words).  Kernels derive from it one stream per fixed chunk of rows
(``src/c/streams.h``), so a result depends on the key alone, never on the number of threads.
"""

from __future__ import annotations

import numbers
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zil._core import sampling

Key = NDArray[np.uint64]

KEY_WORDS = 4


def bit_generator(rng: Any) -> Any:
    """The caller's own bit generator, which a draw moves on, or None: seeds do not change."""
    if isinstance(rng, np.random.RandomState):
        return rng._bit_generator
    if isinstance(rng, np.random.Generator):
        return rng.bit_generator
    return rng if hasattr(rng, "capsule") and hasattr(rng, "lock") else None


def resolve_key(rng: Any = None) -> Key:
    """Four words that key every stream of one call.

    Parameters
    ----------
    rng : None, int, SeedSequence, BitGenerator or Generator
        None: fresh entropy from the operating system.  A non-negative int (or sequence of them)
        or a SeedSequence: the key is what ``numpy.random.default_rng(rng)`` gives first.  A
        Generator or BitGenerator: its next four 64-bit outputs, taken under its lock, so two
        calls on one generator differ.

    Returns
    -------
    array (4,) of uint64

    Raises
    ------
    TypeError, ValueError
        What cannot seed a generator.
    """
    key = np.empty(KEY_WORDS, dtype=np.uint64)
    if rng is None:
        key[:] = np.frombuffer(os.urandom(key.nbytes), dtype=np.uint64)
        return key
    if isinstance(rng, (bool, np.bool_, str, bytes, float)):
        raise TypeError(f"rng must be None, an int, a SeedSequence, a BitGenerator or a Generator, got {rng!r}")
    if isinstance(rng, numbers.Integral) and rng < 0:
        raise ValueError(f"rng as a seed must be a non-negative integer, got {rng}")
    source = bit_generator(rng)
    if source is None:
        try:
            source = np.random.default_rng(rng).bit_generator
        except TypeError:
            raise TypeError(
                f"rng must be None, an int, a SeedSequence, a BitGenerator or a Generator, got {type(rng).__name__}"
            ) from None
    sampling.read_key(source, key)
    return key
