"""Nothing but the table depends on the data: messages, warnings, shapes, metadata, control flow.

The oracle runs the mechanism on two neighbouring tables, with the same key so that only the data differ,
and compares all that an onlooker could see.
"""

import logging
import sys
import traceback
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from attacks import naive

import zil
from zil.release import keystream

BOUNDS = {"age": (18, 90), "income": (0, 1e5)}
MECHANISM = zil.Mechanism(BOUNDS, zero_prob=0.1, scale={"age": 20.0, "income": 3e4})
CANARY = 48611.73520931  # appears in no message
KINDS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": lambda columns: pa.table({name: list(values) for name, values in columns.items()}),
    "array": lambda columns: np.column_stack(list(columns.values())),
}


def of_kind(kind):
    """An array has no names, so all its columns are noised."""
    if kind != "array":
        return MECHANISM
    return zil.Mechanism([*BOUNDS.values(), (0, 60)], zero_prob=0.1, scale=[20.0, 3e4, 50.0])


@contextmanager
def fixed_key():
    """Every release of the block draws the same key."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keystream.os, "urandom", lambda n: bytes(range(n)))
        yield


def columns(n=60):
    rng = np.random.default_rng(3)
    return {"age": rng.uniform(20, 80, n), "income": rng.uniform(1e3, 9e4, n), "other": np.arange(n) * 1.0}


def with_row(change):
    """The base table and its neighbour, which differs in row 17."""
    base, neighbour = columns(), columns()
    for name, value in change.items():
        neighbour[name][17] = value
    return base, neighbour


def seen(action):
    """Everything an onlooker sees of a call: outcome, message, warnings, log records, the lines that ran in zil."""
    lines, records = [], []

    def tracer(frame, event, argument):
        if "/zil/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            lines.append((frame.f_code.co_filename.rsplit("/", 2)[-2:], frame.f_lineno))
        return tracer

    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    before = sys.gettrace()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        sys.settrace(tracer)
        try:
            result = action()
            outcome = ("returned", described(result))
        except Exception as error:
            outcome = (type(error).__name__, str(error), error.__notes__ if hasattr(error, "__notes__") else [])
            text = "".join(traceback.format_exception(error))
            assert str(CANARY) not in text
        finally:
            sys.settrace(before)
            logging.getLogger().removeHandler(handler)
    return outcome, [str(w.message) for w in warned], records, lines


def described(result):
    """What a release shows beside its values; not the identifier, nor digest and length of noisy values."""
    if isinstance(result, dict):
        return {key: value for key, value in result.items() if not key.startswith("sha256")}
    if not isinstance(result, zil.Release):
        return np.shape(result)
    shown = {key: value for key, value in result.metadata.items() if key != "release_id"}
    return shown, repr(result).replace(str(result.metadata.get("release_id")), ""), np.shape(result.data)


NEIGHBOURS = {
    "inside": {"age": 33.0},
    "on a bound": {"age": 90.0},
    "below": {"age": -5.0},
    "far above": {"income": 1e300},
    "two columns": {"age": 1e9, "income": -1e9},
    "negative zero": {"income": -0.0},
    "subnormal": {"income": 5e-324},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_neighbours_look_alike(kind, change):
    base, neighbour = with_row(change)
    mechanism = of_kind(kind)
    with fixed_key():
        mechanism.release(KINDS[kind](base))  # what is computed once is computed before the comparison
        first = seen(lambda: mechanism.release(KINDS[kind](base)))
        second = seen(lambda: mechanism.release(KINDS[kind](neighbour)))
    assert first[0][0] == "returned"
    assert first == second
    assert len(first[3]) > 20, "the trace saw nothing"


def write(table, path):
    frame = pd.DataFrame(table)
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("change", NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_neighbouring_files_look_alike(tmp_path, ending, change):
    views = []
    for name, table in zip(("one", "one", "two"), (*with_row({}), with_row(change)[1]), strict=True):
        folder = tmp_path / f"{name}{len(views)}"
        folder.mkdir()
        src, dst = write(table, folder / f"in.{ending}"), folder / f"out.{ending}"
        with fixed_key():
            views.append(seen(lambda src=src, dst=dst: MECHANISM.release_file(src, dst, release_id="r")))
    (kind, shown, *_), warned, records, lines = views[1]
    assert kind == "returned"
    assert (warned, records, lines) == views[2][1:]
    assert shown == views[2][0][1]
    assert len(lines) > 100, "the trace saw nothing"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_refusals_say_where_the_rule_is_not_which_value(kind, value):
    """Two tables with a forbidden entry in different rows among different values: the same words."""
    mechanism, outcomes = of_kind(kind), []
    for row, fill in ((3, 41.0), (50, CANARY)):
        table = columns()
        table["income"][:] = fill
        table["income"][row] = value
        mechanism = (
            MECHANISM if kind != "array" else zil.Mechanism([(18, 90), (0, 1e5), (0, 60)], zero_prob=0.1, scale=9.0)
        )
        outcomes.append(seen(lambda t=table, m=mechanism: m.release(KINDS[kind](t)))[:3])
    assert outcomes[0][0][0] == "SchemaError"
    assert outcomes[0] == outcomes[1]


def test_nothing_is_drawn_before_a_refusal():
    """NaN is refused before the operating system is asked for a key."""
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keystream.os, "urandom", lambda n: asked.append(n) or bytes(n))
        for bad in (np.nan, np.inf):
            table = columns()
            table["age"][0] = bad
            with pytest.raises(zil.SchemaError, match="age"):
                MECHANISM.release(pd.DataFrame(table))
        with pytest.raises(TypeError, match="age"):
            MECHANISM.release(pd.DataFrame({"age": ["x"], "income": [1.0]}))
        with pytest.raises(zil.SchemaError, match="income"):
            MECHANISM.release(pd.DataFrame({"age": [20.0]}))
        assert not asked


def test_a_failing_source_stops_the_release():
    def fail(n):
        raise OSError("no entropy")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keystream.os, "urandom", fail)
        with pytest.raises(OSError, match="no entropy"):
            MECHANISM.release(pd.DataFrame(columns()))


# ------------------------------------------------------------------------------------------
# The controls: each leak is found by the same oracle in code that has it
# ------------------------------------------------------------------------------------------


def test_nan_passes_the_naive_clip():
    x = np.array([0.2, np.nan, 5.0])
    assert np.isnan(np.clip(x, 0, 1)).tolist() == [False, True, False]


def test_bounds_from_the_data_make_the_scale_private_data():
    """Neighbours get different noise when nobody gave bounds; zil refuses to be built."""
    base, neighbour = (np.array(v)[:, None] for v in ([0.0, 1.0], [0.0, 100.0]))
    assert np.ptp(base) != np.ptp(neighbour)
    for bounds in (None, {}, []):
        with pytest.raises(ValueError, match="bounds"):
            zil.Mechanism(bounds, zero_prob=0.1, scale=1.0)
    messages = set()
    for _ in (base, neighbour):
        with pytest.raises(ValueError) as caught:
            zil.Mechanism(None, zero_prob=0.1, scale=1.0)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_the_oracle_sees_a_message_that_counts():
    base, neighbour = (np.array(v)[:, None] for v in ([0.5, 0.5], [0.5, CANARY / 1e5 + 1]))
    outcomes = [seen(lambda x=x: naive.release(x, (0, 1), 1.0, 0.1))[0] for x in (base, neighbour)]
    assert outcomes[0] != outcomes[1]
    assert "1 values outside" in outcomes[1][1]


def test_the_oracle_sees_metadata_and_branches_of_the_data():
    """A mechanism that counts what it clips, or skips clipping where it can, is told apart."""

    class Counting(zil.Mechanism):
        def release(self, table):
            result = super().release(table)
            result.metadata["clipped"] = int((np.asarray(table) > 1).sum())
            return result

    class Branching(zil.Mechanism):
        def release(self, table):
            if np.asarray(table).max() > 1:
                self.report()
            return super().release(table)

    for kind in (Counting, Branching):
        mechanism = kind([(0, 1)], zero_prob=0.1, scale=1.0)
        with fixed_key():
            mechanism.release(np.full((9, 1), 0.5))
            views = [seen(lambda x=x, m=mechanism: m.release(np.full((9, 1), x))) for x in (0.5, 2.0)]
        assert views[0] != views[1]
