"""Attributes, schema files, and the codec between raw values and codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports
from kamino.schema.attribute import Source
from kamino.schema.attribute_codec import AttributeCodec
from kamino.schema.attributes import (
    Attribute,
    Boolean,
    Categorical,
    Date,
    Datetime,
    GridAttribute,
    Integer,
    Key,
    Real,
)
from kamino.schema.category_codec import BooleanCodec, CategoryCodec
from kamino.schema.codec import Codec, CodedTable, attribute_codec
from kamino.schema.column_types import can_read, check_columns
from kamino.schema.grid import Grid
from kamino.schema.grid_codec import GridCodec
from kamino.schema.keys import make_keys
from kamino.schema.schema import Schema

if TYPE_CHECKING:
    from kamino.schema.draft import draft_schema
    from kamino.schema.from_pandera import schema_from_pandera
    from kamino.schema.from_sdv import schema_from_sdv

__all__ = [
    "Attribute",
    "AttributeCodec",
    "Boolean",
    "BooleanCodec",
    "Categorical",
    "CategoryCodec",
    "Codec",
    "CodedTable",
    "Date",
    "Datetime",
    "Grid",
    "GridAttribute",
    "GridCodec",
    "Integer",
    "Key",
    "Real",
    "Schema",
    "Source",
    "attribute_codec",
    "can_read",
    "check_columns",
    "draft_schema",
    "make_keys",
    "schema_from_pandera",
    "schema_from_sdv",
]

_HOMES = {
    "draft_schema": "draft",
    "schema_from_pandera": "from_pandera",
    "schema_from_sdv": "from_sdv",
}

__getattr__ = late_imports(__name__, _HOMES)
