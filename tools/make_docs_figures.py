"""Draw the pictures of the guide into ``docs/figures`` (needs matplotlib): ``python tools/make_docs_figures.py``.

* ``figure1.png``: figure 1 of the paper, panels (a) and (b), from exact curves instead of simulation
* ``epsilon.png``: what one epsilon says and what it leaves out, for ``docs/epsilon.md``
"""

from __future__ import annotations

import pathlib
import tempfile

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

import zil
from zil.interfaces.figure1 import figure1
from zil.interfaces.plotting import compare

FOLDER = pathlib.Path(__file__).parents[1] / "docs" / "figures"


def epsilon_picture(path: pathlib.Path) -> None:
    f = zil.tradeoff(4, 0.5, 0.05)
    _, ax = pyplot.subplots(figsize=(5.6, 5.6), layout="constrained")
    compare({"four columns, c = 0.5, zero_prob = 0.05": f}, epsilons=[0.5, 1.0, 2.0], ax=ax)
    ax.plot([0.01], [f(0.01)], "o", color="black", markersize=5, label="_")
    line = {"arrowstyle": "-", "color": "0.3", "relpos": (0.0, 0.5)}
    ax.annotate("starts at 1 - zero_prob", (0.0, f(0.0)), (0.36, 0.76), arrowprops=line)
    ax.annotate(f"1 % false alarms, {100 * f(0.01):.0f} % missed", (0.01, f(0.01)), (0.46, 0.62), arrowprops=line)
    ax.legend(loc="upper right")
    ax.figure.savefig(path, dpi=110)
    pyplot.close(ax.figure)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        figure1(scratch)
        (FOLDER / "figure1.png").write_bytes((pathlib.Path(scratch) / "figure1.png").read_bytes())
    epsilon_picture(FOLDER / "epsilon.png")


if __name__ == "__main__":
    main()
