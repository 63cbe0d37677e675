"""What is done to all rows of a private table before anything is measured: what comes out is as private."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from typing import Any

import pyarrow as pa

from kamino.engine.streamed import EncodedParts
from kamino.errors import SchemaError
from kamino.privacy import Gate
from kamino.privacy.private import PrivateCodes, PrivateTable, open_parts, open_rows, open_table
from kamino.schema import (
    Attribute,
    Categorical,
    Codec,
    Date,
    Datetime,
    Integer,
    Real,
    Schema,
    check_columns,
    draft_schema,
)
from kamino.schema.dtypes import is_text
from kamino.schema.files.date_formats import with_asserted_dates, with_formats
from kamino.schema.files.draft import refuse_too_wide, with_asserted
from kamino.schema.files.written_numbers import with_numbers


def keep_rows(private: PrivateTable, gate: Gate) -> PrivateTable:
    """Keep at most so many rows of each privacy unit as the gate's unit says."""
    return PrivateTable(gate.select_rows(open_rows(private)))


def encode(private: PrivateTable, codec: Codec) -> PrivateCodes:
    """The codes of a private table; those of one that is read in parts are made part by part, when they are needed."""
    rows = open_rows(private)
    if isinstance(rows, pa.Table):
        return PrivateCodes(codec.encode(rows))
    check_columns(codec.schema, private.without_rows())
    return PrivateCodes(EncodedParts(rows, codec))


def with_types(private: PrivateTable, schema: Schema) -> PrivateTable:
    """The table with the types and domains of the schema; keys, whose values mean nothing, are left out.

    A number or time without a domain is taken for one of the widest range there is; a category without values and a
    whole number that the table has as one stay as they are: nothing is looked up there.

    Guarantees:
        What has no domain keeps its values.  [test_types_without_domains_keep_values]
        Any schema that fits has its types, with ids of groups or without a domain.  [test_any_schema_gives_its_types]
    """
    table = open_table(private)
    coded: dict[str, Attribute] = {}
    for name in schema.data_names:
        attribute = schema[name]
        is_whole = isinstance(attribute, Integer) and pa.types.is_integer(table.schema.field(name).type)
        wide = attribute if attribute.has_domain or is_whole else _widest(attribute)
        if wide.has_domain:
            coded[name] = wide
    columns = {name: table.column(name) for name in schema.data_names}
    if coded:
        codec = Codec(Schema(attributes=coded))
        typed = codec.decode(codec.encode(table.select(list(coded))))
        columns |= {name: typed.column(name) for name in coded}
    return PrivateTable(pa.table(columns))


def _widest(attribute: Attribute) -> Attribute:
    """The attribute with the widest range it can have; as it is if that is not known, or if its values are listed."""
    ranges: list[tuple[Any, Any]]
    match attribute:
        case Integer():
            bits = min(60, attribute.arrow_type.bit_width - pa.types.is_signed_integer(attribute.arrow_type))
            low = -(2**bits) if pa.types.is_signed_integer(attribute.arrow_type) else 0
            ranges = [(low, 2**bits - 1)]
        case Real():
            ranges = [(-(10**digits), 10**digits) for digits in range(18 - attribute.decimals, 0, -1)]
        case Date():
            ranges = [(dt.date.min, dt.date.max), _COMMON_DAYS]
        case Datetime():
            first, last = (dt.datetime(day.year, day.month, day.day) for day in _COMMON_DAYS)
            ranges = [(first, last)]
        case _:
            return attribute
    for low, high in ranges:
        with suppress(SchemaError, OverflowError):
            return attribute.with_domain(min=low, max=high)
    return attribute


_COMMON_DAYS = (dt.date(1700, 1, 1), dt.date(2250, 1, 1))


def trusted_attribute(private: PrivateTable, name: str, attribute: Attribute) -> Attribute:
    """An attribute as a schema declares it, with the domain of the table; as it is where it cannot have that."""
    column = _distinct(private, name)[0]
    if is_text(column.type) and isinstance(attribute, Date | Datetime):
        return with_asserted_dates(attribute, column.cast(pa.string()))
    whole = pa.types.is_integer(column.type)
    kinds = (Categorical, Integer) if whole else (Categorical,) if is_text(column.type) else ()
    return with_asserted(attribute, column) if isinstance(attribute, kinds) else attribute


def trusted_schema(private: PrivateTable, *, dated: bool = False) -> Schema:
    """A schema with the domains of the table, for a run whose user says that these are public (`trust_domain`).

    With `dated`, texts that are all written as dates are dates: those of a file without types, which is held in memory.
    """
    rows = open_rows(private)
    if isinstance(rows, pa.Table):
        drafted = draft_schema(rows, trust_domain=True, codes=True)
        if not dated:
            return drafted
        return with_numbers(with_formats(drafted, rows, trust_domain=True), rows, trust_domain=True)
    refuse_too_wide(len(rows.schema))
    found: dict[str, Attribute] = {}
    for field in rows.schema:
        values, num_rows = _distinct(private, field.name)
        table = pa.Table.from_arrays([values], schema=pa.schema([field]))
        found |= draft_schema(table, trust_domain=True, codes=True, num_rows=num_rows).attributes
    return Schema(attributes=found)


def _distinct(private: PrivateTable, name: str) -> tuple[pa.ChunkedArray, int]:
    """The column, and how many rows it has; of a table in parts, each value once: domains depend on no more."""
    rows = open_rows(private)
    if isinstance(rows, pa.Table):
        return rows.column(name), rows.num_rows
    found, num_rows = None, 0
    for part in open_parts(private, [name]):
        column, num_rows = part.column(name), num_rows + part.num_rows
        both = column if found is None else pa.chunked_array([*found.chunks, *column.chunks], column.type)
        found = pa.chunked_array([both.unique()], column.type)
    assert found is not None, "there is at least one part"
    return found, num_rows
