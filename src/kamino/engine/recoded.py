"""A private table after steps of a layout, part by part where it is read so. What comes out is as private."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import pyarrow as pa

from kamino.layout.recoding import Recoding
from kamino.privacy.private import PrivateTable, open_rows
from kamino.schema.table_parts import TableParts


def recode(private: PrivateTable, steps: Sequence[Recoding]) -> PrivateTable:
    """Bring a private table some steps of a layout towards the model.

    Guarantees:
        Columns that steps leave out are not read.  [test_columns_that_are_computed_are_not_read]
        A table in parts has the rows of the table in memory.  [test_recoded_parts_are_the_recoded_table]
    """
    if not steps:
        return private
    rows = open_rows(private)
    return PrivateTable(_forward(rows, steps) if isinstance(rows, pa.Table) else RecodedParts(rows, steps))


class RecodedParts:
    """A table in parts after steps of a layout: each part by itself, with the columns that it takes."""

    def __init__(self, table: TableParts, steps: Sequence[Recoding]) -> None:
        self._table, self._steps = table, tuple(steps)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return _forward(self._table.schema.empty_table(), self._steps).schema

    @property
    def is_ordered(self) -> bool:
        """Whether the rows of two passes can be told apart by their places."""
        return self._table.is_ordered

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns, by default all, part by part."""
        wanted = list(self.schema.names if names is None else names)
        needed: tuple[str, ...] = tuple(wanted)
        for step in reversed(self._steps):
            needed = step.columns_for(needed)
        return (_forward(part, self._steps).select(wanted) for part in self._table.parts(needed))


def _forward(part: pa.Table, steps: Sequence[Recoding]) -> pa.Table:
    return reduce(lambda current, step: step.forward(current), steps, part)
