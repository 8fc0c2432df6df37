#!/usr/bin/env python3
"""How much better are RB and optimal than the paper's estimators?  Writes docs/ratios.md.

    python tools/ratios.py --repetitions 400 --out docs/ratios.md

RMSE per slope of each method over that of another on the same repetitions, with its Monte Carlo error (delta
method on the paired squares) and the goal.  Designs of the paper: median regression at n = 7500, scale 2; logistic
regression at n = 10000, scale 1; zero_prob = 0.2.  A repetition counts only if both fits have a proper minimum.
"""

from __future__ import annotations

import argparse
import functools
import math
from pathlib import Path
from typing import Any

import numpy as np

from zil.interfaces import simulation

# design, n, scale, methods, [(better, worse, goal)]
CASES = [
    ("median", 7500, 2.0, ("dr", "rb", "optimal"), [("rb", "dr", 0.66), ("optimal", "dr", 0.27)]),
    ("logistic", 10000, 1.0, ("dr", "sdr", "rb", "optimal"),
     [("rb", "dr", None), ("optimal", "sdr", 0.75), ("optimal", "dr", 0.42)]),
]  # fmt: skip

HEADER = """# RMSE ratios

{runs} repetitions, seed {seed}, made by `tools/ratios.py`. RMSE per slope over the same repetitions; Monte Carlo errors
in brackets; "none" is the share of repetitions in which one of the two has no proper minimum (they are left out).

| design | ratio | value | goal | RMSE | none % |
| --- | --- | --- | --- | --- | --- |
"""


def repetition(name: str, n: int, scale: float, methods: tuple[str, ...], rng: np.random.Generator) -> Any:
    """Mean square error of the slopes by method; nan without a proper minimum."""
    plan = simulation.design(name)
    one = int(plan.intercept)
    fits = simulation.estimates(plan, n, [scale], methods, rng)
    return [
        float(((fit.params - plan.truth)[one:] ** 2).mean()) if fit.converged else math.nan
        for fit in (fits[scale, method] for method in methods)
    ]


def line(name: str, n: int, scale: float, pair: tuple[str, str, float | None], a: Any, b: Any) -> str:
    """One row of the table from the paired squares ``a`` (better) and ``b`` (worse)."""
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    ratio = math.sqrt(a.mean() / b.mean())
    spread = (a / a.mean() - b / b.mean()).std(ddof=1) / math.sqrt(len(a))
    goal = "-" if pair[2] is None else f"<= {pair[2]:g}"
    error = 0.5 * ratio * spread
    return (
        f"| {name}, n = {n}, scale {scale:g} | {pair[0]} / {pair[1]} | {ratio:.3f} ({error:.3f}) | {goal} "
        f"| {math.sqrt(a.mean()):.4f} / {math.sqrt(b.mean()):.4f} | {100 * (1 - both.mean()):.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    given = parser.parse_args()
    text = HEADER.format(runs=given.repetitions, seed=given.seed)
    print(text, end="")
    for name, n, scale, methods, pairs in CASES:
        task = functools.partial(repetition, name, n, scale, methods)
        draws = np.array(
            simulation.repeat(
                task, given.repetitions, seed=given.seed, processes=given.processes, progress=simulation.Bar(name)
            )
        )
        for pair in pairs:
            row = line(name, n, scale, pair, *(draws[:, methods.index(method)] for method in pair[:2]))
            print(row, flush=True)
            text += row + "\n"
        if given.out is not None:
            given.out.write_text(text)


if __name__ == "__main__":
    main()
