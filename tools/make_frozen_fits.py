"""Write tests/data/frozen_fits.json: estimates, errors and objectives of small seeded fits, by the code as it is.

    python3 tools/make_frozen_fits.py

The file says what the estimates were before the engine was rewritten; it is made anew only where an answer is changed
on purpose, and the commit that does so says which and why.  It needs zil installed.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import frozen_cases  # noqa: E402  (the cases lie beside the tests)


def main() -> None:
    found = {
        "source": "tools/make_frozen_fits.py; cases in tests/frozen_cases.py",
        "fits": {name: frozen_cases.answer(*case) for name, case in frozen_cases.fits().items()},
        "objectives": {name: frozen_cases.values(objective) for name, objective in frozen_cases.objectives().items()},
    }
    target = ROOT / "tests" / "data" / "frozen_fits.json"
    text = json.dumps(found, indent=1)
    target.write_text(text + "\n", encoding="utf-8")
    print(f"{len(found['fits'])} fits, {len(found['objectives'])} objectives: {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
