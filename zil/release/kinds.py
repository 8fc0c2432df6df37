"""What a column of a CSV file plainly is: whole numbers, numbers, or text.

One rule, for a file that `release_file` turns into Parquet and for one that `load` reads without types: nothing that a
field says may change.  ``007``, ``+7`` and ``1e999`` are no plain numbers, and neither is one with more digits than
float64 holds; one such field makes text of the whole column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal

INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,17}")
NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?")
SHORT = 15  # digits that every float64 in the middle of its range gives back


def is_number(field: bytes) -> bool:
    """Whether the field is a number in plain digits that float64 gives back."""
    if not NUMBER.fullmatch(field):
        return False
    if len(field) <= SHORT and b"e" not in field and b"E" not in field:
        return True
    text = field.decode("ascii")
    shortest = repr(float(text))
    return text == shortest or Decimal(text) == Decimal(shortest)


class Column:
    """What the fields of a column can be, as more and more of them are seen, in parts of any size."""

    def __init__(self) -> None:
        self._integer = self._number = True  # whether all fields so far are
        self._seen = self._missing = self._long = False

    def look(self, fields: Iterable[bytes]) -> None:
        """Narrow it down; the fields are as they stand in the file, with their quotation marks."""
        if not (self._integer or self._number):
            return
        entries = set(fields)
        self._missing |= b"" in entries
        entries.discard(b"")
        self._seen |= bool(entries)
        self._integer = self._integer and all(map(INTEGER.fullmatch, entries))
        if self._integer and max(map(len, entries), default=0) <= SHORT:
            return  # short whole numbers are numbers, too
        self._long |= self._integer
        self._number = self._number and all(map(is_number, entries))

    @property
    def kind(self) -> str:
        """``"integer"``, ``"number"`` or ``"text"``.

        Long whole numbers beside missing ones are no integers: a reader that knows no missing integers makes float64 of
        both.
        """
        if not self._seen:
            return "text"
        if self._integer and not (self._long and self._missing):
            return "integer"
        return "number" if self._number else "text"
