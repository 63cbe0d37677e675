"""Parquet files, one or many with the same columns, as one table in parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from kamino.errors import InputError
from kamino.io.normalise import Choose, chosen_columns, every_column, normalise_table
from kamino.io.parquet import as_listed, batches_of, listed_types, unnamed_index
from kamino.io.streams.cutting import PART_ROWS, FileState, cut_evenly


class ParquetParts:
    """The rows of Parquet files, file after file.

    Guarantees:
        The rows and types are those of the files read as a whole.  [test_streams_read_what_readers_read]
        Files that change between passes are refused.  [test_a_file_that_changes_is_refused]
    """

    is_ordered = True

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        private: bool = False,
        part_rows: int = PART_ROWS,
        choose: Choose = every_column,
    ) -> None:
        self._states = tuple(FileState.of(path) for path in paths)
        self._private = private
        self._part_rows = part_rows
        self._choose = choose
        first = self._plain_schema(paths[0])
        for path in paths[1:]:
            if not self._plain_schema(path).equals(first):
                raise InputError(
                    f"{path}: its columns are not those of {paths[0].name}, expected the same names and types in the "
                    "same order. Write the files alike, or name them one by one."
                )
        self.schema: pa.Schema = first

    def __repr__(self) -> str:
        return f"ParquetParts({len(self._states)} files)"

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns part by part."""
        wanted = list(self.schema.names if names is None else names)
        fields = pa.schema([self.schema.field(name) for name in wanted])
        return cut_evenly(self._batches(wanted), fields, self._part_rows)

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        for state in self._states:
            state.check()
            yield from self._batches_of(state.path, names)

    def _batches_of(self, path: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq  # slow to import: only when a file is read

        try:
            with pq.ParquetFile(path) as file:
                listed = listed_types(file) if self._private else {}
                for batch in batches_of(file, names, self._part_rows):
                    yield from self._plain(pa.Table.from_batches([batch]).select(names), listed, path).to_batches()
        except PermissionError:
            raise
        # The library's own text may quote bytes of the file, so it is not passed on.
        except (pa.ArrowException, OSError):
            raise unreadable(path) from None

    def _plain_schema(self, path: Path) -> pa.Schema:
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(path) as file:
                empty = file.schema_arrow.empty_table()
                listed = listed_types(file) if self._private else {}
        except PermissionError:
            raise
        except (pa.ArrowException, OSError):
            raise unreadable(path) from None
        chosen = chosen_columns(empty.drop_columns(unnamed_index(empty)), self._choose, where=str(path))
        return self._plain(chosen, listed, path).schema

    def _plain(self, table: pa.Table, listed: Mapping[str, pa.DataType], path: Path) -> pa.Table:
        """The columns as reading the whole file would give them."""
        return normalise_table(as_listed(table, listed), where=str(path), private=self._private)


def unreadable(path: Path) -> InputError:
    """Say that a file cannot be read, and no more."""
    return InputError(f"{path}: not a readable Parquet file: damaged, cut short, or of another format. Write it again.")
