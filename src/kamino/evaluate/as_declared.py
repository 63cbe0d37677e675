"""A table with the types that its schema declares: texts of dates and numbers as a run reads them. For the owner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kamino.evaluate.cells import widest
from kamino.schema import Attribute, Categorical, Date, Integer, Real, Schema, Source, attribute_codec
from kamino.schema.attributes import GridAttribute
from kamino.schema.dtypes import is_text
from kamino.schema.files.reading import read_ticks
from kamino.schema.table_parts import Parts


def as_declared(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with columns of text read as the dates, times and numbers that a schema declares; unreadable is null.

    Values stay what they are, also outside their domains: `check_cells` counts those.

    Guarantees:
        Rules compare dates, where a schema says that texts are dates.  [test_rules_are_counted_as_the_schema_reads]
    """
    for place, name in enumerate(table.column_names):
        attribute = schema.attributes.get(name)
        kind = table.schema.field(name).type
        if isinstance(attribute, GridAttribute) and is_text(kind):
            table = table.set_column(place, name, _read(table.column(name), attribute))
        elif _is_code(attribute) and pa.types.is_integer(kind):
            table = table.set_column(place, name, table.column(name).cast(pa.string()))
    return table


def _is_code(attribute: Attribute | None) -> bool:
    """Whether somebody declared that digits are texts; a type that was found, for want of rows, says nothing."""
    if not isinstance(attribute, Categorical) or attribute.holds_integers:
        return False
    return attribute.source is Source.DECLARED and attribute.other is None and attribute.has_domain


def _read(column: pa.ChunkedArray, attribute: GridAttribute) -> pa.ChunkedArray:
    wide = widest(attribute)
    return pa.chunked_array([_values(chunk, wide) for chunk in column.chunks], type=_type(wide))


def _values(array: pa.Array, attribute: GridAttribute) -> pa.Array:
    if isinstance(attribute, Integer | Real):
        exact = type(attribute)(**{**attribute.fields(), "nullable": True})
        return (
            attribute_codec("read", exact).decode(attribute_codec("read", exact).encode(array)).cast(_type(attribute))
        )
    ticks = read_ticks(attribute, array)
    plain = ticks.values
    if isinstance(attribute, Date):
        return pa.array(plain.astype(np.int32), pa.int32(), mask=ticks.missing).cast(pa.date32())
    return pa.array(plain, pa.int64(), mask=ticks.missing).cast(_type(attribute))


def _type(attribute: GridAttribute) -> pa.DataType:
    match attribute:
        case Real() | Integer():
            return attribute.arrow_type
        case Date():
            return pa.date32()
        case _:
            return pa.timestamp("us", tz=attribute.timezone)


@dataclass(frozen=True, kw_only=True, eq=False)
class DeclaredParts:
    """A table that is read part by part, each with the types that a schema declares."""

    source: Parts
    declared: Schema

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return as_declared(self.source.schema.empty_table(), self.declared).schema

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns part by part; at least one part."""
        for part in self.source.parts(names):
            yield as_declared(part, self.declared)
