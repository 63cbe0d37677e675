"""Parquet and Feather files as readers under trial, read as a whole and in parts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
from tests.io.odd_frames import ARROW_CELLS, LIKE_CELLS, arrow_table, categories, categories_by_arrow, listed_by_arrow
from tests.io.odd_reading import Cells, OddReader, Seen

from kamino.io.streams.parquet_parts import ParquetParts

# Times of day and durations are refused in files, by their type.
FILE_CELLS = {name: each for name, each in ARROW_CELLS.items() if not name.startswith(("time32", "time64", "duration"))}
PARQUET_CELLS = {name: each for name, each in FILE_CELLS.items() if name != "halffloat"}

# Arrow does not read back what it writes of them.
FEATHER_CATEGORIES = {name: each for name, each in LIKE_CELLS.items() if name not in ("intervals", "periods")}


def _parquet(make: Callable[[Cells], pa.Table]) -> Callable[[Cells, Path], Path]:
    def write(cells: Cells, folder: Path) -> Path:
        pq.write_table(make(cells), folder / "t.parquet", row_group_size=3)
        return folder / "t.parquet"

    return write


def _by_pandas(cells: Cells, folder: Path) -> Path:
    categories(cells).to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def _feather(make: Callable[[Cells], pa.Table]) -> Callable[[Cells, Path], Path]:
    def write(cells: Cells, folder: Path) -> Path:
        feather.write_feather(make(cells), folder / "t.feather")
        return folder / "t.feather"

    return write


def _in_parts(path: Path) -> Seen:
    parts = ParquetParts([path], private=True, part_rows=2)
    read = list(parts.parts())
    return Seen(pa.concat_tables(read), public=str(parts.schema))


COLUMNAR: tuple[OddReader, ...] = (
    OddReader(name="parquet", columns=PARQUET_CELLS, make=_parquet(arrow_table), share=2),
    OddReader(name="parquet-dictionaries", columns=LIKE_CELLS, make=_parquet(listed_by_arrow), share=2),
    OddReader(name="parquet-categories", columns=LIKE_CELLS, make=_by_pandas, share=2),
    OddReader(name="parquet-parts", columns=PARQUET_CELLS, make=_parquet(arrow_table), read=_in_parts),
    OddReader(name="parquet-parts-categories", columns=LIKE_CELLS, make=_by_pandas, read=_in_parts),
    OddReader(name="feather", columns=FILE_CELLS, make=_feather(arrow_table), share=2),
    OddReader(name="feather-dictionaries", columns=LIKE_CELLS, make=_feather(listed_by_arrow), share=2),
    OddReader(name="feather-categories", columns=FEATHER_CATEGORIES, make=_feather(categories_by_arrow)),
)
