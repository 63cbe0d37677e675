"""Counting pairs in two or more orders by halving the scale of ranks, bit by bit.

Two ranks differ first at some bit, counted from the top: the lower one has a 0 there, the higher a 1. Rows that agree
in all bits above form a block. With rows sorted by the other order inside each block, one running sum per bit counts
the right rows with a 1 that stand before each left row with a 0. For n rows that is n log n operations for two orders,
and one more log n for each further order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from kamino.constraints.counting.problem import Axis, Codes, Counts, Problem, joined_axis
from kamino.constraints.counting.sorting import count_equal, count_one_order
from kamino.schema.coding.joint_codes import number_combinations


def count_orders(problem: Problem) -> Counts:
    """For each left row, the right rows with the same key and a greater rank on every order axis.

    Guarantees:
        Equal to the other kernels.  [test_kernels_agree]
    """
    if problem.num_left == 0 or problem.num_right == 0:
        return np.zeros(problem.num_left, dtype=np.int64)
    match len(problem.orders):
        case 0:
            return count_equal(problem)
        case 1:
            return count_one_order(problem)
        case 2:
            return _count_two_orders(problem)
        case _:
            return _count_more_orders(problem)


def _count_more_orders(problem: Problem) -> Counts:
    """Peel off the last order: at each bit, left rows with a 0 meet right rows with a 1 in the same block."""
    *others, last = problem.orders
    found = np.zeros(problem.num_left, dtype=np.int64)
    for bit in range(max(last.size - 1, 1).bit_length()):
        left = (last.left >> bit) & 1 == 0
        right = (last.right >> bit) & 1 == 1
        if not left.any() or not right.any():
            continue
        block = Axis(left=last.left >> (bit + 1), right=last.right >> (bit + 1), size=(last.size >> (bit + 1)) + 1)
        key = joined_axis(problem.key.take(left, right), block.take(left, right))
        part = Problem(key=key, orders=tuple(axis.take(left, right) for axis in others))
        found[left] += count_orders(_relevant(part))
    return found


def _relevant(problem: Problem) -> Problem:
    """The same problem with keys renumbered, so that later composites stay small."""
    return replace(problem, key=problem.key.dense())


def _count_two_orders(problem: Problem) -> Counts:
    first, second = problem.orders
    if first.size < second.size:
        first, second = second, first  # fewer bits to walk on the smaller scale
    is_right, owner, rank, start = arranged(problem, first, second)
    found = np.zeros(problem.num_left, dtype=np.int64)
    for bit in reversed(range(max(second.size - 1, 1).bit_length())):
        high = (rank >> bit) & 1 == 1
        seen = _before(is_right & high)
        asking = ~is_right & ~high
        found[owner[asking]] += seen[:-1][asking] - seen[start[asking]]
        if bit:
            order, start = partition(high, start)
            is_right, owner, rank = is_right[order], owner[order], rank[order]
    return found


def arranged(problem: Problem, first: Axis, second: Axis) -> tuple[npt.NDArray[np.bool_], Codes, Codes, Codes]:
    """Both sides in one list, by key and falling first rank; with where each row's key begins."""
    num_left, num_right = problem.num_left, problem.num_right
    key = np.concatenate([problem.key.left, problem.key.right])
    falling = first.size - 1 - np.concatenate([first.left, first.right])
    order = np.argsort(number_combinations([key, falling], [problem.key.size, first.size])[0], kind="stable")
    key = key[order]
    changes = np.flatnonzero(np.diff(key)) + 1
    lengths = np.diff(np.concatenate([[0], changes, [len(key)]]))
    start = np.repeat(np.concatenate([[0], changes]), lengths)
    owner = np.concatenate([np.arange(num_left), np.arange(num_right)])[order]
    rank = np.concatenate([second.left, second.right])[order]
    return order >= num_left, owner, rank, start


def _before(flags: npt.NDArray[np.bool_]) -> Counts:
    """Running counts: entry i is how many flags are set before position i."""
    counts = np.zeros(len(flags) + 1, dtype=np.int64)
    np.cumsum(flags, out=counts[1:])
    return counts


def partition(high: npt.NDArray[np.bool_], start: Codes) -> tuple[Codes, Codes]:
    """Each block split in two, low rows first, keeping the order inside; with the new blocks' beginnings."""
    zeros = _before(~high)
    position = np.arange(len(high))
    begins = start == position
    sizes = np.diff(np.append(np.flatnonzero(begins), len(high)))
    end = start + np.repeat(sizes, sizes)
    low_before = zeros[:-1] - zeros[start]
    low_total = zeros[end] - zeros[start]
    target = np.where(high, start + low_total + (position - start - low_before), start + low_before)
    order = np.empty(len(high), dtype=np.int64)
    order[target] = position
    return order, np.where(high, start + low_total, start)[order]
