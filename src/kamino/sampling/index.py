"""How many settled rows a candidate row would clash with, kept up to date as rows come and go."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kamino.constraints import DenialConstraint
from kamino.model.protocol import IntArray
from kamino.sampling.comparing import Codes, Columns, Judge
from kamino.sampling.grouping import join_keys
from kamino.sampling.shapes import equal_attributes


class _Bucket:
    """Distinct rows with their counts, in arrays that grow by doubling."""

    def __init__(self, width: int) -> None:
        self.places: dict[tuple[int, ...], int] = {}
        self.rows = np.zeros((4, width), dtype=np.int64)
        self.counts = np.zeros(4, dtype=np.int64)

    def add(self, row: tuple[int, ...], count: int) -> None:
        """Change the count of one row."""
        place = self.places.setdefault(row, len(self.places))
        if place == len(self.counts):
            self.rows = np.concatenate([self.rows, np.zeros_like(self.rows)])
            self.counts = np.concatenate([self.counts, np.zeros_like(self.counts)])
        self.rows[place] = row
        self.counts[place] += count


class ViolationIndex:
    """The rows settled so far, as one constraint on pairs sees them.

    Rows are hashed on the attributes that must be equal; within a bucket, equal rows are kept once with their count.

    Guarantees:
        Counts are those of trying every settled row, whatever was added and removed.
        [test_index_agrees_with_brute_force]
    """

    def __init__(self, constraint: DenialConstraint, judge: Judge) -> None:
        self.constraint = constraint
        self._judge = judge
        self._keys = tuple(sorted(equal_attributes(constraint)))
        self._rest = tuple(name for name in constraint.attributes if name not in self._keys)
        self._nulls = tuple(judge.codec[name].null_code for name in self._keys)
        self._buckets: dict[tuple[int, ...], _Bucket] = {}

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes a row must have."""
        return (*self._keys, *self._rest)

    def add(self, row: Mapping[str, int], count: int = 1) -> None:
        """Settle a row (`count` times), or take it back with a negative count."""
        key = tuple(int(row[name]) for name in self._keys)
        if any(code == null for code, null in zip(key, self._nulls, strict=True)):
            return
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = _Bucket(len(self._rest))
        bucket.add(tuple(int(row[name]) for name in self._rest), count)

    def add_many(self, columns: Columns, rows: IntArray) -> None:
        """Settle many rows."""
        if len(rows) == 0:
            return
        mine = {name: columns[name][rows] for name in self.attributes}
        keys = join_keys(list(mine.values()))
        _, first, counts = np.unique(keys, return_index=True, return_counts=True)
        table = np.stack([mine[name][first] for name in self.attributes], axis=1).tolist()
        for line, count in zip(table, counts.tolist(), strict=True):
            self.add(dict(zip(self.attributes, line, strict=True)), count)

    def count(self, candidates: Columns) -> IntArray:
        """Return, for each candidate row, with how many settled rows it violates the constraint in either direction.

        Columns have one entry for each candidate, or a single one that stands for all.
        """
        num = max(len(candidates[name]) for name in self.attributes)
        keys = [candidates[name] for name in self._keys]
        if all(len(column) == 1 for column in keys):
            return self._count_in(tuple(int(column[0]) for column in keys), candidates, num)
        wide = [np.broadcast_to(column, num) for column in keys]
        found = np.zeros(num, dtype=np.int64)
        groups = join_keys(wide)
        for group in range(int(groups.max()) + 1):
            members = np.flatnonzero(groups == group)
            key = tuple(int(column[members[0]]) for column in wide)
            mine = {n: c if len(c) == 1 else c[members] for n, c in candidates.items() if n in self.attributes}
            found[members] = self._count_in(key, mine, len(members))
        return found

    def _count_in(self, key: tuple[int, ...], candidates: Columns, num: int) -> IntArray:
        bucket = self._buckets.get(key)
        if bucket is None:
            return np.zeros(num, dtype=np.int64)
        size = len(bucket.places)
        settled: dict[str, Codes] = {name: bucket.rows[None, :size, i] for i, name in enumerate(self._rest)}
        mine: dict[str, Codes] = {name: candidates[name][:, None] for name in self._rest}
        for name, code in zip(self._keys, key, strict=True):
            settled[name] = mine[name] = np.full((1, 1), code, dtype=np.int64)
        clash = self._judge.clashes(self.constraint, mine, settled)
        counts: IntArray = np.broadcast_to(clash @ bucket.counts[:size], num)
        return counts
