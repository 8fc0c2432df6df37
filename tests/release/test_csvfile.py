"""CSV as bytes."""

import io
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zil import SchemaError
from zil.release import csvfile


def read(data, seen=len):
    header, end, names, records = csvfile.read(io.BytesIO(data), seen)
    return header, end, names, list(records)


def test_fields_and_line_ends_keep_their_form():
    data = b'\xef\xbb\xbfid,"b ""x""",c\r\n1,"a,\n b",3.50\r\n\r\n2, x ,"4"\n3,,5'
    pieces = []
    header, end, names, records = read(data, pieces.append)
    assert names == ["id", 'b "x"', "c"]
    assert end == b"\r\n"
    assert records == [
        ([b"1", b'"a,\n b"', b"3.50"], b"\r\n"),
        ([b"2", b" x ", b'"4"'], b"\n"),
        ([b"3", b"", b"5"], b""),
    ]
    assert b"".join(pieces) == data
    assert header[0].endswith(b"id")


@settings(deadline=None)
@given(
    st.lists(st.lists(st.text(alphabet='a,"\n\r é', max_size=6), min_size=3, max_size=3), max_size=8), st.integers(1, 9)
)
def test_against_the_library_writer(table, block):
    import csv

    plain = io.StringIO(newline="")
    csv.writer(plain, quoting=csv.QUOTE_ALL).writerows([["x", "y", "z"], *table])
    data = plain.getvalue().encode()
    old = csvfile.BLOCK
    csvfile.BLOCK = block
    try:
        _, _, _, records = read(data)
    finally:
        csvfile.BLOCK = old
    assert [[csvfile.text(field).decode() for field in fields] for fields, _ in records] == [list(row) for row in table]
    assert b"".join(b",".join(fields) + end for fields, end in records) == data.split(b"\r\n", 1)[1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"a,b\n1\n", "another number of fields"),
        (b"a,b\n1,2,3\n", "another number of fields"),
        (b'a,b\n1,"2\n', "ends inside a quoted field"),
        (b"a,a\n1,2\n", "occurs more than once"),
        (b"\xff\xfe,b\n", "not UTF-8"),
    ],
)
def test_refused(data, message):
    with pytest.raises(SchemaError, match=message) as caught:
        read(data)
    assert "1" not in str(caught.value)


def test_a_quote_that_never_closes_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(csvfile, "LONGEST", 1000)
    monkeypatch.setattr(csvfile, "BLOCK", 100)
    for filler in (b"x,", b"x\n"):
        with pytest.raises(SchemaError, match="never closed"):
            read(b'a,b\n"' + filler * 1000)


def test_numbers():
    got = csvfile.numbers([b"1", b" 2.5 ", b'"3e-1"', b"NA", b"", b"nan", b"-inf", b"True", b"<NA>"], "a")
    assert got[[0, 1, 2, 6, 7]].tolist() == [1.0, 2.5, 0.3, -math.inf, 1.0]
    assert np.isnan(got[[3, 4, 5, 8]]).all()
    assert csvfile.numbers([b"0.1", b"1e300"], "a").tolist() == [0.1, 1e300]
    for wrong in (b"739.25x", b"1_0", b"12:30", b"0x10"):
        with pytest.raises(TypeError, match="column 'a' has dtype text; it must be numeric") as caught:
            csvfile.numbers([b"1", wrong], "a")
        assert wrong.decode() not in str(caught.value)


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_numbers_round_trip(values):
    assert csvfile.numbers([repr(v).encode() for v in values], "a").tolist() == values
