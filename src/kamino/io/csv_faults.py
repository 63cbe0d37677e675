"""Say where a CSV file is at fault, by file and line, without quoting it.

The fast parser stops at a fault with a text that quotes the row. This slow second look runs on faulty files
only.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kamino.advice import reading
from kamino.errors import InputError
from kamino.io.formats.dialect import COMMA, Settled
from kamino.io.odd_cells import is_text


def header_of(path: Path, how: Settled) -> list[str]:
    """Return the column names: the cells of the first line that is not blank. What stands behind it has no say."""
    try:
        with unlimited_cells(), _lines(how.opener(path), errors="surrogateescape") as lines:
            names = next((row for row in csv.reader(lines, delimiter=how.separator, strict=True) if row), None)
    except csv.Error:
        raise InputError(
            f"{path}:1: a quote in the header is not closed, or text follows its closing quote. Close it, and write a "
            "quote inside a name twice."
        ) from None
    if names is None:
        raise InputError(f"{path}: the file is empty. Expected a header row with the column names.")
    if not all(map(is_text, names)):
        _raise_not_utf8(path, how)
    return names


def find_open_quote(path: Path, how: Settled) -> None:
    """Raise an error when a quoted cell is never closed, or text follows its closing quote."""
    last_line = 0
    try:
        with unlimited_cells(), _lines(how.opener(path)) as lines:
            reader = csv.reader(lines, delimiter=how.separator, strict=True)
            for _ in reader:
                last_line = reader.line_num
    except UnicodeDecodeError:
        _raise_not_utf8(path, how)
    except csv.Error:
        raise InputError(
            f"{path}:{last_line + 1}: a quoted cell is not closed, or text follows its closing quote. Close "
            "it, and write a quote inside a cell twice."
        ) from None


def find_fault(path: Path, how: Settled, *, num_columns: int) -> None:
    """Raise the error that made the parser stop; return if the file has a header row and nothing else."""
    num_rows = 0
    try:
        with unlimited_cells(), _lines(how.opener(path)) as lines:
            reader = csv.reader(lines, delimiter=how.separator)
            start = 1
            for row in reader:
                if row and len(row) != num_columns:
                    raise InputError(
                        f"{path}:{start}: the row has {len(row)} cells, expected {num_columns} as in the "
                        f"header. Complete the row, and quote cells that contain {_named(how.separator)}."
                    )
                num_rows += bool(row)
                start = reader.line_num + 1
    except UnicodeDecodeError:
        _raise_not_utf8(path, how)
    if num_rows > 1:
        raise InputError(
            f"{path}: cannot be parsed as CSV; a row may be longer than 16 MiB. Write the file again, or use Parquet."
        )


def _lines(handle: BinaryIO, errors: str = "strict") -> io.TextIOWrapper:
    """Read `handle` as text; closing the text closes the file."""
    return io.TextIOWrapper(handle, encoding="utf-8-sig", errors=errors, newline="")


def _raise_not_utf8(path: Path, how: Settled) -> None:
    with how.opener(path) as handle:
        for number, line in enumerate(handle, start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                raise InputError(
                    f"{path}:{number}: found bytes that are not UTF-8. Save the file as UTF-8, or name its encoding "
                    f"({reading('encoding', 'cp1252')})."
                ) from None


def _named(separator: str) -> str:
    """The separator in words, and how to name another where it was not told."""
    return "a comma" if separator == COMMA else f"the separator {separator!r} (or name another: {reading('separator')})"


@contextmanager
def unlimited_cells() -> Iterator[None]:
    """Lift Python's limit on the length of one cell, which valid files may exceed."""
    before = csv.field_size_limit(sys.maxsize)
    try:
        yield
    finally:
        csv.field_size_limit(before)
