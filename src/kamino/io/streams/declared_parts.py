"""A table in parts whose columns are declared as its database declares them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from kamino.io.databases.catalogue import Catalogue, with_nulls_as_declared
from kamino.schema.table_parts import TableParts


class DeclaredParts:
    """The same rows; columns in which the database allows no null are declared to have none.

    Guarantees:
        The types are those of the table in memory.  [test_streams_take_over_not_null]
    """

    def __init__(self, table: TableParts, catalogue: Catalogue) -> None:
        self._table, self._catalogue = table, catalogue
        self.is_ordered: bool = table.is_ordered
        self.schema: pa.Schema = with_nulls_as_declared(table.schema.empty_table(), catalogue).schema

    def __repr__(self) -> str:
        return repr(self._table)

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns part by part."""
        return (with_nulls_as_declared(part, self._catalogue) for part in self._table.parts(names))
