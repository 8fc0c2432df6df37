"""Two versions of zil on this machine, whole public calls, asked in turn: base, new, base, new, ...

    python benchmarks/compare.py --base SITE [--rounds 5] [NAME ...]

``SITE`` is a folder with the other version installed (``tools/do.py bench --compare REVISION`` makes one).  Each
line: the best time of both, and the ratio new/base, the median over the pairs with the smallest and the largest one:
a pair meets the same state of the machine, so its ratio holds where single times do not.  Below 1 is faster.
NAME picks the cases whose names contain it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from ask import Worker


def compared() -> tuple[tuple[str, str, int, int, dict[str, str]], ...]:
    from calls import COMPARED

    return COMPARED


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", required=True, help="folder with the other version installed")
    parser.add_argument("--rounds", type=int, default=5, help="pairs for each case")
    parser.add_argument("names", nargs="*", help="only the cases whose names contain one of these")
    asked = parser.parse_args()
    picked = [row for row in compared() if not asked.names or any(part in row[0] for part in asked.names)]
    if not picked:
        parser.error(f"no case is named like {', '.join(asked.names)}")
    width = max(len(row[0]) for row in picked)
    print(f"{'whole call':{width}}  {'base':>10}  {'new':>10}  new/base (pairs: least, most)", flush=True)
    with Worker(asked.base) as base, Worker() as new:
        for name, case, n, d, more in picked:
            pairs = []
            problem = ""
            for _ in range(asked.rounds):
                answers = [worker(case, n, d, seconds=0.1, **more) for worker in (base, new)]
                named = zip(("base", "new"), answers, strict=True)
                wrong = [f"{who}: {answer['error']}" for who, answer in named if "error" in answer]
                if wrong:
                    problem = "; ".join(wrong)
                    break
                pairs.append((answers[0]["seconds"], answers[1]["seconds"]))
            if problem:
                print(f"{name:{width}}  not compared ({problem})", flush=True)
                continue
            ratios = sorted(b / a for a, b in pairs)
            times = [f"{1e3 * min(column):8.3f} ms" for column in zip(*pairs, strict=True)]
            ratio = f"{statistics.median(ratios):6.3f} ({ratios[0]:.2f}, {ratios[-1]:.2f})"
            print(f"{name:{width}}  {times[0]:>10}  {times[1]:>10}  {ratio}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
