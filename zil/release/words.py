"""Figures and names as a label writes them: short, and so that no name can change what is read.

A column name is public, but whoever named it need not be trusted: it may hold line breaks, pipes, HTML, or
characters that turn the direction of writing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

LONGEST = 40  # characters of a name
FEW, MANY = 80, 300  # characters of all names in a sentence; the tables have all


def percent(value: float) -> str:
    """A probability as a percentage: two digits, never 100 % unless it is certain, never 0 % unless impossible."""
    if value in (0.0, 1.0):
        return f"{100 * value:g} %"
    if value > 0.9999:
        return "over 99.99 %"
    if value >= 0.995:
        return f"{math.floor(1e4 * value) / 100:.2f} %"
    if value >= 0.0995:
        return f"{100 * value:.0f} %"
    if value >= 0.00995:
        return f"{100 * value:.1f} %"
    if value >= 1e-6:
        return f"{100 * value:.2g} %"
    return "under 0.0001 %" if value > 1e-12 else "0 %"  # a convolution leaves 1e-15 where nothing is


def percent_short(value: float) -> str:
    """A parameter that was chosen as a percentage: no more digits than it has."""
    return f"{100 * value:.3g} %"


def count(value: float) -> str:
    """A number of rows, with separators of thousands; tenths below ten."""
    if value >= 10.0 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.1 else f"{value:.1g}"


def brief(value: float, digits: int = 2) -> str:
    """A number to two significant digits, without exponent where that is readable."""
    if value == 0.0 or not math.isfinite(value) or not 1e-7 <= abs(value) < 1e7:
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def pair(epsilon: float, delta: float) -> str:
    """An (epsilon, delta) budget: at least two decimals."""
    if 0.995 <= delta < 1.0:
        return f"({epsilon:g}, over 0.99)"
    return f"({epsilon:g}, {delta:.2f})" if delta >= 0.0995 else f"({epsilon:g}, {brief(delta)})"


def shown(name: Any) -> str:
    """A name on one line: what is not printable as an escape, long ones cut."""
    text = "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode("ascii") for ch in str(name))
    text = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    plain = text != "" and text == text.strip() and all(ch.isalnum() or ch in "_.- /%" for ch in text)
    return text if plain else f"'{text}'"


def listed(names: Sequence[Any], most: int | None = None) -> str:
    """Names in a sentence; where they would take more than ``most`` characters, how many more there are."""
    texts = [shown(name) for name in names]
    if most is not None:
        length = 0
        for k, text in enumerate(texts):
            length += len(text) + 2
            if length > most and 0 < k < len(texts) - 1:
                return f"{', '.join(texts[:k])} and {len(texts) - k} more"
    return ", ".join(texts)


def as_markdown(text: str) -> str:
    """A sentence so that Markdown and HTML show it as it is; what means nothing where it stands is left alone."""
    result = []
    for k, ch in enumerate(text):
        before, after = text[k - 1 : k] if k else "", text[k + 1 : k + 2]
        if ch == "<" and (after.isalpha() or after in ("/", "!", "?")):
            result.append("&lt;")
        elif ch == "&" and (after.isalnum() or after == "#"):
            result.append("&amp;")
        elif ch in "\\`*[]|~$" or (ch == "_" and not (before.isalnum() and after.isalnum())):
            result.append("\\" + ch)
        else:
            result.append(ch)
    return "".join(result)
