"""What is done to all rows of a private table before anything is measured: what comes out is as private."""

from __future__ import annotations

import pyarrow as pa

from kamino.engine.streamed import EncodedParts
from kamino.privacy import Gate
from kamino.privacy.private import PrivateCodes, PrivateTable, open_parts, open_rows, open_table
from kamino.schema import Attribute, Categorical, Codec, Integer, Schema, check_columns, draft_schema
from kamino.schema.dtypes import is_text
from kamino.schema.files.draft import with_asserted


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
    """The table with the types and domains of the schema; keys, whose values mean nothing, are left out."""
    codec = Codec(schema)
    typed = codec.decode(codec.encode(open_table(private)))
    return PrivateTable(typed.select(list(codec.attributes)))


def trusted_attribute(private: PrivateTable, name: str, attribute: Attribute) -> Attribute:
    """An attribute as a schema declares it, with the domain of the table; as it is where it cannot have that."""
    column = _distinct(private, name)[0]
    whole = pa.types.is_integer(column.type)
    kinds = (Categorical, Integer) if whole else (Categorical,) if is_text(column.type) else ()
    return with_asserted(attribute, column) if isinstance(attribute, kinds) else attribute


def trusted_schema(private: PrivateTable) -> Schema:
    """A schema with the domains of the table, for a run whose user says that these are public (`trust_domain`)."""
    rows = open_rows(private)
    if isinstance(rows, pa.Table):
        return draft_schema(rows, trust_domain=True, codes=True)
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
