"""The grid of an ordered attribute: evenly spaced integers, one for each code.

A tick is a whole number of an attribute's smallest unit: 1 for integers, 10^-decimals for reals, a day for dates, a
microsecond for datetimes. Code `c` stands for tick `start + c * step`. All arithmetic is on integers, hence exact.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np
import numpy.typing as npt

from kamino.schema.whole_decimals import Offsets, offsets_from

MAX_SIZE = 2**62
"""The largest number of codes of one attribute: sums of two codes still fit 64 bits."""

_EXACT = Context(prec=700)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)
MICROSECONDS_PER_DAY = 86_400_000_000


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The ticks `start, start + step, ..., start + (size - 1) * step`. Every field may be published."""

    start: int
    step: int
    size: int

    def __post_init__(self) -> None:
        if self.step < 1 or not 1 <= self.size <= MAX_SIZE:
            raise ValueError("a grid needs a step of at least 1 and between 1 and 2^62 ticks")
        if self.last - self.start >= 2**64:
            raise ValueError("the ticks of a grid must lie within 2^64 of each other")

    @property
    def last(self) -> int:
        """The largest tick."""
        return self.start + (self.size - 1) * self.step

    @property
    def is_narrow(self) -> bool:
        """Whether all ticks are 64-bit integers."""
        return self.start >= -(2**63) and self.last < 2**63

    def codes(self, ticks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the code nearest to each tick of a narrow grid; ticks beyond the ends go to the ends."""
        return self.codes_at(offsets_from(self.start, np.clip(ticks, self.start, self.last)))

    def codes_at(self, offsets: Offsets) -> npt.NDArray[np.int64]:
        """Return the code nearest to each tick, which lies so far above the first and not above the last."""
        if self.step == 1:
            return offsets.view(np.int64)
        codes, rest = np.divmod(offsets, np.uint64(self.step))
        return (codes + (rest >= np.uint64(self.step - self.step // 2))).view(np.int64)

    def ticks(self, codes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the tick of each code of a narrow grid."""
        return self.start + codes * self.step

    def offsets(self, codes: npt.NDArray[np.int64]) -> Offsets:
        """Return how far the tick of each code lies above the first."""
        return codes.view(np.uint64) * np.uint64(self.step)


def tick_of_decimal(value: Decimal, decimals: int) -> int:
    """Return the multiple of 10^-decimals nearest to a finite `value`, as a number of such units; ties to even."""
    return int(_EXACT.scaleb(value, decimals).to_integral_value(ROUND_HALF_EVEN, context=_EXACT))


def ticks_around(low: Decimal, high: Decimal, decimals: int) -> tuple[int, int]:
    """Return the largest tick not above `low` and the smallest not below `high`."""
    return math.floor(_EXACT.scaleb(low, decimals)), math.ceil(_EXACT.scaleb(high, decimals))


def decimal_of_tick(tick: int, decimals: int) -> Decimal:
    """Return `tick * 10^-decimals` exactly."""
    return _EXACT.scaleb(Decimal(tick), -decimals)


def tick_of_date(value: dt.date) -> int:
    """Return the number of days since 1970-01-01."""
    return value.toordinal() - _EPOCH_DAY


def date_of_tick(tick: int) -> dt.date:
    """Return the date that lies `tick` days after 1970-01-01."""
    return dt.date.fromordinal(tick + _EPOCH_DAY)


def tick_of_datetime(value: dt.datetime) -> int:
    """Return the number of microseconds since 1970-01-01T00:00 (UTC); a datetime without offset counts as UTC."""
    if value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    return (value - _EPOCH) // _MICROSECOND


def datetime_of_tick(tick: int, *, aware: bool) -> dt.datetime:
    """Return the datetime `tick` microseconds after 1970-01-01T00:00, in UTC if `aware`, else without offset."""
    value = _EPOCH + tick * _MICROSECOND
    return value if aware else value.replace(tzinfo=None)
