"""Types of pyarrow: what a column was, and how it becomes that again."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from kamino.io.frame_types import kinds
from kamino.schema import Schema

_NOT_NULL = " not null"
_UNITS = ("s", "ms", "us", "ns")
_PLAIN = (
    *(getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *(pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.date32(), pa.date64()),
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.timestamp(unit) for unit in _UNITS),
    *(pa.duration(unit) for unit in _UNITS),
    *(pa.time32(unit) for unit in ("s", "ms")),
    *(pa.time64(unit) for unit in ("us", "ns")),
)
_BY_TEXT = {str(kind): kind for kind in _PLAIN}
_TEXTS = ("string", "large_string", "string_view")
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=([\w/+:-]+)\]")
_DECIMAL = re.compile(r"decimal(128|256)\((\d+), (-?\d+)\)")
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=(u?int\d+), ordered=([01])>")


def types_of(schema: pa.Schema) -> dict[str, str]:
    """The type of each column as text, and whether it may hold nulls."""
    return {each.name: f"{each.type}{'' if each.nullable else _NOT_NULL}" for each in schema}


def sealed_type_of(text: str, plain: pa.DataType) -> str:
    """The type that a column comes back with, of which the sealed table has values of the type `plain`.

    The type of the values of a dictionary, and the width of its indices, follow from the cells: what comes back is a
    dictionary of texts, as they were read.

    >>> sealed_type_of("dictionary<values=int64, indices=int8, ordered=0>", pa.string())
    'dictionary<values=string, indices=int32, ordered=0>'
    """
    mark = _NOT_NULL if text.endswith(_NOT_NULL) else ""
    name = text.removesuffix(_NOT_NULL)
    if not pa.types.is_string(plain) or name in _TEXTS:
        return text
    if name.startswith("dictionary<"):
        return f"dictionary<values=string, indices=int32, ordered={int(name.endswith('ordered=1>'))}>{mark}"
    return f"{plain}{mark}"


def arrow_type(text: str) -> pa.DataType | None:
    """The type that a text names; None if it is none of those that Kamino reads.

    >>> arrow_type("dictionary<values=string, indices=int8, ordered=1>")
    DictionaryType(dictionary<values=string, indices=int8, ordered=1>)
    """
    if text in _BY_TEXT:
        return _BY_TEXT[text]
    if found := _ZONED.fullmatch(text):
        return pa.timestamp(found[1], found[2])
    if found := _DECIMAL.fullmatch(text):
        return (pa.decimal128 if found[1] == "128" else pa.decimal256)(int(found[2]), int(found[3]))
    if found := _DICTIONARY.fullmatch(text):
        values = arrow_type(found[1])
        return None if values is None else pa.dictionary(_BY_TEXT[found[2]], values, ordered=found[3] == "1")
    return None


def to_arrow(table: pa.Table, types: Mapping[str, str], schema: Schema) -> pa.Table:
    """The table with its columns of the types that they came with."""
    fields, columns = [], []
    for name, column in zip(table.column_names, table.columns, strict=True):
        text = types.get(name, "")
        kind = arrow_type(text.removesuffix(_NOT_NULL))
        made = column if kind is None else as_type(column, kind, kinds.categories_in(schema, name))
        columns.append(made)
        fields.append(pa.field(name, made.type, nullable=schema[name].nullable or not text.endswith(_NOT_NULL)))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def as_type(column: pa.ChunkedArray, kind: pa.DataType, categories: tuple[str | int, ...] | None) -> pa.ChunkedArray:
    """The column as another type; as it is if that type cannot hold it."""
    try:
        if pa.types.is_dictionary(kind):
            return _coded(column, kind, categories)
        if column.type != kind and (pa.types.is_duration(kind) or pa.types.is_time(kind)):
            column = column.cast(pa.int32() if pa.types.is_time32(kind) else pa.int64())
        return column if column.type == kind else column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return column


def _coded(
    column: pa.ChunkedArray, kind: pa.DictionaryType, categories: tuple[str | int, ...] | None
) -> pa.ChunkedArray:
    """The column in codes of its categories, in their order; of its own values where it has none."""
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    values = pc.unique(plain).drop_null() if categories is None else pa.array(categories, plain.type)
    codes = pc.index_in(plain, value_set=values).combine_chunks().cast(kind.index_type)
    coded = pa.DictionaryArray.from_arrays(codes, values.cast(kind.value_type), ordered=kind.ordered)
    return pa.chunked_array([coded])
