"""Counting by a table of which combinations of codes clash, where these are few."""

from __future__ import annotations

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint
from kamino.sampling.codes.comparing import Columns, Judge
from kamino.sampling.partners.block import Block


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
        self._listed, self._contexts = listed, contexts
        first = np.unique(contexts, return_index=True)[1]
        others = [name for name in constraint.attributes if name != attribute]
        combined = {name: np.repeat(columns[name][first], len(listed)) for name in others}
        combined[attribute] = np.tile(listed, len(first))
        down = {name: codes[:, None] for name, codes in combined.items()}
        across = {name: codes[None, :] for name, codes in combined.items()}
        self._clash = judge.clashes(constraint, down, across).astype(np.float32)
        self._total = np.zeros(len(self._clash))

    def of_block(self, block: Block) -> FloatArray:
        """Count for all rows at once."""
        total = self._partners(block.column())
        own = self._combinations(block.rows[:, None], np.maximum(block.candidates, 0))
        found: FloatArray = total[own]
        present = np.flatnonzero(block.inside >= 0)
        present_codes = self._combinations(block.rows[present], block.inside[present])
        found[present] -= self._clash[own[present], present_codes[:, None]]
        return found

    def load(self, column: IntArray) -> None:
        """Start from this column."""
        self._total = self._partners(column)

    def begin(self, block: Block) -> None:
        """Announce the next block."""
        self._rows = block.rows

    def count(self, place: int) -> FloatArray:
        """Count for one row."""
        size = len(self._listed)
        start = int(self._contexts[self._rows[place]]) * size
        return self._total[start : start + size]

    def change(self, place: int, code: int, count: int) -> None:
        """Settle a row, or take it back."""
        at = int(np.searchsorted(self._listed, code))
        line = self._clash[int(self._contexts[self._rows[place]]) * len(self._listed) + at]
        move = np.add if count > 0 else np.subtract
        move(self._total, line, out=self._total)

    def _partners(self, column: IntArray) -> FloatArray:
        there = np.flatnonzero(column >= 0)
        held = np.bincount(self._combinations(there, column[there]), minlength=len(self._clash))
        return np.asarray(self._clash @ held.astype(np.float32), dtype=np.float64)

    def _combinations(self, rows: IntArray, codes: IntArray) -> IntArray:
        return np.asarray(self._contexts[rows] * len(self._listed) + np.searchsorted(self._listed, codes))
