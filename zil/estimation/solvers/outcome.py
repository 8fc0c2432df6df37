"""What a search came to."""

from __future__ import annotations

from dataclasses import dataclass

from zil._validate import FloatArray


@dataclass(frozen=True)
class Solution:
    """A point, how it was reached, and whether it is a proper minimum."""

    theta: FloatArray
    value: float
    n_iter: int
    converged: bool
    message: str
