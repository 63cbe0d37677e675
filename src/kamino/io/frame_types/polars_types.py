"""Types of polars: what a column was, and how it becomes that again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from kamino.io.frame_types import kinds
from kamino.schema import Schema

_SPAN = re.compile(r"Duration\(time_unit='(ms|us|ns)'\)")
_ENUM, _CATEGORICAL, _LEXICAL = "Enum", "Categorical", "Categorical lexical"
_TEXTS = ("String", _ENUM, _CATEGORICAL, _LEXICAL)


def types_of(columns: Mapping[str, Any]) -> dict[str, str]:
    """The type of each column as text; of an Enum without its categories, which the schema has."""
    return {name: _text(str(kind)) for name, kind in columns.items()}


def _text(kind: str) -> str:
    # Older versions write how a Categorical is ordered, newer ones do not know it.
    if kind.startswith(f"{_CATEGORICAL}("):
        return _LEXICAL if "lexical" in kind else _CATEGORICAL
    return _ENUM if kind.startswith(f"{_ENUM}(") else kind


def sealed_type_of(text: str, plain: pa.DataType) -> str:
    """The type that a column comes back with, of which the sealed table has values of the type `plain`.

    >>> sealed_type_of("Categorical", pa.string()), sealed_type_of("Null", pa.string())
    ('Categorical', 'String')
    """
    return text if not pa.types.is_string(plain) or text in _TEXTS else "String"


def domains_of(columns: Mapping[str, Any]) -> dict[str, tuple[str, ...] | tuple[int, ...]]:
    """The categories of the columns whose type lists them."""
    listed = {name: kind.categories.to_list() for name, kind in columns.items() if str(kind).startswith(f"{_ENUM}(")}
    found = {name: kinds.plain_domain(values) for name, values in listed.items()}
    return {name: values for name, values in found.items() if values is not None}


def to_polars(table: pa.Table, types: Mapping[str, str], schema: Schema) -> Any:
    """The table as a data frame with its columns of the types that they came with."""
    import polars

    frame = polars.DataFrame({name: _plain(polars, table.column(name)) for name in table.column_names})
    cast = {name: _type(polars, types.get(name, ""), kinds.categories_in(schema, name)) for name in frame.columns}
    for name, kind in cast.items():
        if kind is not None and frame.schema[name] != kind:
            frame = frame.with_columns(_cast(polars, frame[name], kind))
    return frame


def _cast(polars: Any, column: Any, kind: Any) -> Any:
    """The column as another type. A value that the type cannot hold, such as a time after midnight, becomes null."""
    for strict in (True, False):
        try:
            return column.cast(kind, strict=strict)
        except polars.exceptions.PolarsError:
            continue
    return column


def _plain(polars: Any, column: pa.ChunkedArray) -> Any:
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return polars.from_arrow(plain)


def _type(polars: Any, text: str, categories: tuple[str | int, ...] | None) -> Any:
    """The type that a text names; None if the column is to stay as it is."""
    if text == _ENUM:
        texts = categories is not None and all(isinstance(value, str) for value in categories)
        return polars.Enum(list(categories or ())) if texts else None
    if found := _SPAN.fullmatch(text):
        return polars.Duration(found[1])
    if text in (_CATEGORICAL, _LEXICAL):
        texts = categories is None or all(isinstance(value, str) for value in categories)
        made = polars.Categorical if text == _CATEGORICAL else polars.Categorical("lexical")
        return made if texts else None
    kind = getattr(polars, text, None) if text.isidentifier() else None
    return kind if isinstance(kind, type) and issubclass(kind, polars.DataType) else None
