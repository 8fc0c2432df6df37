"""The ledger of releases: each row once, and a crash answered with the same bytes.

An SQLite file (mode 0600, every commit on disk before it returns) that holds, for each release,
its state and, until the file is complete, its key.  Rows and sources appear only as keyed MACs
whose key never leaves the ledger: who reads it learns neither values nor identifiers, but they
could subtract the noise of a release that is still pending.  Keep it where the raw data is.

A ledger is bound to the column that identifies rows (or to none): the same person under two columns of ids would
be two people to it.

Erasing a key overwrites it where it stood: in the database file (``secure_delete``) and in the rollback
journal, which keeps the pages as they were before.  If a crash comes between the two, the next
opening of the ledger does the rest.  What a file system with snapshots or an SSD keeps of
overwritten blocks is beyond its reach.

Design: SQLite's own rollback journal and ``synchronous = FULL``, because the ledger must survive
any crash; a journal in memory would never show the key but could lose the ledger, and a
write-ahead log shows it longer.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zil.release.keystream import Key

SCHEMA = """
CREATE TABLE IF NOT EXISTS ledger (version INTEGER NOT NULL, secret BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS releases (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('pending', 'written', 'done')),
    source BLOB NOT NULL,
    place BLOB NOT NULL,
    parameters BLOB NOT NULL,
    key BLOB,
    base TEXT,
    sha256 TEXT,
    n_rows INTEGER NOT NULL,
    total_rows INTEGER NOT NULL,
    spent TEXT NOT NULL,
    row_id TEXT,
    noised TEXT NOT NULL,
    passed TEXT NOT NULL,
    token TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS rows (mac BLOB PRIMARY KEY, release TEXT NOT NULL) WITHOUT ROWID;
"""
VERSION = 2
MAC_BYTES = 16
BLOCK = bytes(1 << 20)
CACHE = 64 << 20  # bytes of pages in memory: MACs of rows come in no order


@dataclass(frozen=True)
class Entry:
    """One release in the ledger.

    Attributes
    ----------
    id, state : str
        ``"pending"`` (nothing of it was ever published), ``"written"`` (complete, perhaps published) or ``"done"``.
    source, place, parameters : bytes
        MACs of the source's content, of where it lies, and of the mechanism with all choices of the call.
    base : str or None
        sha256 of the file it appends to.
    sha256 : str or None
        That of the file it left.
    n_rows, total_rows : int
        Of this release, and of the file.
    spent : str
        JSON list of what this source has spent: one entry per release of it, the own one last.
    row_id : str or None
        The column that identifies rows.
    noised, passed : list of str
        Names of the columns published with noise, and as they are.
    token : str
        Names the folder in which the file is written.
    """

    id: str
    state: str
    source: bytes
    place: bytes
    parameters: bytes
    base: str | None
    sha256: str | None
    n_rows: int
    total_rows: int
    spent: str
    row_id: str | None
    noised: list[str]
    passed: list[str]
    token: str


def _only_ours(path: Path) -> None:
    """Make the file, or make sure that nobody else can read the one that is there.

    O_EXCL is not wanted: an existing ledger is opened; a new one is never readable by others.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PermissionError("the ledger must not be a symbolic link: name the file itself") from None
        raise
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("the ledger path holds a file that is not a ledger")
        if found.st_mode & 0o077:
            if found.st_uid != os.geteuid():
                raise PermissionError("the ledger can be read by others and belongs to another user")
            os.fchmod(handle, 0o600)
    finally:
        os.close(handle)


class Ledger:
    """An open ledger; a context manager that holds it exclusively.

    Parameters
    ----------
    path
        Created with mode 0600 if it does not exist.

    Raises
    ------
    ValueError
        Not a ledger, or in use by another process.
    PermissionError
        It belongs to another user, or the path is a symbolic link.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        _only_ours(self.path)
        self._db = sqlite3.connect(self.path, timeout=5.0, isolation_level=None)
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA temp_store = FILE")
            self._db.execute(f"PRAGMA cache_size = -{CACHE >> 10}")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA secure_delete = ON")
            with self.transaction():
                ledger, *tables = SCHEMA.split(";")
                self._db.execute(ledger)
                found = self._db.execute("SELECT version, secret FROM ledger").fetchall()
                if not found:
                    found = [(VERSION, secrets.token_bytes(32))]
                    self._db.execute("INSERT INTO ledger VALUES (?, ?)", found[0])
                if found[0][0] == VERSION:
                    for statement in tables:
                        self._db.execute(statement)
            # rows of others that the file at hand was seen to hold; a ledger is opened for one file
            self._db.execute("CREATE TEMP TABLE seen (mac BLOB PRIMARY KEY) WITHOUT ROWID")
        except sqlite3.OperationalError as error:
            self._db.close()
            if "locked" in str(error):
                raise ValueError("the ledger is in use by another process") from None
            raise
        except sqlite3.DatabaseError:
            self._db.close()
            raise ValueError("the ledger path holds a file that is not a ledger") from None
        if found[0][0] != VERSION:
            self._db.close()
            raise ValueError(f"the ledger has version {found[0][0]}, this zil reads version {VERSION}")
        self._secret: bytes = found[0][1]
        self._wipe_journal()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing, and on disk afterwards."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _wipe_journal(self) -> None:
        """Overwrite the rollback journal; between transactions SQLite reads its header alone, and that is 0."""
        real = self.path.resolve()
        journal = real.with_name(f"{real.name}-journal")
        if not journal.exists():
            return
        handle = os.fdopen(os.open(journal, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "r+b", buffering=0)
        with handle:
            left = os.fstat(handle.fileno()).st_size
            while left > 0:
                left -= handle.write(BLOCK[:left])
            os.fsync(handle.fileno())

    def hasher(self, purpose: bytes) -> hashlib.blake2b:
        """A MAC under the ledger's secret, to be fed and finished by the caller."""
        return hashlib.blake2b(key=self._secret, digest_size=MAC_BYTES, person=purpose)

    def mac(self, purpose: bytes, data: bytes) -> bytes:
        result = self.hasher(purpose)
        result.update(data)
        return result.digest()

    _COLUMNS = (
        "id, state, source, place, parameters, base, sha256, n_rows, total_rows, spent, row_id, noised, passed, token"
    )

    def _entries(self, condition: str, *values: Any) -> list[Entry]:
        """Oldest first."""
        found = self._db.execute(f"SELECT {self._COLUMNS} FROM releases {condition} ORDER BY rowid", values)
        lists = ("noised", "passed")
        rows = (dict(zip(self._COLUMNS.split(", "), row, strict=True)) for row in found)
        return [Entry(**{k: json.loads(v) if k in lists else v for k, v in row.items()}) for row in rows]

    def find(self, release_id: str) -> Entry | None:
        return next(iter(self._entries("WHERE id = ?", release_id)), None)

    def of_source(self, source: bytes, place: bytes) -> list[Entry]:
        """Every release of the same content, or of what lay at the same place."""
        return self._entries("WHERE source = ? OR place = ?", source, place)

    def all(self) -> list[Entry]:
        """Every release."""
        return self._entries("")

    def of_file(self, sha256: str) -> Entry | None:
        """The finished release that left a file with this digest."""
        return next(iter(self._entries("WHERE sha256 = ? AND state = 'done'", sha256)), None)

    def open(self, entry: Entry) -> None:
        """Note a release as pending, with a fresh key."""
        names = f"({self._COLUMNS}, key)"
        with Key.fresh() as key:
            values = (
                entry.id,
                "pending",
                entry.source,
                entry.place,
                entry.parameters,
                entry.base,
                None,
                entry.n_rows,
                entry.total_rows,
                entry.spent,
                entry.row_id,
                json.dumps(entry.noised),
                json.dumps(entry.passed),
                entry.token,
                key.secret,
            )
            self._db.execute(f"INSERT INTO releases {names} VALUES ({', '.join('?' * len(values))})", values)

    def key(self, release_id: str) -> Key:
        """The key of a release that is not done."""
        (stored,) = self._db.execute("SELECT key FROM releases WHERE id = ?", (release_id,)).fetchone()
        if stored is None:
            raise ValueError("this release is done: its key was erased")
        return Key(bytearray(stored))

    def written(self, release_id: str, sha256: str) -> None:
        """The temporary file is complete and on disk."""
        with self.transaction():
            self._db.execute("UPDATE releases SET state = 'written', sha256 = ? WHERE id = ?", (sha256, release_id))

    def done(self, release_id: str) -> None:
        """The file has its name: erase the key."""
        with self.transaction():
            self._db.execute("UPDATE releases SET state = 'done', key = NULL WHERE id = ?", (release_id,))
        self._wipe_journal()

    def withdraw(self, release_id: str) -> None:
        """Forget a release of which nothing was published, with its key and its rows."""
        with self.transaction():
            self._db.execute("DELETE FROM releases WHERE id = ?", (release_id,))
            self._db.execute("DELETE FROM rows WHERE release = ?", (release_id,))
        self._wipe_journal()

    def waiting(self, macs: Sequence[bytes]) -> bool:
        """Whether some of these rows belong to a release that is not done."""
        if self._db.execute("SELECT 1 FROM releases WHERE state != 'done'").fetchone() is None:
            return False
        command = "SELECT 1 FROM rows JOIN releases ON release = id WHERE mac = ? AND state != 'done'"
        return any(self._db.execute(command, (mac,)).fetchone() for mac in macs)

    def claim(self, macs: Sequence[bytes], release_id: str) -> tuple[int, bool]:
        """Give rows that nobody has to a release: how many, and whether this file has a row twice."""
        taken = self._added("INSERT OR IGNORE INTO rows VALUES (?, ?)", [(mac, release_id) for mac in macs])
        if taken == len(macs):
            return taken, False
        own = self.owned(macs, release_id)
        others = [(mac,) for mac, mine in zip(macs, own, strict=True) if not mine]
        distinct = self._added("INSERT OR IGNORE INTO seen VALUES (?)", others)
        return taken, sum(own) > taken or distinct < len(others)

    def _added(self, command: str, values: list[tuple[Any, ...]]) -> int:
        before = self._db.total_changes
        self._db.executemany(command, values)
        return self._db.total_changes - before

    def owned(self, macs: Sequence[bytes], release_id: str) -> list[bool]:
        """For each row whether it belongs to this release."""
        command = "SELECT release = ? FROM rows WHERE mac = ?"
        found = (self._db.execute(command, (release_id, mac)).fetchone() for mac in macs)
        return [bool(row and row[0]) for row in found]
