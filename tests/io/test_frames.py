from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kamino.errors import InputError
from kamino.io import read_table

DAY = dt.date(2024, 1, 2)
MOMENT = dt.datetime(2024, 1, 2, 3, 4)


def pandas_frame() -> pd.DataFrame:
    columns = {
        "int": pd.array([1, None], dtype="Int64"),
        "float": [1.5, np.nan],
        "float_na": pd.array([1.5, None], dtype="Float64"),
        "bool": pd.array([True, None], dtype="boolean"),
        "flag": np.array([True, None], dtype=object),
        "text": ["x", None],
        "text_nan": np.array(["x", np.nan], dtype=object),
        "text_na": pd.array(["x", pd.NA], dtype="string"),
        "kind": pd.Categorical(["x", None]),
        "level": pd.Categorical([7, None]),
        "day": [DAY, None],
        "moment": pd.to_datetime(["2024-01-02 03:04", None]),
        "price": [Decimal("1.50"), None],
        "arrow": pd.array(["x", None], dtype=pd.ArrowDtype(pa.string())),
        "none": np.array([None, None], dtype=object),
    }
    return pd.DataFrame(columns, index=[5, 7])


def test_pandas_frame() -> None:
    table = read_table(pandas_frame())
    assert table.column_names == list(pandas_frame().columns)
    assert table.to_pylist() == [
        {
            "int": 1, "float": 1.5, "float_na": 1.5, "bool": True, "flag": True, "text": "x", "text_nan": "x",
            "text_na": "x", "kind": "x", "level": 7, "day": DAY, "moment": MOMENT, "price": Decimal("1.50"),
            "arrow": "x", "none": None,
        },
        dict.fromkeys(table.column_names),
    ]  # fmt: skip
    strings = ["text", "text_nan", "text_na", "kind", "arrow", "none"]
    assert {str(table.schema.field(name).type) for name in strings} == {"string"}
    assert table.schema.field("int").type == pa.int64()
    assert table.schema.field("level").type == pa.int64()
    assert table.schema.field("price").type == pa.decimal128(3, 2)


def test_pandas_nan_is_null_in_every_float_column() -> None:
    values = pa.chunked_array([[float("nan"), 1.0, None]])
    frame = pd.DataFrame({"a": pd.arrays.ArrowExtensionArray(values), "b": values.to_pandas()})
    assert read_table(frame).to_pydict() == {"a": [None, 1.0, None], "b": [None, 1.0, None]}


def test_pandas_names_that_are_not_strings() -> None:
    assert read_table(pd.DataFrame({0: [1], 1: [2]})).column_names == ["0", "1"]


def polars_frame() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "int": pl.Series([1, None], dtype=pl.Int16),
            "text": ["x", None],
            "kind": pl.Series(["x", None], dtype=pl.Categorical),
            "enum": pl.Series(["x", None], dtype=pl.Enum(["x", "y"])),
            "price": [Decimal("1.50"), None],
            "day": [DAY, None],
            "moment": [MOMENT, None],
            "bool": [True, None],
            "none": [None, None],
        }
    )


@pytest.mark.parametrize("lazy", [False, True])
def test_polars_frame(lazy: bool) -> None:
    frame = polars_frame()
    table = read_table(frame.lazy() if lazy else frame)
    assert isinstance(table, pa.Table)
    assert table.to_pylist() == frame.to_dicts()
    assert {str(table.schema.field(name).type) for name in ("text", "kind", "enum", "none")} == {"string"}
    assert table.schema.field("int").type == pa.int16()


@pytest.mark.parametrize("column", [pd.Series([1, 2]), pl.Series([1, 2]), pa.array([1, 2]), pa.chunked_array([[1]])])
def test_a_single_column_is_no_frame(column: Any) -> None:
    with pytest.raises(InputError, match=f"object of type {type(column).__name__}, expected .* a data frame"):
        read_table(column)


def test_nan_stays_a_number_outside_pandas() -> None:
    for frame in (pl.DataFrame({"a": [float("nan"), None]}), pa.table({"a": [float("nan"), None]})):
        assert str(read_table(frame).column("a").to_pylist()) == "[nan, None]"


def test_pyarrow_table_batch_and_stream() -> None:
    table = pa.table({"a": [1, None], "b": pa.array(["x", "y"]).dictionary_encode()})
    plain = pa.table({"a": [1, None], "b": ["x", "y"]})
    for frame in (table, table.to_batches()[0], table.to_reader()):
        assert read_table(frame).equals(plain)


@pytest.mark.parametrize(
    ("frame", "kind"),
    [
        (pd.DataFrame({"ok": [1, 1], "bad": pd.Series(["S3CRET", 1], dtype=object)}), "object"),
        (pd.DataFrame({"ok": [1], "bad": [2**70]}), "object"),
        (pd.DataFrame({"ok": [1], "bad": [1 + 2j]}), "complex128"),
        (pd.DataFrame({"ok": [1], "bad": [["S3CRET"]]}), "list"),
        (pd.DataFrame({"ok": [1, 2], "bad": pd.interval_range(0, 2)}), "struct"),
        (pl.DataFrame({"ok": [1], "bad": pl.Series([1], dtype=pl.Int128)}), "Int128"),
        (pl.DataFrame({"ok": [1], "bad": [[1]]}), "list"),
        (pa.table({"ok": [1], "bad": [b"S3CRET"]}), "binary"),
    ],
)  # fmt: skip
def test_column_that_cannot_be_used(frame: Any, kind: str) -> None:
    with pytest.raises(InputError, match=f"column 'bad' .*{kind}.*Cast it") as caught:
        read_table(frame)
    assert "S3CRET" not in str(caught.value)


def test_name_used_twice() -> None:
    frames = [
        pd.DataFrame([[1, 2]], columns=["a", "a"]),
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
        pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
    ]
    for frame in frames:
        with pytest.raises(InputError, match="more than once"):
            read_table(frame)


def test_no_columns() -> None:
    for frame in (pd.DataFrame(), pl.DataFrame(), pa.table({})):
        with pytest.raises(InputError, match="found no columns"):
            read_table(frame)
