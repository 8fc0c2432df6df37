"""What the attacker can do with a release, in figures that need no table, and the verdict drawn from them.

Design: a `Risk` is computed from the metadata of a mechanism or a release and from nothing else.  So the label of a
published file gives the same figures as that of the mechanism, and all of it may be published.  The
bands of the verdict are zil's own; their three tiers are those of official statistics (public-use files,
scientific-use files under contract, secure access only).
"""

from __future__ import annotations

import functools
import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from zil import _validate
from zil._validate import FloatArray
from zil.privacy import risk as formulas
from zil.privacy.tradeoff import TradeOff
from zil.release import label, words

OPEN, CONTRACT, CLOSED = "open data", "under contract", "do not publish"
SURE_AT_MOST, GUESS_AT_MOST = 0.10, 0.75  # under contract
STRONG, CONVENTIONAL = 1.0, 10.0  # person-level epsilon at delta = 1/(10 n) of open data
ROW_WORDS = {"attribute": "an entry", "record": "a row"}


@dataclass(frozen=True)
class Risk:
    """What the best attacker gets out of a release, and what follows from it; nothing here needs the table.

    Attributes
    ----------
    unchanged_rows : float or None
        Expected number of rows that are published as they are; None if the number of rows is not known.
    unchanged_in_box : dict
        Probability that a row whose published values lie inside the bounds is an original one: at the ``corner``, the
        ``centre`` and on ``average``.
    best_guess, power_at_1_percent, certain_95 : float
        For one entry, two values as far apart as the bounds allow, equally likely: probability of
        deciding rightly, share of changes detected at 1 % false alarms, probability of becoming 95 % sure of the truth.
    interval_95 : dict
        By column, the expected width of a 95 % interval for one entry of a noised row, as a share of the
        column's width; the other entries of the row are unknown.
    record : dict
        ``best_guess``, ``power_at_1_percent``, ``certain_95`` for two whole rows.
    person : dict
        ``unchanged``: probability that some row of a person is published as it is; ``certain_95`` about an entry (or a
        row,
        as the target of the mechanism says) that all rows of the person share.
    groups : dict
        By name, the three figures of an entry for columns that change together.
    verdict : {"open data", "under contract", "do not publish"}
    reasons : list of str
    suppression : dict
        What blanking the protected columns of all rows but a random ``share`` would give: it
        is (0, share) private and multiplies standard errors by ``standard_error_factor``.
    interval_95_known : dict
        As ``interval_95`` for an attacker who knows the other original entries of the row; not part of `to_dict`.
    share_in_box : float
        Share of all published rows inside the bounds, values spread evenly; not part of `to_dict`.
    """

    unchanged_rows: float | None
    unchanged_in_box: dict[str, float]
    best_guess: float
    power_at_1_percent: float
    certain_95: float
    interval_95: dict[Any, float]
    record: dict[str, float]
    person: dict[str, float]
    groups: dict[str, dict[str, float]]
    verdict: str
    reasons: list[str]
    suppression: dict[str, float]
    interval_95_known: dict[Any, float] = field(default_factory=dict)
    share_in_box: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """All figures as numbers, texts, lists and dictionaries."""
        hidden = ("interval_95_known", "share_in_box")
        return {
            name: dict(value) if isinstance(value, dict) else list(value) if isinstance(value, list) else value
            for name, value in self.__dict__.items()
            if name not in hidden
        }

    def _rows(self) -> list[tuple[str, str]]:
        """Questions and answers."""
        pct = words.percent
        box = self.unchanged_in_box
        rows = [
            ("Rows published as they are", "?" if self.unchanged_rows is None else words.count(self.unchanged_rows)),
            ("Inside the bounds, rows that are original", f"{pct(box['average'])} on average"),
            ("... in mid-range, at the corners", f"{pct(box['centre'])}, {pct(box['corner'])}"),
        ]
        parts: list[tuple[str, Mapping[str, float]]] = [("One entry", self.__dict__), ("Whole row", self.record)]
        parts += [(words.shown(name), part) for name, part in self.groups.items()]
        for name, part in parts:
            rows.append((f"{name}: right guess between two values", pct(part["best_guess"])))
            rows.append((f"{name}: changes detected at 1 % false alarms", pct(part["power_at_1_percent"])))
            rows.append((f"{name}: attacker rightly 95 % sure", pct(part["certain_95"])))
        for name, share in self.interval_95.items():
            rows.append((f"95 % interval for {words.shown(name)}, noised rows", f"{pct(share)} of its range"))
        rows.append(("Persons with a row published as it is", pct(self.person["unchanged"])))
        rows.append(("Persons an attacker is 95 % sure of", pct(self.person["certain_95"])))
        share, factor = self.suppression["share"], self.suppression["standard_error_factor"]
        if share > 0.0:
            rows.append((f"Blanking all but {pct(share)} of rows", f"standard errors x {factor:.3g}"))
        return rows

    def summary(self) -> str:
        """Verdict, reasons and figures as text."""
        lines = [f"VERDICT: {self.verdict.upper()}", *(f"- {reason}" for reason in self.reasons), ""]
        rows = self._rows()
        wide = max(len(question) for question, _ in rows)
        return "\n".join([*lines, *(f"{question:{wide}}  {answer}" for question, answer in rows)])

    def _repr_html_(self) -> str:
        quote = html.escape
        reasons = "".join(f"<li>{quote(reason)}</li>" for reason in self.reasons)
        rows = "".join(f"<tr><td>{quote(q)}</td><td>{quote(a)}</td></tr>" for q, a in self._rows())
        return (
            f"<div><p><strong>Verdict: {quote(self.verdict)}</strong></p><ul>{reasons}</ul>"
            f"<table><tbody>{rows}</tbody></table></div>"
        )


def ratios(columns: Sequence[Mapping[str, Any]]) -> FloatArray:
    """``scale_j/width_j`` of the columns of a metadata, (d,); inf where the bounds are equal."""
    widths = np.array([c["upper"] - c["lower"] for c in columns])
    with np.errstate(divide="ignore"):
        result: FloatArray = np.array([c["scale"] for c in columns]) / widths
    return result


def figures(f: TradeOff) -> dict[str, float]:
    """The three figures of one curve."""
    return {
        "best_guess": formulas.best_guess(f),
        "power_at_1_percent": formulas.power(f),
        "certain_95": formulas.certain(f),
    }


def suppression_share(metadata: Mapping[str, Any]) -> float:
    """Share of rows that suppression may leave: the same delta, advantage or point as the target; else zero_prob.

    Suppression to a share has the curve ``1 - share - alpha``.
    """
    target = metadata["target"] or {}
    for name in ("delta", "advantage"):
        if name in target:
            return float(target[name])
    if "alpha" in target:
        return 1.0 - float(target["alpha"]) - float(target["beta"])
    return float(metadata["zero_prob"])


def recognised(metadata: Mapping[str, Any]) -> list[Any]:
    """Columns whose unchanged rows stand out: few public values, and no uniform draw within their cells."""
    return [c["name"] for c in metadata["columns"] if c.get("support") and not c.get("grain")]


def _group_ratio(name: str, columns: Sequence[Mapping[str, Any]], group: Any) -> float:
    """The largest shift of a group of columns."""
    values = None
    if isinstance(group, Mapping):
        if not {"columns"} <= set(group) <= {"columns", "values"}:
            raise ValueError(f"group {name!r} needs 'columns' and may have 'values', got {', '.join(map(str, group))}")
        values, group = group.get("values"), group["columns"]
    by_name = {c["name"]: c for c in columns}
    if isinstance(group, str) or not isinstance(group, Sequence) or len(group) == 0:
        raise TypeError(f"group {name!r} must be a list of columns")
    missing = [column for column in group if column not in by_name]
    if missing or len(set(group)) != len(group):
        what = f"names {missing[0]!r}, which is not noised" if missing else "names a column twice"
        raise ValueError(f"group {name!r} {what}")
    chosen = [by_name[column] for column in group]
    ratio = np.array([1.0 / tau for tau in ratios(chosen)])
    if values is None:
        return formulas.admissible_shift(ratio)
    low, high = (np.array([c[end] for c in chosen]) for end in ("lower", "upper"))
    if isinstance(values, str):
        _validate.choice(f"values of group {name!r}", values, ("dummies",))
        return formulas.admissible_shift(ratio, np.vstack([np.zeros(len(ratio)), np.eye(len(ratio))]))
    table = _validate.finite_array(f"values of group {name!r}", values, 2)
    if table.shape[1] != len(chosen) or len(table) < 2:
        raise ValueError(f"values of group {name!r} must have shape (m >= 2, {len(chosen)}), got {table.shape}")
    if ((table < low) | (table > high)).any():
        raise ValueError(f"values of group {name!r} leave the bounds of its columns")
    width = np.where(high > low, high - low, 1.0)
    return formulas.admissible_shift(ratio, (table - low) / width)


def _groups(metadata: Mapping[str, Any], groups: Any) -> dict[str, dict[str, float]]:
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        groups = {" + ".join(map(str, group)): group for group in groups}
    _, *earlier = spent(metadata)
    result = {}
    for name, group in groups.items():
        c = _group_ratio(str(name), metadata["columns"], group)
        # what earlier copies did to just these columns is not in the metadata: their whole row is the safe side
        parts = [(one["dim"], one["shift"]["record"], one["zero_prob"]) for one in earlier]
        result[str(name)] = figures(_curve_of(((len(metadata["columns"]), c, metadata["zero_prob"]), *parts), 1))
    return result


@functools.lru_cache(maxsize=64)
def _curve_of(parts: tuple[tuple[int, float, float], ...], rows: int) -> TradeOff:
    """Releases with these (dim, shift, zero_prob), each of ``rows`` rows; kept, because a label asks more than once."""
    return functools.reduce(lambda f, g: f.compose(g), (label.curve(*part) for part in parts)).compose(rows)


def spent(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Dimension, zero_prob and shifts of this release and, after it, of the earlier ones of the same rows."""
    own = {"dim": len(metadata["columns"]), "zero_prob": metadata["zero_prob"], "shift": metadata["shift"]}
    if "repeat" not in metadata:
        return [own]
    others = list(metadata["repeat"].get("mechanisms") or [own] * metadata["repeat"]["releases_of_these_rows"])
    if own in others:
        others.remove(own)
    return [own, *others]


def person_curve(metadata: Mapping[str, Any], unit: str, rows: int) -> TradeOff:
    """The exact curve of ``rows`` rows of one person; all copies together if rows were published before."""
    return _curve_of(tuple((one["dim"], one["shift"][unit], one["zero_prob"]) for one in spent(metadata)), rows)


def assess(
    metadata: Mapping[str, Any],
    *,
    rows_per_person: int = 1,
    groups: Any = None,
    prior: Any = "uniform",
    intervals: bool = True,
) -> Risk:
    """The risk of a release from its metadata; arguments as of `Mechanism.risk`."""
    k = _validate.integer("rows_per_person", rows_per_person, 1)
    columns, z, n = metadata["columns"], float(metadata["zero_prob"]), metadata["n_rows"]
    tau = ratios(columns)
    names = [c["name"] for c in columns]
    bounds = np.array([[c["lower"], c["upper"]] for c in columns])
    inside = formulas.unchanged_in_box(tau, z, formulas.priors(prior, names, bounds))
    share_in_box = inside.pop("share_in_box")
    stands_out = recognised(metadata)
    if stands_out and z > 0.0:
        inside = dict.fromkeys(inside, 1.0)
    unit = metadata["unit"] or "record"
    entry, record = (figures(person_curve(metadata, u, 1)) for u in ("attribute", "record"))
    whole = person_curve(metadata, "record", k)
    person = {
        "unchanged": whole.zero_prob if "repeat" in metadata else formulas.exposed(z, k),
        "certain_95": formulas.certain(person_curve(metadata, unit, k)),
    }
    finite = [(name, t) for name, t in zip(names, tau.tolist(), strict=True) if intervals and math.isfinite(t)]
    of_groups = _groups(metadata, groups)
    share = suppression_share(metadata)
    verdict, reasons = decide(
        n_rows=n,
        zero_prob=z,
        person_unchanged=person["unchanged"],
        rows_per_person=k,
        person_epsilon=None if not n else float(whole.epsilon(1.0 / (10.0 * n))),
        sure=max(entry["certain_95"], record["certain_95"], person["certain_95"]),
        guess=max(part["best_guess"] for part in (entry, record, *of_groups.values())),
        stands_out=stands_out if z > 0.0 else [],
        private=bool(metadata["private"]),
    )
    return Risk(
        unchanged_rows=None if n is None else n * z,
        unchanged_in_box=inside,
        **entry,
        interval_95={name: formulas.interval_share(t) for name, t in finite},
        record=record,
        person=person,
        groups=of_groups,
        verdict=verdict,
        reasons=reasons,
        suppression={"share": share, "standard_error_factor": 1.0 / math.sqrt(share) if share > 0.0 else math.inf},
        interval_95_known={name: formulas.interval_share(t, len(columns)) for name, t in finite},
        share_in_box=share_in_box,
    )


def decide(
    *,
    n_rows: int | None,
    zero_prob: float,
    person_unchanged: float,
    rows_per_person: int,
    person_epsilon: float | None,
    sure: float,
    guess: float,
    stands_out: Sequence[Any],
    private: bool,
) -> tuple[str, list[str]]:
    """The verdict and its reasons.

    Open data: fewer than one person expected to have a row published as it is, and person-level epsilon at delta =
    1/(10 n) at
    most 10.  Under contract: the attacker is rightly 95 % sure in at most 10 %, guesses right at most 75 %
    between two values, and unchanged rows do not stand out.
    """
    if not private:
        return CLOSED, ["The table was simulated with a reproducible generator: no guarantee holds."]
    pct = words.percent
    not_open = _against_open(n_rows, zero_prob, person_unchanged, rows_per_person, person_epsilon)
    if not not_open:
        word = "strong" if person_epsilon is not None and person_epsilon <= STRONG else "conventional"
        return OPEN, [
            "Fewer than one row is expected to be published as it is, and the epsilon of a person at delta = 1/(10 "
            "n) is "
            f"{words.brief(person_epsilon or 0.0)}: {word} protection.",
            "This holds if the columns that pass through point to nobody: see zil.check.",
        ]
    against = []
    if stands_out:
        named = words.listed(stands_out, words.FEW)
        against.append(f"Every unchanged row is recognised: {named} has few possible values and no grain.")
    if sure > SURE_AT_MOST:
        limit = f"at most {pct(SURE_AT_MOST)} under contract"
        against.append(f"An attacker becomes rightly 95 % sure in {pct(sure)} ({limit}).")
    if guess > GUESS_AT_MOST:
        limit = f"at most {pct(GUESS_AT_MOST)} under contract"
        against.append(f"An attacker guesses right {pct(guess)} of the time ({limit}).")
    if against:
        return CLOSED, against
    return CONTRACT, not_open


def _against_open(
    n_rows: int | None, zero_prob: float, person_unchanged: float, rows_per_person: int, epsilon: float | None
) -> list[str]:
    if not n_rows:
        return ["Not open data: how many rows are published is not known."]
    if n_rows * person_unchanged >= 1.0:
        times = f"delta {words.brief(person_unchanged)} is {words.count(n_rows * person_unchanged)} x 1/n"
        if rows_per_person > 1:
            times += f" for persons with {rows_per_person} rows"
        return [f"Not open data: {times}."]
    if epsilon is not None and epsilon > CONVENTIONAL:
        at = "has no limit" if math.isinf(epsilon) else f"is {words.brief(epsilon)}, above {CONVENTIONAL:g}"
        return [f"Not open data: the epsilon of a person at delta = 1/(10 n) {at}."]
    return []
