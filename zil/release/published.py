"""A published table with what an analyst must know about it, on disk and in memory."""

from __future__ import annotations

import base64
import os
from typing import Any

import numpy as np

from zil import _tables, _validate
from zil._validate import FloatArray, SchemaError
from zil.privacy.doubling import double
from zil.privacy.noise import Noise
from zil.release import csvfile, files, registry
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
        values = _tables.to_float(self.data, self.columns)
        scale = self.noise.scales(self.columns)
        stack = double(values, self.metadata["zero_prob"], scale, copies=count, rng=rng, n_threads=n_threads)
        result = [
            _tables.replace(self.data, {name: noisy[:, k] for k, name in enumerate(self.columns)}) for noisy in stack
        ]
        return result[0] if count == 1 else result

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table and its metadata: Parquet (metadata in the footer) or CSV (JSON beside it).

        Parameters
        ----------
        path
            Ends in ``.parquet``, ``.pq`` or ``.csv``; an existing file is replaced in one step.
        """
        kind = files.file_format(path)
        described = {**self.metadata, "names": _tables.column_names(self.data)}
        if kind == "csv" and _tables.kind(self.data).startswith("numpy"):
            _write_array(path, self.data, described)
            return
        arrow = _tables.to_arrow(self.data)
        if kind == "parquet":
            write_parquet(path, arrow, described)
        else:
            _write_csv(path, arrow, described)


def write_parquet(path: str | os.PathLike[str], arrow: Any, described: dict[str, Any]) -> None:
    import pyarrow.parquet as pq

    with files.atomic(path) as handle:
        sink = files.Hashing(handle)
        with pq.ParquetWriter(sink, arrow.schema) as writer:
            writer.write_table(arrow)
            # all pages are written now; what follows is the footer, which holds the digest
            writer.add_key_value_metadata({files.KEY: facts.dumps({**described, **sink.digest()})})


def _write_array(path: str | os.PathLike[str], data: Any, described: dict[str, Any]) -> None:
    """A numpy table as CSV, which needs no other library; shortest digits that give the same float64."""
    lines = [",".join(map(str, described["names"]))]
    lines += [",".join(map(repr, row)) for row in np.asarray(data).reshape(len(data), -1).tolist()]
    with files.atomic(path) as handle:
        sink = files.Hashing(handle)
        sink.write("\n".join([*lines, ""]).encode("utf-8"))
        with files.atomic(files.sidecar(path)) as beside:
            beside.write(facts.dumps({**described, **sink.digest()}).encode("utf-8"))


def _write_csv(path: str | os.PathLike[str], arrow: Any, described: dict[str, Any]) -> None:
    import pyarrow.csv

    with files.atomic(path) as handle:
        sink = files.Hashing(handle)
        pyarrow.csv.write_csv(arrow, sink)
        # the types of the columns are lost in a CSV file; they are part of the schema, not of the data
        types = base64.b64encode(arrow.schema.serialize().to_pybytes()).decode("ascii")
        text = facts.dumps({**described, "arrow_schema": types, **sink.digest()})
        with files.atomic(files.sidecar(path)) as beside:
            beside.write(text.encode("utf-8"))


def load(path: str | os.PathLike[str]) -> Release:
    """Read what `Release.save` or `Mechanism.release_file` wrote, and verify its digest.

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
        No zil metadata, or the file was changed after it was released.
    """
    if files.file_format(path) == "parquet":
        described, arrow = _read_parquet(path)
    else:
        described = _read_sidecar(path)
        if str(described.get("table")).startswith("numpy") and "arrow_schema" not in described:
            described.pop("names", None)
            return Release(_read_array(path, described["table"]), described)
        arrow = _read_csv(path, described)
    names = described.pop("names", None)
    return Release(_tables.from_arrow(arrow, described.get("table") or "pandas", names), described)


def _read_parquet(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Any]:
    _tables.need_pyarrow()
    import pyarrow.parquet as pq

    described = files.footer(path)
    files.verify(path, described, whole=False)
    with open(path, "rb") as handle:
        arrow = pq.read_table(handle)
    kept = {k: v for k, v in (arrow.schema.metadata or {}).items() if k != files.KEY}
    return described, arrow.replace_schema_metadata(kept or None)


def _read_sidecar(path: str | os.PathLike[str]) -> dict[str, Any]:
    beside = files.sidecar(path)
    if not beside.exists():
        if not os.path.exists(path):
            raise FileNotFoundError(f"no such file: {os.fspath(path)}")
        raise SchemaError(f"no metadata beside the CSV file: {beside.name} is missing")
    described = facts.loads(beside.read_bytes())
    files.verify(path, described, whole=True)
    return described


def _read_array(path: str | os.PathLike[str], kind: str) -> FloatArray:
    with open(path, "rb") as handle:
        reader = csvfile.Reader(handle, header=True)
        columns = range(reader.width)
        parts = [np.column_stack([p.numbers(k, reader.names[k]) for k in columns]) for p in reader.batches(ROWS)]
    table = np.concatenate(parts) if parts else np.empty((0, reader.width))
    return table[:, 0] if kind == "numpy-1d" else table


def _read_csv(path: str | os.PathLike[str], described: dict[str, Any]) -> Any:
    _tables.need_pyarrow()
    import pyarrow as pa
    import pyarrow.csv

    types = described.pop("arrow_schema", None)
    schema = None
    plain = {str(column["name"]): pa.float64() for column in described["columns"]}
    if types is not None:
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(types)))
        plain = {f.name: f.type for f in schema if not pa.types.is_dictionary(f.type)}
    options = pyarrow.csv.ConvertOptions(
        column_types=plain, strings_can_be_null=schema is not None, quoted_strings_can_be_null=False
    )
    arrow = pyarrow.csv.read_csv(path, convert_options=options)
    if schema is not None:
        arrow = arrow.cast(schema)
    return arrow
