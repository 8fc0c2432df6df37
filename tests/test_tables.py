"""The border to dataframes: what goes through, what is refused, and that messages hold no cell."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from zil import SchemaError, _tables

A = np.arange(12.0).reshape(4, 3)
SECRET = 739.25  # a cell that must never be part of a message


def frame_kinds(columns):
    return [
        pd.DataFrame(columns),
        pl.DataFrame(columns),
        pa.table(columns),
        pd.DataFrame(columns).convert_dtypes(),
        pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    ]


@pytest.mark.parametrize("k", range(5))
def test_frames_give_the_same_floats(k):
    table = frame_kinds({"a": [1, 2, 3], "b": [0.5, 1.5, -2.0], "c": [True, False, True], "d": ["x", "y", "z"]})[k]
    assert _tables.column_names(table) == ["a", "b", "c", "d"]
    assert _tables.n_rows(table) == 3
    got = _tables.to_float(table, ["c", "a", "b"])
    assert got.flags.c_contiguous
    assert got.dtype == np.float64
    assert got.tolist() == [[1, 1, 0.5], [0, 2, 1.5], [1, 3, -2.0]]


def layouts():
    wide = np.zeros((8, 3))
    wide[::2] = A
    locked = A.copy()
    locked.flags.writeable = False
    return {
        "C": A.copy(),
        "F": np.asfortranarray(A),
        "reversed": A[::-1].copy()[::-1],
        "every second row": wide[::2],
        "transposed": A.T.copy().T,
        "read-only": locked,
        "big-endian": A.astype(">f8"),
        "float32": A.astype("f4"),
        "float16": A.astype("f2"),
        "uint8": A.astype("u1"),
        "masked, no mask": np.ma.array(A, mask=False),
        "list": A.tolist(),
        "matrix": pd.DataFrame(A),
    }


@pytest.mark.parametrize("name", layouts())
def test_array_layouts(name):
    table = layouts()[name]
    before = np.array(table, copy=True)
    got = _tables.to_float(table, [2, 0])
    assert got.tolist() == A[:, [2, 0]].tolist()
    out = _tables.replace(table, {1: -A[:, 1]})
    assert np.asarray(out, dtype=float).tolist() == (A * [1, -1, 1]).tolist()
    assert np.array_equal(np.array(table), before)


def test_memmap(tmp_path):
    np.save(tmp_path / "a.npy", A)
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    assert _tables.to_float(mapped).tolist() == A.tolist()
    assert type(_tables.replace(mapped, {0: A[:, 1]})) is np.ndarray


def test_float32_is_widened_before_anything_else():
    assert _tables.to_float(np.array([16777216], "f4")).tolist() == [[16777216.0]]
    assert _tables.to_float(np.array([16777217], "i4")).tolist() == [[16777217.0]]
    assert _tables.to_float(pd.DataFrame({"a": np.array([16777217], "i4")})).tolist() == [[16777217.0]]


def test_one_dimension_is_one_column():
    for table in (
        [1.0, 2.0],
        np.array([1.0, 2.0]),
        pd.Series([1.0, 2.0]),
        pl.Series([1.0, 2.0]),
        pa.chunked_array([[1.0, 2.0]]),
    ):
        (name,) = _tables.column_names(table)
        assert _tables.to_float(table, [name]).tolist() == [[1.0], [2.0]]
        out = _tables.replace(table, {name: np.array([5.0, 6.0])})
        assert type(out) is (np.ndarray if isinstance(table, list) else type(table))
        assert np.asarray(out).tolist() == [5.0, 6.0]
    assert _tables.column_names(pd.Series([1.0], name="age")) == ["age"]
    assert _tables.replace(pd.Series([1.0], name="age", index=[7]), {"age": np.array([2.0])}).index.tolist() == [7]


@pytest.mark.parametrize(
    "values",
    [
        ["p739.25", "q", "r"],
        pd.Categorical([SECRET, 1, 2]),
        pd.to_datetime(["2020-01-01"] * 3),
        pd.to_timedelta([1, 2, 3], unit="s"),
        pd.period_range("2020", periods=3, freq="D"),
        pd.array([SECRET, "x", None], dtype=object),
        [b"739.25", b"b", b"c"],
        np.array([SECRET + 1j, 2, 3]),
    ],
)
def test_not_numeric_names_column_and_dtype(values):
    table = pd.DataFrame({"a": [1.0, 2, 3], "wrong": values})
    with pytest.raises(TypeError, match=r"column 'wrong' has dtype .*must be numeric") as caught:
        _tables.to_float(table, ["a", "wrong"])
    assert "739" not in str(caught.value)
    assert str(table["wrong"].dtype) in str(caught.value)
    assert _tables.to_float(table, ["a"]).tolist() == [[1.0], [2.0], [3.0]]


@pytest.mark.parametrize(
    "table",
    [
        pl.DataFrame({"wrong": ["739.25", "b"]}),
        pl.DataFrame({"wrong": [datetime.date(2020, 1, 1)]}),
        pl.DataFrame({"wrong": [b"739.25"]}),
        pl.DataFrame({"wrong": [[SECRET, 2.0]]}),
        pl.DataFrame({"wrong": pl.Series(["739.25"], dtype=pl.Categorical)}),
        pa.table({"wrong": ["739.25"]}),
        pa.table({"wrong": pa.array(["739.25"]).dictionary_encode()}),
        pa.table({"wrong": [b"739.25"]}),
        pa.table({"wrong": [datetime.datetime(2020, 1, 1)]}),
    ],
)
def test_not_numeric_polars_pyarrow(table):
    with pytest.raises(TypeError, match="column 'wrong' has dtype") as caught:
        _tables.to_float(table, ["wrong"])
    assert "739" not in str(caught.value)


@pytest.mark.parametrize("table", [np.array(["a"]), np.array([None, 1.0]), [[1, "739"]], np.array([1j]), [["x", None]]])
def test_arrays_of_the_wrong_kind(table):
    with pytest.raises(TypeError, match="column 0 has dtype") as caught:
        _tables.to_float(table, [0])
    assert "739" not in str(caught.value)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.array([SECRET, None, 3], dtype="Float64"), "b": [1.0, 2, 3]}),
        pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [1.0, 2, 3]}),
        pd.DataFrame({"a": [SECRET, np.nan, 3], "b": [1.0, 2, 3]}),
        pd.DataFrame({"a": pd.array([True, None, False], dtype="boolean"), "b": [1.0, 2, 3]}),
        pl.DataFrame({"a": [SECRET, None, 3], "b": [1.0, 2, 3]}),
        pl.DataFrame({"a": [SECRET, float("nan"), 3], "b": [1.0, 2, 3]}),
        pl.DataFrame({"a": [None, None, None], "b": [1.0, 2, 3]}),
        pa.table({"a": [SECRET, None, 3], "b": [1.0, 2, 3]}),
        pa.table({"a": pa.nulls(3), "b": [1.0, 2, 3]}),
    ],
)
def test_missing_names_the_column(table):
    with pytest.raises(SchemaError, match="column 'a' has missing entries") as caught:
        _tables.to_float(table, ["b", "a"])
    assert "739" not in str(caught.value)
    assert _tables.to_float(table, ["b"]).tolist() == [[1.0], [2.0], [3.0]]
    filled = _tables.to_float(table, ["a"], allow_missing=True)
    assert np.isnan(filled[1, 0])


def test_missing_and_infinite_in_arrays():
    table = np.ma.array([[1.0, 2.0], [SECRET, 4.0]], mask=[[0, 0], [1, 0]])
    with pytest.raises(SchemaError, match="column 0 has missing"):
        _tables.to_float(table)
    assert np.isnan(_tables.to_float(table, allow_missing=True)[1, 0])
    assert _tables.replace(table, {1: np.zeros(2)})[0].tolist() == [1.0, 0.0]
    for value in (np.inf, -np.inf):
        with pytest.raises(SchemaError, match="column 'x' has infinite entries"):
            _tables.to_float(pd.DataFrame({"x": [0.0, value]}))
        assert _tables.to_float([0.0, value], allow_infinite=True)[1, 0] == value
    with pytest.raises(SchemaError, match="column 'x' has missing"):
        _tables.to_float(pd.DataFrame({"x": [np.inf, np.nan]}), allow_infinite=True)
    with pytest.raises(SchemaError, match="infinite"):
        _tables.to_float([np.inf, -np.inf])
    assert _tables.to_float([1e308, 1e308, 1e308]).tolist() == [[1e308]] * 3  # a sum that overflows is no fault


def test_nullable_without_na_is_accepted():
    table = pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": pd.array([0.5, 1], dtype="Float64")})
    assert _tables.to_float(table).tolist() == [[1, 0.5], [2, 1]]


def test_duplicate_names():
    twice = pd.DataFrame(np.zeros((2, 3)), columns=["a", "a", "b"])
    for call in (
        lambda: _tables.column_names(twice),
        lambda: _tables.to_float(twice, ["b"]),
        lambda: _tables.replace(twice, {}),
    ):
        with pytest.raises(SchemaError, match="'a' occurs more than once"):
            call()
    with pytest.raises(SchemaError, match="'a' occurs more than once"):
        _tables.column_names(pa.table([[1], [2]], names=["a", "a"]))
    with pytest.raises(SchemaError, match="'a' occurs more than once"):
        _tables.to_float(pd.DataFrame({"a": [1.0]}), ["a", "a"])
    with pytest.raises(SchemaError, match="1 occurs more than once"):
        _tables.to_float(A, [1, 1])


def test_unknown_names():
    with pytest.raises(SchemaError, match="column 'c' not in the table, which has 'a', 'b'"):
        _tables.to_float(pd.DataFrame({"a": [1.0], "b": [1.0]}), ["c"])
    for position in (-1, 3):
        with pytest.raises(SchemaError, match="not in the table"):
            _tables.to_float(A, [position])


def test_replace_keeps_order_index_and_other_columns():
    frame = pd.DataFrame({"k": ["x", "y", "z"], "a": [1, 2, 3], "t": pd.to_datetime(["2020"] * 3)}, index=[5, 5, 1])
    frame.attrs["note"] = "about a person"
    keep = frame.copy()
    out = _tables.replace(frame, {"a": np.array([0.5, 1.5, 2.5])})
    assert list(out.columns) == ["k", "a", "t"]
    assert out.index.tolist() == [5, 5, 1]
    assert out["a"].tolist() == [0.5, 1.5, 2.5]
    assert out["a"].dtype == np.float64
    assert out["t"].equals(frame["t"])
    assert out.attrs == {}
    pd.testing.assert_frame_equal(frame, keep)
    assert frame.attrs == {"note": "about a person"}

    polars = pl.DataFrame({"k": ["x", "y"], "a": [1, 2]})
    out = _tables.replace(polars, {"a": np.array([0.5, 1.5])})
    assert isinstance(out, pl.DataFrame)
    assert out.schema == {"k": pl.String, "a": pl.Float64}
    assert polars["a"].dtype == pl.Int64

    arrow = pa.table({"k": ["x", "y"], "a": [1, 2]}).replace_schema_metadata({"note": "about a person"})
    out = _tables.replace(arrow, {"a": np.array([0.5, 1.5])})
    assert isinstance(out, pa.Table)
    assert out.schema.metadata is None
    assert out.column_names == ["k", "a"]
    assert out["a"].to_pylist() == [0.5, 1.5]


def test_not_a_table():
    with pytest.raises(TypeError, match=r"LazyFrame .*collect"):
        _tables.column_names(pl.LazyFrame({"a": [1]}))
    for wrong in ({"a": [1.0]}, 3.0, "text", None):
        with pytest.raises(TypeError, match="a table must be"):
            _tables.column_names(wrong)
    for wrong in (np.zeros((2, 2, 2)), [[1, 2], [SECRET]], np.array(3.0)):
        with pytest.raises(SchemaError, match="one or two dimensions"):
            _tables.to_float(wrong)


def test_empty_tables():
    assert _tables.to_float(np.zeros((0, 3))).shape == (0, 3)
    assert _tables.to_float(np.zeros((3, 0))).shape == (3, 0)
    assert _tables.to_float(pd.DataFrame({"a": []}, dtype=float)).shape == (0, 1)


def test_same_rows():
    left = pd.DataFrame({"a": [1.0, 2.0]})
    _tables.same_rows(left, left.copy())
    _tables.same_rows(left, np.zeros(2))
    with pytest.raises(SchemaError, match="different indexes"):
        _tables.same_rows(left, pd.Series([1.0, 2.0], index=[1, 0]))
    with pytest.raises(SchemaError, match="2 and 3 rows"):
        _tables.same_rows(left, np.zeros(3))


def test_a_long_double_beyond_float64_is_infinite_without_a_warning():
    """The warning came only if such a cell was there, and so told something about it."""
    table = np.array([[np.longdouble("1e400")], [np.longdouble(0.5)]])
    if np.isinf(table[0, 0]):
        return  # here a long double is a double
    with pytest.raises(SchemaError, match="column 0 has infinite entries"):
        _tables.to_float(table)
    assert _tables.to_float(table, allow_infinite=True).tolist() == [[np.inf], [0.5]]


def test_whole_numbers_beyond_doubles_are_rounded():
    """pyarrow's own refusal names the cell."""
    table = pa.table({"a": pa.array([2**53 + 1, 1]), "b": pa.array([2**64 - 1, 1], pa.uint64())})
    assert _tables.to_float(table).tolist() == [[2.0**53, 2.0**64], [1.0, 1.0]]
