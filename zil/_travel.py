"""What of a table may travel: its columns and their types, and nothing that nobody looked at.

A table carries more than its cells: free-form metadata of its schema, of its fields and of the fields within them; what
pandas wrote about columns that are gone; categories of rows that are gone.  A white list says what stays.  It is what
another program needs to rebuild the same kind of table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any

from zil._validate import SchemaError

PANDAS = b"pandas"
# a kind of column in pandas' words: "int64", "datetime64[ns]", "list[unicode]", "interval[int64, right]"
_KIND = re.compile(r"[A-Za-z0-9_ ,.:/+<>=\[\]()-]{1,100}")
_COLUMN_FACTS = {
    "timezone": str, "encoding": str, "ordered": bool, "precision": int, "scale": int,
}  # fmt: skip
EXTENSIONS = ("pandas.period", "pandas.interval", "arrow.uuid", "arrow.json", "arrow.bool8")


def clean_schema(schema: Any, kept: Sequence[str] | None = None, noised: Collection[str] = ()) -> Any:
    """An Arrow schema with what is on the white list.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the source.
    kept : sequence of str, optional
        Names of the columns that are published, in order; None keeps all.
    noised : collection of str
        Of these, the columns that are published as float64.

    Returns
    -------
    pyarrow.Schema
        The kept fields without metadata, their nested fields too; of the metadata of the whole only what pandas needs
        to rebuild its index and the kinds of its columns.

    Raises
    ------
    SchemaError
        A column of an extension type that is not known to carry nothing else: it is named.
    """
    import pyarrow as pa

    names = list(schema.names) if kept is None else list(kept)
    fields = [
        pa.field(name, pa.float64()) if name in noised else _clean_field(schema.field(name), name) for name in names
    ]
    return pa.schema(fields, metadata=_pandas_part(schema.metadata, names, noised))


def _clean_field(field: Any, name: str) -> Any:
    import pyarrow as pa

    return pa.field(field.name, _clean_type(field.type, name), field.nullable)


def _clean_type(kind: Any, name: str) -> Any:
    """The same type; the metadata of fields within it is gone, and a dictionary within it too."""
    import pyarrow as pa

    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name not in EXTENSIONS:
            raise SchemaError(
                f"column {name!r} has an extension type, which may carry anything: cast it to a plain type"
            )
        return kind
    if types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain_type(kind.value_type, name), kind.ordered)
    return _plain_type(kind, name)


def _plain_type(kind: Any, name: str) -> Any:
    import pyarrow as pa

    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _clean_type(kind, name)
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type, name)
    if types.is_struct(kind):
        return pa.struct([_inner(kind.field(k), name) for k in range(kind.num_fields)])
    if types.is_map(kind):
        return pa.map_(_inner(kind.key_field, name), _inner(kind.item_field, name), kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(_inner(kind.value_field, name), kind.list_size)
    for is_kind, build in (
        (types.is_list, pa.list_),
        (types.is_large_list, pa.large_list),
        (types.is_list_view, pa.list_view),
        (types.is_large_list_view, pa.large_list_view),
    ):
        if is_kind(kind):
            return build(_inner(kind.value_field, name))
    if types.is_nested(kind):
        raise SchemaError(f"column {name!r} has type {kind.id}, which cannot be published")
    return kind


def _inner(field: Any, name: str) -> Any:
    import pyarrow as pa

    return pa.field(field.name, _plain_type(field.type, name), field.nullable)


def _pandas_part(
    stored: dict[bytes, bytes] | None, names: list[str], noised: Collection[str]
) -> dict[bytes, bytes] | None:
    """What pandas wrote about its index and its columns, without attributes and without columns that are gone."""
    try:
        told = json.loads((stored or {})[PANDAS])
        part = {
            "index_columns": [
                entry for entry in map(_index_entry, told["index_columns"]) if isinstance(entry, dict) or entry in names
            ],
            "column_indexes": [_column_entry(entry, ()) for entry in told.get("column_indexes") or []],
            "columns": [
                _column_entry(entry, noised)
                for entry in told["columns"]
                if (entry["field_name"] if "field_name" in entry else entry["name"]) in names
            ],
            "creator": {"library": "pyarrow", "version": _kind(told.get("creator", {}).get("version"))},
            "pandas_version": _kind(told.get("pandas_version")),
        }
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):  # none, or not what pandas writes
        return None
    return {PANDAS: json.dumps(part).encode("utf-8")}


def _kind(value: Any) -> str | None:
    return value if isinstance(value, str) and _KIND.fullmatch(value) else None


def _label(value: Any) -> str | None:
    """A name of a column or an index: text, as pandas writes names."""
    return value if isinstance(value, str) else None


def _index_entry(entry: Any) -> Any:
    """A column that is an index, or a range."""
    if isinstance(entry, str):
        return entry
    numbers = {key: entry[key] for key in ("start", "stop", "step")}
    if entry.get("kind") != "range" or not all(type(number) is int for number in numbers.values()):
        raise ValueError("not a range")
    return {"kind": "range", "name": _label(entry.get("name")), **numbers}


def _column_entry(entry: dict[str, Any], noised: Collection[str]) -> dict[str, Any]:
    field = entry["field_name"] if "field_name" in entry else entry["name"]
    about = entry.get("metadata")
    kinds = {"pandas_type": _kind(entry.get("pandas_type")), "numpy_type": _kind(entry.get("numpy_type"))}
    if field in noised:
        about, kinds = None, {"pandas_type": "float64", "numpy_type": "float64"}
    elif isinstance(about, dict):
        about = {key: about[key] for key, kind in _COLUMN_FACTS.items() if type(about.get(key)) is kind}
    else:
        about = None
    return {"name": _label(entry.get("name")), "field_name": _label(field), **kinds, "metadata": about}


class Categories:
    """Dictionaries of Arrow columns, cut down to the entries that some row has.

    A dictionary may hold entries of rows that were filtered away, and Parquet files keep it whole.  Batches of one
    table share the result, whatever their size: `see` each of them first, then `apply` it to each.
    """

    def __init__(self) -> None:
        self._all: dict[str, Any] = {}  # entries in order of appearance in the dictionaries
        self._used: dict[str, Any] = {}

    def see(self, table: Any) -> None:
        """Note the entries that the rows of ``table`` have."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for name, column in zip(table.column_names, table.columns, strict=True):
            if pa.types.is_dictionary(column.type):
                kind = _clean_type(column.type, name).value_type
                for chunk in column.chunks:
                    known = self._all.setdefault(name, pa.array([], kind))
                    seen = self._used.setdefault(name, pa.array([], kind))
                    entries = chunk.dictionary.cast(kind)
                    indices = pc.unique(chunk.indices).drop_null()
                    self._all[name] = pc.unique(pa.concat_arrays([known, entries])).drop_null()
                    self._used[name] = pc.unique(pa.concat_arrays([seen, entries.take(indices)])).drop_null()

    def apply(self, table: Any) -> Any:
        """The table with the entries that were seen, in the order they had."""
        import pyarrow as pa
        import pyarrow.compute as pc

        for k, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
            kind = _clean_type(column.type, name)
            if not pa.types.is_dictionary(kind):
                if kind != column.type and not isinstance(kind, pa.BaseExtensionType):
                    table = table.set_column(k, pa.field(name, kind, table.field(k).nullable), column.cast(kind))
                continue
            entries, used = (part.get(name, pa.array([], kind.value_type)) for part in (self._all, self._used))
            entries = entries.filter(pc.is_in(entries, value_set=used)) if len(entries) else entries
            chunks = []
            for chunk in column.chunks:
                old = chunk.dictionary.cast(kind.value_type)
                place = pc.index_in(old, value_set=entries) if len(entries) else pa.nulls(len(old), pa.int32())
                indices = place.take(chunk.indices).cast(kind.index_type)
                chunks.append(pa.DictionaryArray.from_arrays(indices, entries, ordered=kind.ordered))
            whole = pa.chunked_array(chunks, pa.dictionary(kind.index_type, kind.value_type, kind.ordered))
            table = table.set_column(k, pa.field(name, whole.type, table.field(k).nullable), whole)
        return table


def clean_table(table: Any) -> Any:
    """An Arrow table with a clean schema and no category that no row has."""
    categories = Categories()
    categories.see(table)
    schema = clean_schema(table.schema)
    return categories.apply(table).replace_schema_metadata(schema.metadata).cast(schema)


def used_categories(native: Any, implementation: Any) -> Any:
    """A pandas, polars or pyarrow table without categories that no row has, and without free-form attributes."""
    if implementation.is_pyarrow():
        return clean_table(native.replace_schema_metadata(None))
    if implementation.is_polars():
        return _used_polars(native)
    return _used_pandas(native) if implementation.is_pandas() else native


def _used_polars(native: Any) -> Any:
    import polars as pl

    for name, kind in native.schema.items():
        if isinstance(kind, pl.Enum):
            present = set(native[name].unique().drop_nulls().to_list())
            used = [entry for entry in kind.categories.to_list() if entry in present]
            if len(used) < len(kind.categories):
                native = native.with_columns(native[name].cast(pl.Enum(used)))
    return native


def _used_pandas(native: Any) -> Any:
    import pandas as pd

    native = native.copy(deep=False)
    native.attrs = {}
    for name in native.columns:
        kind = native[name].dtype
        if isinstance(kind, pd.CategoricalDtype):
            native[name] = native[name].cat.remove_unused_categories()
        elif isinstance(kind, pd.ArrowDtype):
            import pyarrow as pa

            if pa.types.is_nested(kind.pyarrow_dtype) or pa.types.is_dictionary(kind.pyarrow_dtype):
                held = pa.chunked_array(pa.array(native[name].array))
                column = clean_table(pa.table({"": held})).column(0)
                native[name] = pd.Series(pd.arrays.ArrowExtensionArray(column), index=native.index, name=name)
    native.index = _used_index(native.index)
    return native


def _used_index(index: Any) -> Any:
    import pandas as pd

    if isinstance(index, pd.MultiIndex):
        index = index.remove_unused_levels()
        return index.set_levels([_used_index(level) for level in index.levels], verify_integrity=False)
    return index.remove_unused_categories() if isinstance(index, pd.CategoricalIndex) else index


def from_pandas(native: Any) -> Any:
    """A pandas frame as Arrow table; what has no Arrow type is named, and none of its entries."""
    import pyarrow as pa

    for name in native.index.names:
        if not (name is None or isinstance(name, str)):
            raise SchemaError(f"the index name {name!r} is of type {type(name).__name__}; in a file a name is text")
    try:
        return pa.Table.from_pandas(native)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        pass
    for k, name in enumerate(native.columns):
        column = native.iloc[:, k]
        try:
            pa.array(column, from_pandas=True)
        except (pa.ArrowException, ValueError, TypeError, OverflowError):
            raise SchemaError(
                f"column {name!r} of dtype {column.dtype} holds what has no Arrow type (mixed kinds?)"
            ) from None
    raise SchemaError("the index cannot be written: its entries have no Arrow type, or its name is that of a column")


def to_polars(arrow: Any) -> Any:
    """A polars frame; an ordered dictionary is what polars makes of an Enum."""
    import polars
    import pyarrow as pa

    result: Any = polars.from_arrow(arrow)
    result.columns = arrow.column_names  # polars gives a column without a name one
    for name, column in zip(arrow.column_names, arrow.columns, strict=True):
        if pa.types.is_dictionary(column.type) and column.type.ordered and column.num_chunks:
            entries = column.unify_dictionaries().chunk(0).dictionary.to_pylist()
            result = result.with_columns(result[name].cast(polars.String).cast(polars.Enum(entries)))
    return result
