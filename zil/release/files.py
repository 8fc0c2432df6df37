"""Files that are either there whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO


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
