"""Data frames as readers under trial: pandas, polars, pyarrow, dask, and what speaks Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from tests.io.odd_reading import Cells, Column, OddReader
from tests.io.oddities import MISSING, ODD, TEXTS, THEMES, TIMES

ANY_CELLS = {theme: Column(plain=cells, odd=ODD) for theme, cells in THEMES.items()}
TEXT_CELLS = {theme: Column(plain=cells, odd=(None, *TEXTS)) for theme, cells in THEMES.items() if theme == "texts"}
ARROW_TYPES: Mapping[str, pa.DataType] = {
    **{str(kind): kind for kind in (pa.int8(), pa.uint16(), pa.int64(), pa.uint64(), pa.float32(), pa.float64())},
    **{str(kind): kind for kind in (pa.bool_(), pa.string(), pa.large_string(), pa.string_view(), pa.null())},
    **{str(kind): kind for kind in (pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns"), pa.duration("us"))},
    **{str(kind): kind for kind in (pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("ns"))},
    **{str(kind): kind for kind in (pa.timestamp("ms", "Europe/Berlin"), pa.timestamp("us", "+01:00"))},
    **{str(kind): kind for kind in (pa.decimal128(9, 2), pa.decimal128(38, 0), pa.decimal256(76, 10), pa.float16())},
}  # fmt: skip
_TICKS = (0, 1, 1_000, 86_400_000, 1_700_000_000_000, -1, 2**31 - 1, -(2**31), 2**62, -(2**62), 2**63 - 1)


def _odd_arrow(kind: pa.DataType) -> tuple[pa.Array, ...]:
    """Arrays of one cell: missing, the ends of the type, and what its bytes can be beside."""
    made = [pa.nulls(1, kind)]
    for value in (*_TICKS, *TEXTS, *MISSING, *TIMES, 0.1, float("inf"), float("nan"), b"\xff\xfe", True):
        for make in (_by_value, _by_bits):
            array = make(value, kind)
            if array is not None:
                made.append(array)
    return tuple(made)


def _by_value(value: Any, kind: pa.DataType) -> pa.Array | None:
    try:
        return pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
        return None


def _by_bits(value: Any, kind: pa.DataType) -> pa.Array | None:
    """A cell of these bytes, whatever the type makes of them."""
    try:
        if type(value) is int:
            wide = pa.int64() if kind.bit_width == 64 else pa.int32()
            return pa.array([value], wide).view(kind)
        if isinstance(value, bytes) and kind in (pa.string(), pa.large_string(), pa.string_view()):
            raw = pa.array([value], pa.binary() if kind == pa.string() else pa.large_binary())
            plain = pa.Array.from_buffers(pa.string() if kind == pa.string() else pa.large_string(), 1, raw.buffers())
            return plain if plain.type == kind else plain.cast(kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    return None


def arrow_column(kind: pa.DataType) -> Column:
    """Cells of an Arrow type, each an array of one."""
    plain = [_by_value(value, kind) for cells in THEMES.values() for value in cells]
    return Column(plain=tuple(each for each in plain if each is not None), odd=_odd_arrow(kind))


ARROW_CELLS = {text: arrow_column(kind) for text, kind in ARROW_TYPES.items()}


def arrow_table(cells: Cells, encode: Callable[[pa.Array], pa.Array] = lambda array: array) -> pa.Table:
    """A table of arrays of one cell, its types those that the columns are named by."""
    return pa.table(
        {name: encode(pa.concat_arrays([pa.array([], ARROW_TYPES[name]), *column])) for name, column in cells.items()}
    )


def objects(cells: Cells) -> pd.DataFrame:
    """Columns of objects."""
    made = {}
    for name, column in cells.items():
        held = np.empty(len(column), dtype=object)
        for place, cell in enumerate(column):
            held[place] = cell
        made[name] = pd.Series(held, dtype=object)
    return pd.DataFrame(made)


def categories(cells: Cells) -> pd.DataFrame:
    """Categories as pandas finds them."""
    return objects(cells).astype("category")


def _columns(make: Callable[[Any], Any]) -> Callable[[Cells, Path], Any]:
    return lambda cells, folder: make(cells)


FRAMES: tuple[OddReader, ...] = (OddReader(name="arrow", columns=ARROW_CELLS, make=_columns(arrow_table)),)
