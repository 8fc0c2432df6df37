"""Lines of the audit about files: ids, a source that changes, who can read what, and planted links.

Each goes through the public `Mechanism.release_file` on real files, and each has a naive release that loses.
Called by tools/audit.py.  Over 400 lines because each attack stands beside the release that loses to it.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import zil
from zil.release import streaming

Line = tuple[str, str, str, bool | None]

NO_ATOM = zil.Mechanism({"a": (0, 1)}, zero_prob=0.0, scale=1.0)  # so that equal noise is no accident
REFUSED = (ValueError, TypeError, OSError)
BATCH = 500
# one person, written in several ways; each pair of a line is tried in both orders
SAME = (
    ("101", "101.0", " 101", "101 ", "+101", "0101", "1.01e2", '"101"', "101\t"),
    ("7", "007", "+7", "7.", " 7 "),
    ("café", unicodedata.normalize("NFD", "café"), " café"),
    ("2024-01-31", "2024-01-31 00:00:00"),
    ("123456789012345", "123456789012345.0", "0123456789012345"),
)
DIFFERENT = (("101", "1010"), ("a7", "a07"), ("café", "cafe"), ("Ann", "ann"), ("1", "-1"))


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield Path(name)


@contextlib.contextmanager
def _at_every_step(look: Callable[[str], None]) -> Iterator[None]:
    kept = streaming.step
    streaming.step = look
    try:
        yield
    finally:
        streaming.step = kept


# ids


def _known(one: str, other: str) -> bool:
    """Whether the ledger refuses to release one id after the other."""
    with _folder() as folder:
        for name, word in (("first.csv", one), ("second.csv", other)):
            (folder / name).write_text(f"id,a\n{word},0.5\n", encoding="utf-8")
        book = folder / "book"
        NO_ATOM.release_file(folder / "first.csv", folder / "1.csv", ledger=book, row_id="id")
        try:
            NO_ATOM.release_file(folder / "second.csv", folder / "2.csv", ledger=book, row_id="id")
        except ValueError:
            return not (folder / "2.csv").exists()
    return False


def _known_as_text(one: str, other: str) -> bool:
    """The control: a ledger that keeps ids as the text of the field."""
    seen: set[str] = set()
    for word in (one, other):
        text = str(pd.read_csv(io.StringIO(f"id,a\n{word},0.5\n"), dtype=str)["id"][0])
        if text in seen:
            return True
        seen.add(text)
    return False


def _known_in_parquet(one: pd.Series, other: pd.Series) -> bool:
    with _folder() as folder:
        for name, ids in (("first", one), ("second", other)):
            pd.DataFrame({"id": ids, "a": 0.5}).to_parquet(folder / f"{name}.parquet")
        book = folder / "book"
        NO_ATOM.release_file(folder / "first.parquet", folder / "1.parquet", ledger=book, row_id="id")
        try:
            NO_ATOM.release_file(folder / "second.parquet", folder / "2.parquet", ledger=book, row_id="id")
        except ValueError:
            return not (folder / "2.parquet").exists()
    return False


def ids() -> Iterator[Line]:
    pairs = [(one, other) for forms in SAME for one in forms for other in forms if one != other]
    missed = [pair for pair in pairs if not _known(*pair)]
    blamed = [pair for pair in DIFFERENT if _known(*pair)]
    whole, text = pd.Series([101, 7]), pd.Series(["101", "7"])
    kinds = (whole, whole.astype(float), whole.astype("int32"), whole.astype("Int64"), text, text + ".0")
    typed = [(k, m) for k in range(len(kinds)) for m in range(len(kinds)) if k != m]
    lost = [pair for pair in typed if not _known_in_parquet(*(kinds[k] for k in pair))]
    control = sum(not _known_as_text(*pair) for pair in pairs)
    said = f"{len(missed)} of {len(pairs)} in CSV, {len(lost)} of {len(typed)} in Parquet; naive {control}"
    held = not missed and not lost and control > 0
    yield "one person taken for two by the form of the id", "0; naive some", said, held
    said = f"{len(blamed)} of {len(DIFFERENT)}"
    yield "two persons taken for one", "0", said, not blamed


# a source that changes


def _table(path: Path, values: np.ndarray) -> None:
    """The same layout whatever the values: eight digits each, so a change in place keeps every offset."""
    if path.suffix == ".csv":
        lines = [f"{k:06d},{value:.8f}" for k, value in enumerate(values)]
        path.write_text("id,a\n" + "\n".join(lines) + "\n", encoding="ascii")
    else:
        table = pd.DataFrame({"id": range(len(values)), "a": values})
        table.to_parquet(path, compression=None, row_group_size=BATCH)


def _numbers(raw: bytes) -> np.ndarray:
    """Column a of the complete records of a CSV file that may be unfinished."""
    lines = raw.split(b"\n")[1:-1]
    return np.array([float(line.split(b",")[1]) for line in lines])


def _subtracted(copies: list[np.ndarray], difference: np.ndarray) -> int:
    """Rows in which two copies differ by just what the two data sets differ: the noise is gone."""
    tick, found = float(NO_ATOM.tick[0]), 0
    for k, one in enumerate(copies):
        for other in copies[k + 1 :]:
            n = min(len(one), len(other))
            gap = np.abs(one[:n] - other[:n])
            found += int((np.abs(gap - np.abs(difference[:n])) <= 1.5 * tick).sum())
    return found


class _Race:
    """A source whose content is exchanged at one moment, while somebody copies whatever noisy bytes lie about."""

    def __init__(self, folder: Path, ending: str, how: str) -> None:
        self.how, self.when, self.count = how, -1, 0
        self.public = folder / "public"
        self.public.mkdir()
        self.source, self.target = folder / f"in.{ending}", self.public / f"out.{ending}"
        rng = np.random.default_rng()
        self.first = rng.integers(0, 2**24, 4 * BATCH) / 2**25
        self.second = 0.5 + rng.integers(0, 2**24, 4 * BATCH) / 2**25
        _table(folder / f"other.{ending}", self.second)
        _table(self.source, self.first)
        self.new, self.old = (folder / f"other.{ending}").read_bytes(), self.source.read_bytes()
        self.times = os.stat(self.source).st_atime_ns, os.stat(self.source).st_mtime_ns
        self.copies: list[bytes] = []

    def exchange(self, content: bytes) -> None:
        if self.how == "replaced":
            fresh = self.source.with_name("fresh")
            fresh.write_bytes(content)
            os.replace(fresh, self.source)
        else:
            with open(self.source, "r+b") as handle:
                handle.write(content)
                handle.truncate()
        os.utime(self.source, ns=self.times)

    def look(self, _: str = "") -> None:
        if self.count == self.when:
            self.exchange(self.new)
        self.count += 1
        for path in self.public.rglob("*"):
            if path.is_file() and path.suffix != ".json":
                self.copies.append(path.read_bytes())

    def values(self) -> list[np.ndarray]:
        distinct = []
        for raw in dict.fromkeys(self.copies):
            if raw.startswith(b"id,a\n"):
                distinct.append(_numbers(raw))
            elif raw.startswith(b"PAR1") and raw.endswith(b"PAR1") and len(raw) > 12:
                with contextlib.suppress(Exception):  # unfinished
                    scratch = self.source.with_name("seen.parquet")
                    scratch.write_bytes(raw)
                    distinct.append(pd.read_parquet(scratch)["a"].to_numpy())
        return distinct


def _raced(ending: str, how: str, when: int, release: Callable[[_Race], None]) -> tuple[int, int, bool]:
    """One run with a change at step ``when``, a rerun, one with the old content: subtracted rows, steps, published."""
    with _folder() as folder:
        race = _Race(folder, ending, how)
        race.when = when
        published, steps = False, 0
        for content in (None, None, race.old):
            if content is not None:
                race.exchange(content)
            try:
                release(race)
                published = True
            except REFUSED:
                pass
            race.when = -1
            steps = steps or race.count
            race.look()
        return _subtracted(race.values(), race.second - race.first), steps, published


def _safe(race: _Race) -> None:
    with _at_every_step(race.look):
        book = race.source.with_name("book")
        NO_ATOM.release_file(race.source, race.target, ledger=book, batch_rows=BATCH)


def _keyed(race: _Race) -> None:
    """The control: a key per release, kept until it is done; the source is read when it is needed."""
    key = race.source.with_name("key")
    if not key.exists():
        key.write_bytes(os.urandom(16))
    race.look()
    noise = NO_ATOM.simulate(np.zeros((4 * BATCH, 1)), int.from_bytes(key.read_bytes(), "big")).data[:, 0]
    for rows in range(1, 5):
        table = pd.read_csv(race.source)
        table["a"] += noise
        table[: rows * BATCH].to_csv(race.target, index=False)
        race.look()


def snapshots() -> Iterator[Line]:
    for ending in ("csv", "parquet"):
        lost = runs = published = 0
        for how in ("in place", "replaced"):
            steps = _raced(ending, how, -1, _safe)[1]
            for when in range(steps):
                found, _, done = _raced(ending, how, when, _safe)
                lost, runs, published = lost + found, runs + 1, published + done
        control = sum(_raced("csv", "in place", when, _keyed)[0] for when in range(4))
        said = f"{lost} rows in {runs} runs, {published} of them released later; naive {control}"
        figure = f"source changes while it is read, {ending}: noise subtracted"
        yield figure, "0 rows; naive some", said, lost == 0 < control and published > 0


# who can read what


class _Onlooker:
    """Before every action on files that Python reports, looks at what everybody could read."""

    def __init__(self) -> None:
        self.root: Path | None = None
        self.allowed: set[Path] = set()
        self.loose: set[str] = set()
        self.looks = 0
        self._busy = False

    def __call__(self, event: str, _: object) -> None:
        interesting = event == "open" or event.split(".")[0] in ("os", "shutil", "sqlite3", "tempfile")
        if self.root is not None and interesting and not self._busy:
            self.look()

    def look(self) -> None:
        self._busy = True
        try:
            self.looks += 1
            self._enter(self.root)
        finally:
            self._busy = False

    def _enter(self, folder: Path) -> None:
        try:
            entries = list(os.scandir(folder))
        except OSError:
            return
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                mode, path = entry.stat(follow_symlinks=False).st_mode, Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    if mode & 0o077:
                        self._enter(path)
                elif mode & 0o077 and path not in self.allowed and entry.stat(follow_symlinks=False).st_size:
                    self.loose.add(path.name)


_ONLOOKER = _Onlooker()
_HOOKED: list[bool] = []


def _watched(ending: str, release: Callable[[Path, Path, Path], None], ready: bool) -> tuple[set[str], int]:
    """Files that others could read while a release was running, under the loosest umask; and how often was looked."""
    if not _HOOKED:
        sys.addaudithook(_ONLOOKER)  # for good: there is no way to take one off
        _HOOKED.append(True)
    kept = os.umask(0)
    try:
        with _folder() as folder:
            folder.chmod(0o777)
            raw, public = folder / "raw", folder / "public"
            raw.mkdir(0o777)
            public.mkdir(0o777)
            source, target, book = raw / f"in.{ending}", public / f"out.{ending}", raw / "book"
            _table(source, np.linspace(0, 1, 4 * BATCH))
            allowed = {source}
            if ready:  # others may read what is complete: the metadata go first
                allowed |= {target, public / f"out.{ending}.json"}
            _ONLOOKER.root, _ONLOOKER.allowed, _ONLOOKER.loose, _ONLOOKER.looks = folder, allowed, set(), 0
            with _at_every_step(lambda name: _ONLOOKER.look()):
                release(source, target, book)
            _ONLOOKER.look()
    finally:
        _ONLOOKER.root = None
        os.umask(kept)
    return set(_ONLOOKER.loose), _ONLOOKER.looks


def _usual(source: Path, target: Path, book: Path) -> None:
    """The control: a temporary beside the destination, and a ledger by sqlite3, with the modes that they get."""
    import sqlite3

    with contextlib.closing(sqlite3.connect(book)) as ledger:
        ledger.execute("CREATE TABLE keys (key BLOB)")
        ledger.execute("INSERT INTO keys VALUES (?)", (os.urandom(16),))
        ledger.commit()
    table = pd.read_csv(source)
    table["a"] += np.random.default_rng().laplace(size=len(table))
    beside = target.with_name(target.name + ".tmp")
    table.to_csv(beside, index=False)
    _ONLOOKER.look()
    os.replace(beside, target)


def permissions() -> Iterator[Line]:
    def safe(source: Path, target: Path, book: Path) -> None:
        NO_ATOM.release_file(source, target, ledger=book, batch_rows=BATCH)

    def loose_ledger(source: Path, target: Path, book: Path) -> None:
        os.close(os.open(book, os.O_CREAT | os.O_WRONLY, 0o666))
        safe(source, target, book)

    control, _ = _watched("csv", _usual, True)
    for ending in ("csv", "parquet"):
        found, looks = set(), 0
        for release in (safe, loose_ledger):
            loose, count = _watched(ending, release, True)
            found, looks = found | loose, looks + count
        said = f"{', '.join(sorted(found)) or 'none'} in {looks} looks; naive {', '.join(sorted(control))}"
        yield (
            f"files that others can read too early, {ending}",
            "none; naive some",
            said,
            not found and len(control) > 1,
        )
    with _folder() as folder:
        _table(folder / "in.csv", np.linspace(0, 1, 10))
        book = folder / "book"
        NO_ATOM.release_file(folder / "in.csv", folder / "out.csv", ledger=book)
        book.chmod(0o644)
        _table(folder / "more.csv", np.linspace(0.2, 0.7, 10))
        with contextlib.suppress(OSError):
            NO_ATOM.release_file(folder / "more.csv", folder / "2.csv", ledger=book)
        mode = book.stat().st_mode & 0o777
        closed = mode == 0o600 or not (folder / "2.csv").exists()
    yield "a ledger of mode 0644 that is used again", "0600 or refused", f"{mode:04o}", closed


# planted links


def _plant(release: Callable[[Path, Path, Path], None], name: str, ending: str) -> tuple[bool, set[str]]:
    """Whether a file behind a link of this name changes, and the names that the release used."""
    with _folder() as folder:
        raw, public = folder / "raw", folder / "public"
        raw.mkdir()
        public.mkdir()
        source, target, book = raw / f"in.{ending}", public / f"out.{ending}", raw / "book"
        _table(source, np.linspace(0, 1, 4 * BATCH))
        victim = folder / "victim"
        victim.write_bytes(b"precious")
        if name:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).symlink_to(victim)
        used: set[str] = set()

        def look(_: str) -> None:
            used.update(str(path.relative_to(folder)) for path in folder.rglob("*"))

        with _at_every_step(look), contextlib.suppress(*REFUSED):
            release(source, target, book)
        look("")
        used -= {"raw", "public", "victim", f"raw/in.{ending}"}
        return not victim.is_file() or victim.is_symlink() or victim.read_bytes() != b"precious", used


def _followed(release: Callable[[Path, Path, Path], None], ending: str) -> tuple[list[str], int]:
    """Names under which a planted link was followed: those of an earlier run, and the usual ones."""
    _, used = _plant(release, "", ending)
    usual = [f"public/{mark}out.{ending}{tail}" for mark in ("", ".") for tail in (".tmp", ".json.tmp", ".json", "")]
    usual += ["raw/book", "raw/book-journal", "raw/book-wal", "raw/book-shm"]
    names = sorted(used | set(usual))
    return [name for name in names if _plant(release, name, ending)[0]], len(names)


def links() -> Iterator[Line]:
    def safe(source: Path, target: Path, book: Path) -> None:
        NO_ATOM.release_file(source, target, ledger=book, batch_rows=BATCH)

    control = _followed(_usual_without_looking, "csv")[0]
    for ending in ("csv", "parquet"):
        followed, tried = _followed(safe, ending)
        said = f"{', '.join(followed) or 'none'} of {tried} names; naive {', '.join(control)}"
        yield f"planted links that are followed, {ending}", "none; naive some", said, not followed and bool(control)
    guesses = [_plant(safe, "", "csv")[1] for _ in range(2)]
    public = {f"public/{name}" for name in ("out.csv", "out.csv.json")}
    again = {name for name in guesses[0] & guesses[1] if name.startswith("public/")} - public
    said = f"{', '.join(sorted(again)) or 'none'} of {len(guesses[0] | guesses[1])}"
    yield "names of temporaries that come again", "none", said, not again


def _usual_without_looking(source: Path, target: Path, book: Path) -> None:
    _ONLOOKER.root = None
    beside = target.with_name(target.name + ".tmp")
    table = pd.read_csv(source)
    table.to_csv(beside, index=False)
    streaming.step("temporary written")
    os.replace(beside, target)
