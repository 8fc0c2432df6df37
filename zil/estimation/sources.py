"""What ``zil.fit`` accepts as data besides a table in memory: files, lists of files, dask collections.

A collection that is computed lazily is computed once, here, in the order of its partitions; its rows
then pair with responses, weights and second noises by position.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

from zil import _arrow
from zil._validate import SchemaError
from zil.release import files, integrity
from zil.release.published import Release, load


def read(data: Any, noise: Any = None) -> Any:
    """A release or a table in memory.

    Parameters
    ----------
    data
        A path (CSV or Parquet) or a list of Parquet paths; a dask DataFrame or Array; anything else is returned as it
        is.  A file with zil metadata becomes a ``Release``; one without is a plain table (pandas where it is
        installed, else pyarrow), clean unless ``noise=`` says otherwise.
    noise
        What the caller says about the noise.  None with a file that has no zil metadata is a warning: a published file
        that was separated from them, or saved again by another tool, looks like clean data.

    Raises
    ------
    SchemaError
        Files of a list that differ in columns or in the noise they declare, or a release changed after it was written.
    """
    if isinstance(data, (list, tuple)) and len(data) == 0:
        raise ValueError("data are missing: the list is empty; give a table, a release, or the paths of its files")
    single = isinstance(data, (str, os.PathLike))
    paths = [data] if single else data
    if isinstance(paths, (list, tuple)) and paths and all(isinstance(item, (str, os.PathLike)) for item in paths):
        parts = [_file(path) for path in paths]
        result = parts[0] if single else _several(parts)
        if not isinstance(result, Release) and noise is None:
            _warn(_bare(paths[0]))
        return result
    table = computed(data)
    if noise is None and _is_marked(table):
        _warn("this table was read from a file that zil published, without what zil says of its noise", "use zil.load")
    return table


CLEAN = "(noise=zil.Noise(1.0, 0.0) says that the data are clean)"


def _warn(what: str, instead: str = "a published file needs it") -> None:
    warnings.warn(
        f"{what}, so its rows are taken for clean; {instead} {CLEAN}",
        UserWarning,
        stacklevel=6,  # the caller of zil.fit
    )


def _bare(path: str | os.PathLike[str]) -> str:
    """What a file without zil metadata lacks."""
    if files.file_format(path) == "csv":
        return f"no metadata beside the CSV file: {files.sidecar(path).name} is missing"
    name = os.path.basename(path)
    if integrity.is_marked(integrity.footer_text(path)):
        return f"no zil metadata in {name}: it was published by zil, and another tool that saved it again dropped them"
    return f"no zil metadata in {name} (another tool that saves a published file again drops them)"


def _is_marked(table: Any) -> bool:
    """Whether a table was read by another tool from a file that zil published."""
    attributes = getattr(table, "attrs", None)
    if isinstance(attributes, dict) and integrity.KEY.decode("ascii") in attributes:
        return True
    return integrity.is_marked(getattr(getattr(table, "schema", None), "metadata", None))


def computed(values: Any) -> Any:
    """A dask collection as what it holds (rows in the order of its partitions); anything else as it is."""
    if type(values).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(values, "compute"):
        return values.compute()
    return values


def _file(path: str | os.PathLike[str]) -> Any:
    kind = files.file_format(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"no such file: {os.fspath(path)}")
    if kind == "csv" and not files.sidecar(path).exists():
        return _plain(path, kind)
    if kind == "parquet" and integrity.KEY not in integrity.footer_text(path):
        return _plain(path, kind)
    return load(path)


def _plain(path: str | os.PathLike[str], kind: str) -> Any:
    """A table that zil did not write."""
    _arrow.to_arrow([0.0])  # says what to install if pyarrow is missing
    if kind == "csv":
        import pyarrow.csv

        arrow = pyarrow.csv.read_csv(path)
    else:
        import pyarrow.parquet as pq

        with open(path, "rb") as handle:
            arrow = pq.read_table(handle)
    return _arrow.from_arrow(arrow, "pandas")


def _several(parts: Sequence[Any]) -> Any:
    """Rows of several files one after the other; all releases of the same noise and bounds, or all plain."""
    releases = [isinstance(part, Release) for part in parts]
    if any(releases) and not all(releases):
        raise SchemaError("some of the files carry zil metadata and some do not")
    tables = [_arrow.to_arrow(part.data if isinstance(part, Release) else part) for part in parts]
    names = tables[0].column_names
    for table in tables[1:]:
        if table.column_names != names:
            raise SchemaError(f"files have different columns: {names} and {table.column_names}")
    import pyarrow as pa

    joined = _arrow.from_arrow(pa.concat_tables(tables, promote_options="permissive"), "pandas")
    first = parts[0]
    if not isinstance(first, Release):
        return joined
    for part in parts[1:]:
        if part.noise != first.noise or part.bounds != first.bounds:
            raise SchemaError("files were released with different noise or bounds: fit them apart")
    rows = sum(part.metadata["n_rows"] for part in parts)
    private = all(part.private for part in parts)
    return Release(joined, {**first.metadata, "n_rows": rows, "private": private})
