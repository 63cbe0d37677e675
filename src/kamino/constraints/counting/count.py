"""Violations of a constraint in a table: how many, by row, and which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kamino.constraints.counting.conjunction import Conjunction, Cross, conjunction_of
from kamino.constraints.counting.extremes import has_matches
from kamino.constraints.counting.lowering import lowered
from kamino.constraints.counting.method import Method, choose_method, count
from kamino.constraints.counting.problem import Axis, Counts, Problem, combine_keys, order_axis
from kamino.constraints.counting.ranks import NULL, Mask, RankedTable, compare
from kamino.constraints.tree import (
    Column,
    Comparison,
    Constant,
    DenialConstraint,
    NullTest,
    Operator,
    Predicate,
    TermTest,
)

# With more orders than this, looking for one partner takes as long as trying all pairs.
_MOST_ORDERS = 4


def count_violations(table: pa.Table | RankedTable, constraint: DenialConstraint) -> int:
    """The rows that violate a unary constraint; otherwise the unordered pairs that violate it in either direction.

    Guarantees:
        Equal to trying every row or pair.  [test_counts_match_brute_force]
        Independent of the order of the rows.  [test_counts_ignore_row_order]
    """
    ranked = _ranked(table)
    constraint = lowered(ranked, constraint)
    if constraint.is_unary:
        return int(_holds(ranked, constraint.predicates).sum())
    one_way = conjunction_of(constraint)
    ordered = int(_partners(ranked, one_way).sum())
    if one_way.is_symmetric:
        return ordered // 2
    return ordered - int(_partners(ranked, one_way.both_ways()).sum()) // 2


def violations_per_row(table: pa.Table | RankedTable, constraint: DenialConstraint) -> Counts:
    """For each row, in how many violations it takes part.

    Guarantees:
        Equal to trying every row or pair.  [test_counts_per_row_match_brute_force]
    """
    ranked = _ranked(table)
    constraint = lowered(ranked, constraint)
    if constraint.is_unary:
        return _holds(ranked, constraint.predicates).astype(np.int64)
    one_way = conjunction_of(constraint)
    forward = _partners(ranked, one_way)
    if one_way.is_symmetric:
        return forward
    return forward + _partners(ranked, one_way.transposed) - _partners(ranked, one_way.both_ways())


def find_violations(
    table: pa.Table | RankedTable, constraint: DenialConstraint, *, limit: int
) -> list[tuple[int, ...]]:
    """Up to `limit` violating rows `(i,)` or pairs `(i, j)`, as row numbers from 0, where t1 = i and t2 = j.

    Guarantees:
        Every one violates the constraint, none is listed twice, and there are `min(limit, all)`.
        [test_found_violations_are_violations]
    """
    ranked = _ranked(table)
    constraint = lowered(ranked, constraint)
    if constraint.is_unary:
        rows = np.flatnonzero(_holds(ranked, constraint.predicates))[:limit]
        return [(int(row),) for row in rows]
    found: dict[frozenset[int], tuple[int, int]] = {}
    for pair in _violating_pairs(ranked, constraint):
        if len(found) >= limit:
            break
        found.setdefault(frozenset(pair), pair)
    return list(found.values())


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """How a constraint is counted in a table of a given size."""

    method: str
    directions: int


def explain_count(table: pa.Table | RankedTable, constraint: DenialConstraint) -> Explanation:
    """Which kernel counts the constraint, and in how many counts."""
    ranked = _ranked(table)
    constraint = lowered(ranked, constraint)
    if constraint.is_unary:
        return Explanation(method="scan of the rows", directions=1)
    one_way = conjunction_of(constraint)
    if one_way.never:
        return Explanation(method="nothing to count: it can never be violated", directions=0)
    problem, _ = _problem(ranked, one_way)
    method = choose_method(problem)
    unequal = len(problem.unequal)
    text = method.value
    if unequal and method not in (Method.DENSE, Method.PAIRS):
        text += f", {2**unequal} counts for inclusion-exclusion on !="
    return Explanation(method=text, directions=1 if one_way.is_symmetric else 2)


def _ranked(table: pa.Table | RankedTable) -> RankedTable:
    return table if isinstance(table, RankedTable) else RankedTable(table)


def _partners(table: RankedTable, conjunction: Conjunction) -> Counts:
    """For each row i as t1, the rows j other than i as t2 for which the conjunction holds."""
    found = np.zeros(table.num_rows, dtype=np.int64)
    if conjunction.never:
        return found
    problem, left = _problem(table, conjunction)
    itself = _holds_with_itself(table, conjunction)
    if _is_dear(problem) and not itself.any() and not has_matches(problem):
        return found
    found[left] = count(problem)
    found -= itself
    return found


def _is_dear(problem: Problem) -> bool:
    """Whether to look first if there is anything to count."""
    return 2 <= len(problem.orders) <= _MOST_ORDERS and choose_method(problem) in (Method.HALVING, Method.PAIRS)


def _problem(table: RankedTable, conjunction: Conjunction) -> tuple[Problem, npt.NDArray[np.int64]]:
    """The counting problem of a conjunction and the table's rows its left side stands for."""
    left = _holds(table, tuple(conjunction.left))
    right = _holds(table, tuple(conjunction.right))
    for cross in conjunction.cross:
        a, b, _ = table.ranks(cross.left, cross.right)
        left &= a != NULL
        right &= b != NULL
    everyone = bool(left.all() and right.all())
    axes = {cross: _axis(table, cross, left, right, everyone) for cross in conjunction.cross}
    equal = [axes[c] for c in conjunction.cross if c.op is Operator.EQ]
    nobody = Axis(left=np.zeros(int(left.sum()), np.int64), right=np.zeros(int(right.sum()), np.int64), size=1)
    problem = Problem(
        key=combine_keys(equal) if equal else nobody,
        unequal=tuple(axes[c] for c in conjunction.cross if c.op is Operator.NE),
        orders=tuple(order_axis(axes[c], c.op) for c in conjunction.cross if c.op and c.op.is_order),
    )
    return problem, np.flatnonzero(left)


def _axis(table: RankedTable, cross: Cross, left: Mask, right: Mask, everyone: bool) -> Axis:
    a, b, size = table.ranks(cross.left, cross.right)
    axis = Axis(left=a, right=b, size=size)
    return axis if everyone else axis.take(left, right)


# Of constraints with more predicates than this, later ones are asked of the rows that are left.
_LONG = 4


def _holds(table: RankedTable, predicates: tuple[Predicate, ...]) -> Mask:
    """The rows for which all predicates, read as of one tuple, are true."""
    holds = np.ones(table.num_rows, dtype=np.bool_)
    left_over: npt.NDArray[np.int64] | None = None
    for predicate in predicates:
        match predicate:
            case NullTest(column=column, negated=negated):
                holds &= table.is_null(column.name) != negated
            case Comparison(left=left, op=op, right=Constant() as constant) if left_over is not None:
                # Long lists are mostly told apart by their first item: the others are asked of few rows.
                holds[left_over] &= table.compare_constant(left.name, op, constant, left_over)
            case Comparison(left=left, op=op, right=Constant() as constant):
                holds &= table.compare_constant(left.name, op, constant)
                found = int(np.count_nonzero(holds)) if len(predicates) > _LONG else table.num_rows
                left_over = np.flatnonzero(holds) if found < table.num_rows // 2 else None
            case Comparison(left=left, op=op, right=Column() as right):
                a, b, _ = table.ranks(left.name, right.name)
                holds &= (a != NULL) & (b != NULL) & compare(a, op, b)
            case TermTest():
                raise AssertionError("terms are made columns before rows are counted")
    return holds


def _holds_with_itself(table: RankedTable, conjunction: Conjunction) -> Mask:
    """The rows for which the conjunction holds with t1 and t2 both being that row."""
    across = tuple(Comparison(Column(c.left), c.op, Column(c.right)) for c in conjunction.cross if c.op is not None)
    bare = tuple(
        NullTest(Column(name), negated=True) for c in conjunction.cross if c.op is None for name in (c.left, c.right)
    )
    return _holds(table, (*conjunction.left, *conjunction.right, *across, *bare))


def _violating_pairs(table: RankedTable, constraint: DenialConstraint) -> Iterator[tuple[int, int]]:
    """Ordered violating pairs, found row by row among the rows that have a partner."""
    conjunction = conjunction_of(constraint)
    if conjunction.never:
        return
    right = _holds(table, tuple(conjunction.right))
    for row in np.flatnonzero(_partners(table, conjunction)):
        match = right.copy()
        match[row] = False
        for cross in conjunction.cross:
            a, b, _ = table.ranks(cross.left, cross.right)
            match &= b != NULL
            if cross.op is not None:
                match &= compare(a[row], cross.op, b)
        for partner in np.flatnonzero(match):
            yield int(row), int(partner)
