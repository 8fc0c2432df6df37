"""Data sets of an objective, and the term that each of them carries."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from zil._validate import FloatArray
from zil.estimation.losses.base import Term


@dataclass(frozen=True)
class Rows:
    """One data set, feature by feature.

    Attributes
    ----------
    features : (d, n) array
        Of any layout: the transpose of a table stored row by row is read in place.
    response : (n,) array or None
    weights : (n,) array or None
        Row weights.
    index : (n,) integer array or None
        Which row of the sample each row belongs to (a row may occur several times); None: row i is row i.
    """

    features: FloatArray
    response: FloatArray | None
    weights: FloatArray | None = None
    index: NDArray[np.intp] | None = None

    @property
    def y(self) -> FloatArray:
        """The response; zeros where there is none."""
        return np.zeros(self.features.shape[1]) if self.response is None else self.response

    def take(self, keep: NDArray[np.bool_] | NDArray[np.intp]) -> Rows:
        """Some of the rows, with their places in the sample."""
        index: NDArray[np.intp] = np.flatnonzero(keep) if keep.dtype == bool else keep.astype(np.intp)
        own = index if self.index is None else self.index[index]

        def pick(values: FloatArray | None) -> FloatArray | None:
            return None if values is None else values[index]

        features = np.ascontiguousarray(self.features[:, index])
        return Rows(features, pick(self.response), pick(self.weights), own)


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
