"""Integers and reals: a range, and for reals a number of decimals."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import BeforeValidator, Field, StrictInt, WithJsonSchema

from kamino.limits import MAX_DIGITS, size_problem
from kamino.schema.attribute import BaseAttribute
from kamino.schema.grid import MAX_SIZE, Grid, decimal_of_tick, tick_of_decimal, ticks_around

DEFAULT_DECIMALS = 6
#: How numbers are written in text, by example: the sign between thousands and the one before decimals.
STYLES = ("1,234.5", "1.234,5", "1 234,5", "1'234.5", "1 234.5")
Style = Literal["1,234.5", "1.234,5", "1 234,5", "1'234.5", "1 234.5"]
_WRITTEN = (
    "How numbers of the column are written in text, by example: 1,234.5 or 1.234,5. Signs of currencies, percent and "
    "parentheses for negative numbers are read too; the output has plain numbers."
)

# Up to here a double (a float) is near enough to a multiple of 10^-decimals that scaling and rounding finds it again.
_LARGEST_TICK = {pa.float64(): 2**51, pa.float32(): 2**22}
# The largest number that is not infinite.
_LARGEST_FLOAT = {pa.float64(): 2**1024 - 2**971, pa.float32(): 2**128 - 2**104}
# Digits behind the point: of the longest decimals, and those that a range of floats is given.
_MOST_DECIMALS, _MOST_OF_FLOATS = 76, 18


def _exact_number(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(f"found {value!r}, expected a number")
    if isinstance(value, int) and value.bit_length() > 4 * MAX_DIGITS:
        raise ValueError(f"found a number of more than {MAX_DIGITS} digits, expected fewer")
    number = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        raise ValueError(f"found {value}, expected a finite number")
    problem = size_problem(number)
    if problem:
        raise ValueError(problem)
    return number


# Read as a Decimal, whichever of these it was; floats are named for the type checkers of callers.
Number = Annotated[Decimal | float, BeforeValidator(_exact_number), WithJsonSchema({"type": "number"})]


def check_order(minimum: Any, maximum: Any) -> None:
    """Raise if a range is upside down."""
    if maximum < minimum:
        raise ValueError(f"found max {maximum} below min {minimum}: exchange them")


def check_size(size: int) -> None:
    """Raise if a domain has too many values to be numbered by codes."""
    if size >= MAX_SIZE:
        raise ValueError(f"found a domain of {size} values, expected fewer than 2^62: narrow or coarsen it")


class Integer(BaseAttribute):
    """Whole numbers from `min` to `max`, or every so many-th of them: a range of 2^62 or more needs a `step`."""

    domain_fields: ClassVar[tuple[str, ...]] = ("min", "max")
    type: Literal["integer"] = Field(default="integer", description="Whole numbers within a range.")
    min: StrictInt | None = Field(default=None, description="The smallest value; what lies below becomes it.")
    max: StrictInt | None = Field(default=None, description="The largest value; what lies above becomes it.")
    step: Annotated[StrictInt, Field(ge=1, lt=2**64)] = Field(
        default=1, description="Values lie so far apart, from min on; others go to the nearest."
    )
    written: Style | None = Field(default=None, description=_WRITTEN)

    @property
    def grid(self) -> Grid:
        """One tick for each value."""
        low, high = self._ends()
        return Grid(start=low, step=self.step, size=(high - low) // self.step + 1)

    def _ends(self) -> tuple[int, int]:
        if self.min is None or self.max is None:
            raise self.no_domain()
        return self.min, self.max

    def check_domain(self) -> None:
        """Refuse a range that is upside down, too wide, or beyond 64 bits."""
        low, high = self._ends()
        check_order(low, high)
        if low < -(2**63) or high >= (2**63 if low < 0 else 2**64):
            raise ValueError(f"found a range from {low} to {high}, expected 64-bit integers")
        if (high - low) % self.step:
            nearest = high - (high - low) % self.step
            raise ValueError(f"found max {high}, expected min and a multiple of step {self.step}: use {nearest}")
        size = (high - low) // self.step + 1
        if size >= MAX_SIZE and self.step == 1:
            raise ValueError(
                f"found a domain of {size} values, expected fewer than 2^62: narrow it, or set step to "
                f"{coarsest_step(low, high)} to keep every so many-th value"
            )
        check_size(size)

    def default_dtype(self) -> str:
        """Return int64."""
        return "int64"

    def dtype_problem(self, arrow_type: pa.DataType) -> str:
        """Say whether every value of the range has its own value in `arrow_type`."""
        if pa.types.is_integer(arrow_type):
            bits = arrow_type.bit_width
            signed = pa.types.is_signed_integer(arrow_type)
            low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        elif arrow_type in _LARGEST_TICK or pa.types.is_decimal(arrow_type):
            high = largest_whole(arrow_type)
            low = -high
        else:
            return "does not fit an integer attribute: expected an integer, float or decimal type"
        for value in (self.min, self.max):
            if value is not None and not low <= value <= high:
                return f"cannot hold {value}: use {'uint64' if value >= 2**63 else 'int64'}, or narrow the range"
        return ""

    def fit_domain(self, domain: dict[str, Any]) -> dict[str, Any]:
        """Keep every so many-th value of a range that has too many to be numbered."""
        low, high = domain.get("min"), domain.get("max")
        if low is None or high is None or "step" in domain:
            return domain
        step = max(self.step, coarsest_step(low, high))
        return {**domain, "step": step, "max": high - (high - low) % step}


def coarsest_step(low: int, high: int) -> int:
    """Return the smallest power of two of which a range has few enough multiples to be numbered."""
    return 1 << ((high - low) // (MAX_SIZE - 1)).bit_length()


class Real(BaseAttribute):
    """The multiples of 10^-decimals from `min` to `max`, as floats or decimals.

    Bounds are exact `Decimal` numbers; a float given for one is read as the shortest decimal that shows it.
    """

    domain_fields: ClassVar[tuple[str, ...]] = ("min", "max")
    type: Literal["real"] = Field(default="real", description="Numbers with a fixed number of decimals, in a range.")
    min: Number | None = Field(default=None, description="The smallest value; what lies below becomes it.")
    max: Number | None = Field(default=None, description="The largest value; what lies above becomes it.")
    decimals: Annotated[int, Field(strict=True, ge=-308, le=_MOST_DECIMALS)] = Field(
        default=DEFAULT_DECIMALS,
        description="Digits after the decimal point that are kept; negative to round to tens, hundreds and so on.",
    )
    written: Style | None = Field(default=None, description=_WRITTEN)

    @property
    def grid(self) -> Grid:
        """One tick for each multiple of 10^-decimals."""
        start, last = (tick_of_decimal(end, self.decimals) for end in self._ends())
        return Grid(start=start, step=1, size=last - start + 1)

    def _ends(self) -> tuple[Decimal, Decimal]:
        if self.min is None or self.max is None:
            raise self.no_domain()
        return Decimal(self.min), Decimal(self.max)

    def check_domain(self) -> None:
        """Refuse a range that is upside down, too wide, or whose ends have more digits than `decimals`."""
        low, high = self._ends()
        check_order(low, high)
        for name, bound in (("min", low), ("max", high)):
            nearest = decimal_of_tick(tick_of_decimal(bound, self.decimals), self.decimals)
            if nearest != bound:
                raise ValueError(
                    f"found {name} {plain(bound)}, expected a number with at most {self.decimals} decimals: "
                    f"use {plain(nearest)}, or more decimals"
                )
        start, last = (tick_of_decimal(bound, self.decimals) for bound in (low, high))
        if last - start + 1 >= MAX_SIZE:
            raise ValueError(
                f"found a domain of {last - start + 1} values, expected fewer than 2^62: narrow it, or keep fewer "
                f"decimals than {self.decimals}"
            )

    def default_dtype(self) -> str:
        """Return float64."""
        return "float64"

    def dtype_problem(self, arrow_type: pa.DataType) -> str:
        """Say whether every value of the range has its own value in `arrow_type`."""
        if not (arrow_type in _LARGEST_TICK or pa.types.is_decimal(arrow_type)):
            return "does not fit a real attribute: expected float32, float64 or decimal128(precision, scale)"
        if pa.types.is_decimal(arrow_type) and arrow_type.scale < self.decimals:
            return f"keeps {arrow_type.scale} decimals, the attribute has {self.decimals}: make them equal"
        for bound in self._ends() if self.has_domain else ():
            if bound.copy_abs() > _LARGEST_FLOAT.get(arrow_type, math.inf):
                return f"cannot hold {plain(bound)}, which is infinite there: narrow the range, or use a wider type"
            if abs(tick_of_decimal(bound, self.decimals)) > largest_tick(arrow_type, self.decimals):
                return (
                    f"cannot tell apart values near {plain(bound)} with {self.decimals} decimals: use fewer decimals, "
                    "or a wider type such as float64 or decimal128(38, 9)"
                )
        return ""

    def fit_domain(self, domain: dict[str, Any]) -> dict[str, Any]:
        """Move the ends outwards onto the grid, with fewer decimals where the type could not tell values apart."""
        if domain.get("min") is None or domain.get("max") is None:
            return domain
        low, high = _exact_number(domain["min"]), _exact_number(domain["max"])
        decimals = domain.get("decimals", self.decimals)
        if "decimals" not in domain:
            decimals = min(decimals, finest_decimals(low, high, self.arrow_type))
        start, last = (decimal_of_tick(tick, decimals) for tick in _ends_around(low, high, decimals, self.arrow_type))
        return {**domain, "min": start, "max": last, "decimals": decimals}


def largest_tick(arrow_type: pa.DataType, decimals: int) -> int:
    """Return the largest tick whose value `arrow_type` holds and keeps apart from its neighbours'."""
    if arrow_type in _LARGEST_TICK:
        return _LARGEST_TICK[arrow_type]
    return int(10 ** max(0, arrow_type.precision - arrow_type.scale + decimals)) - 1


def largest_number(arrow_type: pa.DataType) -> int:
    """Return the largest whole number that a type of reals holds."""
    if arrow_type in _LARGEST_FLOAT:
        return _LARGEST_FLOAT[arrow_type]
    return int(10 ** max(0, arrow_type.precision - arrow_type.scale)) - 1


def largest_whole(arrow_type: pa.DataType) -> int:
    """Return the largest number up to which a type of reals holds every whole number."""
    if arrow_type in _LARGEST_TICK:
        return 2**53 if arrow_type == pa.float64() else 2**24
    return largest_number(arrow_type) if arrow_type.scale >= 0 else 0


def finest_decimals(low: Decimal, high: Decimal, arrow_type: pa.DataType) -> int:
    """Return the most decimals with which `arrow_type` keeps all values from `low` to `high` apart, few enough to be
    numbered.
    """
    most = _MOST_OF_FLOATS if arrow_type in _LARGEST_TICK else arrow_type.scale
    for decimals in range(most, -309, -1):
        limit = largest_tick(arrow_type, decimals)
        start, last = _ends_around(low, high, decimals, arrow_type)
        if max(abs(start), abs(last)) <= limit and last - start + 1 < MAX_SIZE:
            return decimals
    return -308


def _ends_around(low: Decimal, high: Decimal, decimals: int, arrow_type: pa.DataType) -> tuple[int, int]:
    """The ticks next to both ends, outside or on them; inside where the type has no number outside."""
    start, last = ticks_around(low, high, decimals)
    if arrow_type in _LARGEST_FLOAT:
        # A tick near the largest double may be infinite.
        lowest, highest = (decimal_of_tick(tick, decimals) for tick in (start, last))
        beyond = lowest < -_LARGEST_FLOAT[arrow_type], highest > _LARGEST_FLOAT[arrow_type]
    else:
        limit = largest_tick(arrow_type, decimals)
        beyond = -start == limit + 1, last == limit + 1
    return start + beyond[0], last - beyond[1]


def plain(number: Decimal) -> str:
    """Return a number without exponent and without trailing zeros."""
    text = format(number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
