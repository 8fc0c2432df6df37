"""What child processes run in tests/test_threads.py; a module of its own, so that a spawned child can import it."""

import zil

ROWS = 20_000


def draw(n_threads):
    return zil.ZeroInflatedLaplace(0.2, dim=3).rvs(ROWS, rng=7, n_threads=n_threads).tobytes()


def draw_into(queue, n_threads):
    queue.put(draw(n_threads))


def fresh_into(queue):
    queue.put(zil.SymmetricLaplace(2).rvs(50).tolist())
