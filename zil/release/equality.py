"""Whether a table that was read back is the one that was written: the same kind, names, types, entries and index.

Missing entries of a pandas column of objects are equal whatever stands for them (None, nan): a file knows one.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def difference(data: Any, back: Any, kind: str) -> str | None:
    """What differs between a table and what was read back, in words that name a column or the index; None if nothing.

    Parameters
    ----------
    data, back
        Two tables of one kind.
    kind : str
        As `zil._tables.kind` says.
    """
    base, _, single = kind.partition("-")
    if base == "numpy":
        left, right = np.asarray(data, dtype=np.float64), np.asarray(back)
        return None if left.shape == right.shape and np.array_equal(left, right, equal_nan=True) else "the array"
    if type(data) is not type(back) and base != "pandas":
        return f"its kind ({type(data).__name__})"
    if base == "polars":
        return _polars(data.to_frame() if single else data, back.to_frame() if single else back)
    if base == "pyarrow":
        import pyarrow as pa

        return _arrow(*(pa.table({"0": part}) if single else part for part in (data, back)))
    return _pandas(data, back) if base == "pandas" else None


def _polars(data: Any, back: Any) -> str | None:
    if data.columns != back.columns:
        return "the column names"
    for name in data.columns:
        one, other = data[name], back[name]
        if one.dtype != other.dtype or not one.equals(other, check_dtypes=True, null_equal=True):
            return f"column {name!r} of type {one.dtype}"
    return None


def _arrow(data: Any, back: Any) -> str | None:
    if data.column_names != back.column_names:
        return "the column names"
    for one, other, name in zip(data.columns, back.columns, data.column_names, strict=True):
        if data.field(name) != back.field(name) or not _arrow_entries(one, other):
            return f"column {name!r} of type {one.type}"
    return None


def _arrow_entries(one: Any, other: Any) -> bool:
    import pyarrow as pa

    if one.equals(other):
        return True
    if pa.types.is_dictionary(one.type):
        plain = [pa.chunked_array([c.dictionary_decode() for c in x.chunks], x.type.value_type) for x in (one, other)]
        return _arrow_entries(*plain)
    if len(one) != len(other):
        return False
    if pa.types.is_floating(one.type):  # nan is not nan for Arrow
        if not one.is_null().equals(other.is_null()):
            return False
        left, right = (x.to_numpy(zero_copy_only=False) for x in (one, other))
        return np.array_equal(left, right, equal_nan=True)
    return repr(one.to_pylist()) == repr(other.to_pylist()) if pa.types.is_nested(one.type) else False


def _pandas(data: Any, back: Any) -> str | None:
    import pandas as pd

    if not isinstance(back, (pd.DataFrame, pd.Series)):
        return "its kind, because pandas is not installed here"
    if isinstance(data, pd.Series):
        if not isinstance(back, pd.Series) or not _same_name(data.name, back.name):
            return "the name of the series"
        data, back = data.to_frame("0"), back.to_frame("0")
    if data.shape != back.shape:
        return "its shape"
    names = list(data.columns), list(back.columns)
    if not all(map(_same_name, *names)) or not _same_name(data.columns.name, back.columns.name):
        return "the column names"
    if list(data.index.names) != list(back.index.names):
        return "the names of the index"
    for k in range(data.index.nlevels):
        if not _pandas_entries(*(x.index.get_level_values(k) for x in (data, back))):
            return f"the index of type {data.index.get_level_values(k).dtype}"
    for k, name in enumerate(names[0]):
        if not _pandas_entries(data.iloc[:, k], back.iloc[:, k]):
            return f"column {name!r} of type {data.iloc[:, k].dtype}"
    return None


def _same_name(one: Any, other: Any) -> bool:
    if isinstance(one, (int, np.integer)) and not isinstance(one, bool):
        return isinstance(other, (int, np.integer)) and not isinstance(other, bool) and one == other
    return isinstance(other, str) and one == other if isinstance(one, str) else one is None and other is None


def _pandas_entries(one: Any, other: Any) -> bool:
    import pandas as pd

    if one.dtype != other.dtype:
        return False
    if isinstance(one.dtype, pd.CategoricalDtype):
        kinds = one.dtype, other.dtype
        if kinds[0].ordered != kinds[1].ordered or not _pandas_entries(*(kind.categories for kind in kinds)):
            return False
    if one.dtype == object:
        return all(map(_same_object, one.tolist(), other.tolist()))
    arrays = one.array, other.array
    return bool(arrays[0].equals(arrays[1])) if hasattr(arrays[0], "equals") else bool(one.equals(other))


def _same_object(one: Any, other: Any) -> bool:
    missing = [
        x is None or (isinstance(x, float) and x != x) or type(x).__name__ in ("NAType", "NaTType")
        for x in (one, other)
    ]
    if any(missing):
        return all(missing)
    if type(one) is not type(other):
        return False
    try:
        return bool(one == other)
    except ValueError:  # arrays
        return False
