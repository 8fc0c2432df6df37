"""Print the figures that the trusted release must hold, measured now.

    python3 tools/do.py audit [--quick] [--only crashes,workers]

All of it takes about ten minutes on two idle cores; --quick takes smaller samples.  Each line: what is
measured, the bar, whether it holds, the measurement.  Exit code 1 if one does not hold.  Figures that need
something this machine lacks (python-flint, atheris, valgrind) say so and count as not measured, never as
held.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

import audit_files  # noqa: E402
import fuzz_csv  # noqa: E402
from attacks import law, mutants, naive  # noqa: E402

import zil  # noqa: E402
from zil._core import certified, probe  # noqa: E402
from zil.release import noise_audit, sampler  # noqa: E402
from zil.release.keystream import Key  # noqa: E402

Line = tuple[str, str, str, bool | None]  # figure, bar, measured, held (None: not measured)
ALWAYS = ["-std=c11", "-ffp-contract=off", "-Isrc/c", "-DZIL_ISA=base"]
SOURCES = ["tools/kernel_driver.c", *(f"src/c/{name}.c" for name in ("certified", "chacha", "isa"))]
PYTHON = [sys.executable, "-P"]


def run(command: list[str], **how) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **how)


def pytest_line(figure: str, bar: str, *arguments: str) -> Line:
    done = run([*PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:benchmark", *arguments])
    summary = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr.strip()[-200:]
    return figure, bar, summary, done.returncode == 0


def off_lattice(values: int) -> Iterator[Line]:
    d, n = 6, 500_000
    mechanism = zil.Mechanism([(0, 1)] * d, zero_prob=0.05, scale=1.0)
    rng = np.random.default_rng()
    off = done = control = 0
    while done < values:
        x = rng.random((n, d))
        y = mechanism.release(x).data
        off += int((np.rint(y / mechanism.tick) * mechanism.tick != y).sum())
        done += y.size
    y = naive.release(x, (0, 1), 1.0, 0.05, rng)
    control = int((np.rint(y / mechanism.tick) * mechanism.tick != y).sum())
    yield (
        f"off-lattice values in {done:.0e}",
        "0; naive fails",
        f"{off}; naive {control / y.size:.0%}",
        off == 0 < control,
    )


def bound(coordinates: int) -> Iterator[Line]:
    figure = f"bound violations, {coordinates:.0e} coordinates"
    if importlib.util.find_spec("flint") is None:
        yield figure, "0", "python-flint is not installed", None
        return
    command = [*PYTHON, "tools/fuzz_certified.py", "--coordinates", str(coordinates), "--kind"]
    pipe = subprocess.PIPE
    jobs = [(kind, subprocess.Popen([*command, kind], cwd=ROOT, stdout=pipe, text=True)) for kind in ("edge", "random")]
    for kind, job in jobs:
        out = job.communicate()[0].strip().splitlines()
        yield f"{figure}, {kind}", "0", out[-1].split(":", 1)[-1].strip() if out else "no output", job.returncode == 0


def same_bytes() -> Iterator[Line]:
    n, scales = 100_000, [2.0**20, 2.0**40, 3.0, 1e6, 2.0**30, 17.0]
    key = os.urandom(32)
    whole = sampler.draw_ticks(key, n, scales, 0.1, n_threads=1)
    agree = [np.array_equal(sampler.draw_ticks(key, n, scales, 0.1, n_threads=k), whole) for k in (2, 8)]
    cuts = np.unique(np.random.default_rng().integers(0, n, 40)).tolist()
    parts = [
        sampler.draw_ticks(key, b - a, scales, 0.1, first_row=a) for a, b in zip([0, *cuts], [*cuts, n], strict=True)
    ]
    agree.append(np.array_equal(np.concatenate(parts), whole))
    yield "same bytes: 1, 2, 8 threads; any batches", "yes", "yes" if all(agree) else "NO", all(agree)

    redo = np.empty(n, np.int64)
    tables = []
    for isa in range(probe.best_isa() + 1):
        out = np.empty((n, len(scales)), np.int64)
        count = certified.fill(key, 0, 2**60, np.array(scales), out, redo, False, isa)
        tables.append(out.tobytes() + redo[:count].tobytes())
    yield "same bytes: instruction sets", "yes", f"{len(tables)} compared", len(set(tables)) == 1

    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        yield "same bytes: build flags", "yes", "no compiler", None
        return
    digests = {}
    with tempfile.TemporaryDirectory() as folder:
        for flags in ("-O0", "-O1", "-O2", "-O3", "-Os", "-O3 -funroll-loops", "-O3 -march=native"):
            driver = Path(folder) / "driver"
            built = run([compiler, *ALWAYS, *flags.split(), *SOURCES, "-lm", "-o", str(driver)])
            digests[flags] = run([str(driver)]).stdout.strip() if built.returncode == 0 else None
    held = None not in digests.values() and len(set(digests.values())) == 1
    yield "same bytes: build flags", "yes", f"{len(digests)} builds, {len(set(digests.values()))} digest", held


def best_of(function: Callable[[], object], rounds: int = 7) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def speed() -> Iterator[Line]:
    n, d = 500_000, 6
    rng = np.random.default_rng()
    x = rng.random((n, d))
    mechanism = zil.Mechanism([(0, 1)] * d, zero_prob=0.05, scale=1.0)

    def plain():
        return x + naive.noise(n, np.ones(d), 0.05, rng)

    mechanism.release(x[:10])
    base = best_of(plain)
    for what, call, goal in (
        ("release", lambda: mechanism.release(x, n_threads=1), 1.0),
        ("simulate", lambda: mechanism.simulate(x, 1, n_threads=1), 6.0),
    ):
        ratio = base / best_of(call)
        yield f"speed of {what}, d = 6, one thread", f">= {goal:g}x numpy", f"{ratio:.2f}x", ratio >= goal


def claimed_curve(draws: int) -> Iterator[Line]:
    for d, unit in ((1, "attribute"), (2, "record"), (6, "attribute")):
        mechanism = zil.Mechanism([(0, 1)] * d, zero_prob=0.05, scale=1.0)
        result = zil.audit(mechanism, unit=unit, n_samples=draws)
        margin = np.max(result.lower_bounds - result.claimed)
        figure = f"audit, d = {d}, {unit}, {draws:.0e} draws"
        said = f"largest lower bound - claimed = {margin:+.1e}; {result.questions} questions, "
        said += f"{len(result.contradictions)} contradictions"
        yield figure, "never above the curve", said, result.passed


def questions(setting: mutants.Mutant, model: mutants.Mutant | None, draws: int) -> noise_audit.Findings:
    mechanism = setting.mechanism()
    publish = mutants.publish(mechanism, model)
    arguments = (mechanism._grid, mechanism._in_ticks, mechanism.zero_prob, mechanism.columns, draws)
    return noise_audit.ask(publish, *arguments, level=5e-7)


def killed(draws: int | None) -> Iterator[Line]:
    """Every mutant under the questions of `zil.audit`; its control is the same program without the defect."""
    controls: dict[tuple, int] = {}
    for name, mutant in mutants.MUTANTS.items():
        count = draws or mutant.draws
        setting = (mutant.d, mutant.zero_prob, mutant.bits, count)
        if setting not in controls:
            controls[setting] = len(questions(mutant, None, count).contradictions)
        found = questions(mutant, mutant, count).contradictions
        kinds = [kind for kind in mutant.kinds if any(c.kind == kind for c in found)]
        said = f"{len(found)} contradictions, by {', '.join(kinds) or 'none expected'}; without it {controls[setting]}"
        yield f"{name}, {count:.1e} draws", "killed; right one not", said, bool(kinds) and controls[setting] == 0
    mechanism = zil.Mechanism([(0, 1)] * 2, zero_prob=0.05, scale=1.0)
    rng = np.random.default_rng()
    arguments = (mechanism._grid, mechanism._in_ticks, mechanism.zero_prob, mechanism.columns, 20_000)
    found = noise_audit.ask(lambda x: x + naive.noise(len(x), np.ones(2), 0.05, rng), *arguments, level=5e-7)
    said = found.contradictions[0] if found.contradictions else "nothing found"
    yield "noise added in float64 (naive)", "killed", str(said), bool(found.contradictions)

    n, d, scale, zero_prob = 3_000_000, 4, 2.0**30, 0.002
    with Key.fresh() as key:
        ticks = sampler.draw_ticks(key, n, [scale] * d, zero_prob)
        spoilt = mutants.ticks(key.secret, np.zeros((200_000, d)), scale, zero_prob, mutants.MUTANTS["W per entry"])
    seen, control = law.alarms(ticks, scale, zero_prob), law.alarms(spoilt, scale, zero_prob)
    said = f"{', '.join(sorted(seen)) or 'no alarm'}; W per entry: {', '.join(sorted(control)) or 'no alarm'}"
    yield "law of the certified sampler, 3e6 rows", "no alarm; mutant alarms", said, not seen and bool(control)


def crashes() -> Iterator[Line]:
    tests = ["tests/attacks/test_release_file.py", "tests/attacks/test_second_release.py"]
    yield pytest_line("crash schedules, one and two crashes", "one distinct copy", *tests)


def workers() -> Iterator[Line]:
    for how in ("fork", "spawn", "threads"):
        done = run([*PYTHON, "-W", "ignore", "tests/attacks/workers.py", how, "16"])
        ours, theirs = done.stdout.split() or ("failed", "")
        control = f"; a shared generator repeats {theirs}" if how == "fork" else ""
        yield f"16 workers, {how}: repeated noise rows", "0", f"{ours}{control}", ours == "0"


def sanitizers() -> Iterator[Line]:
    for script, figure in (("sanitize.sh", "ASan + UBSan"), ("valgrind.sh", "valgrind")):
        if script == "valgrind.sh" and shutil.which("valgrind") is None:
            yield figure, "0 reports", "valgrind is not installed", None
            continue
        if importlib.util.find_spec("mesonpy") is None and script == "sanitize.sh":
            yield figure, "0 reports", "meson-python is not installed", None
            continue
        arguments = ["tests/core", "tests/release/test_sampler.py"] if script == "sanitize.sh" else []
        environment = os.environ | {"PYTHON": sys.executable}
        done = run([f"tools/{script}", *arguments], env=environment)
        said = (done.stdout + done.stderr).strip().splitlines()[-1:] or [""]
        yield figure, "0 reports", "no report" if done.returncode == 0 else said[0][:60], done.returncode == 0


def boundary(seconds: int) -> Iterator[Line]:
    yield pytest_line("hypothesis on the boundary", "0 crashes, 0 canaries", "tests/attacks/test_boundary.py")
    figure = f"atheris on the boundary, {seconds} s"
    if importlib.util.find_spec("atheris") is None:
        yield figure, "0 crashes, 0 canaries", "atheris is not installed", None
        return
    with tempfile.TemporaryDirectory() as folder:
        options = [f"-max_total_time={seconds}", "-len_control=0", "-max_len=512", f"-artifact_prefix={folder}/"]
        done = run([*PYTHON, "tools/fuzz_boundary.py", *options])
    last = [line for line in done.stderr.splitlines() if line.startswith("Done")]
    said = last[-1] if last else "stopped: see tools/fuzz_boundary.py"
    yield figure, "0 crashes, 0 canaries", said, done.returncode == 0


def fuzzed_files(count: int) -> Iterator[Line]:
    seen = fuzz_csv.run(count, processes=2)
    failed = sum(number for what, number in seen.items() if what.startswith("FAILED"))
    said = f"{failed}; {seen['released']} released, {seen['refused']} refused, "
    said += f"{seen['whole, released']} and {seen['whole, refused']} with ledger; naive leaks in {seen['naive']}"
    yield f"damaged CSV files, {count:.0e}: leaks, misreadings", "0; naive some", said, failed == 0 < seen["naive"]


SECTIONS: dict[str, Callable[[bool], Iterator[Line]]] = {
    "lattice": lambda quick: off_lattice(10_000_000 if quick else 100_000_000),
    "bound": lambda quick: bound(100_000 if quick else 10_000_000),
    "bytes": lambda quick: same_bytes(),
    "speed": lambda quick: speed(),
    "curve": lambda quick: claimed_curve(200_000 if quick else 10_000_000),
    "mutants": lambda quick: killed(None if quick else 2_000_000),
    "crashes": lambda quick: crashes(),
    "fuzz": lambda quick: fuzzed_files(10_000 if quick else 200_000),
    "ids": lambda quick: audit_files.ids(),
    "snapshots": lambda quick: audit_files.snapshots(),
    "permissions": lambda quick: audit_files.permissions(),
    "links": lambda quick: audit_files.links(),
    "workers": lambda quick: workers(),
    "sanitizers": lambda quick: iter(()) if quick else sanitizers(),
    "boundary": lambda quick: boundary(10 if quick else 60),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smaller samples, no sanitizer build")
    parser.add_argument("--only", help="sections to measure, separated by commas: " + ", ".join(SECTIONS))
    given = parser.parse_args()
    names = given.only.split(",") if given.only else list(SECTIONS)
    if unknown := set(names) - set(SECTIONS):
        parser.error(f"no section {unknown.pop()!r}; there are {', '.join(SECTIONS)}")
    sections = [SECTIONS[name](given.quick) for name in names]
    failed = missing = 0
    started = time.perf_counter()
    print(f"{'figure':58} {'bar':24} {'':7} measured", flush=True)
    for section in sections:
        for figure, bar, measured, held in section:
            mark = {True: "holds", False: "FAILS", None: "-"}[held]
            failed += held is False
            missing += held is None
            print(f"{figure:58} {bar:24} {mark:7} {measured}", flush=True)
    print(f"audit: {failed} failed, {missing} not measured, {time.perf_counter() - started:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
