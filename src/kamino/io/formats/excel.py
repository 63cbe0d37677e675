"""Read a sheet of an Excel workbook, as text first, like a CSV file: a row of names, then rows of cells.

In a workbook every cell has a type of its own, so that the type of a column follows from its cells, as in CSV.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from kamino.errors import InputError
from kamino.io.csv import with_types
from kamino.io.normalise import check_names


def read_excel(path: Path, *, sheet: str | None = None, as_text: bool = False) -> pa.Table:
    """Read a sheet of an `.xlsx` workbook, by default the first. Formulas count as what they last came to.

    With `as_text`, all columns are strings, whatever the cells hold.

    Guarantees:
        With `as_text`, the types do not depend on the cells.  [test_only_the_header_line_is_looked_at]
    """
    rows = _rows(path, sheet)
    header = next(rows, ())
    while header and header[-1] is None:
        header = header[:-1]
    names = ["" if cell is None else str(cell) for cell in header]
    check_names(names, where=f"{path}: first row")
    cells: list[list[str | None]] = [[] for _ in names]
    for row in rows:
        if all(value is None for value in row):
            continue
        for place, column in enumerate(cells):
            column.append(_spelled(row[place]) if place < len(row) else None)
    text = pa.table({name: pa.array(column, pa.string()) for name, column in zip(names, cells, strict=True)})
    return text if as_text else with_types(text, None, where=str(path))


def _rows(path: Path, sheet: str | None) -> Iterator[tuple[Any, ...]]:
    openpyxl = _load_openpyxl()
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except PermissionError:
        raise
    except Exception as error:  # whatever a damaged archive makes the library raise; its text may quote the file
        raise InputError(
            f"{path}: not a readable workbook ({type(error).__name__}): damaged, or no .xlsx file. Save it again."
        ) from None
    if sheet is not None and sheet not in book.sheetnames:
        raise InputError(f"{path}: found no sheet {sheet!r}; expected one of {', '.join(book.sheetnames)}")
    try:
        yield from (book[sheet] if sheet is not None else book.worksheets[0]).iter_rows(values_only=True)
    finally:
        book.close()


def _load_openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError:
        raise InputError(
            "reading a workbook needs the package openpyxl, which is not installed. Install it with: "
            "pip install 'kamino-synth[excel]'"
        ) from None
    return openpyxl


def _spelled(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        # A workbook holds all numbers as floats: a whole one is shown without a point.
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, dt.datetime):
        return value.date().isoformat() if value.time() == dt.time() else value.isoformat(sep=" ")
    return str(value)
