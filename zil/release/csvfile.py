"""CSV as bytes: fields that are not noised pass through exactly as they were written.

A record ends at a line feed outside quotes; fields are separated by commas outside quotes
(RFC 4180; CR LF and LF both keep their form).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from zil._validate import FloatArray, SchemaError

BLOCK = 1 << 20
LONGEST = 1 << 24  # bytes of one record; a quote that is never closed must not swallow the file
MISSING = {b"", b"na", b"n/a", b"nan", b"null", b"none", b"<na>"}
WORDS = {b"true": 1.0, b"false": 0.0}
BOM = b"\xef\xbb\xbf"

Record = tuple[list[bytes], bytes]  # fields as written, and the end of the line


def _lines(handle: IO[bytes], seen: Callable[[bytes], Any]) -> Iterator[tuple[bytes, bytes]]:
    """Records as bytes, with their line ends; ``seen`` gets every block read."""
    rest = b""
    while block := handle.read(BLOCK):
        seen(block)
        *lines, rest = (rest + block).split(b"\n")
        started: bytes | None = None
        for line in lines:
            whole = line if started is None else started + b"\n" + line
            if len(whole) > LONGEST:
                raise SchemaError("a record of the CSV file is too long: is a quote never closed?")
            if whole.count(b'"') % 2:
                started = whole
                continue
            started = None
            yield (whole[:-1], b"\r\n") if whole.endswith(b"\r") else (whole, b"\n")
        if started is not None:
            rest = started + b"\n" + rest
        if len(rest) > LONGEST:
            raise SchemaError("a record of the CSV file is too long: is a quote never closed?")
    if rest:
        if rest.count(b'"') % 2:
            raise SchemaError("the CSV file ends inside a quoted field")
        yield rest, b""


def _fields(line: bytes) -> list[bytes]:
    parts = line.split(b",")
    if b'"' not in line:
        return parts
    result: list[bytes] = []
    started: bytes | None = None
    for part in parts:
        whole = part if started is None else started + b"," + part
        if whole.count(b'"') % 2:
            started = whole
            continue
        started = None
        result.append(whole)
    return result


def text(field: bytes) -> bytes:
    """What a field says: without its quotes."""
    plain = field.strip()
    if len(plain) >= 2 and plain.startswith(b'"') and plain.endswith(b'"'):
        return plain[1:-1].replace(b'""', b'"')
    return field


def read(handle: IO[bytes], seen: Callable[[bytes], Any]) -> tuple[list[bytes], bytes, list[str], Iterator[Record]]:
    """Header fields, their line end, column names, and the records that follow.

    Raises
    ------
    SchemaError
        No header, names that repeat, or (while iterating) a record of another length.
    """
    lines = _lines(handle, seen)
    try:
        first, end = next(lines)
    except StopIteration:
        raise SchemaError("the CSV file is empty") from None
    header = _fields(first)
    plain = [text(field.removeprefix(BOM)) for field in header]
    try:
        names = [field.decode("utf-8") for field in plain]
    except UnicodeDecodeError:
        raise SchemaError("the header of the CSV file is not UTF-8") from None
    if len(set(names)) != len(names):
        raise SchemaError("column names must differ: one occurs more than once in the header")

    def records() -> Iterator[Record]:
        for line, line_end in lines:
            if not line:  # a blank line is no record
                continue
            fields = _fields(line)
            if len(fields) != len(header):
                raise SchemaError("a record of the CSV file has another number of fields than its header")
            yield fields, line_end

    return header, end, names, records()


def numbers(fields: list[bytes], name: str) -> FloatArray:
    """A column as float64; missing entries become NaN.

    Raises
    ------
    TypeError
        Something is not a number: the column is named, the text is not.
    """
    try:
        if b"_" not in b" ".join(fields):  # float() would read 1_0 as ten
            return np.array(fields, dtype=np.bytes_).astype(np.float64)
    except ValueError:
        pass
    return np.array([_number(text(field).strip(), name) for field in fields])


def _number(word: bytes, name: str) -> float:
    lower = word.lower()
    if lower in MISSING:
        return float("nan")
    if lower in WORDS:
        return WORDS[lower]
    try:
        if b"_" not in word:
            return float(word)
    except ValueError:
        pass
    raise TypeError(f"column {name!r} has dtype text; it must be numeric")
