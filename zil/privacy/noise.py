"""What an analyst must know about the noise of a published table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zil import _validate
from zil._validate import FloatArray, SchemaError


class Noise:
    """Zero-inflated symmetric Laplace noise: the law of ``published - original`` in every row.

    A row gets no noise at all with probability ``zero_prob``, else ``sqrt(W) scale_j N_j`` in
    column j, with one ``W ~ Exp(1)`` shared by the whole row.

    Parameters
    ----------
    zero_prob : float in [0, 1]
        Probability that a row is published as it is.
    scale : dict, array-like of shape (k,), or float
        Standard deviation of a column's noise in a row that is not published as it is, in units
        of the column.  A dictionary by column name (columns not named are clean), an array in
        column order, or one number for every column.  0 means a clean column.

    Examples
    --------
    >>> noise = Noise(0.05, {"age": 60.0})
    >>> noise.scales(["age", "plan"]).tolist()
    [60.0, 0.0]
    """

    __slots__ = ("_scale", "_zero_prob")

    _zero_prob: float
    _scale: float | tuple[float, ...] | tuple[tuple[Any, float], ...]

    def __init__(self, zero_prob: float, scale: Mapping[Any, float] | Sequence[float] | FloatArray | float) -> None:
        self._zero_prob = _validate.probability("zero_prob", zero_prob)
        if isinstance(scale, Mapping):
            self._scale = tuple((name, _not_negative(f"scale of {name!r}", value)) for name, value in scale.items())
        elif np.ndim(scale) == 0:
            self._scale = _not_negative("scale", scale)
        else:
            values = _validate.float_array("scale", scale, ndim=1)
            if not len(values):
                raise ValueError("scale must have an entry for each column, got none")
            self._scale = tuple(_not_negative(f"scale[{k}]", float(value)) for k, value in enumerate(values))

    @property
    def zero_prob(self) -> float:
        """Probability that a row is published as it is."""
        return self._zero_prob

    @property
    def scale(self) -> dict[Any, float] | FloatArray | float:
        """The scale in the form it was given: a dictionary, an array of shape (k,), or a float."""
        if isinstance(self._scale, float):
            return self._scale
        if self._by_name:
            return dict(self._scale)  # type: ignore[arg-type]
        return np.array(self._scale)

    @property
    def _by_name(self) -> bool:
        return isinstance(self._scale, tuple) and (not self._scale or isinstance(self._scale[0], tuple))

    def scales(self, names: Sequence[Any]) -> FloatArray:
        """Scales of the columns ``names``, shape ``(len(names),)``; 0 for a clean column.

        A dictionary is read by name, an array by place (its length must be that of ``names``),
        one number counts for all.
        """
        if isinstance(self._scale, float):
            return np.full(len(names), self._scale)
        if self._by_name:
            table: dict[Any, Any] = dict(self._scale)  # type: ignore[arg-type]
            return np.array([table.get(name, 0.0) for name in names], dtype=np.float64)
        if len(self._scale) != len(names):
            raise SchemaError(f"noise has {len(self._scale)} scales for {len(names)} columns")
        return np.array(self._scale, dtype=np.float64)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Noise):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        # the order in which a dictionary was typed says nothing
        scale = frozenset(self._scale) if self._by_name else self._scale  # type: ignore[arg-type]
        return (self._zero_prob, self._by_name, scale)

    def __repr__(self) -> str:
        scale = self.scale.tolist() if isinstance(self.scale, np.ndarray) else self.scale
        return f"Noise(zero_prob={self._zero_prob!r}, scale={scale!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Noise, (self._zero_prob, self.scale))


def _not_negative(name: str, value: Any) -> float:
    return _validate.in_range(name, value, 0.0, math.inf, open_high=True)
