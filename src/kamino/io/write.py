"""Write a table to a file, whole or not at all: CSV (also compressed), TSV, JSON lines, Parquet or Feather.

What CSV cannot say: an empty string and a null are both an empty cell, and come back as null; a string that
looks like a number comes back as a number; an integer comes back as `int64`, whatever its width; a decimal
comes back as a float (its places are kept in the file); a zoned timestamp comes back in UTC. Parquet and
Feather keep all of these. A time is written at the resolution of its column: with no more decimals than it needs.

A spreadsheet runs a cell that begins with `=`, `+`, `-` or `@` as a formula. Such texts are written as they are, unless
the file is to be `spreadsheet_safe`: then they get an apostrophe in front, by which a spreadsheet knows a text.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.errors import InputError
from kamino.io.atomic import StagedFile, atomic_file, staged, target_of, telling_what_failed
from kamino.io.csv import read_csv, read_csv_parts
from kamino.io.formats.compressed import compressing, compression_of, kind_of, open_text
from kamino.io.formats.dialect import COMMA, UTF_8, Dialect
from kamino.io.normalise import normalise_table
from kamino.io.parquet import batches_of
from kamino.io.registry import TYPED, WRITTEN
from kamino.schema.files.written_dates import Written, as_texts, read_dates, spell_dates

ROWS_AT_ONCE = 1 << 16
READ_AT_ONCE = 1 << 19
_SEPARATORS = {".csv": COMMA, ".tsv": "\t"}

# How many decimals of a second the times of a column need, by column.
Decimals = Mapping[str, int]
UNKNOWN: Decimals = MappingProxyType({})
# Dates that are written by a format.
NO_FORMAT: Written = MappingProxyType({})


def write_table(table: pa.Table, path: str | os.PathLike[str]) -> None:
    """Write `table` to `path`, with a name that ends as one of `WRITTEN`; an existing file is replaced in one step.

    Raises:
        InputError: The file cannot be written; an old file of this name is untouched and nothing else is left
            behind.

    Guarantees:
        - Reading the file gives the same table, for what CSV can say.  [test_csv_round_trip]
        - Reading the file gives the same table, for Parquet.  [test_parquet_round_trip]
        - Reading the file gives the same table, for TSV, JSON lines and Feather.  [test_formats_round_trip]
        - After a failure the folder is as it was.  [test_a_failing_write_leaves_the_old_file]
    """
    target = Path(path)
    check_table_path(target)
    plain = normalise_table(table, where=f"table for {target}")
    with atomic_file(target) as handle:
        _write(iter([plain]), handle, name=target.name, decimals=_needed_decimals(plain))


def try_table_path(path: Path) -> None:
    """Write a table of no rows where one will be, and leave nothing of it.

    Raises:
        InputError: no table can be written there: the kind of file, or the place, is wrong.
    """
    check_table_path(path)
    with staged(path) as file, telling_what_failed(path), file.open() as handle:
        _write(iter([pa.table({"a": pa.array([], pa.int64())})]), handle, name=path.name, decimals=UNKNOWN)


def check_table_path(path: Path) -> None:
    """Raise an `InputError` if no table can be written to `path`: the kind of file, or the place, is wrong."""
    if kind_of(path) + (path.suffix.lower() if compression_of(path.name) else "") not in WRITTEN:
        raise InputError(
            f"{path}: cannot write this kind of file. Expected a name ending in {', '.join(WRITTEN[:-1])} or "
            f"{WRITTEN[-1]}; or a table of a database, such as duckdb:///file.db#table."
        )
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
    parts: Iterator[pa.Table],
    file: StagedFile,
    *,
    names: Sequence[str] | None = None,
    spreadsheet_safe: bool = False,
    decimals: Decimals = UNKNOWN,
    dates: Written = NO_FORMAT,
) -> pa.Table:
    """Write parts of a table, at least one, below each other; return the columns `names` as they read back, or all.

    `spreadsheet_safe` as in `stage_table`; `decimals` of times that are not given are all that a type has; `dates` are
    written by their formats in a file of text.

    Texts of a Parquet file come back as dictionaries, which take little room.
    Only one part is held at a time.

    Guarantees:
        What is returned is what was written.  [test_staged_parts_read_back]
    """
    plain = _plain_parts(parts, f"table for {file.path}")
    with file.open() as handle:
        parts = map(quote_formulas, plain) if spreadsheet_safe else plain
        schema = _write(parts, handle, name=file.path.name, decimals=decimals, dates=dates)
    if kind_of(file.path) == ".parquet":
        return _parquet_back(file.temporary, schema, names)
    written = read_written(file.temporary, file.path.name, types=schema, dates=dates)
    written = unquote_formulas(written) if spreadsheet_safe else written
    return written if names is None else written.select([name for name in written.column_names if name in names])


def read_written(path: Path, name: str, *, types: pa.Schema, dates: Written = NO_FORMAT) -> pa.Table:
    """Read a file that was written under this name, with the types, and the formats of dates, it was written with."""
    if kind_of(Path(name)) in TYPED or not dates:
        return _read_kind(path, name, types)
    return read_dates(_read_kind(path, name, as_texts(types, dates)), dates, types)


def _read_kind(path: Path, name: str, types: pa.Schema) -> pa.Table:
    kind = kind_of(Path(name))
    if kind == ".parquet":
        from kamino.io.parquet import read_parquet

        return read_parquet(path)
    if kind == ".feather":
        from kamino.io.formats.feather import read_feather

        return read_feather(path)
    if kind == ".jsonl":
        from kamino.io.formats.json_lines import read_json_lines

        return read_json_lines(path, types=types)
    dialect = Dialect(separator=_SEPARATORS.get(kind, COMMA), encoding=UTF_8)
    return read_csv(path, types=types, dialect=dialect, opener=partial(open_text, name=name))


def _parquet_back(path: Path, schema: pa.Schema, names: Sequence[str] | None) -> pa.Table:
    import pyarrow.parquet as pq  # slow to import: only when a table is written

    if names is None:
        return pq.read_table(path)
    wanted = [name for name in schema.names if name in names]
    texts = [name for name in wanted if pa.types.is_string(schema.field(name).type)]
    read = pq.read_table(path, columns=wanted, read_dictionary=texts)
    return read.unify_dictionaries().combine_chunks()


def stage_stream(
    parts: Iterator[pa.Table],
    file: StagedFile,
    *,
    spreadsheet_safe: bool = False,
    decimals: Decimals = UNKNOWN,
    dates: Written = NO_FORMAT,
) -> WrittenParts:
    """Write parts of a table to CSV or Parquet, at least one, below each other; return what reads them back in parts.

    Guarantees:
        What is read back is what was written.  [test_a_staged_stream_reads_back]
    """
    plain = _plain_parts(parts, f"table for {file.path}")
    with file.open() as handle:
        written = map(quote_formulas, plain) if spreadsheet_safe else plain
        schema = _write(written, handle, name=file.path.name, decimals=decimals, dates=dates)
    name = file.path.name
    return WrittenParts(path=file.temporary, name=name, written=schema, spreadsheet_safe=spreadsheet_safe, dates=dates)


@dataclass(frozen=True, kw_only=True)
class WrittenParts:
    """A file that was just written, to get this name, read back part by part."""

    path: Path
    name: str
    written: pa.Schema
    spreadsheet_safe: bool = False
    dates: Written = field(default_factory=dict)

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
        if kind_of(Path(self.name)) != ".parquet":
            dialect, opener = Dialect(separator=COMMA, encoding=UTF_8), partial(open_text, name=self.name)
            types = as_texts(self.written, self.dates)
            for part in read_csv_parts(self.path, types=types, dialect=dialect, opener=opener):
                yield read_dates(part, self.dates, self.written)
            return
        import pyarrow.parquet as pq  # slow to import: only when a table is read back

        with pq.ParquetFile(self.path) as file:
            for batch in batches_of(file, wanted, READ_AT_ONCE):
                yield pa.Table.from_batches([batch])


def check_spreadsheet_safe(path: Path) -> None:
    """Raise an `InputError` where no spreadsheet reads texts as formulas."""
    if kind_of(path) != ".csv":
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
    return pc.if_else(formula, pc.binary_join_element_wise(_text("'"), column, _text("")), column)


def _plain_parts(parts: Iterator[pa.Table], where: str) -> Iterator[pa.Table]:
    return (normalise_table(part, where=where) for part in parts)


def _write(
    parts: Iterator[pa.Table], handle: BinaryIO, *, name: str, decimals: Decimals, dates: Written = NO_FORMAT
) -> pa.Schema:
    """Write the parts as the name of the file says, and return what they have in common: names and types."""
    with compressing(handle, name) as packed:
        return _write_kind(parts, packed, kind=kind_of(Path(name)), decimals=decimals, dates=dates)


def _write_kind(
    parts: Iterator[pa.Table], handle: BinaryIO, *, kind: str, decimals: Decimals, dates: Written
) -> pa.Schema:
    first = next(parts)
    every: Iterator[pa.Table] = chain([first], parts)
    if dates and kind not in TYPED:
        every = (spell_dates(part, dates) for part in every)
    if kind == ".parquet":
        import pyarrow.parquet as pq  # slow to import: only when a table is written

        with pq.ParquetWriter(handle, first.schema, compression="zstd") as writer:
            for part in every:
                writer.write_table(part)
    elif kind == ".feather":
        with pa.ipc.new_file(handle, first.schema) as writer:
            for part in every:
                writer.write_table(part)
    elif kind == ".jsonl":
        for part in every:
            _write_rows(part, handle, lambda piece: _object_lines(piece, decimals), separator=None)
    else:
        separator = _SEPARATORS[kind]
        handle.write(
            _row_bytes(
                [_quoted(pa.array([name], pa.string()), _SPECIAL_IN_NAMES) for name in first.column_names], separator
            )
        )
        for part in every:
            _write_rows(part, handle, lambda piece: _separated(piece, decimals, separator), separator=separator)
    return first.schema


def _write_rows(
    table: pa.Table, handle: BinaryIO, spell: Callable[[pa.Table], list[pa.Array]], *, separator: str | None
) -> None:
    """Write rows; each slice of rows becomes one string array whose bytes are the text."""
    for start in range(0, table.num_rows, ROWS_AT_ONCE):
        handle.write(_row_bytes(spell(table.slice(start, ROWS_AT_ONCE).combine_chunks()), separator or ""))


def _separated(part: pa.Table, decimals: Decimals, separator: str) -> list[pa.Array]:
    special = _SPECIAL.replace(",", separator)
    cells = [_cells(part.column(name).combine_chunks(), decimals.get(name), special) for name in part.column_names]
    # A line with nothing on it is skipped by readers, so a lone null is written as a quoted empty cell.
    empty = '""' if part.num_columns == 1 else ""
    return [_fill_empty(column, empty) for column in cells]


def _object_lines(part: pa.Table, decimals: Decimals) -> list[pa.Array]:
    """The pieces of each line: an opening brace, then names and values in turn, and a closing brace."""
    import json

    from kamino.io.formats.json_lines import json_line_cells

    pieces: list[pa.Array | pa.Scalar] = []
    for place, name in enumerate(part.column_names):
        column = part.column(name).combine_chunks()
        texts = _time_cells(column, decimals.get(name)) if pa.types.is_temporal(column.type) else column
        pieces += [_text(("," if place else "{") + json.dumps(name, ensure_ascii=False) + ":")]
        pieces += [json_line_cells(texts)]
    return [*pieces, _text("}")]


def _text(text: str) -> pa.Scalar:
    # Where no type is given, Arrow looks for other packages to find one, for every text anew.
    return pa.scalar(text, pa.string())


def _row_bytes(columns: list[pa.Array], separator: str) -> memoryview:
    """Join cells to lines; a string array holds its texts end to end, so its buffer is the file's text."""
    lines = pc.binary_join_element_wise(*columns, _text(separator))
    text = pc.binary_join_element_wise(lines, _text("\n"), _text(""))
    _, offsets, data = text.buffers()
    end = int(np.frombuffer(offsets, dtype=np.int32)[text.offset + len(text)])
    return memoryview(data)[:end]


def _fill_empty(cells: pa.Array, empty: str) -> pa.Array:
    filled = pc.fill_null(cells, "")
    return filled if not empty else pc.if_else(pc.equal(filled, ""), empty, filled)


def _cells(column: pa.Array, decimals: int | None, special: str) -> pa.Array:
    """Spell a column so that `read_table` finds the same type and values again."""
    kind = column.type
    if pa.types.is_string(kind):
        return _quoted(column, special)
    if pa.types.is_floating(kind):
        return _float_cells(column)
    if pa.types.is_decimal(kind):
        return _decimal_cells(column)
    return _time_cells(column, decimals) if pa.types.is_temporal(kind) else pc.cast(column, pa.string())


def _time_cells(column: pa.Array, decimals: int | None) -> pa.Array:
    """Spell times with so many decimals of a second, or all that the type has; zoned ones in UTC."""
    kind = column.type
    if not pa.types.is_timestamp(kind):
        return pc.cast(column, pa.string())
    plain = pc.cast(column, pa.timestamp(kind.unit, "UTC")) if kind.tz is not None else column
    text = pc.cast(pc.cast(plain, pa.timestamp(kind.unit)), pa.string())
    if decimals is not None and decimals < _PLACES[kind.unit]:
        text = pc.utf8_slice_codeunits(text, 0, _LENGTH + (decimals + 1 if decimals else 0))
    if kind.tz is None:
        return text
    return pc.binary_join_element_wise(text, _text("Z"), _text(""))


# Digits of a second that a type has, and the letters of a time before them.
_PLACES = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_LENGTH = len("2024-01-31 12:00:00")


def _needed_decimals(table: pa.Table) -> Decimals:
    """The decimals that the times of each column need, so that none is lost."""
    found = {}
    for each, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_timestamp(each.type):
            places = _PLACES[each.type.unit]
            ticks = pc.cast(column, pa.int64()).drop_null().to_numpy()
            fits = (each for each in range(places) if not np.any(ticks % 10 ** (places - each)))
            found[each.name] = next(fits, places)
    return found


_SPECIAL = r'[",\r\n]'
# A name is also quoted where it holds what may be taken for the separator of the file.
_SPECIAL_IN_NAMES = r'[",;|\t\r\n]'


def _quoted(column: pa.Array, marks: str) -> pa.Array:
    # Most columns have few values, and none to quote.
    if not pc.any(pc.match_substring_regex(pc.unique(column), marks)).as_py():
        return column
    special = pc.match_substring_regex(column, marks)
    doubled = pc.replace_substring(column, '"', '""')
    quote = _text('"')
    return pc.if_else(special, pc.binary_join_element_wise(quote, doubled, quote, _text("")), column)


def _float_cells(column: pa.Array) -> pa.Array:
    """Spell each float with the fewest digits that give it back, and a point even when it is whole."""
    text = pc.cast(column, pa.string())
    whole = pc.match_substring_regex(text, r"^-?[0-9]+$")
    return pc.if_else(whole, pc.binary_join_element_wise(text, _text(".0"), _text("")), text)


def _decimal_cells(column: pa.Array) -> pa.Array:
    """Spell decimals in full, without the exponent Arrow uses for small ones."""
    text = pc.cast(column, pa.string())
    if not pc.any(pc.match_substring(text, "E")).as_py():
        return text
    return pa.array([None if value is None else format(value, "f") for value in column.to_pylist()], pa.string())
