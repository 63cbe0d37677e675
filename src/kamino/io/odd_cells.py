"""Cells that the type of their column does not hold: bytes that are no text, a day with a time, a value without a text.

Whether a column has one is private. Where a private table is read, such a cell becomes null; no type and no error tells
of it. For the table's owner it is an error that names the column.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.io.spelling_cells import spell_scalar

MILLISECONDS_PER_DAY = 86_400_000
_LAST_DATE32 = 2**31 - 1


def is_text(text: str) -> bool:
    """Whether a text has no half of a pair of surrogates, which UTF-8 does not hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def readable_text(column: pa.ChunkedArray, *, otherwise: str | None = None) -> pa.ChunkedArray | None:
    """Return a string column with null for each cell that is not UTF-8; None if every cell is.

    A cell that is not UTF-8 is read in the encoding `otherwise`, if one is given, by itself.
    """
    with contextlib.suppress(pa.ArrowInvalid):
        column.validate(full=True)
        return None
    encodings = ("utf-8",) if otherwise is None else ("utf-8", otherwise)
    return pa.chunked_array([_decoded(chunk, encodings) for chunk in column.chunks], type=pa.string())


def _decoded(chunk: pa.Array, encodings: Sequence[str]) -> pa.Array:
    cells = chunk.cast(pa.binary()).to_pylist()
    return pa.array([None if cell is None else _text_of_bytes(cell, encodings) for cell in cells], pa.string())


def _text_of_bytes(cell: bytes, encodings: Sequence[str]) -> str | None:
    for encoding in encodings:
        with contextlib.suppress(UnicodeDecodeError):
            return cell.decode(encoding)
    return None


def whole_days(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, bool]:
    """Return a date64 column as date32, null where a cell is no whole day, and whether there is such a cell."""
    chunks, odd = [], False
    for chunk in column.chunks:
        missing = np.asarray(chunk.is_null())
        ticks = np.asarray(pc.fill_null(chunk.view(pa.int64()), 0))
        days, rest = np.divmod(ticks, MILLISECONDS_PER_DAY)
        lost = (rest != 0) | (np.abs(days) > _LAST_DATE32)
        odd = odd or bool(lost.any())
        days32 = np.where(lost, 0, days).astype(np.int32)
        chunks.append(pa.array(days32, pa.int32(), mask=missing | lost).view(pa.date32()))
    return pa.chunked_array(chunks, type=pa.date32()), odd


def as_declared(table: pa.Table, declared: pa.Schema) -> pa.Table:
    """Return the columns in the types that are declared for them, null where a cell does not fit."""
    columns = [_cast(table.column(field.name), field.type) for field in declared]
    return pa.Table.from_arrays(columns, schema=declared)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type == kind:
        return column
    try:
        return column.cast(kind)
    except pa.ArrowException:
        return pa.chunked_array([pa.array([_held(cell, kind) for cell in column], kind)])


def _held(cell: pa.Scalar, kind: pa.DataType) -> object:
    try:
        return cell.cast(kind).as_py()
    except (pa.ArrowException, ValueError, OverflowError):
        return None


def spelled_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column as text, each cell spelled by itself: which type its values have depends on all.

    One 2.5 among integers makes all of them floats, one with a longer fraction gives all decimals its scale, and one
    nanosecond all times its unit.

    Guarantees:
        What a cell becomes follows from its value alone.  [test_a_dictionary_is_spelled_cell_by_cell]
    """
    return pa.chunked_array([_listed(chunk).take(chunk.indices) for chunk in column.chunks], type=pa.string())


def _listed(chunk: pa.DictionaryArray) -> pa.Array:
    """The texts of the values of a dictionary."""
    values, kind = chunk.dictionary, chunk.type.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view":
        return values.cast(pa.string())
    return pa.array([spell_scalar(value) for value in values], pa.string())
