"""A second reader, before anything is published: another parser looks at the source and at the finished copy.

The first reader is ours, and if it took a record for part of another one, its writer would publish what it never
noised.  So the complete file, still where nobody else can read it, is read by pyarrow (CSV also by Python's ``csv``
where pyarrow is not installed) and must hold: as many records as were released; in every noised column exactly the
numbers that the mechanism published, all on its lattice; and in every other column what the same parser finds in the
source.  If anything differs, nothing is published.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from zil._validate import FloatArray, SchemaError
from zil.release import csvfile, ticks
from zil.release.forms import ParquetSource, Source

ROWS = 65_536  # compared at a time
BYTES = 4 * csvfile.LONGEST  # pyarrow wants a record to fit into a block


@dataclass
class Record:
    """What the writer did, noted while it did it.

    Attributes
    ----------
    rows : int
        Rows published by this release.
    mine : list of bool arrays
        Which rows of the source they are, in order, batch by batch; empty if all.
    """

    rows: int = 0
    mine: list[NDArray[np.uint8]] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    numbers: Any = field(default_factory=hashlib.sha256)

    def published(self, values: FloatArray) -> None:
        self.rows += len(values)
        self.numbers.update(np.ascontiguousarray(values).data)

    def took(self, mine: NDArray[np.bool_]) -> None:
        self.mine.append(np.packbits(mine))
        self.lengths.append(len(mine))

    def taken(self) -> Iterator[NDArray[np.bool_]]:
        for packed, count in zip(self.mine, self.lengths, strict=True):
            yield np.unpackbits(packed, count=count).astype(bool)


def differs(what: str) -> SchemaError:
    return SchemaError(
        f"a second reader does not find in the finished copy what was released ({what}): nothing was published. "
        "Write the source again with another program"
    )


def compare(
    source: Source, original: IO[bytes], copy: IO[bytes], target: str, record: Record, before: int, grid: ticks.Lattice
) -> None:
    """Read the source and the finished copy with another parser.

    Parameters
    ----------
    original, copy
        Both from their beginning; ``copy`` begins with ``before`` rows of earlier releases.
    target : {"csv", "parquet"}
        Format of the copy.

    Raises
    ------
    SchemaError
        They differ from each other, or from what the record says.
    """
    passed = [name for name in source.kept if name not in source.located]
    read = _Library(source, target)
    left = _Rows(_chosen(read.source(original, passed), record))
    right = _Rows(read.copy(copy, [*passed, *source.located], source.located))
    numbers, rows = hashlib.sha256(), 0
    right.skip(before)
    while True:
        count = min(left.ready(), right.ready(), ROWS)
        if count == 0:
            break
        one, other = left.take(count), right.take(count)
        for name in passed:
            if not read.same(one[name], other[name]):
                raise differs(f"column {name!r}")
        values = np.column_stack([read.numbers(other[name]) for name in source.located])
        if not (np.rint(values / grid.tick) * grid.tick == values).all():
            raise differs("noised values off their lattice")
        numbers.update(values.data)
        rows += count
    if left.ready() or right.ready() or rows != record.rows:
        raise differs("the number of rows")
    if numbers.digest() != record.numbers.digest():
        raise differs("noised values")


Columns = dict[str, Any]


class _Rows:
    """Columns from pieces of any length."""

    def __init__(self, pieces: Iterator[tuple[int, Columns]]) -> None:
        self._pieces = pieces
        self._left, self._at = 0, 0
        self._columns: Columns = {}

    def ready(self) -> int:
        """Rows that can be taken at once; 0 at the end."""
        while self._left == 0:
            found = next(self._pieces, None)
            if found is None:
                return 0
            (self._left, self._columns), self._at = found, 0
        return self._left

    def take(self, count: int) -> Columns:
        result = {name: column[self._at : self._at + count] for name, column in self._columns.items()}
        self._at, self._left = self._at + count, self._left - count
        return result

    def skip(self, count: int) -> None:
        while count and (some := min(self.ready(), count)):
            self.take(some)
            count -= some
        if count:
            raise differs("the number of rows")


def _chosen(pieces: Iterator[tuple[int, Columns]], record: Record) -> Iterator[tuple[int, Columns]]:
    """Of the source's rows those that this release took."""
    if not record.mine:
        yield from pieces
        return
    rows = _Rows(pieces)
    for mine in record.taken():
        done = 0
        while done < len(mine):
            count = min(rows.ready(), len(mine) - done)
            if count == 0:
                raise differs("the number of rows")
            wanted = mine[done : done + count]
            taken = rows.take(count)
            done += count
            if wanted.any():
                yield int(wanted.sum()), {name: _filtered(column, wanted) for name, column in taken.items()}
    if rows.ready():
        raise differs("the number of rows")


def _filtered(column: Any, wanted: NDArray[np.bool_]) -> Any:
    if isinstance(column, list):
        return [entry for entry, asked in zip(column, wanted.tolist(), strict=True) if asked]
    import pyarrow as pa

    return column.filter(pa.array(wanted))


def _have_arrow() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


class _Library:
    """Files as somebody else's parser reads them."""

    def __init__(self, source: Source, target: str) -> None:
        self._source, self._target = source, target
        self._arrow = _have_arrow()  # without it both files are CSV

    def source(self, handle: IO[bytes], names: list[str]) -> Iterator[tuple[int, Columns]]:
        if isinstance(self._source, ParquetSource):
            schema = self._source.schema() if self._target == "csv" else None
            return _parquet(handle, names, schema)
        bytes_alone = self._target == "csv"
        kinds = {} if bytes_alone else {name: self._source.schema().field(name).type for name in names}
        return self._csv(handle, self._source, names, kinds, header=self._source.has_header)

    def copy(self, handle: IO[bytes], names: list[str], located: list[str]) -> Iterator[tuple[int, Columns]]:
        if self._target == "parquet":
            return _parquet(handle, names, None)
        kinds = {}
        if isinstance(self._source, ParquetSource):
            kinds = {name: self._source.schema().field(name).type for name in names}
        return self._csv(handle, self._source, names, kinds, numbers=located)

    def _csv(
        self,
        handle: IO[bytes],
        source: Source,
        names: list[str],
        kinds: dict[str, Any],
        header: bool = True,
        numbers: list[str] | None = None,
    ) -> Iterator[tuple[int, Columns]]:
        wanted = source.kept if numbers is not None else source.names
        if self._arrow:
            return _arrow_csv(handle, wanted, names, kinds, header, numbers or [])
        return _plain_csv(handle, wanted, names, header)

    def same(self, one: Any, other: Any) -> bool:
        return bool(one == other) if isinstance(one, list) else _same(one, other)

    def numbers(self, column: Any) -> FloatArray:
        if isinstance(column, list):
            return np.array([float(entry) for entry in column])
        result: FloatArray = column.to_numpy(zero_copy_only=False)
        return result


def _parquet(handle: IO[bytes], names: list[str], schema: Any) -> Iterator[tuple[int, Columns]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(handle)
        if not names:
            yield file.metadata.num_rows, {}
            return
        for piece in file.iter_batches(batch_size=ROWS, columns=names):
            columns = dict(zip(piece.schema.names, piece.columns, strict=True))
            if schema is not None:
                columns = {name: column.cast(schema.field(name).type) for name, column in columns.items()}
            yield piece.num_rows, columns
    except (pa.ArrowException, KeyError):
        raise differs("it is no Parquet file") from None


def _arrow_csv(
    handle: IO[bytes], names: list[str], wanted: list[str], kinds: dict[str, Any], header: bool, numbers: list[str]
) -> Iterator[tuple[int, Columns]]:
    import pyarrow as pa
    import pyarrow.csv

    types = {name: kinds.get(name, pa.binary()) for name in names} | dict.fromkeys(numbers, pa.float64())
    try:
        reader = pyarrow.csv.open_csv(
            handle,
            read_options=pyarrow.csv.ReadOptions(
                use_threads=False, block_size=BYTES, column_names=None if header else names
            ),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(
                check_utf8=False,
                column_types=types,
                null_values=[""],
                strings_can_be_null=bool(kinds),
                quoted_strings_can_be_null=False,
            ),
        )
        if reader.schema.names != names:
            raise differs("the header")
        for piece in reader:
            columns = dict(zip(piece.schema.names, piece.columns, strict=True))
            yield piece.num_rows, {name: columns[name] for name in wanted}
    except pa.ArrowException:  # its words would show a record
        raise differs("a record") from None


def _plain_csv(handle: IO[bytes], names: list[str], wanted: list[str], header: bool) -> Iterator[tuple[int, Columns]]:
    csv.field_size_limit(max(csv.field_size_limit(), csvfile.LONGEST))
    text = io.TextIOWrapper(handle, encoding="latin-1", newline="")
    reader = csv.reader(text, strict=True)
    part: list[list[str]] = []
    places = [names.index(name) for name in wanted]

    def columns() -> tuple[int, Columns]:
        return len(part), {name: [record[k] for record in part] for name, k in zip(wanted, places, strict=True)}

    try:
        if header:
            found = [name.encode("latin-1") for name in next(reader)]
            if [found[0].removeprefix(csvfile.BOM), *found[1:]] != [name.encode("utf-8") for name in names]:
                raise differs("the header")
        for record in reader:
            if not record:
                continue
            if len(record) != len(names):
                raise differs("a record")
            part.append(record)
            if len(part) == ROWS:
                yield columns()
                part = []
        if part:
            yield columns()
    except (csv.Error, StopIteration):
        raise differs("a record") from None
    finally:
        if not handle.closed:  # else the wrapper would close it when it goes
            text.detach()


def _same(one: Any, other: Any) -> bool:
    """Equal entries; here nan is equal to nan."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if one.type != other.type:
        if pa.types.is_dictionary(one.type) or pa.types.is_dictionary(other.type):
            return bool(one.to_pylist() == other.to_pylist())
        return False
    if one.equals(other):
        return True
    if pa.types.is_floating(one.type):
        nans = pc.and_(pc.is_nan(one), pc.is_nan(other))
        either = pc.or_kleene(pc.equal(one, other), nans)
        return bool(one.is_null().equals(other.is_null()) and pc.all(either).as_py() is not False)
    return repr(one.to_pylist()) == repr(other.to_pylist())  # nested values may hold nan
