"""The values of a term in the rows of a table, exactly: whole numbers, decimals, fractions, moments, text, booleans.

Holds private values where the table is private, as arrays that stay with the caller; nothing is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.constraints.terms import exact, moments, texts
from kamino.constraints.terms.exact import Numbers
from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.terms.term_functions import COMPARING
from kamino.constraints.terms.term_types import type_of
from kamino.constraints.tree import Column, Constant, Operator
from kamino.constraints.types import ValueType, value_type

Columns = Mapping[str, Any]
Values = Numbers | Any
"""Numbers and moments are `Numbers`; texts and booleans are Arrow arrays."""


def evaluate(term: Term, columns: Columns) -> pa.Array:
    """The values of a term as an Arrow array; a number that is no finite decimal becomes the nearest double.

    Guarantees:
        Equal to exact arithmetic row by row.  [test_terms_are_those_of_exact_arithmetic]
    """
    made = values_of(term, columns)
    if not isinstance(made, Numbers):
        return made
    found = type_of(term, {name: value_type(_plain(column).type) for name, column in columns.items()})
    if found in (ValueType.DATE, ValueType.TIMESTAMP, ValueType.ZONED):
        return moments.to_arrow(made, timestamp=found is not ValueType.DATE)
    return exact.to_arrow(made)


def values_of(term: Term, columns: Columns) -> Values:
    """The values of a term as they are computed with."""
    rows = len(next(iter(columns.values()))) if columns else 0
    return _Evaluation(columns, rows).of(term)


def _plain(column: Any) -> Any:
    """A column as one plain Arrow array."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks else pa.nulls(0, column.type)
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


class _Evaluation:
    """One pass over a table; what stands twice in its terms is computed once."""

    def __init__(self, columns: Columns, rows: int) -> None:
        self._columns = columns
        self._rows = rows
        self._known: dict[Term, Values] = {}

    def of(self, term: Term) -> Values:
        if term not in self._known:
            self._known[term] = self._made(term)
        return self._known[term]

    def _made(self, term: Term) -> Values:
        match term:
            case Column(name=name):
                return from_arrow(_plain(self._columns[name]))
            case Constant(value=value):
                return self._constant(value)
            case Apply(function=name) if name in COMPARING:
                left, right = (self.of(each) for each in term.arguments)
                return compared(left, Operator(_OPERATORS[name]), right)
            case Apply(function="in"):
                return self._in(term)
            case Apply(function=name, arguments=arguments):
                found = [self.of(each) for each in arguments]
                return _FUNCTIONS[name](found, term, self._rows)

    def _constant(self, value: Any) -> Values:
        match value:
            case bool():
                return pa.array(np.full(self._rows, value))
            case int() | Decimal():
                return exact.constant(value, self._rows)
            case date():
                return moments.constant(value, self._rows)
        return pa.repeat(pa.scalar(str(value), pa.string()), self._rows)

    def _in(self, term: Apply) -> Any:
        """Whether the first argument equals one of the others: by a set where these are constants."""
        first, *rest = term.arguments
        value = self.of(first)
        listed = [each.value for each in rest if isinstance(each, Constant)]
        if not isinstance(value, Numbers) and len(listed) == len(rest) and all(isinstance(v, str) for v in listed):
            found = pc.is_in(value, value_set=pa.array(listed, value.type))
            return pc.if_else(value.is_valid(), found, pa.scalar(None, pa.bool_()))
        return reduce(pc.or_kleene, (compared(value, Operator.EQ, self.of(each)) for each in rest))


_OPERATORS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def from_arrow(column: Any) -> Values:
    """A plain Arrow column as it is computed with."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return exact.from_arrow(column)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return moments.from_arrow(column)
    if pa.types.is_null(kind):
        return column.cast(pa.string())
    return column.cast(pa.string()) if pa.types.is_large_string(kind) else column


def compared(a: Values, op: Operator, b: Values) -> Any:
    """Where `a op b` is true or false; null where one of them is null."""
    if isinstance(a, Numbers) and isinstance(b, Numbers):
        return _booleans(exact.compare(a, op, b), a.valid & b.valid)
    if isinstance(a, Numbers) or isinstance(b, Numbers):  # a column without a single value compares with anything
        return pa.nulls(len(a), pa.bool_())
    if pa.types.is_string(a.type) and pa.types.is_string(b.type):
        return _BY_OPERATOR[op](a, b)
    if pa.types.is_boolean(a.type) and pa.types.is_boolean(b.type):
        return _BY_OPERATOR[op](a.cast(pa.uint8()), b.cast(pa.uint8()))
    return pa.nulls(len(a), pa.bool_())


_BY_OPERATOR: dict[Operator, Callable[[Any, Any], Any]] = {
    Operator.EQ: pc.equal,
    Operator.NE: pc.not_equal,
    Operator.LT: pc.less,
    Operator.LE: pc.less_equal,
    Operator.GT: pc.greater,
    Operator.GE: pc.greater_equal,
}


def _booleans(found: Any, valid: Any) -> Any:
    return pa.array(np.asarray(found, dtype=np.bool_), mask=~valid)


def _valid(values: Values) -> Any:
    return values.valid if isinstance(values, Numbers) else np.asarray(values.is_valid().cast(pa.uint8())).astype(bool)


def _chosen(condition: Any) -> Any:
    return np.asarray(pc.fill_null(condition, False).cast(pa.uint8())).astype(np.bool_)


def _coalesce(found: list[Values], term: Apply, rows: int) -> Values:
    return reduce(_first_known, found)


def _first_known(a: Values, b: Values) -> Values:
    return _either(_valid(a), a, b)


def _either(chosen: Any, a: Values, b: Values) -> Values:
    """`a` in the rows that are chosen, `b` in the others; what has no value at all has any type."""
    if isinstance(a, Numbers) or isinstance(b, Numbers):
        return exact.where(chosen, _as_numbers(a), _as_numbers(b))
    if a.type != b.type:
        a, b = (each.cast(pa.string()) for each in (a, b))
    return pc.if_else(pa.array(chosen), a, b)


def _as_numbers(values: Values) -> Numbers:
    if isinstance(values, Numbers):
        return values
    zeros = np.zeros(len(values), dtype=np.int64)
    return Numbers(zeros, 1, np.zeros(len(values), dtype=np.bool_))


def _nullif(found: list[Values], term: Apply, rows: int) -> Values:
    value, other = found
    same = _chosen(compared(value, Operator.EQ, other))
    if isinstance(value, Numbers):
        return Numbers(value.numerator, value.denominator, value.valid & ~same)
    return pc.if_else(pa.array(~same), value, pa.scalar(None, value.type))


def _choose(found: list[Values], term: Apply, rows: int) -> Values:
    return _either(_chosen(found[0]), found[1], found[2])


def _extreme(op: Operator) -> Callable[[list[Values], Apply, int], Values]:
    def pick(a: Numbers, b: Numbers) -> Numbers:
        found = exact.where(exact.compare(a, op, b), a, b)
        return Numbers(found.numerator, found.denominator, a.valid & b.valid)

    return lambda found, term, rows: reduce(pick, map(_as_numbers, found))


def _number(found: list[Values], term: Apply, rows: int) -> Values:
    (value,) = found
    if isinstance(value, Numbers):
        return value
    if pa.types.is_boolean(value.type):
        return exact.from_arrow(value.cast(pa.int64()))
    trimmed = pc.utf8_trim_whitespace(value)
    written = pc.match_substring_regex(trimmed, r"^[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})$")
    kept = pc.if_else(written, trimmed, pa.scalar(None, pa.string()))
    return exact.from_arrow(texts.each_row(kept, _decimal, pa.decimal128(38, 15)).cast(pa.decimal128(38, 15)))


def _decimal(text: str) -> Decimal | None:
    value = Decimal(text)
    kept = round(value, 15)
    return kept if abs(kept) < 10**22 else None


def _text(found: list[Values], term: Apply, rows: int) -> Any:
    (value,) = found
    if not isinstance(value, Numbers):
        return value if pa.types.is_string(value.type) else value.cast(pa.string())
    return pa.array([_written(value.fraction(row)) for row in range(len(value))], pa.string())


def _written(value: Any) -> str | None:
    """A number as its shortest decimal; what never ends to fifteen digits."""
    if value is None:
        return None
    if value.denominator == 1:
        return str(value.numerator)
    digits = exact.decimal_digits(value.denominator)
    made = Decimal(value.numerator) / Decimal(value.denominator)
    return format(round(made, 15 if digits is None else digits).normalize(), "f")


def _date(found: list[Values], term: Apply, rows: int) -> Values:
    (value,) = found
    return exact.floor(value) if isinstance(value, Numbers) else moments.from_arrow(_dates_of(value))


def _dates_of(value: Any) -> Any:
    def read(text: str) -> date | None:
        try:
            return date.fromisoformat(text.strip()[:10])
        except ValueError:
            return None

    return texts.each_row(value, read, pa.date32())


def _slice(found: list[Values], term: Apply, rows: int) -> Any:
    text, *numbers = found
    whole = [np.asarray(exact.floor(_as_numbers(each)).numerator, dtype=np.int64) for each in numbers]
    valid = reduce(np.logical_and, (_as_numbers(each).valid for each in numbers))
    far = np.full(rows, 2**31 - 1, dtype=np.int64)
    match term.function:
        case "left":
            return texts.slices(text, np.zeros_like(far), np.maximum(whole[0], 0), valid)
        case "right":
            size = np.asarray(pc.fill_null(pc.utf8_length(text), 0), dtype=np.int64)
            return texts.slices(text, np.maximum(size - np.maximum(whole[0], 0), 0), far, valid)
        case _:
            start = whole[0] - 1
            stop = start + np.maximum(whole[1], 0) if len(whole) > 1 else far
            return texts.slices(text, start, stop, valid)


def _constant_text(term: Apply, place: int) -> str:
    found = term.arguments[place]
    assert isinstance(found, Constant), "patterns and separators are constants, which binding sees to"
    return str(found.value)


def _items(found: list[Values], term: Apply, rows: int) -> Values:
    separator = _constant_text(term, 1)
    match term.function:
        case "items":
            made = texts.each_row(found[0], lambda t: len(texts.items_of(t, separator)), pa.int64())
            return exact.from_arrow(made)
        case "items_differ":
            return texts.each_row(found[0], lambda t: _all_differ(texts.items_of(t, separator)), pa.bool_())
        case "has_item":
            wanted = _constant_text(term, 2)
            return texts.each_row(found[0], lambda t: wanted in texts.items_of(t, separator), pa.bool_())
        case "item":
            position = int(_constant_text(term, 2))
            return texts.each_row(found[0], lambda t: _nth(texts.items_of(t, separator), position), pa.string())
        case _:
            allowed = {_constant_text(term, place) for place in range(2, len(term.arguments))}
            return texts.each_row(found[0], lambda t: allowed.issuperset(texts.items_of(t, separator)), pa.bool_())


def _all_differ(items: list[str]) -> bool:
    return len(set(items)) == len(items)


def _nth(items: list[str], position: int) -> str | None:
    return items[position - 1] if 0 < position <= len(items) else None


def _affix(found: list[Values], term: Apply, rows: int) -> Any:
    match term.function:
        case "starts_with":
            return pc.starts_with(found[0], _constant_text(term, 1))
        case "ends_with":
            return pc.ends_with(found[0], _constant_text(term, 1))
        case _:
            return pc.match_substring(found[0], _constant_text(term, 1))


def _pattern(found: list[Values], term: Apply, rows: int) -> Any:
    pattern = _constant_text(term, 1)
    if term.function in ("like", "ilike"):
        pattern = texts.like_pattern(pattern)
    return texts.matches(found[0], pattern, fold=term.function in ("ilike", "imatches"))


def _power(found: list[Values], term: Apply, rows: int) -> Numbers:
    exponent = term.arguments[1]
    assert isinstance(exponent, Constant), "an exponent is a constant, which binding sees to"
    base = _as_numbers(found[0])
    one = exact.Numbers(exact.constant(1, rows).numerator, 1, base.valid)
    return reduce(exact.multiply, [base] * int(exponent.value), one)  # type: ignore[arg-type]


def _rounded(found: list[Values], term: Apply, rows: int) -> Numbers:
    digits = term.arguments[1] if len(term.arguments) > 1 else Constant(0)
    assert isinstance(digits, Constant), "digits are a constant, which binding sees to"
    return exact.rounded(_as_numbers(found[0]), int(str(digits.value)))


def _replace(found: list[Values], term: Apply, rows: int) -> Any:
    return pc.replace_substring(found[0], _constant_text(term, 1), _constant_text(term, 2))


_Made = Callable[[list[Values], Apply, int], Values]


def _numeric(function: Callable[..., Numbers]) -> _Made:
    return lambda found, term, rows: function(*map(_as_numbers, found))


def _textual(function: Callable[..., Any]) -> _Made:
    return lambda found, term, rows: function(*found)


def _counted(function: Callable[..., Any]) -> _Made:
    return lambda found, term, rows: exact.from_arrow(function(*found).cast(pa.int64()))


def _moment_part(found: list[Values], term: Apply, rows: int) -> Numbers:
    return moments.part(term.function, _as_numbers(found[0]))


_FUNCTIONS: dict[str, _Made] = {
    "add": _numeric(exact.add),
    "subtract": _numeric(lambda a, b: exact.add(a, b, -1)),
    "multiply": _numeric(exact.multiply),
    "divide": _numeric(exact.divide),
    "mod": _numeric(exact.modulo),
    "negate": _numeric(exact.negate),
    "abs": _numeric(exact.absolute),
    "sign": _numeric(exact.sign),
    "floor": _numeric(exact.floor),
    "ceil": _numeric(exact.ceil),
    "round": _rounded,
    "power": _power,
    "min": _extreme(Operator.LE),
    "max": _extreme(Operator.GE),
    "number": _number,
    **dict.fromkeys(
        ("year", "quarter", "month", "week", "day", "weekday", "yearday", "hour", "minute", "second"), _moment_part
    ),
    "date": _date,
    "days": _numeric(lambda a, b: exact.add(b, a, -1)),
    "months": _numeric(moments.months_between),
    "years": _numeric(moments.years_between),
    "start_of": lambda found, term, rows: moments.start(_constant_text(term, 0), _as_numbers(found[1])),
    "length": _counted(pc.utf8_length),
    "bytes": _counted(pc.binary_length),
    "lower": _textual(pc.utf8_lower),
    "upper": _textual(pc.utf8_upper),
    "trim": _textual(pc.utf8_trim_whitespace),
    "ltrim": _textual(pc.utf8_ltrim_whitespace),
    "rtrim": _textual(pc.utf8_rtrim_whitespace),
    "left": _slice,
    "right": _slice,
    "substr": _slice,
    "replace": _replace,
    "concat": _textual(lambda a, b: pc.binary_join_element_wise(a, b, "")),
    "text": _text,
    **dict.fromkeys(("item", "items", "each_in", "items_differ", "has_item"), _items),
    **dict.fromkeys(("like", "ilike", "matches", "imatches"), _pattern),
    **dict.fromkeys(("starts_with", "ends_with", "contains"), _affix),
    "coalesce": _coalesce,
    "nullif": _nullif,
    "choose": _choose,
    "and": lambda found, term, rows: reduce(pc.and_kleene, found),
    "or": lambda found, term, rows: reduce(pc.or_kleene, found),
    "not": _textual(pc.invert),
    "is_null": lambda found, term, rows: pa.array(~_valid(found[0])),
}
