"""The one border to dataframes: names, float64 columns out, new columns in.

A table is a numpy array (or nested list), or anything narwhals calls an eager frame or
series: pandas, polars, pyarrow.  Columns of an array are named by position (0, 1, ...); a 1-D
array or a series is one column (named 0 if a pandas series has no name, "" elsewhere).  Rows
are never reordered, an index is kept, and the caller's object is never changed.

Messages name columns and dtypes, which are public, and never a cell or a count of cells.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from zil import _travel
from zil._core import finite
from zil._validate import FloatArray, SchemaError

Name = Hashable
TURN_ROWS = 1 << 13  # rows of a few columns stay in cache between the columns


def _is_array(table: Any) -> bool:
    return isinstance(table, (np.ndarray, list, tuple))


def _array(table: Any) -> np.ndarray[Any, Any]:
    """A 1-D or 2-D numpy array; a mask is kept."""
    if isinstance(table, np.ma.MaskedArray):
        array: np.ndarray[Any, Any] = table
    else:
        try:
            array = np.asarray(table)
        except ValueError:  # numpy refuses ragged lists; its own words could carry a value
            array = np.empty((), dtype=object)
    if array.ndim not in (1, 2):
        raise SchemaError(f"a table must have one or two dimensions, got shape {array.shape}")
    return array


def _frame(table: Any) -> nw.DataFrame[Any]:
    """The table as a narwhals frame."""
    try:
        native = nw.from_native(table, eager_only=True, allow_series=True)
    except nw.exceptions.DuplicateError:
        raise SchemaError(_duplicates(_native_names(table))) from None
    except TypeError:
        kind = type(table)
        if any(hasattr(table, word) for word in ("collect", "compute")):
            raise TypeError(
                f"a {kind.__module__}.{kind.__name__} may order its rows differently each time it runs: "
                "collect (compute) it once, then pass the result"
            ) from None
        raise TypeError(
            "a table must be a numpy array, a pandas, polars or pyarrow table, or nested lists, "
            f"got {kind.__module__}.{kind.__name__}"
        ) from None
    if isinstance(native, nw.Series):
        native = (native.alias(0) if native.name is None else native).to_frame()
    frame: nw.DataFrame[Any] = native
    return frame


def _native_names(table: Any) -> list[Name]:
    names = getattr(table, "columns", None)
    if names is None or not all(isinstance(name, Hashable) for name in names):
        names = table.column_names
    return list(names)


def _duplicates(names: Sequence[Name]) -> str:
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    return f"column names must differ: {', '.join(map(repr, dict.fromkeys(twice)))} occurs more than once"


def column_names(table: Any) -> list[Any]:
    """Names in order: strings (or whatever a pandas frame uses), positions 0, 1, ... for an array.

    Raises
    ------
    SchemaError
        A name occurs twice.
    TypeError
        Not a table, or one that is not computed yet.
    """
    if _is_array(table):
        array = _array(table)
        return list(range(1 if array.ndim == 1 else array.shape[1]))
    names = list(_frame(table).columns)
    if len(set(names)) != len(names):
        raise SchemaError(_duplicates(names))
    return names


def n_rows(table: Any) -> int:
    """Number of rows."""
    return len(_array(table)) if _is_array(table) else len(_frame(table))


def resolve(table: Any, names: Sequence[Any], *, what: str = "column") -> list[Any]:
    """``names`` checked against the table: all there, none twice; the list of names is returned.

    For an array negative positions are refused: a typing error must not pick another column.
    """
    wanted = list(names)
    check_names(wanted, column_names(table), what)
    return wanted


def check_names(wanted: Sequence[Any], present: Sequence[Any], what: str = "column") -> None:
    """SchemaError unless every wanted name is present, and none is wanted twice."""
    if len(set(wanted)) != len(wanted):
        raise SchemaError(_duplicates(wanted))
    missing = [name for name in wanted if name not in present]
    if missing:
        shown = ", ".join(map(repr, present[:20])) + (", ..." if len(present) > 20 else "")
        raise SchemaError(f"{what} {', '.join(map(repr, missing))} not in the table, which has {shown}")


def to_float(
    table: Any,
    names: Sequence[Any] | None = None,
    *,
    what: str = "column",
    allow_missing: bool = False,
    allow_infinite: bool = False,
    copy: bool = True,
    look: bool = True,
) -> FloatArray:
    """Columns as a new float64 C array of shape ``(n, len(names))``.

    Parameters
    ----------
    table
        numpy array, nested lists, pandas / polars / pyarrow table or series.
    names
        Columns in the order wanted; None takes all.
    what : str
        The word for a column in messages.
    allow_missing : bool
        NaN, null and masked entries become NaN instead of an error.
    allow_infinite : bool
        Infinite entries pass.
    copy : bool
        False may return the caller's own memory (if it is a float64 C array), not to be written to.
    look : bool
        False may leave the entries of an array unseen; then nan and infinite ones are for the caller to find.

    Raises
    ------
    TypeError
        A column is not numeric (text, categorical, dates, objects, bytes, complex): names it and its dtype.
    SchemaError
        Unknown or repeated name; missing or infinite entries (the column is named, nothing else).
    """
    wanted = column_names(table) if names is None else resolve(table, names, what=what)
    if _is_array(table):
        array = _array(table)
        result = _array_to_float(array, wanted, what, allow_missing, allow_infinite, look)
        return result.copy() if copy and np.may_share_memory(result, array) else result
    frame = _frame(table)
    columns = []
    for name in wanted:
        values, missing = _series_to_float(frame.get_column(name), name, what)
        _check_entries(values, missing, name, what, allow_missing, allow_infinite)
        columns.append(values)
    out = np.empty((len(frame), len(wanted)))
    _turn(columns, [out[:, k] for k in range(len(wanted))])
    return out


def _turn(sources: Sequence[Any], targets: Sequence[Any]) -> None:
    """Copy columns to columns a block of rows at a time: whole columns of a row-major table, one after the other,
    would go through memory once for each of them (measured, 1e6 rows of 6: 13 ms for 4)."""
    for start in range(0, len(targets[0]) if targets else 0, TURN_ROWS):
        rows = slice(start, start + TURN_ROWS)
        for source, target in zip(sources, targets, strict=True):
            target[rows] = source[rows]


def _array_to_float(
    array: np.ndarray[Any, Any], wanted: list[Any], what: str, allow_missing: bool, allow_infinite: bool, look: bool
) -> FloatArray:
    if array.dtype.kind not in "fiub":
        # an array has one dtype, whichever column is to blame, and that of text tells the length of the longest entry
        named = f"{what} {wanted[0]!r} has" if len(wanted) == 1 else "the table has"
        kind = {"U": "text", "S": "bytes"}.get(array.dtype.kind, str(array.dtype))
        raise TypeError(f"{named} dtype {kind}; it must be numeric")
    columns = array.reshape(-1, 1) if array.ndim == 1 else array
    if wanted != list(range(columns.shape[1])):
        columns = columns[:, wanted]
    with np.errstate(over="ignore"):  # a long double beyond float64 becomes infinite, and is met as such
        out: FloatArray = np.ascontiguousarray(np.ma.getdata(columns), dtype=np.float64)
    mask = np.ma.getmaskarray(columns) if isinstance(columns, np.ma.MaskedArray) and columns.mask.any() else None
    if mask is not None:
        out = np.where(mask, np.nan, out)
    elif not look:
        return out
    if mask is None and finite.all_finite(out.reshape(-1)):
        return out
    for k, name in enumerate(wanted):
        missing = mask is not None and bool(mask[:, k].any())
        _check_entries(out[:, k], missing, name, what, allow_missing, allow_infinite)
    return out


def _series_to_float(series: nw.Series[Any], name: Any, what: str) -> tuple[Any, bool]:
    """Values as something numpy assigns to a float64 column, and whether entries are missing."""
    native = series.to_native()
    if isinstance(getattr(native, "dtype", None), np.dtype) and native.dtype.kind in "fiub":
        return native.to_numpy(), False  # a view; nan is seen by who looks at the entries
    dtype = series.dtype
    missing = series.null_count() > 0
    if dtype.is_numeric() or dtype == nw.Boolean:
        if series.implementation.is_pyarrow():  # narwhals' cast refuses whole numbers above 2**53, and names the cell
            native = series.to_native()
            return native.cast("float64", safe=False).to_numpy(), missing
        return series.cast(nw.Float64).to_numpy(), missing
    if dtype == nw.Unknown:  # big-endian and sparse columns, or a column with no type because all is null
        if missing and series.null_count() == len(series):
            return np.full(len(series), np.nan), True
        values = series.to_numpy()
        if values.dtype.kind in "fiub":
            return values, missing
    raise TypeError(f"{what} {name!r} has dtype {getattr(native, 'dtype', None) or native.type}; it must be numeric")


def _check_entries(
    values: FloatArray, missing: bool, name: Any, what: str, allow_missing: bool, allow_infinite: bool
) -> None:
    # one pass when all is well: a sum is finite only if every entry is (overflow leads to the full look)
    with np.errstate(over="ignore", invalid="ignore"):
        if not missing and math.isfinite(float(values.sum())):
            return
    if not allow_missing and (missing or bool(np.isnan(values).any())):
        raise SchemaError(f"{what} {name!r} has missing entries (nan or null)")
    if not allow_infinite and bool(np.isinf(values).any()):
        raise SchemaError(f"{what} {name!r} has infinite entries")


def replace(table: Any, columns: Mapping[Any, FloatArray], *, keep: bool = False) -> Any:
    """A new table of the same kind with some columns replaced by float64 arrays of shape ``(n,)``.

    Column order, row order, a pandas index and the dtypes of the other columns stay.  An array
    comes back as float64 as a whole (an array has one dtype); nested lists come back as an
    array.  Free-form attributes (pandas ``attrs``, Arrow key-value metadata) are not copied:
    nobody has looked at what they hold.  Categories that no row has go too: they may be of rows that were left out.
    With ``keep`` the result may hold the new arrays themselves.
    """
    resolve(table, list(columns))
    if _is_array(table):
        array = _array(table)
        if isinstance(array, np.ma.MaskedArray):
            rest = [k for k in column_names(array) if k not in columns]
            out = np.empty(array.shape)
            out.reshape(len(array), -1)[:, rest] = to_float(array, rest, allow_missing=True, allow_infinite=True)
        else:
            out = np.array(array, dtype=np.float64, order="C")
        view = out.reshape(len(array), -1) if array.ndim == 1 else out
        for name, values in columns.items():
            view[:, name] = values
        return out
    frame = _frame(table)
    arrays = {name: np.ascontiguousarray(values, dtype=np.float64) for name, values in columns.items()}
    if frame.implementation.is_pandas():  # the same rows in the same order: the index is that of the table
        made, index = nw.get_native_namespace(frame).Series, nw.to_native(frame).index
        new = [
            nw.from_native(made(values, index=index, name=name, copy=not keep), series_only=True)
            for name, values in arrays.items()
        ]
    else:
        new = [nw.new_series(name, values, nw.Float64, backend=frame.implementation) for name, values in arrays.items()]
    result = frame.with_columns(*new)
    native = _travel.used_categories(nw.to_native(result), frame.implementation)
    if isinstance(nw.from_native(table, eager_only=True, allow_series=True), nw.Series):
        return _back_to_series(native, table)
    return native


def with_columns(table: Any, names: Sequence[Any], values: FloatArray) -> Any:
    """`replace` with all new columns in one array (n, k), which the result may keep."""
    if _is_array(table) and _array(table).ndim == 2 and list(names) == column_names(table):
        return values
    if _is_array(table):
        return replace(table, {name: values[:, k] for k, name in enumerate(names)})
    turned = np.empty(values.shape[::-1])
    _turn([values[:, k] for k in range(len(names))], list(turned))
    return replace(table, dict(zip(names, turned, strict=True)), keep=True)


def _back_to_series(native: Any, table: Any) -> Any:
    frame = nw.from_native(native, eager_only=True)
    series = nw.to_native(frame.get_column(frame.columns[0]))
    return series.rename(table.name) if frame.implementation.is_pandas() else series


def same_rows(first: Any, second: Any, what: str = "the two tables") -> None:
    """Refuse two pandas objects whose indexes differ: rows pair by position, and labels say otherwise.

    Raises
    ------
    SchemaError
        The indexes differ, or the numbers of rows do.
    """
    if n_rows(first) != n_rows(second):
        raise SchemaError(f"{what} have {n_rows(first)} and {n_rows(second)} rows")
    left: Any = getattr(first, "index", None)
    right: Any = getattr(second, "index", None)
    if hasattr(left, "equals") and hasattr(right, "equals") and not left.equals(right):
        raise SchemaError(f"{what} have different indexes; align them first (rows pair by position)")


def pair_by_label(table: Any, values: Any, what: str) -> None:
    """Refuse values whose index differs from that of the table (SchemaError); arrays and lists have none."""
    if hasattr(getattr(table, "index", None), "equals") and hasattr(getattr(values, "index", None), "equals"):
        same_rows(table, values, what)


def is_column(table: Any, values: Any) -> bool:
    """Whether a series is the column of the table whose name it has: the same name and the same entries."""
    name = getattr(values, "name", None)
    if (
        name is None
        or not hasattr(values, "to_frame")
        or hasattr(values, "to_series")
        or _is_array(table)
        or name not in column_names(table)
    ):
        return False
    own = nw.from_native(table, eager_only=True).get_column(name).to_list()
    return bool(own == nw.from_native(values, series_only=True, eager_only=True).to_list())


def kind(table: Any) -> str:
    """The kind of a table as one word, for `from_arrow`."""
    if _is_array(table):
        return "numpy-1d" if _array(table).ndim == 1 else "numpy"
    native = nw.from_native(table, eager_only=True, allow_series=True)
    name = str(native.implementation).lower().rsplit(".", 1)[-1]
    return f"{name}-1d" if isinstance(native, nw.Series) else name


def warn_nameless(what: str, names: Sequence[Any], *, depth: int) -> None:
    """Say that the columns of an array are taken in the order of these names; ``depth`` callers lie before the user."""
    warnings.warn(
        f"{what} has no column names: its columns are taken for {', '.join(map(repr, names))}, in this order",
        UserWarning,
        stacklevel=depth + 1,
    )


def check_passed(table: Any, noised: Sequence[Any]) -> None:
    """Refuse an array whose other columns a float64 array cannot hold; a column of it is named, and no entry.

    Raises
    ------
    SchemaError
        Whole numbers beyond 2**53, which would become others.
    """
    if not _is_array(table):
        return
    array = _array(table)
    if array.ndim != 2 or array.dtype.kind not in "iuf" or array.dtype.itemsize < 8:
        return
    for k in sorted(set(range(array.shape[1])) - set(noised)):
        if array.dtype.kind != "f":
            column = np.ma.compressed(array[:, k])
            beyond = len(column) > 0 and (int(column.max()) > 2**53 or int(column.min()) < -(2**53))
        else:  # numpy has made float64 of the whole numbers in nested lists before anybody could look
            beyond = isinstance(table, (list, tuple)) and any(
                isinstance(row[k], (int, np.integer)) and abs(int(row[k])) > 2**53 for row in table
            )
        if beyond:
            raise SchemaError(
                f"column {k} passes through and has whole numbers beyond 2**53, which the float64 array that comes "
                "back cannot hold: give a pandas, polars or pyarrow table"
            )
