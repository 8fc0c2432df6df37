"""Release a file in bounded memory, once per row, whatever happens in between.

The steps of one release, each of which a crash may follow:

1. one transaction: read the whole source, refuse what must be refused, note its MAC and (with row
   ids) the rows it takes, and a fresh key;
2. read it again, write the noisy copy to a temporary file beside the destination, sync it;
3. note the digest of the complete copy;
4. rename (for CSV the metadata beside it first), sync the directory;
5. note that it is done and erase the key.

The noise is a function of the key and the row number, so any rerun writes the same bytes.  A run that
is refused takes its note of step 1 back, unless the key was used by then: only a rerun may follow it.

Design: two passes, because every refusal must come before any draw; the second is abandoned if the
source changed in between.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from zil import _validate
from zil._validate import FloatArray, PrivacyWarning, SchemaError
from zil.release import files, rows, ticks
from zil.release import metadata as facts
from zil.release.forms import Batch, CsvForm, Locate, ParquetForm, choose
from zil.release.keystream import Key
from zil.release.ledger import Entry, Ledger

BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Plan:
    """What `Mechanism.release_file` hands down: where the columns are, and how to noise and describe them."""

    locate: Locate
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
    if not target.parent.is_dir():
        raise FileNotFoundError(f"dst lies in a folder that does not exist: {target.parent}")
    book = Path(ledger) if ledger is not None else source.with_name(f"{source.name}.ledger")
    _distinct(source, target, book)
    if append and row_id is None:
        raise ValueError("append needs row_id: only rows that were never released are taken")
    if release_id is not None and not (isinstance(release_id, str) and release_id):
        raise ValueError("release_id must be a text that is not empty")
    form = (CsvForm if ending == "csv" else ParquetForm)(source, plan.locate, columns, row_id)
    try:
        held = Ledger(book)
    except OSError as error:
        if ledger is not None or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise PermissionError("the ledger cannot be written beside src; say with ledger= where it may lie") from None
    with held:
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
    unused: bool = False  # this run made the key and has drawn nothing from it

    def run(self, release_id: str | None) -> dict[str, Any]:
        entry = self._open(release_id)
        if entry is None:
            return self._existing()
        if entry.state == "done":
            return self._finished(entry)
        try:
            with self.book.key(entry.id) as key:
                return self._write(entry, key)
        except Exception:  # a refusal, not a crash
            if self.unused:
                self.book.withdraw(entry.id)
            raise

    # step 1

    def _open(self, release_id: str | None) -> Entry | None:
        """The release to carry out or already carried out; None if an append finds no new row."""
        what = facts.dumps({**self.plan.parameters, "columns_kept": self.form.kept, "row_id": self.row_id})
        parameters = self.book.mac(b"parameters", what.encode("utf-8"))
        provisional = "." if release_id is None else release_id
        with self.book.transaction():
            hasher = self.book.hasher(b"source")
            count, fresh, waiting = 0, 0, False
            known = self.book.find(provisional) if release_id is not None else None
            for batch in self.form.batches(self.size, hasher.update):
                self._numbers(batch)
                count += len(batch.values)
                step("batch read")
                if batch.ids is not None and known is None:
                    fresh += self._claim(batch.ids, provisional)
                    waiting = waiting or self.book.waiting(self._macs(batch.ids))
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
            if self.append and waiting:  # to pass them over would be to lose them
                raise ValueError(
                    "some of these rows belong to a release that was begun and not finished: "
                    "repeat that call first, with its source as it was, or leave these rows out"
                )
            base = self._base()
            if self.append and fresh == 0:
                return None
            earlier = self.book.of_source(source)
            if self.row_id is not None and not self.append and fresh < count:
                earlier = self.book.all()  # some rows were in some of them: count them all
            if earlier and not self.repeat:
                raise ValueError(
                    "these rows were released before: a second copy weakens the guarantee "
                    "(repeat=True with its own release_id publishes it anyway)"
                )
            if not self.append and self._holds_release():
                raise ValueError("dst holds another release, which could not be made again: choose another name")
            self.book.rename_rows(provisional, release_id)
            before = 0 if base is None else base.total_rows
            taken = fresh if self.append else count
            if earlier:
                warnings.warn(
                    f"these rows are released for time number {len(earlier) + 1}: the metadata states what all copies "
                    "give away together",
                    PrivacyWarning,
                    stacklevel=5,
                )
            # the other copies of the rows that are in the file already stay in its label
            spent = [] if base is None else json.loads(base.spent)[:-1]
            spent += [*(json.loads(one.spent)[-1] for one in earlier), self.plan.spent]
            digest = None if base is None else base.sha256
            entry = Entry(
                release_id, "pending", source, parameters, digest, None, taken, before + taken, json.dumps(spent)
            )
            self.book.open(entry)
        self.unused = True
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

    def _holds_release(self) -> bool:
        """Whether writing to the destination would destroy a release, of this ledger or of another."""
        if not self.target.exists():
            return False
        if self.book.of_file(_sha256(self.target)) is not None:
            return True
        try:
            return bool(self._existing()["private"])
        except (SchemaError, FileNotFoundError):  # not a file of zil's, or no longer what was published
            return False

    def _base(self) -> Entry | None:
        """The release to append to; one label speaks for all rows of a file, so one mechanism must have made them."""
        if not self.append or not self.target.exists():
            return None
        last = self.book.of_file(_sha256(self.target))
        if last is None:
            raise ValueError("the file to append to is not one that this ledger released")
        own = self.plan.describe(self.form.located, 0, None, [self.plan.spent])
        other = facts.differences(self._existing(), own)
        if other:
            raise ValueError(
                f"append=True needs the mechanism that published dst, this one differs in {', '.join(other)}"
            )
        return last

    # steps 2 to 5

    def _write(self, entry: Entry, key: Key) -> dict[str, Any]:
        if entry.state == "written" and self.target.exists() and _sha256(self.target) == entry.sha256:
            self.book.done(entry.id)
            return self._existing()
        old = self.target if entry.base is not None else None
        if old is not None and (not old.exists() or _sha256(old) != entry.base):
            raise ValueError("the file to append to was changed since the release began")
        temporary, beside = files.temporary(self.target), files.sidecar(self.target)
        try:
            with open(temporary, "wb") as handle:
                result = self._copy(entry, key, handle, old)
                handle.flush()
                os.fsync(handle.fileno())
        except Exception:  # a refusal, not a crash: leave nothing that could be taken for a release
            for begun in (temporary, files.temporary(beside)):
                begun.unlink(missing_ok=True)
            raise
        step("temporary written")
        self.book.written(entry.id, _sha256(temporary))
        step("digest noted")
        if isinstance(self.form, CsvForm):
            with files.atomic(beside, alone=True) as handle:
                handle.write(facts.dumps(result).encode("utf-8"))
                step("metadata begun")
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
                    values, rest = values[mine], choose(rest, mine)
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
        plan, self.unused = self.plan, False
        return rows.certified(
            values, plan.grid, plan.scale, plan.zero_prob, key, first_row=first_row, n_threads=plan.n_threads
        )

    def _finished(self, entry: Entry) -> dict[str, Any]:
        """The published file of a release that is done, possibly with rows appended since."""
        if not self.target.exists():
            raise ValueError(
                "these rows were released before and the key was erased: bring back the file that was published "
                "(repeat=True with its own release_id publishes a second copy)"
            )
        found = self.book.of_file(_sha256(self.target))
        while found is not None and found.id != entry.id:
            found = None if found.base is None else self.book.of_file(found.base)
        if found is None:
            raise ValueError("this release is done, and dst is not the file that was published")
        return self._existing()

    def _existing(self) -> dict[str, Any]:
        """The metadata of the published file, verified."""
        if isinstance(self.form, CsvForm):
            result = facts.loads(files.sidecar(self.target).read_bytes())
        else:
            result = files.footer(self.target)
        files.verify(self.target, result, whole=isinstance(self.form, CsvForm))
        return result
