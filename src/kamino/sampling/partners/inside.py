"""Clashes between the rows of one block, as they are settled one after the other."""

from __future__ import annotations

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint
from kamino.sampling.codes.comparing import Columns, Judge, Mask
from kamino.sampling.partners.block import DEAD, Block


class Inside:
    """One constraint on pairs, asked with how many settled rows of its block a row would clash.

    Where each predicate speaks either of the column or of the other attributes, the latter are tried once for all pairs
    of the block. Of the rows that are left, only the codes matter; where these are listed, a table tells which clash.
    Elsewhere every pair is tried with all predicates.
    """

    def __init__(self, constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns) -> None:
        self._constraint, self._judge, self._name = constraint, judge, attribute
        self._columns = {name: columns[name] for name in constraint.attributes if name != attribute}
        names = {p: {column.name for column in p.columns} for p in constraint.predicates}
        self._own = [p for p in constraint.predicates if names[p] == {attribute}]
        self._rest = [p for p in constraint.predicates if attribute not in names[p]]
        self._is_split = len(self._own) + len(self._rest) == len(constraint.predicates)
        self._table: FloatArray | None = None

    def begin(self, block: Block) -> None:
        """Announce the next block."""
        self._candidates = np.maximum(block.candidates, 0)
        self._codes = block.inside.copy()
        self._mine = {name: codes[block.rows] for name, codes in self._columns.items()}
        self._listed = self._candidates[0] if block.listed and self._is_split else None
        if not self._is_split:
            return
        down = {name: codes[:, None] for name, codes in self._mine.items()}
        across = {name: codes[None, :] for name, codes in self._mine.items()}
        self._forth = np.broadcast_to(self._judge.holds(self._rest, down, across), (len(block.rows),) * 2)
        self._back = np.ascontiguousarray(self._forth.T)
        if self._listed is not None:
            self._places = np.searchsorted(self._listed, self._codes)
            if self._table is None:
                self._table = self._own_clashes(self._listed, self._listed).astype(np.float64)

    def change(self, place: int, code: int) -> None:
        """Let the row at `place` have this code; `DEAD` takes it away."""
        self._codes[place] = code
        if self._listed is not None:
            self._places[place] = np.searchsorted(self._listed, code)

    def count(self, place: int) -> IntArray | FloatArray:
        """Return with how many other settled rows of the block each candidate of the row at `place` clashes."""
        there = self._codes != DEAD
        if not self._is_split:
            return self._count_all(place, np.flatnonzero(there))
        forth, back = self._forth[place] & there, self._back[place] & there
        if self._table is not None and self._listed is not None:
            return self._count_listed(forth, back)
        some = np.flatnonzero(forth | back)
        one_way = self._own_clashes(self._candidates[place], self._codes[some]) & forth[some]
        other_way = self._own_clashes(self._codes[some], self._candidates[place]).T & back[some]
        return np.asarray((one_way | other_way).sum(axis=1))

    def _own_clashes(self, codes: IntArray, others: IntArray) -> Mask:
        """Tell which pairs of codes make the predicates on the column true, codes downwards and others across."""
        found = self._judge.holds(self._own, {self._name: codes[:, None]}, {self._name: others[None, :]})
        return np.broadcast_to(found, (len(codes), len(others)))

    def _count_listed(self, forth: Mask, back: Mask) -> FloatArray:
        table = self._table
        assert table is not None
        one, other, both = (
            np.bincount(self._places[rows], minlength=len(table)).astype(np.float64)
            for rows in (forth, back, forth & back)
        )
        found = table @ one + other @ table
        if both.any():
            found -= (table * table.T) @ both
        return np.asarray(found)

    def _count_all(self, place: int, there: IntArray) -> IntArray:
        mine = {name: codes[place : place + 1, None] for name, codes in self._mine.items()}
        mine[self._name] = self._candidates[place][:, None]
        theirs = {name: codes[there][None, :] for name, codes in self._mine.items()}
        theirs[self._name] = self._codes[there][None, :]
        clash = self._judge.clashes(self._constraint, mine, theirs)
        return np.asarray(np.broadcast_to(clash, (len(self._candidates[place]), len(there))).sum(axis=1))
