#!/usr/bin/env python3
"""Do the corrected estimates agree?  Every loss, every correction, against the original data and each other.

    python tools/agreement.py --out docs/agreement.md

Each draw: new original rows, one release, an own second noise; the original-data fit and the fit of every method on
these same rows.  z of a parameter is the mean of the *paired* differences over its standard error.

Corrected scores are unbiased, estimates only to order 1/n: their bias is of order ``scale^2/n`` and the standard
deviation of a paired difference of order ``scale/sqrt(n)``, so over R draws z is shifted by a multiple of
``scale sqrt(R/n)``.  Measured at n = 1000, scale 0.4, 300 draws: shifts of 2 to 4 for Poisson and logistic DR, below 2
for the others.  Hence the small scale and the large n: 0.4 at the worst for scale 0.2, n = 20000, 200 draws.  What
is tested is the correction, and a wrong one shows: "naive" is the power check of each loss.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

import zil
from zil import losses
from zil.interfaces import simulation

ZERO_PROB, SCALE = 0.4, 0.2
LIMIT = 4.5
ORIGINAL = "original"

Rows = tuple[np.ndarray, np.ndarray]


def regression(rng: np.random.Generator, n: int, slopes: tuple[float, float] = (1.0, -0.7)) -> Rows:
    x = rng.uniform(-1.0, 1.0, (n, 2))
    return x, 0.3 + x @ slopes + rng.standard_normal(n)


def classes(rng: np.random.Generator, n: int) -> Rows:
    x = rng.uniform(-1.0, 1.0, (n, 2))
    return x, np.where(rng.random(n) < special.expit(0.3 + 2.0 * x @ (1.0, -0.7)), 1.0, -1.0)


def counts(rng: np.random.Generator, n: int) -> Rows:
    x = rng.uniform(-1.0, 1.0, (n, 2))
    return x, rng.poisson(np.exp(0.3 + x @ (0.6, -0.4))).astype(np.float64)


def column(rng: np.random.Generator, n: int) -> Rows:
    return np.empty((n, 0)), 0.7 * rng.beta(1.0, 5.0, n)


def growth(rng: np.random.Generator, n: int) -> Rows:
    x = rng.uniform(0.0, 1.0, (n, 1))
    return x, 2.0 * np.exp(0.7 * x[:, 0]) + 0.3 * rng.standard_normal(n)


def _custom_mean(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return np.asarray(theta[0] * np.exp(theta[1] * x[:, 0]))


def _custom_gradient(x: np.ndarray, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    size = np.exp(theta[1] * x[:, 0])
    return np.asarray(-2.0 * (y - theta[0] * size)[:, None] * np.column_stack([size, theta[0] * x[:, 0] * size]))


def _custom_laplacian(x: np.ndarray, y: np.ndarray, theta: np.ndarray) -> np.ndarray:
    mean = _custom_mean(x, theta)
    return np.asarray(2.0 * (theta[1] * mean) ** 2 - 2.0 * (y - mean) * theta[1] ** 2 * mean)


def log_cosh() -> losses.Index:
    return losses.Index(
        lambda eta, y: np.logaddexp(eta - y, y - eta),
        lambda eta, y: np.tanh(eta - y),
        lambda eta, y: 1.0 - np.tanh(eta - y) ** 2,
    )


@dataclass(frozen=True)
class Case:
    """One loss with rows to fit.

    ``noised_y``: the response carries noise too; ``most``: rows at most (slow losses); ``consistent``: the naive method
    is right here, no power check.
    """

    loss: Callable[[], losses.Loss]
    draw: Callable[..., Rows]
    methods: tuple[str, ...]
    noised_y: bool = False
    start: tuple[float, ...] | None = None
    scale: float = SCALE
    most: int | None = None
    consistent: bool = False


SMOOTH, KINKED = ("naive", "dr", "sdr", "sl", "rb"), ("naive", "dr", "rb")

CASES: dict[str, Case] = {
    "least squares": Case(losses.Squared, regression, SMOOTH),
    "least squares, y noised": Case(losses.Squared, regression, SMOOTH, True),
    "median": Case(losses.Absolute, regression, KINKED),
    "median, y noised": Case(losses.Absolute, regression, KINKED, True),
    "quantile 0.1": Case(lambda: losses.Quantile(0.1), regression, KINKED),
    "quantile 0.75": Case(lambda: losses.Quantile(0.75), regression, KINKED),
    "Huber": Case(losses.Huber, regression, KINKED),
    "Huber, y noised": Case(losses.Huber, regression, KINKED, True),
    "logistic": Case(losses.Logistic, classes, SMOOTH),
    "hinge": Case(losses.Hinge, classes, KINKED),
    "squared hinge": Case(losses.SquaredHinge, classes, KINKED),
    "Poisson": Case(losses.Poisson, counts, SMOOTH),
    "Poisson, y noised": Case(losses.Poisson, counts, SMOOTH, True),
    "Index: log cosh": Case(
        log_cosh,
        regression,
        SMOOTH,
    ),
    "Index: probit": Case(
        lambda: losses.Index(
            lambda eta, y: -special.log_ndtr(y * eta),
            lambda eta, y: -y * np.exp(-0.5 * eta * eta - special.log_ndtr(y * eta)) / math.sqrt(2.0 * math.pi),
        ),
        classes,
        KINKED,
    ),
    "Index: log cosh, y noised": Case(
        log_cosh,
        regression,
        SMOOTH,
        True,
    ),
    "Index with kinks: dead zone": Case(
        lambda: losses.Index(
            lambda eta, y: np.maximum(np.abs(y - eta) - 0.5, 0.0) + 0.1 * (y - eta) ** 2,
            lambda eta, y: np.where(np.abs(y - eta) > 0.5, np.sign(eta - y), 0.0) + 0.2 * (eta - y),
            kinks=[lambda y: y - 0.5, lambda y: y + 0.5],
        ),
        regression,
        KINKED,
        most=4000,
    ),
    "Custom with kinks: median": Case(
        lambda: losses.Custom(
            lambda x, y, theta: np.abs(y - theta[0] - x @ theta[1:]),
            lambda x, y, theta: -np.sign(y - theta[0] - x @ theta[1:])[:, None] * np.column_stack([np.ones(len(x)), x]),
            kinks=True,
        ),
        regression,
        ("naive", "dr"),
        most=4000,
    ),
    "Custom: y = a exp(b x)": Case(
        lambda: losses.Custom(
            lambda x, y, theta: (y - _custom_mean(x, theta)) ** 2, _custom_gradient, _custom_laplacian
        ),
        growth,
        SMOOTH,
        start=(1.5, 0.5),
        scale=SCALE / 2,
    ),
    "mean": Case(lambda: losses.Mean("identity"), column, SMOOTH, True, consistent=True),
    "mean of relu": Case(lambda: losses.Mean("relu"), column, KINKED, True),
    "mean of abs sin": Case(lambda: losses.Mean("abs_sin"), column, KINKED, True),
    "mean of an indicator": Case(lambda: losses.Mean(("indicator", 0.1, 0.3)), column, KINKED, True),
    "mean of a callable": Case(lambda: losses.Mean(np.cos), column, KINKED, True),
    "median of a column": Case(losses.Absolute, column, KINKED, True),
    "0.9 quantile of a column": Case(lambda: losses.Quantile(0.9), column, KINKED, True),
}


def repetition(
    name: str, n: int, rng: np.random.Generator, wrong: float | None = None, times: float = 1.0
) -> dict[str, np.ndarray]:
    """Parameters by method on one draw; nan where a fit has no proper minimum.

    ``wrong``: RB once more as "wrong", which takes this multiple of the scale for the scale; ``times``: all scales.
    """
    case = CASES[name]
    n = n if case.most is None else min(n, case.most)
    x, y = case.draw(rng, n)
    both = np.column_stack([x, y])
    d = x.shape[1]
    scale = np.full(d + 1, times * case.scale)
    scale[d] *= case.noised_y
    w = np.sqrt(rng.exponential(size=n)) * (rng.random(n) >= ZERO_PROB)
    released = both + w[:, None] * rng.standard_normal(both.shape) * scale
    second = int(rng.integers(2**63))
    arguments: dict[str, Any] = {"y": d, "x": list(range(d)), "start": case.start, "n_threads": 1}
    if case.start is not None:
        arguments["intercept"] = False
    out = {}

    def estimate(key: str, table: np.ndarray, **more: Any) -> None:
        fit = zil.fit(case.loss(), table, **arguments, **more)
        out[key] = fit.params if fit.converged else np.full(len(fit.params), np.nan)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zil.ConvergenceWarning)
        estimate(ORIGINAL, both)
        for method in case.methods:
            estimate(method, released, noise=zil.Noise(ZERO_PROB, scale), method=method, rng=second)
        if wrong is not None:
            estimate("wrong", released, noise=zil.Noise(ZERO_PROB, wrong * scale), method="rb")
    return out


def z_scores(draws: list[dict[str, np.ndarray]], a: str, b: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Mean paired difference of two methods, its z per parameter, and the draws in which both have a minimum."""
    gap = np.stack([draw[a] - draw[b] for draw in draws])
    gap = gap[np.isfinite(gap).all(axis=1)]
    if len(gap) < 2:
        return np.full(gap.shape[1], math.nan), np.full(gap.shape[1], math.nan), len(gap)
    error = gap.std(axis=0, ddof=1) / math.sqrt(len(gap))
    mean = gap.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # two methods that are the same function of the rows differ by rounding only
        z = np.where(np.abs(gap).max(axis=0) < 1e-9, 0.0, mean / error)
    return mean, z, len(gap)


def pairs(name: str) -> list[tuple[str, str]]:
    """Every corrected method against the original data, and against each other."""
    corrected = [method for method in CASES[name].methods if method != "naive"]
    return [(method, ORIGINAL) for method in corrected] + list(itertools.combinations(corrected, 2))


def describe(name: str, draws: list[dict[str, np.ndarray]]) -> tuple[list[str], float]:
    """Lines of the table, and the largest \\|z\\|."""
    lines, worst = [], 0.0
    for a, b in pairs(name):
        mean, z, count = z_scores(draws, a, b)
        worst = max(worst, float(np.abs(z).max()))
        lines.append(
            f"| {name} | {a} - {b} | {', '.join(f'{m:+.5f}' for m in mean)} | {', '.join(f'{v:+.2f}' for v in z)} "
            f"| {np.abs(z).max():.2f} | {len(draws) - count} |"
        )
    mean, z, count = z_scores(draws, "naive", ORIGINAL)
    shown = f"naive - {ORIGINAL} ({'consistent here' if CASES[name].consistent else 'power'})"
    lines.append(
        f"| {name} | {shown} | {', '.join(f'{m:+.5f}' for m in mean)} | {', '.join(f'{v:+.1f}' for v in z)} "
        f"| {np.abs(z).max():.1f} | {len(draws) - count} |"
    )
    return lines, worst


HEADER = """# Agreement of the estimates

DR, SDR, SL and RB estimate the same parameters as the original data. {runs} draws per loss, n = {n} (4000 for the
user's losses with kinks), `zero_prob` = {zero_prob}, scale {scale} for columns of width 2 and for a single column of
width 0.7, seed {seed}; made by `tools/agreement.py`. z is the mean of the paired differences over its standard error,
by parameter; the goal is |z| < {limit} for every one. The last line of each loss is the power check: "naive" must be
far off. "none" counts draws without a proper minimum.

Corrected scores are unbiased exactly, estimates to order 1/n. Here the noise is small and n large, so that this bias
moves z by less than 0.4 (the script says why).

"""
TABLE = """| loss | difference | mean, by parameter | z | largest | none |
| --- | --- | --- | --- | --- | --- |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES), metavar="LOSS")
    parser.add_argument("--n", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    given = parser.parse_args()
    head = HEADER.format(
        runs=given.repetitions, n=given.n, zero_prob=ZERO_PROB, scale=SCALE, seed=given.seed, limit=LIMIT
    )
    lines: list[str] = []
    summary: list[str] = []
    for name in given.cases:
        begun = time.monotonic()
        task = functools.partial(repetition, name, given.n)
        draws = simulation.repeat(
            task, given.repetitions, seed=given.seed, processes=given.processes, progress=simulation.Bar(name)
        )
        new, worst = describe(name, draws)
        lines += new
        summary.append(f"| {name} | {len(pairs(name))} | {worst:.2f} | {'yes' if worst < LIMIT else 'NO'} |")
        print("\n".join(new), f"<!-- {time.monotonic() - begun:.0f} s -->", flush=True)
        if given.out is not None:
            worst_table = "| loss | comparisons | largest abs. z | below the goal |\n| --- | --- | --- | --- |\n"
            given.out.write_text(
                head
                + worst_table
                + "\n".join(summary)
                + "\n\n## Every comparison\n\n"
                + TABLE
                + "\n".join(lines)
                + "\n"
            )


if __name__ == "__main__":
    main()
