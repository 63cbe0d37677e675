"""For a rule, a table that satisfies it and one that breaks it, found by trying; checked as `kamino check` checks."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from re import _constants as regex  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pyarrow as pa

from kamino.constraints import Constraints, ValueType
from kamino.constraints.group_rules import GroupRule
from kamino.constraints.terms.term import Apply, Term, walk
from kamino.constraints.terms.term_functions import FUNCTIONS
from kamino.constraints.terms.term_types import constant_type
from kamino.constraints.tree import Column, Comparison, Constant, NullTest, TermTest
from kamino.errors import KaminoError
from kamino.evaluate.checking import check_table

_TRIES = 500
_ARROW = {
    ValueType.NUMBER: pa.decimal128(38, 6),
    ValueType.TEXT: pa.string(),
    ValueType.BOOLEAN: pa.bool_(),
    ValueType.DATE: pa.date32(),
    ValueType.TIMESTAMP: pa.timestamp("us"),
    ValueType.ZONED: pa.timestamp("us", tz="UTC"),
}
Types = dict[str, ValueType]


def shown(rules: Constraints, declared: Mapping[str, ValueType | None]) -> str:
    """Whether a table passes and another fails: an empty text, or what was not found."""
    if not (rules.items or rules.derivations or rules.group_rules):
        return "no rule"
    types = _types(rules, declared)
    try:
        bound = Constraints.parse(str(rules)).bind(types)
    except KaminoError as problem:
        return f"does not bind: {str(problem).splitlines()[0][:160]}"
    rng = random.Random(7)
    pools = _pools(rules, types, rng)
    passed = failed = False
    for attempt in range(_TRIES):
        table = _table(types, pools, rng, attempt)
        try:
            hard = check_table(table, bound)
        except KaminoError as problem:
            return f"is not counted: {str(problem)[:160]}"
        counts = [c.violations for c in hard.checks] + [c.violations for c in hard.groups]
        broken = any(counts) or any(c.violations for c in hard.derivations)
        passed, failed = passed or not broken, failed or broken
        if passed and failed:
            return ""
    if passed and _refused_by_type(bound, types):
        return ""
    return f"no table {'breaks' if passed else 'satisfies'} it"


def _refused_by_type(rules: Constraints, types: Types) -> bool:
    """Whether the rule says of booleans that they are booleans: then a column of anything else is refused."""
    if not any(kind is ValueType.BOOLEAN for kind in types.values()):
        return False
    try:
        rules.bind({name: ValueType.TEXT if kind is ValueType.BOOLEAN else kind for name, kind in types.items()})
    except KaminoError:
        return True
    return False


def _terms(rules: Constraints) -> list[Term]:
    found: list[Term] = []
    for constraint in rules:
        for predicate in constraint.predicates:
            match predicate:
                case Comparison(left=left, right=right) | TermTest(left=left, right=right):
                    found += [left, right]
                case NullTest(column=column):
                    found.append(column)
    for rule in rules.group_rules:
        if isinstance(rule, GroupRule):
            found += [each for each in (rule.term, rule.where) if each is not None]
            found += [Column(name) for name in rule.per]
    for derivation in rules.derivations:
        found += [derivation.column, derivation.term]
    return found


def _types(rules: Constraints, declared: Mapping[str, ValueType | None]) -> Types:
    names = {column.name for term in _terms(rules) for column in term.columns}
    known = {name: kind for name, kind in declared.items() if kind is not None and name in names}
    for _ in range(4):
        for constraint in rules:
            for predicate in constraint.predicates:
                if isinstance(predicate, Comparison | TermTest):
                    _alike([predicate.left, predicate.right], known)
        for term in _terms(rules):
            for part in walk(term):
                if isinstance(part, Apply):
                    _arguments(part, known)
        for rule in rules.group_rules:
            if (
                isinstance(rule, GroupRule)
                and isinstance(rule.term, Column)
                and rule.measure.value not in ("distinct",)
            ):
                known.setdefault(rule.term.name, ValueType.NUMBER)
        for each in rules.derivations:
            _alike([each.column, each.term], known)
    return {name: known.get(name, ValueType.NUMBER) for name in names}


def _kind(term: Term, known: Types) -> ValueType | None:
    match term:
        case Column(name=name):
            return known.get(name)
        case Constant():
            found = constant_type(term)
            text = str(term.value)
            is_day = found is ValueType.TEXT and re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None
            return ValueType.DATE if is_day else found
        case Apply(function="choose", arguments=(_, first, second)):
            return _kind(first, known) or _kind(second, known)
        case Apply(function=name, arguments=arguments):
            return FUNCTIONS[name].gives or _kind(arguments[0], known)


def _alike(terms: list[Term], known: Types) -> None:
    kind = next((k for k in (_kind(each, known) for each in terms) if k is not None), None)
    for each in terms:
        if isinstance(each, Column) and kind is not None:
            known.setdefault(each.name, kind)
        elif isinstance(each, Apply) and kind is not None and FUNCTIONS[each.function].gives is None:
            _alike_inside(each, kind, known)


def _alike_inside(term: Apply, kind: ValueType, known: Types) -> None:
    inside = term.arguments[1:] if term.function == "choose" else term.arguments
    for each in inside if term.function not in ("add", "subtract") else inside[:1]:
        if isinstance(each, Column):
            known.setdefault(each.name, kind)
        elif isinstance(each, Apply) and FUNCTIONS[each.function].gives is None:
            _alike_inside(each, kind, known)


def _arguments(term: Apply, known: Types) -> None:
    function = FUNCTIONS[term.function]
    for position, argument in enumerate(term.arguments):
        takes = function.takes[min(position, len(function.takes) - 1)]
        if isinstance(argument, Column) and len(takes) == 1:
            known.setdefault(argument.name, next(iter(takes)))
        elif isinstance(argument, Column) and takes == frozenset(
            {ValueType.DATE, ValueType.TIMESTAMP, ValueType.ZONED}
        ):
            known.setdefault(argument.name, ValueType.DATE)
        elif isinstance(argument, Column) and term.function in ("add", "subtract"):
            known.setdefault(argument.name, ValueType.NUMBER)
    if term.function in ("eq", "ne", "lt", "le", "gt", "ge", "in", "coalesce", "min", "max", "nullif"):
        _alike(list(term.arguments), known)


def _pools(rules: Constraints, types: Types, rng: random.Random) -> dict[str, list[Any]]:
    constants = [part.value for term in _terms(rules) for part in walk(term) if isinstance(part, Constant)]
    for rule in rules.group_rules:
        if isinstance(rule, GroupRule):
            constants += [each for each in (rule.low, rule.high) if each is not None]
    numbers = [Decimal(c) for c in constants if isinstance(c, int | Decimal) and not isinstance(c, bool)]
    texts = [c for c in constants if isinstance(c, str)]
    days = [c for c in constants if isinstance(c, date)]
    days += [date.fromisoformat(c) for c in texts if re.fullmatch(r"\d{4}-\d\d-\d\d", c)]
    return {name: _pool(kind, numbers, texts, days, rng) for name, kind in types.items()}


def _pool(kind: ValueType, numbers: list[Decimal], texts: list[str], days: list[date], rng: random.Random) -> list[Any]:
    match kind:
        case ValueType.NUMBER:
            near = [n + d for n in numbers if abs(n) < Decimal(10) ** 28 for d in (-1, 0, 1)]
            return [*map(Decimal, (0, 1, 2, 3, 7, -1, 100)), Decimal("0.5"), *near]
        case ValueType.BOOLEAN:
            return [True, False]
        case ValueType.TEXT:
            sizes = {int(n) + d for n in numbers if 0 <= n <= 70_000 for d in (-1, 0, 1)}
            made = ["x" * size for size in sizes if size >= 0]
            patterns = [sample for text in texts for sample in _samples(text, rng)]
            affixes = [text.replace("%", "q") for text in texts] + [text + "z" for text in texts]
            return ["", "a", "B", " a", "7", "12", *texts, *[t.lower() for t in texts], *made, *patterns, *affixes]
    found = [*days, date(2020, 1, 31), date(1990, 6, 1)]
    moved = [d + timedelta(days=step) for d in found for step in (-400, -31, -1, 0, 1, 31, 400, 9000)]
    if kind is ValueType.DATE:
        return [d.date() if isinstance(d, datetime) else d for d in moved]
    return [d if isinstance(d, datetime) else datetime(d.year, d.month, d.day, 5) for d in moved]


def _samples(pattern: str, rng: random.Random) -> list[str]:
    """Texts that a regular expression may match."""
    try:
        parsed = _parser.parse(re.sub(r"\(\?[ims]+\)", "", pattern))
    except (re.error, RecursionError, OverflowError):
        return []
    try:
        return [_sample(parsed, rng) for _ in range(4)]
    except (NotImplementedError, ValueError, IndexError):
        return []


def _sample(parsed: Any, rng: random.Random) -> str:
    made = []
    for op, value in parsed:
        match op:
            case regex.LITERAL:
                made.append(chr(value))
            case regex.NOT_LITERAL | regex.ANY:
                made.append("x")
            case regex.IN:
                made.append(_one_of(value, rng))
            case regex.MAX_REPEAT | regex.MIN_REPEAT:
                low, high, inner = value
                count = rng.choice([low, min(high, low + 2)])
                made.append("".join(_sample(inner, rng) for _ in range(count)))
            case regex.SUBPATTERN:
                made.append(_sample(value[-1], rng))
            case regex.BRANCH:
                made.append(_sample(rng.choice(value[1]), rng))
            case regex.AT:
                continue
            case _:
                raise NotImplementedError
    return "".join(made)


def _one_of(items: Any, rng: random.Random) -> str:
    negated = items[0][0] is regex.NEGATE
    letters = "abzABZ0159 _-.,;@#é" if negated else ""
    found = []
    for op, value in items:
        if op is regex.LITERAL:
            found.append(chr(value))
        elif op is regex.RANGE:
            found += [chr(value[0]), chr(value[1]), chr((value[0] + value[1]) // 2)]
        elif op is regex.CATEGORY:
            name = str(value)
            found.append("5" if "DIGIT" in name and "NOT" not in name else " " if "SPACE" in name else "w")
    if negated:
        return next(letter for letter in letters if letter not in found)
    return rng.choice(found)


def _table(types: Types, pools: Mapping[str, list[Any]], rng: random.Random, attempt: int) -> pa.Table:
    rows = (1, 2, 3, 1, 5)[attempt % 5]
    nulls = (0.0, 0.0, 0.3)[attempt % 3]
    columns = {}
    for name, kind in types.items():
        cells = [None if rng.random() < nulls else rng.choice(pools[name]) for _ in range(rows)]
        if attempt % 2 and rng.random() < 0.9:  # rows that are alike but for a column or two, as keys ask for
            cells = [cells[0]] * rows
        columns[name] = pa.array(cells, _ARROW[kind])
    return pa.table(columns) if columns else pa.table({"nothing": pa.array([1] * rows)})
