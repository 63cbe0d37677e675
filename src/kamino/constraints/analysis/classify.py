"""Which class a constraint belongs to: the planner and the counter treat each in its own way."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from kamino.constraints.analysis.canonical import canonical_predicates
from kamino.constraints.tree import Column, Comparison, DenialConstraint, Operator, Predicate


class ConstraintClass(enum.Enum):
    """The shape of a constraint."""

    UNARY = "unary"
    FD = "fd"
    KEY = "key"
    ORDER = "order"
    GENERAL = "general"


@dataclass(frozen=True, kw_only=True)
class Dependency:
    """Equal `left` means equal `right`."""

    left: frozenset[str]
    right: str


def classify(constraint: DenialConstraint) -> ConstraintClass:
    """The class of a constraint, however it is written.

    An order is: equal keys (or none), and two orders of two attributes that may not go the same way.
    """
    if constraint.is_unary:
        return ConstraintClass.UNARY
    if constraint.has_terms:
        return ConstraintClass.GENERAL
    operators = _same_attribute_operators(constraint.predicates)
    if operators is None:
        return ConstraintClass.GENERAL
    rest = [op for op in operators.values() if op is not Operator.EQ]
    if not rest:
        return ConstraintClass.KEY
    if rest == [Operator.NE] and len(operators) > 1:
        return ConstraintClass.FD
    if len(rest) == 2 and all(op.is_order for op in rest):
        return ConstraintClass.ORDER
    return ConstraintClass.GENERAL


def dependency_of(constraint: DenialConstraint) -> Dependency | None:
    """The functional dependency a constraint states, or None where it states something else."""
    if classify(constraint) is not ConstraintClass.FD:
        return None
    operators = _same_attribute_operators(constraint.predicates)
    assert operators is not None, "a dependency compares each attribute with itself"
    left = frozenset(name for name, op in operators.items() if op is Operator.EQ)
    (right,) = (name for name, op in operators.items() if op is Operator.NE)
    return Dependency(left=left, right=right)


@lru_cache(maxsize=1024)
def _same_attribute_operators(predicates: tuple[Predicate, ...]) -> Mapping[str, Operator] | None:
    """Operator by attribute if every predicate compares an attribute across the tuples, each attribute once.

    A run asks dozens of times for each constraint.
    """
    operators: dict[str, Operator] = {}
    for predicate in canonical_predicates(predicates):
        match predicate:
            case Comparison(left=Column(tuple=1) as left, op=op, right=Column(tuple=2) as right):
                if left.name != right.name or left.name in operators:
                    return None
                operators[left.name] = op
            case _:
                return None
    return operators
