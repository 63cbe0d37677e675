"""Formats of dates as people write them, recognised in columns of text. For tools of the table's owner only."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc

from kamino.schema.attribute import Source
from kamino.schema.attributes import Categorical, Date, Datetime
from kamino.schema.schema import Schema

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
