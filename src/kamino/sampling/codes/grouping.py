"""Rows in groups: equal keys, groups joined by several keys, and draws inside groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.sampling.codes.comparing import Mask
from kamino.schema.coding.joint_codes import number_combinations, number_values


def join_keys(columns: Sequence[IntArray]) -> IntArray:
    """Number the distinct combinations of the columns from 0, in their order.

    >>> join_keys([np.array([5, 5, 7]), np.array([1, 1, 1])]).tolist()
    [0, 0, 1]
    """
    keys, _ = number_combinations(columns)
    return keys if len(columns) == 1 else number_values(keys)[0]


def join_groups(num_rows: int, keys: Sequence[tuple[IntArray, Mask]]) -> IntArray:
    """Return group numbers such that two rows share one if some chain of equal keys links them.

    Each key comes with the rows it speaks of; a row without any key is a group of its own.

    Guarantees:
        Equal to closing the relation by hand.  [test_join_groups_is_the_closure]
    """
    if len(keys) == 1:
        key, present = keys[0]
        own = np.arange(num_rows, dtype=np.int64) + int(key.max(initial=0)) + 1
        return number_values(np.where(present, key, own))[0]
    links = [(key[present], np.flatnonzero(present)) for key, present in keys]
    # Each row points to the lowest row that it is known to be linked to; whoever points to itself is a root.
    root = np.arange(num_rows, dtype=np.int64)
    while True:
        joined = root.copy()
        for key, rows in links:
            lowest = np.full(int(key.max(initial=-1)) + 1, num_rows, dtype=np.int64)
            np.minimum.at(lowest, key, root[rows])
            np.minimum.at(joined, root[rows], lowest[key])
        while not np.array_equal(joined, higher := joined[joined]):
            joined = higher
        if np.array_equal(joined, root):
            return number_values(root)[0]
        root = joined


def first_success(groups: IntArray, chance: FloatArray, rng: np.random.Generator) -> Mask:
    """Mark one row in each group: the first success of independent trials, given that there is one.

    Rows of a group are tried in the order in which they stand. Where all chances are 0, the last row is marked.

    Guarantees:
        The marked row has the law of the first success.  [test_first_success_has_its_law]
    """
    if len(groups) == 0:
        return np.zeros(0, dtype=np.bool_)
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    begin = np.flatnonzero(np.concatenate([[True], sorted_groups[1:] != sorted_groups[:-1]]))
    lengths = np.diff(np.append(begin, len(groups)))
    with np.errstate(divide="ignore"):
        log_fail = np.maximum(np.log1p(-np.clip(chance[order], 0.0, 1.0)), -50.0)
    total = np.cumsum(log_fail)
    before = np.concatenate([[0.0], total])[begin]
    failed = -np.expm1(total - np.repeat(before, lengths))
    some = failed[begin + lengths - 1]
    target = rng.random(len(begin)) * some
    hit = failed > np.repeat(target, lengths)
    hit[begin + lengths - 1] = True
    place = np.where(hit, np.arange(len(groups)), len(groups))
    first = np.minimum.reduceat(place, begin)
    marked = np.zeros(len(groups), dtype=np.bool_)
    marked[order[first]] = True
    return marked


def match_at_random(known: IntArray, wanted: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the place of a random equal key for each key that is wanted; -1 where there is none."""
    shuffled = rng.permutation(len(known))
    order = shuffled[np.argsort(known[shuffled], kind="stable")]
    low = np.searchsorted(known, wanted, side="left", sorter=order)
    high = np.searchsorted(known, wanted, side="right", sorter=order)
    place = low + np.floor(rng.random(len(wanted)) * (high - low)).astype(np.int64)
    if len(known) == 0:
        return np.full(len(wanted), -1, dtype=np.int64)
    return np.where(high > low, order[np.minimum(place, len(known) - 1)], -1)
