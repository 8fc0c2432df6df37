"""The privacy label of a mechanism or a release, from its metadata alone."""

from __future__ import annotations

import html as escape
from decimal import ROUND_CEILING, Context
from typing import Any

Table = tuple[str, list[str], list[list[str]]]  # caption, head, rows

ALONE = "What follows is about this copy alone."

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


def _tables(metadata: dict[str, Any]) -> list[Table]:
    columns = [
        [str(c["name"]), f"{_number(c['lower'])} to {_number(c['upper'])}", _at_least(c["scale"]), _number(c["tick"])]
        for c in metadata["columns"]
    ]
    parts: list[Table] = [("Noised columns", ["column", "public bounds", "scale", "tick"], columns)]
    if not metadata["private"]:
        return parts
    cells = [
        (f"{unit}, {curve}", metadata["guarantees"][unit][curve])
        for unit in metadata["guarantees"]
        for curve in metadata["guarantees"][unit]
    ]
    return parts + _curves(cells)


def _curves(cells: list[tuple[str, dict[str, Any]]], of: str = "") -> list[Table]:
    """The points of some curves, each with its name, side by side."""
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
    return [
        (f"Total delta at each epsilon{of}", ["epsilon", *heads], delta_rows),
        (f"What an attacker detects at most{of}", ["false alarms", *heads], attack_rows),
    ]


def _at_one_percent(part: dict[str, Any]) -> str:
    worst = next(point for point in part["attack"] if point[0] == 0.01)
    return f"at 1 % false alarms an attacker detects at most {_percent_at_least(worst[1])} of the changes."


def _copies(metadata: dict[str, Any]) -> tuple[list[str], list[Table]]:
    """What several published copies of the same rows give away together; nothing if there is one."""
    if "repeat" not in metadata:
        return [], []
    count, composed = metadata["repeat"]["releases_of_these_rows"], metadata["repeat"]["composed"]
    lines = [f"**Rows of this table were published up to {count} times.** This is what all copies give away together:"]
    lines += [
        f"{unit.capitalize()} level ({UNIT_WORDS[unit]} changes), all copies: {_at_one_percent(part)}"
        for unit, part in composed.items()
    ]
    return lines, _curves(list(composed.items()), ", all copies")


def _sentences(metadata: dict[str, Any]) -> list[str]:
    if not metadata["private"]:
        return ["**NOT PRIVATE**: simulated with a reproducible generator. No guarantee is given for this table."]
    result = []
    for unit, shift in metadata["shift"].items():
        result.append(
            f"{unit.capitalize()} level ({UNIT_WORDS[unit]} changes): shift c = {_at_least(shift)}; "
            + _at_one_percent(metadata["guarantees"][unit]["sharp"])
        )
    result.append(
        "Sharp: the exact curve for this number of columns. "
        "Limit: the closed form that is safe for any number of columns. "
        "Every delta includes zero_prob. The numerical delta of the sampler is 0."
    )
    return result


def markdown(metadata: dict[str, Any]) -> str:
    """The label in markdown: what several copies give away, if there are any; then the rows published unchanged."""

    def shown(tables: list[Table]) -> list[str]:
        return [line for caption, head, rows in tables for line in (f"### {caption}", _table(head, rows))]

    target = metadata["target"]
    lines, tables = _copies(metadata)
    if tables:
        lines += [*shown(tables), ALONE]
    lines += [_first_line(metadata)] if metadata["private"] else [*_sentences(metadata), _first_line(metadata)]
    if target:
        asked = ", ".join(f"{key} = {_number(value)}" for key, value in target.items() if isinstance(value, float))
        lines.append(f"Calibrated at {target['unit']} level for {asked}.")
    if metadata["private"]:
        lines += _sentences(metadata)
    lines += shown(_tables(metadata))
    lines.append(
        f"{metadata['mechanism']}, zil {metadata['version']}. Values outside the bounds are clipped silently."
        + (f" Release {metadata['release_id']}." if metadata["release_id"] else "")
    )
    return "\n\n".join(lines) + "\n"


def html(metadata: dict[str, Any]) -> str:
    """The same label for notebooks."""
    quote = escape.escape

    def told(lines: list[str]) -> list[str]:
        return [f"<p>{bold(line)}</p>" for line in lines]

    def bold(text: str) -> str:
        pieces = quote(text).split("**")
        return "".join(f"<strong>{piece}</strong>" if k % 2 else piece for k, piece in enumerate(pieces))

    def shown(tables: list[Table]) -> list[str]:
        parts = []
        for caption, head, rows in tables:
            top = "".join(f"<th>{quote(cell)}</th>" for cell in head)
            body = "".join("<tr>" + "".join(f"<td>{quote(cell)}</td>" for cell in row) + "</tr>" for row in rows)
            parts.append(f"<h4>{quote(caption)}</h4><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>")
        return parts

    lines, tables = _copies(metadata)
    parts = [*told(lines), *shown(tables), *told([ALONE] if tables else [])]
    first = [_first_line(metadata), *_sentences(metadata)]
    if not metadata["private"]:
        first = [*_sentences(metadata), _first_line(metadata)]
    return "<div>" + "".join([*parts, *told(first), *shown(_tables(metadata))]) + "</div>"
