"""CSV as bytes: one strict grammar, and what is not noised stays as it was written."""

import csv
import io
import math
import re

import numpy as np
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zil import SchemaError
from zil._core import csvtext
from zil.release import csvfile

LINE_ENDS = {0: b"", 1: b"\n", 2: b"\r\n"}


def read(data, header=None, size=1000):
    """Header fields, names, and the records as (fields, end of the line)."""
    reader = csvfile.Reader(io.BytesIO(data), header)
    records = []
    for part in reader.batches(size):
        columns = [part.fields(k) for k in range(reader.width)]
        records += zip(map(list, zip(*columns, strict=True)), map(LINE_ENDS.get, part.ends.tolist()), strict=True)
    return reader, records


def test_fields_and_line_ends_keep_their_form():
    data = b'\xef\xbb\xbfid,"b ""x""",c\r\n1,"a,\n b",3.50\r\n\r\n2, x ,"4"\n3,,5'
    reader, records = read(data)
    assert reader.names == ["id", 'b "x"', "c"]
    assert (reader.end, reader.bom) == (b"\r\n", csvfile.BOM)
    assert reader.fields == [b"id", b'"b ""x"""', b"c"]
    assert records == [
        ([b"1", b'"a,\n b"', b"3.50"], b"\r\n"),
        ([b"2", b" x ", b'"4"'], b"\n"),
        ([b"3", b"", b"5"], b""),
    ]


@settings(deadline=None)
@given(
    st.lists(st.lists(st.text(alphabet='a,"\n\r é', max_size=6), min_size=3, max_size=3), max_size=8),
    st.integers(1, 9),
    st.integers(1, 4),
)
def test_against_the_library_writer(table, block, size):
    """Any text, in blocks of any length: a field may begin, and a quotation mark may stand, at the end of a block."""
    plain = io.StringIO(newline="")
    csv.writer(plain, quoting=csv.QUOTE_ALL).writerows([["x", "y", "z"], *table])
    data = plain.getvalue().encode()
    old = csvfile.BLOCK
    csvfile.BLOCK = block
    try:
        _, records = read(data, size=size)
    finally:
        csvfile.BLOCK = old
    assert [[csvfile.text(field).decode() for field in fields] for fields, _ in records] == [list(row) for row in table]
    assert b"".join(b",".join(fields) + end for fields, end in records) == data.split(b"\r\n", 1)[1]


@settings(deadline=None, max_examples=400)
@given(st.binary(max_size=40).map(lambda raw: bytes(b'a,"\n\r\0x\\'[b % 8] for b in raw)), st.integers(1, 7))
def test_what_is_read_is_read_the_same_by_others(data, block):
    """Whatever bytes: a refusal, or the fields that Python's csv and pyarrow find."""
    old = csvfile.BLOCK
    csvfile.BLOCK = block
    try:
        _, records = read(b"p,q\n" + data)
    except SchemaError:
        return
    finally:
        csvfile.BLOCK = old
    ours = [[csvfile.text(field).decode() for field in fields] for fields, _ in records]
    text = io.StringIO(data.decode(), newline="")
    assert ours == [record for record in csv.reader(text, strict=True) if record]
    arrow = pyarrow.csv.read_csv(
        io.BytesIO(b"p,q\n" + data),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(column_types={"p": "string", "q": "string"}),
    )
    assert ours == [[row["p"], row["q"]] for row in arrow.to_pylist()]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"a,b\n8\n", "line 2 .* another number of fields"),
        (b"a,b\n7,8\n7,8,9\n", "line 3 .* another number of fields"),
        (b'a,b\n7,"8\n', "line 3 .* never closes"),
        (b"a,a\n7,8\n", "occurs more than once"),
        (b"\xff\xfe,b\n", "not UTF-8"),
        (b'a,b\n7,8" pipe\n', "line 2 .* quotation mark inside a field"),
        (b'a,b\n7, "8"\n', "line 2 .* quotation mark inside a field"),
        (b'a,b\n7,"8"9\n', "line 2 .* after a closing quotation mark"),
        (b'a,b\n7,"8" \n', "line 2 .* after a closing quotation mark"),
        (b'a,b\n7,"8\\"9"\n', "line 2 .* after a closing quotation mark"),
        (b'a,b\n"7\n7",8\n9,9"9\n', "line 4 .* quotation mark inside"),
        (b"a,b\n7,8\r7,8\n", "line 2 .* carriage return without a line feed"),
        (b"a,b\n7,8\n7,8\r", "line 3 .* carriage return without a line feed"),
        (b"a,b\n7,8\r\r\n", "line 2 .* carriage return without a line feed"),
        (b"a,b\n7,\x008\n", "line 2 .* zero byte"),
        (b'a,b\n7,"\x008"\n', "line 2 .* zero byte"),
        (b'a",b\n7,8\n', "line 1 .* quotation mark inside"),
    ],
)
def test_refused(data, message, monkeypatch):
    for block in (1 << 20, 1, 2, 3):
        monkeypatch.setattr(csvfile, "BLOCK", block)
        with pytest.raises(SchemaError, match=message) as caught:
            read(data)
        words = re.sub("line [1-4] |RFC 4180|UTF-8", "", str(caught.value))
        assert not any(cell in words for cell in "789")


HEADLESS = [b"41.5,98000", b"Smith,41.5", b"41.5,", b"NA,x", b"true,x", b"-inf,x", b'"41.5",x', b" 7 ,x", b"1e3,x"]


@pytest.mark.parametrize("first", HEADLESS)
def test_a_first_line_with_numbers_is_no_header(first):
    data = first + b"\n35.25,52000\n"
    with pytest.raises(SchemaError, match="is it a record") as caught:
        read(data)
    assert not any(word in str(caught.value) for word in ("41", "98", "Smith"))
    reader, records = read(data, header=["p", "q"])
    assert (reader.names, len(records), reader.fields) == (["p", "q"], 2, [b"p", b"q"])
    reader, records = read(data, header=True)
    assert (len(records), reader.fields) == (1, first.split(b","))


def test_names_that_are_texts_are_a_header():
    for names in ("year 2019,2019a", "x,", ",a", "e5,0x10", "1_0,b"):
        assert len(read(f"{names}\n1,2\n".encode())[1]) == 1
    with pytest.raises(SchemaError, match=r"line 1 .* another number of fields"):
        read(b"1,2,3\n", header=["a", "b"])


def test_a_quote_that_never_closes_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(csvfile, "LONGEST", 1000)
    monkeypatch.setattr(csvfile, "BLOCK", 100)
    for filler in ("x,", "x\n"):
        with pytest.raises(SchemaError, match=r"record at line 2 .* never closed"):
            read(b'a,b\n"' + 1000 * filler.encode())


def column(fields):
    data = b"".join(field + b"\n" for field in fields)
    edges = np.cumsum([0] + [len(field) + 1 for field in fields])
    spans = np.stack([edges[:-1], edges[1:] - 1], axis=1).astype(np.int64).reshape(-1, 1, 2)
    return csvfile.Part(data, spans, np.ones(len(fields), np.uint8)).numbers(0, "a")


def test_numbers():
    got = column([b"1", b" 2.5 ", b'"3e-1"', b"NA", b"", b"nan", b"-inf", b"True", b"<NA>", b'" 7 "', b"+4", b'""'])
    assert got[[0, 1, 2, 6, 7, 9, 10]].tolist() == [1.0, 2.5, 0.3, -math.inf, 1.0, 7.0, 4.0]
    assert np.isnan(got[[3, 4, 5, 8, 11]]).all()
    assert column([b"0.1", b"1e300", b"1e999"]).tolist() == [0.1, 1e300, math.inf]
    for wrong in (b"739.25x", b"1_0", b"12:30", b"0x10", b"7 39", b'"7""39"', b"\xff", b"-", b"."):
        with pytest.raises(TypeError, match="column 'a' has dtype text; it must be numeric") as caught:
            column([b"1", wrong])
        assert "39" not in str(caught.value)


def test_a_very_long_number_is_refused_at_once():
    for field in (b"0" * 200_000 + b"5", b'"' + b"7" * 300 + b'"'):
        with pytest.raises(SchemaError, match=r"column 'a' has a field that is too long for a number$"):
            column([b"1", field])
    assert column([b"0" * 200 + b"5"]).tolist() == [5.0]


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_numbers_round_trip(values):
    texts = [repr(v).encode() for v in values]
    assert column(texts).tolist() == values
    spans, ends = np.zeros((len(values), 1, 2), np.int64), np.ones(len(values), np.uint8)
    out = csvtext.rewrite(b"", spans, ends, np.array([-1]), np.array(values)[:, None])
    assert out == b"\n".join([*texts, b""])


def test_rewrite_replaces_and_keeps():
    reader = csvfile.Reader(io.BytesIO(b'a,b,c\n1,"x,""",2\r\n3,,4'))
    first, last = reader.batches(10)  # a record without an end is told only when the file is over
    values, kept = np.array([[0.5, -1.0], [0.1, 1e22]]), np.array([-2, 1, -1])
    got = [csvtext.rewrite(part.data, part.spans, part.ends, kept, values[[k]]) for k, part in enumerate((first, last))]
    assert got == [b'-1.0,"x,""",0.5\r\n', b"1e+22,,0.1"]
    (both,) = csvfile.Reader(io.BytesIO(b"a,b\n1,2\n3,4\n")).batches(10)
    second = both.chosen(np.array([False, True]))
    assert csvtext.rewrite(second.data, second.spans, second.ends, np.array([1, -1]), values[1:]) == b"4,0.1\n"


def test_the_kernel_checks_what_it_is_given():
    part = next(csvfile.Reader(io.BytesIO(b"a,b\n1,2\n")).batches(10))
    values, kept = np.zeros((1, 1)), np.array([0])
    with pytest.raises(ValueError, match="outside the data"):
        csvtext.rewrite(b"", part.spans, part.ends, kept, values)
    with pytest.raises(ValueError, match="outside the data"):
        csvtext.numbers(b"", part.spans, 0, np.empty(1), np.empty(1, np.int64))
    with pytest.raises(ValueError, match="does not exist"):
        csvtext.rewrite(part.data, part.spans, part.ends, np.array([2]), values)
    with pytest.raises(ValueError, match="does not exist"):
        csvtext.rewrite(part.data, part.spans, part.ends, np.array([-2]), values)
    with pytest.raises(ValueError, match="differ in length"):
        csvtext.rewrite(part.data, part.spans, part.ends, kept, np.zeros((2, 1)))
    with pytest.raises(ValueError, match="must be one of spans"):
        csvtext.numbers(part.data, part.spans, 2, np.empty(1), np.empty(1, np.int64))
    with pytest.raises(ValueError, match="one entry per record"):
        csvtext.numbers(part.data, part.spans, 1, np.empty(2), np.empty(1, np.int64))
    with pytest.raises(ValueError, match="hold pairs"):
        csvtext.scan(b"1", True, 1, 5, np.empty((5, 2), np.int64), np.empty(4, np.uint8))
