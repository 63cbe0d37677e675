"""Reading a private table: no type and no error depends on what the cells hold."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.io.odd_frames import HAS_DASK
from tests.io.oddities import ODD, THEMES

from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.databases.postgres import convert_types
from kamino.io.spelling_cells import is_missing, spell

INFINITE = pa.table({"day": pa.array([0, 2**31 - 1], pa.int32()).view(pa.date32())})


def test_dates_outside_the_calendar_do_not_show(tmp_path: Path) -> None:
    pq.write_table(INFINITE, tmp_path / "t.parquet")
    for source in (INFINITE, tmp_path / "t.parquet"):
        with pytest.raises(InputError, match="outside the years"):
            read_table(source)
        assert read_table(source, private=True).column("day").null_count == 1


@pytest.mark.parametrize("values", [[1, None], ["a", 2], [Decimal("1.5"), None], [{1: 2}, [3]], [None, None]])
def test_object_columns_stay_text(values: list[object]) -> None:
    frame = pd.DataFrame({"a": pd.Series(values, dtype=object)})
    table = read_table(frame, private=True)
    assert table.schema.field("a").type == pa.string()
    assert table.column("a").null_count == sum(value is None for value in values)


@pytest.mark.parametrize("texts", [["1", "2"], ["1.25", None], ["NaN", "Infinity"], ["9" * 90, "1"]])
def test_numeric_is_a_float_whatever_it_holds(texts: list[str | None]) -> None:
    field = pa.field("n", pa.string(), metadata={"ADBC:postgresql:typname": "numeric"})
    table = convert_types(pa.table([pa.array(texts, pa.string())], schema=pa.schema([field])), private=True)
    assert table.schema.field("n").type == pa.float64()


class Silent:
    """An object that has no text."""

    def __str__(self) -> str:
        raise RuntimeError("private text")


@pytest.mark.parametrize(
    "odd", [Silent(), "\ud800", 10**5000, Decimal("sNaN")], ids=["no text", "half a pair", "a long number", "sNaN"]
)
def test_a_cell_without_text_is_null(odd: object) -> None:
    frame = pd.DataFrame({"a": pd.Series(["x", odd], dtype=object)})
    assert read_table(frame, private=True).column("a").to_pylist() in (["x", None], ["x", "sNaN"])


def test_text_that_utf8_does_not_hold_is_null() -> None:
    frame = pd.DataFrame({"a": pd.Series(["x", "\ud800"], dtype=pd.StringDtype("python"))})
    assert read_table(frame, private=True).column("a").to_pylist() == ["x", None]


@pytest.mark.parametrize("odd", [3, 2.5, "x", None, True, dt.date(2020, 1, 1), Silent(), (1, 2), np.float32(0.5)])
def test_categories_are_text_whatever_they_hold(odd: object) -> None:
    frame = pd.DataFrame({"a": pd.Series([1, 2, odd], dtype="category")})
    read = read_table(frame, private=True)
    assert read.schema.field("a").type == pa.string()
    assert read.column("a").to_pylist()[:2] == ["1", "2"]


@pytest.mark.parametrize("values", [[1, 2, 3], [1, 2, 2.5], [1, 2, None], [1, 2, float("nan")], [1, 2, float("inf")]])
def test_a_dictionary_of_numbers_is_text(values: list[object], tmp_path: Path) -> None:
    """One 2.5 among integers makes all of them floats, in memory and in Parquet."""
    table = pa.table({"a": pa.array(values, from_pandas=True).dictionary_encode()})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        read = read_table(source, private=True)
        assert read.schema.field("a").type == pa.string()
        assert read.column("a").to_pylist()[:2] == ["1", "2"]


ALIKE = [
    (1, 1.0, np.float32(1), np.int8(1), Decimal(1), Decimal("1.00"), 1 + 0j),
    (1000, Decimal("1E+3"), 1e3),
    (0, -0.0, Decimal("-0.00")),
    (2.5, Decimal("2.50"), np.float64(2.5)),
    (float("inf"), Decimal("Infinity")),
    (dt.datetime(2024, 1, 2), pd.Timestamp("2024-01-02"), np.datetime64("2024-01-02"), np.datetime64("2024-01-02T00")),
    (dt.datetime(2024, 1, 2, tzinfo=dt.UTC), pd.Timestamp("2024-01-02 01:00", tz="Europe/Berlin")),
    (dt.timedelta(days=-1, seconds=5), pd.Timedelta(-86_395, "s"), np.timedelta64(-86_395, "s")),
    (pd.Interval(0, 10), pd.Interval(0.0, 10.0)),
    ("a", b"a", np.str_("a"), bytearray(b"a")),
]


@pytest.mark.parametrize("values", ALIKE, ids=lambda values: str(values[0]))
def test_equal_cells_are_spelled_alike(values: tuple[object, ...]) -> None:
    assert len({spell(value) for value in values}) == 1
    assert spell(values[0]) is not None
    for value in values:
        text = read_table(pd.DataFrame({"a": pd.Series([value], dtype=object)}), private=True)["a"].to_pylist()
        assert text == [spell(values[0])]


def test_what_is_missing_follows_from_the_cell() -> None:
    """As pandas has it, but for a cell that fails when it is compared with itself."""
    for cell in ODD:
        if not hasattr(cell, "__len__") or isinstance(cell, str | bytes):
            try:
                expected = bool(pd.isna(cell))
            except Exception:
                continue
            assert is_missing(cell) == expected, ascii(type(cell))
    assert is_missing(Decimal("sNaN"))
    frame = pd.DataFrame({"a": pd.Series(["x", float("nan"), pd.NaT, pd.NA, None, Decimal("sNaN")], dtype=object)})
    assert read_table(frame, private=True)["a"].to_pylist() == ["x", *[None] * 5]


@pytest.mark.parametrize("theme", THEMES)
def test_a_dictionary_is_spelled_cell_by_cell(theme: str) -> None:
    """As a column of objects, and each value as it is alone."""
    frame = pd.DataFrame({"a": pd.Series(THEMES[theme], dtype=object)})
    alone = [
        read_table(frame.iloc[[row]].astype("category"), private=True)["a"][0].as_py() for row in range(len(frame))
    ]
    for source in (frame, frame.astype("category")):
        assert read_table(source, private=True)["a"].to_pylist() == alone
    if theme not in ("intervals", "periods", "nothing"):
        values = pa.Table.from_pandas(frame.astype("category"), preserve_index=False)
        assert read_table(values, private=True)["a"].to_pylist() == alone


def test_a_lazy_frame_that_fails_quotes_no_cell() -> None:
    frame = pl.LazyFrame({"a": ["1", "S3CRET"]}).with_columns(pl.col("a").cast(pl.Int64))
    dask = dd.from_pandas(pd.DataFrame({"a": ["1", "S3CRET"]}), npartitions=1)
    for lazy in (frame, dask.assign(a=dask["a"].astype(int))):
        with pytest.raises(InputError, match=r"a lazy frame could not be computed .*Compute it yourself") as told:
            read_table(lazy, private=True)
        assert "S3CRET" not in str(told.value)
    assert read_table(pl.LazyFrame({"a": ["1", "x"]}).cast(pl.Int64, strict=False)).num_rows == 2


@pytest.mark.skipif(not HAS_DASK, reason="this version of dask makes text of objects")
def test_dask_keeps_the_types_it_declares() -> None:
    """Whatever a partition was found to hold; what does not fit is null."""
    parts = [pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1.5, 3.0]}), pd.DataFrame({"a": ["x", "4"]})]
    meta = {"a": "int64"}
    frame = dd.from_map(lambda place: parts[place], range(3), meta=pd.DataFrame(columns=["a"]).astype(meta))
    table = read_table(frame, private=True)
    assert table.schema.field("a").type == pa.int64()
    assert table["a"].to_pylist() == [1, 2, None, 3, None, 4]


def _not_utf8(kind: pa.DataType) -> pa.ChunkedArray:
    raw = pa.array([b"ok", b"\xff\xfe", None], pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.chunked_array([pa.Array.from_buffers(kind, 3, raw.buffers())])


UNHELD = {
    "text": _not_utf8(pa.string()),
    "large text": _not_utf8(pa.large_string()),
    "listed text": _not_utf8(pa.string()).dictionary_encode(),
    "date64": pa.chunked_array([pa.array([0, 1, None]).view(pa.date64())]),
    "far date64": pa.chunked_array([pa.array([0, 2**62 // 86_400_000 * 86_400_000, None]).view(pa.date64())]),
}


@pytest.mark.parametrize("kind", UNHELD)
def test_odd_cells_become_null(kind: str, tmp_path: Path) -> None:
    table = pa.table({"a": UNHELD[kind]})
    with pytest.raises(InputError, match="column 'a' has"):
        read_table(table)
    read = read_table(table, private=True).column("a")
    assert read.to_pylist() in (["ok", None, None], [dt.date(1970, 1, 1), None, None])
    if "text" in kind:
        pq.write_table(table, tmp_path / "t.parquet")
        assert read_table(tmp_path / "t.parquet", private=True).column("a").equals(read)
