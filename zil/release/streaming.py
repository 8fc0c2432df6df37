"""Release a file in bounded memory, once per row, whatever happens in between.

The steps of one release, each of which a crash may follow:

1. one transaction: read the whole source, refuse what must be refused, note its MAC and (with row
   ids) the rows it takes, and a fresh key;
2. read it again, write the noisy copy to a temporary file beside the destination, sync it;
3. note the digest of the complete copy;
4. rename (for CSV the metadata beside it first), sync the directory;
5. note that it is done and erase the key.

The noise is a function of the key and the row number, so any rerun writes the same bytes.

Design: two passes, because every refusal must come before any draw; the second is abandoned if the
source changed in between.  Row groups of a Parquet file have a fixed size and a CSV file has none,
so ``batch_rows`` changes memory and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from zil import _tables, _validate
from zil._validate import FloatArray, PrivacyWarning, SchemaError
from zil.release import csvfile, files, rows, ticks
from zil.release import metadata as facts
from zil.release.keystream import Key
from zil.release.ledger import Entry, Ledger

BATCH_ROWS = 65_536
GROUP_ROWS = 65_536  # of a Parquet row group


@dataclass(frozen=True)
class Plan:
    """What `Mechanism.release_file` hands down: where the columns are, and how to noise and describe them."""

    locate: Callable[[list[str]], list[str]]
    fill: FloatArray | None
    allow_infinite: bool
    grid: ticks.Lattice
    scale: FloatArray
    zero_prob: float
    parameters: dict[str, Any]
    spent: dict[str, Any]
    describe: Callable[..., dict[str, Any]]
    n_threads: int | None


def step(name: str) -> None:
    """Called after each step that a crash may follow; tests replace it to crash there."""


@dataclass
class Batch:
    """Some records: the noised columns (n, d) as numbers, row ids, and the rest in the file's own form."""

    values: FloatArray
    ids: list[bytes] | None
    rest: Any


class CsvForm:
    """A CSV file, batch by batch."""

    ending = "csv"

    def __init__(self, path: Path, plan: Plan, columns: Sequence[str] | None, row_id: str | None) -> None:
        self._path = path
        with open(path, "rb") as handle:
            _, _, self.names, _ = csvfile.read(handle, len)
        self.located = _locate(plan, self.names, columns, row_id)
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

    def __init__(self, path: Path, plan: Plan, columns: Sequence[str] | None, row_id: str | None) -> None:
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
        self.located = _locate(plan, self.names, columns, row_id)
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


def _locate(plan: Plan, names: list[str], columns: Sequence[str] | None, row_id: str | None) -> list[str]:
    """The noised columns, after checking every name that was asked for."""
    located = plan.locate(names)
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


def _sha256(path: Path) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


class _Progress:
    def __init__(self, progress: Any, total: int) -> None:
        self._tell = progress if callable(progress) else None
        self._show = bool(progress) and self._tell is None
        self._total, self._done = total, 0

    def add(self, count: int) -> None:
        self._done += count
        if self._tell:
            self._tell(self._done, self._total)
        elif self._show:
            end = "\n" if self._done >= self._total else ""
            print(f"\rreleased {self._done} of {self._total} rows", end=end, file=sys.stderr, flush=True)


def release_file(
    plan: Plan,
    src: str | os.PathLike[str],
    dst: str | os.PathLike[str],
    *,
    ledger: str | os.PathLike[str] | None,
    release_id: str | None,
    batch_rows: int,
    columns: Sequence[str] | None,
    row_id: str | None,
    append: bool,
    repeat: bool,
    progress: Any,
) -> dict[str, Any]:
    """See `Mechanism.release_file`."""
    source, target = Path(src), Path(dst)
    size = _validate.integer("batch_rows", batch_rows, 1)
    ending = files.file_format(source)
    if files.file_format(target) != ending:
        raise ValueError("src and dst must both be CSV or both be Parquet")
    if not source.exists():
        raise FileNotFoundError(f"no such file: {source}")
    book = Path(ledger) if ledger is not None else target.with_name(f"{target.name}.ledger")
    _distinct(source, target, book)
    if append and row_id is None:
        raise ValueError("append needs row_id: only rows that were never released are taken")
    if release_id is not None and not (isinstance(release_id, str) and release_id):
        raise ValueError("release_id must be a text that is not empty")
    form = (CsvForm if ending == "csv" else ParquetForm)(source, plan, columns, row_id)
    with Ledger(book) as held:
        return _Run(plan, form, held, target, size, append, repeat, row_id, progress).run(release_id)


def _distinct(source: Path, target: Path, book: Path) -> None:
    """Refuse to write over what is read."""
    paths = {"src": source, "dst": target, "ledger": book}
    if target.suffix.lower() == ".csv":
        paths["the metadata of dst"] = files.sidecar(target)
    names = list(paths)
    for k, one in enumerate(names):
        for other in names[:k]:
            a, b = paths[one], paths[other]
            same = a.exists() and b.exists() and os.path.samefile(a, b)
            if same or a.resolve() == b.resolve():
                raise ValueError(f"{other} and {one} are the same file")


@dataclass
class _Run:
    plan: Plan
    form: CsvForm | ParquetForm
    book: Ledger
    target: Path
    size: int
    append: bool
    repeat: bool
    row_id: str | None
    progress: Any

    def run(self, release_id: str | None) -> dict[str, Any]:
        entry = self._open(release_id)
        if entry is None:
            return self._existing()
        if entry.state == "done":
            return self._finished(entry)
        with self.book.key(entry.id) as key:
            return self._write(entry, key)

    # step 1

    def _open(self, release_id: str | None) -> Entry | None:
        """The release to carry out or already carried out; None if an append finds no new row."""
        what = facts.dumps({**self.plan.parameters, "columns_kept": self.form.kept, "row_id": self.row_id})
        parameters = self.book.mac(b"parameters", what.encode("utf-8"))
        provisional = "." if release_id is None else release_id
        with self.book.transaction():
            hasher = self.book.hasher(b"source")
            count, fresh = 0, 0
            known = self.book.find(provisional) if release_id is not None else None
            for batch in self.form.batches(self.size, hasher.update):
                self._numbers(batch)
                count += len(batch.values)
                step("batch read")
                if batch.ids is not None and known is None:
                    fresh += self._claim(batch.ids, provisional)
            if count == 0:
                raise SchemaError("the table has no rows")
            source = hasher.digest()
            if release_id is None:
                release_id = self.book.mac(b"release", source + parameters).hex()
                known = self.book.find(release_id)
            if known is not None:
                if provisional != known.id:
                    self.book.disown(provisional)
                if known.source != source:
                    raise ValueError("this release_id was used for other data")
                if known.parameters != parameters:
                    raise ValueError("this release_id was used with another mechanism or other columns")
                return known
            if self.row_id is not None and not self.append and fresh < count and not self.repeat:
                raise ValueError("some of these rows were released before; append=True takes only new ones")
            if self.append and fresh == 0:
                return None
            earlier = self.book.of_source(source)
            if earlier and not self.repeat:
                raise ValueError(
                    "these rows were released before: a second copy weakens the guarantee "
                    "(repeat=True with its own release_id publishes it anyway)"
                )
            if not self.append and self.target.exists() and self.book.of_file(_sha256(self.target)):
                raise ValueError("dst holds another release of this ledger, which could not be made again")
            self.book.rename_rows(provisional, release_id)
            base, before = self._base()
            taken = fresh if self.append else count
            if earlier:
                warnings.warn(
                    f"these rows are released for time number {len(earlier) + 1}: the metadata states what all copies "
                    "give away together",
                    PrivacyWarning,
                    stacklevel=5,
                )
            spent = [json.loads(one.spent)[-1] for one in earlier] + [self.plan.spent]
            entry = Entry(
                release_id, "pending", source, parameters, base, None, taken, before + taken, json.dumps(spent)
            )
            self.book.open(entry)
        step("pending")
        return entry

    def _numbers(self, batch: Batch) -> FloatArray:
        values = batch.values
        missing = np.isnan(values)
        if missing.any() and self.plan.fill is None:
            raise SchemaError(f"column {self.form.located[int(missing.any(axis=0).argmax())]!r} has missing entries")
        infinite = np.isinf(values)
        if infinite.any() and not self.plan.allow_infinite:
            raise SchemaError(f"column {self.form.located[int(infinite.any(axis=0).argmax())]!r} has infinite entries")
        return values if self.plan.fill is None else np.where(missing, self.plan.fill, values)

    def _claim(self, ids: list[bytes], release_id: str) -> int:
        macs = self._macs(ids)
        taken, repeated = self.book.claim(macs, release_id)
        if repeated:
            raise SchemaError(f"row id {self.row_id!r} occurs more than once")
        return taken

    def _macs(self, ids: list[bytes]) -> list[bytes]:
        return [self.book.mac(b"row", value) for value in ids]

    def _base(self) -> tuple[str | None, int]:
        """Digest and rows of the file to append to."""
        if not self.append or not self.target.exists():
            return None, 0
        digest = _sha256(self.target)
        last = self.book.of_file(digest)
        if last is None:
            raise ValueError("the file to append to is not one that this ledger released")
        return digest, last.total_rows

    # steps 2 to 5

    def _write(self, entry: Entry, key: Key) -> dict[str, Any]:
        if entry.state == "written" and self.target.exists() and _sha256(self.target) == entry.sha256:
            self.book.done(entry.id)
            return self._existing()
        old = self.target if entry.base is not None else None
        if old is not None and (not old.exists() or _sha256(old) != entry.base):
            raise ValueError("the file to append to was changed since the release began")
        temporary = self.target.with_name(f".{self.target.name}.tmp")
        try:
            with open(temporary, "wb") as handle:
                result = self._copy(entry, key, handle, old)
                handle.flush()
                os.fsync(handle.fileno())
        except Exception:  # a refusal, not a crash: leave nothing that could be taken for a release
            temporary.unlink(missing_ok=True)
            raise
        step("temporary written")
        self.book.written(entry.id, _sha256(temporary))
        step("digest noted")
        if isinstance(self.form, CsvForm):
            beside = files.sidecar(self.target)
            with files.atomic(beside) as handle:
                handle.write(facts.dumps(result).encode("utf-8"))
            step("metadata in place")
        os.replace(temporary, self.target)
        step("renamed")
        files.sync_directory(self.target.parent)
        step("directory synced")
        self.book.done(entry.id)
        step("done")
        return result

    def _copy(self, entry: Entry, key: Key, handle: IO[bytes], old: Path | None) -> dict[str, Any]:
        hasher = self.book.hasher(b"source")
        progress = _Progress(self.progress, entry.n_rows)
        done = 0
        with contextlib.closing(self.form.writer(handle)) as writer:
            if old is not None:
                writer.copy(old)
            for batch in self.form.batches(self.size, hasher.update):
                values, rest = self._numbers(batch), batch.rest
                if self.append and batch.ids is not None:
                    mine = np.array(self.book.owned(self._macs(batch.ids), entry.id))
                    values, rest = values[mine], _choose(rest, mine)
                if len(values):
                    writer.write(rest, self._noisy(values, key, done))
                    done += len(values)
                    progress.add(len(values))
                step("batch written")
            if hasher.digest() != entry.source or done != entry.n_rows:
                raise ValueError("the source changed while it was being released")
            spent = json.loads(entry.spent)
            return writer.finish(self.plan.describe(self.form.located, entry.total_rows, entry.id, spent))

    def _noisy(self, values: FloatArray, key: Key, first_row: int) -> FloatArray:
        plan = self.plan
        return rows.certified(
            values, plan.grid, plan.scale, plan.zero_prob, key, first_row=first_row, n_threads=plan.n_threads
        )

    def _finished(self, entry: Entry) -> dict[str, Any]:
        if not self.target.exists():
            raise ValueError("this release is done and its key was erased: bring back the file that was published")
        return self._existing()

    def _existing(self) -> dict[str, Any]:
        """The metadata of the published file, verified."""
        if isinstance(self.form, CsvForm):
            result = facts.loads(files.sidecar(self.target).read_bytes())
        else:
            result = files.footer(self.target)
        files.verify(self.target, result, whole=isinstance(self.form, CsvForm))
        return result


def _choose(rest: Any, mine: np.ndarray[Any, Any]) -> Any:
    if isinstance(rest, list):
        return [record for record, wanted in zip(rest, mine.tolist(), strict=True) if wanted]
    return rest.filter(mine)
