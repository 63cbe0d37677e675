"""What settled rows leave of a column: for many hard constraints, a range of values.

Take `not (rest(t1, t2) and t1.a > t2.a)`. A row i that meets a settled row j with rest(i, j) must not be above it, and
one with rest(j, i) must not be below it. So the greatest and the least of its partners say all: no candidate has to be
tried against them. The same goes for other orders, and for `!=`, which asks to be neither above nor below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint
from kamino.constraints.counting.conjunction import Conjunction, Cross, conjunction_of
from kamino.constraints.counting.extremes import NOBODY, greatest_matches
from kamino.constraints.counting.problem import Axis, Problem, combine_keys, order_axis
from kamino.constraints.tree import Operator
from kamino.sampling.codes.comparing import Columns, Judge, Mask
from kamino.schema.coding.joint_codes import number_values

# Bounds of keys that no value reaches.
LOWEST, HIGHEST = -(2**62) - 1, 2**62 + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounds:
    """For each row of a table, the least and the greatest key of order that it may have. Changed in place."""

    low: IntArray
    high: IntArray

    @staticmethod
    def of(num_rows: int) -> Bounds:
        """No bound for any row."""
        return Bounds(low=np.full(num_rows, LOWEST, dtype=np.int64), high=np.full(num_rows, HIGHEST, dtype=np.int64))

    def reset(self, rows: IntArray) -> None:
        """Forget the bounds of some rows."""
        self.low[rows], self.high[rows] = LOWEST, HIGHEST


def is_fenced(constraint: DenialConstraint, attribute: str) -> bool:
    """Whether what settled rows forbid to `attribute` is what lies outside a range."""
    if constraint.is_unary or not constraint.is_hard:
        return False
    conjunction = conjunction_of(constraint)
    own = [cross for cross in conjunction.cross if attribute in (cross.left, cross.right)]
    filters = {column.name for p in conjunction.left | conjunction.right for column in p.columns}
    if conjunction.never or len(own) != 1 or attribute in filters:
        return False
    (cross,) = own
    return cross.left == cross.right and cross.op is not None and (cross.op.is_order or cross.op is Operator.NE)


class Fence:
    """One constraint and one column. Rows are compared by the other attributes, which do not change.

    Guarantees:
        A key breaks the constraint with a settled row exactly if it is out of bounds.
        [test_fences_agree_with_brute_force]
    """

    def __init__(
        self, constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns, num_rows: int
    ) -> None:
        conjunction = conjunction_of(constraint)
        ways = [conjunction] if conjunction.is_symmetric else [conjunction, conjunction.transposed]
        self._ways = [_Way.of(each, judge, attribute, columns, num_rows) for each in ways]

    def tighten(self, bounds: Bounds, rows: IntArray, settled: IntArray, keys: IntArray) -> None:
        """Tighten the bounds of `rows` by the rows `settled`, whose values have these keys."""
        for way in self._ways:
            way.tighten(bounds, rows, settled, keys)

    def among(self, rows: IntArray) -> Ties:
        """Compare each of a few rows with each."""
        return Ties(ways=tuple((way.forbids, way.meets(rows)) for way in self._ways))


@dataclass(frozen=True, kw_only=True, eq=False)
class Ties:
    """Which of a few rows meet which, and what the first of two must not be to the second."""

    ways: tuple[tuple[Operator, Mask], ...]

    def tighten(self, low: int, high: int, place: int, keys: IntArray, there: Mask) -> tuple[int, int]:
        """Return the bounds of the row at `place`, tightened by those that are there."""
        for forbids, meets in self.ways:
            held = keys[meets[place] & there]
            if len(held):
                if forbids is not Operator.GT and forbids is not Operator.GE:
                    low = max(low, int(held.max()) + (forbids is Operator.LE))
                if forbids is not Operator.LT and forbids is not Operator.LE:
                    high = min(high, int(held.min()) - (forbids is Operator.GE))
        return low, high


@dataclass(frozen=True, kw_only=True, eq=False)
class _Way:
    """One direction: the row that is asked for is t1, and must not be `forbids` to any t2 that it meets.

    `asks` and `answers` say which rows can be t1 and t2 at all; the axes hold numbers for all rows of the table.
    """

    forbids: Operator
    asks: Mask
    answers: Mask
    equal: tuple[Axis, ...]
    unequal: tuple[Axis, ...]
    orders: tuple[Axis, ...]

    @staticmethod
    def of(conjunction: Conjunction, judge: Judge, attribute: str, columns: Columns, num_rows: int) -> _Way:
        (own,) = (cross for cross in conjunction.cross if cross.left == attribute)
        assert own.op is not None, "only such constraints are fenced"
        rest = [cross for cross in conjunction.cross if cross is not own]
        there = {name: codes for name, codes in columns.items() if name != attribute}
        asks, answers = (
            np.broadcast_to(judge.holds(side, there, there), (num_rows,)).copy()
            for side in (conjunction.left, conjunction.right)
        )
        for cross in rest:
            asks &= ~judge.is_null(cross.left, there[cross.left])
            answers &= ~judge.is_null(cross.right, there[cross.right])
        axes = {cross: _axis(cross, judge, there) for cross in rest if cross.op is not None}
        return _Way(
            forbids=own.op,
            asks=asks,
            answers=answers,
            equal=tuple(axis for cross, axis in axes.items() if cross.op is Operator.EQ),
            unequal=tuple(axis for cross, axis in axes.items() if cross.op is Operator.NE),
            orders=tuple(order_axis(axis, c.op) for c, axis in axes.items() if c.op is not None and c.op.is_order),
        )

    def tighten(self, bounds: Bounds, rows: IntArray, settled: IntArray, keys: IntArray) -> None:
        asking, answering = rows[self.asks[rows]], self.answers[settled]
        settled, keys = settled[answering], keys[answering]
        if len(asking) == 0 or len(settled) == 0:
            return
        problem = self._problem(asking, settled)
        lowest, highest = int(keys.min()), int(keys.max())
        if self.forbids not in (Operator.GT, Operator.GE):
            found = greatest_matches(problem, keys - lowest)
            low = found + lowest + (self.forbids is Operator.LE)
            bounds.low[asking] = np.maximum(bounds.low[asking], np.where(found == NOBODY, LOWEST, low))
        if self.forbids not in (Operator.LT, Operator.LE):
            found = greatest_matches(problem, highest - keys)
            high = highest - found - (self.forbids is Operator.GE)
            bounds.high[asking] = np.minimum(bounds.high[asking], np.where(found == NOBODY, HIGHEST, high))

    def meets(self, rows: IntArray) -> Mask:
        """Tell for each pair of rows, the first downwards, whether all but the comparison of the column holds."""
        meets: Mask = self.asks[rows][:, None] & self.answers[rows][None, :]
        for axis in self.equal:
            meets &= axis.left[rows][:, None] == axis.right[rows][None, :]
        for axis in self.unequal:
            meets &= axis.left[rows][:, None] != axis.right[rows][None, :]
        for axis in self.orders:
            meets &= axis.left[rows][:, None] < axis.right[rows][None, :]
        np.fill_diagonal(meets, False)
        return meets

    def _problem(self, rows: IntArray, settled: IntArray) -> Problem:
        equal, unequal, orders = (_taken(axes, rows, settled) for axes in (self.equal, self.unequal, self.orders))
        everybody = Axis(left=np.zeros(len(rows), np.int64), right=np.zeros(len(settled), np.int64), size=1)
        return Problem(key=combine_keys(equal) if equal else everybody, unequal=unequal, orders=orders)


def _taken(axes: Sequence[Axis], rows: IntArray, settled: IntArray) -> tuple[Axis, ...]:
    return tuple(replace(axis, left=axis.left[rows], right=axis.right[settled]) for axis in axes)


def _axis(cross: Cross, judge: Judge, columns: Columns) -> Axis:
    assert cross.op is not None
    a, b = judge.numbers(cross.left, columns[cross.left], cross.right, columns[cross.right], cross.op)
    numbers, size = number_values(np.concatenate([a, b]))
    return Axis(left=numbers[: len(a)], right=numbers[len(a) :], size=size)
