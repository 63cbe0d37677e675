"""A constraint on pairs as filters on each side and comparisons across, ready to be counted.

`out(i)` is the number of rows j, i included, for which the conjunction holds with t1 = i and t2 = j.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kamino.constraints.tree import (
    Column,
    Comparison,
    DenialConstraint,
    Operator,
    Predicate,
    TermTest,
    is_cross,
    oriented,
    swapped,
)

LESS, EQUAL, GREATER = 1, 2, 4
_SETS = {
    Operator.EQ: EQUAL,
    Operator.NE: LESS | GREATER,
    Operator.LT: LESS,
    Operator.LE: LESS | EQUAL,
    Operator.GT: GREATER,
    Operator.GE: GREATER | EQUAL,
}
_OPERATORS = {value: op for op, value in _SETS.items()}


@dataclass(frozen=True)
class Cross:
    """`t1.left op t2.right`; `op` None asks only that both have a value."""

    left: str
    op: Operator | None
    right: str


@dataclass(frozen=True, kw_only=True)
class Conjunction:
    """Filters on t1 alone and on t2 alone (written as of t1), and one comparison for each pair of attributes."""

    left: frozenset[Predicate]
    right: frozenset[Predicate]
    cross: tuple[Cross, ...]
    never: bool = False

    @property
    def transposed(self) -> Conjunction:
        """The same conjunction with the two tuples exchanged."""
        crosses = tuple(Cross(c.right, c.op and c.op.mirrored, c.left) for c in self.cross)
        return Conjunction(left=self.right, right=self.left, cross=_sorted(crosses), never=self.never)

    @property
    def is_symmetric(self) -> bool:
        """Whether it holds for (i, j) exactly where it holds for (j, i)."""
        return self == self.transposed

    def both_ways(self) -> Conjunction:
        """The conjunction that holds where this one holds in both directions."""
        other = self.transposed
        merged = _merged(self.left | other.left, self.right | other.right, (*self.cross, *other.cross))
        return replace(merged, never=merged.never or self.never)


def conjunction_of(constraint: DenialConstraint) -> Conjunction:
    """The conjunction of a constraint on two tuples.

    Guarantees:
        It holds for the same ordered pairs.  [test_counts_match_brute_force]
    """
    left: set[Predicate] = set()
    right: set[Predicate] = set()
    cross: list[Cross] = []
    for predicate in map(oriented, constraint.predicates):
        if is_cross(predicate):
            assert isinstance(predicate, Comparison)
            assert isinstance(predicate.right, Column)
            cross.append(Cross(predicate.left.name, predicate.op, predicate.right.name))
        elif predicate.columns[0].tuple == 1:
            left.add(predicate)
        else:
            right.add(swapped(predicate))
    return _merged(frozenset(left), frozenset(right), cross)


def equal_attributes(constraint: DenialConstraint) -> frozenset[str]:
    """Return the attributes that must be equal in two rows before the constraint can be violated."""
    plain = tuple(predicate for predicate in constraint.predicates if not isinstance(predicate, TermTest))
    crosses = conjunction_of(constraint.with_predicates(plain)).cross if plain else ()
    return frozenset(cross.left for cross in crosses if cross.op is Operator.EQ and cross.left == cross.right)


def _merged(left: frozenset[Predicate], right: frozenset[Predicate], cross: Iterable[Cross]) -> Conjunction:
    """Comparisons of the same two attributes become one: what they allow in common."""
    allowed: dict[tuple[str, str], int] = {}
    for each in cross:
        key = (each.left, each.right)
        allowed[key] = allowed.get(key, LESS | EQUAL | GREATER) & (_SETS[each.op] if each.op else 7)
    crosses = tuple(Cross(a, _OPERATORS.get(bits), b) for (a, b), bits in allowed.items())
    never = any(bits == 0 for bits in allowed.values())
    return Conjunction(left=left, right=right, cross=_sorted(crosses), never=never)


def _sorted(crosses: Iterable[Cross]) -> tuple[Cross, ...]:
    return tuple(sorted(crosses, key=lambda c: (c.left, c.op.value if c.op else "", c.right)))
