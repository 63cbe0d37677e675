"""A first schema from a pandera schema: its types, checks, nullability and uniqueness.

Pandera need not be installed: its objects are asked for what they have, its files are read as text.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from kamino.errors import SchemaError
from kamino.schema.attributes import Attribute, Boolean, Categorical, Date, Datetime, Integer, Key, Real
from kamino.schema.files.from_sdv import pattern_from_regex
from kamino.schema.files.yaml_text import load_yaml
from kamino.schema.schema import Schema

_INTEGERS = re.compile(r"(u?)int(8|16|32|64)?", re.IGNORECASE)
_NOT_CHECKS = {"dtype", "nullable", "unique", "checks", "coerce", "required", "regex", "title", "description"}


@dataclass(frozen=True, kw_only=True)
class _Column:
    """What a column of a pandera schema says, in whichever form it was given."""

    dtype: str
    nullable: bool
    unique: bool
    checks: Mapping[str, Any]
    description: str | None


def schema_from_pandera(schema: Any) -> Schema:
    """Read a pandera `DataFrameSchema`, the text of its YAML or JSON form, or that form as a mapping.

    A list of allowed values (`isin`) or a range with both ends is a declared domain; anything less leaves the domain
    private. A unique column of text or integers without listed values is a key, with the pattern of `str_matches` if
    that is made of literals and digits.

    Raises:
        SchemaError: it is of another form.
    """
    columns = _columns(schema)
    if not columns:
        raise SchemaError("pandera schema: found no columns, expected at least one")
    attributes, problems = {}, []
    for name, column in columns.items():
        try:
            attributes[str(name)] = _attribute(column)
        except (SchemaError, ValueError, ArithmeticError) as error:
            problems.append(f"pandera schema: columns.{name}: {error}")
        except (TypeError, KeyError, AttributeError):
            problems.append(f"pandera schema: columns.{name}: found checks of another form, expected pandera's")
    if problems:
        raise SchemaError("\n".join(problems))
    return Schema(attributes=attributes)


def _columns(schema: Any) -> dict[str, _Column]:
    if isinstance(schema, str):
        schema, _ = load_yaml(schema, source="pandera schema")
    if isinstance(schema, Mapping):
        columns = schema.get("columns")
        if not isinstance(columns, Mapping) or not all(isinstance(each or {}, Mapping) for each in columns.values()):
            raise SchemaError("pandera schema: expected a mapping `columns` with a mapping for each column")
        joint = schema.get("unique") or []
        listed = joint if isinstance(joint, list) else [joint]
        alone = listed if len(listed) == 1 else []
        try:
            return {name: _from_mapping(column or {}, name in alone) for name, column in columns.items()}
        except (TypeError, AttributeError):
            raise SchemaError("pandera schema: found checks of another form, expected a mapping or a list") from None
    if not hasattr(schema, "columns"):
        raise SchemaError(f"pandera schema: found {type(schema).__name__}, expected a DataFrameSchema, YAML or JSON")
    return {name: _from_object(column) for name, column in schema.columns.items()}


def _from_object(column: Any) -> _Column:
    return _Column(
        dtype=str(column.dtype),
        nullable=bool(column.nullable),
        unique=bool(column.unique),
        checks={check.name: getattr(check, "statistics", None) or {} for check in column.checks},
        description=getattr(column, "description", None),
    )


def _from_mapping(column: Mapping[str, Any], unique: bool) -> _Column:
    """Read a column's checks from any of pandera's layouts: beside the dtype, as a mapping, or as a list."""
    checks: dict[str, Any] = {name: value for name, value in column.items() if name not in _NOT_CHECKS}
    listed = column.get("checks") or {}
    if isinstance(listed, Mapping):
        checks |= listed
    else:
        for check in listed:
            name = (check.get("options") or {}).get("check_name")
            checks[str(name)] = {key: value for key, value in check.items() if key != "options"}
    return _Column(
        dtype=str(column.get("dtype")),
        nullable=bool(column.get("nullable", False)),
        unique=bool(column.get("unique", False)) or unique,
        checks=checks,
        description=column.get("description"),
    )


def _value(check: Any, *names: str) -> Any:
    """Return the argument of a check, which stands alone or under one of several names."""
    if not isinstance(check, Mapping):
        return check
    return next((check[name] for name in (*names, "value") if name in check), None)


def _attribute(column: _Column) -> Attribute:
    facts: dict[str, Any] = {"nullable": column.nullable, "description": column.description}
    allowed = _value(column.checks["isin"], "allowed_values") if "isin" in column.checks else None
    if "equal_to" in column.checks:
        allowed = [_value(column.checks["equal_to"])]
    kind = column.dtype.lower()
    integer = _INTEGERS.fullmatch(kind)
    if allowed is not None and not kind.startswith(("bool", "float", "decimal", "date")):
        return Categorical(**facts, values=_as_values(allowed))
    if column.unique and not kind.startswith(("bool", "float", "decimal", "date")):
        regex = _value(column.checks.get("str_matches"), "pattern") or ""
        pattern = None if integer else pattern_from_regex(str(getattr(regex, "pattern", regex)))
        return Key(**facts, pattern=pattern, dtype=_integer_dtype(integer))
    if integer:
        low, high = _range(column.checks, int, 1)
        dtype = _integer_dtype(integer)
        return Integer(**facts, min=low, max=high, dtype=dtype if dtype != "int64" else None)
    if kind.startswith(("float", "decimal")):
        return Real(**facts, **_real_range(column.checks))
    if kind.startswith("bool"):
        return Boolean(**facts)
    if kind in ("date", "date32", "date32[day]"):
        low, high = _range(column.checks, lambda value: _datetime(value).date(), dt.timedelta(days=1))
        return Date(**facts, min=low, max=high)
    if kind.startswith(("datetime", "timestamp")):
        zone = re.search(r",\s*(?:tz=)?([\w/+:-]+)\]", column.dtype)
        low, high = _range(column.checks, _datetime, dt.timedelta(seconds=1))
        found = Datetime(**facts, timezone=zone.group(1) if zone else None)
        return (
            found
            if low is None
            else Datetime(**{**found.fields(), **found.fit_domain({"min": low, "max": high}), "source": "declared"})
        )
    return Categorical(**facts)


def _integer_dtype(integer: re.Match[str] | None) -> str | None:
    return f"{integer.group(1)}int{integer.group(2) or 64}" if integer else None


def _as_values(allowed: Iterable[Any]) -> list[Any]:
    values = [value.item() if hasattr(value, "item") else value for value in allowed]
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return values
    return [str(value) for value in values]


def _datetime(value: Any) -> dt.datetime:
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    return value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(str(value))


def _range(checks: Mapping[str, Any], read: Callable[[Any], Any], step: Any) -> tuple[Any, Any]:
    """Return both ends of the range that the checks allow, one `step` inside where an end is excluded; or none."""
    low: list[Any] = []
    high: list[Any] = []
    for name, check in checks.items():
        match name:
            case "in_range":
                low.append(read(check["min_value"]) + (step if check.get("include_min", True) is False else 0 * step))
                high.append(read(check["max_value"]) - (step if check.get("include_max", True) is False else 0 * step))
            case "greater_than_or_equal_to" | "ge":
                low.append(read(_value(check, "min_value")))
            case "greater_than" | "gt":
                low.append(read(_value(check, "min_value")) + step)
            case "less_than_or_equal_to" | "le":
                high.append(read(_value(check, "max_value")))
            case "less_than" | "lt":
                high.append(read(_value(check, "max_value")) - step)
    return (max(low), min(high)) if low and high else (None, None)


def _real_range(checks: Mapping[str, Any]) -> dict[str, Any]:
    low, high = _range(checks, lambda value: Decimal(str(value)), Decimal("0.000001"))
    if low is None or not (low.is_finite() and high.is_finite()):
        return {}
    return Real().fit_domain({"min": low, "max": high})
