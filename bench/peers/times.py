"""Dates and times as whole numbers: peers are given categories and numbers only."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def numbers_of_times(table: pa.Table) -> pa.Table:
    """The table with dates as days, and times as seconds, since 1970. Nulls stay.

    >>> from datetime import date, datetime
    >>> made = numbers_of_times(pa.table({"day": [date(1970, 1, 3), None], "at": [datetime(1970, 1, 1, 0, 1), None]}))
    >>> made.to_pydict()
    {'day': [2, None], 'at': [60, None]}
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_temporal(field.type):
            numbers = _stored(table.column(place), field.type)
            table = table.set_column(place, field.name, numbers)
    return table


def times_of_numbers(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The other way: columns that `schema` has as dates or times, and the table as days or seconds.

    Guarantees:
        What `numbers_of_times` made comes back, times to the second.  [test_times_come_back_from_numbers]
    """
    for place, field in enumerate(table.schema):
        kind = schema.field(field.name).type
        if pa.types.is_temporal(kind):
            whole = table.column(place).cast(pa.float64()).cast(pa.int64(), safe=False)
            unit = pa.int32() if pa.types.is_date(kind) else pa.int64()
            as_time = whole.cast(unit).cast(_coarse(kind))
            table = table.set_column(place, field.name, as_time.cast(kind))
    return table


def _stored(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The column as days or seconds; a part of a second is dropped."""
    coarse = _coarse(kind)
    if pa.types.is_timestamp(kind):
        column = pc.floor_temporal(column, unit="second")
    return column.cast(coarse).cast(pa.int32() if pa.types.is_date(kind) else pa.int64()).cast(pa.int64())


def _coarse(kind: pa.DataType) -> pa.DataType:
    """The type that counts days, or seconds."""
    if pa.types.is_date(kind):
        return pa.date32()
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return pa.timestamp("s")
    raise ValueError(f"found a column of {kind}; expected dates, or times without a zone")
