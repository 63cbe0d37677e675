"""Violations of one constraint as a column fills row by row, counted exactly and kept up to date.

Rows are settled in blocks: a block of rows and their candidate values is announced, then its rows are settled one after
the other, each seeing all that were settled before. Dependencies and keys are counted by hashing, constraints over few
combinations of codes by a table of clashes. For all others, the rows outside the block are counted for the whole
block at once, and those inside it are tried one by one.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from kamino.constraints import ConstraintClass, DenialConstraint
from kamino.model.protocol import FloatArray, IntArray
from kamino.sampling.block import Block
from kamino.sampling.comparing import Columns, Judge
from kamino.sampling.grouping import join_keys
from kamino.sampling.hashed import HashTally
from kamino.sampling.inside import Inside
from kamino.sampling.partners import make_partners
from kamino.sampling.shapes import shape_of
from kamino.sampling.steps.task import DEAD

# Up to this many combinations of codes, a table holds which of them clash.
MOST_COMBINATIONS = 2048


class Tally(Protocol):
    """One constraint, asked how often each candidate of a row would violate it together with settled rows.

    Guarantees:
        Counts are those of trying every other settled row.  [test_tallies_agree_with_brute_force]
    """

    def begin(self, block: Block) -> None:
        """Announce the next block. All changes go through `change` until the next one."""
        ...

    def count(self, place: int) -> IntArray | FloatArray:
        """Return the clashes of each candidate of the block's row at `place`, which must not be settled itself."""
        ...

    def change(self, place: int, code: int, count: int) -> None:
        """Settle the row at `place` with this code (+1), or take it back (-1)."""
        ...


def is_hashed(constraint: DenialConstraint) -> bool:
    """Whether equal values are all that has to be counted, which costs little for any number of candidates."""
    return shape_of(constraint)[0] in (ConstraintClass.KEY, ConstraintClass.FD)


def make_tally(
    constraint: DenialConstraint,
    judge: Judge,
    attribute: str,
    columns: Columns,
    num_rows: int,
    listed: IntArray | None,
) -> Tally:
    """Choose how to count. `listed` are all codes that `attribute` can take, ascending, if rows weigh all of them."""
    if is_hashed(constraint):
        return HashTally(constraint, judge, attribute, columns, num_rows)
    if listed is not None and not constraint.is_unary:
        others = [name for name in constraint.attributes if name != attribute]
        contexts = join_keys([columns[name] for name in others]) if others else np.zeros(num_rows, dtype=np.int64)
        if (int(contexts.max(initial=-1)) + 1) * len(listed) <= MOST_COMBINATIONS:
            return _TableTally(constraint, judge, attribute, columns, listed, contexts)
    return _BlockTally(constraint, judge, attribute, columns)


class _TableTally:
    """Counts for every combination of a context (the other attributes) and a code, moved as rows come and go."""

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
        self._clash = judge.clashes(constraint, down, across).astype(np.int8)
        self._total = np.zeros(len(first) * len(listed), dtype=np.int64)

    def begin(self, block: Block) -> None:
        self._rows = block.rows

    def count(self, place: int) -> IntArray:
        size = len(self._listed)
        start = int(self._contexts[self._rows[place]]) * size
        return self._total[start : start + size]

    def change(self, place: int, code: int, count: int) -> None:
        at = int(np.searchsorted(self._listed, code))
        line = self._clash[int(self._contexts[self._rows[place]]) * len(self._listed) + at]
        if count > 0:
            np.add(self._total, line, out=self._total)
        else:
            np.subtract(self._total, line, out=self._total)


class _BlockTally:
    """Any constraint: partners outside the block counted together, those inside it one row at a time."""

    def __init__(self, constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns) -> None:
        self._constraint = constraint
        self._partners = make_partners(constraint, judge, attribute, columns, None)
        self._inside = Inside(constraint, judge, attribute, columns)

    def begin(self, block: Block) -> None:
        self._outside = self._partners.count(block.rows, np.maximum(block.candidates, 0), block.outside)
        if not self._constraint.is_unary:
            self._inside.begin(block)

    def count(self, place: int) -> FloatArray:
        outside = self._outside[place]
        return np.asarray(outside if self._constraint.is_unary else outside + self._inside.count(place))

    def change(self, place: int, code: int, count: int) -> None:
        if not self._constraint.is_unary:
            self._inside.change(place, code if count > 0 else DEAD)
