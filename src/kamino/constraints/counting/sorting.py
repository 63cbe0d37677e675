"""Counting by hashing and sorting: no order, or one."""

from __future__ import annotations

import numpy as np

from kamino.constraints.counting.problem import Counts, Problem


def count_equal(problem: Problem) -> Counts:
    """For each left row, the right rows with the same key."""
    found: Counts = np.bincount(problem.key.right, minlength=problem.key.size)[problem.key.left]
    return found.astype(np.int64, copy=False)


def count_one_order(problem: Problem) -> Counts:
    """For each left row, the right rows with the same key and a greater rank.

    Guarantees:
        Equal to the other kernels.  [test_kernels_agree]
    """
    (order,) = problem.orders
    width = order.size + 1
    right = np.sort(problem.key.right * width + order.right)
    # Looking up sorted values is several times faster than the same values in the rows' order.
    wanted = problem.key.left * width + order.left
    arrangement = np.argsort(wanted, kind="stable")
    asked = wanted[arrangement]
    above = np.searchsorted(right, asked, side="right")
    ends = np.searchsorted(right, (asked // width) * width + order.size, side="right")
    found = np.empty(problem.num_left, dtype=np.int64)
    found[arrangement] = ends - above
    return found
