"""Simulation designs of the paper, and repetitions spread over processes.

The designs are those of section 7 of Lu, Chen, Qiu (2026): six columns, standard normal truncated to
[-1, 1], all slopes 1, noise on the columns and not on the response.  A repetition has its own random
stream, keyed by the seed and its number, so results do not depend on how many processes share the work.
"""

from __future__ import annotations

import contextlib
import json
import math
import multiprocessing
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from scipy import optimize, special

from zil import _threads, _validate
from zil._validate import ConvergenceWarning, FloatArray
from zil.estimation import losses
from zil.estimation.fit import fit
from zil.estimation.losses.base import Loss
from zil.estimation.result import Fit
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


class Kept:
    """Finished repetitions in a folder, so that a run which was interrupted, or is to be longer, goes on.

    Parameters
    ----------
    folder : path
        Made if it is not there.
    run : dict
        What the repetitions depend on, as JSON can hold it; stands in ``run.json``.

    Raises
    ------
    ValueError
        The folder holds repetitions of another run.
    """

    def __init__(self, folder: str | Path, run: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        path, text = self.folder / "run.json", json.dumps(run, sort_keys=True)
        if path.exists() and path.read_text() != text:
            raise ValueError(f"keep: {folder} holds repetitions of {path.read_text()}, this run is {text}")
        path.write_text(text)

    def load(self) -> dict[int, FloatArray]:
        """Results by number."""
        found: dict[int, FloatArray] = {}
        for path in self.folder.glob("*.npz"):
            with np.load(path) as file:
                found.update(zip(file["numbers"].tolist(), file["results"], strict=True))
        return found

    def add(self, numbers: Sequence[int], results: Sequence[FloatArray]) -> None:
        """Store a batch, whole or not at all."""
        path = self.folder / f"{numbers[0]}.npz"
        unfinished = path.with_suffix(".part")
        with unfinished.open("wb") as file:
            np.savez(file, numbers=np.asarray(numbers), results=np.stack(results))
        unfinished.replace(path)


def _batch(task: Callable[[np.random.Generator], Any], seed: int, numbers: Sequence[int]) -> list[Any]:
    return [task(stream(seed, number)) for number in numbers]


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
    keep: Kept | None = None,
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
    keep : Kept, optional
        Repetitions found there are not run again, others are added; results must be arrays of one shape.
    """
    repetitions = _validate.integer("repetitions", repetitions, 1)
    seed = _validate.integer("seed", seed, 0)
    count = _threads.available_cpus() if processes is None else _validate.integer("processes", processes, 1)
    found: dict[int, Any] = {} if keep is None else keep.load()
    missing = [number for number in range(repetitions) if number not in found]
    count = max(1, min(count, len(missing)))
    size = max(1, min(25, math.ceil(len(missing) / (4 * count))))
    batches = [missing[k : k + size] for k in range(0, len(missing), size)]

    def collect(numbers: Sequence[int], results: list[Any]) -> None:
        found.update(zip(numbers, results, strict=True))
        if keep is not None:
            keep.add(numbers, results)
        if progress is not None:
            progress(sum(number < repetitions for number in found), repetitions)

    if count == 1:
        for numbers in batches:
            collect(numbers, _batch(task, seed, numbers))
    else:
        with _single_threaded(), ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
            futures = [pool.submit(_batch, task, seed, numbers) for numbers in batches]
            for numbers, future in zip(batches, futures, strict=True):
                collect(numbers, future.result())
    return [found[number] for number in range(repetitions)]
