"""Violations of dependencies and keys, counted by hashing as rows come and go."""

from __future__ import annotations

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint
from kamino.constraints.counting.conjunction import equal_attributes
from kamino.sampling.codes.comparing import Columns, Judge
from kamino.sampling.codes.grouping import join_keys
from kamino.sampling.partners.block import DEAD, Block
from kamino.sampling.plan.shapes import shape_of
from kamino.schema.coding.joint_codes import distinct_values

# Up to this many numbers, counts are held for every code of every group; above it, for those that occur.
_DENSE = 20_000_000
# All rows at once are counted in a table of at most so many cells a row, and by sorting elsewhere.
_CELLS_A_ROW, _FEW_CELLS = 8, 1024


class Hashed:
    """A dependency or a key: rows in groups by what must be equal, and in each group how often each code occurs.

    A candidate of a dependency into the column clashes with the rows of its group that have another code. One of a
    dependency out of the column clashes with the rows that have its code, but another right side; of a key, with all
    rows that have its code. Null is never equal and never different.
    """

    def __init__(
        self, constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns, num_rows: int
    ) -> None:
        dependency = shape_of(constraint)[1]
        right = dependency.right if dependency is not None else None
        self._into = right == attribute
        keys = sorted(equal_attributes(constraint) - {attribute})
        others = [*keys, right] if right is not None and not self._into else keys
        self._present = np.ones(num_rows, dtype=np.bool_)
        for name in others:
            self._present &= ~judge.is_null(name, columns[name])
        codec = judge.codec[attribute]
        self._null, self._size = codec.null_code, codec.size
        self._group = join_keys([columns[name] for name in keys]) if keys else np.zeros(num_rows, dtype=np.int64)
        self._counts = _Counts(self._group, codec.size)
        self._members = np.zeros(int(self._group.max(initial=-1)) + 1, dtype=np.int64)
        self._same: _Counts | None = None
        if right is not None and not self._into:
            self._owner = join_keys([self._group, columns[right]])
            self._same = _Counts(self._owner, codec.size)

    def of_block(self, block: Block) -> FloatArray:
        """Count for all rows at once."""
        column = block.column()
        there = np.flatnonzero((column >= 0) & self._present & (column != (DEAD if self._null is None else self._null)))
        asked, own = np.maximum(block.candidates, 0), block.inside[:, None]
        found = self._equal(self._group, there, column, block.rows, asked)
        if self._into:
            members = np.bincount(self._group[there], minlength=int(self._group.max(initial=0)) + 1)
            is_there = (own >= 0) & (own != (DEAD if self._null is None else self._null))
            found = members[self._group[block.rows]][:, None] - found - (is_there & (own != asked))
        elif self._same is not None:
            found = found - self._equal(self._owner, there, column, block.rows, asked)
        else:
            found = found - (own == asked)
        clashing = np.broadcast_to(self._present[block.rows][:, None], found.shape)
        clashing = clashing if self._null is None else clashing & (asked != self._null)
        return np.where(clashing, found, 0).astype(np.float64)

    def _equal(self, groups: IntArray, there: IntArray, column: IntArray, rows: IntArray, asked: IntArray) -> IntArray:
        """Return how many of the rows `there` are in the group of each row and have the code that is asked for."""
        num_groups = int(groups.max(initial=-1)) + 1
        if num_groups * self._size <= _CELLS_A_ROW * len(column) + _FEW_CELLS:
            held = np.bincount(groups[there] * self._size + column[there], minlength=num_groups * self._size)
            return np.asarray(held[groups[rows][:, None] * self._size + asked])
        values, numbers = distinct_values(column[there])
        if len(values) == 0:
            return np.zeros(asked.shape, dtype=np.int64)
        place = np.minimum(np.searchsorted(values, asked), len(values) - 1)
        held = np.sort(groups[there] * len(values) + numbers)
        wanted = groups[rows][:, None] * len(values) + place
        found = np.searchsorted(held, wanted, side="right") - np.searchsorted(held, wanted)
        return np.where(values[place] == asked, found, 0)

    def load(self, column: IntArray) -> None:
        """Start from this column."""
        there = np.flatnonzero((column >= 0) & self._present & (column != (DEAD if self._null is None else self._null)))
        self._counts.add(self._group[there], column[there])
        if self._into:
            self._members += np.bincount(self._group[there], minlength=len(self._members))
        elif self._same is not None:
            self._same.add(self._owner[there], column[there])

    def begin(self, block: Block) -> None:
        """Announce the next block."""
        self._block = block

    def count(self, place: int) -> IntArray:
        """Count for one row."""
        row, codes = int(self._block.rows[place]), self._block.candidates[place]
        if not self._present[row]:
            return np.zeros(len(codes), dtype=np.int64)
        group = int(self._group[row])
        found = self._counts.of(group, codes, self._block.listed)
        if self._into:
            found = self._members[group] - found
        elif self._same is not None:
            found = found - self._same.of(int(self._owner[row]), codes, self._block.listed)
        if self._null is not None:
            found[codes == self._null] = 0
        return found

    def change(self, place: int, code: int, count: int) -> None:
        """Settle a row, or take it back."""
        row = int(self._block.rows[place])
        if code != self._null and self._present[row]:
            self._settle(row, code, count)

    def _settle(self, row: int, code: int, count: int) -> None:
        group = int(self._group[row])
        self._counts.change(group, code, count)
        if self._into:
            self._members[group] += count
        elif self._same is not None:
            self._same.change(int(self._owner[row]), code, count)


class _Counts:
    """How often each code occurs in each group: one table, or what occurs where that would be too large."""

    def __init__(self, groups: IntArray, size: int) -> None:
        num_groups = int(groups.max(initial=-1)) + 1
        is_small = num_groups * size <= _DENSE
        self._table = np.zeros((num_groups, size), dtype=np.int64) if is_small else None
        self._groups: dict[int, _Sparse] = {}

    def add(self, groups: IntArray, codes: IntArray) -> None:
        """Settle many rows."""
        if self._table is not None:
            joined = groups * self._table.shape[1] + codes
            self._table += np.bincount(joined, minlength=self._table.size).reshape(self._table.shape)
            return
        for group, code in zip(groups.tolist(), codes.tolist(), strict=True):
            self.change(group, code, 1)

    def change(self, group: int, code: int, count: int) -> None:
        """Settle a row, or take it back."""
        if self._table is not None:
            self._table[group, code] += count
        else:
            self._groups.setdefault(group, _Sparse()).change(code, count)

    def of(self, group: int, codes: IntArray, listed: bool) -> IntArray:
        """Return a new array: the count of each code."""
        if self._table is not None:
            counts = self._table[group]
            return np.asarray(counts.copy() if listed and len(codes) == len(counts) else counts[codes])
        found = self._groups.get(group)
        return np.zeros(len(codes), dtype=np.int64) if found is None else found.of(codes, listed)


class _Sparse:
    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def change(self, code: int, count: int) -> None:
        """Settle a row, or take it back."""
        left = self._counts.get(code, 0) + count
        if left:
            self._counts[code] = left
        else:
            del self._counts[code]

    def of(self, codes: IntArray, listed: bool) -> IntArray:
        if not listed:
            return np.array([self._counts.get(code, 0) for code in codes.tolist()], dtype=np.int64)
        found = np.zeros(len(codes), dtype=np.int64)
        occurring = np.fromiter(self._counts.keys(), dtype=np.int64, count=len(self._counts))
        found[np.searchsorted(codes, occurring)] = np.fromiter(self._counts.values(), dtype=np.int64)
        return found
