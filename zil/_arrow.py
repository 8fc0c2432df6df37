"""Tables to Arrow and back: what files need.

The border to dataframes is `zil._tables`; this is the part of it that pyarrow does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from zil import _tables, _travel
from zil._validate import SchemaError


def need_pyarrow() -> Any:
    """The module, or an error that says what to install."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError("files need pyarrow: pip install 'zil[parquet]'") from None
    return pyarrow


def to_arrow(table: Any) -> Any:
    """A pyarrow table with text names; a pandas index travels in it.

    Raises
    ------
    SchemaError
        Two names are the same as text.
    """
    pa = need_pyarrow()
    names = [str(name) for name in _tables.column_names(table)]
    if len(set(names)) != len(names):
        raise SchemaError(_tables._duplicates(names))
    if _tables._is_array(table):
        array = _tables._array(table)
        columns = array.reshape(len(array), -1) if array.ndim == 1 else array
        return pa.table({name: np.ascontiguousarray(columns[:, k]) for k, name in enumerate(names)})
    frame = _tables._frame(table)
    if frame.implementation.is_pandas():
        native = nw.to_native(frame)
        columns = native.columns
        if list(columns) != names:
            native = native.set_axis(names, axis=1).rename_axis(columns.name, axis=1)
        return _travel.from_pandas(native)
    if frame.implementation.is_polars() and any(dtype == nw.Object for dtype in frame.schema.values()):
        name = next(name for name, dtype in frame.schema.items() if dtype == nw.Object)
        raise SchemaError(f"column {name!r} has dtype Object, which has no Arrow type")
    try:
        return frame.to_arrow().rename_columns(names)
    except pa.ArrowException:
        raise SchemaError("the table has a column of a dtype that has no Arrow type") from None


def _to_pandas(arrow: Any) -> Any:
    """With missing entries whole numbers stay whole: as floats those beyond 2**53 would be others."""
    import pandas as pd
    import pyarrow.types as t

    result = arrow.to_pandas()
    if b"pandas" in (arrow.schema.metadata or {}):  # it says itself what its columns were
        return result
    for field, column in zip(arrow.schema, arrow.columns, strict=True):
        if t.is_integer(field.type) and column.null_count:
            dtype = pd.api.types.pandas_dtype(_nullable(field.type))
            result[field.name] = column.to_pandas(types_mapper={field.type: dtype}.get)
    return result


def _nullable(kind: Any) -> str:
    """pandas' name of an integer type with missing entries: Int64, UInt8, ..."""
    return str(kind).replace("int", "Int").replace("u", "U")


def from_arrow(arrow: Any, kind: str, names: Sequence[Any] | None = None) -> Any:
    """The pyarrow table as the kind it came from, with its old names.

    A kind whose library is not installed here comes back as pyarrow table.
    """
    base, _, single = kind.partition("-")
    if base == "numpy":
        columns = [column.to_numpy() for column in arrow.columns]
        return columns[0] if single else np.stack(columns, axis=1)
    result = arrow
    try:
        if base == "pandas":
            result = _to_pandas(arrow)
            if names is not None and any(not isinstance(name, str) for name in names):
                old = {str(name): name for name in names}
                held = result.columns.name
                result = result.set_axis([old.get(name, name) for name in result.columns], axis=1)
                result = result.rename_axis(held, axis=1)
        elif base == "polars":
            result = _travel.to_polars(arrow)
    except ImportError:
        return arrow
    if not single:
        return result
    if base == "pandas":
        return result.iloc[:, 0].rename(None) if names == [None] else result.iloc[:, 0]
    return result.to_series() if base == "polars" else result.column(0)
