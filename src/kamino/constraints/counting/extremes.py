"""The greatest partner instead of the number of partners: whether there is any, and how far it goes.

A conjunction with k orders has a partner for a row exactly if, among the rows that satisfy the other k - 1 orders, the
greatest rank on the last one is greater than the row's own. That takes one order less than counting, and most tables
that are counted keep their constraints.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kamino.arrays import stable_order
from kamino.constraints.counting.brute import matching_pairs
from kamino.constraints.counting.dominance import arranged, partition
from kamino.constraints.counting.problem import Axis, Codes, Problem, joined_axis
from kamino.schema.coding.joint_codes import number_values

NOBODY = -1
# So many pairs are tried faster than rows are sorted.
_FEW_PAIRS = 1 << 17


def greatest_matches(problem: Problem, values: Codes) -> Codes:
    """For each left row, the greatest of the right rows' `values`, which are not negative, among its matches.

    It is -1 (`NOBODY`) where no right row matches.

    Guarantees:
        Equal to trying every pair.  [test_greatest_matches_agree_with_brute_force]
    """
    found = np.full(problem.num_left, NOBODY, dtype=np.int64)
    if problem.num_left == 0 or problem.num_right == 0:
        return found
    if problem.num_left * problem.num_right <= _FEW_PAIRS:
        return np.asarray(np.where(matching_pairs(problem), values[None, :], NOBODY).max(axis=1))
    ranks, size = number_values(values)
    compact = replace(problem, key=_short(problem.key), orders=tuple(_short(axis) for axis in problem.orders))
    best = _greatest(compact, ranks, size)
    by_rank = np.empty(size, dtype=np.int64)
    by_rank[ranks] = values
    there = best >= 0
    found[there] = by_rank[best[there]]
    return found


def has_matches(problem: Problem) -> bool:
    """Whether any left row has a match; there must be an order."""
    *others, last = problem.orders
    return bool(np.any(greatest_matches(replace(problem, orders=tuple(others)), last.right) > last.left))


def _short(axis: Axis) -> Axis:
    """The axis with unused values dropped where they are many: each bit of the scale is a pass over the rows."""
    return axis.dense() if axis.size > 2 * (len(axis.left) + len(axis.right)) else axis


def _greatest(problem: Problem, values: Codes, size: int) -> Codes:
    if problem.unequal:
        axis, *rest = problem.unequal
        below, above = (
            replace(problem, unequal=tuple(rest), orders=(*problem.orders, each)) for each in (axis, axis.reversed())
        )
        return np.maximum(_greatest(below, values, size), _greatest(above, values, size))
    match len(problem.orders):
        case 0:
            best = np.full(problem.key.size, NOBODY, dtype=np.int64)
            np.maximum.at(best, problem.key.right, values)
            return best[problem.key.left]
        case 1:
            return _with_one_order(problem, values, size)
        case 2:
            return _with_two_orders(problem, values, size)
        case _:
            return _with_more_orders(problem, values, size)


def _with_one_order(problem: Problem, values: Codes, size: int) -> Codes:
    """Right rows by key and falling rank: a running maximum within each key."""
    key, (order,) = problem.key.dense(), problem.orders
    width = order.size
    place = joined_axis(key, Axis(left=width - 1 - order.left, right=width - 1 - order.right, size=width))
    arrangement = stable_order(place.right)
    sorted_key, sorted_place = key.right[arrangement], place.right[arrangement]
    running = sorted_key * size
    running += values[arrangement]
    np.maximum.accumulate(running, out=running)
    # Looking up sorted values is several times faster than the same values in the rows' order.
    asking = arrangement if place.left is place.right else stable_order(place.left)
    at = np.searchsorted(sorted_place, place.left[asking], side="left") - 1
    del sorted_place, place  # of large tables, half of what is at hand here
    own = key.left[asking]
    found = np.flatnonzero((at >= 0) & (sorted_key[at] == own))
    best = np.full(problem.num_left, NOBODY, dtype=np.int64)
    best[asking[found]] = running[at[found]] - own[found] * size
    return best


def _with_two_orders(problem: Problem, values: Codes, size: int) -> Codes:
    """As counting by halving, with running maxima in place of running sums."""
    first, second = problem.orders
    if first.size < second.size:
        first, second = second, first
    is_right, owner, rank, start = arranged(problem, first, second)
    value = np.zeros(len(owner), dtype=np.int64)
    value[is_right] = values[owner[is_right]] + 1
    found = np.full(problem.num_left, NOBODY, dtype=np.int64)
    for bit in reversed(range(max(second.size - 1, 1).bit_length())):
        high = (rank >> bit) & 1 == 1
        # Blocks begin at rising places, so that no maximum reaches from one into the next.
        base = start * (size + 1)
        running = np.maximum.accumulate(base + np.where(high, value, 0))
        asking = np.flatnonzero(~(is_right | high))
        asked = owner[asking]
        found[asked] = np.maximum(found[asked], running[asking] - base[asking] - 1)
        if bit:
            order, start = partition(high, start)
            is_right, owner, rank, value = is_right[order], owner[order], rank[order], value[order]
    return found


def _with_more_orders(problem: Problem, values: Codes, size: int) -> Codes:
    """Peel off the last order, as counting does."""
    *others, last = problem.orders
    found = np.full(problem.num_left, NOBODY, dtype=np.int64)
    for bit in range(max(last.size - 1, 1).bit_length()):
        left = (last.left >> bit) & 1 == 0
        right = (last.right >> bit) & 1 == 1
        if not left.any() or not right.any():
            continue
        block = Axis(left=last.left >> (bit + 1), right=last.right >> (bit + 1), size=(last.size >> (bit + 1)) + 1)
        key = joined_axis(problem.key.take(left, right), block.take(left, right)).dense()
        part = Problem(key=key, orders=tuple(axis.take(left, right) for axis in others))
        found[left] = np.maximum(found[left], _greatest(part, values[right], size))
    return found
