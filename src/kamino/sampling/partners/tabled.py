"""Counting by a table of which combinations of codes clash, where these are few."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint
from kamino.sampling.codes.comparing import Columns, Judge
from kamino.sampling.partners.block import Block
from kamino.sampling.partners.clashing import find_clashes

# Codes below this have their place among the listed ones in a table.
_DIRECT = 1 << 16


class Tabled:
    """A combination is a context (the other attributes) and a code; partners are the product with a histogram of them.

    `_total` holds the partners of every combination, moved as rows come and go.
    """

    def __init__(
        self,
        constraint: DenialConstraint,
        judge: Judge,
        attribute: str,
        columns: Columns,
        listed: IntArray,
        contexts: IntArray,
    ) -> None:
        self._listed, self.contexts = listed, contexts
        direct = len(listed) > 0 and int(listed[-1]) < _DIRECT
        self._place = np.searchsorted(listed, np.arange(int(listed[-1]) + 1)) if direct else None
        # Any row of a context will do.
        some = np.zeros(int(contexts.max(initial=-1)) + 1, dtype=np.int64)
        some[contexts] = np.arange(len(contexts))
        others = {name: columns[name][some] for name in constraint.attributes if name != attribute}
        self._clashes = find_clashes(constraint, judge, attribute, others, listed)
        self._total = np.zeros(len(some) * len(listed))
        # Which codes of a row clash with the code that it has itself: a line for each combination.
        row = {name: codes[:, None, None] for name, codes in others.items()}
        down, across = row | {attribute: listed[:, None]}, row | {attribute: listed[None, :]}
        shape = (len(some), len(listed), len(listed))
        own = np.broadcast_to(judge.clashes(constraint, down, across), shape).astype(np.float64)
        self._own_lines = own.reshape(-1, len(listed))
        self._with_itself = np.ascontiguousarray(own.diagonal(axis1=1, axis2=2)).ravel()

    def of_block(self, block: Block) -> FloatArray:
        """Count for all rows at once."""
        total = self._partners(block.column())
        found: FloatArray = total[self._combinations(block.rows[:, None], np.maximum(block.candidates, 0))]
        present = np.flatnonzero(block.inside >= 0)
        held = self._combinations(block.rows[present], block.inside[present])
        found[present] -= self._own_lines[held[:, None], self._places(np.maximum(block.candidates[present], 0))]
        return found

    def of_listed(self, rows: IntArray, inside: IntArray) -> FloatArray:
        """Count for all listed codes of some rows, given what was loaded and moved; they have the codes `inside`.

        Guarantees:
            Equal to counting anew.  [test_tables_follow_blocks_that_move]
        """
        contexts, size = self.contexts[rows], len(self._listed)
        found: FloatArray = self._total.reshape(-1, size).take(contexts, axis=0)
        if inside.min(initial=0) >= 0:
            found -= self._own_lines.take(contexts * size + self._places(inside), axis=0)
            return found
        present = np.flatnonzero(inside >= 0)
        found[present] -= self._own_lines[contexts[present] * size + self._places(inside[present])]
        return found

    def move(self, rows: IntArray, old: IntArray, new: IntArray) -> None:
        """Let rows have other codes."""
        contexts = self.contexts[rows]
        self._total += self._clashes.partners(self._histogram(contexts, new) - self._histogram(contexts, old))

    def rate(self, column: IntArray) -> float:
        """Return how many of the pairs of rows with a value clash, given what was loaded and moved."""
        held = self._histogram(self.contexts, column)
        num_rows = int(held.sum())
        every = num_rows * (num_rows - 1)
        return float(held @ (self._total - self._with_itself)) / every if every else 0.0

    def load(self, column: IntArray) -> None:
        """Start from this column."""
        self._total = self._partners(column)

    def begin(self, block: Block) -> None:
        """Announce the next block."""
        self._rows = block.rows

    def count(self, place: int) -> FloatArray:
        """Count for one row."""
        size = len(self._listed)
        start = int(self.contexts[self._rows[place]]) * size
        return self._total[start : start + size]

    def change(self, place: int, code: int, count: int) -> None:
        """Settle a row, or take it back."""
        at = int(np.searchsorted(self._listed, code))
        line = self._clash[int(self.contexts[self._rows[place]]) * len(self._listed) + at]
        move = np.add if count > 0 else np.subtract
        move(self._total, line, out=self._total)

    @cached_property
    def _clash(self) -> NDArray[np.float32]:
        """Which combinations clash. Symmetric: a clash is one in either direction."""
        return self._clashes.table()

    def _partners(self, column: IntArray) -> FloatArray:
        return self._clashes.partners(self._histogram(self.contexts, column))

    def _histogram(self, contexts: IntArray, codes: IntArray) -> IntArray:
        """How many rows with a value have each combination."""
        if codes.min(initial=0) < 0:
            there = np.flatnonzero(codes >= 0)
            contexts, codes = contexts[there], codes[there]
        return np.bincount(contexts * len(self._listed) + self._places(codes), minlength=len(self._total))

    def _combinations(self, rows: IntArray, codes: IntArray) -> IntArray:
        return np.asarray(self.contexts[rows] * len(self._listed) + self._places(codes))

    def _places(self, codes: IntArray) -> IntArray:
        """The places of codes among the listed ones."""
        found = self._place[codes] if self._place is not None else np.searchsorted(self._listed, codes)
        return np.asarray(found)
