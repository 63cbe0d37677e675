"""The numbers a counting kernel works on: for each side, group keys and one rank per comparison."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kamino.constraints.tree import Operator
from kamino.schema.coding.joint_codes import MOST_NUMBERS, flatten_codes, number_combinations, number_values

Codes = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One comparison: ranks of the left rows and of the right rows on one scale of `size` values."""

    left: Codes
    right: Codes
    size: int

    def reversed(self) -> Axis:
        """The same ranks counted from the other end."""
        return Axis(left=self.size - 1 - self.left, right=self.size - 1 - self.right, size=self.size)

    def take(self, left: npt.NDArray[np.bool_], right: npt.NDArray[np.bool_]) -> Axis:
        """The axis of some of the rows."""
        return Axis(left=self.left[left], right=self.right[right], size=self.size)

    def dense(self) -> Axis:
        """The same comparisons with unused values dropped."""
        same = self.left is self.right
        numbers, size = number_values(self.left if same else np.concatenate([self.left, self.right]))
        left = numbers[: len(self.left)]
        return Axis(left=left, right=left if same else numbers[len(self.left) :], size=size)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """For each left row, count the right rows with the same key, a rank unequal on each `unequal` axis and a
    greater rank on each `orders` axis.

    Orders are strict: "less or equal" is made strict by putting right ranks one step up (`strict_order`).
    """

    key: Axis
    unequal: tuple[Axis, ...] = ()
    orders: tuple[Axis, ...] = ()

    @property
    def num_left(self) -> int:
        """How many left rows there are."""
        return len(self.key.left)

    @property
    def num_right(self) -> int:
        """How many right rows there are."""
        return len(self.key.right)

    @property
    def cells(self) -> int:
        """The size of the table of all key and rank combinations."""
        product = self.key.size
        for axis in (*self.unequal, *self.orders):
            product *= axis.size
        return product

    def without_unequal(self) -> Problem:
        """The problem with its first `unequal` axis left out."""
        return replace(self, unequal=self.unequal[1:])

    def with_equal(self) -> Problem:
        """The problem with its first `unequal` axis asked to be equal instead."""
        return replace(self, key=combine_keys([self.key, self.unequal[0]]), unequal=self.unequal[1:])


def order_axis(axis: Axis, op: Operator) -> Axis:
    """The axis turned so that the comparison asks for a strictly greater rank on the right."""
    up = op in (Operator.LT, Operator.LE)
    return strict_order(axis if up else axis.reversed(), or_equal=op in (Operator.LE, Operator.GE))


def strict_order(axis: Axis, *, or_equal: bool) -> Axis:
    """An axis on which "right greater than left" means right greater (or equal) in the ranks given."""
    return Axis(left=axis.left, right=axis.right + 1, size=axis.size + 1) if or_equal else axis


def combine_keys(axes: Sequence[Axis]) -> Axis:
    """One axis that is equal exactly where all `axes` are, with a scale no larger than needed."""
    combined = axes[0]
    for axis in axes[1:]:
        combined = _compressed(joined_axis(combined, axis))
    return combined


def joined_axis(first: Axis, second: Axis) -> Axis:
    """One axis on which pairs of ranks compare as they do on both, the first one before the second."""
    sizes = [first.size, second.size]
    if first.left is first.right and second.left is second.right:
        both, size = number_combinations([first.left, second.left], sizes)
        return Axis(left=both, right=both, size=size)
    if math.prod(sizes) <= MOST_NUMBERS:
        left, right = (flatten_codes(side, sizes) for side in ([first.left, second.left], [first.right, second.right]))
        return Axis(left=left, right=right, size=math.prod(sizes))
    together = [np.concatenate([axis.left, axis.right]) for axis in (first, second)]
    both, size = number_combinations(together, sizes)
    return Axis(left=both[: len(first.left)], right=both[len(first.left) :], size=size)


def _compressed(axis: Axis) -> Axis:
    """The axis with unused values dropped, once there are many more of them than rows."""
    rows = len(axis.left) + len(axis.right)
    return axis if axis.size <= 4 * rows + 1024 else axis.dense()
