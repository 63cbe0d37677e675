"""Formats of dates as people write them, recognised in columns of text.

Whole columns are looked at for the owner of a table, and where domains are trusted. What one text may be says no more
than the text itself: counts of that are released with noise where types are found within the budget.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

from kamino.schema.attribute import Source
from kamino.schema.attributes import Categorical, Date, Datetime
from kamino.schema.schema import Schema
from kamino.schema.times import SHORT_YEARS

# Tried in this order: where days and months cannot be told apart, months come first.
DATE_FORMATS = (
    "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d.%m.%Y", "%d-%m-%Y", "%m-%d-%Y", "%m/%d/%y", "%d/%m/%y", "%d.%m.%y",
    "%Y%m%d", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%d %B %Y", "%B %d, %Y",
)  # fmt: skip
TIME_FORMATS = tuple(
    f"{day} {time}"
    for day in ("%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%y", "%d/%m/%y")
    for time in ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
)


def with_formats(schema: Schema, table: pa.Table, *, trust_domain: bool = False) -> Schema:
    """A drafted schema with dates in place of texts that are all written as dates, as types of CSV files are found.

    Guarantees:
        A draft and a run with trusted domains take a column for the same.  [test_synth_and_init_agree_on_dates]
    """
    for name, attribute in schema.attributes.items():
        is_text = pa.types.is_string(table.schema.field(name).type)
        found = find_format(table.column(name)) if isinstance(attribute, Categorical) and is_text else None
        if found is None:
            continue
        dated = dated_as(*found)
        schema = schema.with_attribute(name, with_asserted_dates(dated, table.column(name)) if trust_domain else dated)
    return schema


def dated_as(shape: str, has_time: bool) -> Date | Datetime:
    """An attribute without domain whose texts are written in a format, down to the unit that this has."""
    if not has_time:
        return Date(nullable=True, format=shape)
    return Datetime(nullable=True, format=shape, resolution=1 if "%S" in shape else 60)


def with_asserted_dates(attribute: Date | Datetime, column: pa.ChunkedArray) -> Date | Datetime:
    """A date with a format, with the range of those texts of a column that can be read; as it is if none can be."""
    shape = attribute.format
    if shape is None:
        return attribute
    texts = pc.unique(column.drop_null()).to_pylist()
    moments = [dt.datetime.strptime(text.strip(), shape) for text in texts if _fits(text, shape)]
    if not moments:
        return attribute
    first, last = min(moments), max(moments)
    ends: dict[str, dt.date] = {"min": first, "max": last}
    if isinstance(attribute, Date):
        ends = {"min": first.date(), "max": last.date()}
    nullable = column.null_count > 0 or len(moments) < len(texts)
    return attribute.with_domain(**ends, nullable=nullable, source=Source.ASSERTED)


def find_format(column: pa.ChunkedArray) -> tuple[str, bool] | None:
    """The first format that all texts of a column have, and whether it has a time of day; None where none fits.

    >>> find_format(pa.chunked_array([["9/1/1964", "10/23/1964", None]]))
    ('%m/%d/%Y', False)

    Guarantees:
        The answer does not depend on the order of the rows.  [test_formats_of_dates_are_recognised]
    """
    texts = pc.unique(column.drop_null()).to_pylist()
    if not texts:
        return None
    for shape, has_time in (*((each, False) for each in DATE_FORMATS), *((each, True) for each in TIME_FORMATS)):
        if all(_fits(text, shape) for text in texts):
            return shape, has_time
    return None


def _fits(text: str, shape: str) -> bool:
    try:
        dt.datetime.strptime(text.strip(), shape)
    except ValueError:
        return False
    return shape != "%Y%m%d" or len(text.strip()) == 8


# How the parts of a format are written; a text that cannot be a date is told by this alone.
_PARTS = {
    "%Y": r"(?P<year>[0-9]{4})",
    "%y": r"(?P<short>[0-9]{2})",
    "%m": r"(?P<month>[0-9]{1,2})",
    "%d": r"(?P<day>[0-9]{1,2})",
    "%b": r"(?P<name>[A-Za-z]{3})",
    "%B": r"(?P<name>[A-Za-z]{3,})",
    "%H": r"(?P<hour>[01]?[0-9]|2[0-3])",
    "%I": r"(?P<hour>0?[1-9]|1[0-2])",
    "%M": r"[0-5]?[0-9]",
    "%S": r"[0-5]?[0-9]",
    "%p": r"[AaPp][Mm]",
}
_NUMERIC = r"[0-9A-Za-z]{1,9}[-/. ][0-9A-Za-z]{1,3}[-/.,][ ]?[0-9]{1,4}(?: [0-9:]{3,8}(?: [AaPp][Mm])?)?"
#: What texts of all these formats look like; hardly any other text does.
MAYBE_DATE = rf"^\s*(?:{_NUMERIC}|[0-9]{{1,2}} [A-Za-z]{{3,9}} [0-9]{{4}})\s*$"
#: The formats that a single text may be in: whole numbers such as 20120131 are numbers.
TEXT_FORMATS = (*(each for each in DATE_FORMATS if each != "%Y%m%d"), *TIME_FORMATS)


def formats_of(text: str) -> tuple[str, ...]:
    """The formats in which a text is a day or a moment, in the order in which they are tried.

    >>> formats_of("2012/01/31"), formats_of("01/02/2012"), formats_of("31.02.2012")
    (('%Y/%m/%d',), ('%m/%d/%Y', '%d/%m/%Y'), ())
    """
    return tuple(shape for shape in TEXT_FORMATS if _is_written(text.strip(), shape))


def has_time(shape: str) -> bool:
    """Whether a format has a time of day."""
    return shape in TIME_FORMATS


def _is_written(text: str, shape: str) -> bool:
    found = _pattern(shape).fullmatch(text)
    if found is None:
        return False
    parts = found.groupdict()
    names = [each.lower() for each in (calendar.month_name if "%B" in shape else calendar.month_abbr)]
    name = parts.get("name")
    month = int(parts["month"]) if name is None else names.index(name.lower()) if name.lower() in names else 0
    year = int(parts["year"]) if "year" in parts else _full_year(int(parts["short"]))
    return 1 <= month <= 12 and year >= 1 and 1 <= int(parts["day"]) <= calendar.monthrange(year, month)[1]


def _full_year(short: int) -> int:
    return short + (1900 if short >= SHORT_YEARS[0] % 100 else 2000)


@cache
def _pattern(shape: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"%[A-Za-z]", lambda part: _PARTS[part[0]], re.escape(shape).replace("\\ ", " ")))
