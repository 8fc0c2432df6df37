"""Thread counts and the one loop that uses several threads.

Design: kernels work on a range of fixed chunks and hold no lock, so Python threads over ranges are
enough.  Against OpenMP there is no second runtime to ship, to clash with another library's, or to
hang a forked child (libgomp does), and results are the same with any number of threads because
partial results are folded in chunk order.

The threads are kept between calls: starting one costs about 50 us, waking one 10 us.  The caller works
too, and takes back every range that no thread has begun, so a call never waits for a busy pool and
two callers never for each other.  A forked child has none of its parent's threads and starts none:
who forks workers has divided the machine among them already.
"""

from __future__ import annotations

import functools
import operator
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

_worker = threading.local()
_state_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0
_forked = False


def _after_fork() -> None:
    """In the child: the pool's threads stayed with the parent, the lock may be held by one that is gone."""
    global _pool, _pool_size, _forked, _state_lock
    _pool, _pool_size, _forked, _state_lock = None, 0, True, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def available_cpus() -> int:
    """Number of CPUs that the affinity mask leaves to this process."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def resolve(n_threads: int | None) -> int:
    """Turn the user's ``n_threads`` into a count of at least 1.

    None means what ``OMP_NUM_THREADS`` and the CPU affinity allow.  Inside a worker thread of this
    module the answer is 1, so nested calls never multiply; in a forked child it is 1 too.
    """
    if n_threads is not None:
        n_threads = _count(n_threads)
    if _forked or getattr(_worker, "busy", False):
        return 1
    if n_threads is None:
        limit = available_cpus()
        setting = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
        if setting.isdigit() and int(setting) > 0:
            limit = min(limit, int(setting))
        return limit
    return n_threads


def _count(n_threads: int) -> int:
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
    is used only for every ``grain`` chunks (waking one costs about 10 us).  The first exception of a
    range is raised here, when all ranges are done.
    """
    count = min(resolve(n_threads), n_chunks // grain)
    if count <= 1:
        if n_chunks > 0:
            task(0, n_chunks)
        return
    edges = [n_chunks * k // count for k in range(count + 1)]
    ranges = [functools.partial(_busy, task, edges[k], edges[k + 1]) for k in range(count)]
    futures = _submit(ranges[1:])
    errors = [_error(ranges[0])]
    # from the last to the first: the pool begins them in order
    taken = {k: _error(ranges[k]) for k in range(count - 1, 0, -1) if _take_back(futures[k - 1])}
    for k, future in enumerate(futures, 1):
        errors.append(taken[k] if k in taken or future is None else future.exception())
    for error in errors:
        if error is not None:
            raise error


def _busy(task: Callable[[int, int], None], first: int, last: int) -> None:
    _worker.busy = True
    try:
        task(first, last)
    finally:
        _worker.busy = False


def _error(work: Callable[[], None]) -> BaseException | None:
    """Run; the exception instead of raising it, so that no range is left running behind the caller's back."""
    try:
        work()
    except BaseException as error:
        return error
    return None


def _submit(works: list[functools.partial[None]]) -> list[Future[None] | None]:
    """Hand ranges to the pool; None for what it does not take because the interpreter is ending.

    The pool has a thread for every CPU, or for every range of the largest call so far if that asked for
    more; they are started as they are needed.
    """
    global _pool, _pool_size
    with _state_lock:
        if _pool is None or _pool_size < len(works):
            if _pool is not None:
                _pool.shutdown(wait=False)  # its ranges are finished first
            _pool_size = max(len(works), available_cpus() - 1)
            _pool = ThreadPoolExecutor(_pool_size, thread_name_prefix="zil")
        futures: list[Future[None] | None] = []
        for work in works:
            try:
                futures.append(_pool.submit(work))
            except RuntimeError:
                futures.append(None)
        return futures


def _take_back(future: Future[None] | None) -> bool:
    return future is None or future.cancel()
