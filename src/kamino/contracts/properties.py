"""Properties of columns that table schemas, JSON Schema and data contracts share: required, enum, pattern, …"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from typing import Any

from kamino.constraints.language.parser import Statement
from kamino.constraints.terms.canonical_terms import applied, compared
from kamino.constraints.terms.term import Term
from kamino.constraints.tree import Column, Constant, Operator
from kamino.constraints.types import ValueType
from kamino.contracts.contract import Draft
from kamino.contracts.rule_forms import (
    FORMATS,
    between,
    holds,
    in_values,
    length_between,
    matches,
    not_null,
    unique,
    value_of,
)

TYPES = {
    "string": ValueType.TEXT,
    "text": ValueType.TEXT,
    "varchar": ValueType.TEXT,
    "uuid": ValueType.TEXT,
    "integer": ValueType.NUMBER,
    "int": ValueType.NUMBER,
    "long": ValueType.NUMBER,
    "bigint": ValueType.NUMBER,
    "number": ValueType.NUMBER,
    "decimal": ValueType.NUMBER,
    "numeric": ValueType.NUMBER,
    "float": ValueType.NUMBER,
    "double": ValueType.NUMBER,
    "year": ValueType.NUMBER,
    "boolean": ValueType.BOOLEAN,
    "date": ValueType.DATE,
    "datetime": ValueType.TIMESTAMP,
    "timestamp": ValueType.TIMESTAMP,
    "timestamp_ntz": ValueType.TIMESTAMP,
    "timestamp_tz": ValueType.ZONED,
}
_BOUNDS = {
    "minimum": Operator.GE,
    "maximum": Operator.LE,
    "exclusiveMinimum": Operator.GT,
    "exclusiveMaximum": Operator.LT,
}
_OF_TYPE = ("date", "date-time", "time", "default", "any", "binary", "byte", "int32", "int64", "float", "double",
            "i8", "i16", "i32", "i64", "f32", "f64", "u8", "u16", "u32", "u64")  # fmt: skip


def add_properties(
    draft: Draft, table: str, name: str, facts: Mapping[str, Any], line: int, *, whole_pattern: bool = False
) -> None:
    """Add the rules that the properties of one column are. `whole_pattern`: patterns match from end to end."""
    kind = _type(facts.get("type"))
    draft.column(table, name, kind)
    column = Column(name)
    for key, value in facts.items():
        make = _maker(column, key, value, kind, facts, whole_pattern)
        if make is not None:
            draft.add(table, make, f"{name}: {key}: {value}", line)


def _type(named: object) -> ValueType | None:
    listed = [each for each in (named if isinstance(named, list) else [named]) if each != "null"]
    return TYPES.get(str(listed[0]).lower()) if len(listed) == 1 else None


def _maker(
    column: Column, key: str, value: Any, kind: ValueType | None, facts: Mapping[str, Any], whole: bool
) -> Callable[[], Iterable[Statement]] | None:
    match key:
        case "required" | "primaryKey" | "primary" if value is True:
            is_key = key != "required"
            return lambda: (*not_null(column), *(unique([column]) if is_key else ()))
        case "unique" if value is True:
            return lambda: unique([column])
        case "enum" if isinstance(value, list):
            return lambda: holds(in_values(column, value))
        case "const":
            return lambda: holds(in_values(column, [value]))
        case "pattern":
            return lambda: holds(matches(column, str(value), whole=whole))
        case "format" if value in FORMATS and str(value) not in _OF_TYPE:
            return lambda: holds(matches(column, FORMATS[str(value)]))
        case "format" if isinstance(value, str) and "%" not in value and value not in _OF_TYPE:
            return lambda: holds(matches(column, FORMATS[value]) if value in FORMATS else _unknown(value))
        case "exclusiveMinimum" | "exclusiveMaximum" if value is True:
            end = "minimum" if key == "exclusiveMinimum" else "maximum"
            return lambda: holds(compared(column, _BOUNDS[key], _bound(facts.get(end), kind)))
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" if (
            value is not None and value is not False
        ):
            return lambda: holds(compared(column, _BOUNDS[key], _bound(value, kind)))
        case "minLength":
            return lambda: holds(length_between(column, int(value), None))
        case "maxLength":
            return lambda: holds(length_between(column, None, int(value)))
        case "multipleOf":
            return lambda: holds(compared(applied("mod", column, value_of(value)), Operator.EQ, Constant(0)))
    return None


def _unknown(value: str) -> Any:
    from kamino.errors import ConstraintError

    raise ConstraintError(f"the format '{value}' is not known here")


def _bound(value: Any, kind: ValueType | None) -> Term:
    """A bound as a value of the column's type: a text may be a date or a number."""
    if isinstance(value, str) and kind in (ValueType.DATE, ValueType.TIMESTAMP, ValueType.ZONED, None):
        for read in (date.fromisoformat, datetime.fromisoformat):
            try:
                return Constant(read(value.replace("Z", "+00:00")))
            except ValueError:
                continue
    if isinstance(value, str) and kind is ValueType.NUMBER:
        from kamino.limits import read_number

        return Constant(read_number(value))
    return value_of(value)


def add_key(draft: Draft, table: str, names: list[str], text: str, line: int) -> None:
    """A primary key of one or several columns."""
    columns = [Column(name) for name in names]
    draft.add(table, lambda: (*(s for each in columns for s in not_null(each)), *unique(columns)), text, line)


def ranged(column: Column, low: Any, high: Any) -> tuple[Statement, ...]:
    """A range with one end or both."""
    return holds(between(column, low, high))
