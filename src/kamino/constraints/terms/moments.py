"""Dates and times as exact numbers of days since 1970, and what can be said of them."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.constraints.terms.exact import Numbers, Whole, add, compare, divide, floor, multiply, whole
from kamino.constraints.terms.exact import constant as same_number
from kamino.constraints.tree import Operator

_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}


def from_arrow(column: pa.Array) -> Numbers:
    """An Arrow column of dates or times."""
    kind = column.type
    valid = np.asarray(column.is_valid().cast(pa.uint8())).astype(np.bool_)
    if pa.types.is_date32(kind):
        return whole(np.asarray(pc.fill_null(column.cast(pa.int32()), 0), dtype=np.int64), valid)
    unit = kind.unit if pa.types.is_timestamp(kind) else "ms"
    return whole(np.asarray(pc.fill_null(column.cast(pa.int64()), 0), dtype=np.int64), valid, _PER_DAY[unit])


def constant(value: date, rows: int) -> Numbers:
    """One moment in all rows; one with an offset at its time in UTC."""
    if not isinstance(value, datetime):
        return same_number(value.toordinal() - _EPOCH, rows)
    offset = value.utcoffset()
    at = value.replace(tzinfo=None) - (offset if offset is not None else _NO_TIME)
    seconds = (at - datetime(1970, 1, 1)) // _MICROSECOND
    return same_number(Fraction(seconds, _PER_DAY["us"]), rows)


_EPOCH = date(1970, 1, 1).toordinal()
_NO_TIME = datetime(1970, 1, 1) - datetime(1970, 1, 1)
_MICROSECOND = datetime.resolution


def to_arrow(days: Numbers, *, timestamp: bool) -> pa.Array:
    """Dates where they are whole and no timestamp is asked for; else timestamps in microseconds."""
    if not timestamp:
        return pa.array(floor(days).numerator.astype(np.int32), pa.int32(), mask=~days.valid).cast(pa.date32())
    ticks = floor(multiply(days, same_number(_PER_DAY["us"], len(days))))
    return pa.array(ticks.numerator.astype(np.int64), pa.int64(), mask=~days.valid).cast(pa.timestamp("us"))


def _civil(days: Whole) -> tuple[Whole, Whole, Whole]:
    """Year, month and day by the Gregorian calendar, by Hinnant's formulas for days since 1970."""
    shifted = days + 719_468
    era = shifted // 146_097
    of_era = shifted - era * 146_097
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted_month + 2) // 5 + 1
    month = np.where(shifted_month < 10, shifted_month + 3, shifted_month - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


def _from_civil(year: Whole, month: Whole, day: Whole) -> Whole:
    """Days since 1970 of a date."""
    year = year - (month <= 2)
    era = year // 400
    year_of_era = year - era * 400
    of_year = (153 * np.where(month > 2, month - 3, month + 9) + 2) // 5 + day - 1
    return np.asarray(era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + of_year - 719_468)


def part(name: str, moment: Numbers) -> Numbers:
    """A part of each moment: its year, month, ISO week, day, weekday from 1 for Monday, hour, …"""
    days = floor(moment).numerator.astype(np.int64)
    if name in ("hour", "minute", "second"):
        return _of_time(name, moment)
    year, month, day = _civil(days)
    found: Any
    match name:
        case "year":
            found = year
        case "quarter":
            found = (month + 2) // 3
        case "month":
            found = month
        case "day":
            found = day
        case "weekday":
            found = (days + 3) % 7 + 1
        case "yearday":
            found = days - _from_civil(year, np.ones_like(month), np.ones_like(day)) + 1
        case "week":
            thursday = days - (days + 3) % 7 + 3
            first = _civil(thursday)[0]
            found = (thursday - _from_civil(first, np.ones_like(month), np.ones_like(day))) // 7 + 1
        case _:
            raise AssertionError(name)
    return whole(np.asarray(found, dtype=np.int64), moment.valid)


def _of_time(name: str, moment: Numbers) -> Numbers:
    of_day = add(moment, floor(moment), -1)
    per_day = {"hour": 24, "minute": 1440, "second": 86_400}[name]
    found = multiply(of_day, same_number(per_day, len(moment)))
    if name != "second":
        return whole(floor(found).numerator.astype(np.int64) % (24 if name == "hour" else 60), moment.valid)
    minutes = floor(multiply(of_day, same_number(1440, len(moment))))
    return add(found, multiply(minutes, same_number(60, len(moment))), -1)


def start(unit: str, moment: Numbers) -> Numbers:
    """The first moment of the year, quarter, month, week, day or hour that each lies in."""
    if unit == "hour":
        hours = same_number(24, len(moment))
        return divide(floor(multiply(moment, hours)), hours)
    days = floor(moment).numerator.astype(np.int64)
    year, month, _ = _civil(days)
    one = np.ones_like(month)
    match unit:
        case "year":
            found = _from_civil(year, one, one)
        case "quarter":
            found = _from_civil(year, (month - 1) // 3 * 3 + 1, one)
        case "month":
            found = _from_civil(year, month, one)
        case "week":
            found = days - (days + 3) % 7
        case _:
            found = days
    return whole(found, moment.valid)


def months_between(first: Numbers, second: Numbers) -> Numbers:
    """Whole months from the first to the second moment, negative where it comes later."""
    forward, backward = _whole_months(first, second), _whole_months(second, first)
    return whole(np.where(forward >= 0, forward, -backward), first.valid & second.valid)


def _whole_months(first: Numbers, second: Numbers) -> Whole:
    """Months that are complete: on a day and time of the month that is not earlier than that of the first."""
    (year_a, month_a, day_a), (year_b, month_b, day_b) = (
        _civil(floor(each).numerator.astype(np.int64)) for each in (first, second)
    )
    time_a, time_b = (add(each, floor(each), -1) for each in (first, second))
    early = (day_b < day_a) | ((day_b == day_a) & compare(time_b, Operator.LT, time_a))
    return np.asarray((year_b - year_a) * 12 + (month_b - month_a) - early, dtype=np.int64)


def years_between(first: Numbers, second: Numbers) -> Numbers:
    """Whole years from the first to the second moment: an age."""
    months = months_between(first, second)
    found = np.where(months.numerator < 0, -((-months.numerator) // 12), months.numerator // 12)
    return whole(found, months.valid)
