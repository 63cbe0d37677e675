"""Counting by hashing and sorting: no order, or one."""

from __future__ import annotations

import numpy as np

from kamino.arrays import stable_order
from kamino.constraints.counting.problem import Counts, Problem
from kamino.schema.coding.joint_codes import MOST_NUMBERS, flatten_codes


def count_equal(problem: Problem) -> Counts:
    """For each left row, the right rows with the same key."""
    found: Counts = np.bincount(problem.key.right, minlength=problem.key.size)[problem.key.left]
    return found.astype(np.int64, copy=False)


def count_one_order(problem: Problem) -> Counts:
    """For each left row, the right rows with the same key and a greater rank.

    Guarantees:
        Equal to the other kernels.  [test_kernels_agree]
    """
    key, (order,) = problem.key, problem.orders
    if key.size * (order.size + 1) > MOST_NUMBERS:
        key, order = key.dense(), order.dense()
    width = order.size + 1
    right = np.sort(flatten_codes([key.right, order.right], [key.size, width]))
    # Looking up sorted values is several times faster than the same values in the rows' order.
    wanted = flatten_codes([key.left, order.left], [key.size, width])
    arrangement = stable_order(wanted)
    asked = wanted[arrangement]
    above = np.searchsorted(right, asked, side="right")
    ends = np.searchsorted(right, (asked // width) * width + order.size, side="right")
    found = np.empty(problem.num_left, dtype=np.int64)
    found[arrangement] = ends - above
    return found
