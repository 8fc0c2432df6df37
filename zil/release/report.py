"""The privacy label of a mechanism or a release, from its metadata alone."""

from __future__ import annotations

import html as escape
from decimal import ROUND_CEILING, Context
from typing import Any

UNIT_WORDS = {"attribute": "one entry of a row", "record": "a whole row"}


def _number(value: float) -> str:
    return f"{value:.6g}"


def _at_least(value: float, digits: int = 6) -> str:
    """Rounded up: a printed scale is never too small, a printed delta or power never too good."""
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(value)):.{digits}g}"


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def _percent_at_least(value: float) -> str:
    return f"{_at_least(100 * value, 3)} %"


def _first_line(metadata: dict[str, Any]) -> str:
    share, rows = metadata["zero_prob"], metadata["n_rows"]
    if rows is None:
        return (
            f"**{_percent(share)} of all rows are expected to be published unchanged** "
            f"(zero_prob = {_number(share)}; {_number(1000 * share)} of every 1000 rows)."
        )
    return (
        f"**{_number(rows * share)} of {rows} rows are expected to be published unchanged** "
        f"(n x zero_prob = {rows} x {_number(share)})."
    )


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _tables(metadata: dict[str, Any]) -> list[tuple[str, list[str], list[list[str]]]]:
    """Caption, head and rows of each table of the label."""
    columns = [
        [str(c["name"]), f"{_number(c['lower'])} to {_number(c['upper'])}", _at_least(c["scale"]), _number(c["tick"])]
        for c in metadata["columns"]
    ]
    parts = [("Noised columns", ["column", "public bounds", "scale", "tick"], columns)]
    if not metadata["private"]:
        return parts
    cells = [
        (f"{unit}, {curve}", metadata["guarantees"][unit][curve])
        for unit in metadata["guarantees"]
        for curve in metadata["guarantees"][unit]
    ]
    first = cells[0][1]
    delta_rows = [
        [_number(point[0]), *(_at_least(part["epsilon_delta"][k][1]) for _, part in cells)]
        for k, point in enumerate(first["epsilon_delta"])
    ]
    attack_rows = [
        [_percent(point[0]), *(_percent_at_least(part["attack"][k][1]) for _, part in cells)]
        for k, point in enumerate(first["attack"])
    ]
    attack_rows.append(["best advantage", *(_percent_at_least(part["advantage"]) for _, part in cells)])
    heads = [name for name, _ in cells]
    parts.append(("Total delta at each epsilon", ["epsilon", *heads], delta_rows))
    parts.append(("What an attacker detects at most", ["false alarms", *heads], attack_rows))
    return parts


def _sentences(metadata: dict[str, Any]) -> list[str]:
    if not metadata["private"]:
        return ["**NOT PRIVATE**: simulated with a reproducible generator. No guarantee is given for this table."]
    result = []
    for unit, shift in metadata["shift"].items():
        worst = next(point for point in metadata["guarantees"][unit]["sharp"]["attack"] if point[0] == 0.01)
        result.append(
            f"{unit.capitalize()} level ({UNIT_WORDS[unit]} changes): shift c = {_at_least(shift)}; "
            f"at 1 % false alarms an attacker detects at most {_percent_at_least(worst[1])} of the changes."
        )
    result.append(
        "Sharp: the exact curve for this number of columns. "
        "Limit: the closed form that is safe for any number of columns. "
        "Every delta includes zero_prob. The numerical delta of the sampler is 0."
    )
    return result


def markdown(metadata: dict[str, Any]) -> str:
    """The label in markdown; its first line is the expected number of rows published unchanged."""
    target = metadata["target"]
    lines = [_first_line(metadata)] if metadata["private"] else [*_sentences(metadata), _first_line(metadata)]
    if target:
        asked = ", ".join(f"{key} = {_number(value)}" for key, value in target.items() if isinstance(value, float))
        lines.append(f"Calibrated at {target['unit']} level for {asked}.")
    if metadata["private"]:
        lines += _sentences(metadata)
    for caption, head, rows in _tables(metadata):
        lines += [f"### {caption}", _table(head, rows)]
    lines.append(
        f"{metadata['mechanism']}, zil {metadata['version']}. Values outside the bounds are clipped silently."
        + (f" Release {metadata['release_id']}." if metadata["release_id"] else "")
    )
    return "\n\n".join(lines) + "\n"


def html(metadata: dict[str, Any]) -> str:
    """The same label for notebooks."""
    quote = escape.escape

    def bold(text: str) -> str:
        pieces = quote(text).split("**")
        return "".join(f"<strong>{piece}</strong>" if k % 2 else piece for k, piece in enumerate(pieces))

    first = [_first_line(metadata), *_sentences(metadata)]
    if not metadata["private"]:
        first = [*_sentences(metadata), _first_line(metadata)]
    parts = [f"<p>{bold(line)}</p>" for line in first]
    for caption, head, rows in _tables(metadata):
        top = "".join(f"<th>{quote(cell)}</th>" for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{quote(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        parts.append(f"<h4>{quote(caption)}</h4><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>")
    return "<div>" + "".join(parts) + "</div>"
