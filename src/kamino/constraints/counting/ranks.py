"""Columns as ranks: whole numbers that compare as the values do, with -1 for null.

Comparing ranks is exact for every type: 64-bit integers, decimals and floats are never pushed through each other.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kamino.constraints.tree import Constant, Operator
from kamino.schema.coding.joint_codes import number_values

Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NULL = -1


class RankedTable:
    """A table whose columns are turned into ranks when first asked for.

    Holds private values: its `repr` shows none, and it never leaves the counting of violations.
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self._names = frozenset(table.column_names)
        self._columns: dict[str, Any] = {}
        self._ranks: dict[tuple[str, ...], tuple[tuple[npt.NDArray[np.signedinteger[Any]], ...], int]] = {}
        self._sorted: dict[str, pa.Array] = {}
        self._views: dict[str, _View] = {}

    def __repr__(self) -> str:
        return f"RankedTable({self.num_rows} rows)"

    @property
    def num_rows(self) -> int:
        """How many rows the table has."""
        return int(self._table.num_rows)

    def is_null(self, name: str) -> Mask:
        """Which rows have no value; NaN is no value."""
        return _missing(self._column(name))

    def ranks(self, name: str, other: str | None = None) -> tuple[Codes, Codes, int]:
        """Ranks of `name` and of `other` on one scale, and the size of the scale.

        Guarantees:
            Two ranks compare as the two values do.  [test_ranks_compare_as_values]
            No value is too large to be compared with another.  [test_a_day_that_nanoseconds_cannot_hold]
        """
        names = (name,) if other in (None, name) else (name, str(other))
        if names not in self._ranks:
            columns = [self._column(each) for each in names]
            ranks, size = _rank_together(columns)
            # Ranks are kept in half the room where they fit, and handed out as what numbers are computed in.
            narrow = np.int32 if size <= np.iinfo(np.int32).max else np.int64
            self._ranks[names] = tuple(codes.astype(narrow, copy=False) for codes in ranks), size
        kept, size = self._ranks[names]
        first = kept[0].astype(np.int64)
        return first, first if len(kept) == 1 else kept[1].astype(np.int64), size

    def compare_constant(self, name: str, op: Operator, constant: Constant, rows: Codes | None = None) -> Mask:
        """Which rows (all, or those given) compare so with a constant; null rows never do."""
        codes = self.ranks(name)[0] if rows is None or (name,) not in self._ranks else self._ranks[name,][0][0]
        codes = codes if rows is None else codes[rows].astype(np.int64)
        values = self._sorted_values(name)
        value = _as_column_value(constant.value, values.type)
        ordered = self._ordered(name)
        low, high = bisect.bisect_left(ordered, value), bisect.bisect_right(ordered, value)
        return _within(codes, op, low, high)

    def value(self, name: str, row: int) -> Any:
        """The value of one cell, for showing an offending row to the owner of the table."""
        return self._table.column(name)[row].as_py()

    def columns(self, names: Iterable[str]) -> dict[str, Any]:
        """The named columns as plain arrays; with none named, one that tells how many rows there are."""
        return {name: self._column(name) for name in (sorted(names) or self._table.column_names[:1])}

    def add_column(self, name: str, make: Callable[[], Any]) -> str:
        """Add a computed column, once; the name under which it is found, which no column of the table has."""
        found = name
        while found in self._names:
            found = f"= {found}"
        if found not in self._columns:
            self._columns[found] = make()
        return found

    def _column(self, name: str) -> Any:
        if name not in self._columns:
            column = self._table.column(name)
            chunks = column.chunks or [pa.nulls(0, column.type)]
            self._columns[name] = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
        return self._columns[name]

    def _ordered(self, name: str) -> _View:
        if name not in self._views:
            self._views[name] = _View(_as_ticks(self._sorted_values(name)))
        return self._views[name]

    def _sorted_values(self, name: str) -> Any:
        """The distinct values in the order of their ranks."""
        if name not in self._sorted:
            codes, _, size = self.ranks(name)
            first = np.zeros(size, dtype=np.int64)
            present = codes != NULL
            first[codes[present]] = np.flatnonzero(present)
            self._sorted[name] = self._column(name).take(pa.array(first))
        return self._sorted[name]


def compare(a: Codes | np.int64, op: Operator, b: Codes) -> Mask:
    """Compare ranks; the caller has seen to nulls."""
    result: Mask
    match op:
        case Operator.EQ:
            result = a == b
        case Operator.NE:
            result = a != b
        case Operator.LT:
            result = a < b
        case Operator.LE:
            result = a <= b
        case Operator.GT:
            result = a > b
        case Operator.GE:
            result = a >= b
    return result


def _within(codes: Codes, op: Operator, low: int, high: int) -> Mask:
    """Compare ranks with a constant whose equals hold the ranks from `low` up to, not including, `high`."""
    found: Mask
    match op:
        case Operator.EQ:
            found = (codes >= low) & (codes < high)
        case Operator.NE:
            found = (codes < low) | (codes >= high)
        case Operator.LT:
            found = codes < low
        case Operator.LE:
            found = codes < high
        case Operator.GT:
            found = codes >= high
        case Operator.GE:
            found = codes >= low
    found &= codes != NULL
    return found


class _View(Sequence[Any]):
    """Sorted Arrow values as a sequence that bisect can search without converting them all."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: Any) -> Any:
        return self._values[index].as_py()


def _as_column_value(value: Any, arrow_type: Any) -> Any:
    """A constant as the column's sorted values hold it: the nearest float for floats, exact time for times."""
    if isinstance(value, Decimal) and pa.types.is_floating(arrow_type):
        return float(np.float32(float(value))) if pa.types.is_float32(arrow_type) else float(value)
    if isinstance(value, date):
        return _ticks(value, arrow_type)
    return value


def _ticks(moment: date, arrow_type: Any) -> Fraction:
    """A date or time as the exact number of the column's ticks since 1970."""
    at = moment if isinstance(moment, datetime) else datetime.combine(moment, time())
    since = at - datetime(1970, 1, 1, tzinfo=at.tzinfo and UTC)
    if pa.types.is_date32(arrow_type):
        return Fraction(since // timedelta(microseconds=1), 86_400_000_000)
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
    unit = arrow_type.unit if pa.types.is_timestamp(arrow_type) else "ms"
    return Fraction((since // timedelta(microseconds=1)) * per_second[unit], 10**6)


def _as_ticks(values: Any) -> Any:
    """Dates and times as whole numbers of ticks; other values as they are."""
    if pa.types.is_date32(values.type):
        return values.cast(pa.int32())
    return values.cast(pa.int64()) if pa.types.is_temporal(values.type) else values


def _rank_together(columns: Sequence[Any]) -> tuple[tuple[Codes, ...], int]:
    values = _on_one_type(columns)
    valid = np.concatenate([~_missing(column) for column in columns])
    codes, size = _rank(values, valid)
    ends = np.cumsum([len(column) for column in columns])[:-1]
    return tuple(np.split(codes, ends)), size


def _on_one_type(columns: Sequence[Any]) -> Any:
    """The columns one after the other, as one Arrow array of ordered values."""
    if len(columns) > 1:
        columns = [_decoded(column) for column in columns]
    types = [column.type for column in columns]
    if all(each == types[0] for each in types):
        return pa.concat_arrays(columns)
    if any(pa.types.is_null(each) for each in types):
        kept = next((each for each in types if not pa.types.is_null(each)), types[0])
        return pa.concat_arrays([column.cast(kept) for column in columns])
    if all(pa.types.is_integer(each) for each in types) and pa.uint64() not in types:
        return pa.concat_arrays([column.cast(pa.int64()) for column in columns])
    if all(pa.types.is_temporal(each) for each in types):
        return _exact_times(columns)
    if all(column.null_count == len(column) for column in columns[1:]):
        return pa.concat_arrays([columns[0], *(pa.nulls(len(c), types[0]) for c in columns[1:])])
    if columns[0].null_count == len(columns[0]):
        return pa.concat_arrays([pa.nulls(len(columns[0]), types[1]), columns[1]])
    return _exact_numbers(columns)


def _decoded(column: Any) -> Any:
    """The values of a dictionary; what is none stays as it is."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def _exact_times(columns: Sequence[Any]) -> Any:
    """Dates and times of several units as numbers in their common order.

    Each is a day and the nanoseconds since its midnight: no unit that is common to all of them need hold them.
    """
    parts = [_day_and_nanoseconds(column) for column in columns]
    _, day = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    times, time_of_day = np.unique(np.concatenate([part[1] for part in parts]), return_inverse=True)
    missing = np.concatenate([_missing(column) for column in columns])
    # There are at most as many days and times as rows, so the product of the two numbers fits 64 bits.
    return pa.array(day.astype(np.int64) * len(times) + time_of_day, pa.int64(), mask=missing)


def _day_and_nanoseconds(column: Any) -> tuple[Codes, Codes]:
    ticks = _numpy(pc.fill_null(_as_ticks(column), 0)).astype(np.int64)
    if pa.types.is_date32(column.type):
        return ticks, np.zeros_like(ticks)
    per_day = _PER_DAY[column.type.unit if pa.types.is_timestamp(column.type) else "ms"]
    day, rest = np.divmod(ticks, per_day)
    return day, rest * (_PER_DAY["ns"] // per_day)


def _exact_numbers(columns: Sequence[Any]) -> Any:
    """Mixed kinds of numbers as positions in their exact common order (Python compares them exactly)."""
    encoded = [column.dictionary_encode() for column in columns]
    dictionaries = [part.dictionary.to_pylist() for part in encoded]
    distinct = sorted({value for part in dictionaries for value in part if value == value})
    position = {value: i for i, value in enumerate(distinct)}
    parts = []
    for part, dictionary in zip(encoded, dictionaries, strict=True):
        lookup = pa.array([position.get(value) for value in dictionary], pa.int64())
        parts.append(lookup.take(part.indices))
    return pa.concat_arrays(parts)


def _rank(values: Any, valid: Mask) -> tuple[Codes, int]:
    codes = np.full(len(values), NULL, dtype=np.int64)
    if not valid.any():
        return codes, 0
    if pa.types.is_floating(values.type):
        distinct, inverse = np.unique(_numpy(pc.fill_null(values, float("nan")))[valid], return_inverse=True)
        codes[valid] = inverse
        return codes, len(distinct)
    codes[valid], size = _rank_present(values.drop_null())
    return codes, size


def _rank_present(values: Any) -> tuple[Codes, int]:
    kind = values.type
    if pa.types.is_boolean(kind):
        return number_values(_numpy(values).astype(np.int64))
    if pa.types.is_temporal(kind) or (pa.types.is_integer(kind) and kind != pa.uint64()):
        return number_values(_numpy(_as_ticks(values)).astype(np.int64))
    if pa.types.is_integer(kind):
        distinct, inverse = np.unique(_numpy(values), return_inverse=True)
        return inverse.astype(np.int64), len(distinct)
    encoded = values.dictionary_encode()
    order = _numpy(pc.sort_indices(encoded.dictionary))
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    return position[_numpy(encoded.indices)], len(order)


def _missing(column: Any) -> Mask:
    mask: Mask = _numpy(column.is_null(nan_is_null=True)).astype(np.bool_)
    return mask


def _numpy(values: Any) -> npt.NDArray[Any]:
    """Numbers or booleans without nulls as a numpy array. Arrow's own `to_numpy` would import pandas first."""
    plain = values.cast(pa.uint8()) if pa.types.is_boolean(values.type) else values
    return np.from_dlpack(plain)
