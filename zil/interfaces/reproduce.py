"""The simulation study of the paper, section 7, with RB and optimal beside its estimators.

    python -m zil.interfaces.reproduce table2 --repetitions 500 --out results

Tables 1, S1 and figure 2: means of three non-smooth functions of a uniform variable.  Table 2: logistic
regression.  Table 3: median regression.  Every number comes with its Monte Carlo error and, where one is known,
beside the value that the asymptotic law gives.

Over 400 lines because the five experiments share their columns, their estimators and the writer of both files.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from zil import _validate
from zil._build import build_info
from zil._validate import ConvergenceWarning, FloatArray
from zil.estimation.fit import fit
from zil.estimation.losses.location import Mean
from zil.interfaces import simulation
from zil.privacy.noise import Noise

# Location experiments: functions of X ~ U(0, 1) with their means, and (zero_prob, scale).
FUNCTIONS: dict[str, tuple[Any, float]] = {
    "relu": ("relu", 0.5),
    "indicator": (("indicator", 0.5, 1.0), 0.5),
    "abs_sin": ("abs_sin", 2.0 / math.pi),
}
SETTINGS = ((0.1, 0.94), (0.05, 1.4))
# Rows of one repetition, shared by tables 1 and S1 and figure 2: the figure shows the errors of the tables.
LARGEST = 5000

# Asymptotic RMSE (sandwich, evaluated on large simulated samples), by setting and estimator, in order of n; for
# means at n = 500.  They are not the paper's printed values, which are a simulation as well.
EXPECTED: dict[str, dict[tuple[str, str], tuple[float, ...]]] = {
    "means": {
        ("relu, zero_prob=0.1, scale=0.94", "oracle"): (0.0129,),
        ("indicator, zero_prob=0.1, scale=0.94", "oracle"): (0.0224,),
        ("abs_sin, zero_prob=0.1, scale=0.94", "oracle"): (0.0138,),
        ("relu, zero_prob=0.1, scale=0.94", "dr"): (0.1053,),
        ("indicator, zero_prob=0.1, scale=0.94", "dr"): (0.1801,),
        ("abs_sin, zero_prob=0.1, scale=0.94", "dr"): (0.1737,),
        ("relu, zero_prob=0.1, scale=0.94", "rb"): (0.1053 * 0.357,),
        ("indicator, zero_prob=0.1, scale=0.94", "rb"): (0.1801 * 0.638,),
        ("abs_sin, zero_prob=0.1, scale=0.94", "rb"): (0.1737 * 0.706,),
        ("relu, zero_prob=0.05, scale=1.4", "oracle"): (0.0129,),
        ("indicator, zero_prob=0.05, scale=1.4", "oracle"): (0.0224,),
        ("abs_sin, zero_prob=0.05, scale=1.4", "oracle"): (0.0138,),
        ("relu, zero_prob=0.05, scale=1.4", "dr"): (0.2190,),
        ("indicator, zero_prob=0.05, scale=1.4", "dr"): (0.3308,),
        ("abs_sin, zero_prob=0.05, scale=1.4", "dr"): (0.3582,),
        ("relu, zero_prob=0.05, scale=1.4", "rb"): (0.2190 * 0.258,),
        ("indicator, zero_prob=0.05, scale=1.4", "rb"): (0.3308 * 0.607,),
        ("abs_sin, zero_prob=0.05, scale=1.4", "rb"): (0.3582 * 0.688,),
    },
    "table2": {
        ("scale=0.5", "oracle"): (0.0631, 0.0515, 0.0446),
        ("scale=0.5", "sl"): (0.1042, 0.0851, 0.0737),
        ("scale=0.5", "sdr"): (0.0968, 0.0790, 0.0684),
        ("scale=0.5", "dr"): (0.1728, 0.1411, 0.1222),
        ("scale=1", "oracle"): (0.0631, 0.0515, 0.0446),
        ("scale=1", "sl"): (0.2097, 0.1712, 0.1483),
        ("scale=1", "sdr"): (0.1833, 0.1497, 0.1296),
        ("scale=1", "dr"): (0.3655, 0.2985, 0.2585),
    },
    "table3": {
        ("scale=2", "oracle"): (0.0465, 0.0329, 0.0268),
        ("scale=2", "dr"): (0.554, 0.392, 0.320),
        ("scale=2.5", "oracle"): (0.0465, 0.0329, 0.0268),
        ("scale=2.5", "dr"): (0.680, 0.481, 0.393),
    },
}


@dataclass(frozen=True)
class Experiment:
    """What one table runs.

    A repetition is an array (settings, sizes, estimators, coefficients + 1): errors, then 1 for a proper minimum.
    """

    title: str
    task: Callable[..., FloatArray]
    settings: tuple[str, ...]
    sizes: tuple[int, ...]
    estimators: tuple[str, ...]


def _location(sizes: tuple[int, ...], estimators: tuple[str, ...], rng: np.random.Generator) -> FloatArray:
    """Errors of the means of all functions at both settings; samples are beginnings of the same ``LARGEST`` rows."""
    x = rng.random(LARGEST)
    settings = [(name, setting) for name in FUNCTIONS for setting in SETTINGS]
    published = {s: simulation.publish(x[:, None], s[1], rng, zero_prob=s[0])[:, 0] for s in SETTINGS}
    second = int(rng.integers(2**63))
    out = np.empty((len(settings), len(sizes), len(estimators), 2))
    for i, (name, (zero_prob, scale)) in enumerate(settings):
        g, truth = FUNCTIONS[name]
        noise = Noise(zero_prob, scale)
        loss = Mean(g)
        for j, n in enumerate(sizes):
            column = published[zero_prob, scale][:n]
            for k, method in enumerate(estimators):
                if method == "oracle":
                    result = fit(loss, x[:n], x=[], method="naive", n_threads=1)
                elif method == "sl":
                    # the paper's comparator: the loss's derivatives where they exist, the jumps ignored
                    out[i, j, k] = _almost_everywhere(name, column, zero_prob, scale, second) - truth, 1.0
                    continue
                else:
                    result = fit(
                        loss,
                        column,
                        x=[],
                        noise=noise,
                        method=method,
                        bounds=[[0.0, 1.0]] if method == "optimal" else None,
                        rng=second,
                        n_threads=1,
                    )
                out[i, j, k] = result.params[0] - truth, float(result.converged)
    return out


def _almost_everywhere(name: str, x1: FloatArray, zero_prob: float, scale: float, second: int) -> float:
    """SL for the mean with ``g''`` taken where it exists: 0 for ReLU and indicator, ``-(2 pi)^2 g`` for the sine."""
    from zil.privacy.doubling import double

    x2 = double(np.ascontiguousarray(x1[:, None]), zero_prob, np.array([scale]), rng=second, n_threads=1)[0, :, 0]
    if name == "relu":
        return float(np.maximum(x2, 0.0).mean())
    if name == "indicator":
        return float(((x2 >= 0.5) & (x2 <= 1.0)).mean())
    return float((1.0 + 2.0 * (math.pi * scale) ** 2) * np.abs(np.sin(2.0 * math.pi * x2)).mean())


def _regression(
    design: str, scales: tuple[float, ...], sizes: tuple[int, ...], estimators: tuple[str, ...], rng: Any
) -> FloatArray:
    """Errors of the six slopes."""
    plan = simulation.design(design)
    one = int(plan.intercept)
    out = np.empty((len(scales), len(sizes), len(estimators), simulation.DIM + 1))
    for j, n in enumerate(sizes):
        fits = simulation.estimates(plan, n, scales, estimators, rng)
        for i, scale in enumerate(scales):
            for k, method in enumerate(estimators):
                result = fits[scale, method]
                out[i, j, k, :-1] = result.params[one:] - plan.truth[one:]
                out[i, j, k, -1] = float(result.converged)
    return out


_LOCATION = tuple(f"{name}, zero_prob={d:g}, scale={s:g}" for name in FUNCTIONS for d, s in SETTINGS)
_MEANS = ("oracle", "naive", "sl", "dr", "rb", "optimal")

EXPERIMENTS: dict[str, Experiment] = {
    "table1": Experiment("Means of non-smooth functions, X ~ U(0, 1)", _location, _LOCATION, (500, 1000), _MEANS),
    "tables1": Experiment(
        "Means of non-smooth functions, X ~ U(0, 1), larger samples",
        _location,
        _LOCATION,
        (2000, 3000, 4000, 5000),
        _MEANS,
    ),
    "table2": Experiment(
        "Logistic regression, six slopes of 1, zero_prob = 0.2",
        functools.partial(_regression, "logistic", (0.5, 1.0)),
        ("scale=0.5", "scale=1"),
        (5000, 7500, 10000),
        ("oracle", "naive", "sl", "sdr", "dr", "rb", "optimal"),
    ),
    "table3": Experiment(
        "Median regression, six slopes of 1, zero_prob = 0.2",
        functools.partial(_regression, "median", (2.0, 2.5)),
        ("scale=2", "scale=2.5"),
        (2500, 5000, 7500),
        ("oracle", "naive", "scl", "dr", "rb", "optimal"),
    ),
    "figure2": Experiment(
        "Errors of means of non-smooth functions, X ~ U(0, 1)",
        _location,
        _LOCATION,
        (500, 1000, 2000, 3000, 4000, 5000),
        _MEANS,
    ),
}
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True)
class Reproduction:
    """Results of one experiment.

    Attributes
    ----------
    rows : list of dict
        One per setting, sample size and estimator, with the keys of the CSV file: ``rmse`` per coefficient over
        the runs with a proper minimum and its Monte Carlo error ``mc_error``; ``expected`` from the asymptotic law
        (nan: not known); ``bias``; ``no_minimum``, the share of runs without a proper minimum; ``rmse_all`` with
        those runs at the point where they stopped.  For figure 2 the quantiles of the errors follow.
    errors : array (repetitions, settings, sizes, estimators, coefficients)
        nan for runs without a proper minimum.
    """

    name: str
    rows: list[dict[str, Any]]
    errors: FloatArray = field(repr=False)
    repetitions: int
    seed: int
    seconds: float

    def to_csv(self) -> str:
        """CSV text."""
        out = io.StringIO()
        columns = list(self.rows[0])
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        for row in self.rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
        return out.getvalue()

    def to_markdown(self) -> str:
        """One table per setting: estimators down, sample sizes across; Monte Carlo errors in brackets."""
        experiment = EXPERIMENTS[self.name]
        lines = [
            f"## {_heading(self.name)}: {experiment.title}",
            "",
            f"{self.repetitions} repetitions, seed {self.seed}. RMSE per coefficient (Monte Carlo error); "
            "*expected* is the asymptotic value; *none*: share of runs without a proper minimum, which are left out.",
        ]
        for setting in experiment.settings:
            lines += ["", f"**{setting}**", ""]
            lines.append("| estimator | " + " | ".join(f"n = {n}" for n in experiment.sizes) + " |")
            lines.append("| --- |" + " --- |" * len(experiment.sizes))
            for method in dict.fromkeys(row["estimator"] for row in self.rows):
                cells = [_cell(row) for row in self.rows if row["setting"] == setting and row["estimator"] == method]
                lines.append(f"| {method} | " + " | ".join(cells) + " |")
        return "\n".join(lines) + "\n"


def _heading(name: str) -> str:
    kind, number = name[:-1].removesuffix("s"), name[-1]
    return f"{kind.capitalize()} {'S' if name.startswith('tables') else ''}{number}"


def _cell(row: dict[str, Any]) -> str:
    if math.isnan(row["rmse"]):
        return "no minimum in any run"
    text = f"{row['rmse']:.4f} ({row['mc_error']:.4f})"
    if not math.isnan(row["expected"]):
        text += f", expected {row['expected']:.4f}"
    if row["no_minimum"] > 0.0:
        text += f", none {100 * row['no_minimum']:.1f} %"
    return text


def _summary(name: str, methods: tuple[str, ...], draws: FloatArray) -> tuple[list[dict[str, Any]], FloatArray]:
    """Rows of the table, and the errors with nan for runs without a proper minimum."""
    experiment = EXPERIMENTS[name]
    means = experiment.task is _location
    known = EXPECTED["means" if means else name]
    raw, proper = draws[..., :-1], draws[..., -1] > 0.0
    errors = np.where(proper[..., None], raw, np.nan)
    rows = []
    for i, setting in enumerate(experiment.settings):
        for j, n in enumerate(experiment.sizes):
            for k, method in enumerate(methods):
                good = errors[proper[:, i, j, k], i, j, k]
                row: dict[str, Any] = {"experiment": name, "setting": setting, "n": n, "estimator": method}
                row |= dict(zip(("rmse", "mc_error"), _rmse(good), strict=True))
                expected = known.get((setting, method))
                scale = math.sqrt(500 / n) if means else 1.0
                row["expected"] = math.nan if expected is None else scale * expected[0 if means else j]
                row["bias"] = float(good.mean()) if len(good) else math.nan
                spread = good.mean(axis=1).std(ddof=1) if len(good) > 1 else math.nan
                row["bias_error"] = float(spread / math.sqrt(max(len(good), 1)))
                row["no_minimum"] = 1.0 - len(good) / len(draws)
                row["rmse_all"] = _rmse(raw[:, i, j, k])[0]
                row["repetitions"] = len(draws)
                if name == "figure2":
                    points = np.quantile(good, QUANTILES) if len(good) else np.full(len(QUANTILES), np.nan)
                    row |= {f"q{100 * q:g}": float(v) for q, v in zip(QUANTILES, points, strict=True)}
                rows.append(row)
    return rows, errors


def _rmse(errors: FloatArray) -> tuple[float, float]:
    """Root mean square over repetitions and coefficients, with its Monte Carlo error (delta method)."""
    if not len(errors):
        return math.nan, math.nan
    squares = (errors**2).mean(axis=1)
    rmse = math.sqrt(float(squares.mean()))
    if len(squares) < 2 or rmse == 0.0:
        return rmse, math.nan
    return rmse, float(squares.std(ddof=1)) / math.sqrt(len(squares)) / (2.0 * rmse)


def reproduce(
    name: str,
    repetitions: int = 500,
    seed: int = 0,
    out: str | Path | None = None,
    *,
    methods: Sequence[str] | None = None,
    processes: int | None = None,
    progress: bool = False,
    keep: str | Path | None = None,
) -> Reproduction:
    """Run one experiment of the paper.

    Parameters
    ----------
    name : {"table1", "tableS1", "table2", "table3", "figure2"}
    repetitions : int
        The paper has 5000.
    seed : int
        The same seed and repetitions give the same numbers for any number of processes.
    out : path, optional
        Folder for ``NAME.csv`` and ``NAME.md`` (and ``figure2.png`` if matplotlib is installed).
    methods : sequence of str, optional
        Some of the estimators only, e.g. the paper's: "oracle", "naive", "sl", "sdr", "dr".
    processes : int, optional
        Default: one per CPU.
    progress : bool
        A bar on the terminal.
    keep : path, optional
        Folder for finished repetitions: a run that was interrupted, or one with more repetitions, goes on from there.

    Returns
    -------
    Reproduction

    Raises
    ------
    ValueError
        Unknown experiment or estimator; ``keep`` holds repetitions of another run.

    Examples
    --------
    >>> from zil.interfaces.reproduce import reproduce
    >>> result = reproduce("table2", repetitions=2, methods=["oracle"], processes=1)
    >>> len(result.rows)
    6
    """
    key = _validate.choice("name", str(name).lower(), tuple(EXPERIMENTS))
    experiment = EXPERIMENTS[key]
    chosen = experiment.estimators if methods is None else tuple(methods)
    for method in chosen:
        _validate.choice("methods", method, experiment.estimators)
    begun = time.monotonic()
    task = functools.partial(_quiet, experiment.task, experiment.sizes, chosen)
    run = {"experiment": key, "methods": list(chosen), "seed": seed, "version": build_info()["version"]}
    draws = simulation.repeat(
        task,
        repetitions,
        seed=seed,
        processes=processes,
        progress=simulation.Bar(key) if progress else None,
        keep=None if keep is None else simulation.Kept(keep, run),
    )
    rows, errors = _summary(key, chosen, np.stack(draws))
    result = Reproduction(key, rows, errors, repetitions, seed, time.monotonic() - begun)
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{key}.csv").write_text(result.to_csv())
        (folder / f"{key}.md").write_text(result.to_markdown())
        if key == "figure2":
            _boxplots(result, chosen, folder / "figure2.png")
    return result


def _quiet(task: Callable[..., FloatArray], sizes: Any, estimators: Any, rng: np.random.Generator) -> FloatArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return task(sizes, estimators, rng)


def _boxplots(result: Reproduction, estimators: tuple[str, ...], path: Path) -> None:
    """Figure 2 as a picture, if matplotlib is there.  An estimator far off is named instead of squeezing the others."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.patches import Patch
    except ImportError:
        return
    experiment = EXPERIMENTS["figure2"]
    figure = Figure(figsize=(14, 8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(len(SETTINGS), len(FUNCTIONS), squeeze=False)
    for i, setting in enumerate(experiment.settings):
        axis = axes[i % len(SETTINGS)][i // len(SETTINGS)]
        errors = np.nan_to_num(result.errors[:, i, :, :, 0])  # for the choice of what is shown
        middle = np.median(errors, axis=(0, 1))
        low, high = np.quantile(errors, [0.025, 0.975], axis=0)
        far = (np.abs(middle) > 2.0 * (high - low).max()) & (len(errors) > 1)
        for k, method in enumerate(estimators):
            if far[k]:
                axis.plot([], [], " ", label=f"{method}: about {middle[k]:+.1f}, not shown")
                continue
            values = [result.errors[:, i, j, k, 0] for j in range(len(experiment.sizes))]
            values = [v[np.isfinite(v)] for v in values]
            places = [j + 0.8 * (k - 0.5 * (len(estimators) - 1)) / len(estimators) for j in range(len(values))]
            boxes = axis.boxplot(values, positions=places, widths=0.7 / len(estimators), sym="", patch_artist=True)
            for box in boxes["boxes"]:
                box.set_facecolor(f"C{k}")
        axis.axhline(0.0, color="black", linewidth=0.5)
        axis.set_xticks(range(len(experiment.sizes)), [str(n) for n in experiment.sizes])
        axis.set_title(setting)
        if far.any():
            axis.legend(loc="lower right", handlelength=0.0)
    for row in axes:
        row[0].set_ylabel("error of the mean")
    for axis in axes[-1]:
        axis.set_xlabel("n")
    keys = [Patch(facecolor=f"C{k}", edgecolor="black", label=method) for k, method in enumerate(estimators)]
    figure.legend(handles=keys, loc="outside upper center", ncols=len(estimators))
    figure.savefig(path, dpi=100)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m zil.interfaces.reproduce", description=reproduce.__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = "Run an experiment of the paper; prints Markdown."
    parser.add_argument("name", type=str.lower, choices=tuple(EXPERIMENTS))
    parser.add_argument("--repetitions", type=int, default=500, help="the paper has 5000 (default: 500)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=None, help="folder for CSV and Markdown")
    parser.add_argument("--methods", nargs="+", default=None, help="some of the estimators only")
    parser.add_argument("--processes", type=int, default=None, help="default: one per CPU")
    parser.add_argument("--keep", type=Path, default=None, help="folder of finished repetitions, to go on from")
    given = parser.parse_args(arguments)
    try:
        result = reproduce(
            given.name,
            given.repetitions,
            given.seed,
            given.out,
            methods=given.methods,
            processes=given.processes,
            progress=True,
            keep=given.keep,
        )
    except ValueError as error:
        parser.error(str(error))
    print(result.to_markdown())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
