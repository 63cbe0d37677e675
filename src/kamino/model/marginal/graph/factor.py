"""Tables over attributes with one fixed order of axes, so that no operation ever needs a transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


def sum_groups(group: IntArray, values: FloatArray, groups: int) -> FloatArray:
    """Sum values by the group that each belongs to."""
    result: FloatArray = np.bincount(group, weights=values, minlength=groups).astype(np.float64)
    return result


def drop_axes(clique: Sequence[int], keep: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of `clique` that summing down to `keep` removes."""
    kept = set(keep)
    return tuple(i for i, a in enumerate(clique) if a not in kept)


def spread_shape(clique: Sequence[int], part: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that lets a table over `part` broadcast against a table over `clique`."""
    kept = set(part)
    return tuple(sizes[a] if a in kept else 1 for a in clique)


def project(table: FloatArray, clique: Sequence[int], keep: Sequence[int]) -> FloatArray:
    """Sum a table over `clique` down to `keep` (both sorted)."""
    axes = drop_axes(clique, keep)
    result: FloatArray = table.sum(axis=axes) if axes else table
    return result


def divide(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Divide, with 0/0 = 0: a configuration that cannot occur has no mass to hand on."""
    shape = np.broadcast_shapes(top.shape, bottom.shape)
    return np.divide(top, bottom, out=np.zeros(shape), where=np.broadcast_to(bottom, shape) > 0)


class SharedSums:
    """Many marginals of one clique's table, summed from it and added to it with partial sums shared.

    A marginal whose first axis is f is summed from the table without the axes before f, which shrinks with f.

    Guarantees:
        Equals summing each marginal by itself, and adding each by itself.  [test_shared_sums_match_single_ones]
    """

    def __init__(self, clique: Sequence[int], sizes: Sequence[int]) -> None:
        self._clique = tuple(clique)
        self._sizes = sizes
        #: By first axis: number of the marginal, axes to sum over, shape that broadcasts.
        self._parts: list[list[tuple[int, tuple[int, ...], tuple[int, ...]]]] = [[] for _ in clique]

    def add(self, number: int, part: Sequence[int]) -> None:
        """Add a marginal over `part`, to be known by `number`."""
        first = self._clique.index(part[0])
        later = self._clique[first:]
        self._parts[first].append((number, drop_axes(later, part), spread_shape(later, part, self._sizes)))

    def project(self, table: FloatArray) -> dict[int, FloatArray]:
        """Return all marginals of `table`."""
        found: dict[int, FloatArray] = {}
        last = max((first for first, parts in enumerate(self._parts) if parts), default=-1)
        for parts in self._parts[: last + 1]:
            for number, axes, _ in parts:
                found[number] = np.add.reduce(table, axis=axes) if axes else table
            table = np.add.reduce(table, axis=0)
        return found

    def spread(self, tables: Sequence[FloatArray]) -> FloatArray:
        """Return the sum of `tables` (by number, flattened), each spread over the clique's table."""
        total: FloatArray = np.zeros((), dtype=tables[0].dtype if tables else np.float64)
        for first in range(len(self._clique) - 1, -1, -1):
            for number, _, shape in self._parts[first]:
                total = total + tables[number].reshape(shape)
            # Later axes stay as they are; an axis that no marginal has touched is spread by the one who adds.
            total = total.reshape((1,) * (len(self._clique) - first - total.ndim) + total.shape)
        return total
