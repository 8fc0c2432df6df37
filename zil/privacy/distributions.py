"""The two laws of the noise: symmetric multivariate Laplace, and the same with an atom at zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from zil import _validate
from zil._core import sampling
from zil._random import Key, resolve_key
from zil._threads import run_chunks
from zil._validate import FloatArray
from zil.privacy.density import row_density

NOISE_DOMAIN = sampling.NOISE
DOUBLE_DOMAIN = sampling.DOUBLE


def add_noise(
    x: FloatArray | None,
    *,
    zero_prob: float,
    scale: FloatArray,
    key: Key,
    factor: FloatArray | None = None,
    domain: int = NOISE_DOMAIN,
    first_row: int = 0,
    n_threads: int | None = None,
    out: FloatArray,
) -> FloatArray:
    """Add zero-inflated symmetric Laplace noise to the rows of a table.

    Row i gets 0 with probability ``zero_prob``, else ``scale * sqrt(W) N`` (then times ``factor``):
    one zero draw and one ``W ~ Exp(1)`` per row.  Row i of a key and domain is the same whatever
    ``first_row``, the number of rows, the number of threads and the machine.

    Parameters
    ----------
    x : (n, d) float64, C order, or None
        None writes the noise alone.  May be ``out``.
    zero_prob : float in [0, 1]
    scale : (d,) float64, >= 0
    key : (4,) uint64
        See :func:`zil._random.resolve_key`.
    factor : (d, d) float64 or None
        Lower triangular, applied after ``scale``.
    domain : int
        Keeps apart the uses of one key (32 bits).
    first_row : int
        Number of the first row of ``x`` in the stream.
    out : (n, d) float64, C order

    Returns
    -------
    out
    """
    chunk = sampling.CHUNK
    first = first_row // chunk
    last = -(-(first_row + len(out)) // chunk)

    def task(a: int, b: int) -> None:
        sampling.add_noise(key, domain, zero_prob, scale, factor, x, out, first_row, first + a, first + b)

    run_chunks(task, last - first, n_threads)
    return out


class _Laplace:
    """What both laws share: the covariance of a non-zero draw, sampling, and shapes of points."""

    __slots__ = ("_covariance", "_dim", "_factor", "_scale")

    _dim: int
    _scale: FloatArray
    _covariance: FloatArray | None  # as given, else None: diagonal
    _factor: FloatArray | None

    def __init__(self, dim: int | None, scale: Any, cov: Any) -> None:
        if cov is None:
            values = _validate.finite_array("scale", scale, ndim=(0, 1))
            if not (values >= 0).all():
                raise ValueError(f"scale must be in [0, inf), got {values.min():g}")
            implied = None if values.ndim == 0 else len(values)
            self._dim = 1 if implied is None and dim is None else _dimension(dim, implied, "scale")
            self._scale = np.full(self._dim, values) if values.ndim == 0 else values.copy()
            self._covariance = None
            self._factor = None
        else:
            if np.ndim(scale) != 0 or scale != 1.0:
                raise ValueError("give scale or cov, not both")
            matrix = _validate.finite_array("cov", cov, ndim=(0, 2))
            matrix = matrix.reshape(1, 1) if matrix.ndim == 0 else matrix.copy()
            if matrix.shape[0] != matrix.shape[1]:
                raise ValueError(f"cov must be square, got shape {matrix.shape}")
            self._dim = _dimension(dim, len(matrix), "cov")
            if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0):
                raise ValueError("cov must be symmetric")
            try:
                self._factor = np.ascontiguousarray(np.linalg.cholesky(matrix))
            except np.linalg.LinAlgError:
                raise ValueError("cov must be positive definite") from None
            self._covariance = matrix
            self._scale = np.ones(self._dim)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self._dim

    def _sigma(self) -> FloatArray:
        """Covariance matrix of a draw without the atom, shape (dim, dim)."""
        return np.diag(self._scale**2) if self._covariance is None else self._covariance.copy()

    def _rows(self, name: str, points: Any) -> tuple[NDArray[Any], bool]:
        """Points as (n, dim) in their own dtype and layout, and whether one point alone came in.

        Accepted: (n, dim); (dim,) as one point; in one dimension also a scalar (one point) and
        (n,) (n points).
        """
        values = _validate.numeric_array(name, points, ndim=(0, 1, 2))
        if values.ndim == 2:
            single = False
        elif self._dim == 1:
            single = values.ndim == 0
            values = values.reshape(-1, 1)
        else:
            single = True
            values = values.reshape(1, -1)
        if values.shape[1] != self._dim:
            raise ValueError(f"{name} must have {self._dim} column(s), got shape {np.shape(points)}")
        return values, single

    def _half_form(self, t: NDArray[Any]) -> FloatArray:
        """``t' Sigma t / 2`` for every row of t."""
        t = np.asarray(t, dtype=np.float64)
        scaled = t * self._scale if self._factor is None else t @ self._factor
        with np.errstate(over="ignore"):  # inf is right: the characteristic function has its limit there
            return np.asarray(0.5 * np.square(scaled).sum(axis=1), dtype=np.float64)

    def _draw(self, size: int, zero_prob: float, rng: Any, n_threads: int | None, out: FloatArray | None) -> FloatArray:
        n = _validate.integer("size", size, 0)
        shape = (n, self._dim)
        if out is None:
            out = np.empty(shape)
        elif not (isinstance(out, np.ndarray) and out.dtype == np.float64 and out.dtype.isnative):
            raise TypeError("out must be a float64 array")
        elif out.shape != shape or not (out.flags.c_contiguous and out.flags.writeable and out.flags.aligned):
            raise ValueError(f"out must be a writeable C-contiguous array of shape {shape}, got shape {out.shape}")
        return add_noise(
            None,
            zero_prob=zero_prob,
            scale=self._scale,
            factor=self._factor,
            key=resolve_key(rng),
            n_threads=n_threads,
            out=out,
        )

    def _shape_repr(self) -> str:
        if self._covariance is not None:
            return f"cov={self._covariance.tolist()}"
        if (self._scale == self._scale[0]).all():
            return f"dim={self._dim}, scale={float(self._scale[0])}"
        return f"scale={self._scale.tolist()}"


def _dimension(dim: int | None, implied: int | None, source: str) -> int:
    if dim is not None:
        dim = _validate.integer("dim", dim, 1)
        if implied is not None and dim != implied:
            raise ValueError(f"dim is {dim} but {source} has {implied} column(s)")
        return dim
    if not implied:
        raise ValueError(f"{source} must not be empty")
    return implied


class SymmetricLaplace(_Laplace):
    """Symmetric multivariate Laplace law ``sqrt(W) N(0, Sigma)``, one ``W ~ Exp(1)`` per row.

    Parameters
    ----------
    dim : int or None
        Number of coordinates; None takes it from ``scale`` or ``cov``, or 1.
    scale : float or (dim,) array, >= 0
        Standard deviations; ``Sigma = diag(scale**2)``.
    cov : (dim, dim) array or None
        A full covariance ``Sigma`` instead of ``scale``; positive definite.

    Raises
    ------
    ValueError, TypeError
        Negative or non-finite scales, both ``scale`` and ``cov``, a ``cov`` that is not a
        covariance, dimensions that disagree.

    Notes
    -----
    Characteristic function ``1 / (1 + t' Sigma t / 2)``; covariance ``Sigma``.  The coordinates are
    uncorrelated when Sigma is diagonal but never independent: ``E z1^2 z2^2 = 2 scale1^2 scale2^2``,
    kurtosis 6.  Each coordinate is a Laplace law with density ``exp(-sqrt(2)|x|/s) / (sqrt(2) s)``.
    Lu, Chen, Qiu (2026), arXiv 2501.15127.

    Examples
    --------
    >>> import zil
    >>> law = zil.SymmetricLaplace(scale=[1.0, 3.0])
    >>> law.rvs(1000, rng=1).shape
    (1000, 2)
    >>> law.cov.tolist()
    [[1.0, 0.0], [0.0, 9.0]]
    """

    __slots__ = ()

    def __init__(self, dim: int | None = None, scale: Any = 1.0, cov: Any = None) -> None:
        super().__init__(dim, scale, cov)

    def __repr__(self) -> str:
        return f"SymmetricLaplace({self._shape_repr()})"

    @property
    def cov(self) -> FloatArray:
        """Covariance ``Sigma``, shape (dim, dim)."""
        return self._sigma()

    def rvs(
        self, size: int, rng: Any = None, n_threads: int | None = None, out: FloatArray | None = None
    ) -> FloatArray:
        """Draw ``size`` rows.

        Parameters
        ----------
        size : int, >= 0
        rng : None, int, SeedSequence, Generator or BitGenerator
            None draws fresh entropy.  A seed is for tests and simulations: the streams are not
            cryptographic, and floating-point noise is no protection by itself
            (:meth:`zil.Mechanism.release` is).
        n_threads : int or None
            Never changes the result.
        out : (size, dim) float64 array, C order, or None
            Where to write.

        Returns
        -------
        (size, dim) array of float64
        """
        return self._draw(size, 0.0, rng, n_threads, out)

    def cf(self, t: Any) -> Any:
        """Characteristic function ``1 / (1 + t' Sigma t / 2)``; real, because the law is symmetric.

        Parameters
        ----------
        t : (n, dim) array, or one point of shape (dim,)

        Returns
        -------
        (n,) array, or a float for one point
        """
        rows, single = self._rows("t", t)
        values = 1.0 / (1.0 + self._half_form(rows))
        return float(values[0]) if single else values

    def logpdf(self, x: Any, *, n_threads: int | None = None) -> Any:
        """Log-density ``log g_dim(r) - log det(Sigma)/2``, ``r^2 = x' Sigma^-1 x``; +inf at 0 for dim >= 2.

        Parameters
        ----------
        x : (n, dim) array, or one point of shape (dim,)
            Any numeric dtype and layout; a nan gives nan.
        n_threads : int or None
            Never changes the result.

        Returns
        -------
        (n,) array, or a float for one point

        Raises
        ------
        ValueError
            If a scale is 0: the law has no density.
        """
        return self._density(x, exponential=False, n_threads=n_threads)

    def pdf(self, x: Any, *, n_threads: int | None = None) -> Any:
        """Density, the exponential of :meth:`logpdf`; parameters and answer as there."""
        return self._density(x, exponential=True, n_threads=n_threads)

    def _density(self, x: Any, *, exponential: bool, n_threads: int | None) -> Any:
        rows, single = self._rows("x", x)
        if not (self._scale > 0).all():
            raise ValueError("a law with a scale of 0 has no density")
        values = row_density(rows, self._scale, self._factor, exponential=exponential, n_threads=n_threads)
        return float(values[0]) if single else values


class ZeroInflatedLaplace(_Laplace):
    """Zero with probability ``zero_prob``, else :class:`SymmetricLaplace`; one draw of both per row.

    Parameters
    ----------
    zero_prob : float in [0, 1]
        Probability that the whole row is zero.
    dim, scale, cov
        As for :class:`SymmetricLaplace`: the law of a row that is not zero.

    Notes
    -----
    Characteristic function ``(1 + zero_prob u) / (1 + u)``, ``u = t' Sigma t / 2``; covariance
    ``(1 - zero_prob) Sigma``.  There is no density, because of the atom.
    Lu, Chen, Qiu (2026), arXiv 2501.15127.

    Examples
    --------
    >>> import zil
    >>> law = zil.ZeroInflatedLaplace(0.2, dim=2)
    >>> bool((law.rvs(1000, rng=1) == 0).all(axis=1).any())
    True
    """

    __slots__ = ("_zero_prob",)

    _zero_prob: float

    def __init__(self, zero_prob: float, dim: int | None = None, scale: Any = 1.0, cov: Any = None) -> None:
        self._zero_prob = _validate.probability("zero_prob", zero_prob)
        super().__init__(dim, scale, cov)

    def __repr__(self) -> str:
        return f"ZeroInflatedLaplace({self._zero_prob}, {self._shape_repr()})"

    @property
    def zero_prob(self) -> float:
        """Probability that the whole row is zero."""
        return self._zero_prob

    @property
    def cov(self) -> FloatArray:
        """Covariance ``(1 - zero_prob) Sigma``, shape (dim, dim)."""
        return (1.0 - self._zero_prob) * self._sigma()

    def rvs(
        self, size: int, rng: Any = None, n_threads: int | None = None, out: FloatArray | None = None
    ) -> FloatArray:
        """Draw ``size`` rows; parameters as in :meth:`SymmetricLaplace.rvs`."""
        return self._draw(size, self._zero_prob, rng, n_threads, out)

    def cf(self, t: Any) -> Any:
        """Characteristic function ``(1 + zero_prob u) / (1 + u)``, ``u = t' Sigma t / 2``.

        Parameters and answer as in :meth:`SymmetricLaplace.cf`.
        """
        rows, single = self._rows("t", t)
        half = self._half_form(rows)
        values = self._zero_prob + (1.0 - self._zero_prob) / (1.0 + half)  # finite where half overflows
        return float(values[0]) if single else values
