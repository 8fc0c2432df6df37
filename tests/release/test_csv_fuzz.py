"""No protected cell of a broken CSV file comes out: a small version of tools/fuzz_csv.py, which shrinks findings."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from attacks import csvfiles
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from zil.release import forms

TEXT = st.text(alphabet='a,"\n\r \\é;', max_size=5)
CELL = st.integers(5 * 10**10, 5 * 10**11 - 1).map(lambda k: 2 * k + 1)


@st.composite
def files(draw):
    """Bytes of a table with columns id, a, b, note, with at most three accidents; and its protected cells."""
    cells, lines = [], [[b"id", b"a", b"b", b"note"]]
    for row in range(draw(st.integers(1, 5))):
        pair = [draw(CELL), draw(CELL)]
        cells += pair
        note = draw(TEXT).encode()
        if draw(st.booleans()):
            note = b'"' + note.replace(b'"', b'""') + b'"'
        quoted = b'"%d"' if draw(st.booleans()) else b"%d"
        lines.append([b"%d" % row, *(quoted % cell for cell in pair), note])
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    data = end.join(b",".join(line) for line in lines) + draw(st.sampled_from([b"", end]))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data = data[:at] + draw(st.sampled_from(csvfiles.MUTATIONS)) + data[at + draw(st.integers(0, 2)) :]
    return data, cells


@settings(deadline=None, max_examples=400)
@given(files(), st.integers(1, 4), st.one_of(st.none(), st.integers(3, 30)))
def test_broken_files(file, size, block):
    csvfiles.check(*file, size=size, block=block)


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files(), st.sampled_from(["csv", "parquet"]))
def test_broken_files_through_the_whole_release(tmp_path, file, ending):
    csvfiles.whole(*file, tmp_path, ending)


def test_the_reported_leak():
    """Two stray quotation marks swallowed the rows between them."""
    cells = [500000000001 + 2 * k for k in range(8)]
    notes = [b'5" pipe', b"ok", b'6" pipe', b"ok"]
    rows = [b"%d,%d,%d,%s" % (k, cells[2 * k], cells[2 * k + 1], notes[k]) for k in range(4)]
    data = b"\n".join([b"id,a,b,note", *rows]) + b"\n"
    assert csvfiles.check(data, cells) == "refused"
    assert csvfiles.naive_leaks(data, cells)
    with pytest.raises(ValueError, match="line 2 of the CSV file"):
        csvfiles.released(data, 3)


def spoilt(kind, monkeypatch):
    """A writer or a reader with one fault, which the same check must find."""
    write, batches = forms.CsvSink.write, forms.CsvSource.batches
    if kind == "one batch passes raw":
        monkeypatch.setattr(
            forms.CsvSink,
            "write",
            lambda self, part, published: self._put(part.data) if len(part) == 1 else write(self, part, published),
        )
    elif kind == "a record is left out":
        monkeypatch.setattr(
            forms.CsvSource,
            "batches",
            lambda self, size, first=False: (
                b.chosen(np.arange(len(b.values)) > 0) for b in batches(self, size, first=first)
            ),
        )
    elif kind == "the source is written":
        monkeypatch.setattr(
            forms.CsvSink,
            "write",
            lambda self, part, published: write(
                self, part, np.column_stack([part.numbers(k, "") for k in self._source._noised])
            ),
        )
    elif kind == "columns are exchanged":
        monkeypatch.setattr(
            forms.CsvSink, "write", lambda self, part, published: write(self, part, published[:, ::-1].copy())
        )


@pytest.mark.parametrize(
    "kind", ["one batch passes raw", "a record is left out", "the source is written", "columns are exchanged"]
)
def test_a_faulty_release_is_found(kind, monkeypatch):
    """Power: files without an accident are enough."""
    spoilt(kind, monkeypatch)
    rng = np.random.default_rng()
    found = 0
    for _ in range(60):
        text, cells = csvfiles.table(rng)
        try:
            csvfiles.check(csvfiles.written(rng, text), cells, size=1)
        except csvfiles.Leak:
            found += 1
    assert found >= 3


def test_the_tool_and_its_control():
    """Five thousand files in a few seconds; the control, which counts quotation marks, leaks in some of a hundred."""
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-P", "tools/fuzz_csv.py", "--files", "5000", "--processes", "1"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = {what: int(n) for n, what in (line.split(maxsplit=1) for line in done.stdout.splitlines()[:-1])}
    assert counts["released"] > 300
    assert counts["refused"] > 1000
    assert counts["naive"] > 5
