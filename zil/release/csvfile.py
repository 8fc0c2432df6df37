"""CSV as bytes: fields that are not noised pass through exactly as they were written.

One strict grammar, RFC 4180, and no repair (src/c/csv_scan.h): a quotation mark opens a field only as its first
character, and only a comma or the end of the line follows the one that closes it.  Anything else has more than one
reading, and a record that swallows its neighbour would publish the neighbour's cells.  Lines end with CR LF or LF,
and both keep their form; a blank line is no record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import IO

import numpy as np
from numpy.typing import NDArray

from zil._core import csvtext
from zil._validate import FloatArray, SchemaError

BLOCK = 1 << 20  # bytes read at a time
LONGEST = 1 << 23  # bytes of one record; a quote that is never closed must not swallow the file
MOST = 1 << 20  # fields of one record
MISSING = {b"", b"na", b"n/a", b"nan", b"null", b"none", b"<na>"}
WORDS = {b"true": 1.0, b"false": 0.0}
BOM = b"\xef\xbb\xbf"
ENDS = (b"", b"\n", b"\r\n")  # by zil_csv_end

FAULTS = {
    1: "has a quotation mark inside a field that does not begin with one",
    2: "has something other than a comma or the end of the line after a closing quotation mark",
    3: "has a carriage return without a line feed",
    4: "has a zero byte: is it UTF-8?",
    5: "has another number of fields than the header",
    6: "begins or continues a quoted field that the file never closes",
}


class Part:
    """Some records: their bytes, and where each field lies in them.

    Attributes
    ----------
    data : bytes
    spans : (n, columns, 2) int64 array
        Begin and end of each field as written, quotation marks included.
    ends : (n,) uint8 array
        How each line ends: 0 not at all (the last of a file), 1 LF, 2 CR LF.
    """

    __slots__ = ("data", "ends", "spans")

    def __init__(self, data: bytes, spans: NDArray[np.int64], ends: NDArray[np.uint8]) -> None:
        self.data, self.spans, self.ends = data, spans, ends

    def __len__(self) -> int:
        return len(self.ends)

    def fields(self, column: int) -> list[bytes]:
        """A column as written."""
        data = self.data
        return [data[begin:end] for begin, end in self.spans[:, column].tolist()]

    def numbers(self, column: int, name: str) -> FloatArray:
        """A column as float64; missing entries become NaN.

        Raises
        ------
        TypeError
            Something is not a number: the column is named, the text is not.
        SchemaError
            A field is longer than any number.
        """
        values, undecided = np.empty(len(self)), np.empty(len(self), np.int64)
        count = csvtext.numbers(self.data, self.spans, column, values, undecided)
        for row in undecided[:count].tolist():
            begin, end = self.spans[row, column].tolist()
            if end - begin > csvtext.LONGEST:
                raise SchemaError(f"column {name!r} has a field that is too long for a number")
            values[row] = _word(text(self.data[begin:end]).strip(), name)
        return values

    def chosen(self, wanted: NDArray[np.bool_]) -> Part:
        return Part(self.data, np.ascontiguousarray(self.spans[wanted]), np.ascontiguousarray(self.ends[wanted]))


def text(field: bytes) -> bytes:
    """What a field says: without its quotes."""
    return field[1:-1].replace(b'""', b'"') if field.startswith(b'"') else field


def quoted(name: str) -> bytes:
    """A text as a field."""
    raw = name.encode("utf-8")
    return b'"' + raw.replace(b'"', b'""') + b'"' if re.search(rb'[",\r\n]', raw) else raw


def _word(word: bytes, name: str) -> float:
    lower = word.lower()
    if lower in MISSING:
        return float("nan")
    if lower in WORDS:
        return WORDS[lower]
    try:
        if b"_" not in word:  # float() would read 1_0 as ten
            return float(word)
    except ValueError:
        pass
    raise TypeError(f"column {name!r} has dtype text; it must be numeric")


def _like_a_cell(name: bytes) -> bool:
    """Whether a name of the header reads as a number or as a missing entry: then the line may be a record."""
    try:
        _word(name.strip(), "")
    except TypeError:
        return False
    return bool(name.strip())


class Reader:
    """A CSV file: its header at once, its records batch by batch.

    Parameters
    ----------
    handle
        Open for reading bytes, at its beginning.
    header : None, True, or sequence of str
        None: the first line holds the names, none of which may read as a number.  True: it holds them, whatever they
        look like.  Names: the file has no such line, and these are the names of its columns.

    Attributes
    ----------
    names : list of str
    top : bytes
        The header line as it is to be written, without its end.
    fields : list of bytes
        Its fields as written.
    end : bytes
        Its end.

    Raises
    ------
    SchemaError
        Not this grammar (the line is numbered, nothing of it is shown), no header, names that repeat.
    """

    def __init__(self, handle: IO[bytes], header: bool | Sequence[str] | None = None) -> None:
        self._handle, self._rest, self._over = handle, b"", False
        self._lines = 0  # line feeds in what was consumed
        self._fill()
        self.bom = BOM if self._rest.startswith(BOM) else b""
        self._rest = self._rest.removeprefix(BOM)
        if isinstance(header, bool) or header is None:
            self._take_header(checked=header is None)
        else:
            self.names = list(header)
            self.fields, self.end = [quoted(name) for name in self.names], b"\n"
        if len(set(self.names)) != len(self.names):
            raise SchemaError("column names must differ: one occurs more than once in the header")
        self.width = len(self.names)

    def _take_header(self, checked: bool) -> None:
        part = self._scan(0, 1)
        if part is None:
            raise SchemaError("the CSV file is empty")
        self.fields = (
            part.fields(0) if part.spans.shape[1] == 1 else [f[0] for f in map(part.fields, range(part.spans.shape[1]))]
        )
        self.end = ENDS[int(part.ends[0])]
        plain = [text(field) for field in self.fields]
        if checked and any(map(_like_a_cell, plain)):
            raise SchemaError(
                "the first line of the CSV file holds numbers or missing entries where names are expected: is it a "
                "record? Say header=[names] if the file has no line of names, header=True if these are names"
            )
        try:
            self.names = [field.decode("utf-8") for field in plain]
        except UnicodeDecodeError:
            raise SchemaError("the header of the CSV file is not UTF-8") from None

    def _fill(self) -> None:
        block = self._handle.read(BLOCK)
        self._over = not block
        self._rest += block

    def _scan(self, width: int, most: int) -> Part | None:
        """At most ``most`` records of ``width`` fields (0: the header); None at the end of the file."""
        while True:
            room = MOST if width == 0 else max(min(most * width, len(self._rest) + 1), width)
            spans = np.empty((room, 2), np.int64)
            ends = np.empty(max(most if width == 0 else min(most, room // width), 1), np.uint8)
            status, records, fields, consumed, lines = csvtext.scan(
                self._rest, self._over, width, len(ends), spans, ends
            )
            if status:
                raise SchemaError(f"line {self._lines + lines + 1} of the CSV file {FAULTS[status]} (RFC 4180)")
            data, self._rest = self._rest, self._rest[consumed:]
            self._lines += lines
            if records:
                width = width or fields
                return Part(data, spans[: records * width].reshape(records, width, 2), ends[:records])
            if self._over:
                return None
            if len(self._rest) > LONGEST:
                raise SchemaError(
                    f"the record at line {self._lines + 1} of the CSV file is too long: is a quote never closed?"
                )
            self._fill()

    def batches(self, size: int) -> Iterator[Part]:
        """The records that follow, at most ``size`` at a time."""
        while (part := self._scan(self.width, size)) is not None:
            yield part
