"""The one place that checks input: scalars, arrays and their names.

Every message says which argument, which rule and what came; a value that belongs to a
person (a cell of a table) is never part of a message.  Tests are written so that nan fails
them (``not 0 <= p <= 1``).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class SchemaError(ValueError):
    """A table does not fit what was declared; raised before any noise is drawn."""


class PrivacyWarning(UserWarning):
    """Something is published, or about to be, with less protection than a reader may assume."""


class ConvergenceWarning(UserWarning):
    """The estimate is not a proper minimum: its standard errors are nan."""


def real(name: str, value: Any) -> float:
    """A real number (not bool, not complex, not nan)."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}")
    result = float(value)
    if math.isnan(result):
        raise ValueError(f"{name} must not be nan")
    return result


def finite(name: str, value: Any) -> float:
    result = real(name, value)
    if math.isinf(result):
        raise ValueError(f"{name} must be finite, got {result}")
    return result


def in_range(
    name: str,
    value: Any,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """A number in the interval; the message names the interval."""
    try:
        result = real(name, value)
    except ValueError:
        result = math.nan
    above = result > low if open_low else result >= low
    below = result < high if open_high else result <= high
    if not (above and below):
        left, right = "(" if open_low else "[", ")" if open_high else "]"
        raise ValueError(f"{name} must be in {left}{low:g}, {high:g}{right}, got {value}")
    return result


def positive(name: str, value: Any, *, allow_inf: bool = False) -> float:
    return in_range(name, value, 0.0, math.inf, open_low=True, open_high=not allow_inf)


def probability(name: str, value: Any) -> float:
    return in_range(name, value, 0.0, 1.0)


def integer(name: str, value: Any, low: int | None = None) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Integral, np.integer)):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    result = int(value)
    if low is not None and result < low:
        raise ValueError(f"{name} must be at least {low}, got {result}")
    return result


def boolean(name: str, value: Any) -> bool:
    """True or False; a text such as "no" would count as true."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}")
    return bool(value)


def choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return str(value)


def numeric_array(name: str, values: Any, ndim: int | tuple[int, ...] | None = None) -> NDArray[Any]:
    """``values`` as an array of a numeric dtype, in its own layout and precision; shape and kind checked.

    For callers that convert block by block.  A masked array with masked entries, an object array
    or text is refused.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise SchemaError(f"{name} has masked (missing) entries")
    raw: NDArray[Any] = np.asarray(values)
    if raw.dtype == object:
        if any(isinstance(entry, (str, bytes)) for entry in raw.flat):  # numpy would read "7" as the number 7
            raise TypeError(f"{name} must be numeric, got text or bytes")
        try:
            raw = raw.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be numeric, got an object array") from None
    if raw.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be numeric, got dtype {raw.dtype}")
    wanted = (ndim,) if isinstance(ndim, int) else ndim
    if wanted is not None and raw.ndim not in wanted:
        rule = " or ".join(map(str, wanted))
        raise ValueError(f"{name} must have {rule} dimension(s), got shape {raw.shape}")
    return raw


def float_array(name: str, values: Any, ndim: int | tuple[int, ...] | None = None) -> FloatArray:
    """``values`` as a float64 C array (never the caller's own memory changed); checked as by `numeric_array`.

    Integers beyond 2**53 lose digits as in any float64 table.
    """
    raw = numeric_array(name, values, ndim)
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite
        return np.asarray(raw, dtype=np.float64, order="C")  # unlike ascontiguousarray, it leaves a scalar a scalar


def finite_array(name: str, values: Any, ndim: int | tuple[int, ...] | None = None) -> FloatArray:
    result = float_array(name, values, ndim)
    if not np.isfinite(result).all():
        raise ValueError(f"{name} must be finite: it has nan or infinite entries")
    return result
