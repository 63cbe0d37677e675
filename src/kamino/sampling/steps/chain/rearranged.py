"""An order kept by moving drawn values between rows: each group's values stay what they were, and only change places.

Given that a column is monotone, rows that were independent are no longer: in a long chain the exact conditional is
ruled by how many monotone columns there are, not by the model, and drifts away from the model's marginals. Drawing
freely and then putting the values of each group in order keeps those marginals to the row.
"""

from __future__ import annotations

import numpy as np

from kamino.arrays import IntArray, stable_order
from kamino.sampling.codes.comparing import Mask


def rearrange(rank: IntArray, group: IntArray, height: IntArray) -> IntArray:
    """Return, for each row, the row whose value it takes, so that ranks never fall with height within a group.

    Rows of one height are free among themselves: a row keeps its own value wherever its height may hold that value.

    Guarantees:
        Values only change places within their group, and the order holds.  [test_rearranged_values_are_in_order]
        Values that are in order already stay.  [test_rearranging_keeps_what_is_in_order]
    """
    by_height, by_rank = stable_order(group, height, rank), stable_order(group, rank)
    block = _block_numbers(group[by_height], height[by_height])
    kept, taken = _in_both(block, rank[by_height], rank[by_rank])
    source = np.empty(len(rank), dtype=np.int64)
    source[by_height[kept]] = by_height[kept]
    # Both lists run through the blocks in turn, with as many places as values in each.
    source[by_height[~kept]] = by_rank[~taken]
    return source


def _block_numbers(group: IntArray, height: IntArray) -> IntArray:
    changes = (np.diff(group) != 0) | (np.diff(height) != 0)
    return np.concatenate([[0], np.cumsum(changes)]).astype(np.int64)


def _in_both(block: IntArray, own: IntArray, wanted: IntArray) -> tuple[Mask, Mask]:
    """Tell which ranks each block has and also wants, as often as both; each list is sorted by block and rank."""
    runs_own, runs_wanted = _runs(block, own), _runs(block, wanted)
    # For each run of equal ranks in one list, how many the other has of it.
    shared_own, shared_wanted = _shared(block, own, wanted, runs_own, runs_wanted)
    return _first_of_runs(runs_own, shared_own), _first_of_runs(runs_wanted, shared_wanted)


def _runs(block: IntArray, rank: IntArray) -> IntArray:
    """Where runs of equal block and rank begin, and the end."""
    change = (np.diff(block) != 0) | (np.diff(rank) != 0)
    return np.concatenate([[0], np.flatnonzero(change) + 1, [len(rank)]])


def _shared(
    block: IntArray, own: IntArray, wanted: IntArray, runs_own: IntArray, runs_wanted: IntArray
) -> tuple[IntArray, IntArray]:
    """For the runs of each list, the smaller of both lists' lengths of the same run; 0 where one has none."""
    begin = np.concatenate([runs_own[:-1], runs_wanted[:-1]])
    rank = np.concatenate([own[runs_own[:-1]], wanted[runs_wanted[:-1]]])
    length = np.concatenate([np.diff(runs_own), np.diff(runs_wanted)])
    order = stable_order(block[begin], rank)
    same = (np.diff(block[begin][order]) == 0) & (np.diff(rank[order]) == 0)
    shared = np.zeros(len(order), dtype=np.int64)
    first, second = order[:-1][same], order[1:][same]
    shared[first] = shared[second] = np.minimum(length[first], length[second])
    return shared[: len(runs_own) - 1], shared[len(runs_own) - 1 :]


def _first_of_runs(runs: IntArray, number: IntArray) -> Mask:
    """Mark the first so many places of each run."""
    length = np.diff(runs)
    place = np.arange(runs[-1]) - np.repeat(runs[:-1], length)
    return np.asarray(place < np.repeat(number, length))
