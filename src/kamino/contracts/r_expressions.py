"""Rules as R writes them, to expressions of this language: `if (age < 16) income == 0`, `x %in% c(1, 2)`.

Read as the packages validate, editrules and errorlocate read them: a rule that is unknown because of a value that is
missing is not broken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from kamino.constraints.group_rules import GroupRule, Measure
from kamino.constraints.language.expressions import And, Expression, Not, Or, as_term
from kamino.constraints.language.parser import Statement
from kamino.constraints.terms.canonical_terms import applied, compared, is_true
from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.terms.term_functions import FUNCTIONS
from kamino.constraints.tree import Column, Comparison, Constant, Operator
from kamino.constraints.types import ValueType
from kamino.contracts.rule_forms import (
    between,
    depends,
    grouped,
    holds,
    in_values,
    matches,
    not_null,
    null_test,
    unique,
)
from kamino.errors import ConstraintError
from kamino.limits import MAX_DEPTH, cut, read_number

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|\#[^\n]*)
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?L?)
  | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
  | (?P<name>(?:[^\W\d]|\.(?!\d))[\w.]*|`[^`]+`)
  | (?P<op>%in%|%vin%|%%|:=|<-|==|!=|<=|>=|&&|\|\||\|>|::|[-+*/^<>!&|~():,\[\]$={}?])
    """,
    re.VERBOSE,
)
_COMPARISONS = {
    "==": Operator.EQ,
    "!=": Operator.NE,
    "<": Operator.LT,
    "<=": Operator.LE,
    ">": Operator.GT,
    ">=": Operator.GE,
}
_TYPES = {
    "is.numeric": ValueType.NUMBER,
    "is.integer": ValueType.NUMBER,
    "is.double": ValueType.NUMBER,
    "is.character": ValueType.TEXT,
    "is.factor": ValueType.TEXT,
    "is.logical": ValueType.BOOLEAN,
    "is.Date": ValueType.DATE,
}
_SAME = {
    "nchar": "length",
    "abs": "abs",
    "floor": "floor",
    "ceiling": "ceil",
    "sign": "sign",
    "tolower": "lower",
    "toupper": "upper",
    "trimws": "trim",
    "startsWith": "starts_with",
    "endsWith": "ends_with",
    "as.character": "",
    "as.numeric": "",
    "as.integer": "",
    "as.Date": "",
    "pmin": "min",
    "pmax": "max",
    "round": "round",
    "substr": "substr",
    "year": "year",
    "month": "month",
    "day": "day",
}
_AGGREGATES = {
    "mean": Measure.MEAN,
    "sum": Measure.SUM,
    "min": Measure.LEAST,
    "max": Measure.MOST,
    "nrow": Measure.ROWS,
}


@dataclass(frozen=True)
class Call:
    """A function of R with its arguments; named ones apart."""

    name: str
    arguments: tuple[RNode, ...]
    named: Mapping[str, RNode]


@dataclass(frozen=True)
class Several:
    """Values in `c(...)`, or a range of whole numbers."""

    items: tuple[RNode, ...]


@dataclass(frozen=True)
class Binary:
    """Two sides with an operator between them."""

    op: str
    left: RNode
    right: RNode


@dataclass(frozen=True)
class Unary:
    """An operator before its argument."""

    op: str
    inner: RNode


@dataclass(frozen=True)
class If:
    """`if (condition) then else otherwise`."""

    condition: RNode
    then: RNode
    otherwise: RNode | None


RNode = Call | Several | Binary | Unary | If | Column | Constant
Lists = Mapping[str, Sequence[object]]


class RType:
    """That a column is of a type, which a schema says and no rule of rows."""

    def __init__(self, column: str, kind: ValueType) -> None:
        self.column, self.kind = column, kind


def read_r_rule(text: str, lists: Lists | None = None) -> tuple[Statement, ...] | RType:
    """The statements of one rule of R; `lists` are named vectors that it may use.

    Raises:
        ConstraintError: it says what no rule of rows here says, or cannot be read.
    """
    node = _Parser(text, lists or {}).whole()
    match node:
        case Call(name=name, arguments=(Column(name=column),)) if name in _TYPES:
            return RType(column, _TYPES[name])
        case Binary(op="~", left=left, right=right):
            return depends(_summands(left), _summands(right))
    return _statements(node)


def _summands(node: RNode) -> list[str]:
    match node:
        case Column(name=name):
            return [name]
        case Binary(op="+" | "*", left=left, right=right):
            return [*_summands(left), *_summands(right)]
    raise ConstraintError("found a dependency of terms, expected names joined by +")


def _statements(node: RNode) -> tuple[Statement, ...]:
    match node:
        case Binary(op="&" | "&&", left=left, right=right) if _is_grouped(left) or _is_grouped(right):
            return (*_statements(left), *_statements(right))
        case Call(name="is_complete" | "all_complete", arguments=arguments):
            return tuple(s for each in arguments for s in not_null(_term(each)))
        case Call(name="is_unique" | "all_unique", arguments=arguments):
            return unique([_term(each) for each in arguments])
        case Call(name="all", arguments=(inner,)):
            return holds(_expression(inner))
        case Call(name="any", arguments=(inner,)):
            return grouped(Measure.ROWS, (), low=1, where=_expression(inner))
        case Call(name="exists_one" | "exists_any", arguments=(condition, *rest), named=named):
            high = 1 if node.name == "exists_one" else None
            by = named.get("by") or (rest[0] if rest else None)
            return grouped(Measure.ROWS, _names(by), low=1, high=high, where=_expression(condition))
        case Call(name="is_linear_sequence" | "in_linear_sequence", arguments=(column, *rest), named=named):
            by = named.get("by") or (rest[0] if rest else None)
            return (GroupRule(measure=Measure.GAPLESS, term=_term(column), per=_names(by)),)
        case Binary(op=op, left=Call(name=name) as call, right=Constant() as bound) if (
            op in _COMPARISONS and name in _AGGREGATES
        ):
            return _aggregate(call, _COMPARISONS[op], bound)
    return holds(_expression(node))


def _is_grouped(node: RNode) -> bool:
    return isinstance(node, Call) and (node.name in ("all", "any") or node.name.startswith(("exists_", "is_complete")))


def _aggregate(call: Call, op: Operator, bound: Constant) -> tuple[Statement, ...]:
    value = bound.value
    if not isinstance(value, int | Decimal) or isinstance(value, bool) or op is Operator.NE:
        raise ConstraintError("found a statistic compared with no number")
    if op in (Operator.LT, Operator.GT):
        if call.name != "nrow":
            raise ConstraintError("found a statistic that must lie strictly beyond a bound; say >= or <=")
        value = value - 1 if op is Operator.LT else value + 1
    low = value if op in (Operator.EQ, Operator.GE, Operator.GT) else None
    high = value if op in (Operator.EQ, Operator.LE, Operator.LT) else None
    if call.name == "nrow":
        return grouped(Measure.ROWS, (), low=low, high=high)
    (argument,) = call.arguments or (None,)
    if argument is None:
        raise ConstraintError("found a statistic of nothing")
    return grouped(_AGGREGATES[call.name], (), low=low, high=high, term=_term(argument))


def _names(by: RNode | None) -> tuple[str, ...]:
    match by:
        case None:
            return ()
        case Column(name=name):
            return (name,)
        case Several(items=items) | Call(name="list", arguments=items):
            return tuple(name for item in items for name in _names(item))
    raise ConstraintError("found groups by a term, expected names")


def _expression(node: RNode) -> Expression:
    match node:
        case If(condition=condition, then=then, otherwise=otherwise):
            rule = Or((Not(_expression(condition)), _expression(then)))
            if otherwise is None:
                return rule
            return And((rule, Or((_expression(condition), _expression(otherwise)))))
        case Binary(op="&" | "&&", left=left, right=right):
            return And((_expression(left), _expression(right)))
        case Binary(op="|" | "||", left=left, right=right):
            return Or((_expression(left), _expression(right)))
        case Unary(op="!", inner=inner):
            return Not(_expression(inner))
        case Binary(op="%in%" | "%vin%", left=left, right=right):
            return in_values(_term(left), _values(right))
        case Binary(op=op, left=left, right=right) if op in _COMPARISONS:
            return compared(_term(left), _COMPARISONS[op], _term(right))
        case Column():
            return Comparison(node, Operator.EQ, Constant(True))
        case Call():
            return _call_expression(node)
    raise ConstraintError("found a value, expected what is true or false of rows")


def _call_expression(node: Call) -> Expression:
    named = node.named
    match node.name, node.arguments:
        case "is.na", (inner,):
            return null_test(_term(inner))
        case "is_complete", arguments:
            return And(tuple(Not(null_test(_term(each))) for each in arguments))
        case "grepl", (pattern, text, *_):
            return matches(_term(text), _text(pattern), fold=_flag(named.get("ignore.case")))
        case "field_length", (column, *rest):
            count = rest[0] if rest else named.get("n")
            length = applied("length", _term(column))
            if count is not None and "min" not in named:
                return compared(length, Operator.EQ, _term(count))
            return between(length, _bound(named.get("min")), _bound(named.get("max")))
        case "field_format", (column, pattern, *rest):
            kind = _text(rest[0]) if rest else _text(named["type"]) if "type" in named else "glob"
            shape = _text(pattern)
            return matches(_term(column), shape if kind == "regex" else _glob(shape))
        case "number_format", (column, pattern):
            shape = re.escape(_text(pattern)).replace("d", r"\d").replace(r"\*", r"\d*")
            return matches(_term(column), shape, whole=True)
        case "in_range", (column, low, high, *_):
            return between(_term(column), _bound(low), _bound(high))
        case "in_range", (column,):
            return between(_term(column), _bound(named.get("min")), _bound(named.get("max")))
        case "ifelse", (condition, then, otherwise):
            return _expression(If(condition, then, otherwise))
        case "all", (inner,):
            return _expression(inner)
    found = _term(node)
    if isinstance(found, Apply) and FUNCTIONS[found.function].gives is ValueType.BOOLEAN:
        return is_true(found)
    raise ConstraintError(f"the function '{cut(node.name)}' is not known here")


def _bound(node: RNode | None) -> Term | None:
    if node is None or (isinstance(node, Column) and node.name == "Inf"):
        return None
    if isinstance(node, Unary) and isinstance(node.inner, Column) and node.inner.name == "Inf":
        return None
    return _term(node)


def _flag(node: RNode | None) -> bool:
    return isinstance(node, Constant) and node.value is True


def _glob(shape: str) -> str:
    return "^" + re.escape(shape).replace(r"\*", ".*").replace(r"\?", ".") + "$"


def _text(node: RNode) -> str:
    if isinstance(node, Constant) and isinstance(node.value, str):
        return node.value
    raise ConstraintError("found no text, expected a pattern in quotes")


def _values(node: RNode) -> list[object]:
    match node:
        case Several(items=items):
            return [value for item in items for value in _values(item)]
        case Constant(value=value):
            return [value]
        case Call(name="as.character", arguments=(inner,)):
            return [str(value) for value in _values(inner)]
        case Unary(op="-", inner=Constant(value=int() | Decimal() as value)):
            return [-value]
        case Column(name=name):
            raise ConstraintError(f"found the list '{cut(name)}', which is not defined in the text")
    raise ConstraintError("found no list of values, expected c(...)")


_ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%%": "mod"}


def _term(node: RNode) -> Term:
    match node:
        case Column() | Constant():
            return node
        case Unary(op="-", inner=inner):
            return applied("negate", _term(inner))
        case Unary(op="+", inner=inner):
            return _term(inner)
        case Binary(op="^", left=left, right=right):
            return applied("power", _term(left), _term(right))
        case Binary(op=op, left=left, right=right) if op in _ARITHMETIC:
            return applied(_ARITHMETIC[op], _term(left), _term(right))
        case Call(name="as.Date", arguments=(Constant(value=str() as text), *_)):
            from datetime import date

            return Constant(date.fromisoformat(text))
        case Call(name="paste0", arguments=(first, *rest)):
            found = _term(first)
            for each in rest:
                found = applied("concat", found, _term(each))
            return found
        case Call(name="substr", arguments=(text, start, stop)):
            size = applied("add", applied("subtract", _term(stop), _term(start)), Constant(1))
            return applied("substr", _term(text), _term(start), size)
        case Call(name="ifelse", arguments=(condition, then, otherwise)):
            return applied("choose", as_term(_expression(condition)), _term(then), _term(otherwise))
        case Call(name=name, arguments=arguments) if name in _SAME:
            terms = [_term(each) for each in arguments]
            return applied(_SAME[name], *terms) if _SAME[name] else terms[0]
        case Call(name=name):
            raise ConstraintError(f"the function '{cut(name)}' is not known here")
    raise ConstraintError("found a test or a list, expected a value")


class _Parser:
    """Precedence climbing over the tokens of one rule."""

    _LEVELS = (
        ("~",),
        ("|", "||"),
        ("&", "&&"),
        ("==", "!=", "<", "<=", ">", ">="),
        ("+", "-"),
        ("*", "/"),
        ("%in%", "%vin%", "%%"),
        (":",),
    )

    def __init__(self, text: str, lists: Lists) -> None:
        self._lists = lists
        self._tokens: list[tuple[str, str]] = []
        self._at = self._depth = 0
        place = 0
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                raise ConstraintError(f"found {text[place]!r}, which is not read here")
            if match.lastgroup != "space":
                self._tokens.append((match.lastgroup or "", match.group()))
            place = match.end()

    def whole(self) -> RNode:
        """The one expression of the text."""
        found = self._level(0)
        if self._at < len(self._tokens):
            raise ConstraintError(f"found '{cut(self._tokens[self._at][1])}' after the rule, expected its end")
        return found

    def _peek(self) -> str:
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        return text if kind in ("op", "name") else ""

    def _take(self, wanted: str) -> None:
        if self._peek() != wanted:
            raise ConstraintError(f"found '{cut(self._peek() or 'the end')}', expected '{wanted}'")
        self._at += 1

    def _level(self, level: int) -> RNode:
        if level == len(self._LEVELS):
            return self._unary()
        if level == 3 and self._peek() == "!":
            self._at += 1
            return Unary("!", self._level(3))
        left = self._level(level + 1)
        while self._peek() in self._LEVELS[level] and self._tokens[self._at][0] == "op":
            op = self._peek()
            self._at += 1
            right = self._level(level + 1)
            left = self._range(left, right) if op == ":" else Binary(op, left, right)
        return left

    def _range(self, low: RNode, high: RNode) -> RNode:
        match low, high:
            case Constant(value=int() as a), Constant(value=int() as b) if 0 <= b - a <= 10_000:
                return Several(tuple(Constant(value) for value in range(a, b + 1)))
        raise ConstraintError("found a range whose ends are no whole numbers")

    def _unary(self) -> RNode:
        self._depth += 1
        if self._depth > 4 * MAX_DEPTH:
            raise ConstraintError("found expressions too deep within each other")
        op = self._peek()
        if op in ("-", "+", "!") and self._tokens[self._at][0] == "op":
            self._at += 1
            return Unary(op, self._unary())
        found = self._power()
        self._depth -= 1
        return found

    def _power(self) -> RNode:
        base = self._primary()
        if self._peek() == "^":
            self._at += 1
            return Binary("^", base, self._unary())
        return base

    def _primary(self) -> RNode:
        if self._at >= len(self._tokens):
            raise ConstraintError("found the end, expected a value")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return Constant(read_number(text.removesuffix("L")))
        if kind == "text":
            return Constant(re.sub(r"\\(.)", lambda m: {"n": " "}.get(m.group(1), m.group(1)), text[1:-1]))
        if text == "(":
            found = self._level(0)
            self._take(")")
            return found
        if kind == "name":
            return self._named(text)
        raise ConstraintError(f"found '{cut(text)}', expected a value")

    def _named(self, text: str) -> RNode:
        if text == "if":
            self._take("(")
            condition = self._level(0)
            self._take(")")
            then = self._level(0)
            otherwise = None
            if self._peek() == "else":
                self._at += 1
                otherwise = self._level(0)
            return If(condition, then, otherwise)
        if text in ("TRUE", "FALSE", "T", "F"):
            return Constant(text.startswith("T"))
        if self._peek() == "(":
            return self._call(text)
        if self._peek() in ("$", "[", "::"):
            raise ConstraintError(f"found '{cut(text + self._peek())}', which reads another table")
        name = text.strip("`")
        if name in self._lists:
            return Several(tuple(Constant(value) for value in self._lists[name]))  # type: ignore[arg-type]
        if name in (".", "NULL", "NA"):
            raise ConstraintError(f"found '{name}', which is no column")
        return Column(name)

    def _call(self, name: str) -> RNode:
        self._take("(")
        arguments: list[RNode] = []
        named: dict[str, RNode] = {}
        while self._peek() != ")":
            label = self._tokens[self._at + 1][1] if self._at + 1 < len(self._tokens) else ""
            if self._tokens[self._at][0] == "name" and label == "=":
                key = self._tokens[self._at][1]
                self._at += 2
                named[key] = self._level(0)
            else:
                arguments.append(self._level(0))
            if self._peek() == ",":
                self._at += 1
            elif self._peek() != ")":
                raise ConstraintError(f"found '{cut(self._peek() or 'the end')}', expected ',' or ')'")
        self._take(")")
        return Several(tuple(arguments)) if name == "c" else Call(name, tuple(arguments), named)
