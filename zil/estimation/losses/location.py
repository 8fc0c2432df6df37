"""``zil.losses.Mean``: the mean of a function of one published column.

The loss is ``(theta - g(x))^2``, so the estimate is the mean of the corrected ``g`` over rows, and a row's
score is ``2 (theta - corrected g)``.  RB needs ``g`` and ``g^2`` smoothed by Laplace noise of scale ``s``;
both are elementary for the functions below (beyond the paper: mathematics 4.1; derived in
docs/proof_rao_blackwell.md):

============  =========================================  ==================================================
g(x)          E g(x + L)                                  E g^2(x + L)
============  =========================================  ==================================================
x             x                                           x^2 + 2 s^2
max(x, 0)     max(x, 0) + (s/2) e^(-|x|/s)                max(x, 0)^2 + 2 s^2 F(x)
1{a<=x<=b}    F(x - a) - F(x - b)                         the same
|sin 2 pi x|  periodic solution of u - s^2 u'' = g        (1 - cos(4 pi x)/(1 + 16 pi^2 s^2))/2
============  =========================================  ==================================================

with ``F(t) = P(t + L > 0)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from zil import _validate
from zil._validate import FloatArray
from zil.estimation.losses.base import Term
from zil.estimation.losses.blockwise import Block, RowLoss

NAMES = ("identity", "relu", "abs_sin", "indicator")


def _above(t: FloatArray, s: float) -> FloatArray:
    """``P(t + L > 0)``: the step function smoothed."""
    tail = 0.5 * np.exp(-np.abs(t) / s)
    return np.asarray(np.where(t >= 0.0, 1.0 - tail, tail))


def _smooth_identity(x: FloatArray, s: float) -> tuple[FloatArray, FloatArray]:
    return x, x * x + 2.0 * s * s


def _smooth_relu(x: FloatArray, s: float) -> tuple[FloatArray, FloatArray]:
    positive = np.maximum(x, 0.0)
    return positive + 0.5 * s * np.exp(-np.abs(x) / s), positive**2 + 2.0 * s * s * _above(x, s)


def _abs_sin(x: FloatArray) -> FloatArray:
    return np.abs(np.sin(2.0 * math.pi * x))


def _smooth_abs_sin(x: FloatArray, s: float) -> tuple[FloatArray, FloatArray]:
    q = np.mod(x, 0.5)
    size = 2.0 * math.pi * s
    # cosh((q - 1/4)/s) / sinh(1/(4 s)) without overflow for small s
    edge, inner = 0.25 / s, np.abs(q - 0.25) / s
    ratio = (np.exp(inner - edge) + np.exp(-inner - edge)) / -math.expm1(-2.0 * edge)
    first = (np.sin(2.0 * math.pi * q) + size * ratio) / (1.0 + size**2)
    return first, 0.5 - 0.5 * np.cos(4.0 * math.pi * q) / (1.0 + 4.0 * size**2)


@dataclass(frozen=True)
class Mean(RowLoss):
    """``(theta - g(x))^2`` of one published column: the mean of ``g``.

    Parameters
    ----------
    g : {"identity", "relu", "abs_sin"}, ("indicator", a, b) or callable
        ``x``, ``max(x, 0)``, ``|sin 2 pi x|``, ``1{a <= x <= b}``, or a vectorised function of an array (n,).
        For a callable "rb" averages DR over antithetic copies of the second noise; the others are exact.

    Raises
    ------
    ValueError, TypeError
        Unknown name, or an interval with ``a >= b`` or nan.

    Examples
    --------
    >>> import numpy as np, zil
    >>> column = np.array([-1.0, 1.0, 3.0])
    >>> float(zil.fit(zil.losses.Mean("relu"), column, x=[]).params[0])
    1.3333333333333333
    """

    g: Any = "identity"
    location: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if callable(self.g):
            return
        if isinstance(self.g, (tuple, list)) and len(self.g) == 3 and self.g[0] == "indicator":
            low, high = _validate.real("a", self.g[1]), _validate.real("b", self.g[2])
            if not low < high:
                raise ValueError(f"indicator needs a < b, got {low:g}, {high:g}")
            object.__setattr__(self, "g", ("indicator", low, high))
            return
        if not isinstance(self.g, str) or self.g not in NAMES[:3]:
            raise ValueError(
                f"g must be 'identity', 'relu', 'abs_sin', ('indicator', a, b) or a callable, got {self.g!r}"
            )

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return bool(self.g == "identity")

    @property
    def exact_rb(self) -> bool:
        return not callable(self.g)

    @property
    def affine(self) -> tuple[float, float, float, float, float]:
        return (0.0, 1.0, -1.0, 0.0, 0.0)

    def plain(self, x: FloatArray) -> FloatArray:
        """``g(x)``, shape (n,)."""
        if callable(self.g):
            values = np.asarray(self.g(x), dtype=np.float64)
            if values.shape != x.shape:
                raise ValueError(f"g must return one number per row, shape {x.shape}, got {values.shape}")
            return values
        if self.g == "identity":
            return np.asarray(x)
        if self.g == "relu":
            return np.maximum(x, 0.0)
        if self.g == "abs_sin":
            return _abs_sin(x)
        return np.asarray((x >= self.g[1]) & (x <= self.g[2]), dtype=np.float64)

    def smoothed(self, x: FloatArray, s: float) -> tuple[FloatArray, FloatArray]:
        """``E g(x + L)`` and ``E g^2(x + L)`` for Laplace L of scale s >= 0."""
        if s == 0.0:
            values = self.plain(x)
            return values, values**2
        table: dict[str, Callable[[FloatArray, float], tuple[FloatArray, FloatArray]]] = {
            "identity": _smooth_identity,
            "relu": _smooth_relu,
            "abs_sin": _smooth_abs_sin,
        }
        if isinstance(self.g, str):
            return table[self.g](x, s)
        inside = _above(x - self.g[1], s) - _above(x - self.g[2], s)
        return inside, inside

    def target(self, response: FloatArray) -> FloatArray:
        return self.plain(response)

    def rows(self, term: Term, block: Block, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        x = block.y
        t, noise = theta[0], block.noise_response
        value, score = np.zeros(len(x)), np.zeros(len(x))
        if term.a != 0.0:
            gap = t - self.plain(x)
            value += term.a * gap * gap
            score += 2.0 * term.a * gap
        if term.c != 0.0:  # identity only: (t - x)^2 has second derivative 2
            value += 2.0 * term.c * noise
        if term.e != 0.0:
            first, second = self.smoothed(x, term.scale(noise))
            value += term.e * (t * t - 2.0 * t * first + second)
            score += 2.0 * term.e * (t - first)
        return value, score[:, None]

    def hessian(self, term: Term, block: Block, theta: FloatArray) -> FloatArray:
        del theta
        total = len(block.y) if block.weights is None else float(block.weights.sum())
        return np.array([[2.0 * (term.a + term.e) * total]])
