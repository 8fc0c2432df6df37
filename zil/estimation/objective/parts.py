"""A term of a corrected objective with the data set it is evaluated on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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


@dataclass(frozen=True)
class Shells(Part):
    """A term on the rows of a noisy data set that lie in some shell of the public box, in the order of the sample.

    Attributes
    ----------
    starts : (chunks + 1,) array
        First stored row of each chunk of the sample.
    slot : (n,) array of bytes
        Shell of each row: the number of the smallest level that holds it.
    """

    starts: NDArray[np.intp]
    slot: NDArray[np.uint8]
