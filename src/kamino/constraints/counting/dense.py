"""Counting by running sums over the table of all rank combinations, where that table is small."""

from __future__ import annotations

import numpy as np

from kamino.constraints.counting.problem import Codes, Counts, Problem


def count_dense(problem: Problem) -> Counts:
    """For each left row, how many right rows match; time and memory grow with `problem.cells`.

    Guarantees:
        Equal to the other kernels.  [test_kernels_agree]
    """
    axes = (problem.key, *problem.unequal, *problem.orders)
    shape = tuple(axis.size for axis in axes)
    if problem.num_left == 0 or problem.num_right == 0:
        return np.zeros(problem.num_left, dtype=np.int64)
    cells = np.bincount(_flat([axis.right for axis in axes], shape), minlength=problem.cells)
    grid: Counts = cells.astype(np.int64, copy=False).reshape(shape)
    for position in range(1, 1 + len(problem.unequal)):
        grid = grid.sum(axis=position, keepdims=True) - grid
    for position in range(1 + len(problem.unequal), len(shape)):
        grid = _sum_above(grid, position)
    found: Counts = grid.ravel()[_flat([axis.left for axis in axes], shape)]
    return found


def _sum_above(grid: Counts, position: int) -> Counts:
    """For each cell, the sum over the cells of a greater rank along one axis."""
    total: Counts = np.flip(np.cumsum(np.flip(grid, position), axis=position), position) - grid
    return total


def _flat(ranks: list[Codes], shape: tuple[int, ...]) -> Codes:
    index = ranks[0]
    for rank, size in zip(ranks[1:], shape[1:], strict=True):
        index = index * size + rank
    return index
