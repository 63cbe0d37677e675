"""A CSV file, plain or compressed, as a table of text in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from kamino.io.formats.dialect import Dialect
from kamino.io.private_csv import PrivateCsv
from kamino.io.streams.cutting import PART_ROWS, FileState, cut_evenly


class CsvParts:
    """The rows of a private CSV file, all cells as text: their types are found within the budget.

    Guarantees:
        The rows are those of the file read as a whole.  [test_streams_read_what_readers_read]
        Damaged data is refused before anything is measured.  [test_a_broken_csv_is_refused_at_once]
    """

    is_ordered = True

    def __init__(self, path: Path, *, dialect: Dialect = Dialect(), part_rows: int = PART_ROWS) -> None:
        self._state = FileState.of(path)
        self._part_rows = part_rows
        self._file = PrivateCsv.of(path, dialect).in_batches()
        self.schema: pa.Schema = pa.schema([pa.field(name, pa.string()) for name in self._file.names])

    def __repr__(self) -> str:
        return "CsvParts(1 file)"

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns part by part."""
        wanted = list(self.schema.names if names is None else names)
        fields = pa.schema([self.schema.field(name) for name in wanted])
        return cut_evenly(self._batches(wanted), fields, self._part_rows)

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        self._state.check()
        yield from self._file.batches(names)
