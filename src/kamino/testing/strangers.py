"""Tables that are no neighbours of a table, with the same columns: what a replay must not notice either.

Given its releases, a run may know nothing of its table. A row count that is rounded, or shown as something else, is the
same on two neighbours; on a table that is empty, all null or ten times as long it is not.

>>> table = pa.table({"age": [21, 30, 44], "city": ["Rome", "Oslo", None]})
>>> {name: other.num_rows for name, other in strangers(table).items()}
{'empty': 0, 'all null': 3, 'ten times as long': 30, 'one value': 3, 'rearranged': 3, 'odd cells': 10}

For tests only.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal

import numpy as np
import pyarrow as pa

_LONGER = 10
_ODD_ROWS = 10
_ODD_TEXTS = ("", " ", "?!", "\x00", "\u202e\u0301", "x" * 5_000, "1e999", "2020-02-30", '5"', "a,b\nc", "-0", "NaN")
_ODD_NUMBERS = (math.inf, -math.inf, math.nan, -0.0, 5e-324, 1.7e308, -1.7e308)


def strangers(table: pa.Table) -> Mapping[str, pa.Table]:
    """Return tables with the columns and types of `table` that differ from it in everything else, by name.

    Guarantees:
        Names and types are the table's.  [test_strangers_have_the_columns_of_the_table]
    """
    rng = np.random.default_rng(0)
    size = table.num_rows
    return {
        "empty": table.slice(0, 0),
        "all null": _each(table, lambda column: pa.nulls(size, column.type)),
        "ten times as long": pa.concat_tables([table] * _LONGER),
        "one value": _each(table, lambda column: column.take(pa.array([size - 1] * size, pa.int64()))),
        "rearranged": _each(table, lambda column: column.take(pa.array(rng.permutation(size)))),
        "odd cells": _each(table, lambda column: odd_cells(column.type, _ODD_ROWS)),
    }


def odd_cells(kind: pa.DataType, size: int) -> pa.Array:
    """Return values at the ends of a type, infinities, and text that looks like something else, over and over."""
    if pa.types.is_dictionary(kind):
        return odd_cells(kind.value_type, size).dictionary_encode().cast(kind)
    values = _odd_values(kind)
    return pa.array([values[place % len(values)] for place in range(size)], kind)


def with_invalid_text(table: pa.Table) -> pa.Table:
    """Return the table with one row more, whose text cells are bytes that are no UTF-8; other cells are null."""
    added = {
        field.name: _invalid_text() if pa.types.is_string(field.type) else pa.nulls(1, field.type)
        for field in table.schema
    }
    return pa.concat_tables([table, pa.table(added, schema=table.schema)])


def _invalid_text() -> pa.Array:
    offsets, data = pa.py_buffer(np.array([0, 3], np.int32)), pa.py_buffer(b"\xff\xfe\xc3")
    return pa.Array.from_buffers(pa.string(), 1, [None, offsets, data])


def _odd_values(kind: pa.DataType) -> tuple[object, ...]:
    """What one type can hold and few tables do."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _ODD_TEXTS
    if pa.types.is_floating(kind):
        return _ODD_NUMBERS
    if pa.types.is_integer(kind):
        ends = np.iinfo(kind.to_pandas_dtype())
        return int(ends.min), int(ends.max), 0, 1
    if pa.types.is_boolean(kind):
        return True, None
    if pa.types.is_date(kind):
        return dt.date.min, dt.date.max
    if pa.types.is_timestamp(kind):
        return dt.datetime(1700, 1, 1), dt.datetime(2250, 1, 1)
    if pa.types.is_decimal(kind):
        largest = Decimal(10 ** (kind.precision - kind.scale) - 1)
        return largest, -largest, Decimal(0)
    return (None,)


def _each(table: pa.Table, make: Callable[[pa.ChunkedArray], pa.Array | pa.ChunkedArray]) -> pa.Table:
    return pa.table({name: make(table.column(name)) for name in table.column_names}, schema=table.schema)
