"""Attributes, schema files, and the codec between raw values and codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports
from kamino.schema.attribute import Source
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
from kamino.schema.coding.attribute_codec import AttributeCodec
from kamino.schema.coding.category_codec import BooleanCodec, CategoryCodec
from kamino.schema.coding.codec import Codec, CodedTable, attribute_codec
from kamino.schema.coding.grid_codec import GridCodec
from kamino.schema.column_types import can_read, check_columns
from kamino.schema.grid import Grid
from kamino.schema.keys import make_keys
from kamino.schema.schema import Schema

if TYPE_CHECKING:
    from kamino.schema.files.draft import draft_schema
    from kamino.schema.files.from_pandera import schema_from_pandera
    from kamino.schema.files.from_sdv import schema_from_sdv

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
    "draft_schema": "files.draft",
    "schema_from_pandera": "files.from_pandera",
    "schema_from_sdv": "files.from_sdv",
}

__getattr__ = late_imports(__name__, _HOMES)
