"""A published table with what an analyst must know about it, on disk and in memory."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from zil import _arrow, _tables, _travel, _validate
from zil._validate import FloatArray, SchemaError
from zil.privacy.doubling import double
from zil.privacy.noise import Noise
from zil.release import csvfile, equality, files, integrity, registry, stored
from zil.release import metadata as facts
from zil.release import risk as judgement
from zil.release.report import Label
from zil.release.risk import Risk

ROWS = 65_536  # read at a time


class Release:
    """What `Mechanism.release` (or `Mechanism.simulate`) hands out; it holds no original value.

    Attributes
    ----------
    data
        The published table, of the kind that came in.
    noise : Noise
        Law of the noise by column name; scales include the rounding to ticks.
    bounds : dict
        Public bounds ``{column: (low, high)}`` of the original values.
    private : bool
        False if it was simulated with a reproducible generator: then no guarantee holds.
    metadata : dict
        Everything public about it, as written to files.
    """

    def __init__(self, data: Any, metadata: dict[str, Any]) -> None:
        self.data = data
        self.metadata = metadata

    @property
    def noise(self) -> Noise:
        return facts.noise_of(self.metadata)

    @property
    def bounds(self) -> dict[Any, tuple[float, float]]:
        return facts.bounds_of(self.metadata)

    @property
    def columns(self) -> list[Any]:
        """Names of the noised columns."""
        return [column["name"] for column in self.metadata["columns"]]

    @property
    def private(self) -> bool:
        return bool(self.metadata["private"])

    def __repr__(self) -> str:
        stamp = "" if self.private else ", SIMULATED: not private"
        return (
            f"<Release of {self.metadata['n_rows']} rows, noised {', '.join(map(str, self.columns))}, "
            f"private={self.private}{stamp}>"
        )

    def report(self, *, format: str = "markdown", rows_per_person: int | None = None, groups: Any = None) -> str:
        """The privacy label; it vouches for nothing if the table was simulated.

        Parameters
        ----------
        format : {"markdown", "text", "html"}
        rows_per_person : int, optional
            Most rows of one person; without it the verdict is for one, and five are shown as an example.
        groups : optional
            As for `Mechanism.risk`.
        """
        return self._label(rows_per_person=rows_per_person, groups=groups).show(format)

    def risk(self, *, rows_per_person: int = 1, groups: Any = None, prior: Any = "uniform") -> Risk:
        """As `Mechanism.risk`, all published copies of these rows together."""
        return judgement.assess(self.metadata, rows_per_person=rows_per_person, groups=groups, prior=prior)

    def _label(self, **about: Any) -> Label:
        passed = None
        if self.data is not None:
            passed = [name for name in _tables.column_names(self.data) if name not in self.columns]
        return Label(self.metadata, passed=passed, **about)

    def _repr_html_(self) -> str:
        return self._label().fragment()

    def registry_entry(self, **basic: str) -> str:
        """YAML text in the form of the differential privacy deployments registry.

        Parameters
        ----------
        **basic : str
            What only the publisher knows: ``name``, ``curator``, ``curator_type`` (Government, Industry,
            Nonprofit), ``description``, ``intended_use``, ``region``, ``sector`` (Technology, Healthcare,
            Education, Government, Energy, Finance), ``publication_date`` (YYYY-MM-DD), ``author`` of
            the entry, and ``model`` if it is "Local": each person noises the own row ("Central", the
            default, is where one holder of all rows does).  What is missing stays empty, for you to fill in.

        Raises
        ------
        ValueError
            The table was simulated (there is no deployment to register), or a value that the registry
            does not allow.
        TypeError
            A field that the registry has not.
        """
        if not self.private:
            raise ValueError("a simulated table is no deployment: it has no privacy guarantee to register")
        return registry.entry(self.metadata, **basic)

    def double(self, rng: Any = None, copies: int = 1, *, n_threads: int | None = None) -> Any:
        """Doubly randomised data ``X2 = X1 + S``, ``S ~ SL(zero_prob scale^2)``; post-processing of what is public.

        ``X2`` minus the original is plain symmetric Laplace noise with the scale of the release
        (paper, section 4.1).

        Parameters
        ----------
        rng : None, int, SeedSequence, Generator or BitGenerator
            None is a fixed stream keyed by the number of the row: the same call gives the same
            table, and no secrecy is needed.
        copies : int
            Independent draws of S.
        n_threads : int, optional
            None: what ``OMP_NUM_THREADS`` and the CPU affinity allow; the result does not depend on it.

        Returns
        -------
        table of the kind of `data`, or a list of ``copies`` tables if more than one
        """
        count = _validate.integer("copies", copies, 1)
        values = _tables.to_float(self.data, self.columns, copy=False)  # read, never written to
        scale = self.noise.scales(self.columns)
        stack = double(values, self.metadata["zero_prob"], scale, copies=count, rng=rng, n_threads=n_threads)
        result = [_tables.with_columns(self.data, self.columns, noisy) for noisy in stack]
        return result[0] if count == 1 else result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table and its metadata: Parquet (metadata in the footer) or CSV (JSON beside it).

        What is written is read back first: `load` gives a table that equals `data`, or nothing is written.

        Parameters
        ----------
        path
            Ends in ``.parquet``, ``.pq`` or ``.csv``; an existing file is replaced in one step.

        Raises
        ------
        SchemaError
            The table cannot be written so that it can be read back: a name that is neither text nor a whole number, a
            column of a type that the format does not hold (it is named), another number of rows than the metadata say.
        ValueError
            Another ending, or a JSON file that is not zil's where the metadata of a CSV file would go.
        """
        kind = files.file_format(path)
        table = _tables.kind(self.data)
        described = {**self.metadata, "names": self._names(), "table": table}
        described.pop("arrow_schema", None)
        sink = integrity.Sink(held := io.BytesIO())
        if kind == "csv" and table.startswith("numpy"):
            sink.write(_array_text(self.data, described["names"]))
            described = integrity.seal_csv(sink, described)
        else:
            arrow = _travel.clean_table(_arrow.to_arrow(self.data))
            described["arrow_schema"] = stored.types_text(arrow)
            if kind == "csv":
                sink.write(stored.csv_text(arrow))
                described = integrity.seal_csv(sink, described)
            else:
                described = write_parquet(sink, arrow, described)
        # the same that `load` does; nobody has seen the file yet
        wrong = equality.difference(self.data, _table(held.getbuffer(), kind, described), table)
        if wrong is not None:
            raise SchemaError(f"{wrong} would not be read back from a {kind} file as it is: change it, or leave it out")
        _put(path, kind, held.getbuffer(), described)

    def _names(self) -> list[Any]:
        """Names of all columns as they go to the metadata."""
        names = _tables.column_names(self.data)
        for name in names:
            if isinstance(name, bool) or not isinstance(name, (str, int, np.integer)):
                raise SchemaError(
                    f"the column name {name!r} is of type {type(name).__name__}; in a file a name is text or a whole "
                    "number: rename the column"
                )
            if isinstance(name, str) and "\0" in name:  # polars cannot hand it to Arrow, and ends the process's thread
                raise SchemaError("a column name holds a zero character: rename the column")
        if _tables.n_rows(self.data) != self.metadata["n_rows"]:
            raise SchemaError(
                f"the table has {_tables.n_rows(self.data)} rows and its metadata say {self.metadata['n_rows']}"
            )
        lost = [name for name in self.columns if name not in names]
        if lost:
            raise SchemaError(f"the table has no column {lost[0]!r}, which its metadata call noised")
        nameless = _tables.kind(self.data) == "pandas-1d" and self.data.name is None
        return [None] if nameless else [name if isinstance(name, str) else int(name) for name in names]


def write_parquet(sink: integrity.Sink, arrow: Any, described: dict[str, Any]) -> dict[str, Any]:
    """Write all of a Parquet file; the metadata with the digest are returned."""
    import pyarrow.parquet as pq

    with integrity.guarded("the table has a type of column that a Parquet file cannot hold"):
        writer = pq.ParquetWriter(sink, integrity.marked(arrow.schema))
        try:
            writer.write_table(arrow)
        except BaseException:
            sink.muted = True
            writer.close()
            raise
        return integrity.seal_parquet(sink, writer, described)


def _array_text(data: Any, names: list[Any]) -> bytes:
    """A numpy table as CSV, which needs no other library; shortest digits that give the same float64."""
    lines = [",".join(map(str, names))]
    lines += [",".join(map(repr, row)) for row in np.asarray(data, np.float64).reshape(len(data), -1).tolist()]
    return "\n".join([*lines, ""]).encode("utf-8")


def _put(path: str | os.PathLike[str], kind: str, content: memoryview, described: dict[str, Any]) -> None:
    """Give a complete file its name; if that fails, all is as it was."""
    if os.path.isdir(path):
        raise IsADirectoryError(f"{os.fspath(path)} is a folder")
    if kind == "parquet":
        with files.atomic(path) as handle:
            handle.write(content)
        return
    beside = files.sidecar(path)
    old = beside.read_bytes() if beside.exists() else None
    if old is not None and not facts.is_ours(old):
        raise ValueError(f"{beside.name} is not of zil and would be overwritten by the metadata: choose another name")
    try:
        with files.atomic(path) as handle:
            handle.write(content)
            with files.atomic(beside) as side:
                side.write(facts.dumps(described).encode("utf-8"))
    except BaseException:
        if old is None:
            beside.unlink(missing_ok=True)
        elif beside.read_bytes() != old:
            with files.atomic(beside) as side:
                side.write(old)
        raise


def load(path: str | os.PathLike[str]) -> Release:
    """Read what `Release.save` or `Mechanism.release_file` wrote, and verify its digest.

    The digest covers table and metadata.  It notices damage and careless changes, and is no authentication: who changes
    a file on purpose can write a new digest.

    Parameters
    ----------
    path
        A Parquet file, or a CSV file with its ``.json`` beside it.

    Returns
    -------
    Release
        The table is of the kind that was saved; pyarrow if that library is not installed here.

    Raises
    ------
    SchemaError
        No zil metadata (the message says what is missing), or the file was changed or damaged after it was written.
    """
    kind = files.file_format(path)
    if kind == "parquet":
        _arrow.need_pyarrow()
        described = integrity.parquet_metadata(path)
    else:
        described = integrity.csv_metadata(path, files.sidecar(path))
    with open(path, "rb") as handle:
        table = _table(handle.read(), kind, described)
    kept = {key: value for key, value in described.items() if key not in ("names", "arrow_schema")}
    return Release(table, kept)


def _table(content: Any, kind: str, described: dict[str, Any]) -> Any:
    """The table in the bytes of a published file."""
    table = described.get("table") or "pandas"
    types = described.get("arrow_schema")
    result: Any
    if kind == "csv" and table.startswith("numpy") and types is None:
        with integrity.guarded(stored.DAMAGED):
            result = _read_array(content, table)
        count, names = len(result), list(range(result.shape[1] if result.ndim == 2 else 1))
    else:
        _arrow.need_pyarrow()
        model = None if types is None else stored.read_types(types)
        numbers = [str(column["name"]) for column in described["columns"]]
        arrow = _read_parquet(content, model) if kind == "parquet" else stored.read_csv(content, model, numbers)
        count, names = len(arrow), arrow.column_names
        with integrity.guarded(stored.DAMAGED):
            result = _arrow.from_arrow(arrow, table, described.get("names"))
    if count != described["n_rows"]:
        raise SchemaError(f"{integrity.CHANGED}: it has {count} rows and its metadata say {described['n_rows']}")
    noised = {str(column["name"]) for column in described["columns"]}
    if not (table.endswith("1d") or noised <= set(map(str, names))):
        raise SchemaError(f"{integrity.CHANGED}: a noised column is missing")
    return result


def _read_parquet(content: Any, model: Any) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with integrity.guarded(stored.DAMAGED):
        arrow = pq.read_table(pa.BufferReader(pa.py_buffer(content)))
        part = {k: v for k, v in (arrow.schema.metadata or {}).items() if k == _travel.PANDAS}
        arrow = arrow.replace_schema_metadata(part or None)
    return arrow if model is None else stored.restored(arrow, model)


def _read_array(content: Any, kind: str) -> FloatArray:
    with io.BytesIO(content) as handle:
        reader = csvfile.Reader(handle, header=True)
        columns = range(reader.width)
        parts = [np.column_stack([p.numbers(k, reader.names[k]) for k in columns]) for p in reader.batches(ROWS)]
    table = np.concatenate(parts) if parts else np.empty((0, reader.width))
    return table[:, 0] if kind == "numpy-1d" else table
