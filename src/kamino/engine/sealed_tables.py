"""What is done to all rows of a private table before anything is measured: what comes out is as private."""

from __future__ import annotations

import pyarrow as pa

from kamino.privacy import Gate
from kamino.privacy.private import PrivateCodes, PrivateTable, open_table
from kamino.schema import Attribute, Categorical, Codec, Integer, Schema, draft_schema
from kamino.schema.dtypes import is_text
from kamino.schema.files.draft import with_asserted


def keep_rows(private: PrivateTable, gate: Gate) -> PrivateTable:
    """Keep at most so many rows of each privacy unit as the gate's unit says."""
    return PrivateTable(gate.select_rows(open_table(private)))


def encode(private: PrivateTable, codec: Codec) -> PrivateCodes:
    """The codes of a private table."""
    return PrivateCodes(codec.encode(open_table(private)))


def with_types(private: PrivateTable, schema: Schema) -> PrivateTable:
    """The table with the types and domains of the schema; keys, whose values mean nothing, are left out."""
    codec = Codec(schema)
    typed = codec.decode(codec.encode(open_table(private)))
    return PrivateTable(typed.select(list(codec.attributes)))


def trusted_attribute(private: PrivateTable, name: str, attribute: Attribute) -> Attribute:
    """An attribute as a schema declares it, with the domain of the table; as it is where it cannot have that."""
    column = open_table(private).column(name)
    whole = pa.types.is_integer(column.type)
    kinds = (Categorical, Integer) if whole else (Categorical,) if is_text(column.type) else ()
    return with_asserted(attribute, column) if isinstance(attribute, kinds) else attribute


def trusted_schema(private: PrivateTable) -> Schema:
    """A schema with the domains of the table, for a run whose user says that these are public (`trust_domain`)."""
    return draft_schema(open_table(private), trust_domain=True, codes=True)
