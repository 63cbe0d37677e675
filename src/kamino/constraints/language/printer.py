"""Constraints back to text, so that parsing the text gives the same constraint.

Guarantees:
    `parse(print(c)) == c` for every constraint.  [test_print_then_parse_is_identity]
"""

from __future__ import annotations

import re
from datetime import date, datetime

from kamino.constraints.language.lexer import KEYWORDS
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
)

_PLAIN = re.compile(r"[^\W\d]\w*(?:-\w+)*")


def print_constraint(constraint: DenialConstraint) -> str:
    """The constraint as one line of the language, in its shortest form."""
    using = f" using '{constraint.reference.replace(chr(39), chr(39) * 2)}'" if constraint.reference is not None else ""
    return _strength(constraint.strength) + _body(constraint) + using


def print_name(name: str) -> str:
    """An attribute name, in double quotes unless it is a plain word."""
    if _PLAIN.fullmatch(name) and name.lower() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


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


def _names(predicates: tuple[Predicate, ...]) -> str:
    return ", ".join(print_name(predicate.columns[0].name) for predicate in predicates)


def _predicate(predicate: Predicate, *, bare: bool) -> str:
    match predicate:
        case Comparison(left=left, op=op, right=right):
            return f"{_operand(left, bare=bare)} {op.value} {_operand(right, bare=bare)}"
        case NullTest(column=column, negated=negated):
            return f"{_operand(column, bare=bare)} is {'not ' if negated else ''}null"


def _operand(operand: Column | Constant, *, bare: bool) -> str:
    if isinstance(operand, Column):
        return print_name(operand.name) if bare else f"t{operand.tuple}.{print_name(operand.name)}"
    value = operand.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"timestamp '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    return str(value)
