"""Write a table to a CSV or Parquet file, whole or not at all.

What CSV cannot say: an empty string and a null are both an empty cell, and come back as null; a string that
looks like a number comes back as a number; an integer comes back as `int64`, whatever its width; a decimal
comes back as a float (its places are kept in the file); a zoned timestamp comes back in UTC. Parquet keeps
all of these.

A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@` as a formula. Such texts are written as they are, unless
the file is to be `spreadsheet_safe`: then they get an apostrophe in front, by which a spreadsheet knows a text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.errors import InputError
from kamino.io.atomic import StagedFile, atomic_file, target_of
from kamino.io.csv import read_csv, read_csv_parts
from kamino.io.normalise import normalise_table

ROWS_AT_ONCE = 1 << 16
READ_AT_ONCE = 1 << 19


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write `table` to `path`, named `.csv` or `.parquet`; an existing file is replaced in one step.

    Raises:
        InputError: The file cannot be written; an old file of this name is untouched and nothing else is left
            behind.

    Guarantees:
        - Reading the file gives the same table, for what CSV can say.  [test_csv_round_trip]
        - Reading the file gives the same table, for Parquet.  [test_parquet_round_trip]
        - After a failure the folder is as it was.  [test_a_failing_write_leaves_the_old_file]
    """
    target = Path(path)
    check_table_path(target)
    plain = normalise_table(table, where=f"table for {target}")
    with atomic_file(target) as handle:
        _write(iter([plain]), handle, kind=target.suffix.lower())


def check_table_path(path: Path) -> None:
    """Raise an `InputError` if no table can be written to `path`: the kind of file, or the place, is wrong."""
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise InputError(f"{path}: cannot write this kind of file. Expected a name ending in .csv or .parquet.")
    target_of(path)


def stage_table(table: pa.Table, file: StagedFile, *, spreadsheet_safe: bool = False) -> pa.Table:
    """Write a table to a staged file and return it as it reads back from the bytes on the disk.

    With `spreadsheet_safe`, texts that a spreadsheet would run get an apostrophe in front. What is returned is without.

    Guarantees:
        What is returned is what was written.  [test_a_staged_table_reads_back]
        With `spreadsheet_safe`, no cell of the file begins as a formula does.  [test_a_safe_file_has_no_formula]
    """
    return stage_parts(iter([table]), file, spreadsheet_safe=spreadsheet_safe)


def stage_parts(
    parts: Iterator[pa.Table], file: StagedFile, *, names: Sequence[str] | None = None, spreadsheet_safe: bool = False
) -> pa.Table:
    """Write parts of a table, at least one, below each other; return the columns `names` as they read back, or all.

    `spreadsheet_safe` as in `stage_table`. Texts of a Parquet file come back as dictionaries, which take little room.
    Only one part is held at a time.

    Guarantees:
        What is returned is what was written.  [test_staged_parts_read_back]
    """
    import pyarrow.parquet as pq  # slow to import: only when a table is written

    kind, where = file.path.suffix.lower(), f"table for {file.path}"
    plain = _plain_parts(parts, where)
    with file.open() as handle:
        schema = _write(map(quote_formulas, plain) if spreadsheet_safe else plain, handle, kind=kind)
    if kind != ".parquet":
        written = read_csv(file.temporary, types=schema)
        written = unquote_formulas(written) if spreadsheet_safe else written
        return written if names is None else written.select([name for name in written.column_names if name in names])
    if names is None:
        return pq.read_table(file.temporary)
    wanted = [name for name in schema.names if name in names]
    texts = [name for name in wanted if pa.types.is_string(schema.field(name).type)]
    read = pq.read_table(file.temporary, columns=wanted, read_dictionary=texts)
    return read.unify_dictionaries().combine_chunks()


def stage_stream(parts: Iterator[pa.Table], file: StagedFile, *, spreadsheet_safe: bool = False) -> WrittenParts:
    """Write parts of a table, at least one, below each other; return what reads them back part by part.

    Guarantees:
        What is read back is what was written.  [test_a_staged_stream_reads_back]
    """
    kind, where = file.path.suffix.lower(), f"table for {file.path}"
    plain = _plain_parts(parts, where)
    with file.open() as handle:
        schema = _write(map(quote_formulas, plain) if spreadsheet_safe else plain, handle, kind=kind)
    return WrittenParts(path=file.temporary, kind=kind, written=schema, spreadsheet_safe=spreadsheet_safe)


@dataclass(frozen=True, kw_only=True)
class WrittenParts:
    """A file that was just written, read back part by part."""

    path: Path
    kind: str
    written: pa.Schema
    spreadsheet_safe: bool = False

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        empty = self.written.empty_table()
        return (unquote_formulas(empty) if self.spreadsheet_safe else empty).schema

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns part by part."""
        wanted = list(self.schema.names if names is None else names)
        for part in self._whole_parts(wanted):
            yield (unquote_formulas(part) if self.spreadsheet_safe else part).select(wanted)

    def _whole_parts(self, wanted: list[str]) -> Iterator[pa.Table]:
        if self.kind != ".parquet":
            yield from read_csv_parts(self.path, types=self.written)
            return
        import pyarrow.parquet as pq  # slow to import: only when a table is read back

        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(batch_size=READ_AT_ONCE, columns=wanted, use_threads=False):
                yield pa.Table.from_batches([batch])


def check_spreadsheet_safe(path: Path) -> None:
    """Raise an `InputError` where no spreadsheet reads texts as formulas."""
    if path.suffix.lower() != ".csv":
        raise InputError(f"{path}: found spreadsheet-safe for a file that is no CSV; only cells of CSV become formulas")


# With apostrophes in front as well, so that quoting can be undone: ='x and '='x stay different.
_FORMULA = r"^'*[=+\-@\t\r]"


def quote_formulas(table: pa.Table) -> pa.Table:
    """The table with an apostrophe before each text, and each name, that a spreadsheet would run.

    Guarantees:
        Different texts stay different.  [test_a_safe_file_has_no_formula]
    """
    columns = [_quote(column) if pa.types.is_string(column.type) else column for column in table.columns]
    return pa.table(columns, names=_quote(pa.array(table.column_names, pa.string())).to_pylist())


def unquote_formulas(table: pa.Table) -> pa.Table:
    """What `quote_formulas` was given."""

    def bare(column: pa.ChunkedArray) -> pa.ChunkedArray:
        quoted = pc.match_substring_regex(column, _FORMULA)
        return pc.if_else(quoted, pc.utf8_slice_codeunits(column, 1), column)

    columns = [bare(column) if pa.types.is_string(column.type) else column for column in table.columns]
    return pa.table(columns, names=bare(pa.array(table.column_names, pa.string())).to_pylist())


def _quote(column: pa.ChunkedArray) -> pa.ChunkedArray:
    formula = pc.match_substring_regex(column, _FORMULA)
    return pc.if_else(formula, pc.binary_join_element_wise(pa.scalar("'"), column, pa.scalar("")), column)


def _plain_parts(parts: Iterator[pa.Table], where: str) -> Iterator[pa.Table]:
    return (normalise_table(part, where=where) for part in parts)


def _write(parts: Iterator[pa.Table], handle: BinaryIO, *, kind: str) -> pa.Schema:
    """Write the parts, and return what they have in common: names and types."""
    first = next(parts)
    if kind == ".parquet":
        import pyarrow.parquet as pq  # slow to import: only when a table is written

        with pq.ParquetWriter(handle, first.schema) as writer:
            for part in chain([first], parts):
                writer.write_table(part)
    else:
        handle.write(_row_bytes([_quoted(pa.array([name])) for name in first.column_names]))
        for part in chain([first], parts):
            _write_csv(part, handle)
    return first.schema


def _write_csv(table: pa.Table, handle: BinaryIO) -> None:
    """Write rows; each slice of rows becomes one string array whose bytes are the text."""
    for start in range(0, table.num_rows, ROWS_AT_ONCE):
        part = table.slice(start, ROWS_AT_ONCE).combine_chunks()
        cells = [_cells(column.combine_chunks()) for column in part.columns]
        # A line with nothing on it is skipped by readers, so a lone null is written as a quoted empty cell.
        empty = '""' if table.num_columns == 1 else ""
        handle.write(_row_bytes([_fill_empty(column, empty) for column in cells]))


def _row_bytes(columns: list[pa.Array]) -> memoryview:
    """Join cells to lines; a string array holds its texts end to end, so its buffer is the file's text."""
    lines = pc.binary_join_element_wise(*columns, pa.scalar(","))
    text = pc.binary_join_element_wise(lines, pa.scalar("\n"), pa.scalar(""))
    _, offsets, data = text.buffers()
    end = int(np.frombuffer(offsets, dtype=np.int32)[text.offset + len(text)])
    return memoryview(data)[:end]


def _fill_empty(cells: pa.Array, empty: str) -> pa.Array:
    filled = pc.fill_null(cells, "")
    return filled if not empty else pc.if_else(pc.equal(filled, ""), empty, filled)


def _cells(column: pa.Array) -> pa.Array:
    """Spell a column so that `read_table` finds the same type and values again."""
    kind = column.type
    if pa.types.is_string(kind):
        return _quoted(column)
    if pa.types.is_floating(kind):
        return _float_cells(column)
    if pa.types.is_decimal(kind):
        return _decimal_cells(column)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        utc = pc.cast(pc.cast(column, pa.timestamp(kind.unit, "UTC")), pa.timestamp(kind.unit))
        return pc.binary_join_element_wise(pc.cast(utc, pa.string()), pa.scalar("Z"), pa.scalar(""))
    return pc.cast(column, pa.string())


def _quoted(column: pa.Array) -> pa.Array:
    special = pc.match_substring_regex(column, r'[",\r\n]')
    if not pc.any(special).as_py():
        return column
    doubled = pc.replace_substring(column, '"', '""')
    quote = pa.scalar('"')
    return pc.if_else(special, pc.binary_join_element_wise(quote, doubled, quote, pa.scalar("")), column)


def _float_cells(column: pa.Array) -> pa.Array:
    """Spell each float with the fewest digits that give it back, and a point even when it is whole."""
    text = pc.cast(column, pa.string())
    whole = pc.match_substring_regex(text, r"^-?[0-9]+$")
    return pc.if_else(whole, pc.binary_join_element_wise(text, pa.scalar(".0"), pa.scalar("")), text)


def _decimal_cells(column: pa.Array) -> pa.Array:
    """Spell decimals in full, without the exponent Arrow uses for small ones."""
    text = pc.cast(column, pa.string())
    if not pc.any(pc.match_substring(text, "E")).as_py():
        return text
    return pa.array([None if value is None else format(value, "f") for value in column.to_pylist()], pa.string())
