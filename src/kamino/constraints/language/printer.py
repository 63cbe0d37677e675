"""Constraints back to text, so that parsing the text gives the same constraint.

Guarantees:
    `parse(print(c)) == c` for every constraint.  [test_print_then_parse_is_identity]
"""

from __future__ import annotations

from kamino.constraints.derivation import Derivation
from kamino.constraints.group_rules import GroupRule, Measure, RowsRule
from kamino.constraints.language.term_text import print_name as print_name
from kamino.constraints.language.term_text import print_negated, print_term
from kamino.constraints.terms.term import Apply
from kamino.constraints.tree import (
    Column,
    Comparison,
    Constant,
    DenialConstraint,
    Kind,
    NullTest,
    Operator,
    Predicate,
    Strength,
    TermTest,
)


def print_constraint(constraint: DenialConstraint) -> str:
    """The constraint as one line of the language, in its shortest form."""
    using = f" using '{constraint.reference.replace(chr(39), chr(39) * 2)}'" if constraint.reference is not None else ""
    return _strength(constraint.strength) + _body(constraint) + using


def print_derivation(derivation: Derivation) -> str:
    """A derived column as one line."""
    return f"{print_name(derivation.target)} := {print_term(derivation.term)}"


def print_group_rule(rule: GroupRule) -> str:
    """A rule on groups as one line."""
    per = f" per ({', '.join(map(print_name, rule.per))})"
    where = f" where ({print_term(rule.where)})" if rule.where is not None else ""
    term = "" if rule.term is None else f"({print_term(rule.term)})"
    if rule.measure is Measure.GAPLESS:
        start = " from any" if rule.low is None else "" if rule.low == 1 else f" from {rule.low}"
        return f"{_strength(rule.strength)}gapless {term}{per}{where}{start}"
    return f"{_strength(rule.strength)}{_MEASURES[rule.measure]}{term}{per}{where} {_bounds(rule)}"


_MEASURES = {
    Measure.ROWS: "count",
    Measure.DISTINCT: "count",
    Measure.SUM: "sum",
    Measure.LEAST: "min",
    Measure.MOST: "max",
    Measure.MEAN: "avg",
}


def _bounds(rule: GroupRule) -> str:
    if rule.low == rule.high:
        return f"= {rule.low}"
    if rule.low is None or rule.high is None:
        return f">= {rule.low}" if rule.high is None else f"<= {rule.high}"
    return f"between {rule.low} and {rule.high}"


def print_rule(rule: GroupRule | RowsRule) -> str:
    """A rule on groups or on several rows as one line."""
    if isinstance(rule, GroupRule):
        return print_group_rule(rule)
    return f"{_strength(rule.strength)}not ({' and '.join(_predicate(each, bare=False) for each in rule.predicates)})"


def _strength(strength: Strength) -> str:
    match strength.kind:
        case Kind.HARD:
            return ""
        case Kind.SOFT:
            return "soft: "
        case Kind.WEIGHTED:
            return f"weight {strength.weight!r}: "


def _body(constraint: DenialConstraint) -> str:
    predicates = constraint.predicates
    if all(_compares_same(predicate, Operator.EQ) for predicate in predicates):
        return f"key ({_names(predicates)})"
    *left, last = predicates
    if left and all(_compares_same(p, Operator.EQ) for p in left) and _compares_same(last, Operator.NE):
        return f"{_names(tuple(left))} -> {_names((last,))}"
    if constraint.is_unary and len(predicates) == 1:
        return f"check ({_predicate(_negated(predicates[0]), bare=True)})"
    bare = constraint.is_unary
    return f"not ({' and '.join(_predicate(predicate, bare=bare) for predicate in predicates)})"


def _compares_same(predicate: Predicate, op: Operator) -> bool:
    match predicate:
        case Comparison(left=Column(tuple=1) as left, op=found, right=Column(tuple=2) as right):
            return found is op and left.name == right.name
        case _:
            return False


def _negated(predicate: Predicate) -> Predicate:
    match predicate:
        case Comparison(left=left, op=op, right=right):
            return Comparison(left, op.negated, right)
        case NullTest(column=column, negated=negated):
            return NullTest(column, not negated)
        case TermTest(left=left, op=Operator.EQ, right=Constant(value=False)):
            return TermTest(left, Operator.EQ, Constant(True))
        case TermTest(left=left, op=op, right=right):
            return TermTest(left, op.negated, right)


def _names(predicates: tuple[Predicate, ...]) -> str:
    return ", ".join(print_name(predicate.columns[0].name) for predicate in predicates)


def _predicate(predicate: Predicate, *, bare: bool) -> str:
    match predicate:
        case Comparison(left=left, op=op, right=right):
            return f"{print_term(left, bare=bare)} {op.value} {print_term(right, bare=bare)}"
        case NullTest(column=column, negated=negated):
            return f"{print_term(column, bare=bare)} is {'not ' if negated else ''}null"
        case TermTest(left=Apply() as left, op=Operator.EQ, right=Constant(value=True)):
            return print_term(left, bare=bare, level=3)
        case TermTest(left=Apply() as left, op=Operator.NE, right=Constant(value=True)):
            return print_negated(left, bare=bare)
        case TermTest(left=left, op=op, right=right):
            return f"{print_term(left, bare=bare, level=5)} {op.value} {print_term(right, bare=bare, level=5)}"
