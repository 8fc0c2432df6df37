"""What a search came to."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from zil._validate import FloatArray


class Outcome(enum.Enum):
    """How a search ended, with the words for it where there is no more to say."""

    CONVERGED = "converged"
    BOX = "box reached: no finite minimum inside it (separated classes, or an unbounded objective)"
    ENDLESS = "the objective falls without end"
    FLAT = "no further descent, yet no minimum"
    INDEFINITE = "the Hessian is indefinite: no minimum"
    UNDEFINED = "the objective is not finite"
    EXHAUSTED = "no minimum in the steps allowed"


@dataclass(frozen=True)
class Solution:
    """A point, how it was reached, and whether it is a proper minimum."""

    theta: FloatArray
    value: float
    n_iter: int
    outcome: Outcome
    message: str = ""

    def __post_init__(self) -> None:
        if not self.message:
            object.__setattr__(self, "message", self.outcome.value)

    @property
    def converged(self) -> bool:
        """Only a proper minimum is."""
        return self.outcome is Outcome.CONVERGED
