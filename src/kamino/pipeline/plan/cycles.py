"""The cycles that a schema makes likely: digits of numbers, weekdays of dates, and the clock of datetimes."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Sequence
from dataclasses import replace

from kamino.model.phase import Phase
from kamino.schema import Attribute, Date, Datetime, Integer, Real
from kamino.schema.times import fixed_offset

_SECOND, _MINUTE, _HOUR, _DAY, _WEEK = (n * 1_000_000 for n in (1, 60, 3600, 86_400, 604_800))
# A digit of a phase has at most this many values: more could not be told from noise.
_MOST_VALUES = 60
_TENS = tuple(10**digits for digits in range(1, 7))


def phase_of(attribute: Attribute) -> Phase | None:
    """Return the phase of an attribute's codes, if it has one. Reads the schema only.

    Numbers have the last digits of their grid, six at most, dates the weekday, and datetimes seconds, minutes, hours
    and weekday, as far as their resolution has them and their range holds each at least twice.

    >>> phase_of(Integer(min=3, max=2400))
    Phase(factors=(10, 10, 10), block=1, offset=3, rounds=True)
    """
    match attribute:
        case Integer() | Real():
            grid = attribute.grid
            digits = _nested(grid.start, 1, grid.size, 1, _TENS) if grid.step == 1 else None
            return None if digits is None else replace(digits, rounds=True)
        case Date():
            grid = attribute.grid
            # With a step of several days, weekdays come in another order, but again after seven codes.
            return _nested(grid.start, 1, grid.size, 1, (7,)) if grid.step % 7 else None
        case Datetime():
            grid = attribute.grid
            if grid.step % _DAY == 0:
                return _nested(0, 1, grid.size, 1, (7,)) if grid.step % _WEEK else None
            clock = grid.start + _offset(attribute)
            return _nested(clock, grid.step, grid.size, max(grid.step, _SECOND), (_MINUTE, _HOUR, _DAY, _WEEK))
        case _:
            return None


def _nested(start: int, step: int, size: int, base: int, periods: Sequence[int]) -> Phase | None:
    """Return the phase of codes `start + c * step` in units of `base`, within each period that nests in the next."""
    if base % step:
        return None
    factors, unit = [], base
    for period in periods:
        nests = period > unit and period % unit == 0 and period // unit <= _MOST_VALUES
        if nests and 2 * period <= size * step:
            factors.append(period // unit)
            unit = period
    if not factors:
        return None
    return Phase(factors=tuple(factors), block=base // step, offset=start // step % (unit // step))


def _offset(attribute: Datetime) -> int:
    """Return by how many microseconds the clock of a datetime's timezone is ahead of UTC, at the end of the range."""
    if attribute.timezone is None or attribute.max is None:
        return 0
    ahead = fixed_offset(attribute.timezone)
    if ahead is not None:
        return ahead * 1_000_000
    try:
        shown = attribute.max.astimezone(zoneinfo.ZoneInfo(attribute.timezone)).utcoffset()
    except OverflowError:
        return 0
    return (shown or dt.timedelta(0)) // dt.timedelta(microseconds=1)
