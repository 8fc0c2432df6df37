"""Files as `release_file` reads and writes them: batches of records, and what passes through untouched.

A source is read through a `Snapshot`; a sink takes batches of it with the noised columns apart.  CSV to CSV copies
the bytes of every field that is not noised; all other pairs go through Arrow.  Row groups of a Parquet file have a
fixed size and a CSV file has none, so the size of a batch changes memory and nothing else.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from zil import _tables, _travel
from zil._core import csvtext
from zil._validate import FloatArray, SchemaError
from zil.release import csvfile, integrity, kinds, rowids, stored
from zil.release.snapshot import Snapshot

GROUP_ROWS = 65_536  # of a Parquet row group
TYPES = {
    "text": "string", "integer": "int64", "number": "float64", "boolean": "bool", "date": "date32",
    "timestamp": "timestamp[us]",
}  # fmt: skip

Locate = Callable[[list[str]], list[str]]


@dataclass(frozen=True)
class Wanted:
    """What a call says of the columns of its source."""

    locate: Locate
    protected: Sequence[Any]
    columns: Sequence[str] | None
    row_id: str | None
    header: bool | Sequence[str] | None
    types: Mapping[str, str] | None


@dataclass
class Batch:
    """Some records: the noised columns (n, d) as numbers, what gives the row ids, and all in the source's own form."""

    values: FloatArray
    ids: Callable[[], list[str]] | None
    rest: Any

    def chosen(self, mine: NDArray[np.bool_]) -> Batch:
        rest = self.rest.chosen(mine) if isinstance(self.rest, csvfile.Part) else self.rest.filter(mine)
        return Batch(self.values[mine], None, rest)


class CsvSource:
    """A CSV file, batch by batch."""

    ending = "csv"

    def __init__(self, snapshot: Snapshot, wanted: Wanted, target: str) -> None:
        self._snapshot, self._header = snapshot, wanted.header
        with snapshot.open() as handle:
            reader = csvfile.Reader(handle, wanted.header)
        self.names, self.has_header = reader.names, wanted.header is None or wanted.header is True
        self.located = _located(wanted, self.names, shown=False)
        columns = wanted.columns
        self.kept = [name for name in self.names if columns is None or name in columns]
        self._noised = [self.names.index(name) for name in self.located]
        self._id = None if wanted.row_id is None else self.names.index(wanted.row_id)
        self._row_id = wanted.row_id
        kept = [self.names.index(name) for name in self.kept]
        self.places = np.array([-1 - self._noised.index(k) if k in self._noised else k for k in kept], dtype=np.int64)
        self.top = reader.bom + b",".join([reader.fields[k] for k in kept]) + (reader.end or b"\n")
        self.passed = [(k, self.names[k]) for k in kept if k not in self._noised]
        if wanted.types is not None and target == "csv":
            raise ValueError("types are for a Parquet dst: in a CSV file every field stays as it is written")
        self._kinds = _Kinds(self, wanted.types) if target == "parquet" else None

    def batches(self, size: int, *, first: bool = False) -> Iterator[Batch]:
        """At most ``size`` records at a time; ``first`` if nobody has looked at the fields that pass through."""
        with self._snapshot.open() as handle:
            for part in csvfile.Reader(handle, self._header).batches(size):
                values = np.empty((len(part), len(self._noised)))
                for j, k in enumerate(self._noised):
                    values[:, j] = part.numbers(k, self.names[k])
                ids = None if self._id is None else functools.partial(self._ids, part, self._id)
                if first and self._kinds is not None:
                    self._kinds.look(part)
                yield Batch(values, ids, part)

    def _ids(self, part: csvfile.Part, column: int) -> list[str]:
        return rowids.of_fields(map(csvfile.text, part.fields(column)), str(self._row_id))

    def schema(self) -> Any:
        """Arrow types of the columns kept, for a Parquet sink; only after a first reading."""
        import pyarrow as pa

        assert self._kinds is not None
        return pa.schema(
            [
                pa.field(name, pa.float64() if name in self.located else pa.type_for_alias(self._kinds.of(name)))
                for name in self.kept
            ]
        )

    def arrow(self, part: csvfile.Part, schema: Any) -> dict[str, Any]:
        """Columns that pass through, as Arrow arrays."""
        return {name: typed(part.fields(k), schema.field(name).type, name) for k, name in self.passed}


class _Kinds:
    """What the columns of a CSV file become in a Parquet file: as declared, else as plain as all entries are."""

    def __init__(self, source: CsvSource, types: Mapping[str, str] | None) -> None:
        self._declared = dict(types or {})
        for name, kind in self._declared.items():
            if name not in source.names:
                raise SchemaError(f"types names {name!r}, which the header of src has not")
            if name in source.located:
                raise ValueError(f"types names {name!r}, which is noised and so a number")
            if kind not in TYPES:
                raise ValueError(f"types of {name!r} must be one of {', '.join(TYPES)}, got {kind!r}")
        self._columns = {name: (k, kinds.Column()) for k, name in source.passed if name not in self._declared}

    def look(self, part: csvfile.Part) -> None:
        """Narrow down what the undeclared columns can be; every record of the file comes by here."""
        for k, column in self._columns.values():
            column.look(part.fields(k))

    def of(self, name: str) -> str:
        return TYPES[self._declared.get(name) or self._columns[name][1].kind]


def typed(fields: list[bytes], kind: Any, name: str) -> Any:
    """CSV fields as an Arrow array; an empty field is missing, and "" is the empty text.

    Raises
    ------
    SchemaError
        A field is not of this type, or not UTF-8; the column is named.
    """
    import pyarrow as pa

    plain = [csvfile.text(field) if field else None for field in fields]
    try:
        found = pa.array(plain, pa.binary()).cast(pa.string())
        return found if pa.types.is_string(kind) else found.cast(kind)
    except pa.ArrowException:
        raise SchemaError(f"column {name!r} has a field that is not of type {kind}") from None


class ParquetSource:
    """A Parquet file, batch by batch."""

    ending = "parquet"

    def __init__(self, snapshot: Snapshot, wanted: Wanted, target: str) -> None:
        if wanted.header is not None:
            raise ValueError("header is for a CSV src: a Parquet file has names")
        if wanted.types is not None:
            raise ValueError("types are for a CSV src: a Parquet file has types")
        self._snapshot, self._row_id = snapshot, wanted.row_id
        schema = self._open().schema_arrow
        self.names = list(schema.names)
        if len(set(self.names)) != len(self.names):
            raise SchemaError("column names must differ")
        self.located = _located(wanted, self.names, shown=True)
        self.kept = [name for name in self.names if wanted.columns is None or name in wanted.columns]
        self._passed = [name for name in self.kept if name not in self.located]
        self._read = list(dict.fromkeys([*self.kept, *([wanted.row_id] if wanted.row_id else [])]))
        self._schema = _published_schema(schema, self.kept, self.located, target)
        self._categories = _travel.Categories()

    def _open(self) -> Any:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self._snapshot.open())
        except (pa.ArrowException, OSError):
            raise SchemaError("the source is not a Parquet file, or a damaged one") from None

    def batches(self, size: int, *, first: bool = False) -> Iterator[Batch]:
        import pyarrow as pa

        pieces = self._open().iter_batches(batch_size=size, columns=self._read)
        while True:
            try:
                piece = next(pieces, None)
            except (pa.ArrowException, OSError):
                raise SchemaError("the source is not a Parquet file, or a damaged one") from None
            if piece is None:
                return
            table = pa.Table.from_batches([piece])
            if first:
                self._categories.see(table.select(self._passed))
            values = _tables.to_float(table, self.located, allow_missing=True, allow_infinite=True)
            ids = None if self._row_id is None else functools.partial(self._ids, table, self._row_id)
            yield Batch(values, ids, table)

    def _ids(self, table: Any, name: str) -> list[str]:
        return rowids.of_values(table.column(name).to_pylist(), name)

    def schema(self) -> Any:
        return self._schema

    def arrow(self, table: Any, schema: Any) -> dict[str, Any]:
        """Columns that pass through, as Arrow arrays of the published types."""
        import pyarrow as pa

        passed = self._categories.apply(table.select(self._passed))
        try:
            return {name: passed.column(name).cast(schema.field(name).type) for name in self._passed}
        except pa.ArrowException:
            raise SchemaError("a column that passes through cannot be written to a CSV file") from None


def _published_schema(schema: Any, kept: list[str], located: list[str], target: str) -> Any:
    """Types of what is published, and nothing else that a schema can carry."""
    import pyarrow as pa

    clean = _travel.clean_schema(schema, kept, located)
    if target == "parquet":
        for field in clean:
            if pa.types.is_time64(field.type) and field.type.unit == "ns":  # pandas has no such time of day
                raise SchemaError(f"column {field.name!r} has type {field.type}: turn it into microseconds first")
        return clean
    fields = list(clean)
    for k, field in enumerate(fields):  # text has no dictionaries
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        if getattr(pa.types, "is_string_view", lambda kind: False)(kind):
            kind = pa.string()
        if not _plain(kind):
            raise SchemaError(f"column {field.name!r} has type {field.type}, which does not come back from a CSV file")
        fields[k] = pa.field(field.name, kind)
    return pa.schema(fields)


def _plain(kind: Any) -> bool:
    """Whether pyarrow writes a type into a CSV file and reads the same from it."""
    import pyarrow.types as t

    return bool(
        t.is_integer(kind)
        or (t.is_floating(kind) and not t.is_float16(kind))
        or t.is_boolean(kind)
        or t.is_decimal128(kind)
        or t.is_string(kind)
        or t.is_large_string(kind)
        or t.is_date(kind)
        or t.is_timestamp(kind)
        or t.is_time32(kind)
        or (t.is_time64(kind) and kind.unit != "ns")
    )


Source = CsvSource | ParquetSource


class CsvSink:
    """CSV from CSV: every field that is not noised is copied as it stands."""

    def __init__(self, source: CsvSource, handle: IO[bytes]) -> None:
        self._source, self._sink = source, integrity.Sink(handle)
        self._last = b""

    def _put(self, block: bytes) -> None:
        self._sink.write(block)
        self._last = block

    def copy(self, old: Path) -> None:
        """Start with the records of an earlier release."""
        with open(old, "rb") as handle:
            if handle.read(len(self._source.top)) != self._source.top:
                raise SchemaError("the columns of the file to append to differ from those of the source")
            handle.seek(0)
            while block := handle.read(integrity.BLOCK):
                self._put(block)

    def write(self, part: csvfile.Part, published: FloatArray) -> None:
        if not self._last:
            self._put(self._source.top)
        if not self._last.endswith(b"\n"):  # the last line so far had no end
            self._put(b"\n")
        self._put(csvtext.rewrite(part.data, part.spans, part.ends, self._source.places, published))

    def finish(self, described: dict[str, Any]) -> dict[str, Any]:
        return integrity.seal_csv(self._sink, described)

    def close(self) -> None:
        pass


class _ArrowSink:
    """What the two sinks through Arrow have in common: the batch as a table of the published schema."""

    def __init__(self, source: Source, handle: IO[bytes]) -> None:
        self._source, self._sink = source, integrity.Sink(handle)
        self.schema = source.schema()

    def write(self, rest: Any, published: FloatArray) -> None:
        import pyarrow as pa

        columns = self._source.arrow(rest, self.schema)
        for k, name in enumerate(self._source.located):
            columns[name] = pa.array(np.ascontiguousarray(published[:, k]))
        self._add(pa.table([columns[name] for name in self.schema.names], schema=self.schema))

    def _add(self, table: Any) -> None:
        raise AssertionError("every sink has its own")


class ArrowCsvSink(_ArrowSink):
    """CSV from Parquet; the types travel in the metadata, as in `Release.save`."""

    def __init__(self, source: Source, handle: IO[bytes]) -> None:
        super().__init__(source, handle)
        self._writer: Any = None

    def copy(self, old: Path) -> None:
        top = io.BytesIO()
        self._open(top).close()
        with open(old, "rb") as handle:
            if handle.readline() != top.getvalue():
                raise SchemaError("the columns of the file to append to differ from those of the source")
            handle.seek(0)
            while block := handle.read(integrity.BLOCK):
                self._sink.write(block)
        self._writer = self._open(self._sink, include_header=False)

    def _open(self, sink: Any, include_header: bool = True) -> Any:
        import pyarrow.csv

        return pyarrow.csv.CSVWriter(
            sink, self.schema, write_options=pyarrow.csv.WriteOptions(include_header=include_header)
        )

    def _add(self, table: Any) -> None:
        if self._writer is None:
            self._writer = self._open(self._sink)
        self._writer.write_table(table)

    def finish(self, described: dict[str, Any]) -> dict[str, Any]:
        self.close()
        types = stored.types_text(self.schema.remove_metadata().empty_table())
        return integrity.seal_csv(self._sink, {**described, "arrow_schema": types})

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class ParquetSink(_ArrowSink):
    """Parquet in row groups of a fixed size."""

    def __init__(self, source: Source, handle: IO[bytes]) -> None:
        import pyarrow.parquet as pq

        super().__init__(source, handle)
        self._writer = pq.ParquetWriter(self._sink, integrity.marked(self.schema))
        self._parts: list[Any] = []
        self._rows = 0
        self._finished = False

    def copy(self, old: Path) -> None:
        """Start with the rows of an earlier release."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(old) as source:
            if not source.schema_arrow.remove_metadata().equals(self.schema.remove_metadata()):
                raise SchemaError("the columns of the file to append to differ from those of the source")
            for piece in source.iter_batches(batch_size=GROUP_ROWS):
                self._add(pa.Table.from_batches([piece]).cast(self.schema))

    def _add(self, table: Any) -> None:
        self._parts.append(table)
        self._rows += len(table)
        while self._rows >= GROUP_ROWS:
            self._flush(GROUP_ROWS)

    def _flush(self, count: int) -> None:
        import pyarrow as pa

        whole = pa.concat_tables(self._parts)
        self._writer.write_table(whole.slice(0, count).combine_chunks(), row_group_size=GROUP_ROWS)
        self._parts = [whole.slice(count)]
        self._rows -= count

    def finish(self, described: dict[str, Any]) -> dict[str, Any]:
        if self._rows:
            self._flush(self._rows)
        self._finished = True
        return integrity.seal_parquet(self._sink, self._writer, described)

    def close(self) -> None:
        if not self._finished:
            self._sink.muted = True  # no footer that would make half a file look whole
            self._writer.close()


Sink = CsvSink | ArrowCsvSink | ParquetSink


def open_source(ending: str, snapshot: Snapshot, wanted: Wanted, target: str) -> Source:
    """The source of this format, for a destination of that one."""
    return (CsvSource if ending == "csv" else ParquetSource)(snapshot, wanted, target)


def open_sink(source: Source, target: str, handle: IO[bytes]) -> Sink:
    if target == "parquet":
        return ParquetSink(source, handle)
    return CsvSink(source, handle) if isinstance(source, CsvSource) else ArrowCsvSink(source, handle)


def _located(wanted: Wanted, names: list[str], shown: bool) -> list[str]:
    """The noised columns, after checking every name that was asked for.

    ``shown=False`` keeps the names of the file out of messages: the first line of a CSV file could be a record.
    """
    try:
        located = wanted.locate(names)
    except SchemaError:
        if shown:
            raise
        hint = ""
        if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
            hint = ": fields must be separated by commas"
        absent = [name for name in wanted.protected if name not in names]
        raise SchemaError(
            f"column {', '.join(map(repr, absent))} not in the header of the CSV file, which has {len(names)} "
            f"column(s){hint}"
        ) from None
    columns = wanted.columns
    if columns is not None:
        if isinstance(columns, str):
            raise TypeError("columns must be a list of names, got one name")
        _check(list(columns), names, "column", shown)
        hidden = [name for name in located if name not in columns]
        if hidden:
            raise SchemaError(f"columns must hold every noised column, {hidden[0]!r} is missing")
    if wanted.row_id is not None:
        _check([wanted.row_id], names, "row id", shown)
        if wanted.row_id in located:
            raise SchemaError("the row id cannot be a noised column")
    return located


def _check(asked: list[Any], names: list[str], what: str, shown: bool) -> None:
    missing = [name for name in asked if name not in names]
    if missing and not shown:
        raise SchemaError(f"{what} {', '.join(map(repr, missing))} not in the header of the CSV file")
    _tables.check_names(asked, names, what)
