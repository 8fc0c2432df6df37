"""The main job on real data: publish health records under local differential privacy, analyse what was published.

RAND Health Insurance Experiment (``zil/data``): five health columns are protected, response and plan are not.
Run ``python -m zil.interfaces.demo`` (or ``python3 tools/do.py demo``).  The release draws its noise from the
operating system, so the figures differ from run to run as a real release would.
"""

from __future__ import annotations

import gzip
import importlib.resources
import io
import sys
import time
import warnings
from typing import Any

import numpy as np

import zil
from zil.estimation.result import Fit

BOUNDS = {"disea": (0.0, 60.0), "physlm": (0.0, 1.0), "hlthg": (0.0, 1.0), "hlthf": (0.0, 1.0), "hlthp": (0.0, 1.0)}
EPSILON, DELTA, ZERO_PROB = 3.0, 0.30, 0.20
SHOWN = ("disea", "physlm", "hlthg", "hlthf", "hlthp", "lncoins")


def load_rand() -> Any:
    """The RAND data as a pandas frame: 20,190 rows, 10 columns."""
    import pandas as pd

    packed = importlib.resources.files("zil").joinpath("data", "randhie.csv.gz").read_bytes()
    return pd.read_csv(io.BytesIO(gzip.decompress(packed)))


def _table(title: str, fits: dict[str, Fit]) -> str:
    """Estimates with standard errors below, one column per method."""
    names = ["Intercept", *SHOWN]
    lines = [title, "", f"{'':12}" + "".join(f"{method:>13}" for method in fits)]
    for k, name in enumerate(names):
        lines.append(f"{name:12}" + "".join(f"{fit.params[k]:13.3f}" for fit in fits.values()))
        cells = (f"({fit.bse[k]:.3f})" if np.isfinite(fit.bse[k]) else "(no s.e.)" for fit in fits.values())
        lines.append(f"{'':12}" + "".join(f"{cell:>13}" for cell in cells))
    missed = [method for method, fit in fits.items() if not fit.converged]
    if missed:
        lines.append(f"no proper minimum in this sample, so no standard errors: {', '.join(missed)}")
    return "\n".join(lines)


def _fits(loss: Any, frame: Any, published: Any, response: str, methods: tuple[str, ...]) -> dict[str, Fit]:
    x = list(SHOWN)
    result = {"original": zil.fit(loss, frame, y=response, x=x)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zil.ConvergenceWarning)  # said in the table instead
        for method in methods:
            result[method] = zil.fit(loss, published, y=response, x=x, method=method)
    return result


def _distance(fit: Fit, original: Fit) -> float:
    """Root mean square distance to the original coefficients, in original standard errors."""
    return float(np.sqrt(np.mean(((fit.params - original.params) / original.bse) ** 2)))


def main() -> None:
    """Print the privacy label and the two analyses."""
    try:
        frame = load_rand()
    except ImportError:
        print("the demo needs pandas: pip install 'zil[pandas]'", file=sys.stderr)
        raise SystemExit(2) from None
    began = time.perf_counter()
    jitter = np.random.default_rng(0).uniform(size=len(frame))  # usual for quantiles of counts
    frame = frame.assign(any_visit=(frame["mdvis"] > 0).astype(int), visits=frame["mdvis"] + jitter)
    mechanism = zil.calibrate(BOUNDS, epsilon=EPSILON, delta=DELTA, zero_prob=ZERO_PROB, unit="attribute")
    published = mechanism.release(frame)
    print(f"RAND Health Insurance Experiment, {len(frame)} person-years; protected: {', '.join(BOUNDS)}\n")
    print(mechanism.report(n_rows=len(frame)))
    print()
    logistic = _fits("logistic", frame, published, "any_visit", ("naive", "dr", "sdr", "rb", "optimal"))
    print(_table("Any outpatient visit in the year: logistic regression", logistic))
    print()
    quantile = _fits("quantile:0.75", frame, published, "visits", ("naive", "dr", "rb", "optimal"))
    print(_table("Upper quartile of outpatient visits: quantile regression, tau = 0.75", quantile))
    print()
    far = _distance(quantile["naive"], quantile["original"])
    near = _distance(quantile["optimal"], quantile["original"])
    print(
        "What this shows: the naive fit treats noise as data and shrinks the health effects towards zero with small "
        "standard errors that do not cover;\nthe corrected fits recover the originals, DR with the widest intervals, "
        "RB and optimal from the same published table with narrower ones\n"
        f"(quartile: naive is {far:.0f} original standard errors off on average, optimal {near:.1f})."
    )
    print(f"\n{time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
