"""Codes of integers, reals, dates and datetimes: the places on the attribute's grid."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kamino.schema.attributes import Date, Datetime, GridAttribute, Integer, Real
from kamino.schema.coding.attribute_codec import AttributeCodec, Codes, with_nulls
from kamino.schema.files.reading import read_places
from kamino.schema.grid import (
    MICROSECONDS_PER_DAY,
    Grid,
    date_of_tick,
    datetime_of_tick,
    decimal_of_tick,
    tick_of_date,
    tick_of_datetime,
)
from kamino.schema.whole_decimals import decimals_at, integers_at

# Powers of ten up to this one are doubles, so a division by one rounds once, to the double nearest to the decimal.
_EXACT_POWER = 22


class GridCodec(AttributeCodec):
    """Codes of an ordered attribute: the nearest place on its grid.

    What lies outside the range goes to the nearest end, infinities too. What is not a number or cannot be read is null
    or, where the attribute is not nullable, the smallest value.

    Guarantees:
        Decoded reals are the doubles that print with the attribute's decimals.  [test_reals_print_short]
    """

    attribute: GridAttribute

    def __init__(self, name: str, attribute: GridAttribute) -> None:
        self.grid: Grid = attribute.grid
        super().__init__(name, attribute, num_values=self.grid.size)

    def _encode(self, array: pa.Array) -> Codes:
        places = read_places(self.attribute, array)
        return np.where(places.missing, self.fallback_code, self.grid.codes_at(places.offsets))

    def _decode(self, codes: Codes, null: npt.NDArray[np.bool_]) -> pa.Array:
        match self.attribute:
            case Integer():
                return self._numbers(codes, 0, null)
            case Real(decimals=decimals):
                return self._numbers(codes, decimals, null)
            case Date():
                days = with_nulls(self.grid.ticks(codes).astype(np.int32), null).view(pa.date32())
                return days.cast(self.arrow_type)
            case Datetime():
                instants = with_nulls(self.grid.ticks(codes), null).view(pa.timestamp("us", tz=self.attribute.timezone))
                return instants.cast(self.arrow_type)
            case _:
                assert_never(self.attribute)

    def _numbers(self, codes: Codes, decimals: int, null: npt.NDArray[np.bool_]) -> pa.Array:
        """Return numbers in a type that the schema found wide enough."""
        kind, start = self.arrow_type, self.grid.start
        if pa.types.is_integer(kind):
            return with_nulls(integers_at(start, self.grid.offsets(codes)), null).cast(kind)
        if pa.types.is_decimal(kind):
            bits = 256 if pa.types.is_decimal256(kind) else 128
            return decimals_at(start, self.grid.offsets(codes), decimals, null, bits).cast(kind)
        ticks = self.grid.ticks(codes)
        if abs(decimals) <= _EXACT_POWER:
            scale = float(10 ** abs(decimals))
            numbers = ticks / scale if decimals >= 0 else ticks * scale
        else:
            numbers = np.array([float(decimal_of_tick(tick, decimals)) for tick in ticks.tolist()], np.float64)
        return with_nulls(numbers, null).cast(kind)

    def value_of(self, code: int) -> int | float | Decimal | dt.date | dt.datetime | None:
        """Return an int, float, `Decimal` (for a decimal type), date or datetime; `None` for null."""
        if code == self.null_code:
            return None
        tick = self.grid.start + int(code) * self.grid.step
        match self.attribute:
            case Integer():
                return tick
            case Real(decimals=decimals):
                exact = decimal_of_tick(tick, decimals)
                return exact if pa.types.is_decimal(self.arrow_type) else float(exact)
            case Date():
                return date_of_tick(tick)
            case Datetime():
                return datetime_of_tick(tick, aware=self.attribute.timezone is not None)
            case _:
                assert_never(self.attribute)

    def code_of(self, value: Any) -> int | None:
        """Return the code of a public value, or `None` if it is not on the grid."""
        place = self.position(value)
        inside = place is not None and place.denominator == 1 and 0 <= place < self.num_values
        return int(place) if inside and place is not None else (self.null_code if value is None else None)

    def position(self, value: Any) -> Fraction | None:
        """Return where a public value lies on the axis of codes, exactly and unclamped; `None` if nowhere."""
        tick = self._exact_tick(value)
        return None if tick is None else (tick - self.grid.start) / self.grid.step

    def _exact_tick(self, value: Any) -> Fraction | None:
        match self.attribute, value:
            case (Integer() | Real(), float() | int() | Decimal()) if not isinstance(value, bool):
                decimals = self.attribute.decimals if isinstance(self.attribute, Real) else 0
                number = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)
                return Fraction(number) * Fraction(10) ** decimals if number.is_finite() else None
            case (Date(), dt.datetime()):
                return Fraction(tick_of_datetime(value), MICROSECONDS_PER_DAY)
            case (Date(), dt.date()):
                return Fraction(tick_of_date(value))
            case (Datetime(), dt.datetime()):
                return Fraction(tick_of_datetime(value))
            case (Datetime(), dt.date()):
                return Fraction(tick_of_date(value) * MICROSECONDS_PER_DAY)
            case _:
                return None
