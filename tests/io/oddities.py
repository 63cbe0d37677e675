"""Cells that few tables have, and those that most have: what readers are tried with.

`THEMES` names, for each kind of value, cells that an ordinary column of it holds. `ODD` are cells of any kind, each of
which has made some reader read the other rows in another way, or could: numbers of other types and lengths, times with
nanoseconds, values that fail when they are compared or turned into text, text that is no UTF-8.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd


class Silent:
    """An object without a text."""

    def __str__(self) -> str:
        raise RuntimeError("this object has no text")


class Quarrelsome:
    """An object that fails when it is compared, and when it is asked whether it is true."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("this object compares with nothing")

    def __bool__(self) -> bool:
        raise RuntimeError("this object is neither")

    def __str__(self) -> str:
        return "quarrelsome"


class Stubborn(float):
    """A number whose comparisons fail."""

    __hash__ = float.__hash__

    def __ne__(self, other: object) -> bool:
        raise RuntimeError("this number compares with nothing")

    __eq__ = __ne__


UTC, HERE = dt.UTC, dt.timezone(dt.timedelta(hours=1))
SURROGATE = "\ud800"

THEMES: Mapping[str, tuple[Any, ...]] = {
    "integers": (1, 2, 3, 40, -5),
    "floats": (0.5, 1.0, 2.25, -3.0, 1e-7),
    "decimals": (Decimal("1"), Decimal("2"), Decimal("-40")),
    "prices": (Decimal("1.50"), Decimal("2.25"), Decimal("10.00")),
    "truths": (True, False),
    "texts": ("a", "b", "1", "", "x y", "é"),
    "days": (dt.date(2024, 1, 2), dt.date(1999, 12, 31)),
    "moments": (dt.datetime(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5, 600)),
    "zoned": (dt.datetime(2024, 1, 2, tzinfo=UTC), dt.datetime(2024, 7, 2, 3, 4, tzinfo=UTC)),
    "spans": (dt.timedelta(hours=1), dt.timedelta(days=-2, microseconds=5)),
    "clocks": (dt.time(1, 2), dt.time(23, 59, 59, 7)),
    "stamps": (np.datetime64("2024-01-02"), np.datetime64("2024-01-02T03:04")),
    "intervals": (pd.Interval(0, 10), pd.Interval(10, 100)),
    "periods": (pd.Period("2024-01", "M"), pd.Period("2024-02", "M")),
    "nothing": (None,),
}

MISSING: tuple[Any, ...] = (None, math.nan, pd.NA, pd.NaT, np.datetime64("NaT"), np.float32("nan"), Decimal("NaN"))
NUMBERS: tuple[Any, ...] = (
    0, True, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 2**70, -(2**63), -(2**70), 10**40, 10**5000,
    1.0, 2.5, -0.0, 0.1, 5e-324, 1.7e308, math.inf, -math.inf, np.float32(0.1), np.int8(3), np.uint64(2**64 - 1),
    Decimal("1.0"), Decimal("2.5"), Decimal("1E+3"), Decimal("-0.00"), Decimal("1E-30"), Decimal("1E+400"),
    Decimal("Infinity"), Decimal("sNaN"), Decimal("9" * 38), Decimal("9" * 60), 1 + 0j, 2j, Fraction(1, 3),
    Stubborn(1.5), Stubborn(math.nan),
)  # fmt: skip
TEXTS: tuple[str, ...] = (
    "", " ", "a", "1.0", "nan", "NaT", "null", "None", "true", "\x00", "\u202e\u0301", "\ufeff", "é", "x" * 3_000,
    '"', "'", "a,b", "a\nb", "a\rb", "a\tb", "1e999", "2020-02-30", "\U0001f600", "{", "[1]", "-", "\u2028", "=1+1",
)  # fmt: skip
TIMES: tuple[Any, ...] = (
    dt.date.min, dt.date.max, dt.date(2024, 1, 2), dt.datetime.min, dt.datetime.max, dt.datetime(2024, 1, 2),
    dt.datetime(2024, 1, 2, 3, 4, 5, 6), dt.datetime(2024, 1, 2, tzinfo=UTC), dt.datetime(2024, 1, 2, tzinfo=HERE),
    dt.time(0), dt.time(1, 2, 3, 4), dt.timedelta(0), dt.timedelta.max, dt.timedelta.min, dt.timedelta(microseconds=1),
    pd.Timestamp("2024-01-02 03:04:05.000000001"), pd.Timestamp("1677-09-22"), pd.Timestamp("2024-01-02", tz="UTC"),
    pd.Timestamp("2024-01-02 03:04", tz="Europe/Berlin"), pd.Timedelta(1, "ns"), pd.Timedelta("5 days 00:00:01"),
    np.datetime64("2024-01-02"), np.datetime64("2024-01-02T03:04:05.000000001"), np.datetime64("12000-01-01"),
    np.datetime64(-(2**62), "s"), np.timedelta64(3, "h"), np.timedelta64(2**62, "s"), np.timedelta64("NaT"),
    pd.Period("2024-01", "M"), pd.Period("2024-01-01", "D"), pd.Interval(0, 10), pd.Interval(0.5, 1.0, closed="left"),
    pd.Interval(pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-02")),
)  # fmt: skip
OTHERS: tuple[Any, ...] = (
    SURROGATE, f"a{SURROGATE}", b"a", b"\xff", bytearray(b"x"), (), (1, 2), [1], [None], {"a": 1}, {}, {1}, frozenset(),
    uuid.UUID(int=7), Silent(), Quarrelsome(), np.array([1, 2]), np.array(5), np.str_("a"), np.bytes_(b"a"), np.True_,
    Ellipsis, range(3), int, pd.Series([1]), pd.DataFrame({"a": [1]}),
)  # fmt: skip
# Those that fail when they are looked at come more often.
QUARRELS: tuple[Any, ...] = (Decimal("sNaN"), Stubborn(1.5), Stubborn(math.nan), Silent(), Quarrelsome(), SURROGATE)
ODD: tuple[Any, ...] = (*MISSING, *NUMBERS, *TEXTS, *TIMES, *OTHERS, *QUARRELS * 4)

_FINITE = tuple(each for each in NUMBERS if type(each) in (int, float) and abs(each) < 2**53)
_DECIMALS = tuple(each for each in NUMBERS if isinstance(each, Decimal) and each.is_finite() and len(str(each)) < 40)
# All of them with nanoseconds, where there is one: the first years and the last cannot have any.
_MOMENTS = tuple(each for each in TIMES if isinstance(each, dt.datetime) and 1677 <= each.year < 2262)
# Cells that libraries put into one type with those of a theme, and leave as they are: an integer among dates would not
# be one of them, since the dates make it a date.
ALIKE: Mapping[str, tuple[Any, ...]] = {
    "integers": (None, *_FINITE, 2**53),
    "floats": (None, math.inf, -math.inf, math.nan, 1e300, *_FINITE),
    "decimals": (None, *_DECIMALS),
    "prices": (None, *_DECIMALS),
    "truths": (None, True, False),
    "texts": (None, *TEXTS),
    "days": (None, dt.date.min, dt.date.max, dt.date(2024, 1, 2)),
    "moments": (None, *(each for each in _MOMENTS if each.tzinfo is None)),
    "zoned": (None, *(each for each in _MOMENTS if each.tzinfo is not None)),
    "spans": (None, *(each for each in TIMES if isinstance(each, dt.timedelta))),
    "clocks": (None, *(each for each in TIMES if isinstance(each, dt.time))),
    "stamps": (None, *(each for each in TIMES if isinstance(each, np.datetime64))),
    "intervals": (None, *(each for each in TIMES if isinstance(each, pd.Interval))),
    "periods": (None, pd.Period("2024-01", "M"), pd.Period("1700-01", "M")),
    "nothing": (None,),
}
