"""Types of pandas: what a column was, and how it becomes that again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.io.frame_types import kinds
from kamino.io.frame_types.arrow_types import arrow_type, as_type
from kamino.io.frame_types.arrow_types import sealed_type_of as sealed_arrow_type
from kamino.io.spelling_cells import spell
from kamino.schema import Schema

_CATEGORY = re.compile(
    r"category(?:\[([\w-]+|(?:interval|period|datetime64)\[[^\]]+\](?:, \w+\])?)(, ordered)?\])?(, ordered)?"
)
_INTERVAL = re.compile(r"[\[(](.+), (.+)[\])]")
_SPAN = re.compile(r"timedelta64\[(s|ms|us|ns)\]")
_PERIOD = re.compile(r"period\[([\w-]+)\]")
_OBJECTS = re.compile(r"object\[(.+)\]")
_NULLABLE = re.compile(r"(U?Int(8|16|32|64)|Float(32|64)|boolean|str)")
_STRING = re.compile(r"string:(python|pyarrow)")
_BY_ARROW = "[pyarrow]"
# Types of text. The first is what pandas itself gives to texts: objects in version 2, a type of its own since.
_TEXTS = ("str", "string:python", "string:pyarrow", "large_string[pyarrow]", "string_view[pyarrow]")
_PLAIN = re.compile(r"(u?int(8|16|32|64)|float(16|32|64)|bool|datetime64\[(s|ms|us|ns)(, [\w/+:-]+)?\])")
# What numpy's types without a null become where nulls are possible.
_WITH_NULLS = {"bool": "boolean", **{f"{s}int{b}": f"{s.upper()}Int{b}" for s in ("", "u") for b in (8, 16, 32, 64)}}
_NO_TIME = np.iinfo(np.int64).min


def trusted_types_of(frame: Any) -> dict[str, str]:
    """The type of each column as text; of objects with the type that holds them all, which depends on the cells."""
    kinds = types_of(frame)
    objects = [place for place, kind in enumerate(kinds.values()) if kind == "object"]
    return kinds | {str(frame.columns[place]): _text_of_objects(frame.iloc[:, place]) for place in objects}


def types_of(frame: Any) -> dict[str, str]:
    """The type of each column as text; of a category with the type of its values, and whether it is ordered."""
    return {str(name): _text(kind) for name, kind in zip(frame.columns, frame.dtypes, strict=True)}


def sealed_type_of(text: str, plain: pa.DataType) -> str:
    """The type that a column comes back with, of which the sealed table has values of the type `plain`.

    The values of a category are of any type, and so are objects: what comes back are texts, as they were read.

    >>> sealed_type_of("category[int64, ordered]", pa.string()), sealed_type_of("object", pa.string())
    ('category, ordered', 'str')
    """
    if not pa.types.is_string(plain) or text in _TEXTS:
        return text
    if text.startswith("category"):
        return "category, ordered" if text.rstrip("]").endswith(", ordered") else "category"
    if text.endswith(_BY_ARROW):
        return sealed_arrow_type(text.removesuffix(_BY_ARROW), plain) + _BY_ARROW
    return _TEXTS[0]


def _text_of_objects(series: Any) -> str:
    try:
        return f"object[{pa.array(series, from_pandas=True).type}]"
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return "object"


def _text(kind: Any) -> str:
    if str(kind) == "category":
        return f"category[{kind.categories.dtype}{', ordered' if kind.ordered else ''}]"
    if hasattr(kind, "pyarrow_dtype"):
        return f"{kind.pyarrow_dtype}{_BY_ARROW}"
    return f"string:{kind.storage}" if str(kind) == "string" else str(kind)


def never_null(frame: Any) -> tuple[bool, ...]:
    """For each column, whether its type has no null."""
    return tuple(str(kind) in _WITH_NULLS for kind in frame.dtypes)


def has_spans(kind: Any) -> bool:
    """Whether a type is a category of intervals or periods, which are read as their texts."""
    return str(kind) == "category" and str(kind.categories.dtype).startswith(("interval", "period"))


def domains_of(frame: Any, *, trusted: bool) -> dict[str, tuple[str, ...] | tuple[int, ...]]:
    """The categories of the columns whose type lists them; if `trusted`, also those that cells may have made.

    These are categories without an order, which `astype("category")` makes, and intervals, which `pandas.cut` makes.
    """
    found = {}
    for name, kind in zip(frame.columns, frame.dtypes, strict=True):
        if str(kind) == "category" and (trusted or (kind.ordered and not has_spans(kind))):
            listed = kind.categories.tolist()
            values = kinds.plain_domain([spell(value) for value in listed] if has_spans(kind) else listed)
            # Text that is not UTF-8 cannot be listed.
            if values is not None and all(spell(value) is not None for value in values):
                found[str(name)] = values
    return found


def to_pandas(table: pa.Table, types: Mapping[str, str], schema: Schema) -> Any:
    """The table as a data frame with a plain index, its columns of the types that they came with."""
    import pandas

    columns = {
        name: _column(pandas, table.column(name), types.get(name, ""), name, schema) for name in table.column_names
    }
    return pandas.DataFrame(columns, index=pandas.RangeIndex(table.num_rows))


def _column(pandas: Any, column: pa.ChunkedArray, text: str, name: str, schema: Schema) -> Any:
    """One column as its type says; as pyarrow turns it where the type does not hold it."""
    if pa.types.is_dictionary(column.type) and not text.startswith("category"):
        column = column.cast(column.type.value_type)
    try:
        made = _as_type(pandas, column, text, name, schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        made = None
    return column.to_pandas() if made is None else made


def _as_type(pandas: Any, column: pa.ChunkedArray, text: str, name: str, schema: Schema) -> Any:
    if found := _CATEGORY.fullmatch(text):
        is_ordered = found[2] is not None or found[3] is not None
        return _category(pandas, column, kinds.categories_in(schema, name), found[1] or "", ordered=is_ordered)
    if found := _SPAN.fullmatch(text):
        return pandas.Series(_ticks(column).view(f"m8[{found[1]}]"))
    if found := _PERIOD.fullmatch(text):
        kind = pandas.PeriodDtype(found[1])
        return pandas.Series(pandas.arrays.PeriodArray(_ticks(column), dtype=kind))
    if found := _STRING.fullmatch(text):
        return pandas.Series(pandas.arrays.ArrowExtensionArray(column)).astype(pandas.StringDtype(found[1]))
    if text.endswith(_BY_ARROW):
        kind = arrow_type(text.removesuffix(_BY_ARROW))
        held = None if kind is None else as_type(column, kind, None)
        return None if held is None else pandas.Series(pandas.arrays.ArrowExtensionArray(held))
    if found := _OBJECTS.fullmatch(text):
        kind = arrow_type(found[1])
        held = None if kind is None else as_type(column, kind, None)
        return None if held is None else pandas.Series(held.to_pylist(), dtype=object)
    if text in ("object", "str") and pa.types.is_string(column.type):
        return pandas.Series(column.to_pylist(), dtype=object if text == "object" else _own_text(pandas))
    if schema[name].nullable:
        text = _WITH_NULLS.get(text, text)
    if _NULLABLE.fullmatch(text):
        return pandas.Series(pandas.arrays.ArrowExtensionArray(column)).astype(text)
    return column.to_pandas().astype(text) if _PLAIN.fullmatch(text) else None


def _own_text(pandas: Any) -> Any:
    """The type that pandas gives to texts."""
    return pandas.Series([""]).dtype


def _ticks(column: pa.ChunkedArray) -> Any:
    whole = column.cast(pa.int64())
    return np.array(pc.fill_null(whole, _NO_TIME).to_numpy())


def _category(pandas: Any, column: pa.ChunkedArray, values: Any, kind: str, *, ordered: bool) -> Any:
    """A category with all values of the domain, in its order; of the values that occur where there is no domain."""
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    listed = pc.unique(plain).drop_null().sort() if values is None else pa.array(values, plain.type)
    codes = pc.fill_null(pc.index_in(plain, value_set=listed), -1).to_numpy()
    index = _index(pandas, listed.to_pylist(), kind)
    return pandas.Series(pandas.Categorical.from_codes(codes, dtype=pandas.CategoricalDtype(index, ordered=ordered)))


def _index(pandas: Any, values: list[Any], kind: str) -> Any:
    """The values as an index of a type; of the type that pandas gives to them where none is named."""
    if not kind:
        texts = all(isinstance(value, str) for value in values)
        return pandas.Index(values, dtype=_own_text(pandas) if texts else None)
    try:
        index = _values(pandas, values, kind).astype(kind)
    except (TypeError, ValueError, OverflowError):
        return pandas.Index(values)
    # Numbers that texts stand for are exact, or the texts stay.
    return index if [spell(value) for value in index.tolist()] == [spell(value) for value in values] else values


def _values(pandas: Any, values: list[Any], kind: str) -> Any:
    """Values, or those that texts stand for and no cast reads: intervals, and the two that every text is cast to."""
    if kind == "bool":
        return pandas.Index([value in (True, "True") for value in values], dtype=object)
    if not kind.startswith("interval"):
        return pandas.Index(values, dtype=object)
    ends = [found.groups() for found in map(_INTERVAL.fullmatch, values) if found]
    bound = pandas.Timestamp if "datetime64" in kind else float
    closed = pandas.api.types.pandas_dtype(kind).closed
    return pandas.IntervalIndex.from_tuples([(bound(low), bound(high)) for low, high in ends], closed=closed)
