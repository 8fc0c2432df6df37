"""A published table in memory and on disk."""

import copy
import json
import math
import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zil
from zil.release import files

SECRET = 0.73912345
MECHANISM = zil.Mechanism({"a": (0, 1), "b": (0, 10)}, zero_prob=0.25, scale=[1.0, 5.0])


def frame():
    return pd.DataFrame(
        {
            "id": ["01", 'x,"y"', None, ""],
            "a": [SECRET, 0.25, 0.5, 1.0],
            "b": [1, 2, 3, 4],
            "when": pd.to_datetime(["2020-01-01", None, "2021-05-05", "2020-01-01"]),
            "kind": pd.Categorical(["u", "v", "u", "u"]),
        },
        index=pd.Index([5, 5, 1, 9], name="row"),
    )


def same(left, right):
    if isinstance(left, pd.DataFrame):
        pd.testing.assert_frame_equal(left, right)
    elif isinstance(left, pd.Series):
        pd.testing.assert_series_equal(left, right)
    elif isinstance(left, np.ndarray):
        assert left.shape == right.shape
        assert np.array_equal(left, right)
    else:
        assert left.equals(right)


TABLES = {
    "pandas": lambda: frame(),
    "plain pandas": lambda: frame().reset_index(drop=True)[["a", "b"]],
    "polars": lambda: pl.DataFrame({"id": ["01", None], "a": [0.1, 0.2], "b": [1, 2]}),
    "pyarrow": lambda: pa.table({"id": ["01", None], "a": [0.1, 0.2], "b": [1, 2]}),
    "numpy": lambda: np.array([[0.1, 1], [0.2, 2], [0.3, 3]]),
}


@pytest.mark.parametrize("ending", ["parquet", "csv", "pq", "CSV"])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("ignore:the table has no column names:UserWarning")
def test_round_trip(name, ending, tmp_path):
    out = MECHANISM.release(TABLES[name]())
    path = tmp_path / f"out.{ending}"
    out.save(path)
    back = zil.load(path)
    assert type(back.data) is type(out.data)
    same(back.data, out.data)
    assert back.noise == out.noise
    assert back.bounds == out.bounds
    assert back.private is True
    assert {k: v for k, v in back.metadata.items() if not k.startswith("sha256")} == out.metadata
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        {path.name, files.sidecar(path).name if "csv" in ending.lower() else path.name}
    )
    back.save(str(path))  # a second time replaces it
    assert zil.load(path).metadata["sha256"] == back.metadata["sha256"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize(
    "table",
    [np.array([0.1, 0.2]), pd.Series([0.1, 0.2], name="a", index=[4, 2]), pl.Series("a", [0.1, 0.2]), [0.1, 0.2]],
)
def test_single_columns(table, ending, tmp_path):
    out = zil.Mechanism({"a": (0, 1)}, zero_prob=0, scale=1).release(table)
    out.save(tmp_path / f"x.{ending}")
    same(zil.load(tmp_path / f"x.{ending}").data, out.data)


@pytest.mark.parametrize("table", [np.array([0.1, 0.2]), np.array([[0.1, 1e-300], [1 / 3, 2.0]])])
def test_numpy_tables_need_no_other_library(table, tmp_path, monkeypatch):
    for name in ("pyarrow", "pyarrow.csv", "pyarrow.parquet", "pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    m = zil.Mechanism([(0, 1)] * (table.ndim if table.ndim == 1 else 2), zero_prob=0.5, scale=1)
    out = m.release(table)
    out.save(tmp_path / "x.csv")
    same(zil.load(tmp_path / "x.csv").data, out.data)
    for call in (lambda: out.save(tmp_path / "x.parquet"), lambda: zil.load(tmp_path / "x.parquet")):
        with pytest.raises(ImportError, match="pip install"):
            call()


def test_integer_names(tmp_path):
    out = zil.Mechanism([(0, 1), (0, 1)], zero_prob=0, scale=1).release(pd.DataFrame(np.zeros((3, 2))))
    out.save(tmp_path / "x.parquet")
    same(zil.load(tmp_path / "x.parquet").data, out.data)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_damage_is_seen(ending, tmp_path):
    path = tmp_path / f"x.{ending}"
    MECHANISM.release(frame()).save(path)
    good = path.read_bytes()
    for place in (4, 20, len(good) // 20 if ending == "parquet" else len(good) // 2):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(zil.SchemaError, match="sha256"):
            zil.load(path)
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(zil.SchemaError):
        zil.load(path)
    path.write_bytes(good)
    assert zil.load(path).private


def test_simulated_stays_stamped(tmp_path):
    for ending in ("parquet", "csv"):
        MECHANISM.simulate(frame(), 1).save(tmp_path / f"x.{ending}")
        back = zil.load(tmp_path / f"x.{ending}")
        assert back.private is False
        assert "not private" in repr(back)
        assert back.report().splitlines()[1].startswith("VERDICT: NOT PRIVATE")


def test_files_of_other_origin(tmp_path):
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "x.parquet")
    with pytest.raises(zil.SchemaError, match="not written by zil"):
        zil.load(tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(zil.SchemaError, match=r"x\.csv\.json is missing"):
        zil.load(tmp_path / "x.csv")
    (tmp_path / "x.csv.json").write_text('{"format": "other"}')
    with pytest.raises(zil.SchemaError, match="not the metadata"):
        zil.load(tmp_path / "x.csv")
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    with pytest.raises(zil.SchemaError, match="not a Parquet file"):
        zil.load(tmp_path / "bad.parquet")
    for call in (zil.load, MECHANISM.release(frame()).save):
        with pytest.raises(ValueError, match=r"must end in \.parquet, \.pq or \.csv"):
            call(tmp_path / "x.txt")
    for ending in ("csv", "parquet"):
        with pytest.raises(FileNotFoundError):
            zil.load(tmp_path / f"none.{ending}")


def test_metadata_says_what_was_done_and_nothing_of_the_data():
    out = MECHANISM.release(frame())
    meta = out.metadata
    assert meta["n_rows"] == 4
    assert meta["expected_unchanged_rows"] == 1.0
    assert meta["numeric_delta"] == 0
    assert meta["shift"] == {unit: MECHANISM.shift(unit) for unit in ("attribute", "record")}
    assert meta["columns"][1] == {
        "name": "b",
        "lower": 0.0,
        "upper": 10.0,
        "tick": MECHANISM.tick[1],
        "scale": 5.0,
        "effective_scale": pytest.approx(5.0),
    }
    other = MECHANISM.release(frame().assign(a=[0.0, 99, -5, 0], b=0)).metadata
    hidden = {"release_id"}
    assert {k: v for k, v in meta.items() if k not in hidden} == {k: v for k, v in other.items() if k not in hidden}
    assert meta["release_id"] != other["release_id"]
    assert len(json.dumps(meta)) > 500


def test_no_original_value_travels():
    table = frame()
    table.attrs["note"] = SECRET
    mechanism = zil.Mechanism({"a": (0, 1), "b": (0, 10)}, zero_prob=0, scale=[1.0, 5.0])
    out = mechanism.release(table)
    for stored in (pickle.dumps(out), pickle.dumps(mechanism)):
        assert np.float64(SECRET).tobytes() not in stored
        assert b"0.7391234" not in stored
    twin = pickle.loads(pickle.dumps(out))
    same(twin.data, out.data)
    assert twin.noise == out.noise
    same(copy.deepcopy(out).data, out.data)
    assert out.data.attrs == {}


def test_double_is_post_processing_with_a_fixed_stream():
    out = MECHANISM.release(frame())
    first = out.double()
    same(first, out.double(n_threads=2))
    assert list(first.columns) == list(out.data.columns)
    assert first.index.equals(out.data.index)
    assert (first["a"] != out.data["a"]).all()
    assert first["id"].equals(out.data["id"])
    assert not np.array_equal(first["a"], out.double(1)["a"])
    same(out.double(1), out.double(np.random.PCG64(1)))
    copies = out.double(copies=3)
    assert len(copies) == 3
    same(copies[0], first)
    assert not np.array_equal(copies[1]["a"], copies[2]["a"])
    with pytest.raises(ValueError, match="copies must be at least 1"):
        out.double(copies=0)


def test_double_is_keyed_by_row():
    mechanism = zil.Mechanism([(0, 1)], zero_prob=0.5, scale=1.0)
    long = mechanism.release(np.full(20_000, 0.5))
    short = zil.Release(long.data[:7], {**long.metadata, "n_rows": 7})
    assert np.array_equal(short.double(), long.double()[:7])


@pytest.mark.parametrize("rng", [None, np.random.default_rng()])
def test_law_of_the_double(rng):
    """X2 - X1 is SL(zero_prob scale^2), independent of whether the row was changed; false alarm below 1e-7."""
    n, p, scale = 200_000, 0.2, 1.5
    out = zil.Mechanism([(0, 1), (0, 1)], zero_prob=p, scale=scale).release(np.zeros((n, 2)))
    s = out.double(rng) - out.data
    zero = (out.data == 0).all(axis=1)
    z = s / (math.sqrt(p) * scale)
    terms = [
        (z[:, 0] ** 2, 1),
        (z[:, 1] ** 2, 1),
        (z[:, 0] * z[:, 1], 0),
        (z[:, 0] ** 4, 6),
        (z[:, 0] ** 2 * z[:, 1] ** 2, 2),
    ]
    terms += [(np.abs(z[:, 0]), math.sqrt(0.5)), ((z[:, 0] ** 2 - 1) * (zero - p), 0), (z[:, 0] * out.data[:, 0], 0)]
    for term, mean in terms:
        assert abs(term.mean() - mean) < 6.5 * term.std() / math.sqrt(n)
    wrong = 1.05 * z[:, 0]
    assert abs((wrong**2).mean() - 1) > 6.5 * (wrong**2).std() / math.sqrt(n)
    total = out.double(rng)[:, 0] / scale
    assert abs((total**2).mean() - 1) < 6.5 * (total**2).std() / math.sqrt(n)


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    target = tmp_path / "x.bin"
    target.write_bytes(b"old")

    def interrupted():
        with files.atomic(target) as handle:
            handle.write(b"half")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        interrupted()
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]
