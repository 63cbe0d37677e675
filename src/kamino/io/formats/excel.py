"""Read a sheet of an Excel workbook, as text first, like a CSV file: a row of names, then rows of cells.

In a workbook every cell has a type of its own, so that the type of a column follows from its cells, as in CSV.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from kamino.errors import InputError
from kamino.io.csv import with_types
from kamino.io.normalise import check_names
from kamino.io.odd_cells import is_text
from kamino.io.written_cells import PLAIN, WrittenCells

_ROW = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}row"


def read_excel(
    path: Path, *, sheet: str | None = None, private: bool = False, written: WrittenCells = PLAIN
) -> pa.Table:
    """Read a sheet of an `.xlsx` workbook, by default the first. Formulas count as what they last came to.

    With `private`, all columns are strings, whatever the cells hold, and a cell that cannot be read is null.

    Guarantees:
        With `private`, the types do not depend on the cells.  [test_only_the_header_line_is_looked_at]
        With `private`, a row changes no other row, and none is refused.  [test_one_odd_row_changes_no_other]
        Whatever is damaged is told as that.  [test_a_damaged_workbook_is_told]
    """
    rows = _rows(path, sheet, private=private)
    header = next(rows, {})
    width = max((place for place, value in header.items() if value is not None), default=0)
    names = ["" if header.get(place) is None else str(header[place]) for place in range(1, width + 1)]
    check_names(names, where=f"{path}: first row")
    cells: list[list[str | None]] = [[] for _ in names]
    for row in rows:
        if all(value is None for value in row.values()):
            continue
        for place, column in enumerate(cells, start=1):
            column.append(_spelled(row.get(place)))
    text = pa.table({name: pa.array(column, pa.string()) for name, column in zip(names, cells, strict=True)})
    text = written.read(text)
    return text if private else with_types(text, None, where=str(path))


def _rows(path: Path, sheet: str | None, *, private: bool) -> Iterator[dict[int, Any]]:
    """The cells of each row that the sheet has, by the number of their column."""
    openpyxl = _load_openpyxl()
    from openpyxl.worksheet._reader import WorkSheetParser
    from openpyxl.xml.functions import iterparse

    # The library leaves a file open that it cannot read.
    with open(path, "rb") as file, _telling(path):
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        if sheet is not None and sheet not in book.sheetnames:
            raise InputError(f"{path}: found no sheet {sheet!r}; expected one of {', '.join(book.sheetnames)}")
        page = book[sheet] if sheet is not None else book.worksheets[0]
        with page._get_source() as source:
            # Read cell by cell: the library's own loop stops at the first that it cannot read, and fills gaps between
            # the numbers of rows, however large these are.
            parser = WorkSheetParser(
                source, page._shared_strings, True, book.epoch, book._date_formats, book._timedelta_formats
            )
            rows = (each for _, each in iterparse(source) if each.tag == _ROW)
            for number, row in enumerate(rows, start=1):
                parser.col_counter = 0
                found = [_parsed(parser, cell, place=f"{path}: row {number}", private=private) for cell in row]
                row.clear()
                yield dict(pair for pair in found if pair is not None)


def _parsed(parser: Any, cell: Any, *, place: str, private: bool) -> tuple[int, Any] | None:
    """The column and the value of a cell; None for one that cannot be read in a private table."""
    try:
        with warnings.catch_warnings():
            # A number that is no date is told with its value.
            warnings.simplefilter("ignore")
            found = parser.parse_cell(cell)
        return int(found["column"]), found["value"]
    except Exception:  # a cell may be damaged in any way
        if private:
            return None
    raise InputError(f"{place}: found a cell that cannot be read. Open the workbook and save it again.")


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Say that a workbook is damaged, and no more: the library's own text may quote it."""
    try:
        yield
    except (InputError, PermissionError, GeneratorExit):
        raise
    except Exception as error:  # whatever a damaged archive makes the library raise
        raise InputError(
            f"{path}: not a readable workbook ({type(error).__name__}): damaged, or no .xlsx file. Save it again."
        ) from None


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
    text = str(value)
    return text if is_text(text) else None
