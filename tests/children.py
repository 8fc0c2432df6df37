"""What child processes run in tests; a module of its own, so that a spawned child can import it."""

import threading

import numpy as np

import zil
from zil import _threads

ROWS = 20_000


def draw(n_threads):
    return zil.ZeroInflatedLaplace(0.2, dim=3).rvs(ROWS, rng=7, n_threads=n_threads).tobytes()


def draw_into(queue, n_threads):
    queue.put(draw(n_threads))


def resolved_into(queue, n_threads):
    """What a child may start, and how many threads it runs after a call."""
    draw(n_threads)
    alive = sum(thread.name.startswith("zil") for thread in threading.enumerate())
    queue.put((_threads.resolve(n_threads), alive))


def fresh_into(queue):
    queue.put(zil.SymmetricLaplace(2).rvs(50).tolist())


def fit(n_threads):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (ROWS, 3))
    y = x.sum(axis=1) + rng.normal(size=ROWS)
    published = x + zil.ZeroInflatedLaplace(0.3, dim=3).rvs(ROWS, rng=1)
    noise = zil.Noise(0.3, [1.0, 1.0, 1.0, 0.0])
    return zil.fit("logistic", np.column_stack([published, y > 0]), y=3, noise=noise, method="rb", n_threads=n_threads)


def fit_into(queue, n_threads):
    queue.put(fit(n_threads).params.tobytes())


def three_uniforms(rng):
    return rng.random(3)
