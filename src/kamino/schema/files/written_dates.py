"""Dates in text files, written as they were read: a column that came as 2012/01/31 leaves so.

In memory, in databases and in files with types a date is a date. Only text has a format, and a format is used for
output where every value of the domain reads back from it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from kamino.errors import InputError
from kamino.schema.attributes import Date, Datetime
from kamino.schema.grid import date_of_tick, datetime_of_tick
from kamino.schema.schema import Schema
from kamino.schema.times import has_short_years

# So many values of a domain are tried before its format is trusted.
_TRIED = 256
# Years of fewer digits are padded on some systems only.
_FIRST_YEAR = 1000

Written = Mapping[str, Date | Datetime]


def written_dates(schema: Schema) -> dict[str, Date | Datetime]:
    """The attributes whose values are written by their format in files of text.

    >>> day = Date(min="2012-01-01", max="2015-12-31", format="%Y/%m/%d")
    >>> list(written_dates(Schema(attributes={"came": day, "went": Date(min="2012-01-01", max="2012-01-02")})))
    ['came']

    Guarantees:
        Every value of such a domain reads back.  [test_formats_that_lose_something_are_for_reading_only]
    """
    dates = {name: each for name, each in schema.attributes.items() if isinstance(each, Date | Datetime)}
    return {name: each for name, each in dates.items() if each.format is not None and _reads_back(each)}


def spell_dates(table: pa.Table, written: Written) -> pa.Table:
    """The table with texts in place of these dates, each different one spelled once."""
    for name, attribute in written.items():
        if name in table.column_names:
            coded = table.column(name).combine_chunks().dictionary_encode()
            texts = [None if value is None else spell_date(value, attribute) for value in _moments(coded.dictionary)]
            column = pa.DictionaryArray.from_arrays(coded.indices, pa.array(texts, pa.string())).cast(pa.string())
            table = table.set_column(table.column_names.index(name), name, column)
    return table


def read_dates(table: pa.Table, written: Written, types: pa.Schema) -> pa.Table:
    """The table with dates of these types in place of their texts: what `spell_dates` was given.

    Raises:
        InputError: a cell is not written so. The message holds no cell.

    Guarantees:
        Texts as ISO 8601 has them, which older versions wrote, are read too.  [test_dates_leave_as_they_came]
    """
    for name, attribute in written.items():
        if name in table.column_names and pa.types.is_string(table.schema.field(name).type):
            coded = table.column(name).combine_chunks().dictionary_encode()
            try:
                values = [None if text is None else read_date(text, attribute) for text in coded.dictionary.to_pylist()]
            except (ValueError, OverflowError):
                raise InputError(
                    f"column {name!r}: found a cell that is no {attribute.type} written as {attribute.format}"
                ) from None
            kind = types.field(name).type
            found = pa.array(values, pa.timestamp("us")).cast(kind)
            column = pa.DictionaryArray.from_arrays(coded.indices, found).cast(kind)
            table = table.set_column(table.column_names.index(name), name, column)
    return table


def as_texts(types: pa.Schema, written: Written) -> pa.Schema:
    """The types of a file of text with these dates in it."""
    return pa.schema([field.with_type(pa.string()) if field.name in written else field for field in types])


def spell_date(value: dt.date, attribute: Date | Datetime) -> str:
    """A day or a moment as the format of its attribute has it."""
    return value.strftime(attribute.format or "%Y-%m-%d")


def read_date(text: str, attribute: Date | Datetime) -> dt.datetime:
    """The moment that a text says; the century of a year of two digits follows from the end of the range."""
    shape = attribute.format or "%Y-%m-%d"
    try:
        moment = dt.datetime.strptime(text, shape)
    except ValueError:
        return dt.datetime.fromisoformat(text)
    last = attribute.max
    if has_short_years(shape) and last is not None and (moment.date(), moment.time()) > _split(last):
        moment = moment.replace(year=moment.year - 100)
    return moment


def _split(moment: dt.date) -> tuple[dt.date, dt.time]:
    return (moment.date(), moment.time()) if isinstance(moment, dt.datetime) else (moment, dt.time.max)


def _reads_back(attribute: Date | Datetime) -> bool:
    """Whether a format tells all values of a domain apart: it may lack seconds, or the century."""
    if not attribute.has_domain or attribute.min is None or attribute.min.year < _FIRST_YEAR:
        return False
    if isinstance(attribute, Datetime) and attribute.timezone is not None:
        return False
    grid = attribute.grid
    places = {0, min(1, grid.size - 1), *np.linspace(0, grid.size - 1, _TRIED).astype(np.int64).tolist()}
    ticks = [grid.start + grid.step * place for place in places]
    if isinstance(attribute, Date):
        moments = [dt.datetime.combine(date_of_tick(tick), dt.time()) for tick in ticks]
    else:
        moments = [datetime_of_tick(tick, aware=False) for tick in ticks]
    try:
        return all(read_date(spell_date(moment, attribute), attribute) == moment for moment in moments)
    except ValueError:
        return False


def _moments(values: pa.Array) -> list[dt.date | None]:
    """Days and moments as Python has them; nanoseconds are none of it, and no domain has them."""
    plain = values.cast(pa.timestamp("us"), safe=False) if pa.types.is_timestamp(values.type) else values
    return list(plain.to_pylist())
