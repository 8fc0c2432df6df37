"""Density of the symmetric multivariate Laplace law, and the likelihood ratio of a shift."""

from __future__ import annotations

from typing import Any

import numpy as np

from zil import _threads
from zil._core import density
from zil._validate import FloatArray, finite_array, in_range

ROWS_PER_CHUNK = 1 << 14


def log_density(dim: int, r: FloatArray, n_threads: int | None = None) -> FloatArray:
    """``log g_dim(r)`` with identity covariance for radii ``r >= 0`` of any shape; +inf at 0 for dim >= 2.

    ``g_d(r) = 2 (2 pi)^(-d/2) (r^2/2)^(v/2) K_v(sqrt(2) r)``, ``v = (2 - d)/2`` (paper, section 3).
    """
    flat = np.ascontiguousarray(r, dtype=np.float64).reshape(-1)
    result = np.empty_like(flat)

    def work(first: int, last: int) -> None:
        rows = slice(first * ROWS_PER_CHUNK, last * ROWS_PER_CHUNK)
        density.log_density(dim, flat[rows], result[rows])

    _threads.run_chunks(work, -(-len(flat) // ROWS_PER_CHUNK), n_threads)
    return result.reshape(np.shape(r))


def log_likelihood_ratio(s: Any, c: float, n_threads: int | None = None) -> FloatArray:
    """Log-likelihood ratio of "shifted by c" against "not shifted" for noise ``SL_d(I)``.

    Parameters
    ----------
    s : array (n, d), finite
        Released noise in units of the scale; a 1-D array is n values of one column.
    c : float >= 0, finite
        Shift along the first column, in units of the scale.
    n_threads : int or None

    Returns
    -------
    array (n,)
        ``log g(|s - c e1|) - log g(|s|)``; -inf for a sample exactly at 0 and +inf exactly at the
        shift (d >= 2, where the density has a pole), never nan.

    Raises
    ------
    ValueError, TypeError
        If ``s`` is not a finite numeric array with at least one column, or c is out of range.

    Notes
    -----
    The difference is formed from ``|s - c e1| - |s| = c (c - 2 s_1)/(|s - c e1| + |s|)``, so it keeps
    its digits for far samples and small shifts.
    """
    rows = finite_array("s", s, (1, 2))
    if rows.ndim == 1:
        rows = rows.reshape(-1, 1)
    if rows.shape[1] == 0:
        raise ValueError(f"s must have at least one column, got shape {rows.shape}")
    shift = in_range("c", c, 0.0, np.inf, open_high=True)
    result = np.empty(len(rows))

    def work(first: int, last: int) -> None:
        part = slice(first * ROWS_PER_CHUNK, last * ROWS_PER_CHUNK)
        density.log_likelihood_ratio(rows[part], shift, result[part])

    _threads.run_chunks(work, -(-len(rows) // ROWS_PER_CHUNK), n_threads)
    return result
