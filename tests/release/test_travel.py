"""What travels unseen with a table stays behind: metadata of fields, names of dropped columns, categories of nobody.

Each file is searched byte by byte for canaries, and so is every text in it that base64 hides (Arrow schemas).
"""

import base64
import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zil
from zil.release import files

M = zil.Mechanism({"a": (0, 1)}, zero_prob=0.5, scale=1.0)
FIELD, NESTED, SCHEMA, ATTRIBUTE, DROPPED, CATEGORY = CANARIES = [
    f"canary-{what}-4711" for what in ("field", "nested", "schema", "attribute", "dropped", "category")
]


def texts(path):
    """All bytes of a published file and of its sidecar, and what base64 in them stands for."""
    raw = path.read_bytes()
    beside = files.sidecar(path)
    if path.suffix == ".csv" and beside.exists():
        raw += beside.read_bytes()
    found = [raw]
    for run in re.findall(rb"[A-Za-z0-9+/]{40,}={0,2}", raw):
        for start in range(4):  # the bytes before it may look like it
            part = run[start:]
            found.append(base64.b64decode(part[: len(part) // 4 * 4]))
    return b"\n".join(found)


def seen(path):
    content = texts(path)
    return [canary for canary in CANARIES if canary.encode() in content]


def loaded_table(nested=True):
    """A table that carries a canary in each place where one can hide; 40 rows."""
    n = 40
    frame = pd.DataFrame({"a": np.linspace(0, 1, n), "note": ["x", "y"] * 20, DROPPED: np.arange(n)})
    frame.index = pd.RangeIndex(7, 7 + n, name="row")
    arrow = pa.Table.from_pandas(frame)
    told = json.loads(arrow.schema.metadata[b"pandas"])
    told["attributes"] = {"about": ATTRIBUTE}
    told["columns"][1][ATTRIBUTE] = ATTRIBUTE
    told[ATTRIBUTE] = 1
    kinds = pa.DictionaryArray.from_arrays(pa.array([0, 2] * 20, pa.int8()), pa.array(["u", CATEGORY, "w"]))
    arrow = arrow.append_column("kind", kinds)
    if nested:
        inner = pa.struct([pa.field("p", pa.int64(), metadata={"about": NESTED})])
        arrow = arrow.append_column("deep", pa.array([{"p": k} for k in range(n)], inner))
    fields = [field.with_metadata({"about": FIELD}) if field.name in ("note", "a") else field for field in arrow.schema]
    schema = pa.schema(fields, metadata={b"pandas": json.dumps(told).encode(), b"about": SCHEMA.encode()})
    return pa.table(arrow.columns, schema=schema)


def expected(nested):
    return [canary for canary in CANARIES if nested or canary != NESTED]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_release_file(tmp_path, ending):
    nested = ending == "parquet"
    table = loaded_table(nested)
    src, dst = tmp_path / "in.parquet", tmp_path / f"out.{ending}"
    pq.write_table(table, src)
    assert seen(src) == expected(nested)  # the search finds them where they are
    kept = [name for name in table.column_names if name != DROPPED]
    M.release_file(src, dst, columns=kept)
    assert seen(dst) == []
    back = zil.load(dst).data
    assert back["kind"].tolist() == ["u", "w"] * 20
    if ending == "parquet":
        assert back.index.equals(pd.RangeIndex(7, 47, name="row"))
        assert back["deep"].tolist() == [{"p": k} for k in range(40)]


@pytest.mark.parametrize("batch_rows", [1, 3, 1000])
def test_a_category_of_the_last_row_alone(tmp_path, batch_rows):
    """Batches agree on the categories, whichever rows they hold."""
    src, dst = tmp_path / "in.parquet", tmp_path / "out.parquet"
    kinds = pa.DictionaryArray.from_arrays(pa.array([0, None, 0, 3], pa.int8()), pa.array(["u", CATEGORY, "w", "z"]))
    pq.write_table(pa.table({"a": [0.0, 0.1, 0.2, 0.3], "kind": kinds}), src)
    M.release_file(src, dst, batch_rows=batch_rows)
    assert seen(src) == [CATEGORY]
    assert seen(dst) == []
    assert pq.read_table(dst)["kind"].to_pylist() == ["u", None, "u", "z"]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_save_of_an_arrow_table(tmp_path, ending):
    nested = ending == "parquet"
    table, path = loaded_table(nested), tmp_path / f"out.{ending}"
    pq.write_table(table, tmp_path / "naive.parquet")
    assert seen(tmp_path / "naive.parquet") == expected(nested)
    release = M.release(table.drop_columns(DROPPED))
    assert release.data.column_names == [name for name in table.column_names if name != DROPPED]
    release.save(path)
    assert seen(path) == []
    assert zil.load(path).data["kind"].to_pylist() == ["u", "w"] * 20


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "polars enum"])
def test_save_of_rows_that_were_chosen(tmp_path, ending, kind):
    """Categories of rows that were left out stay in the column when a library filters."""
    whole = {"a": [0.0, 0.25, 0.5, 1.0], "kind": ["u", CATEGORY, "w", "u"]}
    if kind == "pandas":
        table = pd.DataFrame(whole).astype({"kind": "category"})
        table.attrs["about"] = ATTRIBUTE
        table.attrs[DROPPED] = 1
        table = table[table["kind"] != CATEGORY]
        assert CATEGORY in table["kind"].cat.categories
    else:
        dtype = pl.Categorical if kind == "polars" else pl.Enum(["u", CATEGORY, "w"])
        table = pl.DataFrame(whole, schema_overrides={"kind": dtype}).filter(pl.col("a") != 0.25)
    path = tmp_path / f"out.{ending}"
    M.release(table).save(path)
    assert seen(path) == []
    assert list(zil.load(path).data["kind"]) == ["u", "w", "u"]


def test_an_extension_type_that_may_carry_anything_is_refused(tmp_path):
    class Labelled(pa.ExtensionType):
        def __init__(self):
            super().__init__(pa.int64(), "example.labelled")

        def __arrow_ext_serialize__(self):
            return FIELD.encode()

        @classmethod
        def __arrow_ext_deserialize__(cls, storage_type, serialized):
            return cls()

    column = pa.ExtensionArray.from_storage(Labelled(), pa.array([1, 2]))
    table = pa.table({"a": [0.0, 1.0], "odd": column})
    with pytest.raises(zil.SchemaError, match="column 'odd' has an extension type") as caught:
        M.release(table).save(tmp_path / "out.parquet")
    assert FIELD not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
