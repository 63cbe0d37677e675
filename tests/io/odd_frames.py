"""Data frames as readers under trial: pandas, polars, pyarrow, dask, and what speaks Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from tests.io.odd_reading import Cells, Column, OddReader
from tests.io.oddities import ALIKE, MISSING, ODD, TEXTS, THEMES, TIMES

# Before, dask made text of objects in ways that cannot be undone.
HAS_DASK = int(version("dask").partition(".")[0]) >= 2025
ANY_CELLS = {theme: Column(plain=(*cells, *MISSING[:4]), odd=ODD) for theme, cells in THEMES.items()}
LIKE_CELLS = {theme: Column(plain=THEMES[theme], odd=odd) for theme, odd in ALIKE.items()}
# In a category, what is equal is one value, which is the first of them: 1 is then True, and a day a moment of numpy.
_UNEQUAL = tuple(each for each in ODD if type(each) not in (bool, np.bool_, np.datetime64))
CATEGORY_CELLS = {
    theme: Column(plain=(*cells, *MISSING[:4]), odd=_UNEQUAL, beside=ALIKE[theme]) for theme, cells in THEMES.items()
} | {"truths": Column(plain=THEMES["truths"], odd=(*ALIKE["truths"], *TEXTS, *TIMES), beside=ALIKE["truths"])}
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


_WITH_NULLS = {
    kind: getattr(pd, str(kind).replace("u", "U").replace("int", "Int") + "Dtype")()
    for kind in (pa.int8(), pa.uint16(), pa.int64(), pa.uint64())
} | {pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype("python")}


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


def as_pandas_finds(cells: Cells) -> pd.DataFrame:
    """Texts, or objects as soon as something else is among them: pandas decides, and without a text on any type."""
    frame = pd.DataFrame({name: pd.Series(column) for name, column in cells.items()})
    are_texts = [isinstance(kind, pd.StringDtype) or kind == "object" for kind in frame.dtypes]
    if not all(are_texts) or any(all(cell is None for cell in column) for column in cells.values()):
        raise ValueError("found a column without a text, which pandas takes for numbers or times")
    return frame


def by_pandas(kind: Any) -> Callable[[Cells], pd.DataFrame]:
    """Frames whose columns are of a type of pandas."""
    return lambda cells: pd.DataFrame(
        {name: pd.Series(objects({"a": c})["a"], dtype=kind) for name, c in cells.items()}
    )


def by_arrow(cells: Cells) -> pd.DataFrame:
    """Columns of pandas that hold Arrow arrays."""
    table = arrow_table(cells)
    return pd.DataFrame({name: pd.arrays.ArrowExtensionArray(table[name]) for name in table.column_names})


def declared(cells: Cells) -> pd.DataFrame:
    """Columns of the types of pandas itself, those with nulls where there are two."""
    held = arrow_table(cells)
    return held.to_pandas(types_mapper=_WITH_NULLS.get, coerce_temporal_nanoseconds=False)


def sparse(cells: Cells) -> pd.DataFrame:
    """Sparse columns of objects."""
    return pd.DataFrame(
        {n: pd.arrays.SparseArray(each.to_numpy(), dtype="Sparse[object]") for n, each in objects(cells).items()}
    )


def run_ends(cells: Cells) -> pa.Table:
    """Runs of equal values, of which dictionaries are made."""
    return arrow_table(cells, lambda array: pc.run_end_encode(array))


def _relation(cells: Cells) -> Any:
    table = arrow_table(cells)
    return duckdb.from_arrow(table)


def listed_by_arrow(cells: Cells) -> pa.Table:
    """Dictionaries of values of the type that Arrow finds for them."""
    return pa.table({name: pa.array(column).dictionary_encode() for name, column in cells.items()})


def categories_by_arrow(cells: Cells) -> pa.Table:
    """Categories of pandas as Arrow takes them."""
    return pa.Table.from_pandas(categories(cells), preserve_index=False)


def _stream(cells: Cells) -> Any:
    return arrow_table(cells).to_reader()


def _polars(cells: Cells) -> pl.DataFrame:
    return pl.DataFrame({name: pl.from_arrow(column) for name, column in zip(cells, arrow_table(cells), strict=True)})


def _lazy(cells: Cells) -> pl.LazyFrame:
    return _polars(cells).lazy().filter(pl.lit(True))


def _polars_texts(kind: Any) -> Callable[[Cells], pl.DataFrame]:
    return lambda cells: pl.DataFrame({name: pl.Series(column, dtype=kind) for name, column in cells.items()})


def _dask(make: Callable[[Cells], pd.DataFrame]) -> Callable[[Cells], Any]:
    def frame(cells: Cells) -> Any:
        import dask.dataframe as dd

        return dd.from_pandas(make(cells), npartitions=2, sort=False)

    return frame


def reader(name: str, make: Callable[[Any], Any], columns: Mapping[str, Column], share: int = 2) -> OddReader:
    """A reader of frames that are made without a file."""
    return OddReader(name=name, columns=columns, make=lambda cells, folder: make(cells), share=share)


# What polars has no type for is no column of it.
_NOT_OF_POLARS = (pa.float16(), pa.date64(), pa.time32("s"), pa.decimal256(76, 10), pa.timestamp("s"))
POLARS_CELLS = {name: each for name, each in ARROW_CELLS.items() if ARROW_TYPES[name] not in _NOT_OF_POLARS}

PANDAS_CELLS = {
    text: ARROW_CELLS[text]
    for text, kind in ARROW_TYPES.items()
    if kind in _WITH_NULLS or pa.types.is_floating(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind)
}
# Of moments alone, pandas makes a sparse column that has lost their zone.
SPARSE_CELLS = {theme: ANY_CELLS[theme] for theme in ("integers", "floats", "decimals", "truths", "texts")}
# What has no runs, and what DuckDB has no type for.
RUN_CELLS = {text: each for text, each in ARROW_CELLS.items() if text not in ("string_view", "null")}
DUCKDB_CELLS = {
    text: ARROW_CELLS[text]
    for text in (
        *("int8", "uint16", "int64", "uint64", "float", "double"),
        *("bool", "string", "date32[day]", "timestamp[us]"),
    )
}

_OF_DASK = (
    reader("dask-objects", _dask(objects), ANY_CELLS, share=1),
    reader("dask-categories", _dask(categories), CATEGORY_CELLS, share=1),
)
FRAMES: tuple[OddReader, ...] = (
    reader("pandas-objects", objects, ANY_CELLS, share=4),
    reader("pandas-categories", categories, CATEGORY_CELLS, share=4),
    reader("pandas-texts", as_pandas_finds, {"texts": Column(plain=THEMES["texts"], odd=ODD, beside=TEXTS)}),
    reader("pandas-strings", by_pandas("string[python]"), TEXT_CELLS),
    reader("pandas-arrow", by_arrow, ARROW_CELLS),
    reader("pandas-declared", declared, PANDAS_CELLS),
    reader("pandas-sparse", sparse, SPARSE_CELLS, share=1),
    reader("polars", _polars, POLARS_CELLS),
    reader("polars-lazy", _lazy, POLARS_CELLS),
    reader("polars-categories", _polars_texts(pl.Categorical), TEXT_CELLS),
    reader("arrow", arrow_table, ARROW_CELLS),
    reader("arrow-stream", _stream, ARROW_CELLS),
    reader("arrow-runs", run_ends, RUN_CELLS, share=1),
    reader("duckdb-relation", _relation, DUCKDB_CELLS, share=1),
    reader("arrow-dictionaries", listed_by_arrow, LIKE_CELLS, share=4),
    reader("arrow-categories", categories_by_arrow, LIKE_CELLS, share=4),
    *(_OF_DASK if HAS_DASK else ()),
)
