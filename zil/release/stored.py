"""How an Arrow table becomes the text of a CSV file, and comes back with its types.

A CSV file has neither types nor categories: they go into the metadata, as an Arrow stream that holds the schema and the
dictionaries and no row.  Parquet keeps most types, but no categories other than text, nor their order; there the same
stream is used.  An empty field is missing and ``""`` is the empty text; ``nan`` is a number that is none.
"""

from __future__ import annotations

import base64
import csv
import io
from typing import Any

from zil._validate import SchemaError
from zil.release import csvfile, kinds
from zil.release.integrity import guarded

ROWS = 65_536  # that are looked at at a time
DAMAGED = "the file cannot be read: it is damaged, or not what the metadata describe"
WIDER = {"halffloat": "float", "duration": "int64", "null": "string", "date64[ms]": "date32"}


def types_text(arrow: Any) -> str:
    """Schema and dictionaries as text."""
    import pyarrow as pa

    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, arrow.schema) as writer:
        arrays = [_no_rows(column) for column in arrow.columns]
        writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=arrow.schema))
    return base64.b64encode(sink.getvalue()).decode("ascii")


def _no_rows(column: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        entries = dictionary(column)
        if entries is not None:
            return pa.DictionaryArray.from_arrays(
                pa.array([], column.type.index_type), entries, ordered=column.type.ordered
            )
    return column.slice(0, 0).combine_chunks()


def dictionary(column: Any) -> Any:
    """The one dictionary of a column, or None."""
    chunks = column.unify_dictionaries().chunks
    return chunks[0].dictionary if chunks else None


def read_types(text: str) -> Any:
    """A table without rows that has the schema and the dictionaries; format 1 has the schema alone."""
    import pyarrow as pa

    with guarded(DAMAGED):
        return pa.ipc.open_stream(base64.b64decode(text, validate=True)).read_all()


def _text_type(kind: Any, name: str) -> Any:
    """The type as which a column of type ``kind`` is written to a CSV file and read again."""
    import pyarrow as pa

    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return _text_type(kind.storage_type, name)
    if types.is_dictionary(kind):
        return _text_type(kind.value_type, name)
    if types.is_duration(kind):
        return pa.int64()
    binary = types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    if binary or types.is_binary_view(kind) or types.is_nested(kind) or types.is_run_end_encoded(kind):
        raise SchemaError(f"column {name!r} has type {kind}, which a CSV file cannot hold: save it as Parquet")
    if types.is_string_view(kind) or types.is_large_string(kind):
        return pa.string()
    return pa.type_for_alias(WIDER[str(kind)]) if str(kind) in WIDER else kind


def csv_text(arrow: Any) -> bytes:
    """The table as CSV: texts in quotes, lines that end with a line feed.

    Raises
    ------
    SchemaError
        A column of a type that has no text: it is named.
    """
    import pyarrow as pa
    import pyarrow.csv

    columns = []
    for name, column in zip(arrow.column_names, arrow.columns, strict=True):
        with guarded(f"column {name!r} of type {column.type} cannot be written to a CSV file"):
            kind = _text_type(column.type, name)
            columns.append(_storage(column).cast(kind))
    top = io.StringIO(newline="")
    csv.writer(top, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow(arrow.column_names)
    sink = io.BytesIO(top.getvalue().encode("utf-8"))
    sink.seek(0, io.SEEK_END)
    plain = pa.table(columns, names=[str(k) for k in range(len(columns))])
    with guarded("the table cannot be written to a CSV file"):
        pyarrow.csv.write_csv(plain, sink, write_options=pyarrow.csv.WriteOptions(include_header=False))
    return sink.getvalue()


def _storage(column: Any) -> Any:
    import pyarrow as pa

    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([chunk.dictionary_decode() for chunk in column.chunks], column.type.value_type)
    return column


def header(data: Any) -> tuple[list[str], int]:
    """Names in the first record of a CSV file, and where the records after it begin."""
    block = bytes(data[: 1 << 20])
    end, inside = 0, False
    while end < len(block):
        end = _minus(block.find(b"\n", end), len(block) - 1) + 1
        inside = block.count(b'"', 0, end) % 2 == 1
        if not inside:
            break
    with guarded(DAMAGED):
        if inside:
            raise SchemaError(DAMAGED)
        text = block[:end].decode("utf-8-sig")
        return next(csv.reader([text] if text.strip("\r\n") else ['""'], strict=True)), end


def _minus(found: int, instead: int) -> int:
    return instead if found < 0 else found


def read_csv(data: Any, types: Any, numbers: list[str]) -> Any:
    """The bytes of a CSV file as an Arrow table.

    Parameters
    ----------
    data : bytes-like
    types : pyarrow.Table or None
        What `read_types` gives; without it (a file as `release_file` wrote it) the columns ``numbers`` are numbers and
        the others whole numbers, numbers or text.
    numbers : list of str
        Names of the noised columns.

    Without types a column that is not noised becomes numbers only if every field plainly is one (`kinds.Column`).
    """
    import pyarrow as pa
    import pyarrow.csv

    names, start = header(data)
    if types is None:
        columns = {name: pa.float64() if name in numbers else pa.string() for name in names}
        if not set(numbers) <= set(names):
            raise SchemaError(f"{DAMAGED}: a noised column is missing")
        convert = pyarrow.csv.ConvertOptions(
            column_types=columns, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
        )
    else:
        if names != types.column_names:
            raise SchemaError(f"{DAMAGED}: its column names differ")
        names = [str(k) for k in range(len(names))]  # whatever they are: empty, say
        convert = pyarrow.csv.ConvertOptions(
            column_types={str(k): _text_type(field.type, field.name) for k, field in enumerate(types.schema)},
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=["", *(["nan", "NaN"] if _is_format_1(types) else [])],
        )
    with guarded(DAMAGED):
        if start >= len(data):
            arrow = pa.table({name: pa.array([], convert.column_types.get(name, pa.null())) for name in names})
        else:
            arrow = pyarrow.csv.read_csv(
                pa.BufferReader(pa.py_buffer(data).slice(start)),
                read_options=pyarrow.csv.ReadOptions(column_names=names),
                parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=len(names) > 1),
                convert_options=convert,
            )
        if types is None:
            return _plainly(arrow, data, start, [name for name in names if name not in numbers])
    return restored(arrow.rename_columns(types.column_names), types)


def _plainly(arrow: Any, data: Any, start: int, passed: list[str]) -> Any:
    """The text columns ``passed``, as whole numbers or numbers where every field plainly is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = {name: kinds.Column() for name in passed}
    if not passed:
        return arrow
    if bytes(data).find(b'"', start) >= 0:  # a number in quotation marks is text, and Arrow does not tell
        with io.BytesIO(data) as handle:
            reader = csvfile.Reader(handle, header=True)
            for part in reader.batches(ROWS):
                for name, column in found.items():
                    column.look(part.fields(reader.names.index(name)))
    else:
        for name, column in found.items():
            column.look((entry or "").encode("utf-8") for entry in pc.unique(arrow.column(name)).to_pylist())
    for name, column in found.items():
        if column.kind != "text":
            place = arrow.column_names.index(name)
            kind = pa.int64() if column.kind == "integer" else pa.float64()
            arrow = arrow.set_column(place, name, arrow.column(name).cast(kind))
    return arrow


def _is_format_1(types: Any) -> bool:
    return not any(column.num_chunks for column in types.columns)


def restored(arrow: Any, types: Any) -> Any:
    """The columns with the types, categories and metadata of the table ``types``, which has no rows."""
    import pyarrow as pa

    if arrow.column_names != types.column_names:
        raise SchemaError(f"{DAMAGED}: its column names differ")
    columns = []
    with guarded(DAMAGED):
        for column, model in zip(arrow.columns, types.columns, strict=True):
            columns.append(column if _complete(column, model) else _typed(column, model))
        return pa.table(columns, schema=types.schema)


def _complete(column: Any, model: Any) -> bool:
    import pyarrow as pa

    if column.type != model.type:
        return False
    return not pa.types.is_dictionary(model.type) or not model.num_chunks


def _typed(column: Any, model: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = model.type
    if pa.types.is_dictionary(kind):
        entries = model.chunk(0).dictionary if model.num_chunks else pc.unique(column).drop_null()
        plain = _storage(column).cast(kind.value_type)
        places = pc.index_in(plain, value_set=entries.cast(kind.value_type)).combine_chunks()
        if places.null_count != plain.null_count:
            raise SchemaError(f"{DAMAGED}: an entry is none of its categories")
        return pa.DictionaryArray.from_arrays(places.cast(kind.index_type), entries, ordered=kind.ordered)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, _storage(column).cast(kind.storage_type).combine_chunks())
    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    return column.cast(kind)
