"""One form for each row id."""

import datetime
import unicodedata
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zil import SchemaError
from zil.release import rowids


def form(value):
    return rowids.of_values([value], "id")[0]


@pytest.mark.parametrize(
    "same",
    [
        ["101", "101.0", " 101", "+101", "0101", "1.01e2", "101.", "101\u00a0", "\ufeff101", 101, 101.0, b"101"],
        [Decimal("101.00"), "101"],
        ["caf\u00e9", "cafe\u0301", " caf\u00e9\t"],
        ["1.5", "1.50", "15e-1", 1.5],
        ["0", "-0", "0.0", "000", 0, -0.0],
        ["-7", "-07", "-7.0", -7],
        [str(10**30), "1e30", 10**30],
        ["9007199254740991", 2.0**53 - 1, "9007199254740991.0"],
        ["9007199254740993", 9007199254740993, "009007199254740993"],
        ["2024-01-31", datetime.date(2024, 1, 31), datetime.datetime(2024, 1, 31), "2024-01-31T00:00"],
        ["1e999999999", "10e999999998"],
        ["\u0661\u0660\u0661", "101"],
    ],
)  # fmt: skip
def test_the_same_row(same):
    assert len({form(value) for value in same}) == 1


@pytest.mark.parametrize(
    "others",
    [
        ["7", "7a", "a7", "70", "-7", "7.1", "7 7", "7,0", "VII"],
        ["a", "A", "b"],
        ["9007199254740993", "9007199254740992"],
        ["1e5", "1e50", "1e-5"],
        ["2024-01-31", "2024-01-31 00:00:01", "2024-01-30"],
        ["1_0", "10", "0x10"],
    ],
)
def test_other_rows(others):
    assert len({form(value) for value in others}) == len(others)


@given(st.text(min_size=1, max_size=12))
def test_a_form_is_its_own_form(word):
    try:
        once = rowids.canonical(word, "id")
    except SchemaError:
        return
    assert rowids.canonical(once, "id") == once
    assert rowids.canonical(unicodedata.normalize("NFD", word), "id") == once
    assert rowids.canonical(f" {word}\n", "id") == once


@given(st.integers(-(10**25), 10**25))
def test_whole_numbers(number):
    ways = [number, f" {number:+d} ", f"{number:030d}"]
    if abs(number) < 2**53:
        ways += [f"{number}.000", float(number), repr(float(number))]
    assert {form(way) for way in ways} == {str(number)}


@pytest.mark.parametrize("missing", [None, float("nan"), "", " ", "NA", "nan", "NULL", " n/a", "\u200b"])
def test_missing(missing):
    with pytest.raises(SchemaError, match="row id 'id' has missing entries"):
        form(missing)


@pytest.mark.parametrize("number", ["9007199254740993.0", "9.1e15", 2.0**53, "1e+16", "-9007199254740992.0", 1e300])
def test_a_float_that_does_not_tell_whole_numbers_apart(number):
    with pytest.raises(SchemaError, match="do not tell whole numbers apart") as caught:
        form(number)
    assert "90071" not in str(caught.value)


def test_what_names_no_row():
    for value in ([1], {"a": 1}, object()):
        with pytest.raises(TypeError, match="row id 'id' has values of type"):
            form(value)
    assert form(b"\xff\x00") == "ff00"
    assert form("7" * 1000) != form("7" * 999)
    with pytest.raises(SchemaError, match="not UTF-8"):
        rowids.of_fields([b"\xff"], "id")
