"""Rows whose values are chosen together, and the candidate values of each."""

from __future__ import annotations

from dataclasses import dataclass

from kamino.arrays import IntArray

# The code of a row for which no value was found, or none has been drawn yet.
DEAD = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Rows about to be drawn: one line of candidates for each, and the column outside and inside the block.

    `listed` says that all lines are the same ascending codes. `outside` is `DEAD` for rows without a value and for the
    rows of the block; `inside` holds the codes that the rows of the block have now.
    """

    rows: IntArray
    candidates: IntArray
    listed: bool
    outside: IntArray
    inside: IntArray

    def column(self) -> IntArray:
        """Return the whole column as it stands."""
        column = self.outside.copy()
        column[self.rows] = self.inside
        return column
