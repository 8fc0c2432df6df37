"""CSV files as people have them and as they break, and what must hold of a release of any of them.

Every protected cell of a table is an odd whole number of twelve random digits, and the lattice of the release has a
step of many ones: so a cell can be recognised wherever it turns up, and it may turn up nowhere, not even in a row that
gets no noise.  `check` reads a file with zil's reader and with two independent ones, releases it through the same
source and sink as `Mechanism.release_file` (with the noise of a public key), and looks at the bytes.
Used by tools/fuzz_csv.py and tests/release/test_csv_fuzz.py.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import zil
from zil.release import csvfile, files, forms, integrity, rows
from zil.release.keystream import Key

PROTECTED = ("a", "b")
TOP = 1e12
MECHANISM = zil.Mechanism(dict.fromkeys(PROTECTED, (0, TOP)), zero_prob=0.3, scale=1e11)
STEP = float(MECHANISM.tick.min())
assert STEP >= 2, "an odd number would be on the lattice"
REFUSALS = (ValueError, TypeError)  # SchemaError is a ValueError

FIELD = re.compile(rb'"(?:[^"\0]|"")*"|[^",\r\n\0]*')
END = re.compile(rb"\r\n|\n|\Z")
TOKEN = re.compile(rb"(?<![0-9])[0-9]{12}(?![0-9])")
MUTATIONS = (
    b'"', b'""', b'"\n', b'\n"', b'",', b',"', b",", b"\n", b"\r\n", b"\r", b'\\"', b"\\", b"'", b";", b"\t", b" ",
    b"\0", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85", b"\xff", b"\x1a", b"\x0b", b"\x0c", b"#", b"=", b"-", b"1e5",
    b"nan", b"",
)  # fmt: skip


class Leak(AssertionError):
    """A property that must hold of every file does not hold of this one."""


def table(rng: np.random.Generator) -> tuple[list[list[str]], list[int]]:
    """Header and records as text, and the numbers of the protected cells."""
    n = int(rng.integers(1, 9))
    names = ["id", "a", "b", "note"]
    if rng.integers(3) == 0:
        names.append(str(rng.choice(["x y", "ü", 'q"q', "c,d", "two\nlines"])))
    order = rng.permutation(len(names))
    notes = ["", "ok", '5" pipe', "a, b", "two\nlines", "two\r\nlines", '""', " pad ", "\\", 'say ""x""', "é", ",", '"']
    cells: list[int] = []
    records = []
    for row in range(n):
        record = []
        for name in names:
            if name in PROTECTED:
                cells.append(int(rng.integers(5 * 10**10, 5 * 10**11)) * 2 + 1)
                record.append(str(cells[-1]))
            else:
                record.append(str(row) if name == "id" else str(rng.choice(notes)))
        records.append([record[k] for k in order])
    return [[names[k] for k in order], *records], cells


def written(rng: np.random.Generator, text: list[list[str]]) -> bytes:
    """The table in one of many dialects, not all of which zil reads."""
    dialect = int(rng.integers(20))  # from 8 on plain
    end = b"\n" if rng.integers(2) else b"\r\n"
    comma, always, escape = b",", dialect == 1, dialect == 2
    if dialect == 3:
        comma = b";" if rng.integers(2) else b"\t"
    lines = []
    for record in text:
        fields = []
        for field in record:
            raw = field.encode()
            if dialect == 4 and rng.integers(4) == 0:
                raw = b" " + raw
            special = re.search(rb'[",\r\n]', raw)
            if escape and special:
                raw = b'"' + raw.replace(b'"', b'\\"') + b'"'
            elif dialect == 5 and special and b"\n" not in raw and b"," not in raw:
                pass  # quotation marks as they are
            elif special or always or (dialect == 6 and rng.integers(2)):
                raw = b'"' + raw.replace(b'"', b'""') + b'"'
            fields.append(raw)
        lines.append(comma.join(fields))
        if dialect == 7 and rng.integers(4) == 0:
            lines.append(b"")
    data = end.join(lines) + (end if rng.integers(4) else b"")
    return b"\xef\xbb\xbf" + data if rng.integers(10) == 0 else data


def mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """One to three small accidents."""
    for _ in range(int(rng.choice([1, 1, 1, 2, 2, 3]))):
        at = int(rng.integers(len(data) + 1))
        kind = int(rng.integers(10))
        piece = MUTATIONS[int(rng.integers(len(MUTATIONS)))]
        length = int(rng.integers(1, 4))
        if kind < 5:
            data = data[:at] + piece + data[at:]
        elif kind < 6:
            data = data[:at] + piece + data[at + length :]
        elif kind < 7:
            data = data[:at] + data[at + length :]
        elif kind < 8:
            other = int(rng.integers(len(data) + 1))
            low, high = sorted((at, other))
            data = data[:low] + data[high : high + length] + data[low:]
        elif kind < 9:  # a field is put into quotation marks, or loses them
            places = [m.start() for m in re.finditer(rb"[,\n]", data)] or [0]
            low = places[int(rng.integers(len(places)))] + 1
            data = data[:low] + b'"' + data[low:] if rng.integers(2) else data[:low] + data[low:].replace(b'"', b"", 1)
        else:
            data = data[:at]
    return data


def strict(data: bytes) -> list[tuple[list[bytes], bytes]] | None:
    """RFC 4180 by two regular expressions: fields as written and the end of each line; None if it is not that."""
    at, records = 0, []
    while at < len(data):
        fields = []
        while True:
            field = FIELD.match(data, at)
            assert field is not None  # it may be empty
            fields.append(field[0])
            at = field.end()
            if data[at : at + 1] != b",":
                break
            at += 1
        end = END.match(data, at)
        if end is None:
            return None
        at = end.end()
        if fields != [b""]:
            records.append((fields, end[0]))
    return records


def by_library(data: bytes) -> list[list[str]]:
    """Python's csv; bytes as they are, one character each."""
    return [r for r in csv.reader(io.StringIO(data.decode("latin-1"), newline=""), strict=True) if r]


def by_pyarrow(data: bytes) -> list[list[bytes]]:
    import pyarrow as pa
    from pyarrow import csv as arrow

    read = arrow.read_csv(
        io.BytesIO(data),
        read_options=arrow.ReadOptions(use_threads=False, autogenerate_column_names=True, block_size=1 << 20),
        parse_options=arrow.ParseOptions(newlines_in_values=True),
        convert_options=arrow.ConvertOptions(
            check_utf8=False, strings_can_be_null=False, column_types={f"f{k}": pa.binary() for k in range(64)}
        ),
    )
    return [list(row) for row in zip(*(column.to_pylist() for column in read.columns), strict=True)]


def said(field: bytes) -> float:
    word = field.strip().lower()
    return {b"true": 1.0, b"false": 0.0}[word] if word in (b"true", b"false") else float(word)


@dataclass
class Memory:
    """What stands for a snapshot of a file."""

    data: bytes

    def open(self) -> io.BytesIO:
        return io.BytesIO(self.data)


def locate(present: list[str]) -> list[str]:
    if missing := [name for name in PROTECTED if name not in present]:
        raise zil.SchemaError(f"column {missing[0]!r} is not in the table")
    return list(PROTECTED)


def released(data: bytes, size: int, key: bytes = bytes(range(32))) -> tuple[bytes, np.ndarray, np.ndarray]:
    """What zil would publish of a file, the noised numbers, and the numbers that it read."""
    source = forms.CsvSource(Memory(data), forms.Wanted(locate, PROTECTED, None, None, None, None), "csv")
    for batch in source.batches(size, first=True):  # every refusal comes before any draw
        if not np.isfinite(batch.values).all():
            raise zil.SchemaError("a missing entry")
    out = io.BytesIO()
    sink = forms.CsvSink(source, out)
    before, after = [np.empty((0, 2))], [np.empty((0, 2))]
    with Key(bytearray(key)) as secret:
        for batch in source.batches(size):
            noisy = rows.certified(
                batch.values,
                MECHANISM._grid,
                MECHANISM._in_ticks,
                MECHANISM.zero_prob,
                secret,
                first_row=sum(map(len, after)),
                n_threads=1,
            )
            sink.write(batch.rest, noisy)
            before.append(batch.values)
            after.append(noisy)
    return out.getvalue(), np.concatenate(after), np.concatenate(before)


def tokens(records: list[list[bytes]], names: list[bytes]) -> set[bytes]:
    """Protected cells as another parser finds them."""
    places = [names.index(name.encode()) for name in PROTECTED]
    return {digits for record in records for k in places for digits in TOKEN.findall(record[k])}


def check(data: bytes, cells: list[int], *, size: int = 3, arrow: bool = True, block: int | None = None) -> str:
    """ "refused" or "released" or "empty"; Leak if a property does not hold of this file."""
    expected = strict(data.removeprefix(b"\xef\xbb\xbf"))
    sound = expected is not None and len({len(fields) for fields, _ in expected}) == 1
    kept = csvfile.BLOCK
    csvfile.BLOCK = block or kept
    try:
        out, published, read = released(data, size)
    except REFUSALS as error:
        message = str(error)
        if any(str(cell)[:6] in message for cell in cells):
            raise Leak("a message shows a cell") from None
        if sound and "RFC 4180" in message:
            raise Leak("a file of the grammar was refused for its grammar") from None
        if "RFC 4180" in message and not re.search(r"line [1-9][0-9]* of the CSV file", message):
            raise Leak("a refusal without the number of its line") from None
        return "refused"
    finally:
        csvfile.BLOCK = kept
    if expected is None or not sound:
        raise Leak("a file that is not of the grammar was read")
    names = [csvfile.text(field) for field in expected[0][0]]
    plain = [[csvfile.text(field) for field in fields] for fields, _ in expected]
    library = by_library(data.removeprefix(b"\xef\xbb\xbf"))
    if [[field.encode("latin-1") for field in record] for record in library] != plain:
        raise Leak("Python's csv reads other records")
    if arrow and plain[1:] and by_pyarrow(data.removeprefix(b"\xef\xbb\xbf")) != plain:
        raise Leak("pyarrow reads other records")
    records = plain[1:]
    places = [names.index(name.encode()) for name in PROTECTED]
    if len(records) != len(published):
        raise Leak("another number of rows")
    if [[said(record[k]) for k in places] for record in records] != read.tolist():
        raise Leak("other numbers were read")
    if not records:
        return "empty"
    if (np.rint(published / MECHANISM.tick) * MECHANISM.tick != published).any():
        raise Leak("off the lattice")
    again = strict(out.removeprefix(b"\xef\xbb\xbf"))
    if again is None or [end for _, end in again[:-1]] != [end or b"\n" for _, end in expected[:-1]]:
        raise Leak("the copy is not of the grammar, or its line ends differ")
    for (fields, _), (noisy, _), numbers in zip(expected[1:], again[1:], published.tolist(), strict=True):
        wanted = list(fields)
        for k, number in zip(places, numbers, strict=True):
            wanted[k] = repr(number).encode()
        if noisy != wanted:
            raise Leak("a record of the copy is not that of the source with its noised fields replaced")
    look_for(tokens(records, names), cells, out, expected, places)
    return "released"


def look_for(
    found: set[bytes], cells: list[int], out: bytes, expected: list[tuple[list[bytes], bytes]], places: list[int]
) -> None:
    """No protected cell in the output: neither as parsed nor as it was planted, unless it stood in a passed field."""
    passed = {
        digits
        for fields, _ in expected
        for k, field in enumerate(fields)
        if k not in places
        for digits in TOKEN.findall(field)
    }
    shown = set(TOKEN.findall(out))
    if (found - passed) & shown:
        raise Leak("a protected cell is in the output")
    if ({str(cell).encode() for cell in cells} - passed) & shown:
        raise Leak("a cell that was planted as protected is in the output")


def whole(data: bytes, cells: list[int], folder: Path, ending: str = "csv") -> str:
    """The same through the ledger and the disk; "refused" or "released", Leak if a cell lies about afterwards."""
    source, public = folder / "in.csv", folder / "public"
    public.mkdir(exist_ok=True)
    source.write_bytes(data)
    target = public / f"out.{ending}"
    outcome = "released"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            MECHANISM.release_file(source, target, ledger=folder / "book", n_threads=1)
    except REFUSALS as error:
        outcome = "refused"
        if any(str(cell)[:6] in str(error) for cell in cells):
            raise Leak("a message shows a cell") from None
        if list(public.iterdir()):
            raise Leak("a refused release left a file") from None
    else:
        expected = strict(data.removeprefix(b"\xef\xbb\xbf"))
        if expected is None:
            raise Leak("a file that is not of the grammar was released")
        names = [csvfile.text(field) for field in expected[0][0]]
        records = [[csvfile.text(field) for field in fields] for fields, _ in expected[1:]]
        places = [names.index(name.encode()) for name in PROTECTED]
        if ending == "csv":
            text = target.read_bytes() + files.sidecar(target).read_bytes()
        else:
            import pyarrow.parquet as pq

            text = repr(pq.read_table(target).to_pylist()).encode() + repr(integrity.footer_text(target)).encode()
        look_for(tokens(records, names), cells, text, expected, places)
    for path in [*public.iterdir(), folder / "book", Path(f"{folder / 'book'}-journal")]:
        path.unlink(missing_ok=True)
    return outcome


def parity(data: bytes) -> bytes:
    """The naive control: records and fields by the parity of quotation marks, as one would first write it."""

    def joined(parts: list[bytes], by: bytes) -> list[bytes]:
        result: list[bytes] = []
        begun: bytes | None = None
        for part in parts:
            whole = part if begun is None else begun + by + part
            begun = whole if whole.count(b'"') % 2 else None
            if begun is None:
                result.append(whole)
        return result

    lines = [joined(line.split(b","), b",") for line in joined(data.split(b"\n"), b"\n") if line]
    places = [lines[0].index(name.encode()) for name in PROTECTED]
    if any(len(line) != len(lines[0]) for line in lines):
        raise ValueError("another number of fields")
    for line in lines[1:]:
        for k in places:
            line[k] = b"%r" % (float(line[k].strip(b'" \r')) + 65536.0)
    return b"\n".join(b",".join(line) for line in lines)


def naive_leaks(data: bytes, cells: list[int]) -> bool:
    """Whether the naive control publishes a cell that was planted as protected."""
    try:
        out = parity(data)
    except (ValueError, IndexError):
        return False
    return bool({str(cell).encode() for cell in cells} & set(TOKEN.findall(out)))
