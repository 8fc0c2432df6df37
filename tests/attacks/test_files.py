"""Whole files, as people have them: no protected cell leaves without its noise, and every refusal comes before a draw.

Each test is a way in which an earlier version published raw cells, released a person twice, or said something false.
Over 400 lines because these ways have nothing in common but the path that they attack.
"""

import io
import json
import os
import stat
import threading
import unicodedata

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import zil
from zil.release import files, integrity, secondread, streaming

M = zil.Mechanism({"a": (0, 1)}, zero_prob=0.0, scale=1.0)


def frame(n=40, first=0):
    """Cells of the protected column that nothing else looks like."""
    rng = np.random.default_rng(n + first)
    ids = np.arange(first, first + n)
    cells = [f"0.{k:012d}" for k in rng.integers(10**11, 10**12, n)]
    return pd.DataFrame({"id": ids, "a": cells, "note": [f"n{k}" for k in ids]})


def leaked(out, table):
    """Protected cells of the table that stand in the file."""
    raw = out.read_bytes() if out.exists() else b""
    return [cell for cell in table["a"] if cell[2:].encode() in raw]


# a quotation mark anywhere


PIPES = 'id,a,note\n1,0.25,5" pipe\n2,0.5,ok\n3,0.75,6" pipe\n4,1,ok\n'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (PIPES, 2),
        (PIPES.replace('5" pipe', '"5\\" pipe"').replace('6" pipe', '"6\\" pipe"'), 2),
        (PIPES.replace('5" pipe', '"5" pipe').replace('6" pipe', '6 pipe"'), 2),
        (PIPES.replace('5" pipe', '5 "pipe"'), 2),
        (PIPES.replace('5" pipe', "5 pipe").replace('6" pipe', '"6 pipe'), 6),
    ],
)
@pytest.mark.parametrize("columns", [None, ["id", "a"], ["a"]])
def test_a_stray_quotation_mark_is_refused_with_its_line(tmp_path, monkeypatch, text, line, columns):
    src, dst = tmp_path / "in.csv", tmp_path / "out.csv"
    src.write_text(text)
    monkeypatch.setattr("zil.release.sampler.TickNoise", None)  # no draw comes before the refusal
    with pytest.raises(zil.SchemaError, match=f"line {line} of the CSV file") as caught:
        M.release_file(src, dst, columns=columns, row_id="id" if columns != ["a"] else None)
    assert "pipe" not in str(caught.value)
    assert not dst.exists()


def test_marks_far_apart(tmp_path):
    """Marks in rows 10 and 900 of 1000: 890 protected cells went out as they were."""
    table = frame(1000)
    table.loc[[9, 899], "note"] = ['5" pipe', '6" pipe']
    src, dst = tmp_path / "in.csv", tmp_path / "out.csv"
    src.write_text("id,a,note\n" + "".join(f"{i},{a},{note}\n" for i, a, note in table.itertuples(index=False)))
    with pytest.raises(zil.SchemaError, match="line 11 of the CSV file"):
        M.release_file(src, dst, row_id="id")
    assert leaked(dst, table) == []
    table.to_csv(src, index=False)  # a well-kept writer doubles the marks
    assert M.release_file(src, dst, row_id="id")["n_rows"] == 1000
    assert leaked(dst, table) == []
    assert pd.read_csv(dst)["note"].tolist() == table["note"].tolist()


# a file without a header


def test_no_header_and_positional_bounds(tmp_path):
    src, dst = tmp_path / "in.csv", tmp_path / "out.csv"
    src.write_text("41.5,98000\n35.25,52000\n29.0,61000\n")
    mechanism = zil.Mechanism([(18, 90), (0, 200000)], zero_prob=0.0, scale=[10.0, 1e4])
    with pytest.raises(zil.SchemaError, match="is it a record") as caught:
        mechanism.release_file(src, dst)
    assert not any(cell in str(caught.value) for cell in ("41.5", "98000"))
    assert not dst.exists()
    meta = mechanism.release_file(src, dst, header=["age", "income"])
    assert meta["n_rows"] == 3
    assert [column["name"] for column in meta["columns"]] == ["age", "income"]
    out = pd.read_csv(dst)
    assert list(out.columns) == ["age", "income"]
    assert len(out) == len(zil.load(dst).data) == 3
    for word in ("41.5", "98000"):
        assert word not in dst.read_text() + files.sidecar(dst).read_text()


@pytest.mark.parametrize("first", ["Smith,41.5,f", "Smith,f,x", "Smith;41;5"])
def test_no_header_and_named_bounds_shows_nothing_of_the_first_line(tmp_path, first):
    src = tmp_path / "in.csv"
    src.write_text(f"{first}\nJones,35.25,m\n")
    mechanism = zil.Mechanism({"age": (18, 90)}, zero_prob=0.0, scale=10.0)
    for more in ({}, {"row_id": "name"}, {"columns": ["age", "sex"]}):
        with pytest.raises(zil.SchemaError) as caught:
            mechanism.release_file(src, tmp_path / "out.csv", **more)
        assert not any(word in str(caught.value) for word in ("Smith", "41", "'f'", "'x'"))


@pytest.mark.parametrize(
    ("header", "error"),
    [
        (False, TypeError),
        ("a,b", TypeError),
        (3, TypeError),
        ([], ValueError),
        (["a", ""], ValueError),
        ([1, 2], ValueError),
    ],
)
def test_header_must_be_what_it_can_be(tmp_path, header, error):
    (tmp_path / "in.csv").write_text("1,2\n")
    with pytest.raises(error, match="header must"):
        M.release_file(tmp_path / "in.csv", tmp_path / "out.csv", header=header)


# one person, one id


SAME = [
    ("101", "101.0"),
    ("7", " 7"),
    ("7", "+7"),
    ("7", "007"),
    ("caf\u00e9", unicodedata.normalize("NFD", "caf\u00e9")),
    ("a1", '"a1 "'),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_an_id_written_in_another_way_is_the_same_person(tmp_path, one, other):
    book = tmp_path / "book"
    (tmp_path / "first.csv").write_text(f"id,a\n{one},0.5\nzz,0.25\n")
    (tmp_path / "second.csv").write_text(f"id,a\n{other},0.5\nyy,0.25\n")
    (tmp_path / "both.csv").write_text(f"id,a\n{one},0.5\n{other},0.25\n")
    M.release_file(tmp_path / "first.csv", tmp_path / "out.csv", ledger=book, row_id="id")
    with pytest.raises(ValueError, match="some of these rows were released before"):
        M.release_file(tmp_path / "second.csv", tmp_path / "out2.csv", ledger=book, row_id="id")
    with pytest.raises(zil.SchemaError, match="row id 'id' occurs more than once"):
        M.release_file(tmp_path / "both.csv", tmp_path / "out3.csv", ledger=tmp_path / "other", row_id="id")
    meta = M.release_file(tmp_path / "second.csv", tmp_path / "out.csv", ledger=book, row_id="id", append=True)
    assert meta["n_rows"] == 3  # of the second file only the new person


def test_ids_of_two_types_in_parquet(tmp_path):
    book = tmp_path / "book"
    for name, ids in (("int", [101, 102]), ("float", [101.0, 103.0]), ("text", ["102", "104"])):
        pd.DataFrame({"id": ids, "a": [0.5, 0.25]}).to_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "later.csv").write_text("id,a\n103.0,0.5\n104,0.25\n105,0.5\n")
    M.release_file(tmp_path / "int.parquet", tmp_path / "out.parquet", ledger=book, row_id="id")
    for name in ("float", "text"):
        with pytest.raises(ValueError, match="some of these rows were released before"):
            M.release_file(tmp_path / f"{name}.parquet", tmp_path / "b.parquet", ledger=book, row_id="id")
    M.release_file(tmp_path / "later.csv", tmp_path / "c.csv", ledger=book, row_id="id")
    with pytest.raises(ValueError, match="some of these rows were released before"):
        M.release_file(tmp_path / "text.parquet", tmp_path / "b.parquet", ledger=book, row_id="id")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_repeat_does_not_allow_one_id_many_times(tmp_path, ending):
    """21 copies of person 1 went out, and the label said 2."""
    book = tmp_path / "book"
    table = pd.DataFrame({"id": range(5), "a": 0.5})

    def write(part, name):
        path = tmp_path / f"{name}.{ending}"
        part.to_csv(path, index=False) if ending == "csv" else part.to_parquet(path)
        return path

    M.release_file(write(table, "one"), tmp_path / f"out.{ending}", ledger=book, row_id="id")
    many = write(pd.concat([table, *[table[1:2]] * 20]), "many")
    for size in (1, 3, 1000):
        with pytest.raises(zil.SchemaError, match="row id 'id' occurs more than once"):
            M.release_file(
                many, tmp_path / f"b.{ending}", ledger=book, row_id="id", repeat=True, release_id="b", batch_rows=size
            )
        assert not (tmp_path / f"b.{ending}").exists()


# what the ledger binds


def test_a_column_that_went_out_raw_gets_no_label_that_promises_protection(tmp_path):
    book, src = tmp_path / "book", tmp_path / "in.csv"
    src.write_text("id,a,b\n1,0.5,0.25\n2,0.25,0.5\n")
    M.release_file(src, tmp_path / "one.csv", ledger=book)
    both = zil.Mechanism({"a": (0, 1), "b": (0, 1)}, zero_prob=0.0, scale=1.0)
    with pytest.raises(ValueError, match=r"column 'b' was published as it is .* no protection"):
        both.release_file(src, tmp_path / "two.csv", ledger=book, repeat=True, release_id="two")
    assert not (tmp_path / "two.csv").exists()


def test_protected_first_stays_protected(tmp_path):
    book, src = tmp_path / "book", tmp_path / "in.csv"
    src.write_text("id,a,b\n1,0.5,0.25\n2,0.25,0.5\n")
    M.release_file(src, tmp_path / "one.csv", ledger=book, columns=["id", "a"])
    other = zil.Mechanism({"b": (0, 1)}, zero_prob=0.0, scale=1.0)
    again = {"ledger": book, "repeat": True, "release_id": "two"}
    with pytest.raises(ValueError, match=r"column 'a' was noised .* leave it out"):
        other.release_file(src, tmp_path / "two.csv", **again)
    with pytest.warns(zil.PrivacyWarning, match="time number 2"):
        other.release_file(src, tmp_path / "two.csv", columns=["id", "b"], **again)


def test_a_ledger_keeps_to_its_id_column(tmp_path):
    src, grown = tmp_path / "in.csv", tmp_path / "grown.csv"
    frame(5).assign(name=list("pqrst")).to_csv(src, index=False)
    frame(8).assign(name=list("pqrstuvw")).to_csv(grown, index=False)
    for first, second in ((None, "id"), ("id", "name"), ("id", None)):
        book = tmp_path / f"book-{first}-{second}"
        out = tmp_path / f"out-{first}-{second}.csv"
        M.release_file(src, out, ledger=book, row_id=first)
        for more in ({}, {"repeat": True, "release_id": "again"}, *([{"append": True}] if second else [])):
            with pytest.raises(ValueError, match="this ledger was begun with"):
                M.release_file(grown, tmp_path / "b.csv", ledger=book, row_id=second, **more)


def test_a_source_that_grew_is_not_new_without_row_ids(tmp_path):
    src = tmp_path / "in.csv"
    frame(5).to_csv(src, index=False)
    M.release_file(src, tmp_path / "one.csv")
    frame(8).to_csv(src, index=False)
    with pytest.raises(ValueError, match="released before with other content"):
        M.release_file(src, tmp_path / "two.csv")
    with pytest.warns(zil.PrivacyWarning, match="time number 2"):
        meta = M.release_file(src, tmp_path / "two.csv", repeat=True, release_id="two")
    assert meta["repeat"]["releases_of_these_rows"] == 2


def test_a_symbolic_link_is_the_source_it_leads_to(tmp_path):
    (tmp_path / "real").mkdir()
    src, link = tmp_path / "real" / "in.csv", tmp_path / "link.csv"
    frame(5).to_csv(src, index=False)
    link.symlink_to(src)
    M.release_file(src, tmp_path / "one.csv")
    with pytest.raises(ValueError, match="were released before"):
        M.release_file(link, tmp_path / "two.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "one.csv", "one.csv.json", "real"]


def test_any_text_is_a_release_id_and_none_is_special(tmp_path):
    """The rows of a release called "." were taken for rows of no release, and released again."""
    book, src = tmp_path / "book", tmp_path / "in.csv"
    frame(5).to_csv(src, index=False)
    for name in (".", "..", "'; DROP TABLE rows", "\u00e9"):
        book = tmp_path / f"book{len(name)}{ord(name[0])}"
        out = tmp_path / f"out{len(name)}{ord(name[0])}.csv"
        M.release_file(src, out, ledger=book, row_id="id", release_id=name)
        for _ in range(2):
            with pytest.raises(ValueError, match="some of these rows were released before"):
                M.release_file(src, tmp_path / "two.csv", ledger=book, row_id="id")
        assert M.release_file(src, out, ledger=book, row_id="id", release_id=name)["release_id"] == name


# a source that changes


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("when", ["pending", "batch written"])
def test_one_key_never_sees_two_data_sets(tmp_path, monkeypatch, ending, when):
    src, dst, book = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}", tmp_path / "book"
    mechanism = zil.Mechanism({"a": (0, 1)}, zero_prob=1.0, scale=1.0)  # what is written is what was read

    def write(value):
        table = pd.DataFrame({"id": np.arange(200_000), "a": value})
        if ending == "csv":
            table.to_csv(tmp_path / "new", index=False)
        else:
            pq.write_table(pa.Table.from_pandas(table), tmp_path / "new", use_dictionary=False, compression="none")
        with open(src, "r+b" if src.exists() else "wb") as handle:  # in place, under the reader's hands
            handle.write((tmp_path / "new").read_bytes())
        (tmp_path / "new").unlink()

    write(0.25)
    kept, seen = src.read_bytes(), []

    def change(name):
        if name == when and src.read_bytes() == kept:
            write(0.75)
        seen.extend(path.read_bytes() for path in tmp_path.glob(".zil-*/file"))

    with monkeypatch.context() as patch:
        patch.setattr(streaming, "step", change)
        with pytest.raises(ValueError, match="the source changed while it was being released"):
            mechanism.release_file(src, dst, ledger=book, row_id="id", batch_rows=20_000)
    assert list(tmp_path.glob(".*")) == []
    assert not dst.exists()
    assert not any(b"0.75" in raw or np.float64(0.75).tobytes() in raw for raw in seen)
    # the key is gone with what it was used on: the changed source is a new release
    meta = mechanism.release_file(src, dst, ledger=book, row_id="id")
    assert meta["n_rows"] == 200_000
    assert set(zil.load(dst).data["a"]) == {0.75}


@pytest.mark.parametrize(
    "where", ["pending", "batch written", "temporary written", "digest noted", "metadata in place"]
)
def test_a_crash_and_then_another_source(tmp_path, monkeypatch, where):
    """The release that was begun is forgotten with its key; nothing of it was published."""
    src, dst, book = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "book"
    frame(50).to_csv(src, index=False)

    class Crash(BaseException):
        pass

    def crash(name):
        if name == where:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(streaming, "step", crash)
        with pytest.raises(Crash):
            M.release_file(src, dst, ledger=book, row_id="id")
    assert not dst.exists()
    assert len(list(tmp_path.glob(".zil-*/file"))) == (where != "pending")
    frame(60).to_csv(src, index=False)
    frame(70).to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(ValueError, match="begun and not finished"):
        M.release_file(tmp_path / "other.csv", tmp_path / "b.csv", ledger=book, row_id="id")
    assert M.release_file(src, dst, ledger=book, row_id="id")["n_rows"] == 60
    assert list(tmp_path.glob(".*")) == []


# files of others


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_nothing_in_the_public_folder_can_be_read_before_it_is_complete(tmp_path, monkeypatch, ending):
    src, out = tmp_path / f"in.{ending}", tmp_path / "public"
    frame().astype({"a": float}).to_csv(src, index=False) if ending == "csv" else frame().astype(
        {"a": float}
    ).to_parquet(src)
    out.mkdir()
    os.chmod(out, 0o755)
    seen = []

    def look(name):
        for folder, _, names in os.walk(out):
            open_to_all = stat.S_IMODE(os.stat(folder).st_mode) & 0o077
            for one in names:
                mode = stat.S_IMODE(os.stat(os.path.join(folder, one)).st_mode)
                seen.append((name, one, bool(open_to_all), bool(mode & 0o077)))

    monkeypatch.setattr(streaming, "step", look)
    old = os.umask(0o022)
    try:
        M.release_file(src, out / f"out.{ending}")
    finally:
        os.umask(old)
    early = [entry for entry in seen if entry[0] not in ("metadata in place", "renamed", "directory synced", "done")]
    assert {one for _, one, _, _ in early} >= {"file"}
    assert not any(folder or mode for _, _, folder, mode in early)
    assert stat.S_IMODE((out / f"out.{ending}").stat().st_mode) == 0o644


def test_a_planted_link_is_neither_followed_nor_written(tmp_path):
    src, dst, victim = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "victim.csv"
    frame().to_csv(src, index=False)
    victim.write_text("precious")
    for name in (".out.csv.tmp", ".out.csv.json.tmp", ".out.csv.lock"):
        (tmp_path / name).symlink_to(victim)
    dst.symlink_to(victim)
    M.release_file(src, dst)
    assert victim.read_text() == "precious"
    assert not dst.is_symlink()
    (tmp_path / "book").symlink_to(victim)
    with pytest.raises(PermissionError, match="must not be a symbolic link"):
        M.release_file(src, tmp_path / "b.csv", ledger=tmp_path / "book")
    other = tmp_path / "other.csv"
    other.write_text("id,a\n1,0.5\n")
    (tmp_path / "c.csv.json").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="is no metadata of zil's"):
        M.release_file(other, tmp_path / "c.csv")
    assert victim.read_text() == "precious"


def test_a_ledger_that_others_can_read_is_closed_to_them(tmp_path):
    src, book = tmp_path / "in.csv", tmp_path / "book"
    frame().to_csv(src, index=False)
    M.release_file(src, tmp_path / "out.csv", ledger=book)
    os.chmod(book, 0o644)
    M.release_file(src, tmp_path / "out.csv", ledger=book)
    assert stat.S_IMODE(book.stat().st_mode) == 0o600


def test_an_unrelated_json_beside_the_destination_stays(tmp_path):
    src, dst, beside = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "out.csv.json"
    frame().to_csv(src, index=False)
    for content in ('{"mine": 1}', "no json at all", ""):
        beside.write_text(content)
        with pytest.raises(ValueError, match=r"out.csv.json exists and is no metadata of zil's"):
            M.release_file(src, dst)
        assert beside.read_text() == content
        assert not dst.exists()
    M.release(frame(9).astype({"a": float})).save(tmp_path / "z.csv")
    os.replace(tmp_path / "z.csv.json", beside)  # that of another release, whose table is elsewhere
    with pytest.raises(ValueError, match="describes a release that is not at dst"):
        M.release_file(src, dst)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_two_ledgers_and_one_destination(tmp_path, monkeypatch, ending):
    """Both see an empty place; one of them publishes, the other is refused and keeps nothing."""
    dst = tmp_path / f"out.{ending}"
    sources = []
    for k in range(2):
        table = frame(30, 100 * k).astype({"a": float})
        path = tmp_path / f"in{k}.{ending}"
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
        sources.append(path)
    meet = threading.Barrier(2)
    monkeypatch.setattr(streaming, "step", lambda name: meet.wait(60) if name == "digest noted" else None)
    ends = {}

    def run(k):
        try:
            ends[k] = M.release_file(sources[k], dst, ledger=tmp_path / f"book{k}", row_id="id", n_threads=1)
        except ValueError as error:
            ends[k] = error

    threads = [threading.Thread(target=run, args=(k,)) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (lost,) = [k for k in range(2) if isinstance(ends[k], ValueError)]
    assert "dst holds another release" in str(ends[lost])
    assert zil.load(dst).metadata == ends[1 - lost]
    monkeypatch.undo()
    meta = M.release_file(sources[lost], tmp_path / f"b.{ending}", ledger=tmp_path / f"book{lost}", row_id="id")
    assert meta["n_rows"] == 30
    assert list(tmp_path.glob(".*")) == []


# the second reader


def tampered(monkeypatch, change):
    """A writer with a fault: what it writes is changed on its way."""
    real = integrity.Sink.write

    def write(self, data):
        block = bytes(memoryview(data).cast("B"))
        return real(self, change(block)) and len(block)

    monkeypatch.setattr(integrity.Sink, "write", write)


FAULTS = {
    "a raw cell": lambda raw, table: raw.replace(raw.split(b"\n")[1].split(b",")[1], table["a"][0].encode()),
    "a lattice value": lambda raw, table: raw.replace(raw.split(b"\n")[1].split(b",")[1], b"0.5"),
    "a row less": lambda raw, table: raw.replace(raw.split(b"\n")[1] + b"\n", b""),
    "a row more": lambda raw, table: raw + raw.split(b"\n")[1] + b"\n",
    "two rows exchanged": lambda raw, table: b"\n".join(
        [*raw.split(b"\n")[:1], raw.split(b"\n")[2], raw.split(b"\n")[1], *raw.split(b"\n")[3:]]
    ),
    "another note": lambda raw, table: raw.replace(b"n7\n", b"n8\n"),
    "a note that swallows a row": lambda raw, table: raw.replace(b"n7\n", b'"n7\n').replace(b"n8\n", b'n8"\n'),
    "another header": lambda raw, table: raw.replace(b"note\n", b"mote\n"),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("library", ["pyarrow", "csv"])
def test_the_second_reader_stops_a_writer_with_a_fault(tmp_path, monkeypatch, fault, library):
    table = frame()
    src, dst, book = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "book"
    table.to_csv(src, index=False)
    if library == "csv":
        monkeypatch.setattr(secondread, "_have_arrow", lambda: False)
    with monkeypatch.context() as patch:
        whole = []

        def change(block):
            whole.append(block)
            if len(whole) == 1:
                return b""  # the header comes first, alone
            return FAULTS[fault](b"".join(whole), table)

        tampered(patch, change)
        with pytest.raises(zil.SchemaError, match="a second reader does not find"):
            M.release_file(src, dst, ledger=book, row_id="id")
    assert not dst.exists()
    assert list(tmp_path.glob(".*")) == []
    M.release_file(src, dst, ledger=book, row_id="id")  # the rows are free again


def test_the_second_reader_finds_a_parquet_writer_with_a_fault(tmp_path, monkeypatch):
    table = frame().astype({"a": float})
    src, dst = tmp_path / "in.parquet", tmp_path / "out.parquet"
    table.to_parquet(src)
    from zil.release import forms

    real = forms.ParquetSink.write
    changes = [
        lambda rest, values: (rest, values + 0.1),
        lambda rest, values: (rest, np.roll(values, 1)),
        lambda rest, values: (rest.slice(1), values[1:]),
        lambda rest, values: (rest.set_column(2, "note", rest.column("note").take(list(range(39, -1, -1)))), values),
    ]
    for change in changes:
        with monkeypatch.context() as patch:
            patch.setattr(forms.ParquetSink, "write", lambda self, rest, v, change=change: real(self, *change(rest, v)))
            with pytest.raises(zil.SchemaError, match="a second reader does not find"):
                M.release_file(src, dst)
        assert not dst.exists()
    M.release_file(src, dst)


def test_a_reader_that_takes_one_record_for_two_is_found_out(tmp_path, monkeypatch):
    """The fault of the first version, put back: records are split by the parity of quotation marks."""
    from zil.release import csvfile

    table = frame()
    src, dst = tmp_path / "in.csv", tmp_path / "out.csv"
    src.write_text("id,a,note\n" + "".join(f"{i},{a},{note}\n" for i, a, note in table.itertuples(index=False)))
    real = csvfile.Reader.batches

    def swallow(self, size):
        for part in real(self, size):
            spans = part.spans.copy()
            spans[3, 2, 1] = spans[7, 2, 1]  # the note of row 3 runs to the end of row 7
            keep = np.ones(len(part), dtype=bool)
            keep[4:8] = False
            yield csvfile.Part(part.data, np.ascontiguousarray(spans[keep]), part.ends[keep])

    monkeypatch.setattr(csvfile.Reader, "batches", swallow)
    with pytest.raises(zil.SchemaError, match="a second reader does not find"):
        M.release_file(src, dst)
    assert leaked(dst, table) == []


# CSV to Parquet and back


def test_csv_to_parquet(tmp_path):
    src, dst = tmp_path / "in.csv", tmp_path / "out.parquet"
    rows = [f"{k:03d},0.5,{k},{k / 4},t{k},2024-01-{k % 28 + 1:02d},{'' if k % 3 else k},x" for k in range(100)]
    src.write_text(
        "zip,a,whole,share,text,day,gaps,mixed\n" + "\n".join(rows) + '\n"100",1,7,1e3,"a ""b""",2024-02-01,,5\n'
    )
    seen = []
    for size in (1, 7, 1000):
        out = tmp_path / f"out{size}.parquet"
        M.release_file(src, out, ledger=tmp_path / f"b{size}", batch_rows=size, types={"day": "date"})
        seen.append(pq.read_table(out).drop_columns("a"))
    assert seen[0].equals(seen[1])
    assert seen[0].equals(seen[2])
    kinds = {field.name: str(field.type) for field in seen[0].schema}
    assert kinds == {
        "zip": "string", "whole": "int64", "share": "double", "text": "string", "day": "date32[day]", "gaps": "int64",
        "mixed": "string",
    }  # fmt: skip
    assert seen[0]["zip"].to_pylist()[::50] == ["000", "050", "100"]
    assert seen[0]["gaps"].to_pylist()[:4] == [0, None, None, 3]
    assert seen[0]["text"].to_pylist()[-1] == 'a "b"'
    assert zil.load(out).metadata["n_rows"] == 101
    with pytest.raises(zil.SchemaError, match="column 'text' has a field that is not of type int64"):
        M.release_file(src, dst, types={"text": "integer"})
    for types, message in (
        ({"z": "text"}, "'z', which"),
        ({"a": "text"}, "which is noised"),
        ({"day": "dai"}, "one of text"),
    ):
        with pytest.raises(ValueError, match=message):
            M.release_file(src, dst, types=types)
    with pytest.raises(ValueError, match="types are for a Parquet dst"):
        M.release_file(src, tmp_path / "x.csv", types={"day": "date"})


def test_parquet_to_csv(tmp_path):
    src = tmp_path / "in.parquet"
    table = pd.DataFrame(
        {
            "id": np.arange(60),
            "a": np.linspace(0, 1, 60),
            "text": ["x,y", 'a "b"', "", None, "l1\nl2", "007"] * 10,
            "kind": pd.Categorical(["u", "v", "w"] * 20),
            "when": pd.date_range("2024-01-01", periods=60, freq="h"),
            "share": np.where(np.arange(60) % 7 == 0, np.nan, np.arange(60) / 3),
        }
    )
    table.to_parquet(src)
    outs = []
    for size in (1, 7, 1000):
        out = tmp_path / f"out{size}.csv"
        M.release_file(src, out, ledger=tmp_path / f"b{size}", batch_rows=size, row_id="id")
        outs.append(zil.load(out).data)
    for out in outs:
        back = pd.DataFrame(out) if isinstance(out, pd.DataFrame) else out.to_pandas()
        assert back["text"].fillna("-").tolist() == table["text"].fillna("-").tolist()
        assert back["kind"].tolist() == table["kind"].tolist()
        assert (back["when"] == table["when"]).all()
        np.testing.assert_array_equal(back["share"], table["share"])
    grown = tmp_path / "grown.parquet"
    pd.concat([table, table.assign(id=table["id"] + 100)], ignore_index=True).to_parquet(grown)
    meta = M.release_file(grown, tmp_path / "out7.csv", ledger=tmp_path / "b7", row_id="id", append=True)
    assert meta["n_rows"] == len(zil.load(tmp_path / "out7.csv").data) == 120
    nested = pa.table({"a": [0.5], "list": [[1, 2]]})
    pq.write_table(nested, tmp_path / "nested.parquet")
    with pytest.raises(zil.SchemaError, match="column 'list' has type list"):
        M.release_file(tmp_path / "nested.parquet", tmp_path / "nested.csv")
    assert not (tmp_path / "nested.csv").exists()


def test_one_very_long_field(tmp_path):
    """It cost 12 GiB; the bound is on what is read at a time, and the refusal tells no length."""
    src = tmp_path / "in.csv"
    src.write_bytes(b"id,a\n" + b"1,0.5\n" * 65_536 + b"2," + b"0" * 200_000 + b"5\n")
    with pytest.raises(zil.SchemaError, match=r"column 'a' has a field that is too long for a number$"):
        M.release_file(src, tmp_path / "out.csv")


def test_whole_numbers_beyond_doubles_in_parquet(tmp_path):
    """The library's own words named the cell."""
    src = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": pa.array([9007199254740993, 1], pa.int64())}), src)
    certain = zil.Mechanism({"a": (0, 2)}, zero_prob=1.0, scale=1.0)
    certain.release_file(src, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["a"].to_pylist() == [2.0, 1.0]


def test_metadata_names_no_column_that_stayed_behind(tmp_path):
    src = tmp_path / "in.csv"
    src.write_text("id,a,diagnosis\n1,0.5,x\n")
    M.release_file(src, tmp_path / "out.csv", columns=["a"])
    assert "diagnosis" not in json.dumps(zil.load(tmp_path / "out.csv").metadata)
    out = io.BytesIO((tmp_path / "out.csv").read_bytes())
    assert pyarrow.csv.read_csv(out).column_names == ["a"]


A = pa.array([0.25, 0.75])
HARD = {
    "time64[ns]": (pa.array([1, 2], pa.time64("ns")), "parquet csv"),
    "float16": (pa.array(np.array([1, 2], "float16")), "csv"),
    "decimal256(50, 2)": (pa.array([1, None], pa.decimal256(50, 2)), "csv"),
    "fixed_size_binary[2]": (pa.array([b"ab", b"cd"], pa.binary(2)), "csv"),
    "binary": (pa.array([b"ab", b"cd"]), "csv"),
    "duration[s]": (pa.array([1, 2], pa.duration("s")), "csv"),
    "list<item: int64>": (pa.array([[1], [2]]), "csv"),
}


@pytest.mark.parametrize("kind", HARD)
def test_a_type_that_does_not_come_back_is_refused_before_any_draw(tmp_path, monkeypatch, kind):
    column, endings = HARD[kind]
    src = tmp_path / "in.parquet"
    pq.write_table(pa.table({"a": A, "b": column}), src)
    monkeypatch.setattr("zil.release.sampler.TickNoise", None)
    for ending in endings.split():
        with pytest.raises(zil.SchemaError, match=r"column 'b' has type"):
            M.release_file(src, tmp_path / f"out.{ending}")
        assert not (tmp_path / f"out.{ending}").exists()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_whole_numbers_with_gaps_stay_whole(tmp_path, ending):
    src, dst = tmp_path / "in.parquet", tmp_path / f"out.{ending}"
    pq.write_table(pa.table({"a": A, "b": pa.array([2**53 + 1, None]), "c": pa.array([None, 7], pa.uint8())}), src)
    M.release_file(src, dst)
    back = zil.load(dst).data
    assert [str(kind) for kind in back.dtypes] == ["float64", "Int64", "UInt8"]
    assert back["b"].tolist() == [2**53 + 1, pd.NA]
    assert zil.fit("squared", zil.load(dst), y="a", x=[]).nobs == 2


def test_text_views_and_huge_exponents_come_back(tmp_path):
    if hasattr(pa, "string_view"):
        src, dst = tmp_path / "in.parquet", tmp_path / "out.csv"
        pq.write_table(pa.table({"a": A, "b": pa.array(["007", 'x "y"'], pa.string_view())}), src)
        M.release_file(src, dst)
        assert list(zil.load(dst).data["b"]) == ["007", 'x "y"']
    (tmp_path / "in.csv").write_text("a,b\n.1,1e999\n.2,3\n")
    M.release_file(tmp_path / "in.csv", tmp_path / "out.parquet")
    assert list(zil.load(tmp_path / "out.parquet").data["b"]) == ["1e999", "3"]
