"""The layer check finds each kind of fault, and none in a clean tree."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("check_layers", ROOT / "tools" / "check_layers.py")
check_layers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(check_layers)

CLEAN = {
    "pyproject.toml": "",
    "zil/__init__.py": "from zil.privacy.curve import f\n",
    "zil/_validate.py": "import math\n",
    "zil/_core/k.pyi": "",
    "zil/privacy/__init__.py": "",
    "zil/privacy/curve.py": "from zil._core import k\nfrom zil._validate import x\n",
    "zil/release/__init__.py": "",
    "zil/release/mechanism.py": "from zil.privacy.curve import f\n",
    "zil/estimation/__init__.py": "",
    "zil/estimation/sources.py": "from zil.privacy.curve import f\n",
    "zil/estimation/objective/__init__.py": "",
    "zil/estimation/objective/rows.py": "from zil.estimation.sources import read\n",
    "zil/interfaces/cli.py": "import zil\n",
    "src/k.pyx": 'cimport numpy\nfrom libc.math cimport exp\ncdef extern from "k.h" nogil:\n    pass\n',
    "src/c/k.h": "#include <math.h>\n",
    "src/c/k.c": '#include "k.h"\n',
    "src/meson.build": "plain_sources = files(\n  'c/k.c',\n)\nisa_sources = files(\n)\npyx_table = [\n  'k',\n]\n",
}


def faults(tmp_path, **changes):
    tree = CLEAN | changes
    package = sorted(name.removeprefix("zil/") for name in tree if name.startswith("zil/"))
    tree.setdefault("zil/meson.build", "package_files = [\n" + "".join(f"  '{name}',\n" for name in package) + "]\n")
    for name, text in tree.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return check_layers.faults(tmp_path)


def test_a_clean_tree_has_no_fault(tmp_path):
    assert faults(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("setup.py", "", "agreed top-level"),
        ("zil/privacy/up.py", "from zil.release.mechanism import m\n", "privacy must not import release"),
        ("zil/privacy/lazy.py", "def f():\n    import zil.release.mechanism\n", "privacy must not import release"),
        ("zil/_low.py", "from zil.privacy import curve\n", "base must not import privacy"),
        ("zil/release/x.py", "import zil\n", "imports the package itself"),
        ("zil/release/x.py", "from . import mechanism\n", "relative import"),
        ("zil/other/x.py", "", "belongs to no layer"),
        ("zil/estimation/objective/x.py", "from zil.estimation.fit import fit\n", "objective must not import fit"),
        ("zil/estimation/sources.py", "import zil.estimation.objective.rows\n", "sources must not import objective"),
        ("zil/estimation/attic.py", "", "attic has no floor"),
        ("src/k.pyx", "from zil._validate import x\n", "imports nothing of zil"),
        ("src/k.pyx", "import scipy\n", "knows only"),
        ("src/k.pyx", 'cdef extern from "other.h":\n    pass\n', "not in src/c"),
        ("src/c/k.h", "#include <Python.h>\n", "only the C standard library"),
        ("src/c/k.h", '#include "k.c"\n', "source file"),
        ("src/c/k.h", '#include "k.h"\n', "circular"),
        ("src/c/lost.c", "", "lost.c is not listed"),
        ("src/lost.pyx", "", "no stub"),
        ("zil/_core/lost.pyi", "", "stub of nothing"),
        ("zil/meson.build", "package_files = [\n  'gone.py',\n]\n", "gone.py, which does not exist"),
        ("zil/meson.build", "package_files = [\n]\n", "_validate.py is not listed"),
    ],
)
def test_each_fault_is_found(tmp_path, path, text, message):
    assert any(message in fault for fault in faults(tmp_path, **{path: text}))


def test_circular_import_is_found(tmp_path):
    found = faults(
        tmp_path,
        **{
            "zil/privacy/a.py": "from zil.privacy.b import x\n",
            "zil/privacy/b.py": "def f():\n    from zil.privacy.a import y\n",
        },
    )
    assert any("circular imports" in fault for fault in found)
