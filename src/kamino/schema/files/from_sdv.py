"""A first schema from the metadata of SDV: its names and types. SDV's metadata knows no domains."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kamino.errors import SchemaError
from kamino.schema.attributes import Attribute, Boolean, Categorical, Date, Datetime, Integer, Key, Real
from kamino.schema.keys import pattern_widths
from kamino.schema.schema import Schema

_NUMBERS = {f"{sign}Int{bits}": f"{sign.lower()}int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)}
_CLOCK = re.compile(r"%[HIMSfpXcsTR]")
_PII_PATTERNS = {
    "email": "user{:08d}@example.com",
    "phone_number": "555-{:07d}",
    "ssn": "{:03d}-{:02d}-{:04d}",
    "url": "https://example.com/{:08d}",
    "credit_card_number": "{:016d}",
}


def schema_from_sdv(metadata: Mapping[str, Any]) -> Schema:
    """Read SDV's metadata of one table (`SINGLE_TABLE_V1`, or a multi-table form that holds one table).

    Every domain is left private, since the metadata has none. Identifiers and personal kinds (email, name, ...) are
    keys.

    Raises:
        SchemaError: the metadata is of another form, or has several tables.

    >>> schema_from_sdv({"columns": {"age": {"sdtype": "numerical", "computer_representation": "Int64"}}})["age"].type
    'integer'
    """
    table = _only_table(metadata)
    columns = table.get("columns")
    if not isinstance(columns, Mapping) or not columns:
        raise SchemaError("SDV metadata: found no columns, expected a mapping `columns` with an sdtype for each")
    primary = table.get("primary_key")
    attributes: dict[str, Attribute] = {}
    problems = []
    for name, column in columns.items():
        if not isinstance(column, Mapping) or not isinstance(column.get("sdtype"), str):
            problems.append(f"SDV metadata: columns.{name}: found no sdtype, expected one such as categorical")
        else:
            attributes[str(name)] = _attribute(column, is_primary=name == primary)
    if problems:
        raise SchemaError("\n".join(problems))
    return Schema(attributes=attributes)


def _only_table(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    tables = metadata.get("tables") if isinstance(metadata, Mapping) else None
    if tables is None and isinstance(metadata, Mapping):
        return metadata
    if not isinstance(tables, Mapping) or not all(isinstance(table, Mapping) for table in tables.values()):
        raise SchemaError("SDV metadata: expected a mapping with `columns`, or `tables` with one table")
    if len(tables) != 1:
        names = ", ".join(map(str, tables)) or "none"
        raise SchemaError(f"SDV metadata: found {len(tables)} tables ({names}), expected one: keep only one of them")
    table: Mapping[str, Any] = next(iter(tables.values()))
    return table


def _attribute(column: Mapping[str, Any], *, is_primary: bool) -> Attribute:
    number = _NUMBERS.get(str(column.get("computer_representation", "Float")))
    match column["sdtype"]:
        case "id":
            return Key(pattern=pattern_from_regex(str(column.get("regex_format", ""))))
        case "numerical" if is_primary:
            return Key(dtype=number or "int64")
        case "categorical" | "boolean" | "datetime" if is_primary:
            return Key()
        case "categorical":
            return Categorical(nullable=True)
        case "boolean":
            return Boolean(nullable=True)
        case "numerical":
            if number is None:
                return Real(nullable=True)
            return Integer(nullable=True, dtype=number if number != "int64" else None)
        case "datetime":
            only_days = column.get("datetime_format") and not _CLOCK.search(str(column["datetime_format"]))
            return Date(nullable=True) if only_days else Datetime(nullable=True)
        case "unknown" if not column.get("pii", True):
            return Categorical(nullable=True)
        case personal:
            return Key(pattern=_PII_PATTERNS.get(personal))


def pattern_from_regex(regex: str) -> str | None:
    r"""Return the pattern for a regular expression made of literals and digits; `None` for any other.

    >>> pattern_from_regex(r"^C-\d{6}$")
    'C-{:06d}'
    """
    text = regex.removeprefix("^").removesuffix("$")
    digits = re.compile(r"(?:\\d|\[0-9\])(?:\{(\d+)\})?")
    literals = digits.split(text)[::2]
    if re.search(r"[][{}()*+?.|^$\\]", re.sub(r"\\[-_./: ]", "", "".join(literals))):
        return None
    pattern = digits.sub(lambda match: f"{{:0{match.group(1) or 1}d}}", text).replace("\\", "")
    try:
        pattern_widths(pattern)
    except ValueError:
        return None
    return pattern
