"""zil.build_info names the build and the machine."""

import platform

import numpy as np

import zil


def test_build_info():
    info = zil.build_info()
    assert info["buildtype"] in ("release", "debug", "debugoptimized", "plain", "minsize")
    assert info["numpy"] == np.__version__
    assert int(info["numpy_build"].split(".")[0]) >= 2
    assert info["python"] == platform.python_version()
    assert "base" in info["isa"]
    assert info["isa_used"] in info["isa"]
    assert info["compiler"].split()[1][0].isdigit()
