"""Simulation designs of the paper, and repetitions spread over processes.

The designs are those of section 7 of Lu, Chen, Qiu (2026): six columns, standard normal truncated to
[-1, 1], all slopes 1, noise on the columns and not on the response.  A repetition has its own random
stream, keyed by the seed and its number, so results do not depend on how many processes share the work.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, TextIO

import numpy as np
from scipy import optimize, special

from zil import _threads, _validate
from zil._validate import ConvergenceWarning, FloatArray
from zil.estimation import losses
from zil.estimation.fit import fit
from zil.estimation.inference import Fit
from zil.estimation.losses import Loss
from zil.privacy.distributions import ZeroInflatedLaplace
from zil.privacy.noise import Noise

DIM = 6
EDGE = 1.0
ZERO_PROB = 0.2
BOUNDS = np.tile([-EDGE, EDGE], (DIM, 1))
# Libraries that would start threads of their own in every process.
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Progress = Callable[[int, int], None]


def covariates(rng: np.random.Generator, n: int) -> FloatArray:
    """``n`` rows of independent standard normal entries truncated to [-1, 1], shape (n, 6)."""
    low = special.ndtr(-EDGE)
    return np.asarray(special.ndtri(low + (1.0 - 2.0 * low) * rng.random((n, DIM))))


@dataclass(frozen=True)
class Design:
    """A regression on the six covariates, with its loss and its true parameters.

    Attributes
    ----------
    response : {"linear", "logistic"}
        ``1 + x'1 + N(0, 1)``, or a class that is 1 with probability ``expit(x'1)``.
    truth : (p,) array
        Minimiser of the expected loss.
    """

    loss: Loss
    response: str
    truth: FloatArray
    intercept: bool

    def draw(self, rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
        """Original rows: x of shape (n, 6), y of shape (n,)."""
        x = covariates(rng, n)
        index = x.sum(axis=1)
        if self.response == "linear":
            return x, 1.0 + index + rng.standard_normal(n)
        return x, (rng.random(n) < special.expit(index)).astype(np.float64)


def design(name: str) -> Design:
    """A design by name: "logistic", "median", "quantile:0.9", "huber", "hinge".

    Raises
    ------
    ValueError
        Unknown name.
    """
    if name == "median":
        name = "quantile:0.5"
    loss = losses.resolve(name)
    if isinstance(loss, losses.Logistic):
        return Design(loss, "logistic", np.ones(DIM), False)
    if isinstance(loss, losses.Quantile):
        start = 1.0 + float(special.ndtri(loss.tau))
        return Design(loss, "linear", np.array([start, *np.ones(DIM)]), True)
    if isinstance(loss, losses.Huber):  # symmetric errors: the centre, whatever k
        return Design(loss, "linear", np.ones(DIM + 1), True)
    if isinstance(loss, losses.Hinge):
        return Design(loss, "logistic", np.array([0.0, *np.full(DIM, hinge_slope())]), True)
    raise ValueError(f"no design for the loss {name!r}")


def hinge_slope() -> float:
    """Common slope ``b`` of the best linear margin: the root of ``E[y s 1{y b s < 1}] = 0``, ``s = x'1``.

    The covariates are exchangeable and ``(x, y) -> (-x, -y)`` keeps the law, so all slopes are equal and the
    intercept is 0.  The density of ``s`` is a six-fold convolution on a grid (midpoints, step 1/4096).
    """
    step = 1.0 / 4096.0
    grid = np.arange(-EDGE + step / 2, EDGE, step)
    one = np.exp(-0.5 * grid**2)
    size = DIM * (len(one) - 1) + 1
    mass = np.fft.irfft(np.fft.rfft(one / one.sum(), 2 * size) ** DIM, 2 * size)[:size]
    s = DIM * grid[0] + step * np.arange(size)
    pull = mass * s * special.expit(s)  # both classes weigh the same: (s, y) and (-s, -y)
    below = np.concatenate([[0.0], np.cumsum(pull)])
    edges = np.concatenate([s - step / 2, [s[-1] + step / 2]])

    def gradient(b: float) -> float:
        return float(np.interp(1.0 / b, edges, below))

    return float(optimize.brentq(gradient, 1.0 / (DIM * EDGE), 100.0))


def publish(x: FloatArray, scale: float, rng: np.random.Generator, zero_prob: float = ZERO_PROB) -> FloatArray:
    """``X1 = x + ZIL(zero_prob, scale)``, reproducible: for simulations only."""
    law = ZeroInflatedLaplace(zero_prob, dim=x.shape[1], scale=scale)
    return x + law.rvs(len(x), rng=rng, n_threads=1)


def estimates(
    plan: Design, n: int, scales: Sequence[float], methods: Sequence[str], rng: np.random.Generator
) -> dict[tuple[float, str], Fit]:
    """One repetition: the original rows once, then every noise scale and method, keyed by (scale, method).

    "oracle" is the fit of the original rows.  Methods with a second noise share it, as in the paper.
    """
    x, y = plan.draw(rng, n)
    out: dict[tuple[float, str], Fit] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        oracle = (
            fit(plan.loss, x, y=y, intercept=plan.intercept, n_threads=1, method="naive")
            if "oracle" in methods
            else None
        )
        for scale in scales:
            released = publish(x, scale, rng)
            noise = Noise(ZERO_PROB, scale)
            second = int(rng.integers(2**63))
            naive = fit(plan.loss, released, y=y, noise=noise, method="naive", intercept=plan.intercept, n_threads=1)
            for method in methods:
                if method == "oracle":
                    assert oracle is not None
                    out[scale, method] = oracle
                elif method == "naive":
                    out[scale, method] = naive
                else:
                    out[scale, method] = fit(
                        plan.loss,
                        released,
                        y=y,
                        noise=noise,
                        method=method,
                        intercept=plan.intercept,
                        bounds=BOUNDS if method == "optimal" or plan.loss.kinked else None,
                        start=naive.params,
                        rng=second,
                        n_threads=1,
                    )
    return out


class Bar:
    """Progress on a terminal: done, total and the time left; silent elsewhere."""

    def __init__(self, label: str, stream: TextIO | None = None) -> None:
        self.label = label
        self.stream = sys.stderr if stream is None else stream
        self.begun = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        if not self.stream.isatty():
            return
        left = (time.monotonic() - self.begun) / done * (total - done) if done else 0.0
        filled = round(30 * done / total)
        line = f"\r{self.label} [{'#' * filled}{'.' * (30 - filled)}] {done}/{total}, {left:.0f} s left "
        self.stream.write(line if done < total else "\r" + " " * len(line) + "\r")
        self.stream.flush()


@contextlib.contextmanager
def _single_threaded() -> Iterator[None]:
    """Processes started inside have one thread each in every numerical library."""
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _batch(task: Callable[[np.random.Generator], Any], seed: int, first: int, last: int) -> list[Any]:
    return [task(stream(seed, number)) for number in range(first, last)]


def stream(seed: int, number: int) -> np.random.Generator:
    """The generator of one repetition."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy=seed, spawn_key=(number,))))


def repeat(
    task: Callable[[np.random.Generator], Any],
    repetitions: int,
    *,
    seed: int = 0,
    processes: int | None = None,
    progress: Progress | None = None,
) -> list[Any]:
    """``task(generator)`` for every repetition, in order.

    Parameters
    ----------
    task : callable
        Picklable (a module's function, or a partial of one).
    repetitions : int >= 1
    seed : int >= 0
    processes : int, optional
        Default: as many as there are CPUs; 1 stays in this process.  More than 1 starts fresh interpreters, so a
        script must have the usual ``if __name__ == "__main__":``.
    progress : callable of (done, total), optional
    """
    repetitions = _validate.integer("repetitions", repetitions, 1)
    seed = _validate.integer("seed", seed, 0)
    count = _threads.available_cpus() if processes is None else _validate.integer("processes", processes, 1)
    count = min(count, repetitions)
    size = max(1, min(25, math.ceil(repetitions / (4 * count))))
    starts = range(0, repetitions, size)
    out: list[Any] = []

    def collect(part: list[Any]) -> None:
        out.extend(part)
        if progress is not None:
            progress(len(out), repetitions)

    if count == 1:
        for first in starts:
            collect(_batch(task, seed, first, min(first + size, repetitions)))
        return out
    with _single_threaded(), ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
        futures = [pool.submit(_batch, task, seed, k, min(k + size, repetitions)) for k in starts]
        for future in futures:
            collect(future.result())
    return out
