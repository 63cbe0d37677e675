"""Terms row by row in exact arithmetic: slow, and written without a look at how columns are computed."""

from __future__ import annotations

import math
import re
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.tree import Column, Constant, Operator

EPOCH = date(1970, 1, 1)


def value_of(term: Term, row: dict[str, Any]) -> Any:
    """The value of a term in one row: a Fraction, a date, a text, a boolean or None."""
    match term:
        case Column(name=name):
            return exact(row[name])
        case Constant(value=value):
            return exact(value)
        case Apply(function=name, arguments=arguments):
            return _apply(name, arguments, row)


def exact(value: Any) -> Any:
    if value is None or isinstance(value, bool | str | date):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else Fraction(repr(value))
    return Fraction(value)


def compare(a: Any, op: Operator, b: Any) -> bool | None:
    if a is None or b is None:
        return None
    return {
        Operator.EQ: lambda: a == b,
        Operator.NE: lambda: a != b,
        Operator.LT: lambda: a < b,
        Operator.LE: lambda: a <= b,
        Operator.GT: lambda: a > b,
        Operator.GE: lambda: a >= b,
    }[op]()


def _apply(name: str, arguments: tuple[Term, ...], row: dict[str, Any]) -> Any:
    if name == "coalesce":
        return next((v for v in (value_of(a, row) for a in arguments) if v is not None), None)
    if name == "choose":
        return value_of(arguments[1 if value_of(arguments[0], row) is True else 2], row)
    values = [value_of(each, row) for each in arguments]
    if name == "is_null":
        return values[0] is None
    if name == "and":
        return False if False in values else None if None in values else True
    if name == "or":
        return True if True in values else None if None in values else False
    if name == "in":
        found = [compare(values[0], Operator.EQ, each) for each in values[1:]]
        return True if True in found else None if None in found else False
    if name == "nullif":
        return None if values[0] is not None and values[0] == values[1] else values[0]
    if any(each is None for each in values):
        return None
    return _STRICT[name](*values)


def _round(x: Fraction, n: Fraction = Fraction(0)) -> Fraction:
    scale = Fraction(10) ** int(n)
    moved = abs(x) * scale
    whole = math.floor(moved + Fraction(1, 2))
    return Fraction(whole if x >= 0 else -whole) / scale


def _months(a: date, b: date) -> Fraction:
    if b < a:
        return -_months(b, a)
    found = (b.year - a.year) * 12 + b.month - a.month
    return Fraction(found - (b.day < a.day))


def _minus(a: Any, b: Any) -> Any:
    if isinstance(a, date):
        return Fraction((a - b).days) if isinstance(b, date) else a - timedelta(days=int(b))
    return a - b


def _start(unit: str, d: date) -> date:
    return {
        "year": date(d.year, 1, 1),
        "quarter": date(d.year, (d.month - 1) // 3 * 3 + 1, 1),
        "month": d.replace(day=1),
        "week": d - timedelta(days=d.weekday()),
        "day": d,
    }[unit]


def _mod(a: Fraction, b: Fraction) -> Fraction | None:
    if b == 0:
        return None
    rest = abs(a) % abs(b)
    return rest if a >= 0 else -rest


_STRICT: dict[str, Any] = {
    "add": lambda a, b: a + timedelta(days=int(b)) if isinstance(a, date) else a + b,
    "subtract": _minus,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b if b else None,
    "mod": _mod,
    "negate": lambda a: -a,
    "abs": abs,
    "sign": lambda a: Fraction((a > 0) - (a < 0)),
    "floor": lambda a: Fraction(math.floor(a)),
    "ceil": lambda a: Fraction(math.ceil(a)),
    "round": _round,
    "power": lambda a, b: a ** int(b),
    "min": min,
    "max": max,
    "number": lambda a: Fraction(a),
    "year": lambda d: Fraction(d.year),
    "quarter": lambda d: Fraction((d.month + 2) // 3),
    "month": lambda d: Fraction(d.month),
    "day": lambda d: Fraction(d.day),
    "week": lambda d: Fraction(d.isocalendar()[1]),
    "weekday": lambda d: Fraction(d.isoweekday()),
    "yearday": lambda d: Fraction(d.timetuple().tm_yday),
    "days": lambda a, b: Fraction((b - a).days),
    "months": _months,
    "years": lambda a, b: Fraction(int(_months(a, b) / 12)),
    "start_of": _start,
    "length": lambda t: Fraction(len(t)),
    "bytes": lambda t: Fraction(len(t.encode())),
    "lower": str.lower,
    "upper": str.upper,
    "trim": str.strip,
    "ltrim": str.lstrip,
    "rtrim": str.rstrip,
    "left": lambda t, n: t[: max(0, int(n))],
    "right": lambda t, n: t[max(0, len(t) - max(0, int(n))) :],
    "substr": lambda t, a, n=None: t[max(0, int(a) - 1) :][: None if n is None else max(0, int(n))],
    "replace": lambda t, a, b: t.replace(a, b),
    "concat": lambda a, b: a + b,
    "like": lambda t, p: re.fullmatch(re.escape(p).replace("%", ".*").replace("_", "."), t, re.DOTALL) is not None,
    "matches": lambda t, p: re.search(p, t) is not None,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": lambda t, p: p in t,
    "items": lambda t, s: Fraction(len(t.split(s))),
    "items_differ": lambda t, s: len({i.strip() for i in t.split(s)}) == len(t.split(s)),
    "has_item": lambda t, s, w: w in [i.strip() for i in t.split(s)],
    "each_in": lambda t, s, *allowed: all(i.strip() in allowed for i in t.split(s)),
    "not": lambda a: not a,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
