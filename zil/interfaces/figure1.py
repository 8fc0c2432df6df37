"""Figure 1 of the paper: trade-off curves of the noise, exact where the paper simulates.

(a) zero_prob = .05, c = .5: two columns, four columns, the limit, and the (epsilon, delta) polylines that support
the limit.  (b) the limit at c = .2, .5, .8, 1 against the (.8, .17) polyline.
"""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from zil._validate import FloatArray
from zil.privacy.tradeoff import eps_delta_tradeoff, tradeoff

ZERO_PROB = 0.05
EPSILONS = (0.5, 0.7, 0.9, 1.2, 1.6, 2.1, 2.8)
SHIFTS = (0.2, 0.5, 0.8, 1.0)


@dataclass(frozen=True)
class Figure1:
    """Curves by name on the grid ``alpha``, panel by panel, and the supporting (epsilon, delta) pairs of panel (a)."""

    alpha: FloatArray
    panels: tuple[dict[str, FloatArray], dict[str, FloatArray]]
    pairs: list[tuple[float, float]]

    def to_csv(self) -> str:
        """CSV text: panel, curve, alpha, beta."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("panel", "curve", "alpha", "beta"))
        for panel, curves in zip("ab", self.panels, strict=True):
            for name, values in curves.items():
                writer.writerows((panel, name, f"{a:.6g}", f"{b:.6g}") for a, b in zip(self.alpha, values, strict=True))
        return out.getvalue()

    def to_markdown(self) -> str:
        """A few points of every curve, and the pairs."""
        shown = [0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9]
        lines = ["## Figure 1: trade-off curves, zero_prob = 0.05", ""]
        for panel, curves in zip("ab", self.panels, strict=True):
            lines += [f"**Panel ({panel}): smallest type II error at each type I error**", ""]
            lines.append("| curve | " + " | ".join(f"{a:g}" for a in shown) + " |")
            lines.append("| --- |" + " --- |" * len(shown))
            for name, values in curves.items():
                cells = (f"{np.interp(a, self.alpha, values):.4f}" for a in shown)
                lines.append(f"| {name} | " + " | ".join(cells) + " |")
            lines.append("")
        pairs = ", ".join(f"({epsilon:g}, {delta:.4f})" for epsilon, delta in self.pairs)
        lines.append(f"(epsilon, delta) pairs that support the limit at c = 0.5: {pairs}.")
        return "\n".join(lines) + "\n"


def figure1(out: str | Path | None = None, points: int = 401) -> Figure1:
    """Compute figure 1.

    Parameters
    ----------
    out : path, optional
        Folder for ``figure1.csv``, ``figure1.md`` and, if matplotlib is installed, ``figure1.png``.
    points : int
        Points of the grid of type I errors.
    """
    alpha = np.linspace(0.0, 1.0, points)
    limit = tradeoff(math.inf, 0.5, ZERO_PROB)
    pairs = [(epsilon, float(limit.delta(epsilon))) for epsilon in EPSILONS]
    first = {
        "d=2": tradeoff(2, 0.5, ZERO_PROB)(alpha),
        "d=4": tradeoff(4, 0.5, ZERO_PROB)(alpha),
        "d=inf": limit(alpha),
    }
    first |= {f"({epsilon:g}, {delta:.4f})": eps_delta_tradeoff(epsilon, delta)(alpha) for epsilon, delta in pairs}
    second = {f"c={c:g}": tradeoff(math.inf, c, ZERO_PROB)(alpha) for c in SHIFTS}
    second["(0.8, 0.17)"] = eps_delta_tradeoff(0.8, 0.17)(alpha)
    result = Figure1(alpha, (first, second), pairs)
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "figure1.csv").write_text(result.to_csv())
        (folder / "figure1.md").write_text(result.to_markdown())
        _draw(result, folder / "figure1.png")
    return result


def _draw(result: Figure1, path: Path) -> None:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(12, 6), layout="constrained")
    FigureCanvasAgg(figure)
    for axis, panel, curves in zip(figure.subplots(1, 2), "ab", result.panels, strict=True):
        for name, values in curves.items():
            polyline = name.startswith("(")
            axis.plot(
                result.alpha,
                values,
                color="black" if polyline else None,
                linewidth=0.7 if polyline else 1.8,
                label=None if polyline and panel == "a" else name,
            )
        axis.plot([0, 1], [1, 0], color="grey", linestyle=":")
        axis.set(xlabel="type I error", ylabel="type II error", title=f"({panel})")
        axis.legend()
    figure.savefig(path, dpi=100)
