"""An order kept by moving drawn values between rows: each group's values stay what they were, and only change places.

Given that a column is monotone, rows that were independent are no longer: in a long chain the exact conditional is
ruled by how many monotone columns there are, not by the model, and drifts away from the model's marginals. Drawing
freely and then putting the values of each group in order keeps those marginals to the row.
"""

from __future__ import annotations

import numpy as np

from kamino.arrays import IntArray
from kamino.schema.coding.joint_codes import number_combinations


def rearrange(rank: IntArray, group: IntArray, height: IntArray) -> IntArray:
    """Return, for each row, the row whose value it takes, so that ranks never fall with height within a group.

    Rows of one height are free among themselves: a row keeps its own value wherever its height may hold that value.

    Guarantees:
        Values only change places within their group, and the order holds.  [test_rearranged_values_are_in_order]
        Values that are in order already stay.  [test_rearranging_keeps_what_is_in_order]
    """
    by_height = np.lexsort((rank, height, group))
    by_rank = np.lexsort((rank, group))
    block = _block_numbers(group[by_height], height[by_height])
    own, wanted = _numbered(block, rank[by_height], rank[by_rank])
    _, kept, taken = np.intersect1d(own, wanted, assume_unique=True, return_indices=True)
    source = np.empty(len(rank), dtype=np.int64)
    source[by_height[kept]] = by_height[kept]
    moved = np.setdiff1d(np.arange(len(rank)), kept, assume_unique=True)
    left = np.setdiff1d(np.arange(len(rank)), taken, assume_unique=True)
    # Both lists run through the blocks in turn, with as many places as values in each.
    source[by_height[moved]] = by_rank[left]
    return source


def _block_numbers(group: IntArray, height: IntArray) -> IntArray:
    changes = (np.diff(group) != 0) | (np.diff(height) != 0)
    return np.concatenate([[0], np.cumsum(changes)]).astype(np.int64)


def _numbered(block: IntArray, own: IntArray, wanted: IntArray) -> tuple[IntArray, IntArray]:
    """Number (block, rank, how many of these came before) in both lists, each sorted by block and rank."""
    pairs, _ = number_combinations([np.concatenate([block, block]), np.concatenate([own, wanted])])
    size = len(block)
    numbers, _ = number_combinations([pairs, np.concatenate([_repeats(pairs[:size]), _repeats(pairs[size:])])])
    return numbers[:size], numbers[size:]


def _repeats(pair: IntArray) -> IntArray:
    """How many equal entries stand before each one, in a sorted list."""
    place = np.arange(len(pair))
    begins = np.concatenate([[True], np.diff(pair) != 0])
    repeats: IntArray = place - np.maximum.accumulate(np.where(begins, place, 0))
    return repeats
