"""How many rows of each group have each context: a sparse matrix of counts.

It has what drawing asks of it and no more: the import of scipy.sparse takes longer than drawing many a table. Products
are computed by the compiled function behind those of scipy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from kamino.arrays import FloatArray, IntArray, stable_order
from kamino.late_imports import compiled_function


@dataclass(frozen=True, eq=False)
class CountMatrix:
    """The cells that are not 0, line by line: `begin` says where a line's cells start, columns ascend in it.

    Guarantees:
        Products, lines and columns are those of scipy.sparse, to the last bit.  [test_counts_are_those_of_scipy]
    """

    begin: IntArray
    column: IntArray
    count: FloatArray
    width: int

    def __len__(self) -> int:
        return len(self.begin) - 1

    def cells_of_lines(self) -> IntArray:
        """Return how many cells of each line are not 0."""
        return np.diff(self.begin)

    def sums_of_lines(self) -> FloatArray:
        """Return the sum of each line."""
        return np.asarray(np.bincount(self.line, self.count, minlength=len(self)), dtype=np.float64)

    @property
    def line(self) -> IntArray:
        """The line of each cell."""
        return np.repeat(np.arange(len(self)), self.cells_of_lines())

    def take(self, lines: IntArray) -> CountMatrix:
        """Return the matrix of some lines, in their order."""
        cells = self.begin[lines + 1] - self.begin[lines]
        begin = np.concatenate([[0], np.cumsum(cells)])
        place = np.arange(begin[-1]) + np.repeat(self.begin[lines] - begin[:-1], cells)
        return CountMatrix(begin, self.column[place], self.count[place], self.width)

    def between(self, first: int, last: int) -> CountMatrix:
        """Return the matrix of the columns from `first` to below `last`."""
        kept = (self.column >= first) & (self.column < last)
        begin = np.concatenate([[0], np.cumsum(kept)])[self.begin]
        return CountMatrix(begin, self.column[kept] - first, self.count[kept], min(last, self.width) - first)

    def __matmul__(self, dense: FloatArray) -> FloatArray:
        result = np.zeros((len(self), dense.shape[1]))
        _product()(
            len(self),
            self.width,
            dense.shape[1],
            self.begin,
            self.column,
            self.count,
            np.ascontiguousarray(dense, dtype=np.float64).ravel(),
            result.ravel(),
        )
        return result


def count_matrix(groups: IntArray, context: IntArray, num_groups: int, num_contexts: int) -> CountMatrix:
    """Return how many rows of each group have each context.

    >>> matrix = count_matrix(np.array([0, 2, 2, 2]), np.array([1, 0, 1, 1]), 3, 2)
    >>> (matrix @ np.eye(2)).tolist()
    [[0.0, 1.0], [0.0, 0.0], [1.0, 2.0]]
    """
    order = stable_order(groups, context)
    line, column = groups[order], context[order]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = (line[1:] != line[:-1]) | (column[1:] != column[:-1])
    first = np.flatnonzero(new)
    begin = np.concatenate([[0], np.cumsum(np.bincount(line[first], minlength=num_groups))])
    return CountMatrix(begin, column[first], np.diff(first, append=len(order)).astype(np.float64), num_contexts)


@cache
def _product() -> Callable[..., None]:
    """Return the function that adds the product of a sparse matrix with several columns to an array."""
    found = compiled_function("scipy.sparse", "_sparsetools", "csr_matvecs")
    return found if found is not None else _by_scipy


def _by_scipy(
    height: int,
    width: int,
    columns: int,
    begin: IntArray,
    column: IntArray,
    count: FloatArray,
    dense: FloatArray,
    result: FloatArray,
) -> None:
    from scipy.sparse import csr_matrix

    matrix = csr_matrix((count, column, begin), shape=(height, width))
    result += np.asarray(matrix @ dense.reshape(width, columns)).ravel()
