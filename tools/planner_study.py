"""Does the planner tell the truth?  Its predictions beside the errors of fits, as docs/planner.md.

    python tools/planner_study.py --repetitions 100 --out docs/planner.md

Each setting is planned from a pilot of 4000 rows and then simulated: new rows, a new release, a fit by the default
method.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import warnings
from pathlib import Path

import numpy as np
from scipy import special

import zil

# loss, columns, rows, epsilon, delta, shares of delta
SETTINGS = [
    ("logistic", 2, 20_000, 3.0, 0.01, (0.0, 0.8)),
    ("logistic", 2, 20_000, 8.0, 0.001, (0.0, 0.8)),
    ("squared", 2, 20_000, 3.0, 0.01, (0.0, 0.8)),
    ("squared", 2, 20_000, 8.0, 0.001, (0.0, 0.8)),
    ("logistic", 6, 10_000, 1.0, 0.3, (0.5, 0.8)),
    ("squared", 6, 10_000, 2.0, 0.1, (0.5, 0.8)),
    ("quantile:0.5", 2, 20_000, 3.0, 0.1, (0.5, 0.8)),
]

PAGE = """# Predictions of the planner, beside fits

`zil.plan` predicts standard errors before anything is published. Here are its predictions from a pilot of 4000 rows
and the errors of {runs} simulated tables each: new rows, a new release, `zil.fit` by its default method. Made by

    python tools/planner_study.py --repetitions {runs} --out docs/planner.md

Columns are normal, cut to their bounds [-1, 1]; all slopes are 1; the budget is at attribute level. Figures are root
mean squares over the slopes, Monte Carlo errors in brackets. "stated" is the median standard error of the fits, "none"
the share without a proper minimum; "trust" is what the plan says of this size.

| loss | columns | n | budget | zero_prob | predicted | RMSE of the fits | ratio | stated | none % | trust |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
{rows}

A ratio above 1 is an estimate that does not reach what the best weights of a large sample would give.
"""


def table(loss: str, d: int, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = special.ndtri(special.ndtr(-1.0) + rng.random((n, d)) * (special.ndtr(1.0) - special.ndtr(-1.0)))
    index = x.sum(axis=1)
    y = rng.random(n) < special.expit(index) if loss == "logistic" else index + rng.normal(size=n)
    return np.column_stack([x, y])


def repetition(loss: str, d: int, n: int, epsilon: float, delta: float, z: float, seed: int) -> np.ndarray:
    """Estimated slopes and their standard errors, (2, d); nan without a proper minimum."""
    mechanism = zil.calibrate(
        dict.fromkeys(range(d), (-1, 1)), epsilon=epsilon, delta=delta, zero_prob=z, unit="attribute"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = zil.fit(loss, mechanism.simulate(table(loss, d, n, 1000 + seed), seed), y=d)
    return np.array([found.params[1:], found.bse[1:]])


def describe(pool: multiprocessing.pool.Pool, setting: tuple, runs: int) -> list[str]:
    loss, d, n, epsilon, delta, shares = setting
    plan = zil.plan(
        dict.fromkeys(range(d), (-1, 1)), epsilon=epsilon, delta=delta, unit="attribute", loss=loss, n=n,
        pilot=table(loss, d, 4000, 0), y=d, zero_probs=[share * delta for share in shares],
    )  # fmt: skip
    lines = []
    for entry, share in zip(plan.frontier, shares, strict=False):
        z = share * delta
        draws = np.array(pool.map(functools.partial(repetition, loss, d, n, epsilon, delta, z), range(runs)))
        given = np.isfinite(draws).all(axis=(1, 2))
        squares = ((draws[given, 0] - 1.0) ** 2).mean(axis=1)
        rmse = float(np.sqrt(squares.mean()))
        error = float(squares.std() / np.sqrt(len(squares)) / (2 * rmse))
        predicted = float(np.sqrt(np.mean([entry["se"][str(k)] ** 2 for k in range(d)])))
        lines.append(
            f"| {loss} | {d} | {n} | ({epsilon:g}, {delta:g}) | {z:.3g} | {predicted:.4f} | {rmse:.4f} ({error:.4f}) "
            f"| {rmse / predicted:.2f} | {np.median(draws[given, 1]):.4f} | {100 * (1 - given.mean()):.0f} "
            f"| {entry['trust']} |"
        )
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    given = parser.parse_args()
    lines: list[str] = []
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        for setting in SETTINGS:
            lines += describe(pool, setting, given.repetitions)
            if given.out is not None:
                given.out.write_text(PAGE.format(runs=given.repetitions, rows="\n".join(lines)), encoding="utf-8")


if __name__ == "__main__":
    main()
