"""The privacy label of a mechanism or a release, from its metadata alone: text, Markdown, or one HTML page.

Design: a label is a list of sentences (`zil.release.sentences`) and a list of tables; each format only
decides how they look.  Everything that holds a name goes through `words.shown` first and the escape
of its format second, so a name can neither start a line nor a tag.
"""

from __future__ import annotations

import html as escape
import textwrap
from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from typing import Any

from zil import _validate
from zil.release import risk as judgement
from zil.release import sentences
from zil.release.words import as_markdown, shown

Table = tuple[str, list[str], list[list[str]]]  # caption, head, rows

FORMATS = ("markdown", "text", "html")
WIDTH = 110  # of the text, in characters
SIGNED = "Signed: ______________________   Date: ______________   Tables follow."
UNSIGNED = "This table is not for publication. Tables follow."
GREEN, AMBER, RED = "#1b6e3c", "#8a5a00", "#a3201d"
COLOURS = {judgement.OPEN: GREEN, judgement.CONTRACT: AMBER, judgement.CLOSED: RED}
STYLE = """
.zil-label{font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:#1d1d1f;background:#fff;
max-width:52rem;border:1px solid #c9c9ce;border-radius:8px;overflow:hidden}
.zil-label h1{font-size:1.05rem;margin:0;padding:.8rem 1.4rem;background:#f3f3f5;overflow-wrap:anywhere}
.zil-label .verdict{margin:0;padding:.8rem 1.4rem;color:#fff;font-weight:600}
.zil-label ol{margin:1rem 1.4rem;padding-left:1.6rem}
.zil-label li{margin:.35rem 0;overflow-wrap:anywhere}
.zil-label .signed{margin:1.6rem 1.4rem 1rem;white-space:pre-wrap}
.zil-label .tables{padding:0 1.4rem 1rem;border-top:1px solid #c9c9ce;background:#fafafb}
.zil-label h2{font-size:.95rem;margin:1.2rem 0 .4rem}
.zil-label table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.87rem;background:#fff}
.zil-label th,.zil-label td{padding:.2rem .7rem;border:1px solid #dcdce0;text-align:right;overflow-wrap:anywhere}
.zil-label th:first-child,.zil-label td:first-child{text-align:left}
.zil-label th{background:#f3f3f5}
.zil-label .made{font-size:.8rem;color:#55555a}
@media print{.zil-label{border:0;max-width:none}.zil-label .tables{break-before:page}
.zil-label .verdict,.zil-label h1,.zil-label th{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
"""


def _number(value: float) -> str:
    return f"{value:.6g}"


def _at_least(value: float, digits: int = 6) -> str:
    """Rounded up: a printed scale is never too small, a printed delta or power never too good."""
    return f"{float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(value)):.{digits}g}"


def _percent(value: float) -> str:
    return f"{100 * value:.3g} %"


def _percent_at_least(value: float) -> str:
    return f"{_at_least(100 * value, 3)} %"


# ---- tables ------------------------------------------------------------------------------------


def _tables(metadata: dict[str, Any], passed: Sequence[Any] | None) -> list[Table]:
    head = ["column", "public bounds", "scale", "tick"]
    extra = [key for key in ("grain", "support") if any(c.get(key) for c in metadata["columns"])]
    rows = []
    for c in metadata["columns"]:
        row = [shown(c["name"]), f"{_number(c['lower'])} to {_number(c['upper'])}", _at_least(c["scale"])]
        row.append(_number(c["tick"]))
        rows.append(row + [_setting(c.get(key)) for key in extra])
    parts: list[Table] = []
    if metadata["private"] and "repeat" in metadata:
        parts += _curves(list(metadata["repeat"]["composed"].items()), ", all copies")
    parts.append(("Noised columns", head + extra, rows))
    if passed:
        parts.append(("Columns that pass through", ["column"], [[shown(name)] for name in passed]))
    if metadata["private"]:
        cells = [
            (f"{unit}, {curve}", metadata["guarantees"][unit][curve])
            for unit in metadata["guarantees"]
            for curve in metadata["guarantees"][unit]
        ]
        parts += _curves(cells, ", this copy" if "repeat" in metadata else "")
    return parts


def _setting(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(_number(v) for v in value) if isinstance(value, (list, tuple)) else _number(value)


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


def _remarks(metadata: dict[str, Any]) -> list[str]:
    """What the tables mean, and what made the file."""
    result = []
    target = metadata["target"]
    if target:
        asked = ", ".join(f"{key} = {_number(value)}" for key, value in target.items() if isinstance(value, float))
        result.append(f"Calibrated at {target['unit']} level for {asked}.")
    if metadata["private"]:
        shifts = ", ".join(f"{unit} {_at_least(c)}" for unit, c in metadata["shift"].items())
        result.append(
            f"Attribute: one entry of a row changes; record: a whole row. Shift c: {shifts}. Sharp: the exact curve "
            "for "
            "this number of columns. Limit: the closed form that is safe for any number of columns. Every delta "
            "includes "
            "zero_prob. The numerical delta of the sampler is 0."
        )
    made = f"{metadata['mechanism']}, zil {metadata['version']}. Values outside the bounds are clipped silently."
    result.append(made + (f" Release {shown(metadata['release_id'])}." if metadata["release_id"] else ""))
    return result


# ---- formats -----------------------------------------------------------------------------------


def _wrapped(text: str, first: str = "", others: str = "") -> list[str]:
    """Lines of text; a number stays with what it counts."""
    joined = text.replace(" %", "\0%").replace("< ", "<\0").replace(" x ", " x\0")
    lines = textwrap.wrap(joined, WIDTH, initial_indent=first, subsequent_indent=others, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]


def _text_table(table: Table) -> str:
    caption, head, rows = table
    lines = [head, *rows]
    wide = [max(len(line[k]) for line in lines) for k in range(len(head))]
    body = [
        "  ".join(
            [line[0].ljust(wide[0]), *(cell.rjust(w) for cell, w in zip(line[1:], wide[1:], strict=True))]
        ).rstrip()
        for line in lines
    ]
    return "\n".join([caption, *body])


def _markdown_table(table: Table) -> str:
    caption, head, rows = table
    lines = [[as_markdown(cell) for cell in line] for line in (head, *rows)]
    lines.insert(1, ["---", *["---:"] * (len(head) - 1)])
    return "\n".join([f"### {caption}", "", *("| " + " | ".join(line) + " |" for line in lines)])


def _html_table(table: Table) -> str:
    caption, head, rows = table
    quote = escape.escape
    top = "".join(f"<th>{quote(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{quote(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<h2>{quote(caption)}</h2><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


class Label:
    """The parts of a label, and the three ways to show them.

    Parameters
    ----------
    metadata : dict
        Of a mechanism or a release.
    passed : list, optional
        Names of the columns that pass through; None if they are not known.
    rows_per_person : int, optional
        None: the holder did not say.
    groups : optional
        As for `Mechanism.risk`.
    """

    def __init__(
        self,
        metadata: dict[str, Any],
        *,
        passed: Sequence[Any] | None = None,
        rows_per_person: int | None = None,
        groups: Any = None,
    ) -> None:
        k = None if rows_per_person is None else _validate.integer("rows_per_person", rows_per_person, 1)
        groups = groups if groups is None or hasattr(groups, "items") else [list(group) for group in groups]
        risk = judgement.assess(metadata, rows_per_person=k or 1, groups=groups, intervals=metadata["private"])
        self.title = sentences.heading(metadata, k)
        self.verdict = sentences.verdict(metadata, risk)
        self.sentences = sentences.all_sentences(metadata, risk, passed=passed, rows_per_person=k, groups=groups)
        self.signature = SIGNED if metadata["private"] else UNSIGNED
        self.tables = _tables(metadata, passed)
        self.remarks = _remarks(metadata)
        self.colour = COLOURS[risk.verdict]

    def text(self) -> str:
        """The label on one page of text, then the tables."""
        lines = [self.title, self.verdict]
        for k, (heading, sentence) in enumerate(self.sentences, 1):
            lines += _wrapped(f"{heading}. {sentence}", f"{k:2} ", "   ")
        parts = ["\n".join([*lines, self.signature]), *map(_text_table, self.tables)]
        parts += ["\n".join(_wrapped(remark)) for remark in self.remarks]
        return "\n\n".join(parts) + "\n"

    def markdown(self) -> str:
        """The same; each sentence is an entry of a numbered list."""
        # two blanks at the end of a line: a new line, not a new paragraph
        lines = [as_markdown(self.title) + "  ", as_markdown(self.verdict), ""]
        lines += [
            f"{k}. **{heading}.** {as_markdown(sentence)}" for k, (heading, sentence) in enumerate(self.sentences, 1)
        ]
        parts = ["\n".join(lines), self.signature, *map(_markdown_table, self.tables)]
        return "\n\n".join([*parts, *map(as_markdown, self.remarks)]) + "\n"

    def fragment(self) -> str:
        """The same as a piece of HTML with its own style, for a notebook."""
        quote = escape.escape
        items = "".join(f"<li><strong>{heading}.</strong> {quote(text)}</li>" for heading, text in self.sentences)
        tables = "".join(map(_html_table, self.tables))
        remarks = "".join(f'<p class="made">{quote(remark)}</p>' for remark in self.remarks)
        return (
            f'<style>{STYLE}</style><div class="zil-label"><h1>{quote(self.title)}</h1>'
            f'<p class="verdict" style="background:{self.colour}">{quote(self.verdict)}</p><ol>{items}</ol>'
            f'<p class="signed">{quote(self.signature)}</p><div class="tables">{tables}{remarks}</div></div>'
        )

    def page(self) -> str:
        """The same as one HTML page that needs nothing else."""
        return (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape.escape(self.title)}</title>"
            "<style>body{margin:2rem auto;max-width:52rem;padding:0 1rem}</style>"
            f"</head><body>{self.fragment()}</body></html>\n"
        )

    def show(self, form: str) -> str:
        """The label in one of `FORMATS`."""
        match _validate.choice("format", form, FORMATS):
            case "text":
                return self.text()
            case "html":
                return self.page()
        return self.markdown()
