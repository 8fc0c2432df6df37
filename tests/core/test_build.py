"""zil.build_info names the build and the machine."""

import importlib.resources
import platform
import re
from pathlib import Path

import numpy as np

import zil

ROOT = Path(__file__).resolve().parents[2]


def test_build_info():
    info = zil.build_info()
    assert info["buildtype"] in ("release", "debug", "debugoptimized", "plain", "minsize")
    assert info["numpy"] == np.__version__
    assert int(info["numpy_build"].split(".")[0]) >= 2
    assert info["python"] == platform.python_version()
    assert "base" in info["isa"]
    assert info["isa_used"] in info["isa"]
    assert info["compiler"].split()[1][0].isdigit()


def test_every_file_of_the_package_is_installed():
    """The list in zil/meson.build, found through the installed package wherever that lies (public case C44)."""
    listed = re.search(r"package_files = \[(.*?)\]", (ROOT / "zil" / "meson.build").read_text(), re.DOTALL)[1]
    names = re.findall(r"'([^']+)'", listed)
    assert "py.typed" in names
    package = importlib.resources.files("zil")
    assert [name for name in names if not package.joinpath(name).is_file()] == []
