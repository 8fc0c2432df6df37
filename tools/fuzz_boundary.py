"""Coverage-guided fuzzing of the Python boundary (needs atheris).

    python tools/fuzz_boundary.py -max_total_time=600 -len_control=0 -max_len=512   # libFuzzer's options

Bytes become arguments and tables of every kind (tests/attacks/boundary.py); a crash, an exception that is
not documented, a warning, a cell of the table in a message, a value off the lattice or a changed
input ends the run.
"""

import sys
import warnings
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

with atheris.instrument_imports(include=["zil"]):
    import zil

    assert zil

from attacks import boundary

OUTCOMES: dict[str, int] = {}


class Bytes:
    """Choices made by the fuzzer."""

    def __init__(self, data: bytes) -> None:
        self.provider = atheris.FuzzedDataProvider(data)

    def integer(self, low: int, high: int) -> int:
        return self.provider.ConsumeIntInRange(low, high)

    def number(self) -> float:
        return self.provider.ConsumeFloatInRange(-1e3, 1e3)

    def choice(self, options):
        return options[self.integer(0, len(options) - 1)]


def target(data: bytes) -> None:
    outcome = boundary.attempt(Bytes(data))
    OUTCOMES[outcome] = OUTCOMES.get(outcome, 0) + 1
    if sum(OUTCOMES.values()) % 20_000 == 0:
        print("outcomes", OUTCOMES, flush=True)


def main() -> None:
    warnings.simplefilter("error")
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
