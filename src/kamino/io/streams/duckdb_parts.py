"""The answer to a query of a DuckDB file as a table in parts: the query runs again for each pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from kamino.io.databases.duckdb_file import batches_of_duckdb, columns_of_duckdb
from kamino.io.normalise import normalise_table
from kamino.io.streams.cutting import PART_ROWS, FileState, cut_evenly


class DuckdbParts:
    """The rows of a table of a DuckDB file, or of a query on it.

    A table gives its rows in the order in which they were put in; the rows of a query may come in any order.

    Guarantees:
        The rows and types are those of the answer read as a whole.  [test_streams_read_what_readers_read]
    """

    def __init__(
        self, path: Path, statement: str, *, is_table: bool, private: bool = False, part_rows: int = PART_ROWS
    ) -> None:
        self._path, self._statement = path, statement
        self._private, self._part_rows = private, part_rows
        self.is_ordered = is_table
        self.schema: pa.Schema = self._plain(columns_of_duckdb(str(path), statement)).schema
        self._state = FileState.of(path)

    def __repr__(self) -> str:
        return "DuckdbParts(1 query)"

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns part by part."""
        wanted = list(self.schema.names if names is None else names)
        fields = pa.schema([self.schema.field(name) for name in wanted])
        return cut_evenly(self._batches(wanted), fields, self._part_rows)

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        self._state.check()
        for batch in batches_of_duckdb(str(self._path), self._statement, names, rows=self._part_rows):
            yield from self._plain(pa.Table.from_batches([batch])).to_batches()

    def _plain(self, table: pa.Table) -> pa.Table:
        return normalise_table(table, where=f"{self._path}: query", private=self._private)
