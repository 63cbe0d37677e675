"""Counting by running sums over the table of all rank combinations, where that table is small."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kamino.constraints.counting.problem import Codes, Counts, Problem
from kamino.schema.coding.joint_codes import flatten_codes

_Grid: TypeAlias = npt.NDArray[np.signedinteger[Any]]


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
    grid: _Grid = cells.astype(_smallest(problem.num_right), copy=False).reshape(shape)
    for position in range(1, 1 + len(problem.unequal)):
        grid = grid.sum(axis=position, keepdims=True, dtype=grid.dtype) - grid
    for position in range(1 + len(problem.unequal), len(shape)):
        grid = _sum_above(grid, position)
    found = grid.ravel()[_flat([axis.left for axis in axes], shape)]
    return found.astype(np.int64, copy=False)


def _smallest(most: int) -> type[np.signedinteger[Any]]:
    """The type that holds all sums: half the bytes are half the time."""
    return np.int32 if most <= np.iinfo(np.int32).max else np.int64


def _sum_above(grid: _Grid, position: int) -> _Grid:
    """For each cell, the sum over the cells of a greater rank along one axis."""
    above = np.zeros_like(grid)
    falling, sums = (np.moveaxis(np.flip(a, position), position, 0) for a in (grid, above))
    np.cumsum(falling[:-1], axis=0, dtype=grid.dtype, out=sums[1:])
    return above


def _flat(ranks: list[Codes], shape: tuple[int, ...]) -> Codes:
    return flatten_codes(ranks, shape)
