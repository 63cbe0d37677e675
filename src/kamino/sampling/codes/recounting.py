"""Violations of hard constraints in a table of codes, counted on the values the codes stand for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint, count_violations, violations_per_row
from kamino.constraints.counting.ranks import RankedTable
from kamino.sampling.codes.comparing import Columns
from kamino.schema import Codec
from kamino.schema.coding.decoding import decode_columns


def decoded(codec: Codec, columns: Columns, constraints: Sequence[DenialConstraint]) -> RankedTable:
    """Return the values of the columns that the constraints read."""
    names = sorted({name for c in constraints for name in c.attributes})
    return RankedTable(decode_columns(codec, columns, names))


def broken_constraints(
    codec: Codec, columns: Columns, constraints: Sequence[DenialConstraint]
) -> tuple[DenialConstraint, ...]:
    """Return the constraints that some row or pair of rows violates."""
    if not constraints:
        return ()
    table = decoded(codec, columns, constraints)
    return tuple(c for c in constraints if count_violations(table, c))


def violations_by_row(codec: Codec, columns: Columns, constraints: Sequence[DenialConstraint]) -> IntArray:
    """Return for each row in how many violations it takes part, all constraints together."""
    table = decoded(codec, columns, constraints)
    total = np.zeros(table.num_rows, dtype=np.int64)
    for constraint in constraints:
        total += violations_per_row(table, constraint)
    return total
