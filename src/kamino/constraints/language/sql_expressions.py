"""Expressions of SQL, as a parser gives them, to expressions and terms of this language.

What has no counterpart raises, with the SQL as it stands there: nothing is read as something else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal

from sqlglot import exp

from kamino.advice import named
from kamino.constraints.language.expressions import And, Expression, Not, Or, as_term
from kamino.constraints.terms.canonical_terms import applied, compared, is_true
from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.terms.term_functions import FUNCTIONS
from kamino.constraints.terms.texts import pattern_problem
from kamino.constraints.tree import Column, Comparison, Constant, NullTest, Operator
from kamino.constraints.types import ValueType
from kamino.errors import ConstraintError
from kamino.limits import cut, read_number

COMPARISONS: dict[type[exp.Expr], Operator] = {
    exp.EQ: Operator.EQ,
    exp.NEQ: Operator.NE,
    exp.LT: Operator.LT,
    exp.LTE: Operator.LE,
    exp.GT: Operator.GT,
    exp.GTE: Operator.GE,
}
_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Mod: "mod",
    exp.DPipe: "concat",
}
_PATTERNS: dict[type[exp.Expr], str] = {
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.RegexpLike: "matches",
    exp.RegexpILike: "imatches",
    exp.StartsWith: "starts_with",
}
_PARTS = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "week": "week",
    "day": "day",
    "isodow": "weekday",
    "doy": "yearday",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
}
_TODAY = ("now", "getdate", "sysdate", "today", "current_date", "current_timestamp", "getutcdate")
_INTERVALS = {"day": 1, "days": 1, "week": 7, "weeks": 7}
_NAMES = {
    "char_length": "length",
    "character_length": "length",
    "octet_length": "bytes",
    "len": "length",
    "btrim": "trim",
    "ceiling": "ceil",
    "nvl": "coalesce",
    "ifnull": "coalesce",
    "ends_with": "ends_with",
    "str_length": "length",
}


@dataclass(frozen=True)
class SqlReader:
    """Reads expressions of one dialect; `today` stands for the current date, `types` are those that are declared."""

    dialect: str | None = None
    today: date | None = None
    types: dict[str, ValueType] = field(default_factory=dict)

    def expression(self, node: exp.Expr) -> Expression:
        """What is true or false of rows."""
        if node.args.get("negate"):
            plain = node.copy()
            plain.set("negate", None)
            return Not(self.expression(plain))
        match node:
            case exp.Paren():
                return self.expression(node.this)
            case exp.And():
                return And(tuple(self.expression(part) for part in node.flatten()))
            case exp.Or():
                return Or(tuple(self.expression(part) for part in node.flatten()))
            case exp.Not():
                return Not(self.expression(node.this))
            case exp.Between():
                value, low, high = (self.term(each) for each in (node.this, node.args["low"], node.args["high"]))
                return And((compared(value, Operator.GE, low), compared(value, Operator.LE, high)))
            case exp.In() if node.expressions:
                return self._one_of(node.this, node.expressions)
            case exp.EQ(expression=exp.Any()) if (listed := _array(node.expression.this)) is not None:
                return self._one_of(node.this, listed)
            case exp.NEQ(expression=exp.All()) if (listed := _array(node.expression.this)) is not None:
                return Not(self._one_of(node.this, listed))
            case exp.Is():
                return self._is(node)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._distinct(node)
            case exp.Boolean():
                raise _unsupported(node)
            case exp.Column():
                return Comparison(self._column(node), Operator.EQ, Constant(True))
            case exp.SimilarTo():
                pattern = _similar(_text_of(node.expression, node))
                return is_true(applied("matches", self.term(node.this), Constant(pattern)))
        if type(node) in COMPARISONS:
            return self._comparison(node, COMPARISONS[type(node)])
        found = self.term(node)
        if isinstance(found, Apply) and FUNCTIONS[found.function].gives is ValueType.BOOLEAN:
            return is_true(found)
        raise _unsupported(node)

    def _comparison(self, node: exp.Expr, op: Operator) -> Expression:
        left, right = node.this, node.args["expression"]
        if op in (Operator.EQ, Operator.NE) and _is_test(left) and _is_test(right):
            a, b = self.expression(left), self.expression(right)
            same = And((Or((Not(a), b)), Or((a, Not(b)))))
            return same if op is Operator.EQ else Not(same)
        aged = self._aged(left, op, right)
        return compared(self.term(left), op, self.term(right)) if aged is None else aged

    def _aged(self, left: exp.Expr, op: Operator, right: exp.Expr) -> Expression | None:
        """`age(later, earlier) > interval '18 years'` as whole years between, which `>=` and `<` ask for exactly."""
        if not (isinstance(right, exp.Interval) and op in (Operator.GE, Operator.LT)):
            return None
        if isinstance(left, exp.Sub) and (unit := _unit(right)) in _INTERVALS:
            days = self._interval(right) * _INTERVALS[unit]
            return compared(self.term(left), op, Constant(days))
        raise _unsupported(right)

    def _one_of(self, value: exp.Expr, listed: list[exp.Expr]) -> Expression:
        term, values = self.term(value), [self.term(item) for item in listed if not isinstance(item, exp.Null)]
        if isinstance(term, Apply) and all(isinstance(each, Constant) for each in values):
            return is_true(applied("in", term, *values))
        return Or(tuple(compared(term, Operator.EQ, each) for each in values))

    def _is(self, node: exp.Is) -> Expression:
        value = node.expression
        if isinstance(value, exp.Boolean):
            same = compared(self.term(node.this), Operator.EQ, Constant(bool(value.this)))
            return And((Not(_null_test(self.term(node.this))), same))
        if not isinstance(value, exp.Null):
            raise _unsupported(node)
        return _null_test(self.term(node.this))

    def _distinct(self, node: exp.Expr) -> Expression:
        left, right = self.term(node.this), self.term(node.args["expression"])
        if not right.columns:
            differs: Expression = Or(
                (_null_test(left), And((Not(_null_test(left)), compared(left, Operator.NE, right))))
            )
        else:
            one, other = _null_test(left), _null_test(right)
            alone = Or((And((one, Not(other))), And((Not(one), other))))
            differs = Or((alone, And((Not(one), Not(other), compared(left, Operator.NE, right)))))
        return differs if isinstance(node, exp.NullSafeNEQ) else Not(differs)

    def term(self, node: exp.Expr) -> Term:
        """What has a value in each row."""
        match node:
            case exp.Paren():
                return self.term(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Boolean():
                return Constant(bool(node.this))
            case exp.Literal() | exp.National() | exp.RawString() | exp.ByteString():
                return _literal(node)
            case exp.Neg():
                return applied("negate", self.term(node.this))
            case exp.Cast() | exp.TryCast():
                return self._cast(node)
            case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
                return self._moved(node)
            case exp.Div():
                return applied("divide", self.term(node.this), self.term(node.expression))
            case exp.IntDiv():
                return applied("floor", applied("divide", self.term(node.this), self.term(node.expression)))
            case exp.CurrentDate() | exp.CurrentTimestamp() | exp.CurrentDatetime():
                return self._now(node)
            case exp.Case():
                return self._case(node)
            case exp.If():
                otherwise = node.args.get("false")
                if otherwise is None:
                    raise _unsupported(node)
                return applied(
                    "choose", as_term(self.expression(node.this)), self.term(node.args["true"]), self.term(otherwise)
                )
        if type(node) in _BINARY:
            return applied(_BINARY[type(node)], self.term(node.this), self.term(node.args["expression"]))
        if type(node) in _PATTERNS:
            return self._pattern(node, _PATTERNS[type(node)])
        reader = _READERS.get(type(node))
        if reader is not None:
            return reader(self, node)
        if isinstance(node, exp.Anonymous):
            return self._named(node)
        raise _unsupported(node)

    def _column(self, node: exp.Column) -> Column:
        if isinstance(node.this, exp.Star):
            raise _unsupported(node)
        return Column(node.name)

    def _pattern(self, node: exp.Expr, name: str) -> Term:
        text, pattern = self.term(node.this), _text_of(node.args["expression"], node)
        if isinstance(node, exp.RegexpLike) and "i" in str(node.args.get("flag") or ""):
            name = "imatches"
        problem = pattern_problem(pattern) if name in ("matches", "imatches") else ""
        if problem:
            raise ConstraintError(f"its pattern needs look-around or back-references ({cut(problem)})")
        return applied(name, text, Constant(pattern))

    def _cast(self, node: exp.Expr) -> Term:
        kind = node.args["to"]
        inner = self.term(node.this)
        if isinstance(inner, Constant):
            return _as_type(inner, kind)
        known = self.types.get(inner.name) if isinstance(inner, Column) else None
        if kind.is_type(*exp.DataType.TEXT_TYPES) or kind.is_type("citext", "name"):
            # PostgreSQL writes a varchar so, which is a text already.
            return inner if known in (None, ValueType.TEXT) else applied("text", inner)
        if kind.is_type("date", "date32"):
            return applied("date", inner)
        if kind.is_type(*exp.DataType.INTEGER_TYPES):
            return inner if known is ValueType.NUMBER else applied("number", inner)
        if kind.is_type(*exp.DataType.NUMERIC_TYPES):
            return inner if known is ValueType.NUMBER else applied("number", inner)
        if kind.is_type(*exp.DataType.TEMPORAL_TYPES) or kind.is_type("boolean"):
            return inner
        raise _unsupported(node)

    def _interval(self, node: exp.Interval) -> int:
        try:
            text = str(node.this.name if node.this is not None else "")
            return int(text.split()[0]) if text.split() else int(text)
        except ValueError:
            raise _unsupported(node) from None

    def _moved(self, node: exp.Expr) -> Term:
        interval = node.args["expression"]
        unit, amount = _unit(interval), self._interval(interval)
        base = self.term(node.this)
        sign = 1 if isinstance(node, exp.Add) else -1
        if unit in _INTERVALS:
            name = "add" if sign > 0 else "subtract"
            if isinstance(base, Constant) and isinstance(base.value, date):
                return Constant(base.value + timedelta(days=sign * amount * _INTERVALS[unit]))
            return applied(name, base, Constant(amount * _INTERVALS[unit]))
        if isinstance(base, Constant) and isinstance(base.value, date) and unit.rstrip("s") in ("month", "year"):
            months = sign * amount * (12 if unit.startswith("year") else 1)
            return Constant(_months_later(base.value, months))
        raise _unsupported(node)

    def _now(self, node: exp.Expr) -> Term:
        if self.today is None:
            raise ConstraintError(f"'{cut(node.sql())}' changes from day to day; say {named('today')} to fix it")
        return Constant(self.today)

    def _case(self, node: exp.Case) -> Term:
        default = node.args.get("default")
        if default is None or isinstance(default, exp.Null):
            raise _unsupported(node)
        found = self.term(default)
        for branch in reversed(node.args["ifs"]):
            condition = branch.this
            test = (
                self.expression(condition)
                if node.this is None
                else compared(self.term(node.this), Operator.EQ, self.term(condition))
            )
            found = applied("choose", as_term(test), self.term(branch.args["true"]), found)
        return found

    def _named(self, node: exp.Anonymous) -> Term:
        name = str(node.this).lower()
        name = _NAMES.get(name, name)
        if name in _TODAY:
            return self._now(node)
        if name in ("num_nonnulls", "num_nulls"):
            wanted = name == "num_nulls"
            tests = [as_term(_null_test(self.term(each))) for each in node.expressions]
            parts = [applied("choose", t, Constant(int(wanted)), Constant(int(not wanted))) for t in tests]
            found = parts[0]
            for each in parts[1:]:
                found = applied("add", found, each)
            return found
        known = FUNCTIONS.get(name)
        if known is None or known.symbol is not None or name in ("and", "or", "not", "choose", "in", "number", "text"):
            raise ConstraintError(f"the function '{cut(name)}' is not known here")
        return applied(name, *(self.term(each) for each in node.expressions))


def _simple(name: str) -> Callable[[SqlReader, exp.Expr], Term]:
    def read(reader: SqlReader, node: exp.Expr) -> Term:
        arguments = [node.this, *node.expressions] if node.args.get("expressions") else [node.this]
        second = node.args.get("expression")
        return applied(name, *(reader.term(each) for each in [*arguments, *([second] if second is not None else [])]))

    return read


def _round(reader: SqlReader, node: exp.Expr) -> Term:
    digits = node.args.get("decimals")
    return applied("round", reader.term(node.this), *([] if digits is None else [reader.term(digits)]))


def _coalesce(reader: SqlReader, node: exp.Expr) -> Term:
    return applied("coalesce", *(reader.term(each) for each in (node.this, *node.expressions)))


def _extreme(name: str) -> Callable[[SqlReader, exp.Expr], Term]:
    """`greatest` and `least` of SQL pass over nulls."""

    def read(reader: SqlReader, node: exp.Expr) -> Term:
        terms = [reader.term(each) for each in (node.this, *node.expressions)]
        found = terms[0]
        for each in terms[1:]:
            found = applied("coalesce", applied(name, found, each), found, each)
        return found

    return read


def _substring(reader: SqlReader, node: exp.Expr) -> Term:
    start, length = node.args.get("start") or exp.Literal.number(1), node.args.get("length")
    return applied(
        "substr", reader.term(node.this), reader.term(start), *([] if length is None else [reader.term(length)])
    )


def _trim(reader: SqlReader, node: exp.Expr) -> Term:
    if node.args.get("expression") is not None:
        raise _unsupported(node)
    side = str(node.args.get("position") or "").lower()
    return applied({"leading": "ltrim", "trailing": "rtrim"}.get(side, "trim"), reader.term(node.this))


def _extract(reader: SqlReader, node: exp.Expr) -> Term:
    part = _PARTS.get(str(node.this.name if hasattr(node.this, "name") else node.this).lower())
    if part is None:
        raise _unsupported(node)
    return applied(part, reader.term(node.args["expression"]))


def _truncated(reader: SqlReader, node: exp.Expr) -> Term:
    unit = str(node.args["unit"].name).lower()
    moment = reader.term(node.this)
    if isinstance(moment, Constant) and isinstance(moment.value, str):
        raise _unsupported(node)
    return applied("start_of", Constant(unit), moment)


def _date_diff(reader: SqlReader, node: exp.Expr) -> Term:
    unit = str((node.args.get("unit") or exp.Var(this="day")).name).lower()
    if unit not in ("day", "days"):
        raise _unsupported(node)
    end, start = reader.term(node.this), reader.term(node.args["expression"])
    return applied("days", applied("date", start), applied("date", end))


def _position(reader: SqlReader, node: exp.Expr) -> Term:
    raise _unsupported(node)


def _concat(reader: SqlReader, node: exp.Expr) -> Term:
    terms = [reader.term(each) for each in node.expressions]
    found = terms[0]
    for each in terms[1:]:
        found = applied("concat", found, each)
    return found


_READERS: dict[type[exp.Expr], Callable[[SqlReader, exp.Expr], Term]] = {
    exp.Abs: _simple("abs"),
    exp.Sign: _simple("sign"),
    exp.Floor: _simple("floor"),
    exp.Ceil: _simple("ceil"),
    exp.Pow: _simple("power"),
    exp.Round: _round,
    exp.Length: _simple("length"),
    exp.Lower: _simple("lower"),
    exp.Upper: _simple("upper"),
    exp.Left: _simple("left"),
    exp.Right: _simple("right"),
    exp.Trim: _trim,
    exp.Substring: _substring,
    exp.Concat: _concat,
    exp.Coalesce: _coalesce,
    exp.Nullif: _simple("nullif"),
    exp.Greatest: _extreme("max"),
    exp.Least: _extreme("min"),
    exp.Extract: _extract,
    exp.Year: _simple("year"),
    exp.Quarter: _simple("quarter"),
    exp.Month: _simple("month"),
    exp.Day: _simple("day"),
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.DateDiff: _date_diff,
    exp.Date: _simple("date"),
    exp.TsOrDsToDate: _simple("date"),
    exp.StrPosition: _position,
}


def _literal(node: exp.Expr) -> Constant:
    if isinstance(node, exp.ByteString | exp.RawString | exp.National):
        # PostgreSQL's E'...' is told as one, its escapes as they are written.
        return Constant(str(node.this).replace("\\\\", "\\"))
    assert isinstance(node, exp.Literal)
    if node.is_string:
        return Constant(str(node.this))
    try:
        return Constant(read_number(str(node.this)))
    except ValueError as problem:
        raise ConstraintError(str(problem)) from None


def _as_type(constant: Constant, kind: exp.Expr) -> Constant:
    value = constant.value
    if isinstance(value, str) and kind.is_type(*exp.DataType.NUMERIC_TYPES):
        try:
            return Constant(read_number(value.strip()))
        except (ValueError, ArithmeticError):
            raise ConstraintError(f"found '{cut(value)}', which is no number") from None
    if isinstance(value, str) and kind.is_type("date", "date32"):
        try:
            return Constant(date.fromisoformat(value.strip()[:10]))
        except ValueError:
            raise ConstraintError(f"found '{cut(value)}', which is no date") from None
    if isinstance(value, int | Decimal) and kind.is_type(*exp.DataType.TEXT_TYPES):
        return Constant(str(value))
    return constant


def _text_of(node: exp.Expr, whole: exp.Expr) -> str:
    while isinstance(node, (exp.Paren, exp.Cast)):
        node = node.this
    if not isinstance(node, exp.Literal | exp.ByteString | exp.RawString | exp.National):
        raise _unsupported(whole)
    return str(_literal(node).value)


def _similar(pattern: str) -> str:
    """A pattern of SIMILAR TO as a regular expression."""
    return f"^(?:{pattern.replace('%', '.*').replace('_', '.')})$"


def _is_test(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren):
        node = node.this
    return isinstance(node, (exp.Is, exp.And, exp.Or, exp.Not, exp.In, exp.Between, exp.Like, *COMPARISONS))


def _null_test(term: Term) -> Expression:
    if isinstance(term, Constant):
        raise ConstraintError("found a null test of a constant")
    return NullTest(term) if isinstance(term, Column) else is_true(applied("is_null", term))


def _unit(interval: exp.Expr) -> str:
    return str(interval.args["unit"].name).lower() if interval.args.get("unit") is not None else ""


def _months_later(day: date, months: int) -> date:
    import calendar

    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def _array(node: exp.Expr) -> list[exp.Expr] | None:
    """The items of an array, which PostgreSQL writes lists of values as; None for what is none."""
    while isinstance(node, (exp.Paren, exp.Cast)):
        node = node.this
    return node.expressions or None if isinstance(node, exp.Array) else None


def _unsupported(node: exp.Expr) -> ConstraintError:
    return ConstraintError(
        f"found '{cut(node.sql())}', expected comparisons of columns, constants and what this language computes of "
        "them, joined by AND, OR, NOT"
    )
