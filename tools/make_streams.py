"""Write tests/data/streams.json, the frozen stream words, from the reference in plain Python.

    python tools/make_streams.py

The stream is part of what a seed promises (src/c/streams.h): run this only when the contract
changes on purpose, and say so in the change log.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import reference  # noqa: E402  (the tests folder is no package)

CASES = [
    ([0, 0, 0, 0], 1, 0),
    ([2**64 - 1] * 4, 2, 1),
    ([1, 2, 3, 4], 1, 12_345),
    ([0x0123456789ABCDEF, 0xFEDCBA9876543210, 0xA5A5A5A5A5A5A5A5, 7], 3, 2**40 + 5),
]


def main():
    rows = []
    for key, domain, chunk in CASES:
        words = reference.stream_words(key, domain, chunk, 1024)
        rows.append(
            {
                "key": [f"{k:016x}" for k in key],
                "domain": domain,
                "chunk": chunk,
                "first": [f"{w:016x}" for w in words[:16]],
                "words_1016_1023": [f"{w:016x}" for w in words[1016:]],
            }
        )
    source = "tools/make_streams.py: ChaCha20 (RFC 8439) and xoshiro256++ in plain Python"
    text = json.dumps({"source": source, "streams": rows}, indent=1)
    (ROOT / "tests" / "data" / "streams.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
