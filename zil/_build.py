"""What this installation is made of; the first thing to put into a bug report."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from zil._core import probe

_LEVELS = ("base", "avx2", "avx512")


def build_info() -> dict[str, Any]:
    """Facts about the installed build and this machine.

    Returns
    -------
    dict
        ``version``; ``compiler`` and ``buildtype`` of the kernels; ``isa``, the instruction sets they
        were compiled for; ``isa_used``, the one chosen here (results do not depend on it);
        ``numpy_build`` and ``numpy``, the numpy headers compiled against and the numpy now imported;
        ``python`` and ``platform``.

    Examples
    --------
    >>> import zil
    >>> zil.build_info()["buildtype"]
    'release'
    """
    facts = probe.build_facts()
    return {
        "version": facts["version"],
        "compiler": facts["compiler"],
        "buildtype": facts["buildtype"],
        "isa": facts["isa"],
        "isa_used": _LEVELS[probe.best_isa()],
        "numpy_build": facts["numpy"],
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
    }
