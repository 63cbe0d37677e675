"""Rows that are settled together, and what each of them may take."""

from __future__ import annotations

from dataclasses import dataclass

from kamino.model.protocol import IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Rows about to be settled: a line of candidates for each, and the column outside the block.

    `listed` says that all lines are the same ascending codes. `outside` is `DEAD` for rows not settled and for those
    of the block, and `inside` holds what the rows of the block have now.
    """

    rows: IntArray
    candidates: IntArray
    listed: bool
    outside: IntArray
    inside: IntArray
