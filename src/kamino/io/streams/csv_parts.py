"""A CSV file, plain or compressed, as a table of text in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from kamino.io.csv import check_header, fitting_block, private_batches
from kamino.io.csv_lines import sound
from kamino.io.formats.compressed import open_text, telling_damage
from kamino.io.formats.dialect import Dialect, settle
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
        with telling_damage(path):
            how = settle(path, open_text, dialect)
            names = check_header(path, how)
            self._how = sound(path, how, columns=len(names))
            self._block = fitting_block(path, names, self._how)
        self.schema: pa.Schema = pa.schema([pa.field(name, pa.string()) for name in names])

    def __repr__(self) -> str:
        return "CsvParts(1 file)"

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns part by part."""
        wanted = list(self.schema.names if names is None else names)
        fields = pa.schema([self.schema.field(name) for name in wanted])
        return cut_evenly(self._batches(wanted), fields, self._part_rows)

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        self._state.check()
        path = self._state.path
        with telling_damage(path):
            yield from private_batches(path, list(self.schema.names), names, self._how, block=self._block)
