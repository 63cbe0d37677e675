"""Constraints on single rows: a row is its own and only partner."""

from __future__ import annotations

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint
from kamino.sampling.codes.comparing import Columns, Judge
from kamino.sampling.partners.block import Block


class Alone:
    """Counts 1 for a candidate that violates the constraint, whatever the other rows are."""

    def __init__(self, constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns) -> None:
        self._constraint, self._judge, self._attribute = constraint, judge, attribute
        self._columns = {name: columns[name] for name in constraint.attributes if name != attribute}

    def of_block(self, block: Block) -> FloatArray:
        """Count for all rows at once."""
        rows = {name: codes[block.rows][:, None] for name, codes in self._columns.items()}
        rows[self._attribute] = np.maximum(block.candidates, 0)
        return self._judge.violates(self._constraint, rows, rows).astype(np.float64)

    def load(self, column: IntArray) -> None:
        """Start from this column. Other rows change nothing here."""

    def begin(self, block: Block) -> None:
        """Announce the next block."""
        self._found = self.of_block(block)

    def count(self, place: int) -> FloatArray:
        """Count for one row."""
        return np.asarray(self._found[place])

    def change(self, place: int, code: int, count: int) -> None:
        """Settle a row, or take it back. Other rows change nothing here."""
