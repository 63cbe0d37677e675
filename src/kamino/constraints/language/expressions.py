"""Boolean expressions over predicates, and their disjunctive normal form."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from kamino.constraints.tree import Comparison, NullTest, Predicate
from kamino.errors import ConstraintError

MAX_ALTERNATIVES = 256


@dataclass(frozen=True)
class And:
    """All parts hold."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Or:
    """Some part holds."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Not:
    """The part is false; where it is unknown because of a null, so is this."""

    part: Expression


Expression = And | Or | Not | Comparison | NullTest
Alternatives = tuple[tuple[Predicate, ...], ...]


def alternatives(expression: Expression) -> Alternatives:
    """The conjunctions of which at least one holds exactly where `expression` is true.

    Guarantees:
        True rows are the same under three-valued logic.  [test_alternatives_keep_truth]
    """
    return _expand(expression, negated=False)


def _expand(expression: Expression, *, negated: bool) -> Alternatives:
    match expression:
        case Not(part=part):
            return _expand(part, negated=not negated)
        case And(parts=parts) | Or(parts=parts):
            expanded = [_expand(part, negated=negated) for part in parts]
            if isinstance(expression, Or) != negated:
                return _limited([alternative for part in expanded for alternative in part])
            return _combine(expanded)
        case Comparison(left=left, op=op, right=right):
            return ((Comparison(left, op.negated if negated else op, right),),)
        case NullTest(column=column, negated=was):
            return ((NullTest(column, was != negated),),)


def _combine(parts: list[Alternatives]) -> Alternatives:
    size = 1
    for part in parts:
        size *= len(part)
        if size > MAX_ALTERNATIVES:
            raise _too_many()
    return _limited([sum(choice, start=()) for choice in product(*parts)])


def _limited(found: list[tuple[Predicate, ...]]) -> Alternatives:
    if len(found) > MAX_ALTERNATIVES:
        raise _too_many()
    return tuple(tuple(dict.fromkeys(alternative)) for alternative in found)


def _too_many() -> ConstraintError:
    return ConstraintError(
        f"found an expression with more than {MAX_ALTERNATIVES} alternatives once 'or' is multiplied out; "
        "split it into several constraints"
    )
