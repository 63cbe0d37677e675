"""Sets of three and more rows that break a rule: built row by row, one tuple variable after the other.

Rows that break a rule together have equal values where it asks all of them for equal ones, so each such group is
looked at by itself.
"""

from __future__ import annotations

from math import perm

import numpy as np
import numpy.typing as npt

from kamino.constraints.counting.lowering import lowered_predicate
from kamino.constraints.counting.ranks import NULL, RankedTable, compare
from kamino.constraints.group_rules import RowsRule
from kamino.constraints.tree import Column, Comparison, Constant, NullTest, Operator, Predicate
from kamino.errors import ConstraintError
from kamino.schema.coding.joint_codes import number_combinations

_MOST_WORK = 10**9
_Rows = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]


def shared_attributes(rule: RowsRule) -> list[str]:
    """The attributes that must be equal in all rows before the rule can be broken."""
    names = sorted({column.name for column in rule.columns()})
    return [name for name in names if len(_joined(rule, name)) == rule.tuples]


def _joined(rule: RowsRule, name: str) -> set[int]:
    """The variables tied to t1 by equalities of one attribute."""
    links = [
        {p.left.tuple, p.right.tuple}
        for p in rule.predicates
        if isinstance(p, Comparison)
        and isinstance(p.right, Column)
        and p.op is Operator.EQ
        and p.left.name == p.right.name == name
    ]
    reached = {1}
    for _ in links:
        reached |= {number for link in links if link & reached for number in link}
    return reached


def count_sets(ranked: RankedTable, rule: RowsRule) -> int:
    """The sets of different rows for which some order of the rows makes every predicate true."""
    predicates = [lowered_predicate(ranked, each) for each in rule.predicates]
    everyone = np.arange(ranked.num_rows)
    shared = shared_attributes(rule)
    group = np.zeros(ranked.num_rows, dtype=np.int64)
    if shared:
        ranks = [ranked.ranks(name)[0] for name in shared]
        everyone = np.flatnonzero(np.logical_and.reduce([each != NULL for each in ranks]))
        if not len(everyone):
            return 0
        group[everyone] = number_combinations([each[everyone] for each in ranks])[0]
    everyone = everyone[np.argsort(group[everyone], kind="stable")]
    parts = np.split(everyone, np.flatnonzero(np.diff(group[everyone])) + 1) if len(everyone) else []
    work = sum(perm(len(part), min(rule.tuples - 1, len(part))) for part in parts)
    if work > _MOST_WORK:
        raise ConstraintError(
            f"found groups so large that about {work:.0e} sets of rows had to be tried; expected equalities of "
            "attributes that part the rows into smaller groups",
            source=rule.place.source,
            line=rule.place.line,
            column=rule.place.column,
        )
    return sum(_in_group(ranked, predicates, part, rule.tuples) for part in parts if len(part) >= rule.tuples)


def _in_group(ranked: RankedTable, predicates: list[Predicate], rows: _Rows, tuples: int) -> int:
    """The sets among the rows of one group."""
    found: set[frozenset[int]] = set()
    _extend(ranked, predicates, rows, [], tuples, found)
    return len(found)


def _extend(
    ranked: RankedTable,
    predicates: list[Predicate],
    rows: _Rows,
    chosen: list[int],
    tuples: int,
    found: set[frozenset[int]],
) -> None:
    number = len(chosen) + 1
    fits = np.ones(len(rows), dtype=np.bool_)
    for predicate in predicates:
        if max(column.tuple for column in predicate.columns) == number:
            fits &= _true(ranked, predicate, rows, chosen)
    for row in rows[fits].tolist():
        if row in chosen:
            continue
        if number == tuples:
            found.add(frozenset((*chosen, row)))
        else:
            _extend(ranked, predicates, rows, [*chosen, row], tuples, found)


def _true(ranked: RankedTable, predicate: Predicate, rows: _Rows, chosen: list[int]) -> _Mask:
    """Where a predicate is true with the last variable at each of the rows, the others as chosen."""
    at = len(chosen) + 1

    def of(column: Column) -> _Rows:
        return rows if column.tuple == at else np.full(len(rows), chosen[column.tuple - 1])

    match predicate:
        case NullTest(column=column, negated=negated):
            return np.asarray(ranked.is_null(column.name)[of(column)] != negated)
        case Comparison(left=left, op=op, right=Constant() as constant):
            return np.asarray(ranked.compare_constant(left.name, op, constant)[of(left)])
        case Comparison(left=left, op=op, right=Column() as right):
            a, b, _ = ranked.ranks(left.name, right.name)
            one, other = a[of(left)], b[of(right)]
            return np.asarray((one != NULL) & (other != NULL) & compare(one, op, other))
    raise AssertionError(predicate)
