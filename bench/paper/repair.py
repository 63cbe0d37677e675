"""Cleaning after the fact: change cells of a table until its hard constraints hold.

A functional dependency is repaired by majority vote in each group of equal left sides; an order by pooling adjacent
violators in each group, with medians, which keep values of the column. Where two dependencies point to one attribute
(zip -> state and area -> state), the first decides it and the second is repaired on its left side. No private table
is read: this is what a user of a private table could do.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kamino.constraints import Constraints, DenialConstraint
from kamino.constraints.analysis.canonical import canonical_predicates
from kamino.constraints.analysis.classify import Dependency, dependency_of
from kamino.constraints.tree import Column, Comparison, Operator

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Order:
    """Within equal `groups`, `right` goes with `left`: up, or down where not `rising`."""

    groups: tuple[str, ...]
    left: str
    right: str
    rising: bool


def clean(table: pa.Table, rules: Constraints, rng: np.random.Generator) -> pa.Table:
    """Repair all dependencies, those that others build on first, then all orders.

    Guarantees:
        No violation of the constraints of the paper's shapes is left.  [test_cleaning_leaves_no_violation]
    """
    dependencies = [found for c in rules if c.is_hard and (found := dependency_of(c)) is not None]
    decided: set[str] = set()
    for dependency in _in_order(dependencies):
        left = sorted(dependency.left)
        if dependency.right in decided:
            table = repair_left(table, left, dependency.right, rng)
        else:
            table = vote(table, left, dependency.right)
        decided.add(dependency.right)
    for order in filter(None, (order_of(c) for c in rules if c.is_hard)):
        table = pool(table, order)
    return table


def percent_changed(before: pa.Table, after: pa.Table) -> float:
    """The percentage of all cells that differ; two nulls do not."""
    changed = 0.0
    for name in before.column_names:
        one, two = before.column(name), after.column(name)
        same = pc.or_(pc.fill_null(pc.equal(one, two), False), pc.and_(pc.is_null(one), pc.is_null(two)))
        changed += before.num_rows - float(pc.sum(same).as_py() or 0)
    return 100 * changed / max(int(before.num_rows) * int(before.num_columns), 1)


def _in_order(dependencies: list[Dependency]) -> list[Dependency]:
    """A dependency comes after those that decide its left side.

    Of two into one attribute, that whose left side decides more comes first: the left side of the other is then
    repaired, on which nothing else was built.
    """
    decides = Counter(d.left for d in dependencies)
    rest, ordered = sorted(dependencies, key=lambda d: -decides[d.left]), []
    while rest:
        free = [d for d in rest if not any(other.right in d.left for other in rest if other is not d)] or rest[:1]
        ordered += free
        rest = [d for d in rest if d not in free]
    return ordered


def vote(table: pa.Table, left: list[str], right: str) -> pa.Table:
    """Give every row the value of `right` that most rows of its group have; a null joins no group."""
    groups, known = group_codes(table, left)
    values, cells = _encoded(table, right)
    winners = _majority(groups[known], cells[known], len(values))
    chosen = cells.copy()
    chosen[known] = winners[groups[known]]
    return _with(table, right, values.take(pa.array(chosen, mask=chosen < 0)))


def repair_left(table: pa.Table, left: list[str], right: str, rng: np.random.Generator) -> pa.Table:
    """Keep `right`; rows that disagree with their group take the left side of a row that agrees and has their `right`.

    Where no row that agrees has it, the left side becomes null, which violates nothing.
    """
    groups, known = group_codes(table, left)
    values, cells = _encoded(table, right)
    winners = _majority(groups[known], cells[known], len(values))
    fine = np.zeros(table.num_rows, dtype=np.bool_)
    fine[known] = winners[groups[known]] == cells[known]
    donor = np.arange(table.num_rows)
    for value in np.unique(cells[known & ~fine]):
        wrong = np.flatnonzero(known & ~fine & (cells == value))
        donors = np.flatnonzero(fine & (cells == value))
        donor[wrong] = rng.choice(donors, size=len(wrong)) if len(donors) else -1
    take = pa.array(donor, mask=donor < 0)
    for name in left:
        table = _with(table, name, table.column(name).take(take))
    return table


def pool(table: pa.Table, order: Order) -> pa.Table:
    """Make `right` monotone in `left` within each group; rows with a null on either side stay as they are."""
    names = [order.left, order.right]
    left, right = (np.asarray(table.column(name).cast(pa.float64()).fill_null(np.nan)) for name in names)
    groups, known = group_codes(table, list(order.groups))
    used = np.flatnonzero(known & ~np.isnan(left) & ~np.isnan(right))
    sign = 1.0 if order.rising else -1.0
    sequence = used[np.lexsort((sign * right[used], left[used], groups[used]))]
    result = right.copy()
    for rows in np.split(sequence, np.flatnonzero(np.diff(groups[sequence])) + 1):
        result[rows] = sign * pool_adjacent(sign * right[rows])
    column = pa.array(result, mask=np.isnan(result)).cast(table.schema.field(order.right).type)
    return _with(table, order.right, column)


def pool_adjacent(values: Floats) -> Floats:
    """The nondecreasing sequence nearest to `values` in the sum of differences: pools take their lower median.

    >>> pool_adjacent(np.array([1.0, 3.0, 2.0, 2.0, 5.0])).tolist()
    [1.0, 2.0, 2.0, 2.0, 5.0]
    """
    medians: list[float] = []
    pools: list[Floats] = []
    starts = np.concatenate([[0], np.flatnonzero(np.diff(values)) + 1]) if len(values) else np.empty(0, np.int64)
    for run in np.split(values, starts[1:]) if len(values) else []:
        current = run
        middle = float(run[0])
        while medians and medians[-1] > middle:
            medians.pop()
            current = np.sort(np.concatenate([pools.pop(), current]), kind="stable")
            middle = float(current[(len(current) - 1) // 2])
        medians.append(middle)
        pools.append(current)
    lengths = [len(each) for each in pools]
    return np.repeat(np.array(medians, dtype=np.float64), lengths)


def order_of(constraint: DenialConstraint) -> Order | None:
    """The order a constraint states: equal keys, or none, and two strict orders that may not go together."""
    groups: list[str] = []
    strict: list[tuple[str, Operator]] = []
    for predicate in canonical_predicates(constraint.predicates):
        match predicate:
            case Comparison(left=Column(tuple=1) as one, op=op, right=Column(tuple=2) as two) if one.name == two.name:
                if op is Operator.EQ:
                    groups.append(one.name)
                elif op in (Operator.LT, Operator.GT):
                    strict.append((one.name, op))
                else:
                    return None
            case _:
                return None
    if len(strict) != 2:
        return None
    (left, one_way), (right, other_way) = sorted(strict, key=lambda each: constraint.attributes.index(each[0]))
    return Order(groups=tuple(groups), left=left, right=right, rising=one_way is not other_way)


def group_codes(table: pa.Table, names: list[str]) -> tuple[Codes, npt.NDArray[np.bool_]]:
    """A number for each group of equal values, and which rows have no null among them."""
    groups, known = np.zeros(table.num_rows, dtype=np.int64), np.ones(table.num_rows, dtype=np.bool_)
    for name in names:
        values, cells = _encoded(table, name)
        known &= cells >= 0
        groups = np.unique(groups * (len(values) + 1) + cells + 1, return_inverse=True)[1].astype(np.int64)
    return groups, known


def _encoded(table: pa.Table, name: str) -> tuple[pa.Array, Codes]:
    """The values of a column, and the place of each row's among them; -1 for null."""
    encoded = table.column(name).combine_chunks().dictionary_encode()
    return encoded.dictionary, np.asarray(pc.fill_null(encoded.indices.cast(pa.int64()), -1))


def _majority(groups: Codes, cells: Codes, num_values: int) -> Codes:
    """The most frequent value of each group that is not null; among equals the first. -1 if a group has nulls only."""
    winners = np.full(int(groups.max(initial=-1)) + 1, -1, dtype=np.int64)
    there = cells >= 0
    pairs, counts = np.unique(groups[there] * num_values + cells[there], return_counts=True)
    order = np.lexsort((-pairs, counts))
    winners[pairs[order] // num_values] = pairs[order] % num_values
    return winners


def _with(table: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), name, column)
