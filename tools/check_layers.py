"""Check that the code lies where the architecture says, and depends one way only.

    python3 tools/check_layers.py

- the top level holds the agreed names and nothing else;
- imports inside zil go interfaces -> estimation -> release -> privacy -> _core, are absolute and
  make no circle; the modules named _something and data lie below all;
- inside estimation the rooms lie on floors, and no import goes a step up;
- .pyx files cimport only libc, cpython and numpy, import nothing of zil and include only src/c;
- src/c includes only itself and the C standard library, and makes no circle;
- every file is listed in the table that builds it, every table row is a file, every .pyx has its stub.

Standard library only.  It prints one line per fault and exits with 1 if there is any.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

TOP = {"pyproject.toml", "meson.build", "README.md", "LICENSE", "src", "zil", "tests", "benchmarks", "tools", "docs"}
RANK = {"_core": 0, "base": 1, "privacy": 2, "release": 3, "estimation": 4, "interfaces": 5, "sklearn": 5, "root": 6}
# Floors of the rooms and modules of estimation; a new one needs its place here.
FLOORS = {
    "sources": 0, "losses": 0, "rows": 0, "sample": 1, "objective": 2, "solvers": 3, "inference": 4, "result": 4,
    "optimal": 5, "scl": 5, "computed": 2, "corrected": 6, "plan": 6, "fit": 7, "quantiles": 8,
    "check": 8, "pilot": 8, "prediction": 8, "planner": 8,
}  # fmt: skip
GENERATED_HEADERS = {"zil_build.h"}
C_STANDARD = {
    "assert.h", "errno.h", "float.h", "inttypes.h", "limits.h", "math.h", "stdbool.h", "stddef.h", "stdint.h",
    "stdio.h", "stdlib.h", "string.h",
}  # fmt: skip
PYX_PACKAGES = {"libc", "cpython", "numpy", "cython"}


def tracked(root: Path) -> list[str]:
    """The project's files: what git knows or would add; without git, all but hidden and build folders."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True).stdout
        names = [name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        skip = {"build", "dist", "__pycache__"}
        paths = [path.relative_to(root) for path in root.rglob("*") if path.is_file()]
        names = [p.as_posix() for p in paths if not any(part in skip or part.startswith(".") for part in p.parts)]
    return sorted(name for name in names if (root / name).is_file())


def circle(graph: dict[str, set[str]]) -> list[str] | None:
    """Some circle of a directed graph, as the list of its nodes."""
    state: dict[str, int] = {}
    path: list[str] = []

    def visit(node: str) -> list[str] | None:
        state[node] = 1
        path.append(node)
        for after in sorted(graph.get(node, ())):
            if state.get(after) == 1:
                return [*path[path.index(after) :], after]
            if after not in state:
                found = visit(after)
                if found:
                    return found
        state[node] = 2
        path.pop()
        return None

    for node in sorted(graph):
        if node not in state:
            found = visit(node)
            if found:
                return found
    return None


def layer(module: str) -> str:
    """The layer of a dotted module name of zil."""
    parts = module.split(".")
    if len(parts) == 1:
        return "root"
    name = parts[1]
    if name in RANK:
        return name
    return "base" if name.startswith("_") or name == "data" else "unknown"


def room(module: str) -> str:
    """The room of a module of estimation, "" for any other module (and for the package itself)."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["zil", "estimation"] and len(parts) > 2 else ""


def module_name(path: str) -> str:
    parts = path.removesuffix(".py").split("/")
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.Module, modules: set[str]) -> Iterable[tuple[int, str]]:
    """Line and target of every import of zil; "" for a relative import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "zil":
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield node.lineno, ""
            elif node.module and node.module.split(".")[0] == "zil":
                for alias in node.names:
                    full = f"{node.module}.{alias.name}"
                    compiled = node.module == "zil._core"
                    yield node.lineno, full if full in modules or compiled else node.module


def check_top(files: list[str]) -> Iterable[str]:
    for name in sorted({path.split("/")[0] for path in files}):
        if name not in TOP and not name.startswith("."):
            yield f"{name}: not one of the agreed top-level names"


def check_python(root: Path, files: list[str]) -> Iterable[str]:
    sources = {module_name(path): path for path in files if path.startswith("zil/") and path.endswith(".py")}
    graph: dict[str, set[str]] = {}
    for module, path in sources.items():
        here = layer(module)
        if here == "unknown":
            yield f"{path}: belongs to no layer"
            continue
        graph[module] = set()
        if room(module) and room(module) not in FLOORS:
            yield f"{path}: {room(module)} has no floor in estimation"
        for line, target in imported(ast.parse((root / path).read_text()), set(sources)):
            if not target:
                yield f"{path}:{line}: relative import"
                continue
            there = layer(target)
            if there == "root" and here not in ("interfaces", "sklearn"):
                yield f"{path}:{line}: imports the package itself; name the module"
            elif there == "unknown":
                yield f"{path}:{line}: imports {target}, which belongs to no layer"
            elif there != "root" and RANK[there] > RANK[here]:
                yield f"{path}:{line}: {here} must not import {there} ({target})"
            elif room(module) in FLOORS and FLOORS.get(room(target), -1) > FLOORS[room(module)]:
                yield f"{path}:{line}: {room(module)} must not import {room(target)}, which is a floor above it"
            if there != "root":
                graph[module].add(target)
    found = circle(graph)
    if found:
        yield "zil: circular imports " + " -> ".join(found)


def check_c(root: Path, files: list[str]) -> Iterable[str]:
    names = {path.removeprefix("src/c/"): path for path in files if path.startswith("src/c/")}
    graph: dict[str, set[str]] = {}
    for name, path in names.items():
        if not name.endswith((".h", ".c")):
            yield f"{path}: only .h and .c files belong in src/c"
            continue
        graph[name] = set()
        for number, text in enumerate((root / path).read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', text)
            if not match:
                continue
            target = match[2]
            if match[1] == "<":
                if target not in C_STANDARD:
                    yield f"{path}:{number}: includes <{target}>; C here knows only the C standard library"
            elif target not in names:
                yield f'{path}:{number}: includes "{target}", which is not in src/c'
            elif not target.endswith(".h"):
                yield f"{path}:{number}: includes a source file, {target}"
            else:
                graph[name].add(target)
    found = circle(graph)
    if found:
        yield "src/c: circular includes " + " -> ".join(found)


def check_pyx(root: Path, files: list[str]) -> Iterable[str]:
    headers = {path.removeprefix("src/c/") for path in files if path.startswith("src/c/")} | GENERATED_HEADERS
    for path in files:
        if not path.startswith("src/"):
            continue
        if path.endswith(".pyx"):
            stem = Path(path).stem
            if f"zil/_core/{stem}.pyi" not in files:
                yield f"{path}: no stub zil/_core/{stem}.pyi"
            for number, text in enumerate((root / path).read_text().splitlines(), 1):
                where = f"{path}:{number}"
                match = re.match(r"\s*(?:from\s+([\w.]+)\s+)?c?import\b\s*([\w.]*)", text)
                target = (match[1] or match[2]) if match else ""
                if target.split(".")[0] == "zil" or target.startswith("."):
                    yield f"{where}: a border file imports nothing of zil ({target})"
                elif match and target.split(".")[0] not in PYX_PACKAGES:
                    yield f"{where}: imports {target}; a border file knows only {', '.join(sorted(PYX_PACKAGES))}"
                match = re.match(r'\s*cdef extern from "([^"]+)"', text)
                if match and match[1] not in headers and not match[1].startswith("numpy/"):
                    yield f"{where}: {match[1]} is not in src/c"
        elif not path.startswith("src/c/") and path != "src/meson.build":
            yield f"{path}: src holds .pyx files, meson.build and c/"
    stubs = {Path(p).stem for p in files if p.startswith("zil/_core/") and p.endswith(".pyi")}
    for stem in sorted(stubs - {Path(p).stem for p in files if p.endswith(".pyx")}):
        yield f"zil/_core/{stem}.pyi: a stub of nothing"


def table(text: str, name: str) -> list[str]:
    """The quoted entries of ``name = [...]`` or ``name = files(...)`` in a meson file."""
    match = re.search(rf"^{name}\s*=\s*(?:files\()?\[?(.*?)[\])]\s*$", text, re.DOTALL | re.MULTILINE)
    return re.findall(r"'([^']+)'", match[1]) if match else []


def compare(listed: list[str], found: set[str], where: str) -> Iterable[str]:
    for name in sorted(set(listed) - found):
        yield f"{where}: lists {name}, which does not exist"
    for name in sorted(found - set(listed)):
        yield f"{where}: {name} is not listed, so it would not be installed"
    for name in sorted({name for name in listed if listed.count(name) > 1}):
        yield f"{where}: lists {name} twice"


def check_tables(root: Path, files: list[str]) -> Iterable[str]:
    package = {path.removeprefix("zil/") for path in files if path.startswith("zil/")} - {"meson.build"}
    yield from compare(table((root / "zil/meson.build").read_text(), "package_files"), package, "zil/meson.build")
    build = (root / "src/meson.build").read_text()
    sources = {path.removeprefix("src/") for path in files if path.startswith("src/c/") and path.endswith(".c")}
    yield from compare(table(build, "plain_sources") + table(build, "isa_sources"), sources, "src/meson.build")
    compiled = {Path(path).stem for path in files if path.startswith("src/") and path.endswith(".pyx")}
    yield from compare(table(build, "pyx_table"), compiled, "src/meson.build")


def faults(root: Path) -> list[str]:
    """Every fault of the tree at ``root``, one line each."""
    files = tracked(root)
    found = list(check_top(files))
    for check in (check_python, check_c, check_pyx, check_tables):
        found += check(root, files)
    return found


def main() -> int:
    found = faults(Path(__file__).resolve().parent.parent)
    for fault in found:
        print(fault)
    print(f"layers: {len(found)} fault(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
