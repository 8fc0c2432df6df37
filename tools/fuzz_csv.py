"""Differential fuzzing of the CSV path: broken files in, and no protected cell out.

    python tools/fuzz_csv.py --files 1000000 --processes 2        # about four minutes on two cores

Random tables are written in many dialects and damaged byte by byte (tests/attacks/csvfiles.py).  Each file goes
through zil's reader and writer and through two other parsers (a strict grammar of two regular expressions and
Python's `csv`; for one file in ten pyarrow); one file in 500 goes through the whole `Mechanism.release_file`, half of
those to Parquet.  A cell in the output or in a message, a file read that is not RFC 4180, or a record read differently
ends the run with exit code 1 and leaves the file.  The control is a reader that goes by the parity of quotation marks.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from attacks import csvfiles

OF_ONE_TABLE = 20
WHOLE = 500


def work(given: tuple[int, int, str | None]) -> Counter[str]:
    """``files`` files from one seed; a failure is kept under ``keep``."""
    seed, count, keep = given
    rng = np.random.default_rng(seed)
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            if number % OF_ONE_TABLE == 0:
                text, cells = csvfiles.table(rng)
                base = csvfiles.written(rng, text)
            data = base if number % OF_ONE_TABLE == 0 else csvfiles.mutated(rng, base)
            try:
                block = None if number % 3 else int(rng.integers(3, 40))  # the mark of UTF-8 has three bytes
                seen[csvfiles.check(data, cells, size=1 + number % 5, arrow=number % 10 == 0, block=block)] += 1
                if number % WHOLE == 7:  # a damaged one
                    ending = "parquet" if number % (2 * WHOLE) > WHOLE else "csv"
                    seen["whole, " + csvfiles.whole(data, cells, Path(folder), ending)] += 1
            except Exception as error:  # whatever it is, it is a finding
                seen[f"FAILED: {type(error).__name__}: {error}"] += 1
                if keep is not None:
                    Path(keep).mkdir(exist_ok=True)
                    (Path(keep) / f"{seed}-{number}.csv").write_bytes(data)
            seen["naive"] += csvfiles.naive_leaks(data, cells)
    return seen


def run(files: int, processes: int, seed: int | None = None, keep: str | None = None) -> Counter[str]:
    """Counts of what happened to ``files`` files; keys that begin with FAILED are findings."""
    portion = 10 * WHOLE
    entropy = np.random.SeedSequence(seed)
    shares = [
        (entropy.entropy % 2**64 + k, min(portion, files - k * portion), keep) for k in range(-(-files // portion))
    ]
    total: Counter[str] = Counter()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for seen in pool.imap_unordered(work, shares):
            total.update(seen)
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--keep", help="folder for the files that failed")
    given = parser.parse_args()
    start = time.perf_counter()
    seen = run(given.files, given.processes, given.seed, given.keep)
    for what, count in sorted(seen.items()):
        print(f"{count:9} {what}")
    print(f"{given.files} files, {time.perf_counter() - start:.0f} s")
    return int(any(what.startswith("FAILED") for what in seen))


if __name__ == "__main__":
    raise SystemExit(main())
