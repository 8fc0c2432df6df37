"""What is said about a release: one dictionary, in the Parquet footer or beside a CSV file.

It holds parameters and what follows from them.  It never holds a seed, a key, a path, a host
name, or anything computed from the data, such as a count of clipped or unchanged rows.

Format 2 (`zil/data/release.schema.json` has every key): the digest covers rows, names, types and these metadata, see
`zil.release.integrity`.  In format 1 it covered the rows alone; such files stay readable, and none is written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from zil._core import probe
from zil._validate import FloatArray, SchemaError
from zil.privacy.noise import Noise
from zil.release import structure

FORMAT = "zil-release"
FORMAT_VERSION = 2
READABLE = (1, 2)  # format 1 had a digest of the data alone
MECHANISM = "zero-inflated symmetric multivariate Laplace (ZIL)"
UNITS = ("attribute", "record")


def columns_part(
    names: Sequence[Any], bounds: FloatArray, tick: FloatArray, scale: FloatArray, effective: FloatArray
) -> list[dict[str, Any]]:
    """One entry per noised column."""
    return [
        {"name": name, "lower": low, "upper": high, "tick": u, "scale": s, "effective_scale": e}
        for name, (low, high), u, s, e in zip(
            names, bounds.tolist(), tick.tolist(), scale.tolist(), effective.tolist(), strict=True
        )
    ]


def build(
    *,
    columns: list[dict[str, Any]],
    zero_prob: float,
    target: dict[str, Any] | None,
    shifts: dict[str, float],
    guarantees: dict[str, Any],
    private: bool,
    n_rows: int | None,
    release_id: str | None,
    missing: Any,
    table: str | None = None,
) -> dict[str, Any]:
    """The metadata of a release (``n_rows=None``: of a mechanism that has released nothing)."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "mechanism": MECHANISM,
        "version": probe.build_facts()["version"],
        "private": private,
        "release_id": release_id,
        "unit": target["unit"] if target else None,
        "target": target,
        "zero_prob": zero_prob,
        "columns": columns,
        "shift": shifts,
        "guarantees": guarantees,
        "numeric_delta": 0 if private else None,
        "n_rows": n_rows,
        "expected_unchanged_rows": None if n_rows is None else n_rows * zero_prob,
        "policies": {"out_of_bounds": "clip", "missing": missing, "rows": "order and index kept"},
        "table": table,
    }


def bounds_of(metadata: dict[str, Any]) -> dict[Any, tuple[float, float]]:
    return {column["name"]: (column["lower"], column["upper"]) for column in metadata["columns"]}


def noise_of(metadata: dict[str, Any]) -> Noise:
    """What an analyst needs: the scale includes the variance of rounding to ticks."""
    return Noise(metadata["zero_prob"], {c["name"]: c["effective_scale"] for c in metadata["columns"]})


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """What differs between the mechanisms that two metadata describe."""
    a, b = ({column["name"]: column for column in part["columns"]} for part in (one, other))
    result = [] if a.keys() == b.keys() else ["columns"]
    for word, keys in (("bounds", ("lower", "upper")), ("tick", ("tick",)), ("scale", ("scale",))):
        if any(a[name][key] != b[name][key] for name in a.keys() & b.keys() for key in keys):
            result.append(word)
    if one["zero_prob"] != other["zero_prob"]:
        result.append("zero_prob")
    if one["policies"]["missing"] != other["policies"]["missing"]:
        result.append("missing")
    return result


def dumps(metadata: dict[str, Any]) -> str:
    return json.dumps(metadata, indent=2, allow_nan=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"metadata cannot hold {type(value).__name__}")


def is_ours(text: bytes) -> bool:
    """Whether a file beside a table looks like metadata of zil, whole or damaged."""
    return f'"{FORMAT}"'.encode("ascii") in text


def loads(text: str | bytes) -> dict[str, Any]:
    """Read metadata.

    Raises
    ------
    SchemaError
        Not metadata of a version that can be read here, or damaged; no part of the text is shown.
    """
    try:
        result = json.loads(text, parse_constant=_no_number)
        good = result["format"] == FORMAT and result["format_version"] in READABLE
    except (ValueError, TypeError, LookupError, RecursionError):
        good = False
    if not good:
        raise SchemaError("this is not the metadata of a zil release of a version that can be read here")
    fault = structure.fault(result)
    if fault is None:
        fault = _inconsistent(result)
    if fault is not None:
        raise SchemaError(f"the zil metadata are damaged: {fault}")
    return dict(result)


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _inconsistent(metadata: dict[str, Any]) -> str | None:
    """What no schema can say."""
    columns = metadata["columns"]
    if len({column["name"] for column in columns}) != len(columns):
        return "columns: a name occurs more than once"
    if any(column["lower"] > column["upper"] for column in columns):
        return "columns: bounds are reversed"
    return None
