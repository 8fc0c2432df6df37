"""From what a user passes (release, table, file, arrays) to the rows a corrected loss works on."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zil import _tables, _validate
from zil._validate import FloatArray
from zil.estimation.losses.base import Loss
from zil.estimation.rows import Rows
from zil.privacy.noise import Noise


@dataclass(frozen=True)
class Sample:
    """Rows ready for an objective.

    Attributes
    ----------
    x : (n, d) array
    y : (n,) array
        Coded response (-1 and 1 for a classifier).
    names : list of d str
    scale : (d,) array
        Noise scale of each column of x; 0 is clean.
    scale_y : float
    zero_prob : float or None
        None: clean data.
    weights : (n,) array or None
    classes : tuple or None
    columns : list
        Keys of x's columns in the table, the response's last (None if it is no column).
    """

    x: FloatArray
    y: FloatArray
    names: list[str]
    scale: FloatArray
    scale_y: float
    zero_prob: float | None
    weights: FloatArray | None
    classes: tuple[Any, ...] | None
    columns: list[Any]

    @functools.cached_property
    def rows(self) -> Rows:
        """The data set, read in place."""
        return Rows(self.x.T, np.ascontiguousarray(self.y), self.weights)

    @property
    def noised(self) -> bool:
        """Whether any published value may differ from the original."""
        return self.zero_prob not in (None, 1.0) and (bool(self.scale.any()) or self.scale_y > 0.0)


@dataclass(frozen=True)
class Box:
    """Public bounds of the columns that carry noise, response last if it is noised.

    ``noised`` are column numbers of x (the number of columns stands for the response).
    """

    noised: NDArray[np.intp]
    low: FloatArray
    high: FloatArray

    def level(self, columns: FloatArray) -> FloatArray:
        """Smallest multiple of the box that holds each row of ``columns`` (n, noised)."""
        centre, half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        return np.asarray((np.abs(columns - centre) / half).max(axis=1))


def check_response(name: str, values: Any, loss: Loss) -> None:
    """Refuse categories, text and bytes as the response of a loss that needs numbers, as `to_float` refuses them in x.

    The category 10 is a name, whatever it looks like, and numpy reads the bytes ``b"10"`` as a number.

    Raises
    ------
    TypeError
        Names the response and its dtype.
    """
    if loss.classifier:
        return
    found = _not_numeric(values)
    if found:
        raise TypeError(f"{name} has dtype {found}; it must be numeric")


def _not_numeric(values: Any) -> str:
    """Word for the dtype of categories, text or bytes; empty for any other."""
    dtype = getattr(values, "dtype", None)
    if str(dtype) == "category":
        return "category"
    if isinstance(values, (list, tuple)) or getattr(dtype, "kind", None) == "O":
        return "text or bytes" if any(isinstance(entry, (str, bytes)) for entry in np.ravel(values).tolist()) else ""
    if isinstance(dtype, np.dtype):
        return {"S": "bytes", "U": "text"}.get(dtype.kind, "")
    import narwhals as nw

    native = nw.from_native(values, allow_series=True, eager_only=True, pass_through=True)
    if isinstance(native, nw.DataFrame):
        return next(filter(None, (_not_numeric(column.to_native()) for column in native.iter_columns())), "")
    if not isinstance(native, nw.Series):
        return ""
    words = {nw.Categorical: "category", nw.Enum: "category", nw.Binary: "bytes", nw.String: "text"}
    return words.get(native.dtype.base_type(), "")


def column_vector(name: str, values: Any, n: int | None = None) -> Any:
    """A response as a 1-D array; ``(n, 1)`` is accepted as ``(n,)``.  Text and objects stay as they are."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise _validate.SchemaError(f"{name} has masked (missing) entries")
    if hasattr(values, "to_series") and not hasattr(values, "columns"):  # pandas.Index
        values = values.to_series()
    if hasattr(values, "to_frame") or hasattr(values, "combine_chunks"):
        values = _series_values(name, values)
    if isinstance(values, (list, tuple)) and any(isinstance(v, str) for v in values):
        values = np.asarray(values, dtype=object)  # a nan among texts would become the text "nan"
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (n,) or (n, 1), got {array.shape}")
    if n is not None and len(array) != n:
        raise ValueError(f"different numbers of rows: {name} has {len(array)}, the table has {n}")
    return array


def _series_values(name: str, values: Any) -> Any:
    """Entries of a series; missing ones are an error."""
    import narwhals as nw

    series = nw.from_native(values, allow_series=True, eager_only=True)
    if isinstance(series, nw.DataFrame):
        if len(series.columns) != 1:
            raise ValueError(f"{name} must have one column, got {len(series.columns)}")
        series = series.get_column(series.columns[0])
    if series.null_count() > 0:
        raise _validate.SchemaError(f"{name} has missing entries")
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return series.to_numpy()
    return np.asarray(series.to_list(), dtype=object) if series.dtype == nw.Object else np.asarray(series.to_list())


def class_order(values: Any) -> tuple[Any, ...] | None:
    """Categories of an ordered categorical or an Enum, lowest first; None for anything else.

    The order of an unordered categorical is that of storage and means nothing: a file may list them as they came.
    """
    import narwhals as nw

    if not hasattr(values, "to_frame") or hasattr(values, "to_series"):  # pandas.Categorical and Index are no series
        return tuple(values.categories) if getattr(values, "ordered", False) is True else None
    dtype = nw.from_native(values, allow_series=True, eager_only=True).dtype
    return tuple(dtype.categories) if isinstance(dtype, nw.Enum) else None


def _response_column(table: Any, name: Any, loss: Loss) -> tuple[Any, tuple[Any, ...] | None]:
    """The named column, and its ``class_order``."""
    if isinstance(table, (np.ndarray, list, tuple)):
        _tables.resolve(table, [name], what="y column")
        array = np.ma.asarray(table) if isinstance(table, np.ma.MaskedArray) else np.asarray(table)
        check_response(f"y column {name!r}", array, loss)
        return column_vector(f"y column {name!r}", array[:, name] if array.ndim == 2 else array), None
    import narwhals as nw

    _tables.resolve(table, [name], what="y column")
    column = nw.from_native(table, eager_only=True).get_column(name).to_native()
    check_response(f"y column {name!r}", column, loss)
    return _series_values(f"y column {name!r}", column), class_order(column)


def _is_name(value: Any, table: Any) -> bool:
    """Whether y names a column (a string, or a position in an array) rather than holding values."""
    if isinstance(value, str):
        return True
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return True
    return not isinstance(table, (np.ndarray, list, tuple)) and np.ndim(value) == 0 and value is not None


def sample(
    loss: Loss,
    table: Any,
    *,
    y: Any,
    x: Sequence[Any] | None,
    noise: Noise | None,
    weights: Any,
    weights_type: str = "probability",
) -> Sample:
    """Read x, y, weights and the noise scales out of a table.

    A row of weight zero is no row: it is left out here, so nothing behind this function can count it.  Frequencies are
    repeated rows, so nothing behind this function can take them for anything else.

    Raises
    ------
    ValueError, TypeError, SchemaError
        Unknown columns, wrong shapes, missing entries, too few rows, a noised class label, ...
    """
    columns = _tables.column_names(table)
    n = _tables.n_rows(table)
    if isinstance(x, (str, bytes)):
        raise TypeError(f"x must be a list of columns, got the text {x!r}")
    y_column = y if _is_name(y, table) else None
    weight_column = weights if _is_name(weights, table) else None
    location = x is not None and len(x) == 0
    if y is None:
        if location and len(columns) == 1:
            y_column = columns[0]
        else:
            raise ValueError("y must name the response (or hold its values)")
    elif y_column is not None:
        y_column = y_column.item() if isinstance(y_column, np.integer) else y_column
    if y_column is None and _tables.is_column(table, y):
        y_column = y.name
    used = {y_column, weight_column} - {None}
    x_columns = [c for c in columns if c not in used] if x is None else list(x)
    if not location and not x_columns:
        raise ValueError("x has no columns; x=[] fits an intercept only (a location)")
    if y_column is not None and y_column in x_columns:
        raise ValueError(f"column {y_column!r} is both y and x")
    check_location(loss, x_columns)
    features = _tables.to_float(table, x_columns, what="x column", look=False) if x_columns else np.empty((n, 0))
    if n == 0:
        raise ValueError("the table has no rows")
    if y_column is not None:
        response, order = _response_column(table, y_column, loss)
    else:
        _tables.pair_by_label(table, y, "the table and y")
        check_response("y", y, loss)
        response, order = column_vector("y", y, n), class_order(y)
    scale, scale_y, zero_prob = _scales(noise, columns, x_columns, y_column, loss)
    heavy, taken = _rows_taken(_weights(weights, weight_column, table, n), weights_type)
    if taken is not None:
        features, response = features[taken], response[taken]
        if loss.classifier and len(set(response.tolist())) == 1:
            alone = response.tolist()[0]
            raise ValueError(f"y has a single class, {alone!r}, where the weights are positive; two are needed")
    coded, classes = loss.code_response(response, order)
    made = Sample(
        x=features,
        y=coded,
        names=[str(c) if isinstance(c, str) else f"x{c}" if isinstance(c, int) else str(c) for c in x_columns],
        scale=scale,
        scale_y=scale_y,
        zero_prob=zero_prob,
        weights=heavy,
        classes=classes,
        columns=[*x_columns, y_column],
    )
    moments = made.rows.moments()
    if x_columns and not (np.isfinite(moments.mean).all() and np.isfinite(moments.covariance).all()):
        _tables.to_float(table, x_columns, what="x column")  # names it; or only squares overflow
    return made


def _rows_taken(weights: FloatArray | None, kind: str) -> tuple[FloatArray | None, NDArray[np.intp] | None]:
    """Weights of the rows that exist, and which these are (None: all of them, once each).

    Raises
    ------
    ValueError
        Frequencies that are no whole numbers.
    """
    if weights is None:
        return None, None
    if kind == "frequency":
        if (weights != np.floor(weights)).any():
            raise ValueError("weights must be whole numbers with weights_type='frequency': how often each row occurs")
        return None, np.repeat(np.arange(len(weights)), weights.astype(np.intp))
    if (weights > 0.0).all():
        return weights, None
    taken = np.flatnonzero(weights)
    return weights[taken], taken


def in_table_order(sample: Sample, table: Any) -> tuple[Sample, NDArray[np.intp] | None]:
    """The sample with the columns of x in the order of the table, and the place in ``x`` of each of them.

    The second noise and every sum go by column: with one order for all calls, the order in which ``x`` names the
    columns changes no number.  None: they are in order already.
    """
    position = {name: k for k, name in enumerate(_tables.column_names(table))}
    order = np.argsort([position[name] for name in sample.columns[:-1]], kind="stable").astype(np.intp)
    if (np.diff(order) > 0).all():
        return sample, None
    return (
        replace(
            sample,
            x=np.ascontiguousarray(sample.x[:, order]),
            names=[sample.names[k] for k in order],
            scale=sample.scale[order],
            columns=[*(sample.columns[k] for k in order), sample.columns[-1]],
        ),
        order,
    )


def check_location(loss: Loss, x_columns: Sequence[Any]) -> None:
    """A location loss takes no features."""
    if loss.location and len(x_columns):
        raise ValueError(f"{loss.name} is a loss of one column: use x=[] and y=<the column>, got x={list(x_columns)!r}")


def _scales(
    noise: Noise | None, columns: list[Any], x_columns: list[Any], y_column: Any, loss: Loss
) -> tuple[FloatArray, float, float | None]:
    if noise is None:
        return np.zeros(len(x_columns)), 0.0, None
    if not isinstance(noise, Noise):
        raise TypeError(f"noise must be a zil.Noise, got {type(noise).__name__}")
    given = noise.scale
    if isinstance(given, dict):
        unknown = [name for name in given if name not in columns]
        if unknown:
            raise _validate.SchemaError(f"noise names columns that the table does not have: {unknown}")
    if isinstance(given, np.ndarray) and len(given) == len(x_columns) != len(columns):
        scale, scale_y = given, 0.0  # one scale per column of x
    else:
        by_column = dict(zip(columns, noise.scales(columns), strict=True))
        scale = np.array([by_column[c] for c in x_columns], dtype=np.float64)
        scale_y = float(by_column[y_column]) if y_column is not None else 0.0
        if isinstance(given, float) and loss.classifier:
            scale_y = 0.0  # one number for all columns cannot mean a class label
    if loss.classifier and scale_y > 0.0:
        raise ValueError(
            f"the class label {y_column!r} was noised (scale {scale_y:g}); {loss.name} needs a clean label"
        )
    return scale, scale_y, noise.zero_prob


def split_noise(
    noise: Noise | None, names: list[Any], name_y: Any, loss: Loss
) -> tuple[FloatArray, float, float | None]:
    """Scales of X1's columns and of y."""
    if noise is None:
        return np.zeros(len(names)), 0.0, None
    if not isinstance(noise, Noise):
        raise TypeError(f"noise must be a zil.Noise, got {type(noise).__name__}")
    given = noise.scale
    scale_y = 0.0
    if isinstance(given, dict):
        unknown = [name for name in given if name not in names and name != name_y]
        if unknown:
            raise _validate.SchemaError(f"noise names columns that X1 and y do not have: {unknown}")
        scale = noise.scales(names)
        # a name that x has as well is that column's: a series computed from it keeps its name
        scale_y = float(given.get(name_y, 0.0)) if name_y is not None and name_y not in names else 0.0
    elif isinstance(given, np.ndarray) and len(given) == len(names) + 1:
        scale, scale_y = given[:-1], float(given[-1])
    elif not names and isinstance(given, float):
        scale, scale_y = np.zeros(0), given
    else:
        scale = noise.scales(names)
    if loss.classifier and scale_y > 0.0:
        raise ValueError(f"the class label was noised (scale {scale_y:g}); {loss.name} needs a clean label")
    return scale, scale_y, noise.zero_prob


def _weights(
    weights: Any,
    column: str | None,
    table: Any,
    n: int,
    coded: FloatArray | None = None,
    classes: tuple[Any, ...] | None = None,
) -> FloatArray | None:
    """Row weights, checked; of a classifier's two classes both must have some."""
    if weights is None:
        return None
    _tables.pair_by_label(table, weights, "the table and weights")
    values = _tables.to_float(table, [column], what="weights column")[:, 0] if column is not None else weights
    array = _validate.finite_array("weights", column_vector("weights", values, n), 1)
    if (array < 0.0).any():
        raise ValueError("weights must not be negative")
    if not array.sum() > 0.0:
        raise ValueError("weights must have a positive sum")
    if coded is not None and classes is not None and len(set(coded[array > 0.0])) == 1:
        alone = classes[int(coded[array > 0.0][0] > 0.0)]
        raise ValueError(f"y has a single class, {alone!r}, where the weights are positive; two are needed")
    return array


def public_box(sample: Sample, bounds: Any, shift: FloatArray | None = None) -> Box | None:
    """Bounds of the noised columns; None if no bounds are given or nothing is noised.

    Parameters
    ----------
    shift : (d,) array, optional
        What was taken off the columns of x.
    bounds : dict by column, or array-like of shape (d, 2) in the order of x (one more row for a noised response)

    Raises
    ------
    ValueError
        A noised column has no bounds, or they are not finite with low < high.
    """
    if bounds is None or not sample.noised:
        return None
    scale = np.append(sample.scale, sample.scale_y)
    noised = np.flatnonzero(scale)
    if isinstance(bounds, Mapping):
        pairs = []
        for k in noised:
            if sample.columns[k] not in bounds:
                raise ValueError(f"bounds of the noised column {sample.columns[k]!r} are missing")
            pairs.append(bounds[sample.columns[k]])
        edges = _validate.finite_array("bounds", pairs, 2)
    else:
        table = _validate.finite_array("bounds", bounds, 2)
        if table.shape != (len(sample.scale), 2) and table.shape != (len(scale), 2):
            raise ValueError(f"bounds must have shape ({len(sample.scale)}, 2), got {table.shape}")
        if noised[-1] >= len(table):
            raise ValueError("bounds of the noised response are missing")
        edges = table[noised]
    if edges.shape[1:] != (2,) or not (edges[:, 0] < edges[:, 1]).all():
        raise ValueError("bounds must be pairs (low, high) with low < high")
    if shift is not None:
        edges = edges - np.append(shift, 0.0)[noised, None]
    return Box(noised, np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1]))


def centred(sample: Sample) -> tuple[Sample, FloatArray]:
    """Columns far from 0 moved there (an intercept takes it up), and by how much, shape (d,).

    A column at 1e6 with spread 1 would cost twelve digits of the Hessian.
    """
    d = sample.x.shape[1]
    moments = sample.rows.moments()
    centre, spread = moments.mean[:d], np.sqrt(np.maximum(np.diag(moments.covariance)[:d], 0.0))
    shift = np.where(np.abs(centre) > 300.0 * spread, centre, 0.0)
    return (replace(sample, x=sample.x - shift) if shift.any() else sample), shift


def check_rank(sample: Sample, intercept: bool) -> None:
    """Refuse a design whose columns are linearly dependent.

    Raises
    ------
    ValueError
        Names the columns that depend on the ones before them (the intercept comes first).
    """
    n, d = sample.x.shape
    # Design: correlations from the moments settle the usual case in one pass; only where they leave a doubt is an array
    # of the size of the data made
    if sample.weights is None and n >= d + intercept and d > 0:
        moments = sample.rows.moments()
        square = moments.covariance[:d, :d]
        if not intercept:
            square = square + np.outer(moments.mean[:d], moments.mean[:d])
        if moments.sound:
            size = np.sqrt(np.diag(square))
            if np.linalg.eigvalsh(square / np.outer(size, size))[0] > 1e-6:
                return
    used = slice(None) if sample.weights is None else sample.weights > 0.0
    _check_rank(sample.x[used], sample.names, intercept)


def _check_rank(features: FloatArray, names: list[str], intercept: bool) -> None:
    """The same from the columns themselves, shape (n, d)."""
    n, d = features.shape
    if d == 0:
        return
    peak = np.abs(features).max(axis=0)
    features = features / np.where(peak > 0.0, peak, 1.0)  # squares of 1e-200 would vanish
    centre = features.mean(axis=0) if intercept else np.zeros(d)
    scaled = features - centre
    size = np.sqrt((scaled**2).mean(axis=0))
    extreme = (size > 1e-13) & ((size * peak < 1e-100) | (size * peak > 1e100))
    if extreme.any():
        far = ", ".join(name for name, is_far in zip(names, extreme, strict=True) if is_far)
        raise ValueError(f"the spread of column(s) {far} is outside 1e-100 to 1e100; change their unit")
    flat = size <= 1e-13
    if flat.any():
        constant = ", ".join(name for name, is_flat in zip(names, flat, strict=True) if is_flat)
        reason = "constant, so the intercept already has it" if intercept else "zero in every row"
        raise ValueError(f"rank deficient design: column(s) {constant} {reason}")
    if n < d + intercept:
        raise ValueError(f"rank deficient design: {n} rows for {d + intercept} parameters")
    scaled /= size
    # Design: eigenvalues of the correlations settle the usual case in a fifth of the time of a QR, which alone can tell
    # a small singular value from rounding
    if np.linalg.eigvalsh(scaled.T @ scaled)[0] > 1e-6 * n:
        return
    from scipy.linalg import qr

    triangle = qr(scaled, mode="r")[0][:d]
    small = np.abs(np.diag(triangle)) <= 1e-10 * np.sqrt(n)
    if small.any():
        dependent = ", ".join(name for name, is_small in zip(names, small, strict=True) if is_small)
        raise ValueError(f"rank deficient design: column(s) {dependent} are linear combinations of the others")
