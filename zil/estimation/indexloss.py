"""Losses of a linear index.

Every loss here is a scalar function ``phi`` of one number ``t`` that is affine in the index
``eta = intercept + x'theta``: a residual ``t = y - eta`` or a minus-margin ``t = const - y eta``.
The scalar functions, their derivatives and their Laplace-smoothed twins are compiled
(``src/c/losses.h``); a class only names its block and says how a response is coded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zil import _validate
from zil._validate import FloatArray


@dataclass(frozen=True)
class Loss:
    """Base class: what every loss tells the objective.

    Attributes
    ----------
    block : str
        Name of the compiled scalar function.
    constants : tuple of two floats
        Its constants.
    affine : tuple (k0, k1, k2, k3, k4)
        ``t = k0 + k1 y + (k2 + k3 y) eta``, plus ``k4 y eta`` outside ``phi``.
    smooth : bool
        ``phi`` has four derivatives: SL, SDR and an exact Hessian are available.
    kinked : bool
        ``phi`` is piecewise linear: minima are vertices.
    recession : (float, float) or None
        Slopes of ``phi(t)/t`` at +inf and -inf when growth is at most linear.
    classifier : bool
        The response has two classes, coded -1 and 1.
    location : bool
        The loss is of one column alone: no features.
    rough : bool
        The loss has kinks and does not say where.
    free : bool
        Parameters are not an intercept and coefficients: no standardised coordinates.
    """

    block: ClassVar[str]
    smooth: ClassVar[bool] = False
    kinked: ClassVar[bool] = False
    classifier: ClassVar[bool] = False
    location: ClassVar[bool] = False
    rough: ClassVar[bool] = False
    free: ClassVar[bool] = False

    @property
    def affine(self) -> tuple[float, float, float, float, float]:
        return (0.0, 1.0, -1.0, 0.0, 0.0)

    @property
    def constants(self) -> tuple[float, float]:
        return (0.0, 0.0)

    @property
    def recession(self) -> tuple[float, float] | None:
        return None

    @property
    def name(self) -> str:
        return type(self).__name__

    def mean(self, eta: FloatArray) -> FloatArray:
        """What ``Fit.predict`` returns for an index: the index itself unless a class says otherwise."""
        return eta

    def target(self, response: FloatArray) -> FloatArray:
        """What an intercept alone would estimate the middle of: its spread is the natural unit of the index."""
        return response

    def check_response(self, y: FloatArray, noised: bool) -> None:
        """Refuse a coded response outside the loss's domain (ValueError); a noised one may lie anywhere."""

    def check_method(self, method: str, y: FloatArray, noised_response: bool) -> None:
        """Refuse a method that the loss does not allow (ValueError), beyond the need for two derivatives."""

    def residual(self, y: FloatArray) -> bool:
        """Whether the response enters through the residual only, so that its noise is noise of the argument."""
        del y
        return self.affine[1] != 0.0

    def kink_places(self, y: FloatArray) -> FloatArray:
        """Where the loss has kinks, as values of the index, shape (kinks of a row, n); for ``kinked`` losses."""
        k = self.affine
        return np.asarray(-(k[0] + k[1] * y) / (k[2] + k[3] * y))[None]

    def sides(self, kinks: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slope by eta just below and just above each kink, shapes (kinks of a row, n)."""
        slope = self.affine[2] + self.affine[3] * y + 0.0 * kinks
        up, down = self.constants
        return np.where(slope > 0.0, -down * slope, up * slope), np.where(slope > 0.0, up * slope, -down * slope)

    def branch(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Loss and slope by eta away from kinks, in numpy."""
        k = self.affine
        slope = k[2] + k[3] * y
        t = k[0] + k[1] * y + slope * eta
        up, down = self.constants
        return np.where(t > 0.0, up * t, -down * t), slope * np.where(t > 0.0, up, -down)

    def bend(self, eta: FloatArray, y: FloatArray) -> FloatArray | None:
        """Second derivative by eta between kinks; None: zero."""
        del eta, y
        return None

    def undefined(self, q: float) -> str:
        """Why the corrected loss has no expectation at squared index noise ``q``; "" if it has one."""
        del q
        return ""

    def caution(self, q: float) -> str:
        """What a reader of standard errors should know at squared index noise ``q``; "" if nothing."""
        del q
        return ""

    def code_response(self, y: Any, order: tuple[Any, ...] | None = None) -> tuple[FloatArray, tuple[Any, ...] | None]:
        """Response as floats, and the two classes of a classifier (else None), the modelled one last.

        Parameters
        ----------
        order : tuple, optional
            Declared order of the classes; default: sorted.

        Raises
        ------
        ValueError
            A classifier's response has not exactly two classes.
        TypeError
            A regression response is not numeric.
        """
        if not self.classifier:
            return _validate.finite_array("y", y, 1), None
        return _code_classes(y, order)


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


def _missing(label: Any) -> bool:
    """None, nan, NaT, or pandas.NA (neither equal nor unequal to itself)."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


def _code_classes(y: Any, order: tuple[Any, ...] | None) -> tuple[FloatArray, tuple[Any, ...]]:
    values = np.asarray(y)
    if values.ndim != 1:
        raise ValueError(f"y must have 1 dimension(s), got shape {values.shape}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise ValueError("y must be finite: it has nan or infinite entries")
    if (values.dtype == object and any(map(_missing, values))) or (
        values.dtype.kind in "mM" and np.isnat(values).any()
    ):
        raise ValueError("y has missing entries")
    labels = np.unique(values)
    if len(labels) == 1:
        raise ValueError(f"y has a single class, {labels.tolist()[0]!r}; two are needed")
    if len(labels) != 2:
        raise ValueError(f"y must have two classes, got {len(labels)}")
    if order is not None and order.index(labels[1]) < order.index(labels[0]):
        labels = labels[::-1]
    return np.where(values == labels[1], 1.0, -1.0), tuple(labels.tolist())
