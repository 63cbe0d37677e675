"""Cells that the type of their column does not hold: bytes that are no text, a day with a time, a value without a text.

Whether a column has one is private. Where a private table is read, such a cell becomes null; no type and no error tells
of it. For the table's owner it is an error that names the column.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MILLISECONDS_PER_DAY = 86_400_000
_LAST_DATE32 = 2**31 - 1


def is_text(text: str) -> bool:
    """Whether a text has no half of a pair of surrogates, which UTF-8 does not hold."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def spell(value: object) -> str | None:
    """Return the text of a cell by itself; None where it has none.

    A whole float is spelled as the integer it equals: whether a column holds 1 or 1.0 depends on its other cells.

    Guarantees:
        Nothing that a cell holds raises.  [test_a_cell_without_text_is_null]
    """
    try:
        if isinstance(value, float | np.floating) and value == value and abs(value) != float("inf"):
            whole = int(value)
            return str(whole) if whole == value else repr(float(value))
        text = str(value)
        text.encode("utf-8")
    except Exception:  # a cell may hold any object, whose text may fail in any way
        return None
    return text


def texts_of(values: list[Any]) -> pa.Array:
    """Return the text of each value, null where it is None or has none."""
    return pa.array([None if value is None else spell(value) for value in values], pa.string())


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


def spelled_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary column of numbers as text: which type its values have depends on all of them."""
    chunks = []
    for chunk in column.chunks:
        values = chunk.dictionary
        if pa.types.is_floating(values.type):
            values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
        chunks.append(texts_of(values.to_pylist()).take(chunk.indices))
    return pa.chunked_array(chunks, type=pa.string())
