"""Bring any Arrow table to the few column types the rest of Kamino knows.

What comes out: `int8` to `uint64`, `float32`, `float64`, `decimal128`, `decimal256`, `bool`, `string`,
`date32` and `timestamp` (with or without a zone). Encodings (dictionary, large and view strings, run-end) are
undone; a type that holds no single comparable value (list, binary, duration, ...) is refused by name.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.errors import InputError
from kamino.io.odd_cells import readable_text, spelled_dictionary, whole_days
from kamino.schema.dtypes import plain_decimal

FIRST_DAY = datetime.date(1, 1, 1)
LAST_DAY = datetime.date(9999, 12, 31)
_NO_SHIFT = ("UTC", "Etc/UTC", "Z", "+00:00", "GMT")


def normalise_table(
    table: pa.Table, *, where: str, nan_is_null: bool = False, private: bool = False, ticks: bool = False
) -> pa.Table:
    """Return `table` with plain types, unique names and no metadata; `where` starts each error message.

    With `nan_is_null`, a float NaN becomes null: in pandas it is the mark of a missing value. With `private`, a cell
    that its column cannot hold (a date outside the calendar, a date64 with a time, bytes that are not UTF-8) becomes
    null instead of an error, which would tell that there is one; what is in a dictionary becomes text, since one 2.5
    makes floats of all numbers. With `ticks`, durations and times of day become whole numbers of their unit. A column
    that is declared without nulls stays so.

    Guarantees:
        - Only the types named above come out.  [test_types_that_come_out]
        - No value changes but by an exact cast.  [test_normalising_keeps_values]
        - A second pass changes nothing.  [test_normalising_twice_changes_nothing]
        - With `private`, no cell decides a type or an error.  [test_odd_cells_become_null]
    """
    check_names(table.column_names, where=where)
    columns, fields = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        plain = _plain_column(column, place=f"{where}: column '{field.name}'", private=private, ticks=ticks)
        if nan_is_null and pa.types.is_floating(plain.type):
            plain = pc.if_else(pc.is_nan(plain), pa.scalar(None, plain.type), plain)
        columns.append(plain)
        fields.append(pa.field(field.name, plain.type, nullable=field.nullable))
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


# Says which columns of a table with these names are read.
Choose = Callable[[list[str]], list[str]]


def every_column(names: list[str]) -> list[str]:
    """Choose all."""
    return names


def chosen_columns(table: pa.Table, choose: Choose, *, where: str) -> pa.Table:
    """The columns that are read; of any other, its type does not matter.  [test_what_is_left_out_may_have_any_type]"""
    if choose is every_column:
        return table
    check_names(table.column_names, where=where)
    return table.select(choose(table.column_names))


def check_names(names: Sequence[str], *, where: str) -> None:
    """Refuse a table without columns, or with a column name that is empty or used twice."""
    if not names:
        raise InputError(f"{where}: found no columns, expected at least one. Check that this is the table you mean.")
    repeated = [name for name, count in Counter(names).items() if count > 1 and name]
    if repeated:
        listed = ", ".join(f"'{name}'" for name in repeated)
        occur = "occurs" if len(repeated) == 1 else "occur"
        raise InputError(f"{where}: column names must differ, but {listed} {occur} more than once. Rename one of each.")
    if "" in names:
        position = list(names).index("") + 1
        raise InputError(
            f"{where}: column {position} has no name. Give it one, or drop it "
            "(pandas writes such a column unless you say index=False)."
        )


def in_calendar(column: pa.ChunkedArray) -> bool:
    """Say whether every date or timestamp lies in the years 1 to 9999, the range Python and SQL agree on.

    With a zone other than UTC it is a day less at both ends, since the local time has to lie in the range too.
    """
    if _is_always_inside(column.type):
        return True
    found, (first, last) = pc.min_max(column.cast(_ticks_of(column.type))).as_py(), _calendar(column.type)
    return found["min"] is None or bool(first <= found["min"] and found["max"] <= last)


def _is_always_inside(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")


def _ticks_of(kind: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_date32(kind) else pa.int64()


def _calendar(kind: pa.DataType) -> tuple[int, int]:
    """The first and the last number of a date or timestamp that lies in the calendar."""
    epoch = datetime.date(1970, 1, 1)
    first, last = ((day - epoch).days for day in (FIRST_DAY, LAST_DAY))
    if pa.types.is_date32(kind):
        return first, last
    per_day = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000}[kind.unit]
    margin = 0 if kind.tz in (None, *_NO_SHIFT) else 1
    return (first + margin) * per_day, (last + 1 - margin) * per_day - 1


def _without_strange_days(column: pa.ChunkedArray) -> pa.ChunkedArray:
    ticks, (first, last) = column.cast(_ticks_of(column.type)), _calendar(column.type)
    inside = pc.and_(pc.greater_equal(ticks, first), pc.less_equal(ticks, last))
    return pc.if_else(inside, column, pa.scalar(None, column.type))


def _plain_column(column: pa.ChunkedArray, *, place: str, private: bool, ticks: bool) -> pa.ChunkedArray:
    column = _decode(column, private=private)
    column = _ticks(column) if ticks else column
    kind = column.type
    target = _plain_type(kind)
    if target is None:
        raise InputError(
            f"{place} has type {kind}, which Kamino cannot compare. Cast it to a number, string, date or "
            "timestamp, or leave the column out."
        )
    if pa.types.is_date64(kind):
        column = _days(column, place=place, private=private)
    elif target != kind:
        column = pc.cast(column, target)
    if pa.types.is_string(target):
        return _text(column, place=place, private=private)
    if (pa.types.is_date(target) or pa.types.is_timestamp(target)) and not in_calendar(column):
        if private:
            return _without_strange_days(column)
        raise InputError(
            f"{place} has a date outside the years 1 to 9999 (perhaps 'infinity'). Replace such dates by "
            "null or by a date within the range."
        )
    return column


def _ticks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Durations and times of day as whole numbers of their unit; any other column as it is."""
    if pa.types.is_time32(column.type):
        column = column.cast(pa.int32())
    is_span = pa.types.is_duration(column.type) or pa.types.is_time64(column.type)
    return column.cast(pa.int64()) if is_span else column


def _days(column: pa.ChunkedArray, *, place: str, private: bool) -> pa.ChunkedArray:
    days, odd = whole_days(column)
    if odd and not private:
        raise InputError(f"{place} has a date64 that is not at midnight. Cast the column to a timestamp.")
    return days


def _text(column: pa.ChunkedArray, *, place: str, private: bool) -> pa.ChunkedArray:
    readable = readable_text(column)
    if readable is None:
        return column
    if private:
        return readable
    raise InputError(f"{place} has text that is not UTF-8. Write it again as UTF-8, or leave the column out.")


def _decode(column: pa.ChunkedArray, *, private: bool) -> pa.ChunkedArray:
    """Undo extension, dictionary and run-end encodings, however they are nested."""
    while (decoded := _outermost_decoded(column, private=private)) is not column:
        column = decoded
    return column


def _outermost_decoded(column: pa.ChunkedArray, *, private: bool) -> pa.ChunkedArray:
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return _uuid_text(column)
        return pa.chunked_array([chunk.storage for chunk in column.chunks], type=kind.storage_type)
    if pa.types.is_dictionary(kind):
        return spelled_dictionary(column) if private else pc.cast(column, kind.value_type)
    if pa.types.is_run_end_encoded(kind):
        return pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], type=kind.value_type)
    return column


def _uuid_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Spell 16-byte identifiers as SQL does: 8-4-4-4-12 hexadecimal digits."""
    chunks = []
    for chunk in column.chunks:
        storage = chunk.storage
        filled = pc.fill_null(storage, pa.scalar(bytes(16), storage.type))
        raw = b"".join(filled.to_pylist()).hex().encode()
        digits = np.frombuffer(raw, dtype="S1").reshape(len(chunk), 32)
        text = np.full((len(chunk), 36), b"-", dtype="S1")
        text[:, [i for i in range(36) if i not in (8, 13, 18, 23)]] = digits
        spelled = pa.array(text.view("S36").ravel().astype(str), pa.string())
        chunks.append(pc.if_else(pc.is_valid(storage), spelled, pa.scalar(None, pa.string())))
    return pa.chunked_array(chunks, type=pa.string())


def _plain_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type a column of type `kind` is cast to, or None when there is none."""
    types = pa.types
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_timestamp(kind):
        return kind
    if types.is_floating(kind):
        return pa.float32() if types.is_float16(kind) else kind
    if types.is_decimal(kind):
        return plain_decimal(kind)
    if types.is_date(kind):
        return pa.date32()
    if types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind) or str(kind) == "string_view":
        return pa.string()
    return None
