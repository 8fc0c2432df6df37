#!/usr/bin/env python3
"""Do 95 % intervals cover?  Simulates the paper's regression designs and prints a table of docs/coverage.md.

    python tools/coverage.py --repetitions 2000 --designs quantile:0.9 hinge --methods rb optimal --out table.md

n = 20000 and scale 1 (half the width of a column) unless given, six columns on [-1, 1], zero_prob = .2.  Every
repetition draws new original rows, a new release and a new second noise.  A fit that does not converge gives no
interval; such runs are counted beside the coverage, and the coverage is that of the intervals which were given.
"""

from __future__ import annotations

import argparse
import functools
import time
from pathlib import Path
from typing import Any

import numpy as np

from zil.interfaces import simulation

SMOOTH = ("logistic",)
Z = 1.959963984540054


def methods_of(name: str) -> tuple[str, ...]:
    return ("dr", "sdr", "rb", "optimal") if name in SMOOTH else ("dr", "rb", "optimal")


def repetition(name: str, methods: tuple[str, ...], n: int, scale: float, rng: np.random.Generator) -> Any:
    """Estimates, standard errors and the small-sample flag, shape (methods, 3, p); nan where a fit did not converge."""
    plan = simulation.design(name)
    fits = simulation.estimates(plan, n, [scale], methods, rng)
    out = np.full((len(methods), 3, len(plan.truth)), np.nan)
    for k, method in enumerate(methods):
        fit = fits[scale, method]
        if fit.converged:
            out[k] = fit.params, fit.bse, np.full(len(plan.truth), fit.small_sample)
    return out


def describe(name: str, methods: tuple[str, ...], draws: np.ndarray) -> list[str]:
    """One line of the table per method."""
    truth = simulation.design(name).truth
    one = len(truth) - simulation.DIM
    lines = []
    for k, method in enumerate(methods):
        params, bse, small = draws[:, k, 0], draws[:, k, 1], draws[:, k, 2, 0]
        given = np.isfinite(bse).all(axis=1)
        error = params[given] - truth
        covered = np.abs(error) <= Z * bse[given]
        per_run = covered[:, one:].mean(axis=1)
        spread = error[:, one:].std(axis=0, ddof=1).mean()
        runs = int(given.sum())
        start = f"{100 * covered[:, 0].mean():.1f}" if one else "-"
        each = 100 * covered[:, one:].mean(axis=0)
        rmse = np.sqrt((error[:, one:] ** 2).mean())
        lines.append(
            f"| {name} | {method} | {100 * per_run.mean():.1f} | {100 * per_run.std(ddof=1) / np.sqrt(runs):.1f} "
            f"| {each.min():.1f} - {each.max():.1f} | {start} | {rmse:.4f} | {bse[given][:, one:].mean() / spread:.3f} "
            f"| {100 * small[given].mean():.0f} | {100 * (1 - runs / len(draws)):.1f} |"
        )
    return lines


HEADER = """
{runs} runs each at n = {n}, `zero_prob` = {zero_prob}, scale {scale} on six columns with bounds [-1, 1]; seed {seed}.

| design | method | slopes % | MC error | each slope % | intercept % | RMSE per slope | se ratio | small % | none % |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument(
        "--designs", nargs="+", default=["median", "logistic"],
        help="median, quantile:TAU, logistic, hinge, huber",
    )  # fmt: skip
    parser.add_argument("--methods", nargs="+", default=None, help="default: dr, rb, optimal (and sdr for logistic)")
    parser.add_argument("--n", type=int, default=20000)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    given = parser.parse_args()
    text = HEADER.format(
        runs=given.repetitions, n=given.n, zero_prob=simulation.ZERO_PROB, scale=f"{given.scale:g}", seed=given.seed
    )
    print(text, end="")
    for name in given.designs:
        begun = time.monotonic()
        methods = tuple(given.methods or methods_of(name))
        task = functools.partial(repetition, name, methods, given.n, given.scale)
        draws = simulation.repeat(
            task, given.repetitions, seed=given.seed, processes=given.processes, progress=simulation.Bar(name)
        )
        lines = describe(name, methods, np.stack(draws))
        print("\n".join(lines), f"<!-- {time.monotonic() - begun:.0f} s -->", flush=True)
        text += "\n".join(lines) + "\n"
        if given.out is not None:
            given.out.write_text(text)


if __name__ == "__main__":
    main()
