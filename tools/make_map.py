"""Write the map of the tree, one line per file, into README.md.

    python3 tools/make_map.py            write it
    python3 tools/make_map.py --check    fail if it is not up to date

Each line is the first sentence of the file itself, so the map says what the file says.  A header
stands for the C file of the same name.  Standard library only.
"""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "README.md"
BEGIN, END = "<!-- map: made by tools/make_map.py -->", "<!-- end of map -->"
sys.path.insert(0, str(Path(__file__).resolve().parent))

from check_layers import tracked  # noqa: E402  (a script beside this one)

FOLDERS = [
    ("zil", "The package: Python that checks and decides"),
    ("zil/privacy", "Laws, curves, calibration"),
    ("zil/release", "The data holder's side"),
    ("zil/estimation", "The analyst's side"),
    ("zil/estimation/losses", "What is minimised, row by row"),
    ("zil/estimation/objective", "Corrected objectives and their sums"),
    ("zil/estimation/solvers", "Minima"),
    ("zil/estimation/inference", "Errors"),
    ("zil/interfaces", "Ways in"),
    ("zil/data", "The data of the demo"),
    ("src", "The border: one compiled module each"),
    ("src/c", "The kernels: C that knows nothing of Python"),
    ("tests", "Tests, mirroring the package"),
    ("tests/core", "Kernels"),
    ("tests/privacy", "Laws, curves, calibration"),
    ("tests/release", "The data holder's side"),
    ("tests/estimation", "The analyst's side"),
    ("tests/estimation/losses", "What is minimised, row by row"),
    ("tests/estimation/objective", "Corrected objectives and their sums"),
    ("tests/estimation/solvers", "Minima"),
    ("tests/estimation/inference", "Errors"),
    ("tests/interfaces", "Ways in"),
    ("tests/attacks", "Attacks that must fail here and succeed on the naive version"),
    ("tests/tools", "The tools themselves"),
    ("benchmarks", "Speed, each against a named baseline"),
    ("tools", "Routine tasks, makers of tables, experiments"),
    ("docs", "Guide and proofs"),
]


def head(path: Path) -> str:
    """The text a file begins with: docstring, comment or title."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(text)) or ""
    if path.suffix == ".pyx":
        found = re.match(r'\s*"""(.*?)"""', text, re.DOTALL)
    elif path.suffix in (".c", ".h"):
        found = re.match(r"\s*/\*(.*?)\*/", text, re.DOTALL)
    elif path.suffix == ".sh":
        found = re.match(r"#![^\n]*\n((?:#[^\n]*\n)+)", text)
    else:
        found = re.match(r"#\s+([^\n]+)", text)
    return re.sub(r"^[ \t]*[*#] ?", "", found[1], flags=re.MULTILINE).strip() if found else ""


def sentence(text: str) -> str:
    """The first sentence, on one line, without its full stop."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    first = re.split(r"(?<=[a-z0-9)`\"])(?<!et al)\. ", paragraph)[0]
    return first.rstrip(".").replace("``", "`")


def lines(files: list[str]) -> list[str]:
    result: list[str] = []
    for folder, title in FOLDERS:
        inside = [
            f
            for f in files
            if str(Path(f).parent) == folder and Path(f).suffix in (".py", ".pyx", ".c", ".h", ".sh", ".md")
        ]
        rows = []
        for name in inside:
            path = Path(name)
            if path.suffix == ".c" and f"{folder}/{path.stem}.h" in files:
                continue
            if path.name == "__init__.py" and folder != "zil":
                continue
            said = sentence(head(ROOT / name))
            rows.append(f"- `{path.name}`: {said}." if said else f"- `{path.name}`")
        if rows:
            result += ["", f"**`{folder}/`** {title}.", "", *rows]
    return result


def page() -> str:
    """The page with a new map between its marks."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return before + BEGIN + "\n" + "\n".join(lines(tracked(ROOT))) + "\n\n" + END + after


def main() -> int:
    new = page()
    if "--check" in sys.argv[1:]:
        if new != PAGE.read_text(encoding="utf-8"):
            print("README.md: the map is out of date; run python3 tools/make_map.py")
            return 1
        return 0
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
