"""Data sets of an objective, and the moments of their columns."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zil import _threads
from zil._core import objective as kernel
from zil._validate import FloatArray


@dataclass(frozen=True)
class Moments:
    """Means and covariances of the columns of a data set, the response (if there is one) last.

    Attributes
    ----------
    total : float
        Number of rows, or sum of their weights.
    mean : (k,) array
    covariance : (k, k) array
        Divided by ``total``.
    """

    total: float
    mean: FloatArray
    covariance: FloatArray

    @functools.cached_property
    def sound(self) -> bool:
        """Whether the numbers can be trusted: nothing missing, infinite or constant, no square that left the range."""
        variance = np.diag(self.covariance)
        if not (np.isfinite(self.mean).all() and np.isfinite(self.covariance).all()):
            return False
        # a constant column has rounding of its mean for a variance
        return bool(((variance > 1e-60) & (variance < 1e60) & (variance > 1e-18 * self.mean**2)).all())


@functools.lru_cache(maxsize=64)
def lower(p: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Places of a lower triangle: making them costs as much as the Hessian of a thousand rows."""
    return np.tril_indices(p)


def square(packed: FloatArray, p: int) -> FloatArray:
    """A symmetric matrix from its lower triangle, row by row."""
    out = np.zeros((p, p))
    low = lower(p)
    out[low] = packed
    out[low[1], low[0]] = out[low]
    return out


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
    index: NDArray[np.integer[Any]] | None = None

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

    def moments(self, n_threads: int | None = None) -> Moments:
        """Weighted means and covariances of the columns, from one pass over the rows; remembered.

        Squares are taken about the means of the first rows, and again about the means where those lie far off.
        """
        known: Moments | None = self.__dict__.get("_moments")
        if known is None:
            some = slice(0, kernel.CHUNK)
            columns = [*self.features[:, some], *([] if self.response is None else [self.response[some]])]
            with np.errstate(all="ignore"):  # whoever reads them looks whether they are sound
                first = np.array([column.mean() if len(column) else 0.0 for column in columns])
                known = self._moments_about(first, n_threads)
                far = (known.mean - first) ** 2 > 100.0 * np.diag(known.covariance)
                if far.any() and np.isfinite(known.mean).all():
                    known = self._moments_about(known.mean, n_threads)
            self.__dict__["_moments"] = known
        return known

    def _moments_about(self, centre: FloatArray, n_threads: int | None) -> Moments:
        k = len(centre) + 1
        n_chunks = -(-self.features.shape[1] // kernel.CHUNK)
        sums = np.empty((n_chunks, k * (k + 1) // 2))
        about = np.concatenate([[0.0], centre])

        def task(first: int, last: int) -> None:
            kernel.moments(self.features, self.response, self.weights, about, first, last, sums[first:last])

        _threads.run_chunks(task, n_chunks, n_threads, grain=8)
        gram = square(np.add.reduce(sums, axis=0), k)
        total = float(gram[0, 0]) or 1.0
        gap = gram[0, 1:] / total
        return Moments(total, centre + gap, gram[1:, 1:] / total - np.outer(gap, gap))
