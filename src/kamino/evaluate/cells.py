"""Which cells of a table do not fit its schema, and would be changed by a run. For the owner: counted exactly."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.schema import Attribute, Boolean, Categorical, Date, Datetime, Integer, Key, Real, Schema, attribute_codec
from kamino.schema.attributes import GridAttribute
from kamino.schema.column_types import check_columns
from kamino.schema.files.date_formats import formats_of
from kamino.schema.files.reading import read_places
from kamino.schema.files.written_numbers import NULL_WORDS, plain_number
from kamino.schema.grid import MAX_SIZE, decimal_of_tick
from kamino.schema.numbers import STYLES, coarsest_step
from kamino.schema.spelling import NUMBER

Mask = NDArray[np.bool_]
# Every end of a range is so many whole steps from every other.
_FINEST = Decimal("0.000001")


@dataclass(frozen=True, kw_only=True)
class CellCheck:
    """The cells of one column: `unreadable` are no value of its type, `outside` lie beyond its domain.

    why: how unreadable cells are written, and how many are.
    """

    name: str
    unreadable: int
    outside: int
    forbidden_nulls: int
    why: tuple[tuple[str, int], ...] = ()

    @property
    def faults(self) -> int:
        """All cells that do not fit."""
        return self.unreadable + self.outside + self.forbidden_nulls

    def to_json(self) -> dict[str, Any]:
        """Plain data for machines."""
        return {**asdict(self), "why": dict(self.why)}


def check_cells(table: pa.Table, schema: Schema) -> tuple[CellCheck, ...]:
    """Count, for each column that carries data, the cells that do not fit; a domain that is missing excludes nothing.

    The table is read as a run reads it: the cells of a CSV file as text.

    Guarantees:
        What is unreadable, outside and null is told apart.  [test_cells_that_do_not_fit_are_counted]
    """
    check_columns(schema, table)
    return tuple(_check(table.column(name), name, schema[name]) for name in schema if not isinstance(schema[name], Key))


def add_cells(first: tuple[CellCheck, ...], second: tuple[CellCheck, ...]) -> tuple[CellCheck, ...]:
    """The counts of two parts of a table together."""
    return tuple(
        CellCheck(
            name=a.name,
            unreadable=a.unreadable + b.unreadable,
            outside=a.outside + b.outside,
            forbidden_nulls=a.forbidden_nulls + b.forbidden_nulls,
            why=tuple((Counter(dict(a.why)) + Counter(dict(b.why))).items()),
        )
        for a, b in zip(first, second, strict=True)
    )


def _check(column: pa.ChunkedArray, name: str, attribute: Attribute) -> CellCheck:
    forbidden = 0 if attribute.nullable else column.null_count
    known = column.drop_null()
    unreadable = outside = 0
    why: Counter[str] = Counter()
    if len(known) and (attribute.has_domain or not isinstance(attribute, Categorical)):
        counts = pa.concat_arrays(known.chunks).value_counts()
        bad, beyond = _faults(counts.field("values"), name, attribute)
        numbers = np.asarray(counts.field("counts"))
        unreadable, outside = int(numbers[bad].sum()), int(numbers[beyond].sum())
        for text, count in zip(counts.field("values").filter(pa.array(bad)).to_pylist(), numbers[bad], strict=True):
            why[why_unreadable(text, attribute)] += int(count)
    return CellCheck(
        name=name, unreadable=unreadable, outside=outside, forbidden_nulls=forbidden, why=tuple(why.most_common())
    )


def why_unreadable(cell: object, attribute: Attribute) -> str:
    """How a cell is written that is no value of an attribute, and what reads it.

    >>> why_unreadable("$1,234.50", Real())
    'numbers written as 1,234.5: say `written: "1,234.5"`'
    """
    if not isinstance(cell, str):
        return "other values"
    if cell.strip() in NULL_WORDS:
        return f"{cell.strip()}: if that stands for nothing, say `nulls: [{cell.strip()!r}]`"
    if isinstance(attribute, Integer) and re.fullmatch(NUMBER, cell.strip()):
        return "numbers with decimals: say `type: real`"
    if isinstance(attribute, Integer | Real):
        style = next((each for each in STYLES if plain_number(cell, each) is not None), None)
        if style is not None:
            return f'numbers written as {style}: say `written: "{style}"`'
    if isinstance(attribute, Date | Datetime):
        shape = next(iter(formats_of(cell)), None)
        if shape is not None:
            return f'dates written as {shape}: say `format: "{shape}"`'
    return "other text: a run makes it null"


def _faults(values: pa.Array, name: str, attribute: Attribute) -> tuple[Mask, Mask]:
    """Which of the different values of a column cannot be read, and which lie outside the domain."""
    nothing = np.zeros(len(values), dtype=np.bool_)
    match attribute:
        case Categorical() | Boolean():
            # With null allowed and no other, what does not fit becomes null.
            dropped = {"nullable", "other"}
            fields = {key: value for key, value in attribute.fields().items() if key not in dropped}
            codec = attribute_codec(name, type(attribute)(**fields, nullable=True))
            lost = codec.encode(pa.chunked_array([values])) == codec.null_code
            if isinstance(attribute, Categorical):
                return nothing, lost & (np.asarray(values.cast(pa.string())) != str(attribute.other))
            return lost, nothing
        case Integer() | Real() | Date() | Datetime():
            wide = widest(attribute)
            places = read_places(wide, values)
            if not attribute.has_domain:
                return places.missing, nothing
            low, high = (end - wide.grid.start for end in (attribute.grid.start, attribute.grid.last))
            return places.missing, ~places.missing & ((places.offsets < low) | (places.offsets > high))
        case _:
            return nothing, nothing


def widest(attribute: GridAttribute) -> GridAttribute:
    """An attribute of the same kind and the same ticks, over nearly everything that can be written.

    Which century a year of two digits is of, follows from the end of the range.
    """
    has_short_years = isinstance(attribute, Date | Datetime) and attribute.max is not None and attribute.short_years
    match attribute:
        case Integer():
            return _wide_integer(attribute)
        case Real(decimals=decimals):
            return _wide_real(attribute, decimals)
        case Date():
            last_day = attribute.max if has_short_years else dt.date(9999, 12, 31)
            return Date(min=dt.date(1, 1, 1), max=last_day, format=attribute.format)
        case Datetime():
            aware = dt.UTC if attribute.timezone is not None else None
            first, last = (dt.datetime(year, 1, 2, tzinfo=aware) for year in (1, 9999))
            last = attribute.max or last if has_short_years else last
            return Datetime(
                min=first, max=last, timezone=attribute.timezone, format=attribute.format, resolution=_FINEST
            )


# Of a domain, this much more is read on either side; values that lie beyond are as far outside.
_ROOM = 2**60


def _wide_integer(attribute: Integer) -> Integer:
    low, high = attribute.min or 0, attribute.max or 0
    is_large = high >= 2**63
    least, most = (0, 2**64 - 1) if is_large else (-(2**63), 2**63 - 1)
    first, last = max(low - _ROOM, least), min(high + _ROOM, most)
    step = coarsest_step(first, last)
    return Integer(min=first, max=last - (last - first) % step, step=step, dtype="uint64" if is_large else "int64")


def _wide_real(attribute: Real, decimals: int) -> Real:
    if attribute.has_domain and pa.types.is_decimal(attribute.arrow_type):
        grid = attribute.grid
        room = (MAX_SIZE - 1 - grid.size) // 2
        low, high = (decimal_of_tick(end, decimals) for end in (grid.start - room, grid.last + room))
        return Real(min=low, max=high, decimals=decimals, dtype=f"decimal256(76, {max(decimals, 0)})")
    # As far as doubles can be told apart.
    end = decimal_of_tick(2**51, decimals)
    return Real(min=-end, max=end, decimals=decimals)
