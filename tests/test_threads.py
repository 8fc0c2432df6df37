"""Threads: how many, who decides, and what a forked, spawned or nested call does (public cases C34, C43)."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from children import draw, draw_into, fit, fit_into, fresh_into, resolved_into

import zil
from zil import _threads

TIMEOUT = 60


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_after_threads(method):
    """A child of a parent that has run several threads: no hang, the same bytes."""
    expected = draw(4)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=draw_into, args=(queue, 4))
    child.start()
    try:
        assert queue.get(timeout=TIMEOUT) == expected
        child.join(TIMEOUT)
        assert child.exitcode == 0
    finally:
        child.kill()
    assert draw(4) == expected


@pytest.mark.parametrize("method", ["fork", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fits_in_processes_after_a_fit(method):
    """The fit of a parent that used four threads, again in two children at once: no hang, the same bytes."""
    expected = fit(4).params.tobytes()
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    children = [context.Process(target=fit_into, args=(queue, n_threads)) for n_threads in (1, 4)]
    for child in children:
        child.start()
    try:
        assert [queue.get(timeout=TIMEOUT) for _ in children] == [expected] * 2
    finally:
        for child in children:
            child.kill()


@pytest.mark.parametrize(("method", "count"), [("fork", 1), ("spawn", 5)])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_starts_no_threads(method, count):
    """The parent's threads are not in the child; a spawned child is a process like any other."""
    draw(4)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=resolved_into, args=(queue, 5))
    child.start()
    try:
        found, alive = queue.get(timeout=TIMEOUT)
        child.join(TIMEOUT)
        assert (found, child.exitcode) == (count, 0)
        assert (alive == 0) == (method == "fork")
    finally:
        child.kill()
    assert _threads.resolve(5) == 5  # and the parent goes on as before
    assert draw(4) == draw(1)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fork_in_the_middle_of_calls_of_other_threads():
    """Whatever lock another thread holds at that moment, children answer and end."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            draw(3)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        context = multiprocessing.get_context("fork")
        for _ in range(15):
            child = context.Process(target=draw, args=(4,))
            child.start()
            child.join(TIMEOUT)
            code = child.exitcode
            child.kill()
            assert code == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join(TIMEOUT)


@pytest.mark.parametrize(
    "code",
    [
        "",
        "import atexit; atexit.register(lambda: print(len(zil.SymmetricLaplace(2).rvs(50_000, n_threads=2))))",
        "import os, sys\nif os.fork() == 0: zil.SymmetricLaplace(2).rvs(50_000, n_threads=2); sys.exit()\nos.wait()",
        "import threading; threading.Thread(target=lambda: zil.SymmetricLaplace(2).rvs(50_000, n_threads=2)).start()",
    ],
)
def test_the_interpreter_ends_clean(code):
    """After threads were used; with a call while it ends; in a forked child; with a thread still at work."""
    before = "import zil; zil.SymmetricLaplace(2).rvs(50_000, n_threads=4)\n"
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", before + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == ("50000" if "print" in code else "")


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_never_share_noise():
    """Forked workers that draw without a seed draw different noise."""
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    children = [context.Process(target=fresh_into, args=(queue,)) for _ in range(4)]
    for child in children:
        child.start()
    rows = [tuple(row) for _ in children for row in queue.get(timeout=TIMEOUT)]
    for child in children:
        child.join(TIMEOUT)
    rows += [tuple(row) for row in zil.SymmetricLaplace(2).rvs(50).tolist()]
    assert len(set(rows)) == len(rows)


def test_callers_in_many_threads_agree():
    expected = draw(1)
    found = [None] * 8

    def work(k):
        found[k] = draw(2)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert found == [expected] * 8


def test_a_shared_generator_gives_every_thread_its_own_key():
    rng = np.random.default_rng(3)
    found = []

    def work():
        found.extend(tuple(row) for row in zil.SymmetricLaplace(2).rvs(20, rng=rng).tolist())

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert len(set(found)) == 16 * 20


class TestResolve:
    def test_none_follows_affinity_and_environment(self, monkeypatch):
        monkeypatch.setattr(_threads, "available_cpus", lambda: 6)
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        assert _threads.resolve(None) == 6
        for setting, count in (("1", 1), ("4", 4), ("64", 6), ("2,3", 2), ("", 6), ("none", 6), ("0", 6), ("-2", 6)):
            monkeypatch.setenv("OMP_NUM_THREADS", setting)
            assert _threads.resolve(None) == count, setting

    @pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinity on this system")
    def test_affinity_of_the_process(self):
        code = (
            "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);"
            "from zil import _threads; print(_threads.resolve(None))"
        )
        environment = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        assert done.stdout.strip() == "1"

    def test_a_number_is_taken_as_it_is(self, monkeypatch):
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        assert _threads.resolve(3) == 3
        assert _threads.resolve(np.int64(2)) == 2

    @pytest.mark.parametrize("bad", [0, -1])
    def test_too_few(self, bad):
        with pytest.raises(ValueError, match="n_threads must be at least 1"):
            _threads.resolve(bad)

    @pytest.mark.parametrize("bad", [True, 1.0, "2", [1]])
    def test_no_count(self, bad):
        with pytest.raises(TypeError, match="n_threads must be an integer or None"):
            _threads.resolve(bad)


class TestRunChunks:
    @pytest.mark.parametrize("n_chunks", [0, 1, 2, 7, 100])
    @pytest.mark.parametrize("n_threads", [1, 2, 3, 16])
    def test_every_chunk_once(self, n_chunks, n_threads):
        seen = []
        _threads.run_chunks(lambda a, b: seen.extend(range(a, b)), n_chunks, n_threads)
        assert sorted(seen) == list(range(n_chunks))

    def test_nested_use_is_one_thread(self):
        inner = []

        def task(a, b):
            inner.append(_threads.resolve(8))
            inner.append(_threads.resolve(None))

        _threads.run_chunks(task, 4, 4)
        assert inner == [1] * 8
        assert _threads.resolve(8) == 8  # and over when the call is

    def test_the_error_of_a_range_is_raised(self):
        def task(a, b):
            if a <= 5 < b:
                raise MemoryError("chunk 5")

        for n_threads in (1, 2, 8):
            with pytest.raises(MemoryError, match="chunk 5"):
                _threads.run_chunks(task, 8, n_threads)
        assert _threads.resolve(8) == 8

    def test_ranges_run_at_the_same_time(self):
        """Two ranges that wait for each other finish (they would not, one after the other)."""
        barrier = threading.Barrier(2, timeout=TIMEOUT)
        _threads.run_chunks(lambda a, b: barrier.wait(), 2, 2)

    def test_threads_are_kept(self, monkeypatch):
        monkeypatch.setattr(_threads, "_pool", None)
        monkeypatch.setattr(_threads, "_pool_size", 0)
        monkeypatch.setattr(_threads, "available_cpus", lambda: 3)
        names = set()

        def task(a, b):
            barrier.wait()
            names.add(threading.current_thread().name)

        for _ in range(20):
            barrier = threading.Barrier(3, timeout=TIMEOUT)
            _threads.run_chunks(task, 3, 3)
        started = {name for name in names if name.startswith("zil")}
        assert len(started) == 2  # new threads for every call would be 40 names
        assert len(names - started) == 1  # the caller works too

    def test_no_call_waits_for_a_busy_pool(self, monkeypatch):
        """The only thread of the pool is held; a call of eight ranges finishes all the same."""
        from concurrent.futures import ThreadPoolExecutor

        free = threading.Event()
        seen = []
        with ThreadPoolExecutor(1) as pool:
            monkeypatch.setattr(_threads, "_pool", pool)
            monkeypatch.setattr(_threads, "_pool_size", 7)
            held = pool.submit(free.wait, TIMEOUT)
            _threads.run_chunks(lambda a, b: seen.extend(range(a, b)), 8, 8)
            assert not held.done()
            free.set()
        assert sorted(seen) == list(range(8))

    def test_no_range_runs_on_after_an_error(self):
        done = []

        def task(a, b):
            if a == 0:
                raise ValueError("first")
            time.sleep(0.05)
            done.append(a)

        with pytest.raises(ValueError, match="first"):
            _threads.run_chunks(task, 4, 4)
        assert sorted(done) == [1, 2, 3]

    def test_the_lock_is_released_in_kernels(self):
        """A second thread gets several turns within one call (at most two if the lock were held)."""
        turns = []
        done = threading.Event()

        def count():
            while not done.is_set():
                turns.append(1)
                time.sleep(1e-3)

        def turns_within_a_call():
            before = len(turns)
            zil.SymmetricLaplace(8).rvs(1_000_000, n_threads=1)
            return len(turns) - before

        watcher = threading.Thread(target=count)
        watcher.start()
        try:
            assert any(turns_within_a_call() > 3 for _ in range(20))
        finally:
            done.set()
            watcher.join(TIMEOUT)
