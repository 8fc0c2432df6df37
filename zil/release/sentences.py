"""What the privacy label says, sentence by sentence, from the metadata of a release and its risk.

The order is that of harm: what several copies give away, rows published as they are, rows that can be recognised, what
an attacker can tell of entries, rows and persons; then what is not protected at all, the budget, and what
the same budget would have bought elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from zil.privacy import risk as formulas
from zil.release import risk as judgement
from zil.release.risk import Risk
from zil.release.words import FEW, MANY, brief, count, listed, pair, percent, percent_short, shown

Sentence = tuple[str, str]  # heading, text
MOST_GROUPS = 1
EXAMPLE_ROWS = 5  # of a person, where the holder did not say how many


def heading(metadata: Mapping[str, Any], rows_per_person: int | None) -> str:
    """What the label is of."""
    about = [] if metadata["n_rows"] is None else [f"{metadata['n_rows']:,} rows"]
    if rows_per_person is not None:
        about.append("one per person" if rows_per_person == 1 else f"up to {rows_per_person} per person")
    names = listed([c["name"] for c in metadata["columns"]], FEW)
    return f"PRIVACY LABEL: {names}" + (f" ({', '.join(about)})" if about else "")


def verdict(metadata: Mapping[str, Any], risk: Risk) -> str:
    """The second line: what to do with the file."""
    if not metadata["private"]:
        return "VERDICT: NOT PRIVATE. Simulated with a reproducible generator: no guarantee is given for this table."
    if risk.verdict == judgement.CLOSED:
        return "VERDICT: DO NOT PUBLISH. Secure access only."
    if risk.verdict == judgement.CONTRACT:
        return " ".join(["VERDICT: UNDER CONTRACT ONLY.", *risk.reasons])
    return "VERDICT: OPEN DATA, if the columns that pass through point to nobody."


def unchanged(metadata: Mapping[str, Any]) -> Sentence:
    """Rows that are published as they are."""
    z, n = metadata["zero_prob"], metadata["n_rows"]
    if z == 0.0:
        text = "No row is published as it is."
    elif n is None:
        text = f"{percent_short(z)} of all rows are published as they are ({count(1000 * z)} of every 1,000)."
    elif n * z >= 1.0:
        text = (
            f"About {count(n * z)} rows ({percent_short(z)}) are published as they are; convention allows fewer than "
            "one "
            f"(delta < {brief(1.0 / n)})."
        )
    else:
        text = (
            f"Fewer than one row ({count(n * z)} expected) is published as it is, as the convention for open data asks."
        )
    return "Exact disclosure", text


def copies(metadata: Mapping[str, Any], risk: Risk) -> list[Sentence]:
    """What earlier copies of the same rows change."""
    result = []
    if "repeat" in metadata:
        times = metadata["repeat"]["releases_of_these_rows"]
        share = judgement.person_curve(metadata, "record", 1).zero_prob
        text = (
            f"Rows of this table were published up to {times} times; {percent(share)} of such rows are there as they "
            "are in "
            "at least one copy. Entry, whole row, persons and budget below are of all copies together; the rest is "
            "about "
            "this copy alone."
        )
        result.append(("Copies", text))
    return result


def recognition(metadata: Mapping[str, Any], risk: Risk) -> list[Sentence]:
    """Which of the published rows are originals, for one who looks at them."""
    if metadata["zero_prob"] == 0.0:
        return []
    box, columns = risk.unchanged_in_box, metadata["columns"]
    alone = judgement.recognised(metadata)
    if alone:
        inside = f"ALL originals are recognised: {listed(alone, FEW)} has few possible values and no grain."
    else:
        inside = (
            f"About {percent(risk.share_in_box)} of rows fall inside the bounds; {percent(box['average'])} of them are "
            f"original if values are spread evenly ({percent(box['centre'])} mid-range, {percent(box['corner'])} at "
            "the "
            "corners)."
        )
    loose = [c["name"] for c in columns if not c.get("grain") and c["name"] not in alone]
    if loose:
        some = f"in {listed(loose, FEW)}, which have no grain"
        what = "unless grain is in use" if len(loose) == len(columns) else some
        inside += f" Whole numbers, 0/1 columns and rounded values give ALL originals away {what}."
    return [("Recognition", inside)]


def entries(metadata: Mapping[str, Any], risk: Risk) -> list[Sentence]:
    """One entry, a whole row, and intervals."""
    result = [
        (
            "One entry",
            "Between two values the full range apart, equally likely, an attacker guesses right "
            f"{percent(risk.best_guess)} "
            f"of the time (coin: 50 %) and is rightly 95 % sure in {percent(risk.certain_95)}"
            + (" (the unchanged rows)." if abs(risk.certain_95 - metadata["zero_prob"]) < 5e-4 else "."),
        )
    ]
    if len(metadata["columns"]) > 1:
        guess, sure = percent(risk.record["best_guess"]), percent(risk.record["certain_95"])
        whole = f"The same for two whole rows: {guess} and {sure}."
        result.append(("Whole row", whole))
    if risk.interval_95:
        name = min(risk.interval_95, key=lambda column: round(risk.interval_95[column], 4))
        text = f"A 95 % interval for {shown(name)} covers {percent(risk.interval_95[name])} of its range"
        if len(metadata["columns"]) > 1:
            text += f" ({percent(risk.interval_95_known[name])} if the other entries are known)"
        result.append(("Noised rows", text + "."))
    return result


def together(metadata: Mapping[str, Any], risk: Risk, groups: Any) -> list[Sentence]:
    """Columns that are functions of each other."""
    result = []
    worst = sorted(risk.groups.items(), key=lambda item: -item[1]["power_at_1_percent"])
    for name, part in worst[:MOST_GROUPS]:
        group = groups[name] if isinstance(groups, Mapping) else name.split(" + ")
        size = len(group["columns"] if isinstance(group, Mapping) else group)
        text = (
            f"{shown(name)} fills {size} columns: at 1 % false alarms {percent(part['power_at_1_percent'])} of "
            "changes are "
            f"detected, not the {percent(risk.power_at_1_percent)} of one entry."
        )
        if len(worst) > MOST_GROUPS:
            text += f" Of {len(worst) - MOST_GROUPS} more groups no more."
        result.append(("Group", text))
    if not result and len(metadata["columns"]) > 1:
        text = "Columns that are functions of each other (dummies of one answer, totals) give away more than one entry."
        result.append(("Group", text))
    return result


def persons(metadata: Mapping[str, Any], rows_per_person: int | None) -> Sentence:
    """Several rows of one person; an example where the holder did not say that there are."""
    unit = metadata["unit"] or "record"
    k = rows_per_person if rows_per_person is not None and rows_per_person > 1 else EXAMPLE_ROWS
    f = judgement.person_curve(metadata, unit, k)
    exposed = f.zero_prob if "repeat" in metadata else formulas.exposed(metadata["zero_prob"], k)
    sure = formulas.certain(f)
    text = (
        f"With {k} rows each, {percent(exposed)} have a row published as it is; an attacker is 95 % sure of "
        f"{judgement.ROW_WORDS[unit]} in {percent(sure)}"
    )
    if rows_per_person is None or rows_per_person == 1:
        text = "The verdict is for one row per person. " + text
        text += ": then do not publish." if sure > judgement.SURE_AT_MOST else "."
    else:
        text += "."
    return "Persons", text


def not_protected(passed: Sequence[Any] | None) -> Sentence:
    """What passes through."""
    if passed is None:
        return "Not protected", "All other columns, row order, number of rows."
    if not passed:
        return "Not protected", "Row order, number of rows (no other column is published)."
    return "Not protected", f"{listed(passed, MANY)}; row order, number of rows."


def _budget(metadata: Mapping[str, Any]) -> str:
    target = metadata["target"] or {}
    epsilon = float(target.get("epsilon", 1.0))
    first = metadata["unit"] or "record"
    parts = []
    for unit in (first, "attribute" if first == "record" else "record"):
        f = judgement.person_curve(metadata, unit, 1)
        delta = float(f.delta(epsilon))
        text = ("per entry " if unit == "attribute" else "per row ") + pair(epsilon, delta)
        if delta > 0.5 and epsilon < 8.0:
            text += f" or {pair(8.0, float(f.delta(8.0)))}"
        parts.append(text)
    return "; ".join(parts[: len(metadata["columns"])])  # of one column, an entry is the row


def budget(metadata: Mapping[str, Any]) -> Sentence:
    """What was asked for, per entry and per row."""
    text = _budget(metadata)
    target = metadata["target"]
    if target and "epsilon" not in target:
        asked = ", ".join(f"{key} = {value:g}" for key, value in target.items() if isinstance(value, float))
        text += f". Calibrated at {target['unit']} level for {asked}"
    return "Budget", text[0].upper() + text[1:] + "."


def alternatives(metadata: Mapping[str, Any], risk: Risk) -> Sentence | None:
    """What simpler mechanisms would give with the same budget."""
    share = risk.suppression["share"]
    if share == 0.0 or share >= 1.0:
        return None
    target, dim = metadata["target"] or {}, len(metadata["columns"])
    widest = max((t for t in judgement.ratios(metadata["columns"]).tolist() if math.isfinite(t)), default=math.inf)
    here = formulas.mean_factor(widest, metadata["zero_prob"])
    text = (
        f"Blanking all but {percent_short(share)} of rows meets (0, {share:.2f}): best guess "
        f"{percent(0.5 + 0.5 * share)}, "
        f"95 % sure in {percent(share)}, standard error of a mean x {risk.suppression['standard_error_factor']:.2f} "
        f"(here x {here:.2f})."
    )
    if "epsilon" in target:
        unit = target["unit"]
        q = formulas.laplace_loss(1 if unit == "attribute" else dim, target["epsilon"], target["delta"])
        f = formulas.independent_laplace(1 if unit == "attribute" else dim, q)
        text += (
            f" Independent Laplace noise of the same budget: {percent(formulas.best_guess(f))}, "
            f"{percent(formulas.certain(f))}, x {formulas.mean_factor(math.sqrt(2.0) / q):.2f}."
        )
    return "Instead", text


def warnings(metadata: Mapping[str, Any]) -> list[Sentence]:
    """What a reader of the file may not expect."""
    result = []
    coarse: list[tuple[float, Any]] = []
    grainy: list[tuple[float, Any]] = []
    for column in metadata["columns"]:
        stays = -math.expm1(-math.sqrt(0.5) * column["tick"] / column["scale"])
        if stays > 1e-3:
            coarse.append((stays, column["name"]))
        if column.get("grain"):
            same = formulas.same_cell(column["scale"] / column["grain"])
            if same > 1e-2:
                grainy.append((same, column["name"]))
    unused = [c["name"] for c in metadata["columns"] if c.get("unused_resolution")]
    if unused:
        text = (
            f"The declared resolution of {listed(unused, FEW)} is not used, as the scale holds too few such steps: "
            "published "
            "values have more digits than the data, and rows published unchanged stand out."
        )
        result.append(("Resolution", text))
    if coarse:
        names = listed([name for _, name in coarse], FEW)
        most = percent(max(share for share, _ in coarse))
        text = f"Noise that rounds to 0 leaves up to {most} of entries of noised rows as they are: {names}."
        result.append(("Rounding", text))
    if grainy:
        names = listed([name for _, name in grainy], FEW)
        most = percent(max(share for share, _ in grainy))
        text = f"After rounding, up to {most} of entries of noised rows are the originals: {names}."
        result.append(("Rounding", text))
    return result


def all_sentences(
    metadata: Mapping[str, Any],
    risk: Risk,
    *,
    passed: Sequence[Any] | None,
    rows_per_person: int | None,
    groups: Any,
) -> list[Sentence]:
    """The numbered sentences of the label."""
    if not metadata["private"]:
        return [unchanged(metadata), not_protected(passed)]
    other = alternatives(metadata, risk)
    said = [text for _, text in copies(metadata, risk)]
    why = [reason for reason in risk.reasons if risk.verdict != judgement.CONTRACT and reason not in said]
    return [
        *copies(metadata, risk),
        unchanged(metadata),
        *recognition(metadata, risk),
        *entries(metadata, risk),
        *together(metadata, risk, groups),
        persons(metadata, rows_per_person),
        *warnings(metadata),
        not_protected(passed),
        budget(metadata),
        *([other] if other else []),
        *([("Why", " ".join(why))] if why else []),
    ]
