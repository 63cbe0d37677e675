"""Rules on groups of rows, as they are written.

count per (household) where head = 'yes' = 1        sum(share) per (fund) = 100
each (order) has 1..7 rows                          gapless (line) per (order)
no overlap (start, end) per (room)                  increasing (total) by (day) per (account)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from kamino.constraints.group_rules import Bound, GroupRule, Measure
from kamino.constraints.language.expressions import as_term
from kamino.constraints.language.lexer import error_at
from kamino.constraints.language.predicates import PredicateParser
from kamino.constraints.terms.term import Term
from kamino.constraints.tree import Column, Comparison, DenialConstraint, Operator, Place, Predicate, Strength
from kamino.errors import ConstraintError

_MEASURES = {
    "count": Measure.ROWS,
    "distinct": Measure.DISTINCT,
    "sum": Measure.SUM,
    "min": Measure.LEAST,
    "max": Measure.MOST,
    "avg": Measure.MEAN,
}
_OPERATORS = {"=": "=", "==": "=", "<=": "<=", ">=": ">=", "<": "<", ">": ">"}
Made = tuple[GroupRule, ...] | tuple[DenialConstraint, ...]
Reader = Callable[[PredicateParser, Strength, Place], Made]


def group_rule_parser(cursor: PredicateParser) -> Reader | None:
    """What reads the rule on groups that starts under the cursor; None where none does."""
    opens = cursor.is_punct("(", 1)
    if cursor.is_word("each") and (opens or cursor.is_word("has", 2)):
        return _each
    if cursor.is_word("gapless") and opens:
        return _gapless
    if cursor.is_word("no") and cursor.is_word("overlap", 1):
        return _no_overlap
    if (cursor.is_word("increasing") or cursor.is_word("decreasing")) and opens:
        return _monotone
    measured = any(cursor.is_word(word) for word in _MEASURES)
    if measured and (_per_follows(cursor) if opens else cursor.is_word("count") and cursor.is_word("per", 1)):
        return _measured
    return None


def _per_follows(cursor: PredicateParser) -> bool:
    """Whether `per` stands after the closing parenthesis."""
    depth, ahead = 0, 1
    while cursor.peek(ahead).kind != "end":
        depth += cursor.is_punct("(", ahead) - cursor.is_punct(")", ahead)
        ahead += 1
        if depth == 0:
            return cursor.is_word("per", ahead)
    return False


def _per(cursor: PredicateParser) -> tuple[str, ...]:
    if not cursor.is_word("per"):
        return ()
    cursor.advance()
    return tuple(column.name for column in _columns(cursor))


def _columns(cursor: PredicateParser) -> list[Column]:
    cursor.expect("(", "before attributes")
    found = [] if cursor.is_punct(")") else cursor.names()
    cursor.expect(")", "to close the attributes")
    return found


def _where(cursor: PredicateParser) -> Term | None:
    if not cursor.is_word("where"):
        return None
    cursor.advance()
    return as_term(cursor.expression())


def _measured(cursor: PredicateParser, strength: Strength, place: Place) -> Made:
    word = cursor.advance().text.lower()
    term = None
    if cursor.is_punct("("):
        cursor.advance()
        term = cursor.term()
        cursor.expect(")", f"to close '{word} ('")
    per = _per(cursor)
    where = _where(cursor)
    measure = Measure.DISTINCT if word == "count" and term is not None else _MEASURES[word]
    low, high = _bounds(cursor, whole=measure in (Measure.ROWS, Measure.DISTINCT))
    return (_rule(place, measure=measure, term=term, per=per, where=where, low=low, high=high, strength=strength),)


def _rule(place: Place, **facts: object) -> GroupRule:
    try:
        return GroupRule(place=place, **facts)  # type: ignore[arg-type]
    except ConstraintError as problem:
        raise error_at(place, problem.message) from None


def _bounds(cursor: PredicateParser, *, whole: bool) -> tuple[Bound | None, Bound | None]:
    token = cursor.advance()
    if token.keyword == "between":
        low = _number(cursor)
        cursor.expect("and", "between the two bounds")
        return low, _number(cursor)
    if token.kind != "op" or token.text not in _OPERATORS:
        raise error_at(token.place, f"found {token.describe()}, expected =, <=, >= or 'between' and a number")
    value = _number(cursor)
    if token.text in ("<", ">") and not (whole and isinstance(value, int)):
        raise error_at(token.place, f"found {token.describe()}, expected =, <= or >= for a group")
    match token.text:
        case "<=":
            return None, value
        case ">=":
            return value, None
        case "<":
            return None, value - 1
        case ">":
            return value + 1, None
    return value, value


def _number(cursor: PredicateParser) -> Bound:
    from kamino.constraints.tree import Constant

    place = cursor.peek().place
    found = cursor.term()
    if not isinstance(found, Constant) or isinstance(found.value, bool) or not isinstance(found.value, int | Decimal):
        raise error_at(place, "found no number, expected one such as 100")
    return found.value


def _each(cursor: PredicateParser, strength: Strength, place: Place) -> Made:
    cursor.advance()
    names = _columns(cursor) if cursor.is_punct("(") else [cursor.name()]
    if not cursor.is_word("has"):
        raise error_at(cursor.peek().place, f"found {cursor.peek().describe()}, expected 'has 1..7 rows'")
    cursor.advance()
    low = _number(cursor)
    high: Bound | None = low
    if cursor.peek().kind == "dots":
        cursor.advance()
        high = _number(cursor) if cursor.peek().kind == "number" else None
    if not (cursor.is_word("rows") or cursor.is_word("row")):
        raise error_at(cursor.peek().place, f"found {cursor.peek().describe()}, expected 'rows'")
    cursor.advance()
    where = _where(cursor)
    per = tuple(column.name for column in names)
    return (_rule(place, measure=Measure.ROWS, per=per, where=where, low=low, high=high, strength=strength),)


def _gapless(cursor: PredicateParser, strength: Strength, place: Place) -> Made:
    cursor.advance()
    cursor.expect("(", "after 'gapless'")
    term = cursor.term()
    cursor.expect(")", "to close 'gapless ('")
    per = _per(cursor)
    where = _where(cursor)
    low: Bound | None = 1
    if cursor.is_word("from"):
        cursor.advance()
        low = None if cursor.is_word("any") else _number(cursor)
        if low is None:
            cursor.advance()
    return (_rule(place, measure=Measure.GAPLESS, term=term, per=per, where=where, low=low, strength=strength),)


def _across(first: Column, op: Operator, second: Column) -> Predicate:
    return Comparison(replace(first, tuple=1), op, replace(second, tuple=2))


def _pairs(predicates: list[Predicate], per: tuple[str, ...], strength: Strength, place: Place) -> Made:
    equal = [_across(Column(name), Operator.EQ, Column(name)) for name in per]
    return (DenialConstraint(predicates=(*equal, *predicates), strength=strength, place=place),)


def _no_overlap(cursor: PredicateParser, strength: Strength, place: Place) -> Made:
    cursor.advance(2)
    columns = _columns(cursor)
    if len(columns) != 2:
        raise error_at(place, f"found {len(columns)} attributes, expected two: 'no overlap (start, end) per (room)'")
    start, end = columns
    starts_before_end = Comparison(replace(start, tuple=2), Operator.LT, replace(end, tuple=1))
    return _pairs([_across(start, Operator.LT, end), starts_before_end], _per(cursor), strength, place)


def _monotone(cursor: PredicateParser, strength: Strength, place: Place) -> Made:
    falls = cursor.advance().text.lower() == "decreasing"
    (value,) = _one(_columns(cursor), place)
    if not cursor.is_word("by"):
        raise error_at(cursor.peek().place, f"found {cursor.peek().describe()}, expected 'by (order)'")
    cursor.advance()
    (order,) = _one(_columns(cursor), place)
    wrong = Operator.LT if falls else Operator.GT
    return _pairs([_across(order, Operator.LT, order), _across(value, wrong, value)], _per(cursor), strength, place)


def _one(columns: list[Column], place: Place) -> list[Column]:
    if len(columns) != 1:
        raise error_at(place, f"found {len(columns)} attributes, expected one in each pair of parentheses")
    return columns
