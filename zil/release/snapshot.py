"""A source that cannot change between two readings.

Design: the file is hashed block by block once, before anything else is done with it, and every later byte comes from
a block that has the same hash.  So the file that was checked, the file that is noised and the file that the second
reader compares with are the same bytes, whoever writes to it meanwhile and in whatever order a Parquet reader jumps
about in it; and no copy of the raw data is made.
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import IO, Any

BLOCK = 1 << 20
DIGEST = 16  # bytes of the hash of a block


class SourceChanged(ValueError):
    """The source is no longer what it was when the release began."""

    def __init__(self) -> None:
        super().__init__("the source changed while it was being released: nothing was published")


class Snapshot:
    """A file as it is now; a context manager that keeps it open.

    Parameters
    ----------
    path
    whole : hashlib object
        Fed with the whole file; its digest is that of the source.
    """

    def __init__(self, path: Path, whole: Any) -> None:
        self._handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self._blocks: list[bytes] = []
        self.size = 0
        try:
            while block := os.read(self._handle, BLOCK):
                while len(block) < BLOCK and (more := os.read(self._handle, BLOCK - len(block))):
                    block += more
                whole.update(block)
                self._blocks.append(_hash(block))
                self.size += len(block)
        except BaseException:
            self.close()
            raise
        self.digest: bytes = whole.digest()

    def close(self) -> None:
        os.close(self._handle)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def block(self, number: int) -> bytes:
        """A block of the file, the same as at the beginning.

        Raises
        ------
        SourceChanged
            It is another one now.
        """
        start = number * BLOCK
        wanted = min(BLOCK, self.size - start)
        found = b""
        while len(found) < wanted and (more := os.pread(self._handle, wanted - len(found), start + len(found))):
            found += more
        if _hash(found) != self._blocks[number]:
            raise SourceChanged
        return found

    def open(self) -> IO[bytes]:
        """A reader of its own, at the beginning."""
        return io.BufferedReader(_Reader(self), BLOCK)


def _hash(block: bytes) -> bytes:
    return hashlib.blake2b(block, digest_size=DIGEST).digest()


class _Reader(io.RawIOBase):
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._place = snapshot, 0
        self._number, self._block = -1, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._snapshot.size}[whence]
        self._place = max(start + offset, 0)
        return self._place

    def readinto(self, target: Any, /) -> int:
        number, skip = divmod(self._place, BLOCK)
        if self._place >= self._snapshot.size:
            return 0
        if number != self._number:
            self._number, self._block = number, self._snapshot.block(number)
        piece = self._block[skip : skip + len(target)]
        target[: len(piece)] = piece
        self._place += len(piece)
        return len(piece)
