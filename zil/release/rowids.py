"""One form for each row id, however it was written: a person must not be two people to the ledger.

Programs change how an id looks: a missing entry turns a column of whole numbers into 101.0, a spreadsheet drops the
leading zeros of 007, an export pads with blanks, two systems compose accents in two ways.  Ids are the same if they
are the same text without blanks around it (Unicode NFC), or the same number.
"""

from __future__ import annotations

import datetime
import decimal
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from zil._validate import SchemaError
from zil.release.csvfile import MISSING

_PLAIN = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?")
_MIDNIGHT = re.compile(r"(\d{4}-\d{2}-\d{2})[ T]00:00(:00(\.0+)?)?", re.ASCII)
_INVISIBLE = "\ufeff\u200b\u200c\u200d\u2060"  # no white space to Python, yet nothing that anybody sees
LONGEST = 400  # characters; what is longer is a text, whatever it looks like
EXACT = 2**53  # from here on a double is not the whole number it stands for


def canonical(word: str, name: str) -> str:
    """The one form of an id.

    Raises
    ------
    SchemaError
        The id is missing, or a float that can stand for several whole numbers; it is not shown.
    """
    if _PLAIN.fullmatch(word) or (len(word) > 4 and word.isascii() and word.isalnum() and word[0].isalpha()):
        return word  # as most are, and none of them is a word for a missing entry
    plain = unicodedata.normalize("NFC", word)
    while (shorter := plain.strip().strip(_INVISIBLE)) != plain:
        plain = shorter
    if plain.lower().encode("utf-8", "surrogatepass") in MISSING:
        raise SchemaError(f"row id {name!r} has missing entries")
    if len(plain) <= LONGEST and _NUMBER.fullmatch(plain):
        return _number(plain, name)
    day = _MIDNIGHT.fullmatch(plain)
    return day[1] if day else plain


def _number(plain: str, name: str) -> str:
    sign, digits, exponent = decimal.Decimal(plain).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return "0"
    assert isinstance(exponent, int)  # the pattern leaves no nan and no infinity
    bare = text.rstrip("0")
    exponent += len(text) - len(bare)
    # as programs write floats; 7e12345 may be an id of hexadecimal digits
    written_as_float = "." in plain or "+" in plain.lstrip("+")
    size = len(bare) + exponent  # digits before the point
    if written_as_float and (size > 16 or (size == 16 and int(bare[:16].ljust(16, "0")) >= EXACT)):
        raise SchemaError(
            f"row id {name!r} has floats of 2**53 and more, which do not tell whole numbers apart: "
            "write them as whole numbers or as text"
        )
    if exponent >= 0 and len(bare) + exponent <= 40:
        bare, exponent = bare + "0" * exponent, 0
    return ("-" if sign else "") + bare + (f"e{exponent}" if exponent else "")


def of_fields(fields: Iterable[bytes], name: str) -> list[str]:
    """Ids from what CSV fields say."""
    try:
        return [canonical(field.decode("utf-8"), name) for field in fields]
    except UnicodeDecodeError:
        raise SchemaError(f"row id {name!r} has entries that are not UTF-8") from None


def of_values(values: Sequence[Any], name: str) -> list[str]:
    """Ids from the values of a column.

    Raises
    ------
    TypeError
        Values that do not name a row, such as lists.
    """
    return [canonical(value if type(value) is str else _written(value, name), name) for value in values]


def _written(value: Any, name: str) -> str:
    if value is None or value != value:
        raise SchemaError(f"row id {name!r} has missing entries")
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value.hex()
    if isinstance(value, float):
        return repr(value)
    if not isinstance(value, (str, int, decimal.Decimal, datetime.date, datetime.time, datetime.timedelta)):
        raise TypeError(f"row id {name!r} has values of type {type(value).__name__}, which do not name a row")
    return str(value)
