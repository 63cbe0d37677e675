"""Read a CSV file: a header row, double quotes around cells that need them; separator and encoding by its dialect.

An empty cell is null, quoted or not; no other text is. Blank lines are skipped. Types are found by `infer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from kamino.errors import InputError
from kamino.io.csv_faults import find_fault, find_open_quote, header_of
from kamino.io.csv_lines import count_quotes
from kamino.io.formats.compressed import open_text, telling_damage
from kamino.io.formats.dialect import Dialect, Opener, Settled, settle
from kamino.io.infer import infer_column
from kamino.io.lending import lent
from kamino.io.normalise import check_names, normalise_table

# A row must fit in one block.
BLOCK_BYTES = 1 << 24


def read_csv(
    path: Path,
    *,
    types: pa.Schema | None = None,
    as_text: bool = False,
    dialect: Dialect = Dialect(),
    opener: Opener = open_text,
) -> pa.Table:
    """Read a CSV file, plain or compressed by gzip or zstd, with types that fit each whole column.

    With `types`, columns get these instead; with `as_text`, all are strings, whatever the cells hold. What `dialect`
    does not say of separator and encoding is found in the header line.

    Guarantees:
        - With `as_text`, the types do not depend on the cells.  [test_as_text_ignores_the_cells]
        - No message holds a cell of the file.  [test_no_cell_in_any_message]
        - Types are found from the whole column.  [test_type_is_found_from_the_whole_column]
        - With `types`, a cell of another type is an `InputError`.  [test_a_cell_of_another_type_is_told]
    """
    with telling_damage(path):
        how = settle(path, opener, dialect)
        names = check_header(path, how)
        check_quotes(path, how)
        text = _read_text(path, names, how)
    return text if as_text else with_types(text, types, where=str(path))


def with_types(text: pa.Table, types: pa.Schema | None, *, where: str) -> pa.Table:
    """Columns of text as the types that are known; as the first that fits all cells where none is known."""
    wanted = {field.name: field.type for field in types} if types is not None else {}
    columns = [
        _typed(column, wanted.get(name), f"{where}: column {name!r}")
        for name, column in zip(text.column_names, text.columns, strict=True)
    ]
    return normalise_table(pa.Table.from_arrays(columns, names=text.column_names), where=where)


def check_header(path: Path, how: Settled) -> list[str]:
    """Return the names of the columns; refuse names that cannot be."""
    names = header_of(path, how)
    check_names(names, where=str(path))
    return names


def check_quotes(path: Path, how: Settled) -> None:
    """Refuse a quote that is never closed."""
    if count_quotes(path, how) % 2 == 1:
        # The parser takes an open quote for one cell that reaches to the end of the file.
        find_open_quote(path, how)


def open_batches(path: Path, names: list[str], how: Settled) -> Iterator[pa.RecordBatch]:
    """Read the columns as strings, batch by batch, as `read_csv` reads them."""
    import pyarrow.csv as csv  # slow to import: only when a file is read

    options = parser_options(names, how)
    with how.opener(path) as handle, lent(handle):
        reader = csv.open_csv(handle, **options)
        try:
            if reader.schema.names != names:
                raise unclear_header(path)
            yield from reader
        finally:
            reader.close()
            del reader


def read_csv_parts(path: Path, *, types: pa.Schema, dialect: Dialect, opener: Opener) -> Iterator[pa.Table]:
    """Read a CSV file part by part, with columns of these types: one that was written so."""
    names = list(types.names)
    for batch in open_batches(path, names, settle(path, opener, dialect)):
        columns = [
            _typed(pa.chunked_array([column]), types.field(name).type, f"{path}: column {name!r}")
            for name, column in zip(names, batch.columns, strict=True)
        ]
        yield normalise_table(pa.Table.from_arrays(columns, names=names), where=str(path))


def unclear_header(path: Path) -> InputError:
    """Say that the header, which two parsers read differently, must be written in another way."""
    return InputError(f"{path}:1: the header cannot be read in one way only. Quote each name that has a quote in it.")


def parser_options(
    names: list[str],
    how: Settled,
    wanted: list[str] | None = None,
    *,
    block: int | None = None,
    lose: Callable[[Any], str] | None = None,
) -> dict[str, Any]:
    """How the fast parser reads a file: every cell as a string, an empty one as null.

    `lose` is told of a row with more or fewer cells than there are columns; bytes that are no text then pass.
    """
    import pyarrow.csv as csv

    return {
        "read_options": csv.ReadOptions(block_size=block or BLOCK_BYTES),
        "parse_options": csv.ParseOptions(newlines_in_values=True, delimiter=how.separator, invalid_row_handler=lose),
        "convert_options": csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            check_utf8=lose is None,
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            null_values=[""],
            include_columns=None if wanted is None or wanted == names else wanted,
        ),
    }


def _typed(text: pa.ChunkedArray, wanted: pa.DataType | None, where: str) -> pa.ChunkedArray:
    """The column as the type it is known to have; as the first that fits where none is known."""
    if wanted is not None and (pa.types.is_string(wanted) or pa.types.is_large_string(wanted)):
        return text
    if wanted is not None and pa.types.is_decimal(wanted):
        # By way of a double, or of an integer, long decimals would change or not fit.
        with suppress(pa.ArrowInvalid):
            return text.cast(wanted)
    found = infer_column(text)
    if wanted is None:
        return found
    try:
        return found.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # The library's own text quotes a cell.
        raise InputError(f"{where}: found a cell that is no {wanted}; expected each cell to be one, or empty") from None


def _read_text(path: Path, names: list[str], how: Settled) -> pa.Table:
    """Read all cells as strings, an empty one as null."""
    table = _parse(path, names, how)
    if table is None:
        find_fault(path, how, num_columns=len(names))
        return pa.table({name: pa.array([], pa.string()) for name in names})
    if table.column_names != names:
        raise unclear_header(path)
    return table


def _parse(path: Path, names: list[str], how: Settled) -> pa.Table | None:
    """Run the fast parser. None when it fails: its error quotes a row, so it must not reach a traceback."""
    import pyarrow.csv as csv  # slow to import: only when a file is read

    options = parser_options(names, how)
    try:
        with how.opener(path) as handle, lent(handle):
            return csv.read_csv(handle, **options)
    except pa.ArrowInvalid:
        return None
