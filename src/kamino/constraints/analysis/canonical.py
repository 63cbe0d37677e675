"""One form for all ways to write the same constraint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from kamino.constraints.analysis.opaque import opaque
from kamino.constraints.tree import (
    Column,
    Comparison,
    DenialConstraint,
    NullTest,
    Predicate,
    TermTest,
    is_cross,
    oriented,
    swapped,
)


def canonical_predicates(predicates: Sequence[Predicate]) -> tuple[Predicate, ...]:
    """The predicates oriented, without repeats, sorted; the same for both namings of the two tuples.

    Guarantees:
        Equal forms mean equal violations.  [test_duplicates_have_equal_counts]
    """
    straight = _ordered(predicates)
    if not any(column.tuple == 2 for predicate in straight for column in predicate.columns):
        return straight
    return min(straight, _ordered([swapped(p) for p in straight]), key=_sort_keys)


def same_meaning(one: DenialConstraint, other: DenialConstraint) -> bool:
    """Whether the two are the same constraint written in two ways."""
    return _canonical(one) == _canonical(other)


@lru_cache(maxsize=4096)
def _canonical(constraint: DenialConstraint) -> tuple[Predicate, ...]:
    return canonical_predicates(constraint.predicates)


def _ordered(predicates: Sequence[Predicate]) -> tuple[Predicate, ...]:
    return tuple(sorted({_normal(predicate) for predicate in predicates}, key=_sort_key))


def _normal(predicate: Predicate) -> Predicate:
    match predicate:
        case Comparison(left=left, op=op, right=Column() as right) if not is_cross(predicate):
            first, second = sorted((left, right), key=lambda column: column.name)
            plain = Comparison(first, op if first is left else op.mirrored, second)
            return replace(plain, left=_bare(plain.left), right=_bare(plain.right))
        case Comparison():
            turned = oriented(predicate)
            assert isinstance(turned, Comparison)
            return replace(turned, left=_bare(turned.left))
        case NullTest():
            return predicate
        case TermTest():
            return _normal(opaque(predicate))


def _bare(side: Column | object) -> Column:
    assert isinstance(side, Column)
    return Column(side.name, side.tuple)


def _sort_keys(predicates: Sequence[Predicate]) -> list[tuple[str, ...]]:
    return [_sort_key(predicate) for predicate in predicates]


def _sort_key(predicate: Predicate) -> tuple[str, ...]:
    match predicate:
        case Comparison(left=left, op=op, right=right):
            side = f"{right.tuple}.{right.name}" if isinstance(right, Column) else f"={right.value!r}"
            return ("comparison", f"{left.tuple}.{left.name}", op.value, side)
        case NullTest(column=column, negated=negated):
            return ("null", f"{column.tuple}.{column.name}", str(negated), "")
        case TermTest():
            return _sort_key(opaque(predicate))
