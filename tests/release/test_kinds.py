"""A passed column of a CSV file says after `load` what it said before: one rule for what plainly is a number."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import zil
from zil.release import kinds, stored

M = zil.Mechanism({"a": (0, 1)}, zero_prob=0.5, scale=1.0)

COLUMNS = {  # fields as written, and what they are after load
    "leading zeros": (["007", "012"], ["007", "012"]),
    "a leading zero and none": (["7", "08"], ["7", "08"]),
    "a sign": (["+7", "8"], ["+7", "8"]),
    "spaces": ([" 7", "8"], [" 7", "8"]),
    "dates": (["2026-01-31", "2026-02-01"], ["2026-01-31", "2026-02-01"]),
    "times": (["2026-01-31T10:00Z", "2026-02-01T00:00+02:00"], ["2026-01-31T10:00Z", "2026-02-01T00:00+02:00"]),
    "truths": (["true", "False"], ["true", "False"]),
    "digits and text": (["1e5", "A7"], ["1e5", "A7"]),
    "words for nothing": (["NA", "7"], ["NA", "7"]),
    "names of infinity": (["inf", "nan"], ["inf", "nan"]),
    "more digits than float64": (["0.12345678901234567890", "1"], ["0.12345678901234567890", "1"]),
    "an exponent too large": (["1e999", "1"], ["1e999", "1"]),
    "an exponent too small": (["1e-400", "1"], ["1e-400", "1"]),
    "long whole numbers and a fraction": (["9007199254740993", "0.5"], ["9007199254740993", "0.5"]),
    "very long whole numbers": (["12345678901234567890", "1"], ["12345678901234567890", "1"]),
    "long whole numbers and a gap": (["9007199254740993", ""], ["9007199254740993", None]),
    "text in quotes": (['"7"', '"8"'], ["7", "8"]),
    "empty text and a gap": (['""', "x", ""], ["", "x", None]),
    "nothing": (["", ""], [None, None]),
    "whole numbers": (["7", "-8"], [7, -8]),
    "long whole numbers": (["9007199254740993", "-1"], [9007199254740993, -1]),
    "whole numbers as another program writes them": (["101.0", ""], [101.0, None]),
    "whole numbers and a gap": (["101", ""], [101, None]),
    "exponents": (["1e5", "2E-3"], [100000.0, 0.002]),
    "shortest digits": (["0.30000000000000004", "1.797693134862315e308"], [0.30000000000000004, 1.797693134862315e308]),
    "minus nothing": (["-0", "1"], [-0.0, 1.0]),
}  # fmt: skip


def published(folder, fields, name="b"):
    src, dst = folder / "in.csv", folder / "out.csv"
    src.write_text(f"a,{name},z\n" + "".join(f"0.5,{field},q\n" for field in fields))
    M.release_file(src, dst)
    assert "arrow_schema" not in zil.load(dst).metadata
    return dst


@pytest.mark.parametrize("case", COLUMNS)
def test_a_passed_column_says_what_it_said(tmp_path, case):
    fields, expected = COLUMNS[case]
    found = [None if pd.isna(entry) else entry for entry in zil.load(published(tmp_path, fields)).data["b"].tolist()]
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))
    assert str(found[0]) != "0.0" or case == "minus nothing"


@pytest.mark.parametrize("quoted", ["", '"'])
def test_names_in_quotation_marks(tmp_path, quoted):
    path = published(tmp_path, ["007", "012"], f"{quoted}b{quoted}")
    assert zil.load(path).data["b"].tolist() == ["007", "012"]


def test_the_same_rule_for_load_and_for_parquet(tmp_path):
    for k, (fields, _) in enumerate(COLUMNS.values()):
        folder = tmp_path / str(k)
        folder.mkdir()
        csv = zil.load(published(folder, fields)).data["b"]
        M.release_file(folder / "in.csv", folder / "out.parquet", ledger=folder / "other")
        pd.testing.assert_series_equal(zil.load(folder / "out.parquet").data["b"], csv)


NUMERALS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=18).map(str),
    st.from_regex(r"[-+]?0?[0-9]{1,18}(\.[0-9]{0,18})?(e-?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["", "007", "1e5", "x"]),
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(NUMERALS, min_size=1, max_size=5), st.integers(1, 3))
@example(["1", "1.0000000000000001"], 1)
@example(["9007199254740993", "1.5"], 1)
@example(["9007199254740993", ""], 1)
@example(["1000000000000000", "0.0"], 1)
@example(["0.0", "1000000000000000"], 1)
def test_no_field_changes_what_it_says(fields, size):
    raw = ("a,b\n" + "".join(f"0.5,{field}\n" for field in fields)).encode()
    whole = stored.read_csv(raw, None, ["a"])
    found = whole["b"].to_pylist()
    for field, entry in zip(fields, found, strict=True):
        if field == "":
            assert entry is None
        elif isinstance(entry, str):
            assert entry == field
        else:
            assert Decimal(repr(entry)) == Decimal(field)
    parts = kinds.Column()  # the size of a batch changes nothing
    for start in range(0, len(fields), size):
        parts.look(field.encode() for field in fields[start : start + size])
    arrow = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64()}
    assert whole["b"].type == arrow[parts.kind]


def test_floats_as_pandas_writes_them_stay_numbers(tmp_path):
    """Seventeen digits are no reason to make text of a column."""
    table = pd.DataFrame({"a": 0.5, "b": np.random.default_rng().normal(size=500) * 10.0 ** np.arange(-250, 250)})
    table.to_csv(tmp_path / "in.csv", index=False)
    M.release_file(tmp_path / "in.csv", tmp_path / "out.csv")
    assert zil.load(tmp_path / "out.csv").data["b"].tolist() == table["b"].tolist()
