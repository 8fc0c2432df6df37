"""A release that is interrupted anywhere, once or twice, leaves one distinct noisy copy.

Two different copies of the same rows would let anybody subtract them; every byte that ever reaches
the disk, finished or not, is therefore compared with the final file.
"""

import os
import shutil
import stat
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import zil
from zil.release import streaming

MECHANISM = zil.Mechanism({"a": (0, 1)}, zero_prob=0.2, scale=1.0)


class Crash(BaseException):
    """Nothing in the library may catch this one."""


class Crasher:
    """Raises at the n-th step of a run; None never."""

    def __init__(self):
        self.left = None
        self.steps = []

    def __call__(self, name):
        self.steps.append(name)
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Crash(name)


@pytest.fixture
def crasher(monkeypatch):
    result = Crasher()
    monkeypatch.setattr(streaming, "step", result)
    return result


def source(path, first=0, n=4):
    ids = np.arange(first, first + n)
    table = pd.DataFrame({"id": ids, "a": (ids % 3) / 4, "t": [f"t{k}" for k in ids]})
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    return path


def begun(folder):
    """What lies in the private folders of releases that are not finished."""
    return sorted(p for p in folder.glob(".zil-*/*"))


def written(folder):
    """Everything noisy on disk: the published file and what was begun."""
    files = [p for p in folder.iterdir() if p.name.startswith("out") and "json" not in p.name]
    return [p.read_bytes() for p in [*files, *begun(folder)] if p.name != "metadata"]


def emptied(*paths):
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def attempt(release, crasher, left):
    crasher.left, crasher.steps = left, []
    try:
        release()
    except Crash:
        return False
    return True


def schedules(release, crasher, prepare, folder):
    """Run every one- and two-crash schedule; gives, for each, what was on disk after every attempt."""
    prepare()
    assert attempt(release, crasher, None)
    whole = len(crasher.steps)
    assert whole >= 8
    for first in range(whole):
        prepare()
        assert not attempt(release, crasher, first)
        seen = [written(folder)]
        rest = attempt(release, crasher, None)
        assert rest
        yield first, None, [*seen, written(folder)]
        for second in range(len(crasher.steps)):
            prepare()
            attempt(release, crasher, first)
            seen = [written(folder)]
            attempt(release, crasher, second)
            seen.append(written(folder))
            assert attempt(release, crasher, None)
            yield first, second, [*seen, written(folder)]


def distinct(seen, target, length):
    """Different beginnings of ``length`` bytes among all copies long enough to show one, the final one included."""
    final = target.read_bytes()
    copies = {final[:length]}
    for blocks in seen:
        copies |= {block[:length] for block in blocks if len(block) >= length}
    return copies


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_one_distinct_copy(ending, tmp_path, crasher):
    src, out, book = source(tmp_path / f"in.{ending}"), tmp_path / "o", tmp_path / "book"
    out.mkdir()
    target = out / f"out.{ending}"

    def prepare():
        emptied(book, *out.iterdir())

    def release():
        MECHANISM.release_file(src, target, ledger=book, batch_rows=4)

    count = 0
    for _, _, seen in schedules(release, crasher, prepare, out):
        final = target.read_bytes()
        for block in (b for blocks in seen for b in blocks):
            assert final.startswith(block)
        assert zil.load(target).private
        assert list(out.glob(".*")) == []
        count += 1
    assert count > 40


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_one_distinct_copy_of_every_appended_row(ending, tmp_path, crasher):
    first, more = source(tmp_path / f"in.{ending}"), source(tmp_path / f"more.{ending}", n=7)
    out, book = tmp_path / "o", tmp_path / "book"
    out.mkdir()
    target = out / f"out.{ending}"
    MECHANISM.release_file(first, target, ledger=book, row_id="id")
    state = {path: path.read_bytes() for path in [book, *out.iterdir()]}
    old = zil.load(target).data

    def prepare():
        emptied(book, *out.iterdir())
        for path, content in state.items():
            path.write_bytes(content)

    def release():
        MECHANISM.release_file(more, target, ledger=book, row_id="id", append=True, batch_rows=7)

    for _, _, seen in schedules(release, crasher, prepare, out):
        final = target.read_bytes()
        for block in (b for blocks in seen for b in blocks):
            assert final.startswith(block) or block == state[target]
        after = zil.load(target).data
        pd.testing.assert_frame_equal(after[:4], old)
        assert after["id"].tolist() == list(range(7))


def test_the_naive_version_leaves_several_copies(tmp_path, crasher):
    """The same schedules against a release that draws afresh and writes in place."""
    src, out = source(tmp_path / "in.csv"), tmp_path / "o"
    out.mkdir()
    target = out / "out.csv"

    def prepare():
        target.unlink(missing_ok=True)

    def release():
        table = pd.read_csv(src)
        for name in ["begun"] * 5:
            crasher(name)
        table["a"] += np.random.default_rng().laplace(size=len(table))
        table.to_csv(target, index=False)
        for name in ["written"] * 5:
            crasher(name)

    assert max(len(distinct(seen, target, 40)) for _, _, seen in schedules(release, crasher, prepare, out)) == 3


KILL = """
import os, sys
import zil
from zil.release import streaming
where = sys.argv[1]  # how many steps to go, or the name of the last one
left = int(where) if where.isdecimal() else None
def step(name):
    global left
    if left is not None:
        left -= 1
    if name == where or (left is not None and left < 0):
        os._exit(9)
streaming.step = step
zil.Mechanism({"a": (0, 1)}, zero_prob=0.2, scale=1.0).release_file(*sys.argv[2:4], ledger=sys.argv[4], batch_rows=2)
"""


def test_killed_processes(tmp_path):
    """The same without any clean-up at all: the process ends inside the step."""
    src, book, target = source(tmp_path / "in.csv"), tmp_path / "book", tmp_path / "out.csv"
    seen = []
    for left in (2, 3, 4, 5, 6, 7):
        command = [sys.executable, "-P", "-c", KILL, str(left), str(src), str(target), str(book)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 9, done.stderr
        seen += written(tmp_path)
    MECHANISM.release_file(src, target, ledger=book, batch_rows=2)
    final = target.read_bytes()
    assert len(seen) >= 3
    assert all(final.startswith(block) for block in seen)
    assert final in seen
    assert sorted(os.listdir(tmp_path)) == ["book", "in.csv", "out.csv", "out.csv.json"]


def test_killed_while_the_metadata_is_written(tmp_path):
    """What was begun then lies where nobody else can look; the next run uses it up, or removes it if it refuses."""
    src, book, target = source(tmp_path / "in.csv"), tmp_path / "book", tmp_path / "out.csv"
    command = [sys.executable, "-P", "-c", KILL, "metadata begun", str(src), str(target), str(book)]
    for refuse in (True, False):
        for _ in range(2):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 9, done.stderr
            assert sorted(path.name for path in begun(tmp_path)) == ["file", "metadata"]
            for path in begun(tmp_path):
                assert stat.S_IMODE(path.stat().st_mode) == 0o600
                assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        if refuse:
            kept = src.read_bytes()

            def change(name, kept=kept):
                if name == "batch read":
                    src.write_bytes(kept.replace(b"0.25", b"0.75"))

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(streaming, "step", change)
                with pytest.raises(ValueError, match="the source changed"):
                    MECHANISM.release_file(src, target, ledger=book, batch_rows=2)
            assert list(tmp_path.glob(".*")) == []
            src.write_bytes(kept)
    MECHANISM.release_file(src, target, ledger=book, batch_rows=2)
    assert sorted(os.listdir(tmp_path)) == ["book", "in.csv", "out.csv", "out.csv.json"]
    assert zil.load(target).private
