"""Bootstrap of rows.

Design: a resample is a set of row weights (how often each row was drawn), so no table is copied and the second
noise of a row stays with it; replicates run in threads, since nearly all of the time is spent in kernels
that hold no lock, and each replicate has its own random stream, so results do not depend on the
number of threads.  Processes would copy the sample and import the package once per worker.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from zil import _random, _threads, _validate
from zil._validate import ConvergenceWarning, FloatArray

# Share of replicates that may fail before the covariance is not trusted.
MAX_FAILED = 0.1


def fixed_seed(rng: Any) -> Any:
    """None, or an integer seed that stands for ``rng`` in every replicate (a generator is read once)."""
    if rng is None or isinstance(rng, (int, np.integer)):
        return rng
    return int.from_bytes(_random.resolve_key(rng).tobytes(), "little")


class Resampled(Protocol):
    """What is resampled: a fit of n rows that can be done again with other counts of them."""

    @property
    def n_rows(self) -> int:
        """Rows of the sample."""

    def refit(self, counts: FloatArray, start: FloatArray) -> FloatArray | None:
        """Estimates (p,) where row i counts ``counts[i]`` times, from a start; None where there is no minimum."""


def replicates(
    plan: Resampled, theta: FloatArray, n_boot: int, seed: Any, n_threads: int | None, progress: bool
) -> FloatArray:
    """Estimates on resampled rows, shape (n_boot, p); a row of nan where a replicate found no minimum."""
    n = plan.n_rows
    streams = np.random.SeedSequence(seed).spawn(n_boot)

    def one(stream: np.random.SeedSequence) -> FloatArray:
        draws = np.random.default_rng(stream).integers(0, n, n)
        counts = np.bincount(draws, minlength=n).astype(np.float64)
        found = plan.refit(counts, theta)
        return np.full(len(theta), np.nan) if found is None else found

    out = np.empty((n_boot, len(theta)))
    with ThreadPoolExecutor(min(n_boot, _threads.resolve(n_threads))) as pool:
        for k, estimate in enumerate(_shown(pool.map(one, streams), n_boot, progress)):
            out[k] = estimate
    return out


def _shown(results: Iterator[FloatArray], total: int, progress: bool) -> Iterator[FloatArray]:
    """The same results, with a line on stderr that counts them (tqdm where it is installed)."""
    if not progress:
        yield from results
        return
    try:
        from tqdm import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore]

        yield from tqdm(results, total=total, desc="bootstrap")
    except ImportError:
        for k, result in enumerate(results, start=1):
            sys.stderr.write(f"\rbootstrap {k}/{total}" + ("\n" if k == total else ""))
            sys.stderr.flush()
            yield result


def covariance(
    plan: Resampled, theta: FloatArray, n_boot: int, seed: Any, n_threads: int | None, progress: bool
) -> tuple[FloatArray, str]:
    """Covariance of the replicates, shape (p, p), and a note on how many there were."""
    n_boot = _validate.integer("n_boot", n_boot, 2)
    found = replicates(plan, theta, n_boot, seed, n_threads, progress)
    good = found[np.isfinite(found).all(axis=1)]
    note = f"bootstrap: {len(good)} of {n_boot} resamples of rows"
    if n_boot - len(good) > MAX_FAILED * n_boot or len(good) < 2:
        warnings.warn(
            f"{n_boot - len(good)} of {n_boot} bootstrap replicates found no minimum; standard errors are nan",
            ConvergenceWarning,
            stacklevel=4,
        )
        return np.full((len(theta), len(theta)), np.nan), note
    return np.atleast_2d(np.cov(good, rowvar=False)), note
