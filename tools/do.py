#!/usr/bin/env python3
"""One door to every routine task: demo, test, lint, bench, audit.

    python3 tools/do.py demo            the main job on real data
    python3 tools/do.py test [...]      the whole test suite; further arguments go to pytest
    python3 tools/do.py lint            ruff, cython-lint, clang-format, mypy, stubtest, build warnings, layers
    python3 tools/do.py bench [...]     every benchmark on one thread, ratios beside their goals
                                        (--large: the sizes that the goals are stated for)
    python3 tools/do.py bench --compare REVISION [...]
                                        public calls of another commit and of the tree, in turn
    python3 tools/do.py audit [--quick] the figures that a trusted release must hold, measured now

It needs Python >= 3.11 and a C compiler, nothing else: it makes ``.venv`` beside the sources,
installs zil there with what the command needs, and installs again only when a source changed.

Design: a normal install, not an editable one, so that what is tested is what a user gets.  The
source folder must then never shadow the installed package: everything runs with PYTHONSAFEPATH.
The build directory is kept inside ``.venv``, so a second install compiles only what changed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "zil-installed.json"
BUILD = VENV / "build"
OLDEST = (3, 11)


def stop(message: str) -> None:
    """End with one clear message, without a traceback."""
    print(f"do.py: {message}", file=sys.stderr)
    raise SystemExit(1)


def check_machine() -> None:
    """Name what is missing before pip fails with a page of output."""
    if sys.version_info < OLDEST:
        stop(f"needs Python {OLDEST[0]}.{OLDEST[1]} or later, this is {sys.version.split()[0]} ({sys.executable})")
    compiler = shlex.split(os.environ.get("CC", ""))[:1] or ["cc", "gcc", "clang"]
    if not any(shutil.which(name) for name in compiler):
        stop(
            f"no C compiler found (looked for {', '.join(compiler)}); "
            "install one, e.g. `apt-get install gcc libc6-dev` or `dnf install gcc`, or set CC"
        )
    header = Path(sysconfig.get_path("include")) / "Python.h"
    if not header.is_file():
        stop(
            f"the Python headers are missing ({header}); install them, "
            "e.g. `apt-get install python3-dev` or `dnf install python3-devel`"
        )


def python() -> str:
    return str(VENV / ("Scripts" if os.name == "nt" else "bin") / "python")


def environment(**more: str) -> dict[str, str]:
    result = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    bin_dir = str(Path(python()).parent)
    result["PATH"] = bin_dir + os.pathsep + result.get("PATH", "")
    result["VIRTUAL_ENV"] = str(VENV)
    result["PYTHONSAFEPATH"] = "1"
    result.update(more)
    return result


def run(command: list[str], **more: str) -> int:
    """Run inside the environment from the project root; the exit code."""
    print("+ " + shlex.join(command), flush=True)
    return subprocess.run(command, cwd=ROOT, env=environment(**more), check=False).returncode


def must(command: list[str], what: str) -> None:
    if run(command) != 0:
        stop(f"{what} failed; the output above says why")


def make_venv() -> None:
    """Make ``.venv``, or make it anew when it belongs to another place or another Python."""
    probe = [python(), "-c", "import sys; print(sys.prefix, *sys.version_info[:2])"]
    wanted = f"{VENV} {sys.version_info[0]} {sys.version_info[1]}"
    try:
        answer = subprocess.run(probe, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        answer = ""
    if answer == wanted:
        return
    print(f"making {VENV.relative_to(ROOT)}", flush=True)
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=False)
    if made.returncode != 0:
        stop("could not make .venv; on Debian and Ubuntu `apt-get install python3-venv`")


def source_hash() -> str:
    """A hash of everything an install depends on."""
    files = [ROOT / "pyproject.toml", ROOT / "meson.build"]
    for folder in ("src", "zil"):
        files += [path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def install(extra: str) -> None:
    """Install zil with an extra ("" for none), unless just that is installed already."""
    check_machine()
    make_venv()
    sources = source_hash()
    try:
        stamp = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        stamp = {}
    extras = set(stamp.get("extras", [])) if stamp else set()
    if stamp.get("sources") == sources and extra in extras:
        return
    import tomllib

    with open(ROOT / "pyproject.toml", "rb") as file:
        build_requires = tomllib.load(file)["build-system"]["requires"]
    pip = [python(), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    if stamp.get("build") != build_requires:
        must([*pip, *build_requires, "ninja"], "installing the build tools")
    target = f".[{extra}]" if extra else "."
    settings = [f"--config-settings=build-dir={BUILD}"]
    if os.environ.get("CI"):  # a new warning stops the project's own checks, never a user's install
        settings.append("--config-settings=setup-args=-Dwerror=true")
    must([*pip, "--no-build-isolation", *settings, target], f"installing {target}")
    extras.add(extra)
    extras.add("")
    STAMP.write_text(json.dumps({"sources": sources, "extras": sorted(extras), "build": build_requires}))


def cpus() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def demo(more: list[str]) -> int:
    install("pandas,plot")
    return run([python(), "-m", "zil.interfaces.demo", *more])


def test(more: list[str]) -> int:
    install("test")
    # One worker per CPU; a worker that also ran several threads would only wait for the others.
    workers = [] if cpus() < 2 or any(a in ("-n", "--pdb", "-s") for a in more) else ["-n", str(min(cpus(), 8))]
    return run([python(), "-m", "pytest", "-p", "no:benchmark", *workers, *more])


def bench(more: list[str]) -> int:
    install("bench")
    if "--compare" in more:
        return compare(more)
    if not any((ROOT / word.split("::")[0]).exists() for word in more):
        more = ["benchmarks", *more]
    single = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "POLARS", "RAYON")}
    single["POLARS_MAX_THREADS"] = "1"
    return run([python(), "-m", "pytest", *more], **single)


def compare(more: list[str]) -> int:
    """Install another revision beside this tree, outside of it, and time public calls of both in turn."""
    at = more.index("--compare")
    if at + 1 == len(more):
        stop("bench --compare needs a revision, e.g. `bench --compare main`")
    revision, rest = more[at + 1], more[:at] + more[at + 2 :]
    with tempfile.TemporaryDirectory(prefix="zil-base-") as folder:
        tree, site = str(Path(folder) / "tree"), str(Path(folder) / "site")
        must(["git", "worktree", "add", "--quiet", "--detach", tree, revision], f"checking out {revision}")
        try:
            pip = [python(), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
            must([*pip, "--no-deps", "--no-build-isolation", "--target", site, tree], f"building {revision}")
            return run([python(), "benchmarks/compare.py", "--base", site, *rest])
        finally:
            run(["git", "worktree", "remove", "--force", tree])


def cython_messages() -> int:
    """Compile every .pyx with the project's directives; any message (a performance hint too) fails."""
    directives = re.findall(r"'(-X\w+=\w+)'", (ROOT / "src" / "meson.build").read_text())
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted((ROOT / "src").glob("*.pyx")):
            command = [python(), "-m", "cython", "-3", "-Wextra", *directives, f"--module-name=zil._core.{path.stem}"]
            command += [str(path), "-o", str(Path(folder) / f"{path.stem}.c")]
            done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
            said = (done.stdout + done.stderr).strip()
            if done.returncode or said:
                failed = 1
                print(f"{path.relative_to(ROOT)}:\n{said}")
    print("cython messages: " + ("see above" if failed else "none"), flush=True)
    return failed


def c_format() -> int:
    """Layout of the C by .clang-format, but for tables made by a script and files of stamped macros."""
    own = {"objective.c", "objective.h", "losses.h"}
    files = [path for path in sorted((ROOT / "src" / "c").glob("*.[ch]")) if path.name not in own]
    names = [str(path.relative_to(ROOT)) for path in files if not path.stem.endswith("_tables")]
    return run(["clang-format", "--dry-run", "-Werror", *names])


def lint(more: list[str]) -> int:
    if more:
        stop(f"lint takes no further arguments, got {shlex.join(more)}")
    install("lint")
    results = {
        "layers": run([python(), "tools/check_layers.py"]),
        "ruff": run(["ruff", "check", "."]),
        "cython-lint": run(["cython-lint", "src"]),
        "clang-format": c_format(),
        "cython messages": cython_messages(),
        "mypy": run([python(), "-m", "mypy"]),
        "stubtest": run([python(), "-m", "mypy.stubtest", "zil._core", "--mypy-config-file", "pyproject.toml"]),
    }
    failed = [name for name, code in results.items() if code]
    names = f" ({', '.join(failed)})" if failed else ""
    print(f"lint: {len(results) - len(failed)} passed, {len(failed)} failed{names}")
    return 1 if failed else 0


def audit(more: list[str]) -> int:
    install("audit")
    return run([python(), "tools/audit.py", *more])


COMMANDS = {"demo": demo, "test": test, "lint": lint, "bench": bench, "audit": audit}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("command", choices=list(COMMANDS))
    parser.add_argument("more", nargs=argparse.REMAINDER, help="passed on to the tool behind the command")
    asked = parser.parse_args()
    return COMMANDS[asked.command](asked.more)


if __name__ == "__main__":
    raise SystemExit(main())
