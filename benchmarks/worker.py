"""One process that times whole public calls: questions in JSON, one a line, and an answer to each.

    {"case": "fit", "n": 100000, "d": 5, "more": {"loss": "logistic", "method": "rb"}, "seconds": 1.0}

answers ``seconds`` (the best round), ``kernel`` (the share of that round inside compiled functions of zil), ``memory``
(peak memory of the first full call beyond what was there before, in multiples of the data; null where the system does
not tell) or ``error``.

Design: a process of its own, so that peak memory is that of the call and two versions of zil can be asked in turn.  A
small call goes first: imports and tables that are made once are nobody's time.  Compiled functions are timed from
outside, by wrapping them where modules look them up; a call inside a call counts once.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import sys
import time
import types
import warnings
from pathlib import Path
from typing import Any

SMALL = 2_000


class KernelClock:
    """Seconds inside the compiled functions of ``zil._core`` since the last reset (of one thread)."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth = 0
        import zil._core

        for info in pkgutil.iter_modules(zil._core.__path__):
            module = importlib.import_module(f"zil._core.{info.name}")
            for name, function in vars(module).copy().items():
                compiled = type(function).__name__ == "cython_function_or_method"
                if compiled or isinstance(function, types.BuiltinFunctionType):
                    setattr(module, name, self._timed(function))

    def _timed(self, function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            if self._depth:
                return function(*arguments, **named)
            self._depth += 1
            start = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self.seconds += time.perf_counter() - start
                self._depth -= 1

        return call


def status_kb(field: str) -> int | None:
    """A field of /proc/self/status in kB, or None where there is none."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(field + ":")), None)


def forget_peak() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def measure(question: dict[str, Any], clock: KernelClock) -> dict[str, Any]:
    import calls

    make, n, d, more = calls.CASES[question["case"]], question["n"], question["d"], question.get("more", {})
    make(min(n, SMALL), d, **more)[0]()
    call, size = make(n, d, **more)
    known = forget_peak()
    before = status_kb("VmRSS")
    best, share, spent, rounds = float("inf"), 0.0, 0.0, 0
    memory = None
    while rounds < question.get("least", 1) or spent < question.get("seconds", 0.5):
        clock.seconds = 0.0
        start = time.perf_counter()
        result = call()
        took = time.perf_counter() - start
        if took < best:
            best, share = took, clock.seconds / took
        del result
        spent += took
        rounds += 1
        peak = status_kb("VmHWM")
        if rounds == 1 and known and before is not None and peak is not None:
            memory = 1024.0 * (peak - before) / size
    return {"seconds": best, "kernel": share, "memory": memory, "rounds": rounds}


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    warnings.simplefilter("ignore")
    clock = KernelClock()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        try:
            answer = measure(json.loads(line), clock)
        except Exception as error:  # any version may refuse any case
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
