"""Files in bounded memory: pass-through, refusals, the ledger, append, repeat.

Over 400 lines because it mirrors one file, zil/release/streaming.py, for two formats with many ways to be broken.
"""

import json
import os
import sqlite3
import stat
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zil
from zil.release import files as file_tools
from zil.release import forms, report, streaming
from zil.release.ledger import Ledger

M = zil.Mechanism({"a": (0, 1), "b": (0, 10)}, zero_prob=0.25, scale=[1.0, 5.0])
SECRET = 0.73912345
ROWS = 300


def frame(n=ROWS, first=0):
    rng = np.random.default_rng(first)
    return pd.DataFrame(
        {
            "id": [f"p{k}" for k in range(first, first + n)],
            "a": rng.random(n).round(2),
            "note": ["0010", 'x,"y"', "", "line\nbreak", None] * (n // 5),
            "b": rng.integers(0, 11, n),
            "kind": pd.Categorical(rng.choice(["u", "v"], n)),
        }
    )


def write(table, path):
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    return path


@pytest.fixture(params=["csv", "parquet"])
def files(request, tmp_path):
    return write(frame(), tmp_path / f"in.{request.param}"), tmp_path / f"out.{request.param}"


def content(path):
    side = path.with_name(path.name + ".json")
    return path.read_bytes() + (side.read_bytes() if side.exists() else b"")


def table_of(path):
    return (
        pd.read_csv(path, dtype={"note": str}, keep_default_na=False)
        if path.suffix == ".csv"
        else pd.read_parquet(path)
    )


def test_what_comes_out(files):
    src, dst = files
    before = src.read_bytes()
    meta = M.release_file(src, dst)
    assert src.read_bytes() == before
    out, old = table_of(dst), table_of(src)
    assert list(out.columns) == list(old.columns)
    for name in ("id", "note", "kind"):
        pd.testing.assert_series_equal(out[name], old[name])
    unchanged = (out["a"] - old["a"]).abs() < 1e-5
    assert 0.05 < unchanged.mean() < 0.5  # 0.25 expected: 300 rows, false alarm below 1e-9
    # noise of one column below 1e-5 (some 1e-5 per row) is no mistake; three such rows are: false alarm below 1e-7.
    # Noise by the entry would differ in a third of the rows.
    assert (((out["b"] - old["b"]).abs() < 1e-5) != unchanged).sum() <= 2
    back = zil.load(dst)
    assert back.metadata == meta
    assert back.private
    assert back.noise.zero_prob == 0.25
    assert back.data["a"].to_numpy().tolist() == out["a"].tolist()
    assert meta["n_rows"] == ROWS
    assert meta["expected_unchanged_rows"] == 75
    assert sorted(p.name for p in dst.parent.glob(".*")) == []


def test_csv_passes_through_byte_for_byte(tmp_path):
    src, dst = tmp_path / "in.csv", tmp_path / "out.csv"
    src.write_bytes(b'\xef\xbb\xbf"id",a,note,b\r\n 1 ,0.50,"x,""\n",1\r\n"2",.5,00.10,2.0\n3,1e0,caf\xe9,"3"')
    M.release_file(src, dst)
    got = dst.read_bytes()
    assert got.startswith(b'\xef\xbb\xbf"id",a,note,b\r\n 1 ,')
    assert b',"x,""\n",' in got
    assert b'\n"2",' in got
    assert b",00.10," in got
    assert b",caf\xe9," in got
    assert not got.endswith(b"\n")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_batch_size_changes_nothing(ending, tmp_path, monkeypatch):
    src = write(frame(), tmp_path / f"in.{ending}")
    monkeypatch.setattr(forms, "GROUP_ROWS", 128)
    monkeypatch.setattr("os.urandom", lambda k: bytes(range(k)))
    monkeypatch.setattr("secrets.token_bytes", lambda k: bytes(range(k)))
    results = set()
    for size in (1, 7, 128, 1000):
        dst = tmp_path / f"out{size}.{ending}"
        M.release_file(src, dst, ledger=tmp_path / str(size), batch_rows=size, n_threads=2)
        results.add(content(dst))
    assert len(results) == 1


def test_same_noise_as_in_memory(files, monkeypatch):
    src, dst = files
    monkeypatch.setattr("os.urandom", lambda k: bytes(range(k)))
    M.release_file(src, dst)
    assert M.release(frame()).data["a"].tolist() == table_of(dst)["a"].tolist()


def test_column_subset(files):
    src, dst = files
    M.release_file(src, dst, columns=["b", "id", "a"])
    out = table_of(dst)
    assert list(out.columns) == ["id", "a", "b"]
    assert out["id"].tolist() == frame()["id"].tolist()
    for columns, message in (
        (["a"], "every noised column, 'b'"),
        (["a", "b", "z"], "'z' not in"),
        (["a", "b", "b"], "'b' occurs"),
    ):
        with pytest.raises(zil.SchemaError, match=message):
            M.release_file(src, dst, columns=columns)


def test_progress(files, capsys):
    src, dst = files
    told = []
    M.release_file(src, dst, batch_rows=100, progress=lambda done, total: told.append((done, total)))
    assert told == [(100, 300), (200, 300), (300, 300)]
    M.release_file(src, dst.with_name("x" + dst.name), ledger=src.with_name("other"), progress=True)
    assert "300 of 300 rows" in capsys.readouterr().err


# refusals


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"a": [SECRET, None, 1.0]}, zil.SchemaError, "column 'a' has missing entries"),
        ({"a": [SECRET, np.inf, 1.0]}, zil.SchemaError, "column 'a' has infinite entries"),
        ({"a": ["0.73912345", "x", "y"]}, TypeError, "column 'a' has dtype"),
        ({"b": None}, zil.SchemaError, "column 'b' not in the"),
    ],
)
def test_refused_before_any_draw(ending, change, error, message, tmp_path, monkeypatch):
    table = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [1, 2, 3]}).assign(**change)
    if change.get("b", 0) is None:
        table = table.drop(columns="b")
    src, dst = write(table, tmp_path / f"in.{ending}"), tmp_path / f"out.{ending}"
    monkeypatch.setattr("zil.release.sampler.draw_ticks", None)
    with pytest.raises(error, match=message) as caught:
        M.release_file(src, dst, batch_rows=1)
    assert "739" not in str(caught.value)
    assert not dst.exists()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_missing_policies(ending, tmp_path):
    src = write(pd.DataFrame({"a": [0.5, None, np.inf], "b": [1, 2, 3]}), tmp_path / f"in.{ending}")
    certain = zil.Mechanism({"a": (0, 1)}, zero_prob=1.0, scale=1.0)
    certain.release_file(src, tmp_path / f"out.{ending}", missing=0.25)
    assert table_of(tmp_path / f"out.{ending}")["a"].tolist() == [0.5, 0.25, 1.0]


def test_paths(files, tmp_path):
    src, dst = files
    os.link(src, tmp_path / f"hard{src.suffix}")
    for target in (src, tmp_path / "." / src.name, tmp_path / f"hard{src.suffix}"):
        with pytest.raises(ValueError, match="are the same file"):
            M.release_file(src, target)
    with pytest.raises(ValueError, match="are the same file"):
        M.release_file(src, dst, ledger=src)
    with pytest.raises(ValueError, match="are the same file"):
        M.release_file(src, dst, ledger=dst)
    with pytest.raises(ValueError, match="must end in"):
        M.release_file(src, dst.with_suffix(".txt"))
    with pytest.raises(FileNotFoundError):
        M.release_file(src.with_name(f"none{src.suffix}"), dst)
    with pytest.raises(ValueError, match="batch_rows must be at least 1"):
        M.release_file(src, dst, batch_rows=0)
    with pytest.raises(ValueError, match="release_id must be"):
        M.release_file(src, dst, release_id="")
    with pytest.raises(ValueError, match="release_id must be"):
        M.release_file(src, dst, release_id="one\ntwo")
    with pytest.raises(ValueError, match="are the same file"):
        M.release_file(src, tmp_path / "x.csv", ledger=tmp_path / "x.csv.json")
    assert not (tmp_path / "x.csv.json").exists()
    assert src.exists()


def test_other_files(tmp_path):
    for name, data in (("e.csv", b""), ("h.csv", b"a,b\n"), ("x.parquet", b"nothing")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(zil.SchemaError):
            M.release_file(tmp_path / name, tmp_path / f"out.{name}")
    (tmp_path / "book").write_bytes(b"this is no database at all, but a text")
    src = write(frame(), tmp_path / "in.csv")
    with pytest.raises(ValueError, match="not a ledger"):
        M.release_file(src, tmp_path / "out.csv", ledger=tmp_path / "book")
    with sqlite3.connect(tmp_path / "old") as db:
        db.execute("CREATE TABLE ledger (version INTEGER NOT NULL, secret BLOB NOT NULL)")
        db.execute("INSERT INTO ledger VALUES (99, x'00')")
    with pytest.raises(ValueError, match="version 99"):
        M.release_file(src, tmp_path / "out.csv", ledger=tmp_path / "old")


def test_source_that_changes_while_it_is_read(files, monkeypatch):
    src, dst = files
    real = streaming.step

    def change(name):
        if name == "pending":
            write(frame(first=5), src)
        real(name)

    monkeypatch.setattr(streaming, "step", change)
    with pytest.raises(ValueError, match="the source changed"):
        M.release_file(src, dst)
    assert not dst.exists()
    assert list(dst.parent.glob(".*")) == []


# the ledger


def test_done_means_done(files, tmp_path):
    src, dst = files
    book = tmp_path / "book"
    first = M.release_file(src, dst, ledger=book)
    kept = content(dst)
    assert M.release_file(src, dst, ledger=book) == first
    assert content(dst) == kept
    with pytest.raises(ValueError, match="were released before"):
        M.release_file(src, dst.with_name(f"b{dst.suffix}"), ledger=book, release_id="again")
    with pytest.raises(ValueError, match="were released before"):
        zil.Mechanism({"a": (0, 1)}, zero_prob=0, scale=1).release_file(src, dst, ledger=book)
    other = dst.with_name(f"z{dst.suffix}")
    M.release_file(write(frame(first=3), src.with_name(f"z-in{src.suffix}")), other, ledger=book)
    with pytest.raises(ValueError, match="dst is not the file that was published"):
        M.release_file(src, other, ledger=book)
    dst.unlink()
    with pytest.raises(ValueError, match="key was erased"):
        M.release_file(src, dst, ledger=book)


def test_one_source_has_one_ledger_wherever_it_is_published(files):
    src, dst = files
    M.release_file(src, dst)
    assert stat.S_IMODE(src.with_name(f"{src.name}.ledger").stat().st_mode) == 0o600
    with pytest.raises(ValueError, match="were released before"):
        M.release_file(src, dst.with_name(f"b{dst.suffix}"))
    with pytest.raises(ValueError, match="were released before"):
        zil.Mechanism({"a": (0, 1)}, zero_prob=0, scale=1).release_file(src, dst.with_name(f"c{dst.suffix}"))


def test_a_release_is_not_written_over(files, tmp_path):
    """Neither one of this ledger nor one of another, nor one made in memory: none could be made again."""
    src, dst = files
    M.release_file(src, dst)
    other = write(frame(first=3), tmp_path / f"other{src.suffix}")
    in_memory = tmp_path / f"memory{src.suffix}"
    M.release(frame()).save(in_memory)
    for target in (dst, in_memory):
        kept = content(target)
        with pytest.raises(ValueError, match="dst holds another release"):
            M.release_file(other, target)
        assert content(target) == kept
    src.with_name(f"{src.name}.ledger").unlink()  # nor does a lost ledger lead to a second copy
    with pytest.raises(ValueError, match="dst holds another release"):
        M.release_file(src, dst)
    plain = write(frame(first=9), tmp_path / f"plain{src.suffix}")
    M.simulate(frame()).save(in_memory)
    for target in (plain, in_memory):
        M.release_file(other, target, ledger=tmp_path / target.stem)
        assert zil.load(target).private


def test_a_folder_that_takes_no_ledger(files, monkeypatch):
    src, dst = files
    real = os.open

    def locked(path, *rest, **more):
        if str(path).endswith(".ledger"):
            raise PermissionError(13, "denied")
        return real(path, *rest, **more)

    monkeypatch.setattr("os.open", locked)
    with pytest.raises(PermissionError, match="say with ledger= where"):
        M.release_file(src, dst)
    with pytest.raises(PermissionError, match="denied"):
        M.release_file(src, dst, ledger=src.with_name("mine.ledger"))
    M.release_file(src, dst, ledger=src.with_name("mine"))


def test_one_id_one_source_one_mechanism(files, tmp_path):
    src, dst = files
    book = tmp_path / "book"
    M.release_file(src, dst, ledger=book, release_id="first")
    other = write(frame(first=7), tmp_path / f"other{src.suffix}")
    with pytest.raises(ValueError, match="used for other data"):
        M.release_file(other, dst.with_name(f"c{dst.suffix}"), ledger=book, release_id="first")
    with pytest.raises(ValueError, match="another mechanism"):
        M.release_file(src, dst, ledger=book, release_id="first", columns=["a", "b"])
    with pytest.raises(ValueError, match="dst holds another release"):
        M.release_file(other, dst, ledger=book, release_id="second")
    M.release_file(other, dst.with_name(f"c{dst.suffix}"), ledger=book, release_id="second")


def test_repeat_on_purpose_states_the_composed_guarantee(files, tmp_path):
    src, dst = files
    book = tmp_path / "book"
    M.release_file(src, dst, ledger=book)
    weak = zil.Mechanism({"a": (0, 1), "b": (0, 10)}, zero_prob=0.25, scale=[2.0, 10.0])
    with pytest.warns(zil.PrivacyWarning, match="time number 2") as caught:
        meta = weak.release_file(src, dst.with_name(f"b{dst.suffix}"), ledger=book, release_id="again", repeat=True)
    assert caught[0].filename == __file__
    assert meta["repeat"]["releases_of_these_rows"] == 2
    for unit in ("attribute", "record"):
        for epsilon, delta in meta["repeat"]["composed"][unit]["epsilon_delta"]:
            assert delta >= max(M.delta(epsilon, unit), weak.delta(epsilon, unit)) - 1e-12
            assert delta >= 1 - 0.75**2 - 1e-12
            # epsilons and deltas that add up are a bound from above (1e-3: the grid of the composition)
            assert delta <= M.delta(epsilon / 2, unit) + weak.delta(epsilon / 2, unit) + 1e-3
    first, second = zil.load(dst), zil.load(dst.with_name(f"b{dst.suffix}"))
    assert "repeat" not in first.metadata
    for words in (first.report(), first._repr_html_()):
        assert "copies" not in words
    for words in (second.report(), second._repr_html_()):  # the label says it, and says it first
        assert words.index("were published up to 2 times") < words.index("About 75 rows")
        for part in meta["repeat"]["composed"].values():
            for figure in [delta for _, delta in part["epsilon_delta"]]:
                assert report._at_least(figure) in words.split("this copy</h2>")[0]
            for figure in [*(power for _, power in part["attack"]), part["advantage"]]:
                assert report._percent_at_least(figure) in words.split("this copy</h2>")[0]
    assert table_of(dst)["a"].tolist() != table_of(dst.with_name(f"b{dst.suffix}"))["a"].tolist()


def test_ledger_holds_no_value_and_no_key_afterwards(files, tmp_path, monkeypatch):
    src, dst = files
    book = tmp_path / "book"
    key = bytes(range(100, 132))
    monkeypatch.setattr("zil.release.keystream.os.urandom", lambda k: key[:k])
    seen = []
    monkeypatch.setattr(streaming, "step", lambda name: seen.append((name, key in book.read_bytes())))
    M.release_file(src, dst, ledger=book, row_id="id", release_id="mine")
    assert stat.S_IMODE(book.stat().st_mode) == 0o600
    assert dict(seen)["pending"] is True  # the search finds a key that is there
    assert dict(seen)["done"] is False
    stored = book.read_bytes()
    for word in (b"p299", b"line\nbreak", str(src).encode(), str(tmp_path).encode()):
        assert word not in stored
    text = json.dumps(zil.load(dst).metadata)
    assert str(tmp_path) not in text
    assert key.hex() not in text


KEEP = """
import os, sys
import zil
from zil.release import streaming
from zil.release.ledger import Ledger
os.urandom = lambda count: bytes(range(100, 132))[:count]
real, wipes = Ledger._wipe_journal, 0
def wipe(self):
    global wipes
    wipes += 1
    if wipes == 2:  # the first is that of the opening
        os._exit(9)
    real(self)
if sys.argv[1] == "before":
    Ledger._wipe_journal = wipe
else:
    streaming.step = lambda name: os._exit(9) if name == "done" else None
zil.Mechanism({"a": (0, 1)}, zero_prob=0.2, scale=1.0).release_file(*sys.argv[2:4], ledger=sys.argv[4])
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_erased_key_is_not_in_the_journal(files, tmp_path, when):
    """A process killed before or right after the journal is wiped; in the first case the next opening does it."""
    src, dst = files
    book, journal, key = tmp_path / "book", tmp_path / "book-journal", bytes(range(100, 132))
    command = [sys.executable, "-P", "-c", KEEP, when, str(src), str(dst), str(book)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    assert key not in book.read_bytes()
    assert (key in journal.read_bytes()) == (when == "before")  # SQLite leaves the old page there
    with Ledger(book) as held:
        assert [entry.state for entry in held.all()] == ["done"]
    assert not any(journal.read_bytes())


def test_ledger_in_use(files, tmp_path):
    src, dst = files
    code = (
        "import sqlite3, sys; real = sqlite3.connect\n"
        "sqlite3.connect = lambda *a, **k: real(*a, **{**k, 'timeout': 0.1})\n"
        "import zil\n"
        "m = zil.Mechanism({'a': (0, 1)}, zero_prob=0, scale=1)\n"
        "m.release_file(sys.argv[1], sys.argv[2], ledger=sys.argv[3])"
    )
    command = [sys.executable, "-P", "-c", code, str(src), str(dst), str(tmp_path / "book")]
    with Ledger(tmp_path / "book"):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "in use by another process" in done.stderr
    assert not dst.exists()


# row ids


def test_row_is_released_once(files, tmp_path):
    src, dst = files
    book = tmp_path / "book"
    M.release_file(src, dst, ledger=book, row_id="id")
    grown = write(frame(ROWS + 20), tmp_path / f"grown{src.suffix}")
    with pytest.raises(ValueError, match="released before; append=True"):
        M.release_file(grown, dst.with_name(f"b{dst.suffix}"), ledger=book, row_id="id")
    double = write(pd.concat([frame(5, 1000), frame(5, 1000)]), tmp_path / f"double{src.suffix}")
    for size in (1, 100):
        with pytest.raises(zil.SchemaError, match="row id 'id' occurs more than once"):
            M.release_file(double, dst.with_name(f"b{dst.suffix}"), ledger=book, row_id="id", batch_rows=size)
    with pytest.raises(zil.SchemaError, match="row id 'z' not in"):
        M.release_file(src, dst, ledger=book, row_id="z")
    with pytest.raises(zil.SchemaError, match="cannot be a noised column"):
        M.release_file(src, dst, ledger=book, row_id="a")
    lacking = write(frame(5).assign(id=[None, *"abcd"]), tmp_path / f"lacking{src.suffix}")
    with pytest.raises(zil.SchemaError, match="row id 'id' has missing"):
        M.release_file(lacking, dst.with_name(f"b{dst.suffix}"), ledger=book, row_id="id")


def test_repeat_by_row_id_counts_every_earlier_release(files, tmp_path):
    """The grown source was never released as a whole, but most of its rows were."""
    src, dst = files
    book = tmp_path / "book"
    M.release_file(src, dst, ledger=book, row_id="id")
    grown = write(frame(ROWS + 20), tmp_path / f"grown{src.suffix}")
    again = {"ledger": book, "row_id": "id", "repeat": True}
    for number in (2, 3):
        with pytest.warns(zil.PrivacyWarning, match=f"time number {number}"):
            meta = M.release_file(grown, tmp_path / f"{number}{src.suffix}", release_id=str(number), **again)
        assert meta["repeat"]["releases_of_these_rows"] == number


def test_an_append_keeps_the_repeat_of_the_file(files, tmp_path):
    """New rows have one copy, the old ones still have two; so says the label, however often rows are added."""
    src, dst = files
    book, second = tmp_path / "book", tmp_path / f"second{src.suffix}"
    again = {"ledger": book, "row_id": "id"}
    M.release_file(src, dst, **again)
    with pytest.warns(zil.PrivacyWarning, match="time number 2"):
        twice = M.release_file(src, second, release_id="again", repeat=True, **again)
    for more in (5, 10):
        grown = write(frame(ROWS + more), tmp_path / f"grown{more}{src.suffix}")
        meta = M.release_file(grown, second, append=True, **again)
        assert meta["n_rows"] == ROWS + more
        assert meta["repeat"] == twice["repeat"]
        first = [line for line in zil.load(second).report().splitlines() if line][2]
        assert first.startswith("1. **Copies.** Rows of this table were published up to 2 times")


def test_append(files, tmp_path):
    src, dst = files
    book = tmp_path / "book"
    M.release_file(src, dst, ledger=book, row_id="id", append=True)
    before = table_of(dst)
    old, new = frame(), frame(10, 5000)
    grown = write(pd.concat([old[:100], new, old[100:]], ignore_index=True), tmp_path / f"grown{src.suffix}")
    meta = M.release_file(grown, dst, ledger=book, row_id="id", append=True, batch_rows=33)
    after = table_of(dst)
    assert meta["n_rows"] == ROWS + 10
    pd.testing.assert_frame_equal(after[:ROWS], before)
    assert after["id"][ROWS:].tolist() == new["id"].tolist()
    assert zil.load(dst).metadata["n_rows"] == ROWS + 10
    kept = content(dst)
    assert M.release_file(src, dst, ledger=book, row_id="id", append=True) == meta  # done, and grown since
    again = M.release_file(grown, dst, ledger=book, row_id="id", append=True)
    assert content(dst) == kept
    assert again == meta
    same = write(pd.concat([new, old], ignore_index=True), tmp_path / f"same{src.suffix}")
    assert M.release_file(same, dst, ledger=book, row_id="id", append=True) == meta
    assert content(dst) == kept
    with pytest.raises(ValueError, match="append needs row_id"):
        M.release_file(grown, dst, ledger=book, append=True)
    foreign = write(frame(10, 9000), tmp_path / f"foreign{src.suffix}")
    with pytest.raises(ValueError, match="not one that this ledger released"):
        M.release_file(foreign, write(frame(), tmp_path / f"other{src.suffix}"), ledger=book, row_id="id", append=True)
    fewer = write(frame(10, 9500).drop(columns="kind"), tmp_path / f"fewer{src.suffix}")
    with pytest.raises(zil.SchemaError, match="differ from those of the source"):
        M.release_file(fewer, dst, ledger=book, row_id="id", append=True)
    assert content(dst) == kept


def holdings(book):
    """The releases in a ledger, and the number of rows they hold."""
    with sqlite3.connect(book) as db:
        return db.execute("SELECT id, state FROM releases").fetchall(), db.execute("SELECT * FROM rows").fetchall()


def test_a_refused_append_leaves_its_rows_free(files, tmp_path):
    """Other columns are seen only when the old file is read, after the rows were noted."""
    src, dst = files
    book = tmp_path / "book"
    again = {"ledger": book, "row_id": "id", "append": True}
    M.release_file(src, dst, ledger=book, row_id="id")
    grown = write(frame(ROWS + 5), tmp_path / f"grown{src.suffix}")
    kept, held = content(dst), holdings(book)
    with pytest.raises(zil.SchemaError, match="differ from those of the source"):
        M.release_file(grown, dst, columns=["id", "a", "b"], **again)
    assert (content(dst), holdings(book)) == (kept, held)
    assert M.release_file(grown, dst, **again)["n_rows"] == ROWS + 5
    assert table_of(dst)["id"].tolist() == table_of(grown)["id"].tolist()


def test_a_destination_that_cannot_be_written_leaves_the_rows_free(files, tmp_path):
    src, dst = files
    with pytest.raises(FileNotFoundError, match="dst lies in a folder that does not exist"):
        M.release_file(src, tmp_path / "none" / dst.name, row_id="id")

    def full(self, name):
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_tools.Workplace, "create", full)
        with pytest.raises(OSError, match="No space left"):
            M.release_file(src, dst, row_id="id")
    assert list(tmp_path.glob(".*")) == []
    other = zil.Mechanism({"a": (0, 1)}, zero_prob=0.5, scale=1.0)
    assert other.release_file(src, dst, row_id="id")["n_rows"] == ROWS
    assert len(holdings(src.with_name(f"{src.name}.ledger"))[0]) == 1


def test_a_key_that_was_used_is_kept(files, tmp_path, monkeypatch):
    """A refusal after the first draw: its rows wait for the same call, and no other release passes them over."""
    src, dst = files
    book = tmp_path / "book"
    again = {"ledger": book, "row_id": "id", "append": True}
    M.release_file(src, dst, ledger=book, row_id="id")
    kept = content(dst)
    grown, larger = tmp_path / f"grown{src.suffix}", tmp_path / f"larger{src.suffix}"
    write(frame(ROWS + 5), grown)
    write(frame(ROWS + 10), larger)
    drawn = []

    def refuse(name):
        if name == "batch written":
            drawn.append(len(list(tmp_path.glob(".zil-*/file"))) == 1)
            raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(streaming, "step", refuse)
        with pytest.raises(OSError, match="no space left"):
            M.release_file(grown, dst, **again)
    assert drawn == [True]
    assert [state for _, state in holdings(book)[0]] == ["done", "pending"]
    with pytest.raises(ValueError, match="begun and not finished"):
        M.release_file(larger, dst, **again)
    assert content(dst) == kept
    assert M.release_file(grown, dst, **again)["n_rows"] == ROWS + 5
    assert M.release_file(larger, dst, **again)["n_rows"] == ROWS + 10


BOUNDS = {"a": (0, 1), "b": (0, 10)}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (zil.Mechanism({"a": (0, 1)}, zero_prob=0.25, scale=1.0), "columns"),
        (zil.Mechanism({"a": (0, 1), "b": (0, 11)}, zero_prob=0.25, scale=[1.0, 5.0]), "bounds"),
        (zil.Mechanism(BOUNDS, zero_prob=0.25, scale=[1.0, 5.0], resolution={"a": 0.125}), "tick"),
        (zil.Mechanism(BOUNDS, zero_prob=0.25, scale=[1.0, 5.5]), "scale"),
        (zil.Mechanism(BOUNDS, zero_prob=0.2, scale=[1.0, 5.0]), "zero_prob"),
        (zil.Mechanism(BOUNDS, zero_prob=0.2, scale=[1.0, 5.5]), "scale, zero_prob"),
        (None, "missing"),
    ],
)
def test_append_takes_the_mechanism_of_the_file(files, tmp_path, other, words):
    """One label speaks for all rows of a file; what is refused changes neither the file nor the ledger."""
    src, dst = files
    book = tmp_path / "book"
    again = {"ledger": book, "row_id": "id", "append": True}
    M.release_file(src, dst, ledger=book, row_id="id")
    kept = content(dst)
    for more in (0, 5):  # whether or not there is a new row
        grown = write(frame(ROWS + more).iloc[::-1], tmp_path / f"grown{more}{src.suffix}")
        with pytest.raises(ValueError, match=f"append=True needs the mechanism .* differs in {words}$"):
            (other or M).release_file(grown, dst, missing="error" if other else "midpoint", **again)
        assert content(dst) == kept
    same = zil.Mechanism(dict(reversed(BOUNDS.items())), zero_prob=0.25, scale={"a": 1.0, "b": 5.0})
    assert same.release_file(grown, dst, **again)["n_rows"] == ROWS + 5


def test_free_form_attributes_of_a_parquet_file_stay_behind(tmp_path):
    table = frame()
    table.attrs["note"] = "about a person"
    arrow = pa.Table.from_pandas(table.set_index("id"))
    arrow = arrow.replace_schema_metadata({**arrow.schema.metadata, b"secret": b"about a person"})
    pq.write_table(arrow, tmp_path / "in.parquet")
    M.release_file(tmp_path / "in.parquet", tmp_path / "out.parquet")
    assert b"about a person" in (tmp_path / "in.parquet").read_bytes()
    assert b"about a person" not in (tmp_path / "out.parquet").read_bytes()
    assert zil.load(tmp_path / "out.parquet").data.index.tolist() == table["id"].tolist()
