"""Files that are either there whole or not at all, and the digest that proves it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import secrets
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


def temporary(path: Path) -> Path:
    """The temporary file of a path that has one writer at a time: what a crash left there, the next run overwrites."""
    return path.with_name(f".{path.name}.tmp")


@contextlib.contextmanager
def atomic(path: str | os.PathLike[str], *, alone: bool = False) -> Iterator[IO[bytes]]:
    """Open a temporary file beside ``path``; on success it is synced and renamed, else removed.

    ``alone=True`` if nobody else writes this path: the name is then that of `temporary`, else one that nobody has.
    """
    target = Path(path)
    begun = temporary(target) if alone else target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(begun, "wb" if alone else "xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(begun, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(begun)
        raise
    sync_directory(target.parent)


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
