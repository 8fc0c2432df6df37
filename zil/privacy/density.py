"""Density of the symmetric multivariate Laplace law, and the likelihood ratio of a shift.

Design: a table goes through the kernel in blocks of rows that fit a core's cache.  A block that is
not a float64 C array already becomes one there, so no second table is ever made; standardising, norm,
density and the check for nan are one pass in C (``src/c/sl_density.c``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zil import _threads
from zil._core import density
from zil._validate import FloatArray, in_range, numeric_array

ROWS_PER_CHUNK = 1 << 14
BLOCK_VALUES = 1 << 16  # entries of a block: 512 KiB of float64


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


def _by_blocks(
    rows: NDArray[Any], evaluate: Callable[[FloatArray, FloatArray], None], n_threads: int | None
) -> FloatArray:
    """One value for every row: ``evaluate(block, values_out)`` over blocks of rows as float64 C arrays."""
    n, d = rows.shape
    result = np.empty(n)
    step = max(64, BLOCK_VALUES // d)

    def work(first: int, last: int) -> None:
        for block in range(first, last):
            part = slice(block * step, (block + 1) * step)
            evaluate(np.ascontiguousarray(rows[part], dtype=np.float64), result[part])

    _threads.run_chunks(work, -(-n // step), n_threads)
    return result


def row_density(
    x: NDArray[Any],
    scale: FloatArray,
    lower: FloatArray | None,
    *,
    exponential: bool = False,
    n_threads: int | None = None,
) -> FloatArray:
    """Log-density, or density, of ``SL(diag(scale^2))`` or ``SL(lower lower')`` at every row.

    Parameters
    ----------
    x : (n, d) array of any numeric dtype and layout
    scale : (d,) float64 C array, > 0
    lower : (d, d) float64 C array or None
        Cholesky factor of the covariance; then ``scale`` is not read.
    exponential : bool
        The density itself.

    Returns
    -------
    (n,) array
        ``log g_d(r) - log det(Sigma)/2``, ``r^2 = x' Sigma^-1 x``: +inf at r = 0 for d >= 2, -inf for a row
        with an infinite entry, nan for one with a nan.
    """
    half_log_det = float(np.log(scale if lower is None else np.diag(lower)).sum())

    def evaluate(block: FloatArray, values: FloatArray) -> None:
        density.logpdf(block, scale, lower, half_log_det, values)
        if exponential:
            with np.errstate(over="ignore", under="ignore"):
                np.exp(values, out=values)

    return _by_blocks(x, evaluate, n_threads)


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
    rows = numeric_array("s", s, (1, 2))
    if rows.ndim == 1:
        rows = rows.reshape(-1, 1)
    if rows.shape[1] == 0:
        raise ValueError(f"s must have at least one column, got shape {rows.shape}")
    shift = in_range("c", c, 0.0, np.inf, open_high=True)

    def evaluate(block: FloatArray, values: FloatArray) -> None:
        if not density.log_likelihood_ratio(block, shift, values):
            raise ValueError("s must be finite: it has nan or infinite entries")

    return _by_blocks(rows, evaluate, n_threads)
