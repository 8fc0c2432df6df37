"""Does the demo keep its promise on any day?  Its job on many releases, as docs/demo.md.

    python tools/demo_study.py --releases 24 --out docs/demo.md

Each release is a simulated copy (the same law as a real one, from seeds 0, 1, ...), fitted as the demo does, beside a
plain random subsample of as many rows as are expected to be published unchanged.
"""

from __future__ import annotations

import argparse
import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np

from zil.interfaces import demo

PAGE = """# The demo on {runs} days

`python3 tools/do.py demo` publishes the wages of 61,395 full-time workers (US, March 2005, one row per person) at
epsilon = {epsilon:g}, delta = {delta:g} for a whole row, `zero_prob` = {zero_prob:g}, and estimates what a year of
schooling pays at the 10th and the 90th percentile of the log wage. One run is one draw of the noise. This page is the
same job on {runs} draws, made by

    python tools/demo_study.py --releases {runs} --out docs/demo.md

"mean" and "RMSE" are of the estimated slopes, about the slope of the original table; "median s.e." is the median of
the standard errors that the fits state; "covers" is the share of 95 % intervals that contain the slope of the original
table; "none" counts fits without a proper minimum.

| tau | original | method | mean | RMSE | median s.e. | covers % | none |
| --- | --- | --- | --- | --- | --- | --- | --- |
{rows}

Of {intervals} intervals each, those of the naive fit contain the original slope {naive} times, those of the corrected
fit of the same published tables {optimal} times. A plain subsample of {share:g} % of the rows is more precise; but each
of its rows is a true one, and known to be one. What else the same budget would buy is on the page
[Should you publish with zil?](should_you_publish.md)
"""

Run = dict[Any, tuple[float, float, float, float]]


def repetition(seed: int) -> Run:
    """Slopes of one simulated release and of one subsample."""
    frame = demo.load_wages()
    slopes = demo.analyse(frame, demo.mechanism().simulate(frame, seed))
    slopes |= {("subsample", tau): s for tau, s in demo.subsample(frame, seed).items()}
    return {key: (s.value, s.error, s.low, s.high) for key, s in slopes.items()}


def rows(runs: list[Run]) -> list[str]:
    lines = []
    for tau in demo.TAUS:
        truth = runs[0]["original", tau][0]
        for method in ("naive", "optimal", "subsample"):
            draws = np.array([run[method, tau] for run in runs])
            given = np.isfinite(draws[:, 1])
            value, error, low, high = draws[given].T
            covers = ((low <= truth) & (truth <= high)).mean()
            lines.append(
                f"| {tau} | {truth:.4f} | {method} | {value.mean():.4f} | {np.sqrt(((value - truth) ** 2).mean()):.4f} "
                f"| {np.median(error):.4f} | {100 * covers:.0f} | {(~given).sum()} |"
            )
    return lines


def covering(runs: list[Run], method: str) -> int:
    """How many intervals contain the slope of the original table."""
    return sum(
        run[method, tau][2] <= run["original", tau][0] <= run[method, tau][3] for run in runs for tau in demo.TAUS
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=24)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="Markdown file to write")
    given = parser.parse_args()
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        runs = pool.map(repetition, range(given.releases), chunksize=1)
    page = PAGE.format(
        runs=given.releases, epsilon=demo.EPSILON, delta=demo.DELTA, zero_prob=demo.ZERO_PROB,
        share=100 * demo.ZERO_PROB, rows="\n".join(rows(runs)), intervals=len(runs) * len(demo.TAUS),
        naive=covering(runs, "naive"), optimal=covering(runs, "optimal"),
    )  # fmt: skip
    print(page)
    if given.out is not None:
        given.out.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
