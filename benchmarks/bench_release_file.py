"""A file released by `Mechanism.release_file` against the pandas lines a user would write, one thread.

The naive lines read the table, add noise and write it: no ledger, no second look, no crash safety.  What the second
reader costs is the ratio to the same release without it (goal: at least .6 of that speed).
"""

import itertools

import numpy as np
import pandas as pd
import pytest

import zil
from zil.release import secondread

COLUMNS = list("abcdef")
ROWS = {"csv": 300_000, "parquet": 1_000_000}


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sources")
    rng = np.random.default_rng(1)
    for ending, n in ROWS.items():
        table = pd.DataFrame(rng.uniform(size=(n, 6)).round(4), columns=COLUMNS)
        table.insert(0, "id", np.arange(n))
        table["note"] = np.where(rng.random(n) < 0.1, 'a "b", c', "plain")
        path = folder / f"in.{ending}"
        table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    return folder


def release(sources, ending, count=itertools.count()):  # noqa: B008  (a fresh name for each call)
    k = next(count)
    mechanism = zil.Mechanism(dict.fromkeys(COLUMNS, (0, 1)), zero_prob=0.05, scale=2.0)
    out, book = sources / f"out{k}.{ending}", sources / f"book{k}"
    mechanism.release_file(sources / f"in.{ending}", out, ledger=book, n_threads=1)
    for path in sources.glob(f"*{k}*"):
        path.unlink()


def naive(sources, ending):
    rng = np.random.default_rng()
    source, out = sources / f"in.{ending}", sources / f"naive.{ending}"
    table = pd.read_csv(source) if ending == "csv" else pd.read_parquet(source)
    noise = rng.standard_normal((len(table), 6)) * np.sqrt(rng.exponential(size=(len(table), 1)))
    noise[rng.random(len(table)) < 0.05] = 0
    table[COLUMNS] += 2.0 * noise
    table.to_csv(out, index=False) if ending == "csv" else table.to_parquet(out)


@pytest.mark.parametrize(("ending", "goal"), [("csv", 1.0), ("parquet", 0.4)])
def test_against_pandas(race, sources, ending, goal):
    race(
        lambda: release(sources, ending),
        lambda: naive(sources, ending),
        baseline_name="pandas: read, add noise, write",
        units=ROWS[ending],
        goal=goal,
        rounds=3,
    )


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_cost_of_the_second_reader(race, sources, ending, monkeypatch):
    real = secondread.compare

    def without():
        monkeypatch.setattr(secondread, "compare", lambda *a: None)
        release(sources, ending)
        monkeypatch.setattr(secondread, "compare", real)

    race(
        lambda: release(sources, ending),
        without,
        baseline_name="the same without its second reader",
        units=ROWS[ending],
        goal=0.6,
        rounds=3,
    )
