"""Read a private CSV file: all cells as text, whatever they hold, and no line is an error.

Which line a parser stumbles over is private, and so is whether there is one. So a row with more or fewer cells than
there are columns, or with a quote that does not close, is a row of nulls in its place; a cell that is no text is null;
and how long a row is makes no difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from kamino.errors import InputError
from kamino.io.csv import BLOCK_BYTES, check_header, parser_options, unclear_header
from kamino.io.csv_lines import ended, has_sound_quotes, with_nulls_for_lost
from kamino.io.formats.compressed import open_text, telling_damage
from kamino.io.formats.dialect import WESTERN, Dialect, Settled, settle
from kamino.io.lending import lent
from kamino.io.odd_cells import readable_text

# The parser counts the bytes of a block in 32 bits.
MOST_BLOCK_BYTES = (1 << 31) - 1


@dataclass(frozen=True, kw_only=True)
class PrivateCsv:
    """A private CSV file, and how it is read so that each line becomes a row.

    Guarantees:
        A line changes no other row, and none is refused.  [test_one_odd_row_changes_no_other]
    """

    path: Path
    names: list[str]
    how: Settled
    block: int = BLOCK_BYTES

    @staticmethod
    def of(path: Path, dialect: Dialect = Dialect()) -> PrivateCsv:
        """Look at a file: its header, and whether its quotes close."""
        with telling_damage(path):
            how = ended(settle(path, open_text, dialect))
            names = check_header(path, how)
            if not has_sound_quotes(path, how):
                how = with_nulls_for_lost(how, columns=len(names))
        return PrivateCsv(path=path, names=names, how=how)

    def read(self) -> pa.Table:
        """All rows."""
        import pyarrow.csv as csv  # slow to import: only when a file is read

        read: list[pa.Table] = []

        def whole(file: PrivateCsv, lose: Callable[[Any], str]) -> None:
            options = parser_options(file.names, file.how, block=file.block, lose=lose)
            with file.how.opener(file.path) as handle, lent(handle, lose):
                read[:] = [csv.read_csv(handle, **options)]

        self._fitted(whole)
        (found,) = read
        if found.column_names != self.names:
            raise unclear_header(self.path)
        columns = [
            pa.chunked_array([self._readable(chunk) for chunk in column.chunks], pa.string())
            for column in found.columns
        ]
        return pa.Table.from_arrays(columns, names=self.names)

    def in_batches(self) -> PrivateCsv:
        """The same file, read once, so that `batches` gives all of its rows."""

        def each(file: PrivateCsv, lose: Callable[[Any], str]) -> None:
            for _ in file._batches(file.names, lose):
                pass

        return self._fitted(each)

    def batches(self, wanted: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows of the named columns, batch by batch, as `read` gives them."""
        return self._batches(wanted, _skip)

    def _batches(self, wanted: list[str], lose: Callable[[Any], str]) -> Iterator[pa.RecordBatch]:
        import pyarrow.csv as csv

        options = parser_options(self.names, self.how, wanted, block=self.block, lose=lose)
        with telling_damage(self.path), self.how.opener(self.path) as handle, lent(handle, lose):
            reader = csv.open_csv(handle, **options)
            try:
                if wanted == self.names and reader.schema.names != self.names:
                    raise unclear_header(self.path)
                for batch in reader:
                    yield pa.RecordBatch.from_arrays([self._readable(column) for column in batch.columns], names=wanted)
            finally:
                reader.close()
                del reader

    def _fitted(self, read: Callable[[PrivateCsv, Callable[[Any], str]], None]) -> PrivateCsv:
        """How `read` gets each line as a row: in blocks that hold each, and with nulls for those that are none."""
        file, mended = self, False
        while True:
            lost: list[None] = []

            def lose(row: object, lost: list[None] = lost) -> str:
                lost.append(None)  # several threads may call at once
                return _skip(row)

            try:
                with telling_damage(self.path):
                    read(file, lose)
            except pa.ArrowInvalid:  # a row reaches over more than two blocks
                if file.block == MOST_BLOCK_BYTES:
                    raise _too_long(self.path) from None
                file = replace(file, block=min(16 * file.block, MOST_BLOCK_BYTES))
                continue
            if mended or not lost:
                return file
            file, mended = replace(file, how=with_nulls_for_lost(self.how, columns=len(self.names))), True

    def _readable(self, column: pa.Array) -> pa.Array:
        """The cells of a column, null where the bytes are no text."""
        otherwise = None if self.how.is_told else WESTERN
        found = readable_text(pa.chunked_array([column]), otherwise=otherwise)
        return column if found is None else found.combine_chunks()


def _skip(row: object) -> str:
    del row
    return "skip"


def _too_long(path: Path) -> InputError:
    return InputError(f"{path}: cannot be parsed as CSV; a row is longer than 2 GiB. Use Parquet.")
