"""The main job on real data: publish wages under local differential privacy, analyse what was published.

US wages of March 2005 (``zil/data``), one row per person: schooling, age and the logarithm of the hourly wage are
protected,
sex and region are not.  Run ``python -m zil.interfaces.demo`` (or ``python3 tools/do.py demo``).  The release
draws its noise from the operating system, so the figures differ from run to run as those of a real release would,
and the closing sentence is computed from them.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.resources
import io
import math
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import zil
from zil.estimation.result import Fit

BOUNDS = {"education": (6.0, 20.0), "age": (21.0, 64.0), "log_wage": (0.5, 4.5)}
EPSILON, DELTA, ZERO_PROB = 1.0, 0.10, 0.05
RESPONSE, FEATURES = "log_wage", ["education", "age", "female"]
TAUS = (0.1, 0.9)
COLOURS = {"original": "#1d1d1f", "naive": "#a3201d", "optimal": "#1b5e9c"}


def load_wages() -> Any:
    """The wages as a pandas frame: 61,395 rows, one per person; ``log_wage`` is the logarithm of hourly earnings."""
    frame = _read("cps2005.csv.gz")
    frame["log_wage"] = np.log(frame["hourly_earnings"])
    return frame[["education", "age", "log_wage", "female", "region"]]


def load_rand() -> Any:
    """The RAND health insurance data as a pandas frame: 20,190 rows, 10 columns."""
    return _read("randhie.csv.gz")


def _read(name: str) -> Any:
    import pandas as pd

    packed = importlib.resources.files("zil").joinpath("data", name).read_bytes()
    return pd.read_csv(io.BytesIO(gzip.decompress(packed)))


def mechanism() -> zil.Mechanism:
    """The mechanism of the demo: one row is protected as a whole."""
    return zil.calibrate(BOUNDS, epsilon=EPSILON, delta=DELTA, zero_prob=ZERO_PROB, unit="record")


@dataclass(frozen=True)
class Slope:
    """The slope of schooling at one quantile level: estimate, standard error and 95 % interval."""

    value: float
    error: float
    low: float
    high: float

    def covers(self, other: Slope) -> bool:
        return self.low <= other.value <= self.high


def slope(data: Any, tau: float, method: str | None = None) -> Slope:
    """Quantile regression of the log wage on schooling, age and sex; nan where there is no proper minimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", zil.ConvergenceWarning)  # nan in the table says it
        more = {} if method is None else {"method": method}
        found: Fit = zil.fit(zil.losses.Quantile(tau), data, y=RESPONSE, x=FEATURES, **more)  # type: ignore[arg-type]
    k = found.names.index("education")
    low, high = found.conf_int(0.95)[k]
    return Slope(float(found.params[k]), float(found.bse[k]), float(low), float(high))


def analyse(original: Any, published: Any, methods: tuple[str, ...] = ("naive", "optimal")) -> dict[Any, Slope]:
    """Slopes by (method, tau) from the original and the published table."""
    result = {("original", tau): slope(original, tau) for tau in TAUS}
    result |= {(method, tau): slope(published, tau, method) for method in methods for tau in TAUS}
    return result


def subsample(original: Any, seed: int | None = None) -> dict[float, Slope]:
    """Slopes from a plain random subsample, as many rows as are published unchanged."""
    rows = np.random.default_rng(seed).random(len(original)) < ZERO_PROB
    return {tau: slope(original[rows], tau) for tau in TAUS}


def table(slopes: dict[Any, Slope]) -> str:
    """Estimates with their intervals, one column per method."""
    methods = list(dict.fromkeys(method for method, _ in slopes))
    lines = ["Slope of a year of schooling, quantile regression of the log wage, 95 % intervals", ""]
    lines.append(f"{'tau':8}" + "".join(f"{method:>26}" for method in methods))
    for tau in TAUS:
        cells = []
        for method in methods:
            s = slopes[method, tau]
            cells.append(
                f"{s.value:.3f} ({s.low:.3f}, {s.high:.3f})" if math.isfinite(s.error) else "no proper minimum"
            )
        lines.append(f"{tau:<8}" + "".join(f"{cell:>26}" for cell in cells))
    return "\n".join(lines)


def verdict(slopes: dict[Any, Slope], plain: dict[float, Slope]) -> str:
    """What the numbers of this run show, whatever they are."""
    covered = [tau for tau in TAUS if slopes["optimal", tau].covers(slopes["original", tau])]
    missed = [tau for tau in TAUS if not slopes["naive", tau].covers(slopes["original", tau])]
    shares = [slopes["naive", tau].value / slopes["original", tau].value for tau in TAUS]
    words = {0: "neither slope", 1: "one of the two slopes", 2: "both slopes"}
    wide = [slopes["optimal", tau].error / plain[tau].error for tau in TAUS]
    lines = [
        f"The naive fit takes noise for data: it finds {100 * min(shares):.0f} to {100 * max(shares):.0f} % of the "
        "slopes, and "
        f"its intervals miss {words[len(missed)]}.",
        f"The corrected fit of the same published table covers {words[len(covered)]}"
        + (" of the original table." if len(covered) == 2 else "; 95 % intervals miss one time in twenty."),
        f"A plain subsample of {100 * ZERO_PROB:.0f} % of the rows would have given "
        + " and ".join(f"{plain[tau].value:.3f} ({plain[tau].error:.3f})" for tau in TAUS)
        + ", standard errors in brackets"
        + (f": {min(wide):.1f} to {max(wide):.1f} times smaller ones. " if np.isfinite(wide).all() else ". ")
        + "But each of its rows is a true one, and known to be; the noise is what lets a person deny the row.",
    ]
    return "\n".join(lines)


def plot(slopes: dict[Any, Slope], path: Path) -> None:
    """Slopes and intervals of the methods side by side (needs matplotlib)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    ax = figure.subplots()
    methods = list(dict.fromkeys(method for method, _ in slopes))
    for k, method in enumerate(methods):
        for j, tau in enumerate(TAUS):
            s = slopes[method, tau]
            y = j + 0.22 * (k - (len(methods) - 1) / 2)
            colour = COLOURS.get(method, "0.4")
            ax.plot([s.low, s.high], [y, y], color=colour, linewidth=2.2, solid_capstyle="round")
            ax.plot([s.value], [y], "o", color=colour, markersize=6, label=method if j == 0 else None)
    for j, tau in enumerate(TAUS):
        ax.plot([slopes["original", tau].value] * 2, [j - 0.42, j + 0.42], color="0.75", linewidth=1, zorder=0)
    ax.axvline(0.0, color="0.85", linewidth=1, zorder=0)
    ax.set_yticks(range(len(TAUS)), [f"{100 * tau:.0f}th percentile" for tau in TAUS])
    ax.set_ylim(len(TAUS) - 0.5, -0.5)
    ax.set_xlabel("log wage per year of schooling, 95 % interval")
    ax.set_title("What a year of schooling pays, from the original and from the published table", fontsize=10.5)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)
    figure.legend(loc="outside lower center", ncols=len(methods), frameon=False)
    figure.savefig(path, dpi=150)


def run(folder: Path) -> None:
    """Print the label, the table and what it shows; write the label as a page and the plot into a folder."""
    began = time.perf_counter()
    frame = load_wages()
    published = mechanism().release(frame)
    print(f"US wages, March 2005: {len(frame):,} full-time workers; protected: {', '.join(BOUNDS)}\n")
    print(published.report(format="text", rows_per_person=1).split("\n\n")[0])
    page = folder / "label.html"
    page.write_text(published.report(format="html", rows_per_person=1), encoding="utf-8")
    print(f"The same on a page to sign, with its tables: {page}\n")
    slopes = analyse(frame, published)
    print(table(slopes))
    print()
    print(verdict(slopes, subsample(frame)))
    picture = folder / "slopes.png"
    try:
        plot(slopes, picture)
        print(f"\nThe slopes as a picture: {picture}")
    except ImportError:
        print("\nA picture of the slopes needs matplotlib: pip install 'zil[plot]'")
    print(f"{time.perf_counter() - began:.1f} s")


def main(folder: str | None = None) -> None:
    """Run the demo; files go into ``folder``, by default a new one for temporary files."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        print("the demo needs pandas: pip install 'zil[pandas]'", file=sys.stderr)
        raise SystemExit(2) from None
    where = Path(tempfile.mkdtemp(prefix="zil-demo-") if folder is None else folder)
    where.mkdir(parents=True, exist_ok=True)
    run(where)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Publish wages under local differential privacy, and analyse them.")
    parser.add_argument("--out", help="folder for the label and the picture (default: a new temporary one)")
    main(parser.parse_args().out)
