"""Dates and datetimes: a range and a resolution."""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal, Self

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr, WithJsonSchema, model_validator

from kamino.schema.attribute import BaseAttribute
from kamino.schema.grid import (
    Grid,
    date_of_tick,
    datetime_of_tick,
    tick_of_date,
    tick_of_datetime,
)
from kamino.schema.numbers import Number, check_order, plain

# The whole calendar, from the year 1 to 9999.
_LONGEST = Decimal(9_999 * 366 * 86_400)
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def _read_date(value: Any) -> Any:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    try:
        return dt.date.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"found {str(value)[:60]!r}, expected a date such as 2020-12-31") from None


def _read_datetime(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value
    try:
        return dt.datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise ValueError(f"found {str(value)[:60]!r}, expected a datetime such as 2020-12-31T23:59:59") from None


def check_format(shape: str) -> str:
    """Refuse a format that does not tell a day, or that does not read back what it writes."""
    moment = dt.datetime(2003, 11, 25, 21, 43, 59)
    try:
        back = dt.datetime.strptime(moment.strftime(shape), shape)
    except ValueError:
        back = None
    if back is None or back.date() != moment.date():
        raise ValueError(f"found {shape[:60]!r}, expected a format that tells the day, such as %m/%d/%Y")
    return shape


Shape = Annotated[StrictStr, AfterValidator(check_format)]
#: Years of two digits are read as these, unless the end of a range says otherwise.
SHORT_YEARS = (1969, 2068)


def has_short_years(shape: str | None) -> bool:
    """Whether a format writes years with two digits."""
    return shape is not None and "%y" in shape


def fixed_offset(timezone: str) -> int | None:
    """The seconds by which a timezone such as +01:00 is ahead of UTC; None for one with a name."""
    found = re.fullmatch(r"([+-])(\d\d):(\d\d)", timezone)
    if found is None:
        return None
    ahead = int(found[2]) * 3_600 + int(found[3]) * 60
    return ahead if found[1] == "+" else -ahead


def wall_clock(array: pa.Array) -> pa.Array:
    """Timestamps as a clock on the wall of their timezone shows them, without a zone.

    Fixed offsets are added here: not every pyarrow that we allow knows them.  [test_parts_are_those_of_the_values]
    """
    if array.type.tz is None:
        return array
    ahead = fixed_offset(array.type.tz)
    if ahead is None:
        return pc.local_timestamp(array)
    shift = pa.scalar(ahead * _PER_SECOND[array.type.unit], pa.int64())
    return pc.add(array.view(pa.int64()), shift).view(pa.timestamp(array.type.unit))


def _check_timezone(name: str) -> str:
    if fixed_offset(name) is None:
        try:
            zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"found {name!r}, expected a timezone such as UTC, Europe/Paris or +01:00") from None
    return name


def _check_resolution(seconds: Decimal | float) -> Decimal:
    exact = Decimal(seconds)
    if exact > _LONGEST:
        raise ValueError(f"found {plain(exact)}, expected at most {_LONGEST} seconds")
    if exact < Decimal("0.000001") or exact % Decimal("0.000001"):
        raise ValueError(f"found {plain(exact)}, expected a multiple of 0.000001 seconds")
    return exact


def _in_utc(bound: dt.datetime, name: str) -> dt.datetime:
    try:
        return bound.replace(tzinfo=dt.UTC) if bound.tzinfo is None else bound.astimezone(dt.UTC)
    except OverflowError:
        raise ValueError(f"found {name} outside the years 1 to 9999 in UTC: give one within them") from None


DateBound = Annotated[dt.date, BeforeValidator(_read_date), WithJsonSchema({"type": "string", "format": "date"})]
DatetimeBound = Annotated[
    dt.datetime, BeforeValidator(_read_datetime), WithJsonSchema({"type": "string", "format": "date-time"})
]


def _steps(start: int, last: int, step: int, shown: Any, nearest: Any) -> None:
    if (last - start) % step:
        raise ValueError(
            f"found max {shown}, expected min plus a whole number of resolution steps: use {nearest}, "
            "or another resolution"
        )


class Date(BaseAttribute):
    """The days from `min` to `max`, every `resolution` days."""

    domain_fields: ClassVar[tuple[str, ...]] = ("min", "max")
    type: Literal["date"] = Field(default="date", description="Days within a range.")
    min: DateBound | None = Field(default=None, description="The first day; what lies before becomes it.")
    max: DateBound | None = Field(default=None, description="The last day; what lies after becomes it.")
    resolution: Annotated[StrictInt, Field(ge=1)] = Field(default=1, description="Days from one value to the next.")
    format: Shape | None = Field(
        default=None,
        description="How texts of the column are written, such as %m/%d/%Y; by default as 2020-12-31.",
    )

    @property
    def short_years(self) -> bool:
        """Whether texts of the column have years of two digits, whose century follows from `max`."""
        return has_short_years(self.format)

    @property
    def grid(self) -> Grid:
        """One tick a day."""
        start, last = self._ends()
        return Grid(start=start, step=self.resolution, size=(last - start) // self.resolution + 1)

    def _ends(self) -> tuple[int, int]:
        if self.min is None or self.max is None:
            raise self.no_domain()
        return tick_of_date(self.min), tick_of_date(self.max)

    def check_domain(self) -> None:
        """Refuse a range that is upside down or no multiple of the resolution."""
        start, last = self._ends()
        check_order(self.min, self.max)
        nearest = date_of_tick(last - (last - start) % self.resolution)
        _steps(start, last, self.resolution, self.max, nearest)

    def default_dtype(self) -> str:
        """Return date32."""
        return "date32"

    def dtype_problem(self, arrow_type: pa.DataType) -> str:
        """Say whether `arrow_type` holds every day of the range."""
        if pa.types.is_timestamp(arrow_type):
            return _range_problem(arrow_type, self.min, self.max)
        if pa.types.is_date(arrow_type):
            return ""
        return "does not fit a date attribute: expected date32, date64 or a timestamp"

    def fit_domain(self, domain: dict[str, Any]) -> dict[str, Any]:
        """Move the end outwards to a whole number of steps, or inwards if there is no such date."""
        if domain.get("min") is None or domain.get("max") is None:
            return domain
        start, last = tick_of_date(domain["min"]), tick_of_date(domain["max"])
        beyond = (start - last) % domain.get("resolution", self.resolution)
        if last + beyond > tick_of_date(dt.date.max):
            beyond -= domain.get("resolution", self.resolution)
        return {**domain, "max": date_of_tick(last + beyond)}


class Datetime(BaseAttribute):
    """The instants from `min` to `max`, every `resolution` seconds.

    With a timezone, codes and bounds are instants in UTC (a bound without an offset is UTC) and the timezone is how
    the output shows them. Without one, they are readings of a clock somewhere and have no offset.
    """

    domain_fields: ClassVar[tuple[str, ...]] = ("min", "max")
    type: Literal["datetime"] = Field(default="datetime", description="Instants within a range.")
    min: DatetimeBound | None = Field(default=None, description="The first instant; what lies before becomes it.")
    max: DatetimeBound | None = Field(default=None, description="The last instant; what lies after becomes it.")
    resolution: Annotated[Number, AfterValidator(_check_resolution)] = Field(
        default=Decimal(1), description="Seconds from one value to the next; a multiple of 0.000001."
    )
    timezone: Annotated[StrictStr, AfterValidator(_check_timezone)] | None = Field(
        default=None, description="Timezone of the output column; bounds without an offset are then UTC."
    )
    format: Shape | None = Field(
        default=None,
        description="How texts of the column are written, such as %m/%d/%Y %H:%M; by default as ISO 8601.",
    )

    @property
    def short_years(self) -> bool:
        """Whether texts of the column have years of two digits, whose century follows from `max`."""
        return has_short_years(self.format)

    @property
    def step(self) -> int:
        """Microseconds from one value to the next."""
        return int(Decimal(self.resolution) * 1_000_000)

    @property
    def grid(self) -> Grid:
        """One tick a microsecond."""
        start, last = self._ends()
        return Grid(start=start, step=self.step, size=(last - start) // self.step + 1)

    def _ends(self) -> tuple[int, int]:
        if self.min is None or self.max is None:
            raise self.no_domain()
        return tick_of_datetime(self.min), tick_of_datetime(self.max)

    @property
    def decimals(self) -> int:
        """The decimals of a second that every value can be written with."""
        grid = self.grid
        fits = (each for each in range(6) if not (grid.start % 10 ** (6 - each) or grid.step % 10 ** (6 - each)))
        return next(fits, 6)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the output column."""
        plain_type = super().arrow_type
        return pa.timestamp(plain_type.unit, tz=self.timezone) if pa.types.is_timestamp(plain_type) else plain_type

    @model_validator(mode="after")
    def _settle_offsets(self) -> Self:
        for name in ("min", "max"):
            bound = getattr(self, name)
            if bound is None:
                continue
            if self.timezone is None and bound.tzinfo is not None:
                raise ValueError(f"found {name} with an offset from UTC: remove it, or give a timezone")
            if self.timezone is not None:
                # The model is frozen for its users; this is still its construction.
                self.__dict__[name] = _in_utc(bound, name)
        return self

    def check_domain(self) -> None:
        """Refuse a range that is upside down, too wide or no multiple of the resolution."""
        if self.step < 1 or self.step != Decimal(self.resolution) * 1_000_000:
            raise ValueError(f"found resolution {self.resolution}, expected a multiple of 0.000001 seconds")
        start, last = self._ends()
        # Bounds with and without an offset cannot be compared; that complaint comes from another check.
        if last < start:
            raise ValueError(f"found max {self.max} before min {self.min}: exchange them")
        nearest = datetime_of_tick(last - (last - start) % self.step, aware=self.timezone is not None)
        _steps(start, last, self.step, self.max, nearest)

    def default_dtype(self) -> str:
        """Return timestamp[us]."""
        return "timestamp[us]"

    def dtype_problem(self, arrow_type: pa.DataType) -> str:
        """Say whether `arrow_type` holds every instant of the range."""
        if self.step < 1 or self.step != Decimal(self.resolution) * 1_000_000:
            raise ValueError(f"found resolution {self.resolution}, expected a multiple of 0.000001 seconds")
        if not pa.types.is_timestamp(arrow_type):
            return "does not fit a datetime attribute: expected a timestamp"
        unit = _MICROSECONDS.get(arrow_type.unit, 1)
        ticks = [tick_of_datetime(self.min) if self.min else 0, self.step]
        if any(tick % unit for tick in ticks):
            return f"is too coarse for min or resolution {self.resolution}: use timestamp[us]"
        return _range_problem(arrow_type, self.min, self.max)

    def fit_domain(self, domain: dict[str, Any]) -> dict[str, Any]:
        """Move the end outwards to a whole number of steps, or inwards if there is no such instant."""
        if domain.get("min") is None or domain.get("max") is None:
            return domain
        start, last = tick_of_datetime(domain["min"]), tick_of_datetime(domain["max"])
        step = int(Decimal(domain.get("resolution", self.resolution)) * 1_000_000)
        beyond = (start - last) % step
        if last + beyond > tick_of_datetime(dt.datetime.max):
            beyond -= step
        return {**domain, "max": datetime_of_tick(last + beyond, aware=self.timezone is not None)}


_FIRST_NANOSECOND = dt.date(1677, 9, 22)
_LAST_NANOSECOND = dt.date(2262, 4, 11)


def _range_problem(arrow_type: pa.DataType, low: dt.date | None, high: dt.date | None) -> str:
    """Say whether a range fits the years that nanoseconds can count."""
    if arrow_type.unit != "ns" or low is None or high is None:
        return ""
    first, last = ((bound.year, bound.month, bound.day) for bound in (_FIRST_NANOSECOND, _LAST_NANOSECOND))
    inside = (low.year, low.month, low.day) >= first and (high.year, high.month, high.day) < last
    return "" if inside else "holds 1677-09-22 to 2262-04-10 only: use timestamp[us]"
