"""Arbitrary arguments and tables through the Python boundary, from any source of choices.

`attempt` builds a mechanism, publishes a table and simulates, all with whatever the source chooses.  It is
used by hypothesis (tests/attacks/test_boundary.py) and by a coverage-guided fuzzer
(tools/fuzz_boundary.py).  Allowed outcomes: a proper release, or one of the documented exceptions with
a message that holds no cell of the table; `release` and `simulate` refuse in the same words.
"""

import contextlib
import pickle
import traceback
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import zil

REFUSALS = (ValueError, TypeError)  # SchemaError is a ValueError
CANARIES = (86420.975312, -7.31313131e-5, 3141592653589)  # cells that no message may show
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, np.nan, np.inf, -np.inf, 5e-324, 1e-300, 1e300, 2.0**53, 1e16, *CANARIES[:2])
PARAMETERS = (*SPECIAL, None, "1", True, 2, 10**30, [1.0], (0.0, 1.0), {"a": 1.0}, np.float32(0.25), 1j)
DTYPES = (
    "float64",
    "float32",
    "float16",
    "int64",
    "int8",
    "uint8",
    "bool",
    ">f8",
    "object",
    "complex128",
    "U8",
    "M8[s]",
)
LAYOUTS = ("C", "F", "strided", "reversed", "read-only", "masked", "list", "one column")


def _number(source, salt):
    return source.choice(SPECIAL) if source.integer(0, 2) else source.number() * salt


def _parameter(source, salt=1.0):
    """Now and then nonsense, mostly a number."""
    kind = source.integer(0, 9)
    return (
        source.choice(PARAMETERS) if kind == 0 else _number(source, salt) if kind == 1 else abs(source.number()) + 0.01
    )


def _bounds(source, names):
    if source.integer(0, 19) == 0:
        return source.choice(PARAMETERS)
    pairs = []
    for _ in names:
        low = _number(source, 100.0)
        pairs.append((low, low + abs(source.number()) * 100) if source.integer(0, 9) else (low, _number(source, 1.0)))
    if source.integer(0, 1):
        return dict(zip(names, pairs, strict=True))
    return source.choice((list, np.array))(pairs)


def _table(source, n, d, names):
    values = np.array([[_number(source, 50.0) for _ in range(d)] for _ in range(n)]).reshape(n, d)
    if n and d and source.integer(0, 1):
        values[source.integer(0, n - 1), source.integer(0, d - 1)] = source.choice(CANARIES)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            values = values.astype(source.choice(DTYPES))
    kind = source.choice(("array", "pandas", "polars", "pyarrow"))
    if kind == "array":
        layout = source.choice(LAYOUTS)
        if layout == "F":
            return np.asfortranarray(values)
        if layout == "strided":
            return np.repeat(values, 2, axis=0)[::2]
        if layout == "reversed":
            return values[::-1]
        if layout == "read-only":
            values.flags.writeable = False
        if layout == "masked":
            return np.ma.MaskedArray(
                values, mask=np.arange(values.size).reshape(values.shape) == source.integer(-1, n * d)
            )
        if layout == "list":
            return values.tolist()
        if layout == "one column" and d:
            return values[:, 0]
        return values
    if kind == "pandas":
        return pd.DataFrame(values, columns=names, index=pd.Index(range(n, 0, -1)))
    columns = {name: values[:, k].tolist() for k, name in enumerate(names)}
    try:
        return pl.DataFrame(columns, strict=False) if kind == "polars" else pa.table(columns)
    except Exception:  # the source made columns that these libraries refuse: not zil's business
        return values


def _bytes(table):
    """The caller's table as it is; polars and pyarrow tables cannot be changed."""
    return None if isinstance(table, (pl.DataFrame, pa.Table)) else pickle.dumps(table)


def attempt(source):
    """One call of zil with whatever the source chooses; AssertionError if it misbehaves."""
    n, d = source.integer(0, 5), source.integer(0, 3)
    names = (
        [source.choice(("a", "b", "a.1", "", "ü")) for _ in range(d)] if source.integer(0, 3) == 0 else list("abc"[:d])
    )
    if len(set(names)) < d:
        names = [f"{name}{k}" for k, name in enumerate(names)]
    table = _table(source, n, d, names)
    arguments = {
        "zero_prob": _parameter(source, 0.5) if source.integer(0, 3) == 0 else 0.25,
        "scale": _parameter(source, 10.0),
    }
    if source.integer(0, 2) == 0:
        arguments["resolution"] = _parameter(source)
    missing = source.choice(("error", "error", "clip", "midpoint", 0.5, {"a": 0.5}, None, "other"))
    before = _bytes(table)
    try:
        mechanism = zil.Mechanism(_bounds(source, names), **arguments)
    except REFUSALS:
        return "parameters refused"
    release, refusal = _publish(lambda: mechanism.release(table, missing=missing))
    twin, same = _publish(lambda: mechanism.simulate(table, 1, missing=missing))
    assert refusal == same, f"release: {refusal}, simulate: {same}"
    if release is None or twin is None:
        return "table refused"
    assert _bytes(table) == before, "the caller's table was changed"
    for published in (release, twin):
        _look(published, n, mechanism)
    return "published"


def _publish(call):
    """What a call gives, or the words of its refusal, which show no cell; one warning is proper."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the table has no column names", UserWarning)
            return call(), None
    except REFUSALS as error:
        text = "".join(traceback.format_exception_only(error)) + str(error.__cause__ or "")
        assert not any(repr(canary) in text or str(canary) in text for canary in CANARIES), text
        return None, text


def _look(release, n, mechanism):
    data = release.data
    assert len(data) == n
    if isinstance(data, np.ndarray):
        columns = [data.reshape(n, -1)[:, k] for k in range(mechanism.dim)]
    else:
        columns = [np.asarray(data[name], float) for name in release.columns]
    for column, tick in zip(columns, mechanism.tick, strict=True):
        assert np.isfinite(column).all()
        assert (np.rint(column / tick) * tick == column).all(), "off the lattice"
    assert not any(str(canary) in str(release.metadata) for canary in CANARIES[2:])
