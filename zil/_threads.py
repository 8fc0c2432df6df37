"""Thread counts and the one loop that uses several threads.

Design: kernels work on a range of fixed chunks and hold no lock, so a Python thread per
range is enough.  Against OpenMP: about 50 us more per call, but no second runtime to ship,
to clash with another library's, or to hang a forked child (libgomp does), and results are
the same with any number of threads because partial results are folded in chunk order.
"""

from __future__ import annotations

import operator
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

_worker = threading.local()


def available_cpus() -> int:
    """Number of CPUs that the affinity mask leaves to this process."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def resolve(n_threads: int | None) -> int:
    """Turn the user's ``n_threads`` into a count of at least 1.

    None means what ``OMP_NUM_THREADS`` and the CPU affinity allow; inside a worker thread of
    this module the answer is 1, so nested calls never multiply.
    """
    if getattr(_worker, "busy", False):
        return 1
    if n_threads is None:
        limit = available_cpus()
        setting = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        if setting.isdigit() and int(setting) > 0:
            limit = min(limit, int(setting))
        return limit
    if isinstance(n_threads, bool):
        raise TypeError(f"n_threads must be an integer or None, got {n_threads!r}")
    try:
        count = operator.index(n_threads)
    except TypeError:
        raise TypeError(f"n_threads must be an integer or None, got {type(n_threads).__name__}") from None
    if count < 1:
        raise ValueError(f"n_threads must be at least 1, got {count}")
    return count


def run_chunks(
    task: Callable[[int, int], None], n_chunks: int, n_threads: int | None = None, *, grain: int = 1
) -> None:
    """Call ``task(first, last)`` over contiguous ranges that cover ``range(n_chunks)``.

    ``task`` must release the interpreter lock and write only what belongs to its chunks.  The
    split never changes a result: every chunk is the same work whoever does it.  A further thread
    is started only for every ``grain`` chunks (starting one costs about 50 us).  The first
    exception of a range is raised here.
    """
    count = min(resolve(n_threads), n_chunks // grain)
    if count <= 1:
        if n_chunks > 0:
            task(0, n_chunks)
        return
    edges = [n_chunks * k // count for k in range(count + 1)]

    def work(first: int, last: int) -> None:
        _worker.busy = True
        try:
            task(first, last)
        finally:
            _worker.busy = False

    with ThreadPoolExecutor(count - 1) as pool:
        futures = [pool.submit(work, edges[k], edges[k + 1]) for k in range(1, count)]
        work(edges[0], edges[1])
        for future in futures:
            future.result()
