"""The digest of a published file, and what a file without one can still tell.

The digest covers everything that is written: the pages or lines of the table, the names and types of its columns and
what is said about the release.  It is the SHA-256 of the published bytes in which the 64 hexadecimal digits of the
digest itself are zeros; for a CSV file these are its bytes followed by those of the JSON beside it.  So it can be
checked without zil, by ``sed`` and ``sha256sum``.

It notices damage, and changes by people who mean no harm.  It is no authentication: who changes a file on purpose can
write a new digest.

Design: against a digest of a canonical form of data, metadata and schema.  No such form of an Arrow schema is the same
in all versions of all libraries, and it would leave out the rest of a Parquet footer (where the pages lie, their
statistics).
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from zil._validate import SchemaError
from zil.release import metadata as facts

BLOCK = 1 << 20
KEY = b"zil"  # of the metadata in a Parquet footer
BLANK = "0" * 64
ATTRS = b"PANDAS_ATTRS"  # what pandas reads into DataFrame.attrs, and writes again
MARK = "published by zil with noise: read the file with zil.load"
CHANGED = "the file was changed after it was written, or damaged"

_DIGEST = re.compile(rb'"sha256": "([0-9a-f]{64})"(?:,\s*"sha256_bytes": (\d{1,18}))?')


class Sink(io.RawIOBase):
    """A writable stream that digests what goes through it; once `hold` is called it keeps it back."""

    def __init__(self, inner: IO[bytes]) -> None:
        self._inner = inner
        self._hash = hashlib.sha256()
        self._held: bytearray | None = None
        self._count = 0
        self.muted = False  # what is written then goes nowhere

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        block = memoryview(data).cast("B")
        if self.muted:
            return len(block)
        self._count += len(block)
        if self._held is not None:
            self._held += block
        else:
            self._inner.write(block)
            self._hash.update(block)
        return len(block)

    def tell(self) -> int:
        return self._count

    def hold(self) -> None:
        self._held = bytearray()

    def seal(self, text: bytes) -> str:
        """Write what was held, with the digest in place of the blank one that the last ``text`` in it holds."""
        held = bytes(self._held or b"")
        place = held.rindex(text) + text.rindex(BLANK.encode("ascii"))
        self._hash.update(held)
        digest = self._hash.hexdigest()
        self._inner.write(held[:place] + digest.encode("ascii") + held[place + len(BLANK) :])
        return digest

    def with_text(self, text: bytes) -> str:
        """The digest of what was written and ``text``, whose own digest is blank."""
        whole = self._hash.copy()
        whole.update(text)
        return whole.hexdigest()


def _blanked(described: dict[str, Any]) -> dict[str, Any]:
    return {**{k: v for k, v in described.items() if not k.startswith("sha256")}, "sha256": BLANK}


def marked(schema: Any) -> Any:
    """The Arrow schema of a Parquet file to be, with a mark that pandas and pyarrow keep when they save it again."""
    attrs = json.dumps({KEY.decode("ascii"): MARK}).encode("ascii")
    return schema.with_metadata({**(schema.metadata or {}), ATTRS: attrs})


def seal_parquet(sink: Sink, writer: Any, described: dict[str, Any]) -> dict[str, Any]:
    """Close a ``ParquetWriter`` that writes a `marked` schema to ``sink``; the footer gets metadata and digest.

    Returns
    -------
    dict
        The metadata as it stands in the footer.
    """
    blank = _blanked(described)
    text = facts.dumps(blank)
    writer.add_key_value_metadata({KEY: text})
    sink.hold()
    writer.close()
    return {**blank, "sha256": sink.seal(text.encode("utf-8"))}


def seal_csv(sink: Sink, described: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a CSV file that was written to ``sink``; `metadata.dumps` of it goes beside the file."""
    blank = _blanked(described)
    return {**blank, "sha256": sink.with_text(facts.dumps(blank).encode("utf-8"))}


@contextlib.contextmanager
def guarded(what: str) -> Iterator[None]:
    """A library's error about the content of a file becomes SchemaError(what): its own words may hold a cell."""
    try:
        yield
    except (SchemaError, ImportError):
        raise
    except OSError as error:
        if error.errno is not None:  # of the operating system: no permission, a disk that fails
            raise
        raise SchemaError(what) from None
    except (ValueError, TypeError, LookupError, ArithmeticError, MemoryError, RuntimeError, csv.Error):
        raise SchemaError(what) from None


def footer_text(path: str | os.PathLike[str]) -> dict[bytes, bytes]:
    """The key-value pairs of a Parquet footer.

    Raises
    ------
    SchemaError
        Not a Parquet file, or a damaged one.
    """
    import pyarrow.parquet as pq

    with open(path, "rb") as handle, guarded("this is not a Parquet file, or a damaged one"):
        return dict(pq.read_metadata(handle).metadata or {})


def is_marked(stored: Any) -> bool:
    """Whether key-value pairs of a Parquet footer or an Arrow schema say that zil once published the table."""
    if not isinstance(stored, dict):
        return False
    if KEY in stored:
        return True
    try:
        return KEY.decode("ascii") in json.loads(stored.get(ATTRS, b"{}"))
    except (ValueError, TypeError, RecursionError):
        return False


def parquet_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The metadata of a published Parquet file, after its digest was checked.

    Raises
    ------
    SchemaError
        Not a Parquet file, none of zil's, or not as it was written.
    """
    start, tail = _tail(path)
    try:
        stored = footer_text(path)
    except SchemaError:
        if facts.is_ours(tail):
            raise SchemaError(f"{CHANGED}: its sha256 differs from the metadata") from None
        raise
    if KEY not in stored:
        if is_marked(stored):
            raise SchemaError(
                "this Parquet file was published by zil and saved again by another tool, which dropped what zil said "
                "about its noise: use the published file itself"
            )
        raise SchemaError(
            "this Parquet file holds no zil metadata: it was not written by zil, or another tool that saved it again "
            "dropped them"
        )
    text = stored[KEY]
    match, place = _last(text), tail.rfind(text)
    if match is not None:
        _verify(path, match, start + place + match.start(1), None)
    return _sealed(text)


def _tail(path: str | os.PathLike[str]) -> tuple[int, bytes]:
    """Where the footer of a Parquet file begins, and its bytes; empty if it has none."""
    with open(path, "rb") as handle:
        size = os.fstat(handle.fileno()).st_size
        handle.seek(max(size - 8, 0))
        start = size - 8 - int.from_bytes(handle.read(4), "little")
        if start < 0:
            return 0, b""
        handle.seek(start)
        return start, handle.read()


def csv_metadata(path: str | os.PathLike[str], beside: Path) -> dict[str, Any]:
    """The metadata beside a published CSV file, after their digest was checked.

    Raises
    ------
    SchemaError
        They are missing, not of zil, or not as they were written.
    """
    if not beside.exists():
        if not os.path.exists(path):
            raise FileNotFoundError(f"no such file: {os.fspath(path)}")
        raise SchemaError(f"no metadata beside the CSV file: {beside.name} is missing")
    text = beside.read_bytes()
    match = _last(text)
    if match is not None:
        _verify(path, match, None, text)
    return _sealed(text)


def _sealed(text: bytes) -> dict[str, Any]:
    result = facts.loads(text)
    if "sha256" not in result:
        raise SchemaError("the zil metadata are damaged: sha256 is missing")
    return result


def _last(text: bytes) -> re.Match[bytes] | None:
    found = list(_DIGEST.finditer(text))
    return found[-1] if found else None


def _verify(path: str | os.PathLike[str], match: re.Match[bytes], place: int | None, beside: bytes | None) -> None:
    """Compare with the digest that ``match`` found at ``place`` of the file, or in the text ``beside`` it."""
    wanted, covered = match.group(1).decode("ascii"), match.group(2)
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        size = os.fstat(handle.fileno()).st_size
        left = size if covered is None else int(covered)  # format 1: so many bytes from the start, and no metadata
        if covered is not None and not (left == size if beside is not None else left < size):
            raise SchemaError(f"{CHANGED}: its size differs from the metadata")
        at = 0
        while left and (block := handle.read(min(BLOCK, left))):
            if covered is None and place is not None:
                block = _zeroed(block, place - at)
            digest.update(block)
            at, left = at + len(block), left - len(block)
    if covered is None and beside is not None:
        digest.update(_zeroed(beside, match.start(1)))
    if digest.hexdigest() != wanted:
        raise SchemaError(f"{CHANGED}: its sha256 differs from the metadata")


def _zeroed(block: bytes, place: int) -> bytes:
    """The block with those of the 64 bytes from ``place`` on that lie in it replaced by the digit 0."""
    low, high = max(place, 0), min(place + len(BLANK), len(block))
    return block if low >= high else block[:low] + b"0" * (high - low) + block[high:]
