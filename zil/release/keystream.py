"""Keys of a release: 32 bytes of the operating system, held where they can be wiped.

A key is made inside the call that uses it and never leaves the process, with one exception: the
ledger of ``release_file`` stores it until the file is complete, so that a crash is answered with the
same bytes and not with a second noisy copy.

What wiping can do: the buffer is overwritten, and Python never sees a second copy of it (an
immutable ``bytes`` cannot be wiped).  What it cannot: registers, pages written to swap, a core dump.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, NoReturn, Self

KEY_BYTES = 32


class Key:
    """Thirty-two secret bytes; a context manager that wipes them on leaving.

    Refuses pickle and copy, and its repr shows nothing: a key that travels is noise that can be subtracted.

    Parameters
    ----------
    secret : bytearray of length 32
        Taken over, not copied: the caller's buffer is the key's buffer and is wiped with it.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytearray) -> None:
        if not isinstance(secret, bytearray):
            raise TypeError(f"a key needs a bytearray, got {type(secret).__name__}")
        if len(secret) != KEY_BYTES:
            raise ValueError(f"a key needs {KEY_BYTES} bytes, got {len(secret)}")
        self._secret = secret

    @classmethod
    def fresh(cls) -> Self:
        """A new key from the operating system.

        Raises
        ------
        OSError, NotImplementedError
            If the operating system has no randomness to give; there is no other source.
        """
        drawn = os.urandom(KEY_BYTES)
        if len(drawn) != KEY_BYTES:
            raise OSError(f"the operating system gave {len(drawn)} random bytes instead of {KEY_BYTES}")
        return cls(bytearray(drawn))

    @property
    def secret(self) -> bytearray:
        """The buffer itself; ValueError once wiped."""
        if not self._secret:
            raise ValueError("this key has been wiped")
        return self._secret

    @property
    def wiped(self) -> bool:
        return not self._secret

    def wipe(self) -> None:
        """Overwrite and forget; harmless when repeated."""
        secret = self._secret
        self._secret = bytearray()
        for i in range(len(secret)):
            secret[i] = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wipe()

    def __del__(self) -> None:
        if hasattr(self, "_secret"):
            self.wipe()

    def __repr__(self) -> str:
        return "<zil key, not shown>"

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError("a key is used once, by the call that made it: it can be neither copied nor pickled")

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse
