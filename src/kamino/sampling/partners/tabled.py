"""Counting by a table of which combinations of codes clash, where these are few."""

from __future__ import annotations

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint
from kamino.sampling.codes.comparing import Columns, Judge
from kamino.sampling.partners.block import Block

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
        first = np.unique(contexts, return_index=True)[1]
        others = [name for name in constraint.attributes if name != attribute]
        combined = {name: np.repeat(columns[name][first], len(listed)) for name in others}
        combined[attribute] = np.tile(listed, len(first))
        down = {name: codes[:, None] for name, codes in combined.items()}
        across = {name: codes[None, :] for name, codes in combined.items()}
        # Symmetric: a clash is one in either direction.
        self._clash = judge.clashes(constraint, down, across).astype(np.float32)
        self._total = np.zeros(len(self._clash))
        # Which codes of a row clash with the code that it has itself.
        size, diagonal = len(listed), np.arange(len(first))
        by_context = self._clash.reshape(len(first), size, len(first), size)
        self._own = np.ascontiguousarray(by_context[diagonal, :, diagonal, :])

    def of_block(self, block: Block) -> FloatArray:
        """Count for all rows at once."""
        total = self._partners(block.column())
        own = self._combinations(block.rows[:, None], np.maximum(block.candidates, 0))
        found: FloatArray = total[own]
        present = np.flatnonzero(block.inside >= 0)
        present_codes = self._combinations(block.rows[present], block.inside[present])
        found[present] -= self._clash[own[present], present_codes[:, None]]
        return found

    def of_listed(self, rows: IntArray, inside: IntArray) -> FloatArray:
        """Count for all listed codes of some rows, given what was loaded and moved; they have the codes `inside`.

        Guarantees:
            Equal to counting anew.  [test_tables_follow_blocks_that_move]
        """
        contexts = self.contexts[rows]
        found: FloatArray = self._total.reshape(-1, len(self._listed))[contexts]
        present = np.flatnonzero(inside >= 0)
        found[present] -= self._own[contexts[present], self._places(inside[present])]
        return found

    def move(self, rows: IntArray, old: IntArray, new: IntArray) -> None:
        """Let rows have other codes."""
        other = np.flatnonzero(old != new)
        left, entered = other[old[other] >= 0], other[new[other] >= 0]
        held = np.bincount(self._combinations(rows[entered], new[entered]), minlength=len(self._clash))
        held -= np.bincount(self._combinations(rows[left], old[left]), minlength=len(self._clash))
        moved = np.flatnonzero(held)
        if 2 * len(moved) < len(held):
            self._total += held[moved].astype(np.float32) @ self._clash[moved]
        else:
            self._total += held.astype(np.float32) @ self._clash

    def rate(self, column: IntArray) -> float:
        """Return how many of the pairs of rows with a value clash, given what was loaded and moved."""
        there = np.flatnonzero(column >= 0)
        places = self._places(column[there])
        partners = self._total[self.contexts[there] * len(self._listed) + places]
        partners -= self._own[self.contexts[there], places, places]
        every = len(there) * (len(there) - 1)
        return float(partners.sum()) / every if every else 0.0

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

    def _partners(self, column: IntArray) -> FloatArray:
        there = np.flatnonzero(column >= 0)
        held = np.bincount(self._combinations(there, column[there]), minlength=len(self._clash))
        return np.asarray(self._clash @ held.astype(np.float32), dtype=np.float64)

    def _combinations(self, rows: IntArray, codes: IntArray) -> IntArray:
        return np.asarray(self.contexts[rows] * len(self._listed) + self._places(codes))

    def _places(self, codes: IntArray) -> IntArray:
        """The places of codes among the listed ones."""
        found = self._place[codes] if self._place is not None else np.searchsorted(self._listed, codes)
        return np.asarray(found)
