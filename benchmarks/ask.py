"""A worker process (``worker.py``) to put questions to; one CPU thread in every library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR", "RAYON", "VECLIB")
} | {"POLARS_MAX_THREADS": "1"}


class Worker:
    """Use as a context; ``site`` is a folder with another installed version of zil."""

    def __init__(self, site: str | None = None) -> None:
        environment = {**os.environ, **ONE_THREAD, "PYTHONSAFEPATH": "1"}
        environment.pop("PYTHONPATH", None)
        if site is not None:
            environment["PYTHONPATH"] = site
        command = [sys.executable, str(Path(__file__).with_name("worker.py"))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            return {"error": f"the worker ended with code {self._process.wait()}"}
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __call__(
        self, case: str, n: int, d: int, *, seconds: float = 0.5, least: int = 1, **more: str
    ) -> dict[str, Any]:
        assert self._process.stdin is not None
        question = {"case": case, "n": n, "d": d, "more": more, "seconds": seconds, "least": least}
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"error": "the worker has ended"}
        return self._read()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def ask(case: str, n: int, d: int, **how: Any) -> dict[str, Any]:
    """One question to a fresh process: its memory is that of the call."""
    with Worker() as worker:
        return worker(case, n, d, **how)
