"""Double randomisation: the second noise that turns X1 into X2.

``X2 = X1 + S`` with ``S ~ SL(zero_prob scale^2)`` makes ``X2 - X ~ SL(scale^2)`` (Lu, Chen, Qiu 2026,
section 4.1).  It is post-processing of published rows and needs no secrecy, so by default it comes
from a fixed stream keyed by row number: the same rows always get the same second noise.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zil import _random
from zil._validate import FloatArray
from zil.privacy.distributions import DOUBLE_DOMAIN, add_noise

# The default second noise; public, and part of the interface.
_PUBLIC_KEY = (0x5A494C, 0x646F75626C65, 0, 0)


def second_key(rng: Any = None, copy: int = 0) -> NDArray[np.uint64]:
    """Key of the stream of one second noise, shape (4,); ``rng`` None: the fixed public stream."""
    key = np.array(_PUBLIC_KEY, dtype=np.uint64) if rng is None else _random.resolve_key(rng)
    key[-1] += np.uint64(copy)
    return key


def double(
    x: FloatArray,
    zero_prob: float,
    scale: FloatArray,
    *,
    copies: int = 1,
    first_copy: int = 0,
    rng: Any = None,
    n_threads: int | None = None,
) -> FloatArray:
    """Doubly randomised copies of released rows.

    Parameters
    ----------
    x : (n, k) C array
        Released rows, noised columns (clean ones have scale 0 and stay as they are).
    zero_prob : float
    scale : (k,) array
        Noise scales of the release, in units of the columns.
    copies : int
        Number of independent copies.
    first_copy : int
        Number of the first one in the public stream.
    rng : None, int, SeedSequence, Generator or BitGenerator
        None: the fixed public stream.

    Returns
    -------
    (copies, n, k) array
    """
    n, k = x.shape
    out = np.empty((copies, n, k))
    noised = np.flatnonzero(scale)
    if len(noised) == 0 or zero_prob == 0.0 or n == 0:
        out[:] = x
        return out
    contiguous = len(noised) == k
    rows = x if contiguous else np.ascontiguousarray(x[:, noised])
    spread = np.ascontiguousarray(scale[noised] * math.sqrt(zero_prob))
    key = second_key(rng, first_copy)
    for copy in range(copies):
        target = out[copy] if contiguous else np.empty_like(rows)
        add_noise(rows, zero_prob=0.0, scale=spread, key=key, domain=DOUBLE_DOMAIN, n_threads=n_threads, out=target)
        key[-1] += np.uint64(1)
        if not contiguous:
            out[copy] = x
            out[copy][:, noised] = target
    return out
