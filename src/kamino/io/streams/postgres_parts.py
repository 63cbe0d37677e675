"""The answer to a query of a PostgreSQL server as a table in parts: every pass reads one and the same snapshot."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from kamino.advice import setting
from kamino.errors import InputError
from kamino.io.databases.postgres import WHERE, convert_types, is_numeric
from kamino.io.databases.snapshot import Snapshot
from kamino.io.databases.storing import quoted
from kamino.io.normalise import normalise_table
from kamino.io.streams.cutting import PART_ROWS, cut_evenly


class PostgresParts:
    """The rows of a table of a PostgreSQL server, or of a query on it.

    All passes are made in one read-only transaction with a snapshot, so that what others write meanwhile is not seen,
    and nothing is created on the server. A table gives its rows in the order in which they are stored; the rows of a
    query or a view may come in any order.

    Guarantees:
        The rows and types are those of the answer read as a whole.  [test_streams_read_what_readers_read]
        What is written meanwhile is not seen.  [test_a_snapshot_stays_as_it_was]
    """

    def __init__(
        self, url: str, statement: str, *, table: str | None = None, private: bool = False, part_rows: int = PART_ROWS
    ) -> None:
        self._statement, self._private, self._part_rows = statement, private, part_rows
        self._snapshot = Snapshot(url, statement)
        weakref.finalize(self, self._snapshot.close)
        self.is_ordered = table is not None and self._snapshot.keeps_order(table)
        empty = self._snapshot.columns()
        if not private and any(is_numeric(field) for field in empty.schema):
            name = next(field.name for field in empty.schema if is_numeric(field))
            raise InputError(
                f"{WHERE}: column '{name}' has type numeric, whose places are told by all of its cells. Cast it in the "
                f'query: "{name}"::double precision; or say {setting("engine", "memory")}.'
            )
        self.schema: pa.Schema = self._plain(empty).schema

    def __repr__(self) -> str:
        return "PostgresParts(1 query)"

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns part by part."""
        wanted = list(self.schema.names if names is None else names)
        fields = pa.schema([self.schema.field(name) for name in wanted])
        return cut_evenly(self._batches(wanted), fields, self._part_rows)

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        chosen = ", ".join(map(quoted, names))
        for batch in self._snapshot.batches(f"SELECT {chosen} FROM (\n{self._statement}\n) AS asked"):
            yield from self._plain(pa.Table.from_batches([batch])).to_batches()

    def _plain(self, table: Any) -> pa.Table:
        return normalise_table(convert_types(table, private=self._private), where=WHERE, private=self._private)
