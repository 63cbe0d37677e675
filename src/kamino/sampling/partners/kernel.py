"""Counting by the kernels that count violations: hashing, sorting and halving. For any constraint on pairs."""

from __future__ import annotations

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint
from kamino.constraints.counting.conjunction import Conjunction, Cross, conjunction_of
from kamino.constraints.counting.method import count
from kamino.constraints.counting.problem import Axis, Problem, combine_keys, order_axis
from kamino.constraints.tree import Operator
from kamino.sampling.codes.comparing import Columns, Judge, Mask
from kamino.sampling.partners.block import DEAD, Block
from kamino.sampling.partners.inside import Inside
from kamino.schema.coding.joint_codes import number_values


def clashes_between(constraint: DenialConstraint, judge: Judge, left: Columns, right: Columns) -> IntArray:
    """Return, for each row on the left, with how many rows on the right it violates the constraint in either direction.

    Guarantees:
        Counts are those of trying every pair.  [test_clashes_between_tables_agree_with_brute_force]
    """
    one_way = conjunction_of(constraint)
    if one_way.is_symmetric:
        return _matches(one_way, judge, left, right)
    found = _matches(one_way, judge, left, right) + _matches(one_way.transposed, judge, left, right)
    return found - _matches(one_way.both_ways(), judge, left, right)


def count_block(constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns, block: Block) -> IntArray:
    """Return the partners of each candidate among all other rows of the column as it stands."""
    found = _against(constraint, judge, attribute, columns, block, block.column())
    rows = {name: codes[block.rows][:, None] for name, codes in columns.items()}
    itself = rows | {attribute: np.maximum(block.inside, 0)[:, None]}
    clash = judge.clashes(constraint, rows | {attribute: np.maximum(block.candidates, 0)}, itself)
    return np.asarray(found - (clash & (block.inside >= 0)[:, None]))


def _against(
    constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns, block: Block, settled: IntArray
) -> IntArray:
    """Return the partners of each candidate among the settled rows, its own included."""
    width = block.candidates.shape[1]
    left = {name: np.repeat(codes[block.rows], width) for name, codes in columns.items()}
    left[attribute] = np.maximum(block.candidates, 0).ravel()
    there = np.flatnonzero(settled >= 0)
    right = {name: codes[there] for name, codes in columns.items()} | {attribute: settled[there]}
    return clashes_between(constraint, judge, left, right).reshape(block.candidates.shape)


class Kernel:
    """Rows outside the block are counted for the whole block at once, those inside it one row at a time."""

    def __init__(self, constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns) -> None:
        self._constraint, self._judge, self._attribute = constraint, judge, attribute
        self._columns = {name: columns[name] for name in constraint.attributes if name != attribute}
        self._inside = Inside(constraint, judge, attribute, columns)

    def of_block(self, block: Block) -> FloatArray:
        """Count for all rows at once."""
        found = count_block(self._constraint, self._judge, self._attribute, self._columns, block)
        return found.astype(np.float64)

    def load(self, column: IntArray) -> None:
        """Start from this column. Blocks bring the column with them."""

    def begin(self, block: Block) -> None:
        """Announce the next block."""
        self._outside = _against(self._constraint, self._judge, self._attribute, self._columns, block, block.outside)
        self._inside.begin(block)

    def count(self, place: int) -> IntArray | FloatArray:
        """Count for one row."""
        return np.asarray(self._outside[place] + self._inside.count(place))

    def change(self, place: int, code: int, count: int) -> None:
        """Settle a row, or take it back."""
        self._inside.change(place, code if count > 0 else DEAD)


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
