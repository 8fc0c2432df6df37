"""Losses that a user writes: ``Index`` (a scalar function of the index) and ``Custom`` (anything)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zil._validate import FloatArray
from zil.estimation import smoother
from zil.estimation.objective import Part
from zil.estimation.rowwise import STEP, RowLoss, RowObjective, smoothing_scale


def _callable(name: str, value: Any, optional: bool = False) -> None:
    if not (callable(value) or (optional and value is None)):
        raise TypeError(f"{name} must be a function, got {type(value).__name__}")


def _per_row(name: str, values: Any, shape: tuple[int, ...]) -> FloatArray:
    result = np.asarray(values, dtype=np.float64)
    if result.shape != shape:
        raise ValueError(f"{name} must return shape {shape} (one entry per row), got {result.shape}")
    return result


@dataclass(frozen=True)
class Index(RowLoss):
    """A scalar function of the index ``eta = intercept + x'theta`` and the response.

    Every method for smooth ``phi``; for one with kinks "naive" and "dr" (and a solver that may find no proper
    minimum).  RB smooths ``phi`` numerically (relative error below 1e-10); it is fast if the response has few
    distinct values, or if ``phi`` depends on ``y - eta`` only, and right for any other.

    Parameters
    ----------
    phi, dphi : callable of (eta, y), both of shape (n,), returning (n,)
        The loss and its derivative by eta.
    d2phi : callable, optional
        Second derivative by eta; needed by "sl" and "sdr".

    Examples
    --------
    >>> import numpy as np, zil
    >>> square = zil.losses.Index(lambda eta, y: (y - eta) ** 2 / 2, lambda eta, y: eta - y)
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> zil.fit(square, x, y=[1.0, 3.0, 5.0, 8.0]).params.round(6).tolist()
    [0.8, 2.3]
    """

    phi: Any = None
    dphi: Any = None
    d2phi: Any = None

    def __post_init__(self) -> None:
        _callable("phi", self.phi)
        _callable("dphi", self.dphi)
        _callable("d2phi", self.d2phi, optional=True)

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.d2phi is not None

    @property
    def exact_rb(self) -> bool:
        return True

    def check_method(self, method: str, noised_response: bool) -> None:
        if noised_response and method not in ("naive", "dr"):
            raise ValueError(
                f"method {method!r} smooths phi in eta only, and the response carries noise too; use method 'dr'"
            )

    def call(self, function: Any, name: str, eta: FloatArray, y: FloatArray) -> FloatArray:
        return _per_row(name, function(eta, y), eta.shape)

    def rows(self, part: Part, theta: FloatArray, objective: RowObjective) -> tuple[FloatArray, FloatArray]:
        eta = objective.index(part, theta)
        n = len(eta)
        y = np.zeros(n) if part.rows.response is None else part.rows.response
        noise = objective.index_noise(theta)
        value, slope, spread = np.zeros(n), np.zeros(n), np.zeros(n)
        if part.a != 0.0:
            value += part.a * self.call(self.phi, "phi", eta, y)
            slope += part.a * self.call(self.dphi, "dphi", eta, y)
        if part.c != 0.0:
            second = self.call(self.d2phi, "d2phi", eta, y)
            value += part.c * noise * second
            spread += part.c * second
            slope += part.c * noise * _derivative(lambda at: self.call(self.d2phi, "d2phi", at, y), eta)
        if part.e != 0.0:
            u, u_t, u_q = self.smoothed(eta, y, smoothing_scale(part, noise))
            value += part.e * u
            slope += part.e * u_t
            spread += part.e * part.kappa * u_q
        columns = [*([np.ones(n)] if objective.intercept else []), *part.rows.features]
        score = np.stack(columns, axis=1) * slope[:, None]
        return value, score + spread[:, None] * (2.0 * objective.noise * theta)

    def smoothed(self, eta: FloatArray, y: FloatArray, s: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """``u, u_t, u_q`` of Laplace noise of scale s; (inf, nan, nan) where the mean is infinite.

        Raises
        ------
        ValueError
            phi is not smooth.
        """
        if s == 0.0:  # no noise in the index: u_q has no effect
            return self.call(self.phi, "phi", eta, y), self.call(self.dphi, "dphi", eta, y), np.zeros(len(eta))
        if self._of_residual(eta, y):
            eta, y = eta - y, np.zeros(len(y))
        try:
            found = smoother.smooth(self.phi, self.dphi, self.d2phi, eta, y, s)
        except smoother.NotSmoothError as error:
            raise ValueError(f"method 'rb' needs a smooth phi: {error}; use method 'dr'") from None
        if found is None:
            nothing = np.full(len(eta), np.nan)
            return np.full(len(eta), np.inf), nothing, nothing
        return found

    def _of_residual(self, eta: FloatArray, y: FloatArray) -> bool:
        """Whether phi depends on ``eta - y`` only, judged on 64 rows."""
        some = np.linspace(0, len(y) - 1, min(64, len(y))).astype(int)
        t, r = np.asarray(eta[some]), np.asarray(y[some])
        if len(np.unique(r)) < 3:
            return False
        moved = np.roll(t, 1)
        for function in (self.phi, self.dphi):
            both = function(moved, r), function(moved - r, np.zeros(len(r)))
            if not np.allclose(*both, rtol=1e-12, atol=1e-12 * float(np.abs(both[0]).max(initial=0.0))):
                return False
        return True


def _derivative(function: Callable[[FloatArray], FloatArray], t: FloatArray) -> FloatArray:
    """Fourth-order difference; error about 1e-11 of the scale of a function that varies over a unit."""
    h = 2e-3
    return (8.0 * (function(t + h) - function(t - h)) - (function(t + 2 * h) - function(t - 2 * h))) / (12.0 * h)


@dataclass(frozen=True)
class Custom(RowLoss):
    """Any loss of a row: ``value(x, y, theta)``, vectorised over rows.

    Methods: "naive"; "dr"; "rb", here DR averaged over 16 second noises in pairs of opposite sign; "optimal" (bounds
    needed); "sl" and "sdr" with a Laplacian.

    Parameters
    ----------
    value : callable of (x, y, theta), shapes (n, d), (n,), (p,), returning (n,)
        x holds the columns as they are, without a column of ones.
    gradient : callable, optional
        Derivative by theta, shape (n, p).  Default: central differences.
    laplacian : callable, optional
        Second derivatives by the columns of x, shape (n, d), one more for a noised response; or their sum over the
        noised columns, shape (n,), if those have one common scale.

    Notes
    -----
    The number of parameters is that of ``start`` in ``zil.fit`` (of ``theta`` in ``zil.CorrectedLoss``); without a
    start it is d, plus 1 with an intercept.

    Examples
    --------
    >>> import numpy as np, zil
    >>> line = zil.losses.Custom(lambda x, y, theta: (y - theta[0] - x[:, 0] * theta[1]) ** 2)
    >>> x = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> zil.fit(line, x, y=[1.0, 3.0, 5.0, 8.0]).params.round(6).tolist()
    [0.8, 2.3]
    """

    value: Any = None
    gradient: Any = None
    laplacian: Any = None
    free: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _callable("value", self.value)
        _callable("gradient", self.gradient, optional=True)
        _callable("laplacian", self.laplacian, optional=True)

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.laplacian is not None

    @property
    def affine(self) -> tuple[float, float, float, float, float]:
        return (0.0, 1.0, -1.0, 0.0, 0.0)

    def mean(self, eta: FloatArray) -> FloatArray:
        raise TypeError("a Custom loss does not say what it predicts")

    def rows(self, part: Part, theta: FloatArray, objective: RowObjective) -> tuple[FloatArray, FloatArray]:
        x = np.ascontiguousarray(part.rows.features.T)
        n, p = len(x), len(theta)
        y = np.zeros(n) if part.rows.response is None else part.rows.response
        value, score = np.zeros(n), np.zeros((n, p))
        if part.a != 0.0:
            value += part.a * _per_row("value", self.value(x, y, theta), (n,))
            if self.gradient is not None:
                score += part.a * _per_row("gradient", self.gradient(x, y, theta), (n, p))
            else:
                score += part.a * _by_theta(lambda at: _per_row("value", self.value(x, y, at), (n,)), theta)
        if part.c != 0.0:

            def curved(at: FloatArray) -> FloatArray:
                return self._laplacian(x, y, at, objective)

            value += part.c * curved(theta)
            score += part.c * _by_theta(curved, theta)
        return value, score

    def _laplacian(self, x: FloatArray, y: FloatArray, theta: FloatArray, objective: RowObjective) -> FloatArray:
        """Sum over noised columns of squared scale times second derivative, shape (n,)."""
        weights = np.append(objective.noise[int(objective.intercept) :], objective.noise_response)
        second = np.asarray(self.laplacian(x, y, theta), dtype=np.float64)
        if second.shape == (len(x),):
            noised = weights[weights > 0.0]
            if len(noised) and not np.allclose(noised, noised[0], rtol=1e-12):
                raise ValueError("scales differ: laplacian must return one second derivative per column, shape (n, d)")
            return np.asarray(second * (noised[0] if len(noised) else 0.0))
        if second.shape == (len(x), len(weights)):
            return np.asarray(second @ weights)
        if objective.noise_response > 0.0:
            raise ValueError(f"laplacian must return shape {(len(x), len(weights))}, the response last")
        return np.asarray(_per_row("laplacian", second, x.shape) @ weights[:-1])


def _by_theta(function: Callable[[FloatArray], FloatArray], theta: FloatArray) -> FloatArray:
    """Derivatives of (n,) values by each parameter, shape (n, p), by central differences."""
    columns = []
    for j in range(len(theta)):
        shift = np.zeros(len(theta))
        shift[j] = STEP * max(1.0, abs(float(theta[j])))
        high, low = theta + shift, theta - shift
        columns.append((function(high) - function(low)) / (high[j] - low[j]))
    return np.stack(columns, axis=1)
