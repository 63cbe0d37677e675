"""Terms as SQL, as DuckDB reads it."""

from __future__ import annotations

from datetime import date, datetime

from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.tree import Column, Constant
from kamino.errors import ConstraintError

_INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "mod": "%",
    "concat": "||",
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "like": "LIKE",
    "ilike": "ILIKE",
}
_CALLS = {
    "abs": "abs",
    "sign": "sign",
    "floor": "floor",
    "ceil": "ceil",
    "round": "round",
    "power": "power",
    "length": "length",
    "lower": "lower",
    "upper": "upper",
    "trim": "trim",
    "ltrim": "ltrim",
    "rtrim": "rtrim",
    "left": "left",
    "right": "right",
    "substr": "substr",
    "replace": "replace",
    "coalesce": "coalesce",
    "nullif": "nullif",
    "starts_with": "starts_with",
}
_PARTS = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "week": "week",
    "day": "day",
    "weekday": "isodow",
    "yearday": "doy",
    "hour": "hour",
    "minute": "minute",
}


def sql_name(name: str) -> str:
    """A name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def sql_term(term: Term) -> str:
    """A term as SQL, in parentheses throughout.

    Raises:
        ConstraintError: a function has no counterpart.
    """
    match term:
        case Column(name=name, tuple=1):
            return sql_name(name)
        case Column():
            raise ConstraintError("it speaks of two rows")
        case Constant():
            return _constant(term)
        case Apply(function=name, arguments=arguments):
            return _applied(name, [sql_term(each) for each in arguments])


def _constant(constant: Constant) -> str:
    value = constant.value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return str(value)


def _applied(name: str, parts: list[str]) -> str:
    if name in _INFIX:
        return f"({parts[0]} {_INFIX[name]} {parts[1]})"
    if name in _CALLS:
        return f"{_CALLS[name]}({', '.join(parts)})"
    if name in _PARTS:
        return f"EXTRACT({_PARTS[name]} FROM {parts[0]})"
    match name:
        case "and" | "or":
            return f"({f' {name.upper()} '.join(parts)})"
        case "not":
            return f"(NOT {parts[0]})"
        case "is_null":
            return f"({parts[0]} IS NULL)"
        case "in":
            return f"({parts[0]} IN ({', '.join(parts[1:])}))"
        case "negate":
            return f"(-{parts[0]})"
        case "divide":
            return f"({parts[0]} * 1.0 / NULLIF({parts[1]}, 0))"
        case "choose":
            return f"(CASE WHEN {parts[0]} THEN {parts[1]} ELSE {parts[2]} END)"
        case "days":
            return f"({parts[1]} - {parts[0]})"
        case "matches":
            return f"regexp_matches({parts[0]}, {parts[1]})"
        case "start_of":
            return f"date_trunc({parts[0]}, {parts[1]})"
    raise ConstraintError(f"'{name}' has no counterpart in SQL")
