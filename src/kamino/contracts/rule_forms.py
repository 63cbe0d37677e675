"""The rules that most sources know, made from columns, values and expressions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from kamino.constraints.group_rules import Bound, GroupRule, Measure
from kamino.constraints.language.expressions import And, Expression, Not, Or, alternatives, as_term
from kamino.constraints.language.parser import asked_of_both, denials
from kamino.constraints.terms.canonical_terms import applied, compared, is_true
from kamino.constraints.terms.term import Term, with_tuple
from kamino.constraints.terms.texts import pattern_problem
from kamino.constraints.tree import Column, Comparison, Constant, DenialConstraint, NullTest, Operator
from kamino.errors import ConstraintError

Made = tuple[DenialConstraint, ...]


def holds(expression: Expression, where: Expression | None = None) -> Made:
    """The expression is not false in any row, or in none where `where` is true."""
    denied = Not(expression) if where is None else And((where, Not(expression)))
    return tuple(DenialConstraint(predicates=each) for each in denials(denied))


def never(expression: Expression) -> Made:
    """The expression is true in no row."""
    return tuple(DenialConstraint(predicates=each) for each in denials(expression))


def not_null(term: Term, where: Expression | None = None) -> Made:
    """The term has a value in every row."""
    return holds(Not(null_test(term)), where)


def null_test(term: Term) -> Expression:
    """That a term has no value."""
    return NullTest(term) if isinstance(term, Column) else is_true(applied("is_null", term))


def unique(terms: Sequence[Term], where: Expression | None = None, *, nulls_equal: bool = False) -> Made:
    """No two rows have the same values of all terms."""
    asked = () if where is None else asked_of_both(where)
    parts: list[Expression] = []
    for term in terms:
        one, other = with_tuple(term, 1), with_tuple(term, 2)
        same = compared(one, Operator.EQ, other)
        parts.append(Or((same, And((null_test(one), null_test(other))))) if nulls_equal else same)
    return tuple(DenialConstraint(predicates=(*each, *asked)) for each in alternatives(And(tuple(parts))))


def depends(left: Sequence[str], right: Sequence[str], where: Expression | None = None) -> Made:
    """Equal left sides mean equal right sides."""
    asked = () if where is None else asked_of_both(where)
    equal = [Comparison(Column(name), Operator.EQ, Column(name, 2)) for name in left]
    return tuple(
        DenialConstraint(predicates=(*equal, Comparison(Column(name), Operator.NE, Column(name, 2)), *asked))
        for name in right
    )


def in_values(term: Term, values: Iterable[Any]) -> Expression:
    """The term equals one of the values; nulls among them say nothing, since null breaks no comparison."""
    listed = [value_of(value) for value in values if value is not None]
    if not listed:
        raise ConstraintError("found an empty list of values, expected at least one")
    if isinstance(term, Column):
        return Or(tuple(Comparison(term, Operator.EQ, each) for each in listed))
    return is_true(applied("in", term, *listed))


def value_of(value: Any) -> Constant:
    """A value of YAML or JSON as a constant."""
    if isinstance(value, bool | int | str | date | datetime | Decimal):
        return Constant(value)
    if isinstance(value, float):
        return Constant(Decimal(repr(value)))
    raise ConstraintError(
        f"found a value of type {type(value).__name__}, expected a number, a text, a date or a boolean"
    )


def between(term: Term, low: Any, high: Any, *, strict_low: bool = False, strict_high: bool = False) -> Expression:
    """The term lies between the bounds; a bound that is None is none."""
    parts: list[Expression] = []
    if low is not None:
        parts.append(compared(term, Operator.GT if strict_low else Operator.GE, as_operand(low)))
    if high is not None:
        parts.append(compared(term, Operator.LT if strict_high else Operator.LE, as_operand(high)))
    if not parts:
        raise ConstraintError("found a range without an end, expected at least one")
    return And(tuple(parts)) if len(parts) > 1 else parts[0]


def as_operand(value: Any) -> Term:
    """A bound as a term: a term as it is, a value as a constant."""
    from kamino.constraints.terms.term import Apply

    return value if isinstance(value, Column | Constant | Apply) else value_of(value)


def length_between(term: Term, low: int | None, high: int | None) -> Expression:
    """How many characters the term has."""
    length = applied("length", term)
    if low is not None and low == high:
        return compared(length, Operator.EQ, Constant(low))
    return between(length, low, high)


def matches(term: Term, pattern: str, *, whole: bool = False, fold: bool = False) -> Expression:
    """The pattern is found in the term; with `whole`, from its first character to its last."""
    pattern = plain_pattern(pattern)
    if whole:
        pattern = pattern if pattern.startswith("^") and pattern.endswith("$") else f"^(?:{pattern})$"
    problem = pattern_problem(pattern)
    if problem:
        raise ConstraintError(f"its pattern needs look-around or back-references ({problem})")
    return is_true(applied("imatches" if fold else "matches", term, Constant(pattern)))


def plain_pattern(pattern: str) -> str:
    """A pattern without what other engines write and RE2 does not know, where the meaning stays."""
    return pattern.replace("\\Z", "\\z").replace("(?<!\\\\)", "")


def grouped(
    measure: Measure,
    per: Sequence[str],
    *,
    low: Bound | None = None,
    high: Bound | None = None,
    term: Term | None = None,
    where: Expression | None = None,
) -> tuple[GroupRule, ...]:
    """A rule on groups of rows."""
    asked = None if where is None else as_term(where)
    return (GroupRule(measure=measure, term=term, per=tuple(per), where=asked, low=low, high=high),)


_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
EMAIL = rf"^[A-Za-z0-9.!#$%&'*+/=?^_`{{|}}~-]+@{_LABEL}(?:\.{_LABEL})+$"
UUID = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$"
FORMATS = {
    "email": EMAIL,
    "idn-email": EMAIL,
    "uuid": UUID,
    "uri": r"^[A-Za-z][A-Za-z0-9+.-]*:[^\s]+$",
    "url": r"^[A-Za-z][A-Za-z0-9+.-]*:[^\s]+$",
    "hostname": r"^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$",
    "ipv4": rf"^(?:{_BYTE}\.){{3}}{_BYTE}$",
    "date": r"^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])$",
    "date-time": r"^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})?$",
    "time": r"^\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})?$",
}
"""Named formats of text as patterns."""
