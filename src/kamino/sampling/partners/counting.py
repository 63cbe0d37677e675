"""The protocol: with how many other rows would a row violate one constraint if it took a value?

A column is drawn in blocks of rows (see `Block`). Two questions are asked of a block: all rows at once, each against
the others as they stand (`of_block`), or one row after the other, each against what was settled before it (`begin`,
then `count` and `change`). Constraints on single rows need no partner. Where the combinations of codes are few, a table
says which of them clash. Dependencies and keys are counted by hashing; two orders, also within groups, by chunks of
places and ranks. Everything else goes to the kernels that count violations.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import ConstraintClass, DenialConstraint
from kamino.sampling.codes.comparing import Columns, Judge
from kamino.sampling.codes.grouping import join_keys
from kamino.sampling.partners.alone import Alone
from kamino.sampling.partners.block import Block
from kamino.sampling.partners.discordant import Discordant, Regrouped, discordance_of, regrouping_of
from kamino.sampling.partners.hashed import Hashed
from kamino.sampling.partners.kernel import Kernel
from kamino.sampling.partners.tabled import Tabled
from kamino.sampling.plan.shapes import shape_of

# Up to this many combinations of codes, a table holds which of them clash.
MOST_COMBINATIONS = 2048
# Sums of whole numbers below it are exact in float32.
_EXACT = 1 << 24


class Partners(Protocol):
    """One constraint and one column, whose rows are settled, taken back and settled again.

    A constraint on single rows has the row itself as its only partner. Rows without a value are nobody's partner.

    Guarantees:
        Counts are those of trying every other row that has a value.  [test_partners_agree_with_brute_force]
        They stay so whatever is settled and taken back.  [test_counts_follow_every_change]
    """

    def of_block(self, block: Block) -> FloatArray:
        """Return the partners of each candidate of each row, all other rows having the codes they have."""
        ...

    def load(self, column: IntArray) -> None:
        """Start from this column; without it, no row is settled at the start."""
        ...

    def begin(self, block: Block) -> None:
        """Announce the next block. From here on all changes are of its rows and go through `change`."""
        ...

    def count(self, place: int) -> IntArray | FloatArray:
        """Return the partners of each candidate of the block's row at `place`, which must not be settled itself."""
        ...

    def change(self, place: int, code: int, count: int) -> None:
        """Settle the row at `place` with this code (+1), or take it back (-1)."""
        ...


def is_hashed(constraint: DenialConstraint) -> bool:
    """Whether equal values are all that has to be counted, which costs little for any number of candidates."""
    return shape_of(constraint)[0] in (ConstraintClass.KEY, ConstraintClass.FD)


def make_partners(
    constraint: DenialConstraint,
    judge: Judge,
    attribute: str,
    columns: Columns,
    num_rows: int,
    listed: IntArray | None = None,
) -> Partners:
    """Choose how to count. `listed` are all codes that `attribute` can take, ascending, if rows weigh all of them."""
    if constraint.is_unary:
        return Alone(constraint, judge, attribute, columns)
    if listed is not None and num_rows < _EXACT:
        others = [name for name in constraint.attributes if name != attribute]
        contexts = join_keys([columns[name] for name in others]) if others else np.zeros(num_rows, dtype=np.int64)
        if (int(contexts.max(initial=-1)) + 1) * len(listed) <= MOST_COMBINATIONS:
            return Tabled(constraint, judge, attribute, columns, listed, contexts)
    if is_hashed(constraint):
        return Hashed(constraint, judge, attribute, columns, num_rows)
    discordance = discordance_of(constraint, attribute)
    if discordance is not None and num_rows < _EXACT:
        return Discordant(constraint, judge, attribute, columns, discordance)
    regrouping = regrouping_of(constraint, attribute)
    if regrouping is not None and num_rows < _EXACT:
        return Regrouped(constraint, judge, attribute, columns, *regrouping)
    return Kernel(constraint, judge, attribute, columns)
