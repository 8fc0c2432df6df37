"""The command line: ``zil calibrate | risk | check | plan | release | report | fit | tradeoff | audit | demo``, ...

Every command is a thin call of one public function.  Answers go to standard output, as text or,
with ``--json``, as one JSON object (numbers that are not finite become null); everything else
goes to standard error.  Exit code 0: done; 1: done, but an audit failed or a fit did not
converge; 2: bad input, with one line that says what is wrong.

It needs the extra ``cli`` (typer and rich).

Over 400 lines because a command is mostly its options and their help, and all commands belong side by side.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TextIO

import numpy as np

import zil
from zil.release import calibration

try:
    import typer
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.progress import Progress
except ImportError:
    raise SystemExit("zil: the command line needs typer and rich: pip install 'zil[cli]'") from None

app = typer.Typer(
    name="zil",
    help="Publish a numeric table under local differential privacy, and fit what was published.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines.")]
Bounds = Annotated[
    list[str] | None,
    typer.Option(
        "--bounds", help="Public bounds of columns to be noised, NAME=LOW:HIGH, comma separated or once per column."
    ),
]
ZeroProb = Annotated[float | None, typer.Option(help="Probability that a row is published unchanged.")]
Epsilon = Annotated[float | None, typer.Option(help="Target epsilon, with --delta.")]
Delta = Annotated[float | None, typer.Option(help="Target delta in total; it must exceed --zero-prob.")]
Mu = Annotated[float | None, typer.Option(help="Target of Gaussian differential privacy.")]
Advantage = Annotated[float | None, typer.Option(help="Target: best advantage of any attacker.")]
Unit = Annotated[str | None, typer.Option(help="What the target protects: attribute (one entry) or record (a row).")]
Limit = Annotated[bool, typer.Option("--limit", help="Use the limit curve, safe for any number of columns.")]
Scaling = Annotated[str, typer.Option(help="Noise scales: per-column or common.")]
Scale = Annotated[
    list[str] | None, typer.Option("--scale", help="Noise scale instead of a target, NAME=SCALE; once per column.")
]
Resolution = Annotated[
    list[str] | None, typer.Option("--resolution", help="Step of the published values, NAME=STEP, e.g. 1 for counts.")
]
MechanismFile = Annotated[
    Path | None, typer.Option("--mechanism", help="A file written by 'zil calibrate --json', instead of the above.")
]
Threads = Annotated[int | None, typer.Option(help="Threads; never changes a result.")]


class BadInputError(ValueError):
    """Input of the command line itself; the message is the whole answer."""


@contextlib.contextmanager
def _progress(what: str) -> Iterator[Any]:
    """A bar on a terminal as a callable of (done, total); False elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield False
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextlib.contextmanager
def _working(what: str) -> Iterator[None]:
    """A spinner on a terminal, nothing elsewhere."""
    console = Console(stderr=True)
    with console.status(what) if console.is_terminal else contextlib.nullcontext():
        yield


def _plain(value: Any) -> Any:
    """Numbers, lists and dictionaries of JSON; what is not finite becomes None."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def _print_json(value: Any) -> None:
    print(json.dumps(_plain(value), indent=2, allow_nan=False, ensure_ascii=False))


def _print_markdown(text: str) -> None:
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        print(text)


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadInputError(f"{option}: {text!r} is not a number") from None


def _apart(items: list[str] | None) -> Iterator[str]:
    """Items one by one; a comma parts them where each part is a NAME=VALUE, so a name may hold a comma."""
    for item in items or []:
        parts = item.split(",")
        yield from parts if all(part.strip() and "=" in part for part in parts) else [item]


def _pairs(option: str, items: list[str] | None, form: str) -> dict[str, str]:
    """NAME=VALUE items by name; a name may hold '=' itself, the last one counts."""
    found: dict[str, str] = {}
    for item in _apart(items):
        name, equals, value = (part.strip() for part in item.rpartition("="))
        if not equals or not name:
            raise BadInputError(f"{option}: expected {form}, got {item!r}")
        if name in found:
            raise BadInputError(f"{option}: column {name!r} is given twice")
        found[name] = value
    return found


def _read_bounds(items: list[str] | None) -> dict[str, tuple[float, float]]:
    form = "NAME=LOW:HIGH"
    result = {}
    for name, value in _pairs("--bounds", items, form).items():
        low, colon, high = value.partition(":")
        if not colon:
            raise BadInputError(f"--bounds: expected {form}, got {name + '=' + value!r}")
        result[name] = (_number("--bounds", low), _number("--bounds", high))
    return result


def _read_numbers(option: str, items: list[str] | None, form: str) -> dict[str, float] | None:
    values = _pairs(option, items, form)
    return {name: _number(option, value) for name, value in values.items()} or None


def _describe(mechanism: zil.Mechanism, resolution: dict[str, float] | None) -> dict[str, Any]:
    """What rebuilds the mechanism, and what it promises."""
    names = mechanism.columns
    units = ("attribute", "record")
    return {
        "bounds": {name: list(pair) for name, pair in mechanism.bounds.items()},
        "zero_prob": mechanism.zero_prob,
        "scale": dict(zip(names, mechanism.scale.tolist(), strict=True)),
        "resolution": resolution,
        "target": mechanism._target,
        "tick": dict(zip(names, mechanism.tick.tolist(), strict=True)),
        "shift": {unit: mechanism.shift(unit) for unit in units},
        "advantage": {unit: mechanism.tradeoff(unit).advantage for unit in units},
        "delta_at_epsilon": {
            unit: [[e, mechanism.delta(e, unit)] for e in (0.1, 0.5, 1.0, 2.0, 5.0)] for unit in units
        },
    }


def _read_mechanism(path: Path) -> zil.Mechanism:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        parts = [content[name] for name in ("bounds", "zero_prob", "scale")]
        bounds = {name: (low, high) for name, (low, high) in parts[0].items()}
    except FileNotFoundError:
        raise BadInputError(f"--mechanism: no such file: {path}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadInputError(f"--mechanism: {path} was not written by 'zil calibrate --json'") from None
    mechanism = zil.Mechanism(bounds, zero_prob=parts[1], scale=parts[2], resolution=content.get("resolution"))
    try:
        return calibration.with_target(mechanism, content.get("target"))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadInputError(f"--mechanism: {path} states a target that its scales do not meet") from None


def _mechanism(
    *,
    bounds: list[str] | None,
    zero_prob: float | None,
    epsilon: float | None,
    delta: float | None,
    mu: float | None,
    advantage: float | None,
    unit: str | None,
    limit: bool,
    scaling: str,
    scale: list[str] | None,
    resolution: list[str] | None,
    file: Path | None = None,
) -> zil.Mechanism:
    """The mechanism that the options describe: a file, explicit scales, or a target."""
    target = (epsilon, delta, mu, advantage)
    if file is not None:
        if bounds or scale or zero_prob is not None or any(value is not None for value in target):
            raise BadInputError("give --mechanism, or bounds with a target or scales, not both")
        if resolution or limit or scaling != "per-column":
            raise BadInputError(
                "--resolution, --limit and --scaling have no effect with --mechanism, which has its own"
            )
        return _read_mechanism(file)
    pairs = _read_bounds(bounds)
    if not pairs:
        raise BadInputError(
            "give --bounds NAME=LOW:HIGH (public knowledge, never from the data) for each noised column"
        )
    if zero_prob is None:
        raise BadInputError("give --zero-prob, the probability that a row is published unchanged")
    scales = _read_numbers("--scale", scale, "NAME=SCALE")
    steps = _read_numbers("--resolution", resolution, "NAME=STEP")
    if scales is not None:
        if any(value is not None for value in target):
            raise BadInputError("give --scale or a target (--epsilon with --delta, --mu, --advantage), not both")
        if limit or scaling != "per-column":
            raise BadInputError("--limit and --scaling belong to a target and have no effect with --scale")
        return zil.Mechanism(pairs, zero_prob=zero_prob, scale=scales, resolution=steps)
    if unit is None:
        raise BadInputError("give --unit attribute or --unit record: what the target protects")
    return zil.calibrate(
        pairs,
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        advantage=advantage,
        zero_prob=zero_prob,
        unit=unit,
        sharp=not limit,
        scaling=scaling,
        resolution=steps,
    )


@app.command()
def calibrate(
    bounds: Bounds = None,
    zero_prob: ZeroProb = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    mu: Mu = None,
    advantage: Advantage = None,
    unit: Unit = None,
    limit: Limit = False,
    scaling: Scaling = "per-column",
    scale: Scale = None,
    resolution: Resolution = None,
    n_rows: Annotated[int | None, typer.Option(help="Rows to be published, for the label.")] = None,
    json_output: Json = False,
) -> None:
    """The least noise that meets a privacy target, and its privacy label.

    Example: zil calibrate --bounds age=18:90 --zero-prob 0.05 --epsilon 1 --delta 0.1 --unit attribute
    """
    mechanism = _mechanism(
        bounds=bounds,
        zero_prob=zero_prob,
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        advantage=advantage,
        unit=unit,
        limit=limit,
        scaling=scaling,
        scale=scale,
        resolution=resolution,
    )
    if json_output:
        _print_json(_describe(mechanism, _read_numbers("--resolution", resolution, "NAME=STEP")))
    else:
        _print_markdown(mechanism.report(n_rows))


@app.command()
def release(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The raw table, CSV or Parquet.")],
    destination: Annotated[Path, typer.Argument(metavar="OUT", help="Where to publish it, CSV or Parquet.")],
    file: MechanismFile = None,
    bounds: Bounds = None,
    zero_prob: ZeroProb = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    mu: Mu = None,
    advantage: Advantage = None,
    unit: Unit = None,
    limit: Limit = False,
    scaling: Scaling = "per-column",
    scale: Scale = None,
    resolution: Resolution = None,
    columns: Annotated[str | None, typer.Option(help="Columns to write, comma separated; all by default.")] = None,
    ledger: Annotated[Path | None, typer.Option(help="Ledger of what was released; IN.ledger by default.")] = None,
    release_id: Annotated[str | None, typer.Option(help="Name of this release in the ledger.")] = None,
    row_id: Annotated[str | None, typer.Option(help="Column that names the row: none is then released twice.")] = None,
    header: Annotated[
        str | None,
        typer.Option(
            help="Names of the columns, comma separated, if IN has no line of names; yes if numbers are names."
        ),
    ] = None,
    types: Annotated[
        str | None, typer.Option(help="CSV to Parquet: column=type, comma separated; text, integer, number, date, ...")
    ] = None,
    append: Annotated[bool, typer.Option("--append", help="Add rows whose id was never released.")] = False,
    repeat: Annotated[
        bool, typer.Option("--repeat", help="Publish rows once more; the guarantee is composed.")
    ] = False,
    missing: Annotated[
        str, typer.Option(help="Missing values: error, clip (infinite ones only), midpoint, or a public number.")
    ] = "error",
    batch_rows: Annotated[int, typer.Option(help="Rows in memory at a time; never changes the output.")] = 65_536,
    threads: Threads = None,
    json_output: Json = False,
) -> None:
    """Publish a file: bounded memory, once per row, the same bytes if it is run again after a crash.

    Example: zil release raw.csv public.csv --mechanism mechanism.json
    """
    mechanism = _mechanism(
        bounds=bounds,
        zero_prob=zero_prob,
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        advantage=advantage,
        unit=unit,
        limit=limit,
        scaling=scaling,
        scale=scale,
        resolution=resolution,
        file=file,
    )
    with _progress("releasing") as progress:
        metadata = mechanism.release_file(
            source,
            destination,
            ledger=ledger,
            release_id=release_id,
            batch_rows=batch_rows,
            columns=None if columns is None else [name.strip() for name in columns.split(",")],
            row_id=row_id,
            header=_header(header),
            types=_types(types),
            append=append,
            repeat=repeat,
            missing=_missing(missing),
            progress=progress,
            n_threads=threads,
        )
    if json_output:
        _print_json(metadata)
    else:
        _print_markdown(zil.load(destination).report())


def _header(text: str | None) -> Any:
    """``yes`` for a first line that looks like no header and is one, else names."""
    if text is None or text.strip().lower() == "yes":
        return None if text is None else True
    return [name.strip() for name in text.split(",")]


def _types(text: str | None) -> dict[str, str] | None:
    if text is None:
        return None
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(mark for _, mark, _ in pairs):
        raise ValueError(f"--types must be column=type pairs, got {text!r}")
    return {name.strip(): kind.strip() for name, _, kind in pairs}


def _missing(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


@app.command()
def report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A released file, CSV or Parquet.")],
    form: Annotated[str, typer.Option("--format", help="markdown, text, or html (a page to sign).")] = "markdown",
    rows_per_person: Annotated[int | None, typer.Option(help="Most rows of one person.")] = None,
    json_output: Json = False,
) -> None:
    """The privacy label of a released file.

    Example: zil report public.parquet --format html > label.html
    """
    released = zil.load(file)
    if json_output:
        _print_json(released.metadata)
        return
    text = released.report(format=form, rows_per_person=rows_per_person)
    if form == "markdown":
        _print_markdown(text)
    else:
        print(text, end="")


@app.command()
def risk(
    file: MechanismFile = None,
    bounds: Bounds = None,
    zero_prob: ZeroProb = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    mu: Mu = None,
    advantage: Advantage = None,
    unit: Unit = None,
    limit: Limit = False,
    scaling: Scaling = "per-column",
    scale: Scale = None,
    resolution: Resolution = None,
    n_rows: Annotated[int | None, typer.Option(help="Rows to be published.")] = None,
    rows_per_person: Annotated[int, typer.Option(help="Most rows of one person.")] = 1,
    json_output: Json = False,
) -> None:
    """What the best attacker gets out of a release, and the verdict; it needs no table.

    Example: zil risk --mechanism mechanism.json --n-rows 4000
    """
    mechanism = _mechanism(
        bounds=bounds,
        zero_prob=zero_prob,
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        advantage=advantage,
        unit=unit,
        limit=limit,
        scaling=scaling,
        scale=scale,
        resolution=resolution,
        file=file,
    )
    found = mechanism.risk(n_rows, rows_per_person=rows_per_person)
    if json_output:
        _print_json(found.to_dict())
    else:
        print(found.summary())


@app.command()
def check(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The raw table, CSV or Parquet.")],
    published: Annotated[Path | None, typer.Argument(metavar="[OUT]", help="What was published of it.")] = None,
    file: MechanismFile = None,
    bounds: Bounds = None,
    keys: Annotated[
        str | None,
        typer.Option(help="Columns that an outsider may know, comma separated; all that pass through by default."),
    ] = None,
    person: Annotated[str | None, typer.Option(help="Column that names the person.")] = None,
    json_output: Json = False,
) -> None:
    """Look at a raw table with the eyes of an attacker. NOT FOR PUBLICATION.

    Example: zil check raw.csv --mechanism mechanism.json --keys region,sex
    """
    if (file is None) == (not bounds):
        raise BadInputError("give --mechanism, or --bounds to count what lies outside them")
    table = _raw_table(source)
    if file is None:
        found = zil.check(table, _read_bounds(bounds))
    else:
        copy = None if published is None else zil.load(published)
        names = None if keys is None else [name.strip() for name in keys.split(",") if name.strip()]
        found = zil.check(table, _read_mechanism(file), copy, keys=names, person=person)
    if json_output:
        _print_json({"head": "NOT FOR PUBLICATION", "found": found})
    else:
        print(found.summary())


@app.command()
def plan(
    loss: Annotated[str, typer.Option(help="What will be fitted: squared, quantile:0.5, logistic, ...")],
    epsilon: Annotated[float, typer.Option(help="Epsilon of the budget.")],
    delta: Annotated[float, typer.Option(help="Delta of the budget, in total.")],
    unit: Annotated[str, typer.Option(help="What the budget protects: attribute or record.")],
    bounds: Bounds = None,
    n_rows: Annotated[int | None, typer.Option(help="Rows to be published.")] = None,
    pilot: Annotated[Path | None, typer.Option(help="A public or older table, CSV or Parquet.")] = None,
    y: Annotated[str | None, typer.Option(help="Column of the response.")] = None,
    x: Annotated[str | None, typer.Option(help="Columns of the regressors, comma separated.")] = None,
    target_se: Annotated[float | None, typer.Option(help="Standard error wanted for every slope.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw the frontier into this image file.")] = None,
    json_output: Json = False,
) -> None:
    """What a budget buys: predicted standard errors for each share of rows published unchanged.

    Example: zil plan --bounds age=18:90 --bounds score=0:1 --epsilon 1 --delta 0.1 --unit record --loss logistic
    --n-rows 4000
    """
    pairs = _read_bounds(bounds)
    if not pairs:
        raise BadInputError("give --bounds NAME=LOW:HIGH for each column to be noised")
    with _working("planning"):
        found = zil.plan(
            pairs,
            epsilon=epsilon,
            delta=delta,
            unit=unit,
            loss=loss,
            n=n_rows,
            pilot=None if pilot is None else _raw_table(pilot),
            y=y,
            x=None if x is None else [name.strip() for name in x.split(",") if name.strip()],
            target_se=target_se,
        )
    if plot is not None:
        found.plot().figure.savefig(plot, dpi=150)
    if json_output:
        _print_json(found.to_dict())
    else:
        print(found.summary())


def _raw_table(path: Path) -> Any:
    """A raw file as a pyarrow table."""
    from zil import _arrow
    from zil.release import files

    _arrow.need_pyarrow()
    if not path.is_file():
        raise BadInputError(f"no such file: {path}")
    if files.file_format(path) == "parquet":
        import pyarrow.parquet as pq

        return pq.read_table(path)
    import pyarrow as pa
    import pyarrow.csv

    try:
        return pyarrow.csv.read_csv(path)
    except pa.ArrowInvalid:
        raise BadInputError(f"{path} is not a CSV file that can be read; 'zil release' names the line") from None


@app.command()
def fit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A released file, CSV or Parquet.")],
    loss: Annotated[str, typer.Option(help="squared, absolute, quantile:0.5, huber:1.345, logistic, ...")],
    y: Annotated[str | None, typer.Option(help="Column of the response.")] = None,
    x: Annotated[
        str | None,
        typer.Option(
            help='Columns of the regressors, comma separated; all others by default, "" for an intercept only.'
        ),
    ] = None,
    method: Annotated[str | None, typer.Option(help="optimal, rb, dr, sdr, sl or naive.")] = None,
    no_intercept: Annotated[bool, typer.Option("--no-intercept", help="Fit no intercept.")] = False,
    weights: Annotated[str | None, typer.Option(help="Column of weights.")] = None,
    ridge: Annotated[float, typer.Option(help="Ridge penalty on the coefficients.")] = 0.0,
    seed: Annotated[int | None, typer.Option(help="Another second noise for the methods that draw one.")] = None,
    threads: Threads = None,
    json_output: Json = False,
) -> int:
    """Fit a model to a released file, with valid standard errors.

    Example: zil fit public.csv --loss quantile:0.5 --y income --x age,town_size
    """
    with _working("fitting"):
        result = zil.fit(
            loss,
            file,
            y=y,
            x=None if x is None else [name.strip() for name in x.split(",") if name.strip()],
            method=method,
            intercept=not no_intercept,
            weights=weights,
            ridge=ridge,
            rng=seed,
            n_threads=threads,
        )
    if json_output:
        _print_json(result.to_dict())
    else:
        print(result.summary())
    return 0 if result.converged else 1


@app.command()
def audit(
    file: MechanismFile = None,
    bounds: Bounds = None,
    zero_prob: ZeroProb = None,
    epsilon: Epsilon = None,
    delta: Delta = None,
    mu: Mu = None,
    advantage: Advantage = None,
    unit: Unit = None,
    limit: Limit = False,
    scaling: Scaling = "per-column",
    scale: Scale = None,
    resolution: Resolution = None,
    n_samples: Annotated[int, typer.Option(help="Releases of each row that is tried.")] = 10_000_000,
    level: Annotated[float, typer.Option(help="Probability at most that a right mechanism fails.")] = 1e-6,
    threads: Threads = None,
    json_output: Json = False,
) -> int:
    """Attack a mechanism's own releases: can more be learnt than it claims?

    Example: zil audit --mechanism mechanism.json --unit record --n-samples 1000000
    """
    mechanism = _mechanism(
        bounds=bounds,
        zero_prob=zero_prob,
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        advantage=advantage,
        unit=unit,
        limit=limit,
        scaling=scaling,
        scale=scale,
        resolution=resolution,
        file=file,
    )
    if unit is None:
        raise BadInputError("give --unit attribute or --unit record: which claim to put to the test")
    with _working("auditing"):
        result = zil.audit(mechanism, unit=unit, n_samples=n_samples, level=level, n_threads=threads)
    if json_output:
        names = ("epsilons", "lower_bounds", "claimed", "unit", "n_samples", "level", "passed", "questions")
        told = {"contradictions": [str(contradiction) for contradiction in result.contradictions]}
        _print_json({name: getattr(result, name) for name in names} | told)
    else:
        _print_markdown(result.summary())
    return 0 if result.passed else 1


@app.command()
def demo(
    out: Annotated[str | None, typer.Option(help="Folder for the label and the picture; a temporary one.")] = None,
) -> None:
    """The main job on real data: publish wages and analyse what was published."""
    from zil.interfaces import demo as job

    job.main(out)


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(metavar="NAME", help="table1, tableS1, table2, table3, figure1 or figure2.")],
    repetitions: Annotated[int, typer.Option(help="Simulated data sets; the paper has 5000.")] = 500,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for CSV, Markdown and, of figures, a picture.")] = None,
    methods: Annotated[
        str | None, typer.Option(help="Some of the estimators, comma separated: oracle, naive, sl, sdr, dr, rb, ...")
    ] = None,
    processes: Annotated[int | None, typer.Option(help="Default: one per CPU; never changes a result.")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Folder of finished repetitions: an interrupted or shorter run goes on.")
    ] = None,
    json_output: Json = False,
) -> None:
    """The experiments of the paper, with RB and optimal beside its estimators and Monte Carlo errors.

    Example: zil reproduce table2 --repetitions 200 --out results
    """
    from zil.interfaces import figure1 as curves
    from zil.interfaces import reproduce as study

    if name.lower() == "figure1":
        figure = curves.figure1(out)
        if json_output:
            _print_json({"alpha": figure.alpha, "panels": dict(zip("ab", figure.panels, strict=True))})
        else:
            _print_markdown(figure.to_markdown())
        return
    if name.lower() not in study.EXPERIMENTS:
        raise BadInputError(f"NAME must be table1, tableS1, table2, table3, figure1 or figure2, got {name!r}")
    result = study.reproduce(
        name,
        repetitions,
        seed,
        out,
        methods=None if methods is None else [part.strip() for part in methods.split(",") if part.strip()],
        processes=processes,
        progress=True,
        keep=keep,
    )
    if json_output:
        _print_json({"name": result.name, "repetitions": repetitions, "seed": seed, "rows": result.rows})
    else:
        _print_markdown(result.to_markdown())


def _floats(option: str, text: str) -> list[float]:
    return [_number(option, part) for part in text.split(",") if part.strip()]


@app.command()
def tradeoff(
    dim: Annotated[str, typer.Option(help="Number of noised columns; inf for the limit.")],
    c: Annotated[float, typer.Option("--c", help="Shift in units of the noise scale.")],
    zero_prob: Annotated[float, typer.Option(help="Probability that a row is published unchanged.")] = 0.0,
    alpha: Annotated[str, typer.Option(help="Type I errors, comma separated.")] = "0,0.001,0.01,0.05,0.1,0.25,0.5",
    epsilon: Annotated[str, typer.Option(help="Epsilons, comma separated.")] = "0,0.5,1,2,3,5",
    plot: Annotated[Path | None, typer.Option(help="Also draw the curve into this image file.")] = None,
    json_output: Json = False,
) -> None:
    """The trade-off curve of the noise: what an attacker can detect at each rate of false alarms."""
    number = _number("--dim", dim)
    number = int(number) if number.is_integer() else number
    curve = zil.tradeoff(number, c, zero_prob)
    alphas, epsilons = np.array(_floats("--alpha", alpha)), np.array(_floats("--epsilon", epsilon))
    betas, deltas = curve(alphas), curve.delta(epsilons)
    if plot is not None:
        _plot(curve, plot)
    if json_output:
        _print_json(
            {
                "dim": number if math.isfinite(number) else "inf",
                "c": c,
                "zero_prob": zero_prob,
                "alpha": alphas,
                "beta": betas,
                "epsilon": epsilons,
                "delta": deltas,
                "advantage": curve.advantage,
                "gaussian_mu": curve.gaussian_mu,
            }
        )
        return
    lines = ["| alpha | beta |", "| --- | --- |"]
    lines += [f"| {a:g} | {b:.10g} |" for a, b in zip(alphas, betas, strict=True)]
    lines += ["", "| epsilon | delta |", "| --- | --- |"]
    lines += [f"| {e:g} | {d:.10g} |" for e, d in zip(epsilons, deltas, strict=True)]
    lines += ["", f"Best advantage of an attacker: {curve.advantage:.6g}."]
    _print_markdown("\n".join(lines))


def _plot(curve: zil.TradeOff, path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise BadInputError("--plot needs matplotlib: pip install 'zil[plot]'") from None
    figure = Figure(layout="constrained")
    curve.plot(ax=figure.subplots())
    figure.savefig(path)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    print(f"zil: {category.__name__}: {_spoken(str(message))}", file=sys.stderr)


# what a message of the library calls its arguments, and what the command line calls them
SPOKEN = (
    (re.compile(r" \(noise=zil\.Noise\([^)]*\)[^)]*\)"), ""),
    (re.compile(r"\b(?:repeat|append)=True\b"), lambda match: "--" + match.group().partition("=")[0]),
    (re.compile(r"\bsharp=False\b"), lambda match: "--limit"),
    (re.compile(r"\bwith sharp=True\b"), lambda match: "without --limit"),
    (re.compile(r"\bheader=\[names\]"), lambda match: "--header NAMES"),
    (re.compile(r"\bheader=True\b"), lambda match: "--header yes"),
    (re.compile(r"(?<!['\w.-])src(?!['\w])"), lambda match: "IN"),
    (re.compile(r"(?<!['\w.-])dst(?!['\w])"), lambda match: "OUT"),
    (re.compile(r"^(?:header|types)(?= (?:is|are|must|names|of)\b)"), lambda match: "--" + match.group()),
    (re.compile(r"\b(?:ledger|release_id|row_id|batch_rows|columns|header|types|missing)=(?=[\s),.;:]|$)"),
     lambda match: "--" + match.group()[:-1].replace("_", "-")),
    (re.compile(r"(?<!['\w.-])(?:release_id|row_id|batch_rows|zero_prob|n_samples|n_rows)(?!['\w])"),
     lambda match: "--" + match.group().replace("_", "-")),
)  # fmt: skip


def _spoken(message: str) -> str:
    """A message in one line, in the words of the command line."""
    for pattern, word in SPOKEN:
        message = pattern.sub(word, message)
    return " ".join(message.split())


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and answer its exit code.

    Parameters
    ----------
    arguments : list of str or None
        Without the program's name; None takes those of the process.
    """
    command = typer.main.get_command(app)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        for kind in (zil.ConvergenceWarning, zil.PrivacyWarning):
            warnings.simplefilter("always", kind)
        try:
            code = command.main(args=arguments, prog_name="zil", standalone_mode=False)
        except (ValueError, TypeError, OSError, ImportError) as error:
            message = str(error)
        except Exception as error:
            # typer's own complaints; its exception classes moved between versions, their method did not
            if not hasattr(error, "format_message"):
                raise
            message = error.format_message()
        else:
            return code if isinstance(code, int) else 0
    if message:  # empty where the help was printed instead
        print("zil: " + _spoken(message), file=sys.stderr)
    return 2


def run() -> None:
    """Entry point of the ``zil`` script."""
    raise SystemExit(main())
