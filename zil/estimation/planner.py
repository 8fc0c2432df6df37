"""What a privacy budget buys before anything is published: predicted standard errors at each zero_prob.

For each point of a grid the noise is calibrated to the same budget, and the sandwich of the best method is predicted
from a pilot table: the joint scores of all truncated versions are evaluated at the pilot's own estimate, on rows
without noise (stratum 0) and on the same rows with noise (stratum 1).  The zero draw is integrated out, moments
are ``z E0 + (1 - z) E1``, and the noise has the same W and N at every point, so the frontier is smooth in
zero_prob (beyond the paper).  Beside it stand what suppression and independent Laplace noise of the same budget
would give.

Design: only what is public of the estimation is used (`fit` for the pilot, `CorrectedLoss.scores` for the rest).  The
frontier is shown and never minimised: the smallest error is often at its end, where a share delta of all rows is
published as it is, so the best point is not a question of accuracy alone.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zil import _tables, _validate
from zil._validate import FloatArray
from zil.estimation import losses as loss_module
from zil.estimation.losses.base import Loss
from zil.estimation.pilot import Pilot
from zil.estimation.prediction import Draw, alone, combined, laplace_scores, moved, predict
from zil.privacy import risk as formulas
from zil.release import schema, words
from zil.release.calibration import calibrate

SHARES = (0.05, 0.2, 0.5, 0.8, 0.97)  # of delta: the grid of zero_prob
FINE, WEAK = 0.1, 0.25  # concentration kappa/sqrt(n): above, intervals need care; above, there is nothing to be had
TRUST = ("fine", "weak", "hopeless")

LOOKS = {
    "zil": ("o-", "#1b5e9c", "ZIL"),
    "sl": ("D", "#1b5e9c", "no row unchanged (SL)"),
    "laplace": ("s", "#a3201d", "independent Laplace"),
    "suppress": ("^", "#1b6e3c", "blanking rows"),
}


@dataclass(frozen=True)
class PrivacyPlan:
    """What `plan` predicts.

    Attributes
    ----------
    frontier : list of dict
        One entry per way to spend the budget: ``kind`` ("zil", "sl", "laplace", "suppress"), ``zero_prob``, ``scale``
        by
        column (a standard deviation), ``unchanged_rows``, ``delta_attribute`` and ``delta_record`` at the epsilon
        of the budget, ``se`` by parameter, ``factor`` (largest ratio to the standard errors of the original
        table, intercept apart), ``trust`` and ``n_needed``.
    estimate : dict
        Parameters of the pilot, for which the errors are predicted.
    n : int or None
        Rows for which ``se`` is predicted; None: each entry for the rows that it needs.
    synthetic : bool
        True if there was no pilot: uniform features, an index of standard deviation 1.
    """

    frontier: list[dict[str, Any]]
    estimate: dict[str, float]
    n: int | None
    budget: dict[str, Any]
    synthetic: bool
    notes: list[str] = field(default_factory=list)

    @property
    def n_needed(self) -> list[int | None]:
        """Rows needed for ``target_se`` by entry of the frontier; None without a target."""
        return [entry["n_needed"] for entry in self.frontier]

    def to_dict(self) -> dict[str, Any]:
        """All of it as numbers, texts, lists and dictionaries."""
        return {
            "budget": dict(self.budget),
            "n": self.n,
            "synthetic": self.synthetic,
            "estimate": dict(self.estimate),
            "frontier": [dict(entry) for entry in self.frontier],
            "notes": list(self.notes),
        }

    def table(self) -> str:
        """The frontier as text."""
        names = list(self.estimate)
        head = ["way", "zero_prob", "rows unchanged", "delta of a row", *(words.shown(name) for name in names), "trust"]
        if any(n is not None for n in self.n_needed):
            head.append("rows needed")
        lines = [head]
        for entry in self.frontier:
            rows = "" if entry["unchanged_rows"] is None else words.count(entry["unchanged_rows"])
            cells = [entry["kind"], f"{entry['zero_prob']:.4g}", rows, f"{entry['delta_record']:.3g}"]
            cells += [f"{entry['se'][name]:.3g}" for name in names] + [entry["trust"]]
            if len(head) > len(cells):
                cells.append("" if entry["n_needed"] is None else f"{entry['n_needed']:,}")
            lines.append(cells)
        wide = [max(len(line[k]) for line in lines) for k in range(len(head))]
        return "\n".join(
            "  ".join([line[0].ljust(wide[0]), *(c.rjust(w) for c, w in zip(line[1:], wide[1:], strict=True))])
            for line in lines
        )

    def summary(self) -> str:
        """The frontier in words, and the table."""
        target = self.budget
        rows = "" if self.n is None else f" on {self.n:,} rows"
        level = "one entry" if target["unit"] == "attribute" else "a whole row"
        lines = [
            f"Predicted standard errors of {target['loss']} fits{rows} at epsilon = {target['epsilon']:g}, delta = "
            f"{target['delta']:g} for {level}.",
            *self.notes,
            "",
            self.table(),
            "",
        ]
        for entry in self.frontier:
            lines.append(_in_words(entry))
        lines.append(
            "No point is the best one: the smallest errors may be those that publish a share delta of the rows as "
            "they are. "
            "Decide first how many rows that may be, then read off the errors."
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"

    def plot(self, ax: Any = None) -> Any:
        """Standard errors, as multiples of those of the original table, against the share of rows unchanged.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        if ax is None:
            try:
                from matplotlib.figure import Figure
            except ImportError:
                raise ImportError("plots need matplotlib: pip install 'zil[plot]'") from None
            ax = Figure(figsize=(6.4, 4.0), layout="constrained").subplots()
        of_kind: dict[str, list[tuple[float, float]]] = {}
        for entry in self.frontier:
            if math.isfinite(entry["factor"]):
                of_kind.setdefault(entry["kind"], []).append((100.0 * entry["zero_prob"], entry["factor"]))
        for kind, points in of_kind.items():
            look, colour, name = LOOKS[kind]
            ax.plot(*zip(*points, strict=True), look, color=colour, label=name)
        ax.set_yscale("log")
        low, high = (f(factor for points in of_kind.values() for _, factor in points) for f in (min, max))
        ax.set_ylim(0.8 * low, 1.25 * high)
        marks = (1, 1.5, 2, 3, 4, 5, 6, 8) if high / low < 8.0 else (1, 2, 5)
        every = [m * 10**k for k in range(7) for m in marks]
        ticks = [t for t in every if 0.8 * low <= t <= 1.25 * high]
        ax.set_yticks(ticks, [f"{t:g}" for t in ticks])
        ax.minorticks_off()
        ax.set_xlabel("rows published as they are, %")
        ax.set_ylabel("standard error / that of the original table")
        ax.legend(frameon=False)
        return ax


def _in_words(entry: Mapping[str, Any]) -> str:
    """One entry of the frontier in a sentence."""
    kind, rows = entry["kind"], entry["unchanged_rows"]
    share = words.percent(entry["zero_prob"])
    count = share if rows is None else f"{words.count(rows)} rows ({share})"
    cost = f"standard errors up to {entry['factor']:.3g} times those of the original table"
    text = {
        "zil": f"ZIL with zero_prob {entry['zero_prob']:.4g}: {count} published as they are, {cost}",
        "sl": f"ZIL with zero_prob 0: no row published as it is, {cost}",
        "laplace": f"Independent Laplace noise: no row published as it is, {cost}",
        "suppress": f"Blanking all but {share} of rows: {count} published as they are and known to be, {cost}",
    }[kind]
    trust = {"fine": "", "weak": "; intervals need care at this size", "hopeless": "; hopeless at this size"}[
        entry["trust"]
    ]
    needed = "" if entry["n_needed"] is None else f"; the target needs {entry['n_needed']:,} rows"
    return f"- {text}{trust}{needed}."


def plan(
    bounds: Any,
    *,
    epsilon: float,
    delta: float,
    unit: str,
    loss: Loss | str,
    n: int | None = None,
    pilot: Any = None,
    y: Any = None,
    x: Sequence[Any] | None = None,
    target_se: Any = None,
    zero_probs: Sequence[float] | None = None,
    grain: Any = None,
    rng: Any = 0,
) -> PrivacyPlan:
    """Predict what a budget buys: standard errors at each zero_prob, and with simpler mechanisms.

    Parameters
    ----------
    bounds : dict or array-like of shape (d, 2)
        Public bounds of the columns to be noised, as for `calibrate`.
    epsilon, delta : float
        The budget; delta is the total.
    unit : {"attribute", "record"}
    loss : Loss or str
        What the analyst will fit, as for `fit`.
    n : int, optional
        Rows of the table to be published; default: those of the pilot, or what ``target_se`` needs.
    pilot : table, optional
        Some thousand rows with the columns of the fit, public, older or synthetic.  Without it features are
        uniform on their bounds and the index has standard deviation 1, which gives the order of magnitude and misses
        rare categories.
    y, x : column name, list of columns, optional
        As in `fit`; without a pilot a response that has no bounds is clean.
    target_se : float or dict by parameter, optional
        Standard errors wanted (a float: of every parameter but the intercept).
    zero_probs : sequence of float, optional
        The grid, each below delta; by default 0 (where the loss is smooth) and 5, 20, 50, 80, 97 % of delta.
    grain : optional
        As for `calibrate`.
    rng : None, int, SeedSequence, Generator or BitGenerator
        Noise of the prediction; the default gives the same answer every time.

    Returns
    -------
    PrivacyPlan

    Raises
    ------
    ValueError, TypeError
        An argument out of range, no rows to predict for, or a pilot on which the loss has no minimum.

    Notes
    -----
    ``SE = sqrt(diag(V^-1 A V^-1)/n)``, V of the pilot, A the residual variance of the scores after regression on the
    differences between versions.  ``trust`` is the concentration ``kappa/sqrt(n)``, kappa the largest standard
    deviation of the rows' curvature over the eigenvectors of V (v'Vv = 1): at most 0.1 fine, at most 0.25 weak.
    ``n_needed = max((sigma/target)^2, (kappa/0.1)^2)``.
    """
    kind = loss_module.resolve(loss)
    if kind.free or not hasattr(kind, "smooth"):
        raise ValueError("plan needs a loss of a linear index, by name or from zil.losses")
    names, pairs, _ = schema.read_bounds(bounds)
    unit = _validate.choice("unit", unit, ("attribute", "record"))
    delta = _validate.in_range("delta", delta, 0.0, 1.0, open_low=True, open_high=True)
    epsilon = _validate.in_range("epsilon", epsilon, 0.0, math.inf, open_high=True)
    if n is not None:
        n = _validate.integer("n", n, 2)
    generator = np.random.default_rng(rng)
    sketch = Pilot.of(kind, names, pairs, pilot, y, x, generator)
    if n is None and target_se is None:
        if pilot is None:
            raise ValueError("give n, the rows to be published, or target_se, or a pilot as large as the table")
        n = _tables.n_rows(pilot)
    targets = _targets(target_se, sketch.names)
    if zero_probs is None:
        grid = [share * delta for share in SHARES]
        if kind.smooth:
            grid.insert(0, 0.0)
    else:
        grid = [_validate.in_range("zero_probs", z, 0.0, delta, open_high=True) for z in zero_probs]
        if not kind.smooth and 0.0 in grid:
            raise ValueError(f"zero_prob = 0 needs a smooth loss, {kind.name} has kinks")
    draw = Draw.of(sketch, generator)
    more = {} if grain is None else {"grain": grain}
    points: list[dict[str, Any]] = []
    for z in grid:
        mechanism = calibrate(bounds, epsilon=epsilon, delta=delta, zero_prob=z, unit=unit, **more)
        variance, spread = predict(sketch, draw, mechanism)
        points.append(
            {
                "kind": "zil" if z > 0.0 else "sl",
                "zero_prob": mechanism.zero_prob,
                "scale": dict(zip(names, mechanism.scale.tolist(), strict=True)),
                "delta_attribute": float(mechanism.delta(epsilon, "attribute")),
                "delta_record": float(mechanism.delta(epsilon, "record")),
                "variance": variance,
                "spread": spread,
            }
        )
    points += _others(sketch, draw, names, pairs, epsilon, delta, unit)
    clean = np.sqrt(np.diag(sketch.clean()))
    frontier = [_entry(point, sketch, clean, n, targets) for point in points]
    made_up = "No pilot: features spread evenly, an index of standard deviation 1; the order of magnitude."
    return PrivacyPlan(
        frontier=frontier,
        estimate=dict(zip(sketch.names, sketch.theta_back().tolist(), strict=True)),
        n=n,
        budget={"epsilon": epsilon, "delta": delta, "unit": unit, "loss": kind.name},
        synthetic=pilot is None,
        notes=[made_up] if pilot is None else [],
    )


def _targets(target: Any, names: Sequence[str]) -> dict[str, float]:
    if target is None:
        return {}
    if isinstance(target, Mapping):
        unknown = [name for name in target if name not in names]
        if unknown:
            raise ValueError(f"target_se names {unknown[0]!r}, there are {', '.join(names)}")
        return {name: _validate.positive(f"target_se of {name!r}", value) for name, value in target.items()}
    value = _validate.positive("target_se", target)
    return {name: value for name in names if name != "Intercept" or len(names) == 1}


def _entry(
    point: dict[str, Any], sketch: Pilot, clean: FloatArray, n: int | None, targets: Mapping[str, float]
) -> dict[str, Any]:
    """A point as the user sees it, at n rows or at the rows that its target needs."""
    sigma = np.sqrt(np.diag(point.pop("variance")))
    spread = point.pop("spread")
    needed = None
    if targets:
        wanted = max((sigma[sketch.names.index(name)] / value) ** 2 for name, value in targets.items())
        rows = max(wanted, (spread / FINE) ** 2)
        needed = math.ceil(rows) if math.isfinite(rows) else None
    size = n if n is not None else needed
    errors = sigma / math.sqrt(size) if size else np.full(len(sigma), math.inf)
    slopes = [k for k, name in enumerate(sketch.names) if name != "Intercept"] or [0]
    concentration = spread / math.sqrt(size) if size else math.inf
    trust = TRUST[0] if concentration <= FINE else TRUST[1] if concentration <= WEAK else TRUST[2]
    if (errors[slopes] > np.abs(sketch.theta[slopes])).all():
        trust = TRUST[2]
    rows = None if size is None else size * point["zero_prob"]
    return {
        **point,
        "unchanged_rows": rows,
        "se": dict(zip(sketch.names, errors.tolist(), strict=True)),
        "factor": float((sigma / clean)[slopes].max()),
        "trust": trust,
        "n_needed": needed,
    }


def _others(
    sketch: Pilot,
    draw: Draw,
    names: Sequence[Any],
    pairs: FloatArray,
    epsilon: float,
    delta: float,
    unit: str,
) -> list[dict[str, Any]]:
    """Suppression, and where its correction is known independent Laplace noise, at the same budget."""
    whole = sketch.scores(sketch.table, None, "naive")
    kept = (delta, alone(lambda theta: whole(theta) / delta))
    blank = (1.0 - delta, alone(lambda theta: 0.0 * whole(theta)))
    variance, spread = combined(sketch, [kept, blank])
    points = [
        {
            "kind": "suppress",
            "zero_prob": delta,
            "scale": {},
            "delta_attribute": delta,
            "delta_record": delta,
            "variance": variance,
            "spread": spread,
        }
    ]
    if not isinstance(sketch.loss, (loss_module.Squared, loss_module.Logistic)) or len(sketch.centre) in sketch.noised:
        return points
    dim = len(names)
    q = formulas.laplace_loss(1 if unit == "attribute" else dim, epsilon, delta)
    scale = math.sqrt(2.0) * (pairs[:, 1] - pairs[:, 0]) / q
    own = scale[sketch.order]
    rows = moved(sketch, sketch.table, own * draw.laplace)
    every = np.zeros(len(sketch.centre) + 1)
    every[sketch.noised] = own
    variance, spread = combined(sketch, [(1.0, alone(laplace_scores(sketch, rows, every[:-1])))])
    points.append(
        {
            "kind": "laplace",
            "zero_prob": 0.0,
            "scale": dict(zip(names, scale.tolist(), strict=True)),
            "delta_attribute": float(formulas.independent_laplace(1, q).delta(epsilon)),
            "delta_record": float(formulas.independent_laplace(dim, q).delta(epsilon)),
            "variance": variance,
            "spread": spread,
        }
    )
    return points
