"""What values an attribute holds, as far as comparing them goes."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import pyarrow as pa


class ValueType(enum.Enum):
    """A family of values that can be compared with each other."""

    NUMBER = "a number"
    TEXT = "text"
    BOOLEAN = "a boolean"
    DATE = "a date"
    TIMESTAMP = "a timestamp"
    ZONED = "a timestamp with time zone"
    UNKNOWN = "of unknown type"

    def comparable(self, other: ValueType) -> bool:
        """Whether values of the two types have an order in common."""
        if ValueType.UNKNOWN in (self, other) or self is other:
            return True
        return {self, other} == {ValueType.DATE, ValueType.TIMESTAMP}


ValueTypes = Mapping[str, ValueType]


def value_type(arrow_type: Any) -> ValueType:
    """The value type of an Arrow type; types that Kamino does not read are `UNKNOWN`."""
    if pa.types.is_boolean(arrow_type):
        return ValueType.BOOLEAN
    if pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type):
        return ValueType.NUMBER
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        return ValueType.TEXT
    if pa.types.is_date(arrow_type):
        return ValueType.DATE
    if pa.types.is_timestamp(arrow_type):
        return ValueType.TIMESTAMP if arrow_type.tz is None else ValueType.ZONED
    return ValueType.UNKNOWN


def value_types(table: pa.Table) -> dict[str, ValueType]:
    """The value type of each column. One without a single value compares with anything.

    Looks at the table (which columns are all null), so it is for tools of the table's owner only.
    """
    return {
        field.name: ValueType.UNKNOWN
        if table.column(field.name).null_count == table.num_rows
        else value_type(field.type)
        for field in table.schema
    }
