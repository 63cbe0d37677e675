"""Reading a private table: no type and no error depends on what the cells hold."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.postgres import _convert_types

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
    table = _convert_types(pa.table([pa.array(texts, pa.string())], schema=pa.schema([field])), private=True)
    assert table.schema.field("n").type == pa.float64()
