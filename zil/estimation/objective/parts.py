"""A term of a corrected objective with the data set it is evaluated on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from zil.estimation.losses.base import Term
from zil.estimation.rows import Rows


@dataclass(frozen=True)
class Part(Term):
    """A term on one data set."""

    rows: Rows

    def block(self, rows: slice) -> Part:
        """The same term on a range of rows."""
        own = self.rows
        return replace(
            self,
            rows=Rows(
                own.features[:, rows],
                None if own.response is None else own.response[rows],
                None if own.weights is None else own.weights[rows],
                None if own.index is None else own.index[rows],
            ),
        )
