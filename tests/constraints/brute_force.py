"""The definition of a violation, written as plainly as possible: the oracle of all counting tests."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from kamino.constraints.tree import (
    Column,
    Comparison,
    Constant,
    DenialConstraint,
    NullTest,
    Operator,
    Predicate,
)

Row = Mapping[str, Any]
_OPERATIONS = {
    Operator.EQ: operator.eq,
    Operator.NE: operator.ne,
    Operator.LT: operator.lt,
    Operator.LE: operator.le,
    Operator.GT: operator.gt,
    Operator.GE: operator.ge,
}


def missing(value: Any) -> bool:
    return value is None or value != value


def is_true(predicate: Predicate, t1: Row, t2: Row) -> bool:
    def value(side: Column | Constant) -> Any:
        return side.value if isinstance(side, Constant) else (t1 if side.tuple == 1 else t2)[side.name]

    if isinstance(predicate, NullTest):
        return missing(value(predicate.column)) != predicate.negated
    assert isinstance(predicate, Comparison)
    left, right = value(predicate.left), value(predicate.right)
    return not missing(left) and not missing(right) and bool(_OPERATIONS[predicate.op](left, right))


def violates(constraint: DenialConstraint, t1: Row, t2: Row) -> bool:
    return all(is_true(predicate, t1, t2) for predicate in constraint.predicates)


def violations(constraint: DenialConstraint, rows: list[Row]) -> list[tuple[int, ...]]:
    if constraint.is_unary:
        return [(i,) for i, row in enumerate(rows) if violates(constraint, row, row)]
    return [
        (i, j)
        for i, j in combinations(range(len(rows)), 2)
        if violates(constraint, rows[i], rows[j]) or violates(constraint, rows[j], rows[i])
    ]
