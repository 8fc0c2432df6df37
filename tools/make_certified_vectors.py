"""Print ``tests/data/certified_vectors.json``: known answers of the tick sampler (needs mpmath).

Made without any of zil: the words come from the block function as RFC 8439 writes it, the noise from
mpmath with 256 bits of every uniform (``tests/reference.py``).  They freeze the stream "ZILT": a
change is a new version of the format, with a new tag.

Run: ``python tools/make_certified_vectors.py > tests/data/certified_vectors.json``.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import reference

CASES = [
    # name, scales in ticks, zero probability, first row, rows
    ("one column", [2.0**20], 0.25, 0, 12),
    ("two columns, coarse", [8.0, 0.75], 0.5, 5, 12),
    ("three columns, slow rows", [2.0**44, 2.0**20, 2.0**43], 0.125, 0, 24),
    ("six columns", [2.0**20, 2.0**20, 1234.5, 2.0**30, 0.0, 1e6], 0.05, 1000, 12),
    ("seven columns, far row", [3.0, 5.0, 7.0, 11.0, 2.0**40, 2.0**40, 2.0**40], 0.0, 2**40 + 3, 6),
]


def main() -> None:
    cases = []
    for name, scales, zero_prob, first, n in CASES:
        key = hashlib.sha256(name.encode()).digest()
        threshold = int(zero_prob * 2**64)
        ticks = [reference.noise_ticks(key, first + i, scales, threshold) for i in range(n)]
        cases.append(
            {
                "name": name,
                "key": key.hex(),
                "scale_over_tick": scales,
                "zero_prob": zero_prob,
                "first_row": first,
                "n": n,
                "ticks": ticks,
            }
        )
    print(json.dumps({"made_by": "tools/make_certified_vectors.py", "stream": "ZILT", "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
