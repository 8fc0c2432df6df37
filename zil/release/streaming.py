"""Release a file in bounded memory, once per row, whatever happens in between.

The steps of one release, each of which a crash may follow:

1. one transaction: take a snapshot of the source, read it whole, refuse what must be refused, note its MAC and (with
   row ids) the rows it takes, and a fresh key;
2. read it again, write the noisy copy into a folder beside the destination that nobody else can enter, sync it;
3. let a second reader compare the copy with the source, note its digest;
4. rename (for CSV the metadata first), sync the directory;
5. note that it is done and erase the key.

The noise is a function of the key and the row number, so any rerun writes the same bytes.  A run that is refused
takes its note of step 1 back and its key with it, as long as nothing can have been published; after a failure of the
machine (a full disk) the key is kept, and only the same call may follow.

Design: two passes, because every refusal must come before any draw; both read through one `Snapshot`, so the second
pass cannot see other data than the first.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from zil import _validate
from zil._validate import FloatArray, PrivacyWarning, SchemaError
from zil.release import files, forms, integrity, rows, secondread, ticks
from zil.release import metadata as facts
from zil.release.forms import Batch, Locate
from zil.release.keystream import Key
from zil.release.ledger import Entry, Ledger
from zil.release.snapshot import Snapshot, SourceChanged

BATCH_ROWS = 65_536
LONGEST_ID = 200  # characters of a release_id


@dataclass(frozen=True)
class Plan:
    """What `Mechanism.release_file` hands down: where the columns are, and how to noise and describe them."""

    locate: Locate
    protected: Sequence[Any]
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
    header: bool | Sequence[str] | None,
    types: Mapping[str, str] | None,
    append: bool,
    repeat: bool,
    progress: Any,
) -> dict[str, Any]:
    """See `Mechanism.release_file`."""
    source, target = Path(src), Path(dst)
    size = _validate.integer("batch_rows", batch_rows, 1)
    ending = files.file_format(source), files.file_format(target)
    if not source.exists():
        raise FileNotFoundError(f"no such file: {source}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"dst lies in a folder that does not exist: {target.parent}")
    source = source.resolve()
    book = Path(ledger) if ledger is not None else source.with_name(f"{source.name}.ledger")
    _distinct(source, target, book)
    if append and row_id is None:
        raise ValueError("append needs row_id: only rows that were never released are taken")
    _check_names(release_id, header)
    wanted = forms.Wanted(plan.locate, plan.protected, columns, row_id, header, types)
    try:
        held = Ledger(book)
    except OSError as error:
        if ledger is not None or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise PermissionError("the ledger cannot be written beside src; say with ledger= where it may lie") from None
    with held, Snapshot(source, held.hasher(b"source")) as snapshot:
        form = forms.open_source(ending[0], snapshot, wanted, ending[1])
        choices = {"columns_kept": form.kept, "row_id": row_id, "header": header, "types": types, "format": ending[1]}
        what = facts.dumps({**plan.parameters, **choices})
        run = _Run(
            plan=plan,
            form=form,
            snapshot=snapshot,
            book=held,
            target=target,
            ending=ending[1],
            place=held.mac(b"place", os.fsencode(source)),
            parameters=held.mac(b"parameters", what.encode("utf-8")),
            size=size,
            append=append,
            repeat=repeat,
            row_id=row_id,
            progress=progress,
        )
        return run.run(release_id)


def _check_names(release_id: Any, header: Any) -> None:
    if release_id is not None and not (
        isinstance(release_id, str) and 0 < len(release_id) <= LONGEST_ID and release_id.isprintable()
    ):
        raise ValueError(f"release_id must be a text of 1 to {LONGEST_ID} printable characters")
    if header is None or header is True:
        return
    if isinstance(header, (str, bytes)) or not isinstance(header, Sequence):
        raise TypeError("header must be None, True, or a list of the names of all columns")
    if not header or not all(isinstance(name, str) and name for name in header):
        raise ValueError("header must list the names of all columns, none of them empty")


def _distinct(source: Path, target: Path, book: Path) -> None:
    """Refuse to write over what is read."""
    paths = {"src": source, "dst": target, "ledger": book, "the journal of the ledger": Path(f"{book}-journal")}
    if target.suffix.lower() == ".csv":
        paths["the metadata of dst"] = files.sidecar(target)
    names = list(paths)
    for k, one in enumerate(names):
        for other in names[:k]:
            a, b = paths[one], paths[other]
            if a.resolve() == b.resolve() or (a.exists() and b.exists() and a.samefile(b)):
                raise ValueError(f"{other} and {one} are the same file")


@dataclass
class _Run:
    """One call, from the first look at the source to the file with its name."""

    plan: Plan
    form: forms.Source
    snapshot: Snapshot
    book: Ledger
    target: Path
    ending: str
    place: bytes
    parameters: bytes
    size: int
    append: bool
    repeat: bool
    row_id: str | None
    progress: Any
    record: secondread.Record = field(default_factory=secondread.Record)
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
        except Exception as error:
            # what is refused was not published unless it was "written" before; then the next call finds out
            if entry.state == "pending" and (self.unused or isinstance(error, ValueError)):
                self.book.withdraw(entry.id)
            raise

    # step 1

    def _open(self, release_id: str | None) -> Entry | None:
        """The release to carry out or already carried out; None if an append finds no new row."""
        if release_id is None:
            release_id = self.book.mac(b"release", self.snapshot.digest + self.parameters).hex()
        if self.book.find(release_id) is None:
            self._retire_changed()
        with self.book.transaction():
            known = self.book.find(release_id)
            count, fresh, waiting = self._look(release_id if known is None else None)
            if known is not None:
                self._check_known(known)
                return known
            self._check_binding()
            base = self._base()
            if waiting and not self.repeat:  # to pass them over would be to lose them
                raise ValueError(
                    "some of these rows belong to a release that was begun and not finished: "
                    "repeat that call first, with its source as it was, or leave these rows out"
                )
            if self.append and fresh == 0:
                return None
            earlier = self._earlier(count, fresh)
            self._check_columns(earlier)
            self._check_destination(None)
            entry = self._entry(release_id, base, earlier, fresh if self.append else count)
            if earlier:
                warnings.warn(
                    f"these rows are released for time number {len(earlier) + 1}: the metadata states what all copies "
                    "give away together",
                    PrivacyWarning,
                    stacklevel=5,
                )
            self.book.open(entry)
        self.unused = True
        step("pending")
        return entry

    def _look(self, claim: str | None) -> tuple[int, int, bool]:
        """Read the whole source: its rows, how many of them nobody has yet, whether some wait for another call.

        Rows that nobody has go to the release ``claim``.
        """
        count, fresh, waiting = 0, 0, False
        for batch in self.form.batches(self.size, first=True):
            self._numbers(batch)
            count += len(batch.values)
            step("batch read")
            if batch.ids is not None and claim is not None:
                macs = sorted(self._macs(batch.ids()))  # a tree takes them faster in order
                taken, twice = self.book.claim(macs, claim)
                if twice:
                    raise SchemaError(f"row id {self.row_id!r} occurs more than once")
                fresh += taken
                waiting = waiting or self.book.waiting(macs)
        if count == 0:
            raise SchemaError("the table has no rows")
        return count, fresh, waiting

    def _check_known(self, known: Entry) -> None:
        if known.source != self.snapshot.digest:
            raise ValueError("this release_id was used for other data")
        if known.parameters != self.parameters:
            raise ValueError("this release_id was used with another mechanism or other columns")
        if known.state != "done":
            self._check_destination(known)

    def _check_binding(self) -> None:
        """One column names the rows in all releases of a ledger; under another one the same rows would look new."""
        for other in self.book.all():
            if other.row_id != self.row_id:

                def said(name: str | None) -> str:
                    return "no row id" if name is None else f"row id {name!r}"

                raise ValueError(
                    f"this ledger was begun with {said(other.row_id)}, this call has {said(self.row_id)}: rows "
                    "that were released before would look new"
                )

    def _retire_changed(self) -> None:
        """Forget releases of this source that were begun on other content, and never published."""
        for other in self.book.of_source(self.snapshot.digest, self.place):
            place = files.Workplace(self.target, other.token)
            # a complete copy that still lies where it was written was not published either
            waits = other.state == "written" and place.inside("file").exists()
            if other.source != self.snapshot.digest and (other.state == "pending" or waits):
                self.book.withdraw(other.id)
                place.clear()
                if self.ending == "csv" and not self.target.exists() and self._beside() == other.id:
                    files.sidecar(self.target).unlink()

    def _beside(self) -> str | None:
        """The release that the metadata beside dst describe."""
        try:
            return str(facts.loads(files.sidecar(self.target).read_bytes())["release_id"])
        except (SchemaError, OSError):
            return None

    def _earlier(self, count: int, fresh: int) -> list[Entry]:
        """Other releases that may hold some of these rows; refused unless asked for."""
        if self.row_id is None:
            earlier = self.book.of_source(self.snapshot.digest, self.place)
            if earlier and not self.repeat and all(one.source != self.snapshot.digest for one in earlier):
                raise ValueError(
                    "src was released before with other content: without row_id nobody can tell which of its rows are "
                    "new (repeat=True with its own release_id takes all of them for released once more)"
                )
        elif self.append or fresh == count:
            earlier = []
        else:
            earlier = self.book.all()  # some rows were in some of them: count them all
            if not self.repeat:
                raise ValueError("some of these rows were released before; append=True takes only new ones")
        if earlier and not self.repeat:
            raise ValueError(
                "these rows were released before: a second copy weakens the guarantee "
                "(repeat=True with its own release_id publishes it anyway)"
            )
        return earlier

    def _check_columns(self, earlier: Sequence[Entry]) -> None:
        """What was ever published as it is cannot be protected any more, and what was protected must stay so."""
        noised, passed = set(self.form.located), set(self.form.kept) - set(self.form.located)
        for one in earlier:
            for name in sorted(noised & set(one.passed)):
                raise ValueError(
                    f"column {name!r} was published as it is in an earlier release of these rows: "
                    "there is no protection for it any more, and no label may promise one"
                )
            for name in sorted(passed & set(one.noised)):
                raise ValueError(
                    f"column {name!r} was noised in an earlier release of these rows and would now be published as it "
                    "is: leave it out with columns="
                )

    def _entry(self, release_id: str, base: Entry | None, earlier: Sequence[Entry], taken: int) -> Entry:
        # the other copies of the rows that are in the file already stay in its label
        spent = [] if base is None else json.loads(base.spent)[:-1]
        spent += [*(json.loads(one.spent)[-1] for one in earlier), self.plan.spent]
        return Entry(
            id=release_id,
            state="pending",
            source=self.snapshot.digest,
            place=self.place,
            parameters=self.parameters,
            base=None if base is None else base.sha256,
            sha256=None,
            n_rows=taken,
            total_rows=taken + (0 if base is None else base.total_rows),
            spent=json.dumps(spent),
            row_id=self.row_id,
            noised=list(self.form.located),
            passed=[name for name in self.form.kept if name not in self.form.located],
            token=secrets.token_hex(16),
        )

    def _numbers(self, batch: Batch) -> FloatArray:
        values = batch.values
        missing = np.isnan(values)
        if missing.any() and self.plan.fill is None:
            raise SchemaError(f"column {self.form.located[int(missing.any(axis=0).argmax())]!r} has missing entries")
        infinite = np.isinf(values)
        if infinite.any() and not self.plan.allow_infinite:
            raise SchemaError(f"column {self.form.located[int(infinite.any(axis=0).argmax())]!r} has infinite entries")
        return values if self.plan.fill is None else np.where(missing, self.plan.fill, values)

    def _macs(self, ids: list[str]) -> list[bytes]:
        return [self.book.mac(b"row", value.encode("utf-8", "surrogatepass")) for value in ids]

    # the destination

    def _check_destination(self, entry: Entry | None) -> None:
        """Refuse to write over a release, or over a file beside dst that is not its metadata."""
        if not self.append and self._holds_release(entry):
            raise ValueError("dst holds another release, which could not be made again: choose another name")
        beside = files.sidecar(self.target)
        if self.ending != "csv" or not (beside.exists() or beside.is_symlink()):
            return
        try:
            found = facts.loads(beside.read_bytes())
        except (SchemaError, OSError):
            raise ValueError(f"{beside.name} exists and is no metadata of zil's: choose another name for dst") from None
        own = entry is not None and found["release_id"] == entry.id
        if found["private"] and not own and not self.append:
            raise ValueError(f"{beside.name} describes a release that is not at dst: choose another name for dst")

    def _holds_release(self, entry: Entry | None) -> bool:
        """Whether writing to the destination would destroy a release other than this one."""
        if not self.target.exists():
            return False
        found = files.sha256(self.target)
        if entry is not None and entry.sha256 == found:
            return False
        if self.book.of_file(found) is not None:
            return True
        try:
            return bool(self._existing()["private"])
        except (SchemaError, FileNotFoundError):  # not a file of zil's, or no longer what was published
            return False

    def _base(self) -> Entry | None:
        """The release to append to; one label speaks for all rows of a file, so one mechanism must have made them."""
        if not self.append or not self.target.exists():
            return None
        last = self.book.of_file(files.sha256(self.target))
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
        if entry.state == "written" and self.target.exists() and files.sha256(self.target) == entry.sha256:
            files.Workplace(self.target, entry.token).clear()
            self.book.done(entry.id)
            return self._existing()
        old = self.target if entry.base is not None else None
        self._check_base(entry, old)
        with files.Workplace(self.target, entry.token) as place:
            with place.create("file") as handle:
                result = self._copy(entry, key, handle, old)
                files.synced(handle)
                step("temporary written")
                self._second_read(entry, handle)
            if self.ending == "csv":
                with place.create("metadata") as beside:
                    beside.write(facts.dumps(result).encode("utf-8"))
                    step("metadata begun")
                    files.synced(beside)
            self.book.written(entry.id, files.sha256(place.inside("file")))
            step("digest noted")
            with files.publishing(self.target.parent):
                self._check_destination(entry)  # again: others may publish into this folder
                self._check_base(entry, old)
                if self.ending == "csv":
                    place.publish("metadata", files.sidecar(self.target))
                    step("metadata in place")
                place.publish("file", self.target)
                step("renamed")
            files.sync_directory(self.target.parent)
            step("directory synced")
        self.book.done(entry.id)
        step("done")
        return result

    def _check_base(self, entry: Entry, old: Path | None) -> None:
        if old is not None and (not old.exists() or files.sha256(old) != entry.base):
            raise ValueError("the file to append to was changed since the release began")

    def _copy(self, entry: Entry, key: Key, handle: IO[bytes], old: Path | None) -> dict[str, Any]:
        progress, record = _Progress(self.progress, entry.n_rows), self.record
        with contextlib.closing(forms.open_sink(self.form, self.ending, handle)) as sink:
            if old is not None:
                sink.copy(old)
            for batch in self.form.batches(self.size):
                if self.append and batch.ids is not None:
                    mine = np.array(self.book.owned(self._macs(batch.ids()), entry.id))
                    record.took(mine)
                    batch = batch.chosen(mine)
                if len(batch.values):
                    published = self._noisy(self._numbers(batch), key, record.rows)
                    sink.write(batch.rest, published)
                    record.published(published)
                    progress.add(len(published))
                step("batch written")
            if record.rows != entry.n_rows:
                raise SourceChanged
            spent = json.loads(entry.spent)
            return sink.finish(self.plan.describe(self.form.located, entry.total_rows, entry.id, spent))

    def _noisy(self, values: FloatArray, key: Key, first_row: int) -> FloatArray:
        plan, self.unused = self.plan, False
        return rows.certified(
            values, plan.grid, plan.scale, plan.zero_prob, key, first_row=first_row, n_threads=plan.n_threads
        )

    def _second_read(self, entry: Entry, copy: IO[bytes]) -> None:
        copy.seek(0)
        before = entry.total_rows - entry.n_rows
        with self.snapshot.open() as original:
            secondread.compare(self.form, original, copy, self.ending, self.record, before, self.plan.grid)

    def _finished(self, entry: Entry) -> dict[str, Any]:
        """The published file of a release that is done, possibly with rows appended since."""
        if not self.target.exists():
            raise ValueError(
                "these rows were released before and the key was erased: bring back the file that was published "
                "(repeat=True with its own release_id publishes a second copy)"
            )
        found = self.book.of_file(files.sha256(self.target))
        while found is not None and found.id != entry.id:
            found = None if found.base is None else self.book.of_file(found.base)
        if found is None:
            raise ValueError("this release is done, and dst is not the file that was published")
        return self._existing()

    def _existing(self) -> dict[str, Any]:
        """The metadata of the published file, verified."""
        if self.ending == "csv":
            return integrity.csv_metadata(self.target, files.sidecar(self.target))
        return integrity.parquet_metadata(self.target)
