"""What a table must look like: bounds and scales by column, where the columns are, what may be missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zil import _tables, _validate
from zil._validate import FloatArray


def _pair(name: Any, pair: Any) -> tuple[float, float]:
    try:
        low, high = pair
    except (TypeError, ValueError):
        raise ValueError(f"bounds of {name!r} must be a pair (low, high), got {pair!r}") from None
    low, high = _validate.finite(f"lower bound of {name!r}", low), _validate.finite(f"upper bound of {name!r}", high)
    if low > high:
        raise ValueError(f"bounds of {name!r} are reversed: ({low:g}, {high:g})")
    return low, high


def read_bounds(bounds: Any) -> tuple[tuple[Any, ...], FloatArray, bool]:
    """Names, bounds (d, 2), and whether they came by name."""
    if bounds is None:
        raise ValueError("bounds must be given: they are public and are never taken from the data")
    if isinstance(bounds, Mapping):
        names: list[Any] = []
        for name in bounds:
            if isinstance(name, bool) or not isinstance(name, (str, int, np.integer)):
                raise TypeError(f"a column in bounds must be a name or a position, got {type(name).__name__}")
            names.append(name if isinstance(name, str) else int(name))
        pairs = [_pair(name, pair) for name, pair in zip(names, bounds.values(), strict=True)]
    else:
        table = _validate.float_array("bounds", bounds)
        if table.shape == (2,):  # one column
            table = table.reshape(1, 2)
        if table.ndim != 2 or table.shape[1] != 2:
            raise ValueError(f"bounds must be a dictionary or have shape (d, 2), got shape {table.shape}")
        names = list(range(len(table)))
        pairs = [_pair(name, pair) for name, pair in enumerate(table.tolist())]
    if not pairs:
        raise ValueError("bounds are empty: there is no column to protect")
    if all(low == high for low, high in pairs):
        raise ValueError("the bounds of all columns are equal: there is nothing to protect")
    return tuple(names), np.array(pairs), isinstance(bounds, Mapping)


def read_scale(names: tuple[Any, ...], scale: Any) -> FloatArray:
    if isinstance(scale, Mapping):
        if set(scale) != set(names):
            raise ValueError("scale must name the same columns as bounds")
        entries = [scale[name] for name in names]
    elif np.ndim(scale) == 0:
        entries = [scale] * len(names)
    else:
        entries = _validate.float_array("scale", scale, 1).tolist()
        if len(entries) != len(names):
            raise ValueError(f"scale has {len(entries)} entries for {len(names)} columns")
    return np.array([_validate.positive(f"scale of {name!r}", s) for name, s in zip(names, entries, strict=True)])


def locate(names: Sequence[Any], by_name: bool, present: Sequence[Any]) -> list[Any]:
    """The table's own names of the noised columns: by name, or by place where one side has no names."""
    if all(name in present for name in names):
        return list(names)
    if len(present) == len(names) and (not by_name or list(present) == list(range(len(present)))):
        return list(present)
    _tables.check_names(names, present)
    raise AssertionError("unreachable: some name is missing")


def missing_policy(missing: Any, names: Sequence[Any], bounds: FloatArray) -> tuple[bool, FloatArray | None]:
    """Whether infinite entries pass (and are clipped), and what replaces NaN, shape (d,)."""
    if isinstance(missing, str):
        policy = _validate.choice("missing", missing, ("error", "clip", "midpoint"))
        fill = bounds.mean(axis=1) if policy == "midpoint" else None
        return policy != "error", fill
    if isinstance(missing, Mapping):
        if set(missing) != set(names):
            raise ValueError("missing must give a constant for each noised column and for no other")
        return True, np.array([_validate.finite(f"missing of {name!r}", missing[name]) for name in names])
    return True, np.full(len(names), _validate.finite("missing", missing))


def policy_label(missing: Any) -> Any:
    return dict(missing) if isinstance(missing, Mapping) else missing


def outside(table: Any, bounds: Any) -> dict[Any, dict[str, int]]:
    """Out-of-bounds and missing values by column, counted: for `zil.check`, never for a release."""
    names, pairs, by_name = read_bounds(bounds)
    located = locate(names, by_name, _tables.column_names(table))
    values = _tables.to_float(table, located, allow_missing=True, allow_infinite=True)
    result = {}
    for k, name in enumerate(located):
        below, above = int((values[:, k] < pairs[k, 0]).sum()), int((values[:, k] > pairs[k, 1]).sum())
        missing = int(np.isnan(values[:, k]).sum())
        result[name] = {"out_of_bounds": below + above, "below": below, "above": above, "missing": missing}
    return result
