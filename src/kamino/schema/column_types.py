"""Whether a table fits a schema, told by the names and types of its columns alone: no function here sees a value."""

from __future__ import annotations

from typing import assert_never

import pyarrow as pa

from kamino.errors import SchemaError
from kamino.schema.attributes import Attribute, Boolean, Categorical, Date, Datetime, Integer, Key, Real
from kamino.schema.dtypes import is_text, value_type
from kamino.schema.files.messages import did_you_mean
from kamino.schema.schema import Schema


def can_read(attribute: Attribute, arrow_type: pa.DataType) -> bool:
    """Tell whether a column of this type can be read as the attribute; text always can, value by value.

    A timestamp with a timezone is no datetime without one, since that would have to choose a clock.
    """
    kind, types = value_type(arrow_type), pa.types
    is_number = bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
    is_day = bool(types.is_date(kind) or types.is_timestamp(kind))
    if is_text(kind) or types.is_null(kind):
        return True
    match attribute:
        case Integer() | Real() | Boolean():
            return is_number or bool(types.is_boolean(kind))
        case Categorical():
            return is_number or (not attribute.holds_integers and (is_day or bool(types.is_boolean(kind))))
        case Date():
            return is_day
        case Datetime():
            zoned = types.is_timestamp(kind) and kind.tz is not None
            return is_day and (attribute.timezone is not None or not zoned)
        case Key():
            return True
        case _:
            assert_never(attribute)


def misfit(name: str, attribute: Attribute, arrow_type: pa.DataType) -> str:
    """Return why a column of this type cannot be read as the attribute, or `""` if it can."""
    if can_read(attribute, arrow_type):
        return ""
    if isinstance(attribute, Datetime) and pa.types.is_timestamp(value_type(arrow_type)):
        zone = value_type(arrow_type).tz
        return (
            f"column {name!r} has timezone {zone}, its attribute has none: write `timezone: {zone}` into the schema, "
            "or remove the column's"
        )
    return (
        f"column {name!r} has type {arrow_type}, which cannot be read as {attribute.type}: change the attribute's type "
        "in the schema, or the column's in the table"
    )


def check_columns(schema: Schema, table: pa.Table) -> None:
    """Raise a `SchemaError` with everything that is wrong in the names and types of a table's columns.

    A key column need not be there, unless it is the unit of privacy. Domains need not be known.

    Raises:
        SchemaError: columns are missing, unknown, there twice, or of a type that does not fit.
    """
    names = table.column_names
    problems, missing = [], []
    for name, attribute in schema.attributes.items():
        if names.count(name) > 1:
            problems.append(f"column {name!r} is in the table {names.count(name)} times, expected once")
        elif name in names:
            problems.append(misfit(name, attribute, table.schema.field(name).type))
        elif not isinstance(attribute, Key) or name == schema.unit:
            missing.append(name)
    unknown = [name for name in dict.fromkeys(names) if name not in schema]
    problems += [_missing(missing, names, unknown), _unknown(unknown, schema)]
    if any(problems):
        raise SchemaError("; ".join(filter(None, problems)))


def _missing(missing: list[str], names: list[str], unknown: list[str]) -> str:
    """Return one sentence on the columns that the table lacks, or `""`."""
    if not missing:
        return ""
    hints = "".join(did_you_mean(name, unknown) for name in missing)
    return f"{_columns(missing)} not in the table.{hints} Columns: {', '.join(names)}."


def _unknown(unknown: list[str], schema: Schema) -> str:
    """Return one sentence on the columns that the schema lacks, or `""`."""
    if not unknown:
        return ""
    hints = "".join(did_you_mean(name, schema) for name in unknown)
    return f"{_columns(unknown)} not in the schema.{hints} Add to the schema, or drop from the table."


def _columns(names: list[str]) -> str:
    listed = ", ".join(repr(name) for name in names)
    return f"column {listed} is" if len(names) == 1 else f"columns {listed} are"
