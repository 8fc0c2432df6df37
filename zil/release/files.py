"""Files that are either there whole or not at all, and the digest that proves it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from zil._validate import SchemaError
from zil.release import metadata as facts

BLOCK = 1 << 20
KEY = b"zil"  # of the metadata in a Parquet footer


def file_format(path: str | os.PathLike[str]) -> str:
    """``"csv"`` or ``"parquet"`` by the name's ending."""
    suffix = Path(path).suffix.lower()
    if suffix == ".csv":
        return "csv"
    if suffix in (".parquet", ".pq"):
        return "parquet"
    raise ValueError(f"a file name must end in .parquet, .pq or .csv, got {suffix or 'no ending'!r}")


def sidecar(path: str | os.PathLike[str]) -> Path:
    """Where the metadata of a CSV file lies."""
    return Path(f"{os.fspath(path)}.json")


def sync_directory(path: Path) -> None:
    """Make a rename inside the directory durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Workplace:
    """A folder beside a destination that nobody else can enter; what lies in it is not published yet.

    A context manager: entering makes the folder (mode 0700) anew, leaving removes it with what is left in it.

    Parameters
    ----------
    target
        The file that is to be published; the folder is beside it, because only a rename inside one file system is
        done in one step.
    token : str
        Makes the name of the folder one that nobody can guess.  A rerun after a crash gives the same one and finds
        what the crash left.
    """

    def __init__(self, target: Path, token: str) -> None:
        self.target = target
        self.path = target.with_name(f".zil-{token}")
        self._folder = -1

    def __enter__(self) -> Workplace:
        self.clear()
        os.mkdir(self.path, 0o700)
        self._folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        os.close(self._folder)
        if kind is None or issubclass(kind, Exception):  # else it is a crash, and the next run clears up
            self.clear()

    def clear(self) -> None:
        """Remove what an earlier run left.

        Raises
        ------
        PermissionError
            The folder is not one that this user made.
        """
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise PermissionError(f"{self.path.name} beside dst was not made by zil: remove it")
        shutil.rmtree(self.path)

    def create(self, name: str) -> IO[bytes]:
        """A new file (mode 0600) in the folder, open for writing."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.fdopen(os.open(name, flags, 0o600, dir_fd=self._folder), "w+b")

    def inside(self, name: str) -> Path:
        return self.path / name

    def publish(self, name: str, target: Path) -> None:
        """Give a complete file its public name in one step.

        It gets the mode of a file that was there, or the usual one.  The caller has synced it, and syncs the
        directory of ``target`` afterwards.
        """
        try:
            mode = stat.S_IMODE(os.stat(target).st_mode)
        except FileNotFoundError:
            mode = self._usual_mode()
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._folder)
        try:
            os.fchmod(handle, mode)
        finally:
            os.close(handle)
        os.replace(name, target, src_dir_fd=self._folder)

    def _usual_mode(self) -> int:
        """What the umask (or the folder's own rule) leaves of 0666; asking the umask itself would change it."""
        handle = os.open("mode", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=self._folder)
        try:
            return stat.S_IMODE(os.fstat(handle).st_mode)
        finally:
            os.close(handle)
            os.unlink("mode", dir_fd=self._folder)


def synced(handle: IO[bytes]) -> None:
    """Everything written so far is on the disk."""
    handle.flush()
    os.fsync(handle.fileno())


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file that is there whole or not at all: in a `Workplace` until the block ends without an error."""
    target = Path(path)
    with Workplace(target, secrets.token_hex(8)) as place:
        with place.create("file") as handle:
            yield handle
            synced(handle)
        place.publish("file", target)
    sync_directory(target.parent)


@contextlib.contextmanager
def publishing(folder: Path) -> Iterator[None]:
    """One at a time, among all processes that publish into this folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def sha256(path: Path) -> str:
    """Of the whole file, in hexadecimal."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


class Hashing(io.RawIOBase):
    """A writable stream that counts and digests what goes through it."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner
        self._hash = hashlib.sha256()
        self.count = 0
        self.muted = False  # what is written then goes nowhere

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        block = memoryview(data).cast("B")
        if self.muted:
            return len(block)
        self._inner.write(block)
        self._hash.update(block)
        self.count += len(block)
        return len(block)

    def tell(self) -> int:
        return self.count

    def digest(self) -> dict[str, Any]:
        """``sha256`` of the first ``sha256_bytes`` bytes of the file."""
        return {"sha256": self._hash.hexdigest(), "sha256_bytes": self.count}


def footer(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The zil metadata of a Parquet file.

    Raises
    ------
    SchemaError
        Not a Parquet file, or not one of zil's.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as handle:
            stored = pq.read_metadata(handle).metadata or {}
    except pa.ArrowException:
        raise SchemaError("this is not a Parquet file, or a damaged one") from None
    if KEY not in stored:
        raise SchemaError("this Parquet file holds no zil metadata: it was not written by zil")
    return facts.loads(stored[KEY])


def has_metadata(path: str | os.PathLike[str]) -> bool:
    """Whether a Parquet file was written by zil."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with open(path, "rb") as handle:
            return KEY in (pq.read_metadata(handle).metadata or {})
    except pa.ArrowException:
        raise SchemaError("this is not a Parquet file, or a damaged one") from None


def verify(path: str | os.PathLike[str], metadata: dict[str, Any], whole: bool) -> None:
    """Compare a file with the digest in its metadata.

    Raises
    ------
    SchemaError
        The file is not the one that was written.
    """
    wanted, left = metadata.get("sha256"), metadata.get("sha256_bytes")
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        size = os.fstat(handle.fileno()).st_size
        good = isinstance(left, int) and isinstance(wanted, str) and (size == left if whole else size > left)
        while good and left:
            block = handle.read(min(BLOCK, left))
            if not block:
                break
            digest.update(block)
            left -= len(block)
    if not good or digest.hexdigest() != wanted:
        raise SchemaError("the file was changed or damaged after it was released: its sha256 differs from the metadata")
