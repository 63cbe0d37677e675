"""Violation rates of a table of codes: the one statistic that soft constraints are matched by."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint
from kamino.sampling.codes.comparing import Columns, Judge
from kamino.sampling.partners.block import DEAD, Block
from kamino.sampling.partners.counting import Partners, make_partners
from kamino.schema import Codec


def rates_of(codec: Codec, table: Columns, constraints: Iterable[DenialConstraint]) -> dict[DenialConstraint, float]:
    """Return how often each constraint is violated: over all pairs of rows, or over all rows for single ones.

    Rows without a value (`DEAD`) in an attribute of the constraint do not count.

    Guarantees:
        Equal to recounting the values.  [test_rates_are_those_of_counting]
    """
    judge = Judge(codec)
    return {constraint: _rate(judge, table, constraint) for constraint in constraints}


def _rate(judge: Judge, table: Columns, constraint: DenialConstraint) -> float:
    attribute = constraint.attributes[-1]
    alive = np.logical_and.reduce([table[name] != DEAD for name in constraint.attributes])
    columns = {name: table[name][alive] for name in constraint.attributes}
    return rate_among(
        make_partners(constraint, judge, attribute, columns, int(alive.sum())), columns[attribute], constraint.is_unary
    )


def rate_among(partners: Partners, codes: IntArray, is_unary: bool) -> float:
    """Return the violation rate among the rows of a column that have a value."""
    rows = np.flatnonzero(codes != DEAD)
    block = Block(
        rows=rows,
        candidates=codes[rows][:, None],
        listed=False,
        outside=np.full(len(codes), DEAD, dtype=np.int64),
        inside=codes[rows],
    )
    num = len(rows)
    every = num if is_unary else num * (num - 1)
    return float(partners.of_block(block).sum()) / every if every else 0.0
