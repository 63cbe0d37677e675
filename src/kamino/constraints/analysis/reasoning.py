"""Which conjunctions of predicates can hold at all, and which follow from which.

Values are taken from a dense order without ends, so an answer "cannot hold" is always right; over whole numbers a
conjunction such as `a > 3 and a < 4` is not recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kamino.constraints.analysis.opaque import opaque
from kamino.constraints.tree import Column, Comparison, Constant, NullTest, Operator, Predicate

_Node = tuple[str, Any]
_Order: TypeAlias = NDArray[np.int8]
_NONE, _WEAK, _STRICT = 0, 1, 2


def can_hold(predicates: Sequence[Predicate]) -> bool:
    """Whether some values make every predicate true.

    Guarantees:
        `False` only where no table violates `not (predicates)`.  [test_trivial_constraints_are_never_violated]
    """
    predicates = [opaque(predicate) for predicate in predicates]
    null, not_null = _null_tests(predicates)
    if null & not_null:
        return False
    return _order_is_consistent([p for p in predicates if isinstance(p, Comparison)])


def entails(predicates: Sequence[Predicate], conclusion: Predicate) -> bool:
    """Whether `conclusion` is true wherever all `predicates` are.

    Guarantees:
        Never claims what does not follow, nulls included.  [test_implied_constraints_add_nothing]
    """
    predicates, conclusion = [opaque(predicate) for predicate in predicates], opaque(conclusion)
    null, not_null = _null_tests(predicates)
    match conclusion:
        case NullTest(column=column, negated=True):
            return _node(column) in not_null
        case NullTest(column=column):
            return _node(column) in null
        case Comparison(left=left, op=op, right=right):
            # Where a side may be null, the comparison need not be true even if its negation is impossible.
            columns = [side for side in (left, right) if isinstance(side, Column)]
            if not all(_node(column) in not_null for column in columns):
                return False
            return not can_hold([*predicates, Comparison(left, op.negated, right)])


def _null_tests(predicates: Iterable[Predicate]) -> tuple[set[_Node], set[_Node]]:
    null: set[_Node] = set()
    not_null: set[_Node] = set()
    for predicate in predicates:
        match predicate:
            case NullTest(column=column, negated=False):
                null.add(_node(column))
            case NullTest(column=column):
                not_null.add(_node(column))
            case Comparison():
                not_null.update(_node(column) for column in predicate.columns)
    return null, not_null


def _node(operand: Column | Constant) -> _Node:
    if isinstance(operand, Column):
        return (f"t{operand.tuple}", operand.name)
    return ("constant", _comparable(operand.value))


def _comparable(value: Any) -> Any:
    """Dates as timestamps, so that constants of one attribute can be put in order."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time())
    return value


def _order_is_consistent(comparisons: Sequence[Comparison]) -> bool:
    nodes = list(dict.fromkeys(_node(side) for c in comparisons for side in (c.left, c.right)))
    index = {node: i for i, node in enumerate(nodes)}
    below = np.diag(np.full(len(nodes), _WEAK, dtype=np.int8))
    unequal: list[tuple[int, int]] = []
    for comparison in comparisons:
        i, j = index[_node(comparison.left)], index[_node(comparison.right)]
        _note(below, unequal, i, comparison.op, j)
    _note_constants(below, nodes)
    _close(below)
    if bool((below.diagonal() == _STRICT).any()):
        return False
    return not any(below[i, j] and below[j, i] for i, j in unequal)


def _note(below: _Order, unequal: list[tuple[int, int]], i: int, op: Operator, j: int) -> None:
    match op:
        case Operator.EQ:
            below[i, j] = max(below[i, j], _WEAK)
            below[j, i] = max(below[j, i], _WEAK)
        case Operator.NE:
            unequal.append((i, j))
        case Operator.LT:
            below[i, j] = _STRICT
        case Operator.LE:
            below[i, j] = max(below[i, j], _WEAK)
        case Operator.GT:
            below[j, i] = _STRICT
        case Operator.GE:
            below[j, i] = max(below[j, i], _WEAK)


def _note_constants(below: _Order, nodes: Sequence[_Node]) -> None:
    """Put constants of one type in order; those of different types never meet in a bound constraint."""
    kinds: dict[str, list[tuple[int, Any]]] = {}
    for i, node in enumerate(nodes):
        if node[0] == "constant":
            kind = "number" if isinstance(node[1], int | Decimal) else type(node[1]).__name__
            kinds.setdefault(kind, []).append((i, node[1]))
    for found in kinds.values():
        found.sort(key=lambda each: each[1])
        places = np.array([i for i, _ in found])
        rank = np.cumsum([0, *(one[1] < other[1] for one, other in pairwise(found))])
        order = np.where(rank[:, None] < rank, _STRICT, np.where(rank[:, None] == rank, _WEAK, _NONE)).astype(np.int8)
        below[np.ix_(places, places)] = np.maximum(below[np.ix_(places, places)], order)


def _close(below: _Order) -> None:
    """Let what is below what is below be below, strictly if either step is."""
    for k in range(len(below)):
        first, second = below[:, k, None], below[None, k, :]
        through = np.where((first > 0) & (second > 0), np.maximum(first, second), 0)
        np.maximum(below, through, out=below)
