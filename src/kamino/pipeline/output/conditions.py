"""Conditions on the rows to draw: what `given` says, as codes."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import IntArray, distinct
from kamino.errors import InputError
from kamino.schema import AttributeCodec, Codec, Datetime, GridCodec, Integer, Real

Given = Mapping[str, Any]
Allowed = Mapping[str, IntArray]
# Of a domain with more values than this, a message lists the first.
_SHOWN = 12


# An interval of more codes than this is drawn from at so many places, evenly apart.
_MOST_CODES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Condition:
    """The codes that attributes may have; of `ranges` the first and the last, since there may be too many to list."""

    codes: Allowed = field(default_factory=dict)
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.codes)

    def is_met(self, columns: Mapping[str, NDArray[np.integer[Any]]]) -> bool:
        """Whether every row has an allowed code."""
        listed = (np.isin(columns[name], codes).all() for name, codes in self.codes.items() if name not in self.ranges)
        between = (((columns[n] >= low) & (columns[n] <= high)).all() for n, (low, high) in self.ranges.items())
        return all(listed) and all(between)

    def split(self, names: Collection[str]) -> tuple[Condition, Condition]:
        """The condition on all other attributes, and that on `names`."""
        parts = []
        for inside in (False, True):
            codes = {name: each for name, each in self.codes.items() if (name in names) == inside}
            ranges = {name: each for name, each in self.ranges.items() if (name in names) == inside}
            parts.append(Condition(codes=codes, ranges=ranges))
        return parts[0], parts[1]


def read_condition(codec: Codec, given: Given | None) -> Condition:
    """Return the codes that a condition allows: of one value, of several in a list, or of an interval as a pair.

    Raises:
        InputError: it names no attribute, or no value of one.

    Guarantees:
        An interval holds the values between its ends, the ends among them, and no null.  [test_intervals_hold]
    """
    given = one_record(given)
    codes, ranges = {}, {}
    for name, value in (given or {}).items():
        if name in codec.groups:
            raise InputError(f"found a condition on {name!r}, whose values are made up; expected one on another column")
        if isinstance(value, tuple):
            low, high = ranges[name] = _range_of(codec[name], name, value)
            codes[name] = _spread(low, high)
        else:
            codes[name] = _codes_of(codec[name], name, value)
    return Condition(codes=codes, ranges=ranges)


def one_record(given: object) -> Given | None:
    """The mapping that is given; a list or a frame of one record is one as well.

    Raises:
        InputError: several records are given. Rows drawn for one of them know nothing of those for another, so that
            keys and dependencies would break between them.
    """
    records = given
    if hasattr(given, "to_dict") and not isinstance(given, Mapping):  # pandas, polars
        records = given.to_dicts() if hasattr(given, "to_dicts") else given.to_dict("records")
    elif hasattr(given, "to_pylist"):
        records = given.to_pylist()
    if isinstance(records, list | tuple) and len(records) == 1 and isinstance(records[0], Mapping):
        return records[0]
    if isinstance(records, list | tuple) and len(records) > 1 and all(isinstance(each, Mapping) for each in records):
        raise InputError(
            f"found given with {len(records)} records; expected one, such as {{'state': 'CA'}}, or several values of "
            "an attribute, {'state': ['CA', 'NY']}: rows that are drawn for each record alone would break keys and "
            "dependencies together"
        )
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"found given of type {type(given).__name__}; expected a mapping, such as {{'state': 'CA'}}")
    return given


def _range_of(attribute: AttributeCodec, name: str, ends: tuple[Any, ...]) -> tuple[int, int]:
    """The first and the last code between two ends; None for an end is the domain's."""
    if not isinstance(attribute, GridCodec):
        raise InputError(f"found an interval of {name!r}, whose values have no order; expected a list of values")
    if len(ends) != 2:
        raise InputError(f"found {len(ends)} ends of an interval of {name!r}; expected two, (low, high)")
    low, high = (_midnight(attribute, _python(end)) for end in ends)
    try:
        if isinstance(attribute.attribute, Integer | Real):
            first = 0 if low is None else max(0, math.ceil(_place(attribute, low)))
            last = attribute.num_values - 1
            last = last if high is None else min(last, math.floor(_place(attribute, high)))
        else:
            first = 0 if low is None else _first(attribute, lambda value: value >= low)
            last = attribute.num_values - 1 if high is None else _first(attribute, lambda value: value > high) - 1
    except TypeError:
        raise InputError(f"found ends of another type than {name!r}; expected {_domain(attribute)}") from None
    if first > last:
        raise InputError(
            f"found an interval of {name!r} from {_shown(low)} to {_shown(high)} without any value; "
            f"expected {_domain(attribute)}"
        )
    return first, last


def _spread(low: int, high: int) -> IntArray:
    """The codes from `low` to `high`; of very many, some that are spread over them, the ends among them."""
    step = (high - low) // _MOST_CODES + 1
    return distinct(np.arange(low, high + 1, step, dtype=np.int64), np.array([high], dtype=np.int64))


def _place(attribute: GridCodec, end: Any) -> Fraction:
    """Where a number lies among the codes, exactly, and beyond them by one at most.

    A float is the decimal that it is written as: compared as a double, 0.1 would lie above the decimal 0.1.
    """
    if isinstance(end, float) and math.isinf(end):
        return Fraction(attribute.num_values if end > 0 else -1)
    place = attribute.position(end)
    if place is None:
        raise TypeError
    return min(max(place, Fraction(-1)), Fraction(attribute.num_values))


def _midnight(attribute: GridCodec, end: Any) -> Any:
    """The end of an interval, of the type that the values have: a date among times is its midnight."""
    is_date = isinstance(end, dt.date) and not isinstance(end, dt.datetime)
    if not isinstance(attribute.attribute, Datetime) or not is_date:
        return end
    return dt.datetime.combine(end, dt.time(), dt.UTC if attribute.attribute.timezone is not None else None)


def _first(attribute: GridCodec, holds: Callable[[Any], bool]) -> int:
    """The first code whose value is so; one past the last if none is."""
    low, high = 0, attribute.num_values
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(attribute.value_of(middle)) else (middle + 1, high)
    return low


def _codes_of(attribute: AttributeCodec, name: str, value: Any) -> IntArray:
    values = allowed_values(value)
    codes = [attribute.code_of(each) for each in values]
    outside = [_shown(each) for each, code in zip(values, codes, strict=True) if code is None]
    if not values or outside:
        raise InputError(
            f"found a condition on {name!r} with {', '.join(outside) or 'no value'}; expected {_domain(attribute)}"
        )
    return np.unique(np.array(codes, dtype=np.int64))


def allowed_values(value: Any) -> list[Any]:
    """The values that a condition allows: those of a list, or the one it is."""
    several = isinstance(value, Collection) and not isinstance(value, str | bytes)
    return [_python(each) for each in (value if several else [value])]


def _python(value: Any) -> Any:
    """A number or time of numpy, as a column or its largest value gives it, as Python's own."""
    if isinstance(value, np.datetime64):
        # Nanoseconds would become a number.
        value = value.astype("datetime64[us]") if np.datetime_data(value)[0] == "ns" else value
    return value.item() if isinstance(value, np.generic) else value


def plain_condition(value: Any) -> Any:
    """What a certificate says of a condition: the values that it allows, or the ends of its interval."""
    if isinstance(value, tuple):
        return {"from": _plain(_python(value[0])), "to": _plain(_python(value[1]))}
    return [_plain(each) for each in allowed_values(value)]


def _plain(value: object) -> object:
    """A value of a domain as JSON has it; dates and the like as text."""
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def condition_text(codec: Codec, condition: Condition) -> str:
    """Return the condition in words, for a message."""
    parts = []
    for name, codes in condition.codes.items():
        if name in condition.ranges:
            low, high = (_shown(codec[name].value_of(code)) for code in condition.ranges[name])
            parts.append(f"{name} from {low} to {high}")
        else:
            parts.append(f"{name}={' or '.join(_shown(codec[name].value_of(int(code))) for code in codes[:_SHOWN])}")
    return " and ".join(parts)


def _domain(attribute: AttributeCodec) -> str:
    """What an attribute may be, in words. Domains are public."""
    null = "" if attribute.null_code is None else ", or nothing"
    count = attribute.num_values
    if isinstance(attribute, GridCodec):
        return f"a value from {_shown(attribute.value_of(0))} to {_shown(attribute.value_of(count - 1))}{null}"
    shown = ", ".join(_shown(attribute.value_of(code)) for code in range(min(count, _SHOWN)))
    more = f" and {count - _SHOWN:,} more" if count > _SHOWN else ""
    return f"one of {shown}{more}{null}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)
