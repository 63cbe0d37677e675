"""Counting by trying all pairs in blocks: the last resort where many orders make sorting dearer than that."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kamino.constraints.counting.problem import Counts, Problem

_BLOCK_CELLS = 1 << 24


def count_pairs(problem: Problem) -> Counts:
    """For each left row, how many right rows match, by comparing it with each.

    Guarantees:
        Equal to the other kernels.  [test_kernels_agree]
    """
    found = np.zeros(problem.num_left, dtype=np.int64)
    step = max(1, _BLOCK_CELLS // max(1, problem.num_right))
    for low in range(0, problem.num_left, step):
        rows = slice(low, low + step)
        found[rows] = matching_pairs(problem, rows).sum(axis=1)
    return found


def matching_pairs(problem: Problem, rows: slice = slice(None)) -> npt.NDArray[np.bool_]:
    """Tell which left rows, downwards, match which right rows."""
    match = problem.key.left[rows, None] == problem.key.right[None, :]
    for axis in problem.unequal:
        match &= axis.left[rows, None] != axis.right[None, :]
    for axis in problem.orders:
        match &= axis.left[rows, None] < axis.right[None, :]
    return np.asarray(match)
