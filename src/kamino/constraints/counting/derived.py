"""Rows in which a derived column is not what it is computed as."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kamino.constraints.counting.ranks import RankedTable
from kamino.constraints.derivation import Derivation
from kamino.constraints.terms.evaluation import compared, values_of
from kamino.constraints.terms.exact import Numbers
from kamino.constraints.tree import Operator


def count_underived(table: pa.Table, derivation: Derivation) -> int:
    """The rows in which the column differs from its term; a null differs from a value.

    Guarantees:
        None in a column that was computed.  [test_derived_columns_are_what_they_are_computed_as]
    """
    ranked = RankedTable(table)
    columns = ranked.columns({derivation.target, *derivation.reads})
    found, wanted = values_of(derivation.column, columns), values_of(derivation.term, columns)
    known = [
        each.valid if isinstance(each, Numbers) else np.asarray(each.is_valid().cast(pa.uint8())).astype(np.bool_)
        for each in (found, wanted)
    ]
    same = np.asarray(compared(found, Operator.EQ, wanted).fill_null(False).cast(pa.uint8())).astype(np.bool_)
    return int((~same & (known[0] | known[1])).sum())
