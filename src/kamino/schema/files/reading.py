"""Raw columns as ticks: numbers, dates and datetimes of any Arrow type, read the same way whatever they hold.

What a column may hold is decided by its type alone. A value that cannot be read, or is not a number, is marked missing;
a value outside the range goes to the nearest end. Nothing here raises, warns or runs differently because of a value.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kamino.schema.attributes import Date, Datetime, GridAttribute, Integer, Real
from kamino.schema.dtypes import is_text
from kamino.schema.grid import (
    MICROSECONDS_PER_DAY,
    tick_of_date,
    tick_of_datetime,
    tick_of_decimal,
)
from kamino.schema.times import has_short_years, wall_clock
from kamino.schema.whole_decimals import Offsets, integers_at, offsets_from

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": MICROSECONDS_PER_DAY, "ns": MICROSECONDS_PER_DAY * 1000}
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
# Decimals of so few digits pass through a double and keep their nearest tick.
_DOUBLE_DIGITS = 15
# More than any tick has: the longest decimals have 76.
_MOST_DIGITS = 80


@dataclass(frozen=True, kw_only=True, repr=False)
class Ticks:
    """Private values as ticks, clamped to the ends of the grid; where `missing`, the tick means nothing."""

    values: Ints
    missing: Mask


@dataclass(frozen=True, kw_only=True, repr=False)
class Places:
    """Private values as how far their ticks lie above the first one of the grid, none beyond the last."""

    offsets: Offsets
    missing: Mask


def read_places(attribute: GridAttribute, array: pa.Array) -> Places:
    """Return where on the grid each value of a column lies whose type `can_read` allows.

    Guarantees:
        No value of the grid is changed, whatever its size.  [test_every_value_survives]
    """
    grid = attribute.grid
    if grid.is_narrow:
        ticks = read_ticks(attribute, array)
        return Places(offsets=offsets_from(grid.start, ticks.values), missing=ticks.missing)
    missing = array.is_null().to_numpy(zero_copy_only=False)
    if isinstance(attribute, Integer) and pa.types.is_integer(array.type):
        kind = pa.uint64() if pa.types.is_uint64(array.type) else pa.int64()
        return Places(offsets=_integer_offsets(_numpy(array.cast(kind)), grid.start, grid.last), missing=missing)
    has_no_text = pa.types.is_boolean(array.type) or pa.types.is_float16(array.type) or pa.types.is_null(array.type)
    return _read_distinct(attribute, array.cast(pa.float32()) if has_no_text else array)


def _integer_offsets(numbers: npt.NDArray[Any], low: int, high: int) -> Offsets:
    ends = np.iinfo(numbers.dtype)
    if low > ends.max or high < ends.min:
        return np.full(len(numbers), 0 if low > ends.max else high - low, np.uint64)
    first = max(low, ends.min)
    clipped = np.clip(numbers, numbers.dtype.type(first), numbers.dtype.type(min(high, ends.max)))
    return offsets_from(low, clipped)


def read_ticks(attribute: GridAttribute, array: pa.Array) -> Ticks:
    """Return the tick nearest to each value of a column whose type `can_read` allows; the grid is narrow."""
    arrow_type = array.type
    missing = array.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_null(arrow_type):
        return Ticks(values=np.full(len(array), attribute.grid.start, np.int64), missing=missing)
    if is_text(arrow_type) or (pa.types.is_decimal(arrow_type) and arrow_type.precision > _DOUBLE_DIGITS):
        places = _read_distinct(attribute, array)
        return Ticks(values=integers_at(attribute.grid.start, places.offsets).view(np.int64), missing=places.missing)
    match attribute:
        case Integer():
            return _read_numbers(array, missing, decimals=0, low=attribute.grid.start, high=attribute.grid.last)
        case Real():
            grid = attribute.grid
            return _read_numbers(array, missing, decimals=attribute.decimals, low=grid.start, high=grid.last)
        case Date():
            return Ticks(values=_days(array, attribute.grid.start, attribute.grid.last), missing=missing)
        case Datetime():
            return Ticks(values=_microseconds(array, attribute.grid.start, attribute.grid.last), missing=missing)
        case _:
            assert_never(attribute)


def _read_numbers(array: pa.Array, missing: Mask, *, decimals: int, low: int, high: int) -> Ticks:
    if pa.types.is_floating(array.type) or pa.types.is_decimal(array.type) or decimals < 0:
        numbers = _numpy(array if pa.types.is_floating(array.type) else array.cast(pa.float64(), safe=False))
        numbers = numbers.astype(np.float64)
        missing = missing | np.isnan(numbers)
        scale = float(10 ** abs(decimals))
        # Clamped before scaling, with room for rounding, so that infinities and huge values do not overflow.
        first, last = ((end / scale if decimals >= 0 else end * scale) for end in (low - 1, high + 1))
        inside = np.clip(np.where(missing, 0.0, numbers), first, last)
        scaled = np.rint(inside * scale if decimals >= 0 else inside / scale)
        return Ticks(values=_to_int64(scaled, low, high), missing=missing)
    if pa.types.is_uint64(array.type):
        integers = np.minimum(_numpy(array), np.uint64(2**63 - 1)).astype(np.int64)
    else:
        integers = _numpy(array.cast(pa.int64())).astype(np.int64)
    unit = 10**decimals
    ticks = np.clip(integers, low // unit, -(-high // unit)) * unit
    return Ticks(values=np.clip(ticks, low, high), missing=missing)


def _to_int64(numbers: npt.NDArray[np.float64], low: int, high: int) -> Ints:
    # 2^63 - 1024 is the largest double that is a 64-bit integer.
    return np.clip(np.clip(numbers, -(2.0**63), 2.0**63 - 1024).astype(np.int64), low, high)


def _days(array: pa.Array, low: int, high: int) -> Ints:
    if pa.types.is_date32(array.type):
        days = _numpy(array.view(pa.int32())).astype(np.int64)
    elif pa.types.is_date64(array.type):
        days = _numpy(array.view(pa.int64())) // _PER_DAY["ms"]
    else:
        per_day = _PER_DAY[array.type.unit]
        numbers = np.clip(_numpy(array.view(pa.int64())), *_room(low, high, per_day))
        if array.type.tz is not None:
            # A zoned timestamp counts UTC; its date is that of the clock on the wall.
            numbers = _numpy(wall_clock(pa.array(numbers).view(array.type)).view(pa.int64()))
        days = numbers // per_day
    return np.clip(days, low, high)


def _room(low: int, high: int, per_day: int) -> tuple[int, int]:
    """Return the range in a timestamp's unit with two days to spare, so that no arithmetic on it overflows."""
    spare = 2**63 - 4 * per_day
    first, last = (min(max(day * per_day, -spare), spare) for day in (low - 2, high + 2))
    return first, last


def _microseconds(array: pa.Array, low: int, high: int) -> Ints:
    if pa.types.is_date32(array.type):
        numbers, per_second = _numpy(array.view(pa.int32())).astype(np.int64) * 86_400, 1
    elif pa.types.is_date64(array.type):
        numbers, per_second = _numpy(array.view(pa.int64())), 1_000
    else:
        numbers, per_second = _numpy(array.view(pa.int64())), _PER_SECOND[array.type.unit]
    if per_second > 1_000_000:
        ticks = numbers // 1_000 + (numbers % 1_000 >= 500)
    else:
        factor = 1_000_000 // per_second
        ticks = np.clip(numbers, low // factor, -(-high // factor)) * factor
    return np.clip(ticks, low, high)


def _numpy(array: pa.Array) -> npt.NDArray[Any]:
    """Return the numbers of an array, with 0 for null."""
    # Older versions of pyarrow cannot fill half floats.
    array = array.cast(pa.float32()) if pa.types.is_float16(array.type) else array
    filled: npt.NDArray[Any] = array.fill_null(pa.scalar(0, array.type)).to_numpy(zero_copy_only=False)
    return filled


def _read_distinct(attribute: GridAttribute, array: pa.Array) -> Places:
    """Read each different text or long decimal once, with exact arithmetic."""
    coded = array.dictionary_encode()
    low, high = attribute.grid.start, attribute.grid.last
    read = _reader(attribute, low, high)
    table = [read(value) for value in coded.dictionary.to_pylist()] + [None]
    offsets = np.array([0 if tick is None else tick - low for tick in table], np.uint64)
    bad = np.array([tick is None for tick in table])
    places = coded.indices.fill_null(len(table) - 1).to_numpy(zero_copy_only=False)
    return Places(offsets=offsets[places], missing=bad[places])


def _reader(attribute: GridAttribute, low: int, high: int) -> Callable[[Any], int | None]:
    match attribute:
        case Integer():
            return lambda value: _number_tick(value, 0, low, high)
        case Real(decimals=decimals):
            return lambda value: _number_tick(value, decimals, low, high)
        case Date():
            days = lambda moment: tick_of_date(moment.date())  # noqa: E731
            return lambda value: _time_tick(value, days, low, high, attribute.format)
        case Datetime():
            return lambda value: _time_tick(value, tick_of_datetime, low, high, attribute.format)
        case _:
            assert_never(attribute)


def _number_tick(value: str | float | Decimal, decimals: int, low: int, high: int) -> int | None:
    try:
        number = Decimal(
            repr(value) if isinstance(value, float) else value.strip() if isinstance(value, str) else value
        )
        if number.is_nan():
            return None
        # Compared by size before it is scaled: the exponent of a text can be anything.
        if not number.is_finite() or number.adjusted() + decimals > _MOST_DIGITS:
            return low if number < 0 else high
        if number.adjusted() + decimals < -_MOST_DIGITS:
            number = Decimal(0)
        return min(max(tick_of_decimal(number, decimals), low), high)
    except (InvalidOperation, ValueError):
        return None


def _time_tick(
    value: str, tick: Callable[[dt.datetime], int], low: int, high: int, shape: str | None = None
) -> int | None:
    try:
        moment = _moment(value.strip(), shape)
        found = tick(moment)
        if has_short_years(shape) and found > high:
            # A year of two digits is taken for one of this century, and is of the last where that is in the range.
            found = tick(moment.replace(year=moment.year - 100))
        return min(max(found, low), high)
    except (ValueError, OverflowError):
        return None


def _moment(text: str, shape: str | None) -> dt.datetime:
    """Read a moment as its format says, or as ISO 8601 has it."""
    return dt.datetime.fromisoformat(text) if shape is None else dt.datetime.strptime(text, shape)
