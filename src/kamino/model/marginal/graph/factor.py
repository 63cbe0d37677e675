"""Tables over variables with one fixed order of axes, so that no operation ever needs a transpose.

A variable may be the *groups* of another one's values (see `Groups`): its number is the next one, so it takes the place
of the other among the axes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Groups: TypeAlias = Mapping[int, IntArray]
"""Of each variable that is the groups of the one before it: the group of each of that one's values, in order."""
#: Last axes with fewer cells than this are written out before a table is combined with a larger one.
_WIDE = 64
#: Sums that need no more products than this for each line are one product of matrices.
_FEW = 400
#: So many groups of values are summed by a product of matrices.
_FEW_GROUPS = 32


def sum_groups(group: IntArray, values: FloatArray, groups: int) -> FloatArray:
    """Sum values by the group that each belongs to."""
    result: FloatArray = np.bincount(group, weights=values, minlength=groups).astype(np.float64)
    return result


def without_groups(variables: Iterable[int], groups: Groups) -> tuple[int, ...]:
    """Return variables, sorted, without those that are groups of another one of them."""
    held = set(variables)
    return tuple(sorted(v for v in held if v not in groups or v - 1 not in held))


def with_groups(variables: Iterable[int], groups: Groups) -> set[int]:
    """Return variables and the groups of their values."""
    held = set(variables)
    return held | {v + 1 for v in held if v + 1 in groups}


class Projection:
    """Sums a table over a clique down to some of its variables, or to groups of their values; and spreads it again.

    Guarantees:
        Summing and spreading are each other's transpose.  [test_projection_and_its_transpose]
    """

    def __init__(self, clique: Sequence[int], part: Sequence[int], sizes: Sequence[int], groups: Groups) -> None:
        kept = set(part)
        coarse = [v not in kept and v + 1 in groups and v + 1 in kept for v in clique]
        held = [v in kept or is_coarse for v, is_coarse in zip(clique, coarse, strict=True)]
        self.axes = tuple(i for i, stays in enumerate(held) if not stays)
        #: The shape that lets the sums broadcast against the clique, once groups are spread over their values.
        self.shape = tuple(
            (sizes[v + 1] if is_coarse else sizes[v]) if stays else 1
            for v, stays, is_coarse in zip(clique, held, coarse, strict=True)
        )
        self._grouped = [(i, groups[v + 1]) for i, v in enumerate(clique) if coarse[i]]
        place = np.cumsum(held) - 1
        self._runs = [(int(place[i]), first_of_runs(group)) for i, group in self._grouped]
        self._group_sums = [_GroupSum(int(place[i]), group) for i, group in self._grouped]
        own = [sizes[v] for v in clique]
        self._sums = _sums_of(own, held)
        self._held = tuple(size for size, stays in zip(own, held, strict=True) if stays)
        self._written = _written_shape(own, held)

    def sum(self, table: FloatArray) -> FloatArray:
        """Return the sums of finite numbers, one axis for each variable of the part."""
        found: FloatArray = table
        for before, summed, after in self._sums:
            found = _sum_middle(found, before, summed, after)
        found = found.reshape(self._held)
        for group_sum in self._group_sums:
            found = group_sum(found)
        return found

    def max(self, table: FloatArray) -> FloatArray:
        """Return the largest numbers, one axis for each variable of the part."""
        found: FloatArray = np.maximum.reduce(table, axis=self.axes) if self.axes else table
        for axis, starts in self._runs:
            found = np.maximum.reduceat(found, starts, axis=axis)
        return found

    def spread(self, part: FloatArray) -> FloatArray:
        """Return a table over the part as one that broadcasts against the clique."""
        found = part.reshape(self.shape)
        for axis, group in self._grouped:
            found = np.take(found, group, axis=axis)
        if found.shape == self._written:
            return found
        written = np.empty(self._written, dtype=found.dtype)
        written[...] = found
        return written


class _GroupSum:
    """Sums a table along one axis, where values are in groups that are runs of them."""

    def __init__(self, axis: int, group: IntArray) -> None:
        self._axis, self._starts = axis, first_of_runs(group)
        self._matrices = {}
        if len(self._starts) <= _FEW_GROUPS:
            whole = np.equal.outer(np.arange(len(self._starts)), group)
            self._matrices = {kind: whole.astype(kind) for kind in "fd"}

    def __call__(self, table: FloatArray) -> FloatArray:
        matrix = self._matrices.get(table.dtype.char)
        if matrix is None:
            return np.add.reduceat(table, self._starts, axis=self._axis)
        before, (values, *rest) = table.shape[: self._axis], table.shape[self._axis :]
        after = math.prod(rest)
        found = table.reshape(-1, values) @ matrix.T if after == 1 else matrix @ table.reshape(-1, values, after)
        return found.reshape(*before, len(matrix), *rest)


def _sums_of(sizes: Sequence[int], held: Sequence[bool]) -> list[tuple[int, int, int]]:
    """Return how axes are summed: numbers of cells before, in and after each run of them, the longest run first."""
    runs: list[list[int]] = []  # [is it kept, cells]
    for size, stays in zip(sizes, held, strict=True):
        if runs and runs[-1][0] == stays:
            runs[-1][1] *= size
        else:
            runs.append([stays, size])
    left = [cells for _, cells in runs]
    steps = []
    for i in sorted((i for i, (stays, _) in enumerate(runs) if not stays), key=lambda i: -left[i]):
        steps.append((math.prod(left[:i]), left[i], math.prod(left[i + 1 :])))
        left[i] = 1
    return steps


def _written_shape(sizes: Sequence[int], held: Sequence[bool]) -> tuple[int, ...]:
    """Return the shape of what is spread: last axes are written out, for numpy is slow where the last axis is short."""
    shape, width = [], 1
    for size, stays in zip(reversed(sizes), reversed(held), strict=True):
        shape.append(size if stays or width < _WIDE else 1)
        width *= size
    return tuple(reversed(shape))


def _sum_middle(table: FloatArray, before: int, summed: int, after: int) -> FloatArray:
    """Sum over the middle one of three axes: as products with ones, many times as fast as sums over short axes."""
    found: FloatArray
    if after > 1 and summed * after**2 <= _FEW:
        found = table.reshape(before, summed * after) @ _selector(summed, after, table.dtype.char)
    elif after > 1:
        found = _selector(summed, 1, table.dtype.char)[:, 0] @ table.reshape(before, summed, after)
    else:
        found = table.reshape(before, summed) @ _selector(summed, 1, table.dtype.char)[:, 0]
    return found


@lru_cache(maxsize=1000)
def _selector(summed: int, after: int, kind: str) -> FloatArray:
    """Return the matrix that sums `summed` vectors of length `after` that stand one after the other."""
    return np.tile(np.eye(after, dtype=kind), (summed, 1))


def first_of_runs(group: IntArray) -> IntArray:
    """Return the first value of each group; groups are runs of values."""
    return np.flatnonzero(np.diff(group, prepend=-1))


def with_both(
    table: FloatArray, clique: Sequence[int], wanted: Sequence[int], sizes: Sequence[int], groups: Groups
) -> FloatArray:
    """Sum a table down to the sorted `wanted`, which may have a variable beside the groups of its values."""
    base = without_groups(wanted, groups)
    found = Projection(clique, base, sizes, groups).sum(table)
    for axis, v in enumerate(wanted):
        if v not in base:
            # The groups come right after their variable.
            only = np.eye(sizes[v])[groups[v]]
            shape = [1] * (found.ndim + 1)
            shape[axis - 1], shape[axis] = only.shape
            found = np.expand_dims(found, axis) * only.reshape(shape)
    return found


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

    def __init__(self, clique: Sequence[int], sizes: Sequence[int], groups: Groups | None = None) -> None:
        self._clique = tuple(clique)
        self._sizes, self._groups = sizes, groups or {}
        #: By first axis: number of the marginal, and how it is summed.
        self._parts: list[list[tuple[int, Projection]]] = [[] for _ in clique]

    def add(self, number: int, part: Sequence[int]) -> None:
        """Add a marginal over `part`, to be known by `number`."""
        first = self._clique.index(part[0] if part[0] in self._clique else part[0] - 1)
        self._parts[first].append((number, Projection(self._clique[first:], part, self._sizes, self._groups)))

    def project(self, table: FloatArray) -> dict[int, FloatArray]:
        """Return all marginals of `table`."""
        found: dict[int, FloatArray] = {}
        last = max((first for first, parts in enumerate(self._parts) if parts), default=-1)
        for parts in self._parts[: last + 1]:
            for number, projection in parts:
                found[number] = projection.sum(table)
            table = np.add.reduce(table, axis=0)
        return found

    def spread(self, tables: Sequence[FloatArray]) -> FloatArray:
        """Return the sum of `tables` (by number, flattened), each spread over the clique's table."""
        total: FloatArray = np.zeros((), dtype=tables[0].dtype if tables else np.float64)
        for first in range(len(self._clique) - 1, -1, -1):
            for number, projection in self._parts[first]:
                total = total + projection.spread(tables[number])
            # Later axes stay as they are; an axis that no marginal has touched is spread by the one who adds.
            total = total.reshape((1,) * (len(self._clique) - first - total.ndim) + total.shape)
        return total
