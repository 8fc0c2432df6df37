"""Files as `release_file` reads and writes them: batches of records, and what passes through untouched.

Row groups of a Parquet file have a fixed size and a CSV file has none, so the size of a batch
changes memory and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from zil import _tables
from zil._validate import FloatArray, SchemaError
from zil.release import csvfile, files
from zil.release import metadata as facts

GROUP_ROWS = 65_536  # of a Parquet row group

Locate = Callable[[list[str]], list[str]]


@dataclass
class Batch:
    """Some records: the noised columns (n, d) as numbers, row ids, and the rest in the file's own form."""

    values: FloatArray
    ids: list[bytes] | None
    rest: Any


class CsvForm:
    """A CSV file, batch by batch."""

    ending = "csv"

    def __init__(self, path: Path, locate: Locate, columns: Sequence[str] | None, row_id: str | None) -> None:
        self._path = path
        with open(path, "rb") as handle:
            _, _, self.names, _ = csvfile.read(handle, len)
        self.located = _locate(locate, self.names, columns, row_id)
        self._kept = [k for k, name in enumerate(self.names) if columns is None or name in columns]
        self._noised = [self.names.index(name) for name in self.located]
        self._id = None if row_id is None else self.names.index(row_id)
        self._header, self._end = b"", b"\n"

    @property
    def kept(self) -> list[str]:
        return [self.names[k] for k in self._kept]

    def batches(self, size: int, seen: Callable[[bytes], Any]) -> Iterator[Batch]:
        with open(self._path, "rb") as handle:
            header, self._end, _, records = csvfile.read(handle, seen)
            self._header = b",".join(header[k] for k in self._kept)
            part: list[csvfile.Record] = []
            for record in records:
                part.append(record)
                if len(part) == size:
                    yield self._batch(part)
                    part = []
            if part:
                yield self._batch(part)

    def _batch(self, part: list[csvfile.Record]) -> Batch:
        values = np.empty((len(part), len(self._noised)))
        for j, k in enumerate(self._noised):
            values[:, j] = csvfile.numbers([fields[k] for fields, _ in part], self.names[k])
        ids = None
        if self._id is not None:
            ids = [csvfile.text(fields[self._id]) for fields, _ in part]
            if any(word.lower() in csvfile.MISSING for word in ids):
                raise SchemaError(f"row id {self.names[self._id]!r} has missing entries")
        return Batch(values, ids, part)

    def writer(self, handle: IO[bytes]) -> _CsvWriter:
        return _CsvWriter(self, handle)

    def lines(self, records: list[csvfile.Record], published: FloatArray) -> bytes:
        """The records with the noised fields replaced, as they go to the file."""
        texts = [[repr(value).encode("ascii") for value in column] for column in published.T.tolist()]
        for k, column in zip(self._noised, texts, strict=True):
            for (fields, _), field in zip(records, column, strict=True):
                fields[k] = field
        if len(self._kept) == len(self.names):
            return b"".join([b",".join(fields) + end for fields, end in records])
        return b"".join([b",".join([fields[k] for k in self._kept]) + end for fields, end in records])

    def top(self) -> bytes:
        return self._header + (self._end or b"\n")


class _CsvWriter:
    def __init__(self, form: CsvForm, handle: IO[bytes]) -> None:
        self._form, self._sink = form, files.Hashing(handle)
        self._last = b""

    def _put(self, block: bytes) -> None:
        self._sink.write(block)
        self._last = block

    def copy(self, old: Path) -> None:
        """Start with the records of an earlier release."""
        with open(old, "rb") as handle:
            if handle.readline() != self._form.top():
                raise SchemaError("the columns of the file to append to differ from those of the source")
            handle.seek(0)
            while block := handle.read(files.BLOCK):
                self._put(block)

    def write(self, rest: list[csvfile.Record], published: FloatArray) -> None:
        if not self._last:
            self._put(self._form.top())
        if not self._last.endswith(b"\n"):  # the last line so far had no end
            self._put(b"\n")
        self._put(self._form.lines(rest, published))

    def finish(self, described: dict[str, Any]) -> dict[str, Any]:
        return {**described, **self._sink.digest()}

    def close(self) -> None:
        pass


class ParquetForm:
    """A Parquet file, batch by batch."""

    ending = "parquet"

    def __init__(self, path: Path, locate: Locate, columns: Sequence[str] | None, row_id: str | None) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._path, self._row_id = path, row_id
        try:
            with pq.ParquetFile(path) as source:
                schema = source.schema_arrow
        except pa.ArrowException:
            raise SchemaError("the source is not a Parquet file, or a damaged one") from None
        self.names = list(schema.names)
        if len(set(self.names)) != len(self.names):
            raise SchemaError("column names must differ")
        self.located = _locate(locate, self.names, columns, row_id)
        self.kept = [name for name in self.names if columns is None or name in columns]
        self._read = list(dict.fromkeys([*self.kept, *([row_id] if row_id else [])]))
        fields = [
            pa.field(name, pa.float64()) if name in self.located else schema.field(name).remove_metadata()
            for name in self.kept
        ]
        self.schema = pa.schema(fields, metadata=_pandas_part(schema.metadata))

    def batches(self, size: int, seen: Callable[[bytes], Any]) -> Iterator[Batch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with open(self._path, "rb") as handle:
            while block := handle.read(files.BLOCK):
                seen(block)
        with pq.ParquetFile(self._path) as source:
            for piece in source.iter_batches(batch_size=size, columns=self._read):
                table = pa.Table.from_batches([piece])
                values = _tables.to_float(table, self.located, allow_missing=True, allow_infinite=True)
                yield Batch(values, self._ids(table), table)

    def _ids(self, table: Any) -> list[bytes] | None:
        if self._row_id is None:
            return None
        found = table.column(self._row_id).to_pylist()
        if any(value is None or value != value for value in found):
            raise SchemaError(f"row id {self._row_id!r} has missing entries")
        return [str(value).encode("utf-8") for value in found]

    def writer(self, handle: IO[bytes]) -> _ParquetWriter:
        return _ParquetWriter(self, handle)


def _pandas_part(stored: dict[bytes, bytes] | None) -> dict[bytes, bytes] | None:
    """Of the key-value metadata only what pandas needs to rebuild its index; free-form attributes go."""
    if not stored or b"pandas" not in stored:
        return None
    told = json.loads(stored[b"pandas"])
    told.pop("attributes", None)
    return {b"pandas": json.dumps(told).encode("utf-8")}


class _ParquetWriter:
    def __init__(self, form: ParquetForm, handle: IO[bytes]) -> None:
        import pyarrow.parquet as pq

        self._form, self._sink = form, files.Hashing(handle)
        self._writer = pq.ParquetWriter(self._sink, form.schema)
        self._parts: list[Any] = []
        self._rows = 0
        self._finished = False

    def copy(self, old: Path) -> None:
        """Start with the rows of an earlier release."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(old) as source:
            if not source.schema_arrow.remove_metadata().equals(self._form.schema.remove_metadata()):
                raise SchemaError("the columns of the file to append to differ from those of the source")
            for piece in source.iter_batches(batch_size=GROUP_ROWS):
                self._add(pa.Table.from_batches([piece]).cast(self._form.schema))

    def write(self, rest: Any, published: FloatArray) -> None:
        import pyarrow as pa

        columns = {name: pa.array(np.ascontiguousarray(published[:, k])) for k, name in enumerate(self._form.located)}
        parts = [columns.get(name, rest.column(name)) for name in self._form.kept]
        self._add(pa.table(parts, schema=self._form.schema))

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
        result = {**described, **self._sink.digest()}
        self._writer.add_key_value_metadata({files.KEY: facts.dumps(result)})
        self._finished = True
        return result

    def close(self) -> None:
        self._sink.muted = not self._finished  # no footer that would make half a file look whole
        self._writer.close()


def _locate(locate: Locate, names: list[str], columns: Sequence[str] | None, row_id: str | None) -> list[str]:
    """The noised columns, after checking every name that was asked for."""
    located = locate(names)
    if columns is not None:
        if isinstance(columns, str):
            raise TypeError("columns must be a list of names, got one name")
        wanted = list(columns)
        _tables.check_names(wanted, names, "column")
        hidden = [name for name in located if name not in wanted]
        if hidden:
            raise SchemaError(f"columns must hold every noised column, {hidden[0]!r} is missing")
    if row_id is not None:
        _tables.check_names([row_id], names, "row id")
        if row_id in located:
            raise SchemaError("the row id cannot be a noised column")
    return located


def choose(rest: Any, mine: np.ndarray[Any, Any]) -> Any:
    if isinstance(rest, list):
        return [record for record, wanted in zip(rest, mine.tolist(), strict=True) if wanted]
    return rest.filter(mine)
