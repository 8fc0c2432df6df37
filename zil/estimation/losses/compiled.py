"""Losses of a linear index whose scalar function is compiled.

Every loss here is a scalar function ``phi`` of one number ``t`` that is affine in the index
``eta = intercept + x'theta``: a residual ``t = y - eta`` or a minus-margin ``t = const - y eta``.
The scalar functions, their derivatives and their Laplace-smoothed twins are compiled
(``src/c/losses.h``); a class only names its block and says how a response is coded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from zil import _validate
from zil._validate import FloatArray
from zil.estimation.losses.base import Loss


@dataclass(frozen=True)
class Squared(Loss):
    """``(y - eta)^2 / 2``: least squares; the estimate is the linear projection."""

    block: ClassVar[str] = "square"
    smooth: ClassVar[bool] = True


@dataclass(frozen=True)
class Absolute(Loss):
    """``|y - eta|``: median (least absolute deviations) regression."""

    block: ClassVar[str] = "kink"
    kinked: ClassVar[bool] = True

    @property
    def constants(self) -> tuple[float, float]:
        return (1.0, 1.0)

    @property
    def recession(self) -> tuple[float, float] | None:
        return self.constants


@dataclass(frozen=True)
class Quantile(Loss):
    """Check loss ``rho_tau(r) = r (tau - 1{r < 0})``, ``r = y - eta``: regression of the tau-quantile.

    Parameters
    ----------
    tau : float in (0, 1)

    Raises
    ------
    ValueError
        ``tau`` outside (0, 1) or nan.
    """

    tau: float = 0.5
    block: ClassVar[str] = "kink"
    kinked: ClassVar[bool] = True

    def __post_init__(self) -> None:
        value = _validate.in_range("tau", self.tau, 0.0, 1.0, open_low=True, open_high=True)
        object.__setattr__(self, "tau", value)

    @property
    def constants(self) -> tuple[float, float]:
        return (self.tau, 1.0 - self.tau)

    @property
    def recession(self) -> tuple[float, float] | None:
        return self.constants


@dataclass(frozen=True)
class Huber(Loss):
    """``r^2/2`` for ``|r| <= k``, ``k|r| - k^2/2`` beyond, ``r = y - eta``.

    Parameters
    ----------
    k : float > 0
        In units of the response; 1.345 gives 95 % efficiency for normal errors of standard deviation 1.
    """

    k: float = 1.345
    block: ClassVar[str] = "huber"

    def __post_init__(self) -> None:
        value = _validate.in_range("k", self.k, 0.0, np.inf, open_low=True, open_high=True)
        object.__setattr__(self, "k", value)

    @property
    def constants(self) -> tuple[float, float]:
        return (self.k, 0.0)

    @property
    def recession(self) -> tuple[float, float] | None:
        return (self.k, self.k)


@dataclass(frozen=True)
class Logistic(Loss):
    """``log(1 + exp(-y eta))``, y in {-1, 1}: logistic regression; the second class is the event.

    Any two labels are accepted (0/1, -1/1, bool, text, ...).  The event is the later one in sorted order, or in the
    declared order of an ordered categorical or Enum; ``Fit.summary`` names it.
    """

    block: ClassVar[str] = "softplus"
    smooth: ClassVar[bool] = True
    classifier: ClassVar[bool] = True

    @property
    def affine(self) -> tuple[float, float, float, float, float]:
        return (0.0, 0.0, 0.0, -1.0, 0.0)

    @property
    def recession(self) -> tuple[float, float] | None:
        return (1.0, 0.0)

    def mean(self, eta: FloatArray) -> FloatArray:
        """Probability of the event."""
        from scipy.special import expit

        return np.asarray(expit(eta), dtype=np.float64)


@dataclass(frozen=True)
class Hinge(Loss):
    """``max(1 - y eta, 0)``, y in {-1, 1}: linear support vector machine."""

    block: ClassVar[str] = "kink"
    kinked: ClassVar[bool] = True
    classifier: ClassVar[bool] = True

    @property
    def affine(self) -> tuple[float, float, float, float, float]:
        return (1.0, 0.0, 0.0, -1.0, 0.0)

    @property
    def constants(self) -> tuple[float, float]:
        return (1.0, 0.0)

    @property
    def recession(self) -> tuple[float, float] | None:
        return (1.0, 0.0)


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """``max(1 - y eta, 0)^2 / 2``, y in {-1, 1}."""

    block: ClassVar[str] = "square_plus"
    classifier: ClassVar[bool] = True

    @property
    def affine(self) -> tuple[float, float, float, float, float]:
        return (1.0, 0.0, 0.0, -1.0, 0.0)


@dataclass(frozen=True)
class Poisson(Loss):
    """``exp(eta) - y eta``: log-linear regression of counts, ``y >= 0``.

    Laplace noise has exponential tails: with index noise ``Q = |scale * coefficients|^2`` the published
    ``exp(eta)`` has a mean only for ``Q < 2`` and a variance only for ``Q < 1/2``.  RB is undefined for
    ``s = sqrt(zero_prob Q/2) >= 1``: such parameters are refused.
    """

    block: ClassVar[str] = "exponential"
    smooth: ClassVar[bool] = True

    @property
    def affine(self) -> tuple[float, float, float, float, float]:
        return (0.0, 0.0, 1.0, 0.0, -1.0)

    def check_response(self, y: FloatArray, noised: bool) -> None:
        if not noised and (y < 0.0).any():
            raise ValueError("y must hold counts (y >= 0) for Poisson; it has negative entries")

    def undefined(self, q: float) -> str:
        if q < 2.0:
            return ""
        return (
            f"the mean of exp(index) does not exist: |scale * coefficients|^2 = {q:.3g} must be below 2 "
            "(less noise, or public bounds and method 'optimal')"
        )

    def caution(self, q: float) -> str:
        if q < 0.5:
            return ""
        return (
            f"|scale * coefficients|^2 = {q:.3g} is at least 1/2: exp(index) has no finite variance, errors are rough"
        )

    def mean(self, eta: FloatArray) -> FloatArray:
        """Expected count."""
        return np.asarray(np.exp(eta), dtype=np.float64)


@dataclass(frozen=True)
class Asymptote(Loss):
    """How a loss grows far out: slopes ``up``, ``down`` in ``t = (k2 + k3 y) eta``; for the test at infinity."""

    k2: float
    k3: float
    up: float
    down: float
    block: ClassVar[str] = "kink"
    kinked: ClassVar[bool] = True

    @property
    def affine(self) -> tuple[float, float, float, float, float]:
        return (0.0, 0.0, self.k2, self.k3, 0.0)

    @property
    def constants(self) -> tuple[float, float]:
        return (self.up, self.down)
