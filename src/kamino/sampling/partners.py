"""With how many other rows a row would clash, for many rows and many values of one column at once.

A column is drawn in blocks of rows. For every row of a block and each of its candidate values, the rows of the rest of
the table that violate a constraint together with it are counted exactly, from the codes as they stand: nothing is
carried over from one block to the next, so nothing can drift. Where the combinations of codes are few, a table says
which of them clash and a count is one product with the histogram; elsewhere the kernels that count violations do it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from kamino.constraints import DenialConstraint
from kamino.constraints.counting.conjunction import Conjunction, Cross, conjunction_of
from kamino.constraints.counting.method import count
from kamino.constraints.counting.problem import Axis, Problem, combine_keys, order_axis
from kamino.constraints.tree import Operator
from kamino.model.protocol import FloatArray, IntArray
from kamino.sampling.comparing import Columns, Judge, Mask
from kamino.sampling.grouping import join_keys
from kamino.schema.joint_codes import number_values

# Up to this many combinations of codes, a table holds which of them clash.
MOST_COMBINATIONS = 2048
# Sums of whole numbers below it are exact in float32.
_EXACT = 1 << 24


class Partners(Protocol):
    """One constraint, asked for the partners of candidates.

    `settled` is the column as far as it is drawn, -1 where it is not; those rows are nobody's partner.

    Guarantees:
        Counts are those of trying every other settled row.  [test_partners_agree_with_brute_force]
    """

    def count(self, rows: IntArray, candidates: IntArray, settled: IntArray) -> FloatArray:
        """Return, for each row (a line of `candidates`) and candidate, how many other rows it clashes with."""
        ...


def make_partners(
    constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns, listed: IntArray | None
) -> Partners:
    """Choose how to count. `listed` are all codes that `attribute` can take, ascending, if these are few."""
    if constraint.is_unary:
        return _Alone(constraint, judge, attribute, columns)
    if listed is not None:
        others = [name for name in constraint.attributes if name != attribute]
        num_rows = len(next(iter(columns.values()))) if columns else 0
        keys = join_keys([columns[name] for name in others]) if others else None
        contexts = int(keys.max(initial=-1)) + 1 if keys is not None else 1
        if contexts * len(listed) <= MOST_COMBINATIONS and num_rows < _EXACT:
            return _Tabled(constraint, judge, attribute, columns, listed, keys)
    return _Kernel(constraint, judge, attribute, columns)


class _Alone:
    """A constraint on single rows: a row is its own and only partner."""

    def __init__(self, constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns) -> None:
        self._constraint, self._judge, self._attribute = constraint, judge, attribute
        self._columns = {name: columns[name] for name in constraint.attributes if name != attribute}

    def count(self, rows: IntArray, candidates: IntArray, settled: IntArray) -> FloatArray:
        mine = {name: codes[rows][:, None] for name, codes in self._columns.items()} | {self._attribute: candidates}
        return self._judge.violates(self._constraint, mine, mine).astype(np.float64)


class _Tabled:
    """Counts by a table of clashes between combinations of a context (the other attributes) and a code."""

    def __init__(
        self,
        constraint: DenialConstraint,
        judge: Judge,
        attribute: str,
        columns: Columns,
        listed: IntArray,
        keys: IntArray | None,
    ) -> None:
        self._listed = listed
        self._keys = keys
        contexts = 1
        combined: dict[str, IntArray] = {}
        if keys is not None:
            _, first = np.unique(keys, return_index=True)
            contexts = len(first)
            others = [name for name in constraint.attributes if name != attribute]
            combined = {name: np.repeat(columns[name][first], len(listed)) for name in others}
        combined[attribute] = np.tile(listed, contexts)
        down = {name: codes[:, None] for name, codes in combined.items()}
        across = {name: codes[None, :] for name, codes in combined.items()}
        self._clash = judge.clashes(constraint, down, across).astype(np.float32)

    def count(self, rows: IntArray, candidates: IntArray, settled: IntArray) -> FloatArray:
        there = np.flatnonzero(settled >= 0)
        size = len(self._listed)
        place = self._context(there) * size + np.searchsorted(self._listed, settled[there])
        histogram = np.bincount(place, minlength=len(self._clash)).astype(np.float32)
        total = self._clash @ histogram
        mine = self._context(rows)[:, None] * size + np.searchsorted(self._listed, candidates)
        found: FloatArray = total[mine].astype(np.float64)
        present = np.flatnonzero(settled[rows] >= 0)
        own = self._context(rows[present]) * size + np.searchsorted(self._listed, settled[rows[present]])
        found[present] -= self._clash[mine[present], own[:, None]]
        return found

    def _context(self, rows: IntArray) -> IntArray:
        return np.zeros(len(rows), dtype=np.int64) if self._keys is None else self._keys[rows]


class _Kernel:
    """Counts by hashing, sorting and halving: candidates on the left side, settled rows on the right."""

    def __init__(self, constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns) -> None:
        self._constraint, self._judge, self._attribute = constraint, judge, attribute
        self._columns = {name: columns[name] for name in constraint.attributes if name != attribute}
        one_way = conjunction_of(constraint)
        if one_way.is_symmetric:
            self._parts = [(one_way, 1)]
        else:
            self._parts = [(one_way, 1), (one_way.transposed, 1), (one_way.both_ways(), -1)]

    def count(self, rows: IntArray, candidates: IntArray, settled: IntArray) -> FloatArray:
        width = candidates.shape[1]
        left = {name: np.repeat(codes[rows], width) for name, codes in self._columns.items()}
        left[self._attribute] = candidates.ravel()
        there = np.flatnonzero(settled >= 0)
        right = {name: codes[there] for name, codes in self._columns.items()} | {self._attribute: settled[there]}
        found = np.zeros(candidates.size, dtype=np.int64)
        for conjunction, sign in self._parts:
            found += sign * _matches(conjunction, self._judge, left, right)
        result: FloatArray = found.reshape(candidates.shape).astype(np.float64)
        mine = {name: codes[rows][:, None] for name, codes in self._columns.items()}
        present = settled[rows] >= 0
        itself = mine | {self._attribute: np.maximum(settled[rows], 0)[:, None]}
        clash = self._judge.clashes(self._constraint, mine | {self._attribute: candidates}, itself)
        return result - (clash & present[:, None])


def _matches(conjunction: Conjunction, judge: Judge, left: Columns, right: Columns) -> IntArray:
    """For each left row, the right rows for which the conjunction holds."""
    num_left = len(next(iter(left.values())))
    found = np.zeros(num_left, dtype=np.int64)
    if conjunction.never:
        return found
    on_left: Mask = np.array(judge.holds(conjunction.left, left, left))
    on_right: Mask = np.array(judge.holds(conjunction.right, right, right))
    for cross in conjunction.cross:
        on_left &= ~judge.is_null(cross.left, left[cross.left])
        on_right &= ~judge.is_null(cross.right, right[cross.right])
    mine = {name: codes[on_left] for name, codes in left.items()}
    theirs = {name: codes[on_right] for name, codes in right.items()}
    axes = {cross: _axis(cross, cross.op, judge, mine, theirs) for cross in conjunction.cross if cross.op is not None}
    nobody = Axis(left=np.zeros(int(on_left.sum()), np.int64), right=np.zeros(int(on_right.sum()), np.int64), size=1)
    equal = [axis for cross, axis in axes.items() if cross.op is Operator.EQ]
    problem = Problem(
        key=combine_keys(equal) if equal else nobody,
        unequal=tuple(axis for cross, axis in axes.items() if cross.op is Operator.NE),
        orders=tuple(order_axis(axis, cross.op) for cross, axis in axes.items() if cross.op and cross.op.is_order),
    )
    found[on_left] = count(problem)
    return found


def _axis(cross: Cross, op: Operator, judge: Judge, left: Columns, right: Columns) -> Axis:
    """Ranks of both sides on one scale with no gaps larger than needed."""
    a, b = judge.numbers(cross.left, left[cross.left], cross.right, right[cross.right], op)
    if len(a) + len(b) == 0:
        return Axis(left=a, right=b, size=1)
    both = np.concatenate([a, b])
    low, high = int(both.min()), int(both.max())
    if high - low > 4 * len(both) + 1024:
        ranks, size = number_values(both)
        return Axis(left=ranks[: len(a)], right=ranks[len(a) :], size=size)
    return Axis(left=a - low, right=b - low, size=high - low + 1)


def count_all(partners: Mapping[DenialConstraint, Partners], settled: IntArray) -> dict[DenialConstraint, float]:
    """Return the violation rate of each constraint in the column as it stands.

    Pairs are counted over all pairs of settled rows, single rows over all settled rows.
    """
    rows = np.flatnonzero(settled >= 0)
    num = len(rows)
    rates = {}
    for constraint, each in partners.items():
        found = float(each.count(rows, settled[rows][:, None], settled).sum())
        every = num if constraint.is_unary else num * (num - 1)
        rates[constraint] = found / every if every else 0.0
    return rates
