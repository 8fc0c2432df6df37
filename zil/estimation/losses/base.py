"""What every loss tells the objective, and how a term of a correction is written.

A loss of one index is ``phi(t)`` with ``t`` affine in the index ``eta = intercept + x'theta``; losses that are not of
this form answer for blocks of rows (blockwise.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zil import _validate
from zil._validate import FloatArray


@dataclass(frozen=True, kw_only=True)
class Term:
    """``a phi(t) + c Q phi''(t) + e u(t, q0 + kappa Q)``, ``u`` the loss smoothed by Laplace noise (corrections.py)."""

    a: float = 0.0
    c: float = 0.0
    e: float = 0.0
    q0: float = 0.0
    kappa: float = 0.0

    def scale(self, noise: float) -> float:
        """Scale of the Laplace noise that the smoothed loss averages over, at squared index noise ``noise``."""
        return math.sqrt(self.q0 + self.kappa * noise)


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

    def argument(self, eta: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """``t`` and ``dt/deta`` of every row, each of shape (n,)."""
        k = self.affine
        slope = k[2] + k[3] * y
        return k[0] + k[1] * y + slope * eta, slope

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
