"""Private columns of numbers, dates and times as plain numbers: what ranges are found of, and compared with."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kamino.errors import PrivacyError, SchemaError
from kamino.privacy.mechanisms.bounds import Cells, number_cells, time_cells
from kamino.schema import Attribute, Date, Datetime, GridCodec, Integer, Real, attribute_codec
from kamino.schema.dtypes import is_text
from kamino.schema.grid import MICROSECONDS_PER_DAY
from kamino.schema.numbers import DEFAULT_DECIMALS, largest_number, largest_whole


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Numbers:
    """The cells of a column that can be read, as floats or as whole steps; and how many cannot. Private."""

    values: NDArray[Any]
    unreadable: int


def read_numbers(column: pa.ChunkedArray, name: str, attribute: Attribute) -> Numbers:
    """Read a column; null and NaN are neither a number nor unreadable.

    Guarantees:
        Nothing that a column holds raises.  [test_found_domains_stay_within_their_sensitivity_at_the_ends_of_types]
    """
    if isinstance(attribute, Real):
        return _reals(column)
    if isinstance(attribute, Integer):
        numbers = _reals(column)
        return Numbers(values=np.rint(numbers.values), unreadable=numbers.unreadable)
    codec = _widest(name, attribute)
    codes = codec.encode(column)
    present = codes[codes != codec.null_code]
    empty = column.null_count
    if pa.types.is_floating(column.type):
        empty += int(pc.sum(pc.is_nan(column)).as_py() or 0)
    return Numbers(values=present + _origin(codec), unreadable=max(0, len(codes) - len(present) - empty))


def cells_of(attribute: Attribute) -> Cells:
    """The public cells in which the numbers of an attribute are counted: by its type, the same for every table."""
    match attribute:
        case Real(decimals=decimals):
            finest = None if decimals >= DEFAULT_DECIMALS else decimals
            return number_cells(integer=False, decimals=finest, largest=float(largest_number(attribute.arrow_type)))
        case Date(resolution=resolution):
            return time_cells(steps_per_day=1 / resolution)
        case Datetime():
            return time_cells(steps_per_day=MICROSECONDS_PER_DAY / attribute.step)
        case _:
            return number_cells(integer=True, largest=float(_whole_ends(attribute)[1]))


def values_at(name: str, attribute: Attribute, low: float, high: float) -> tuple[Any, Any]:
    """The values that two numbers stand for, as far as the attribute's type can hold them."""
    if isinstance(attribute, Real):
        limit = largest_number(attribute.arrow_type)
        # A double may lie above the largest number that it is the nearest one to.
        lower, upper = (min(max(Decimal(repr(float(end))), Decimal(-limit)), Decimal(limit)) for end in (low, high))
        return lower, upper
    if isinstance(attribute, Integer):
        least, most = _whole_ends(attribute)
        start, end = (min(max(int(steps), least), most) for steps in (low, high))
        return start, end
    codec = _widest(name, attribute)
    places = (min(max(int(steps) - _origin(codec), 0), codec.num_values - 1) for steps in (low, high))
    first, last = (codec.value_of(place) for place in places)
    return first, last


def ends_of(name: str, attribute: Any) -> tuple[float, float]:
    """The ends of an attribute's range as numbers: whatever is nearer to them than half a step is inside."""
    if isinstance(attribute, Real):
        half = Decimal(1).scaleb(-attribute.decimals) / 2
        return float(Decimal(attribute.min or 0) - half), float(Decimal(attribute.max or 0) + half)
    if isinstance(attribute, Integer):
        return float(attribute.min or 0) - 0.5, float(attribute.max or 0) + attribute.step / 2
    codec = _widest(name, attribute)
    # Exact up to here: a double cannot tell the places of a wide range apart.
    low, high = ((codec.position(end) or 0) + _origin(codec) for end in (attribute.min, attribute.max))
    return float(low) - 0.5, float(high) + 0.5


def _origin(codec: GridCodec) -> int:
    return codec.grid.start // codec.grid.step


def _whole_ends(attribute: Attribute) -> tuple[int, int]:
    """The least and the most that the attribute's type can hold of whole numbers of 64 bits."""
    kind = attribute.arrow_type
    if pa.types.is_integer(kind):
        bits = kind.bit_width - pa.types.is_signed_integer(kind)
        return (-(2**bits) if pa.types.is_signed_integer(kind) else 0), 2**bits - 1
    most = min(largest_whole(kind), 2**63 - 1)
    return -most, most


def _reals(column: pa.ChunkedArray) -> Numbers:
    if not is_text(column.type):
        floats = np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), float("nan")), dtype=np.float64)
        return Numbers(values=floats[~np.isnan(floats)], unreadable=0)
    pairs = column.combine_chunks().value_counts()
    texts, counts = pairs.field("values").to_pylist(), np.asarray(pairs.field("counts"), dtype=np.int64)
    read = [float("nan") if text is None else _float(text) for text in texts]
    bad = np.array([number is None for number in read], dtype=np.bool_)
    numbers = np.array([float("nan") if number is None else number for number in read], dtype=np.float64)
    known = ~np.isnan(numbers)
    return Numbers(values=np.repeat(numbers[known], counts[known]), unreadable=int(counts[bad].sum()))


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _widest(name: str, attribute: Attribute) -> GridCodec:
    """A codec over the widest range that the attribute's type can hold: the same for every table."""
    for domain in _ranges(attribute):
        try:
            codec = attribute_codec(name, attribute.with_domain(**domain, nullable=True))
        except (SchemaError, OverflowError):
            continue
        assert isinstance(codec, GridCodec), "only grids have ranges"
        return codec
    raise PrivacyError(f"no range can be searched for {name!r}; declare its domain in the schema.")


def _ranges(attribute: Attribute) -> Iterator[dict[str, Any]]:
    """Ranges to try, widest first. Which century a year of two digits is of, follows from the end of a known range."""
    match attribute:
        case Date(short_years=True, max=dt.date() as last):
            yield {"min": dt.date(1, 1, 1), "max": last}
        case Datetime(short_years=True, max=dt.datetime() as last, timezone=None):
            yield {"min": dt.datetime(1, 1, 2), "max": last}
        case Date():
            yield {"min": dt.date(1, 1, 1), "max": dt.date(9999, 12, 31)}
            yield {"min": dt.date(1700, 1, 1), "max": dt.date(2250, 1, 1)}
        case Datetime():
            yield {"min": dt.datetime(1, 1, 2), "max": dt.datetime(9999, 12, 30)}
            yield {"min": dt.datetime(1700, 1, 1), "max": dt.datetime(2250, 1, 1)}
