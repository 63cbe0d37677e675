from __future__ import annotations

import datetime as dt
import gzip
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.csv import read_csv
from kamino.io.infer import GLANCE_ROWS, infer_column


def read_column(folder: Path, cells: list[str]) -> pa.ChunkedArray:
    path = folder / "t.csv"
    path.write_text("key,value\n" + "".join(f"k,{cell}\n" for cell in cells), encoding="utf-8")
    return read_table(path).column("value")


UTC = dt.UTC
TYPES = [
    (["true", "false", ""], pa.bool_(), [True, False, None]),
    (["True", "FALSE"], pa.bool_(), [True, False]),
    (["1", "-2", "", "0"], pa.int64(), [1, -2, None, 0]),
    (["9223372036854775807", "-9223372036854775808"], pa.int64(), [2**63 - 1, -(2**63)]),
    (["9223372036854775808", "1"], pa.decimal128(38, 0), [Decimal(2**63), Decimal(1)]),
    (["1" * 60, "1"], pa.decimal256(76, 0), [Decimal("1" * 60), Decimal(1)]),
    (["1" * 90, "1"], pa.string(), ["1" * 90, "1"]),
    (["1.5", "2", "-3e-2", ".5", "5.", ""], pa.float64(), [1.5, 2.0, -0.03, 0.5, 5.0, None]),
    (["1", "inf", "-Infinity"], pa.float64(), [1.0, float("inf"), float("-inf")]),
    (["nan", "NaN"], pa.string(), ["nan", "NaN"]),
    (["01234", "12345"], pa.string(), ["01234", "12345"]),
    (["00.5", "1.0"], pa.string(), ["00.5", "1.0"]),
    (["+1", "2"], pa.string(), ["+1", "2"]),
    (["1", "+2.5"], pa.string(), ["1", "+2.5"]),
    (["1", "NA"], pa.string(), ["1", "NA"]),
    (["1", "NULL", ""], pa.string(), ["1", "NULL", None]),
    (["1", "true"], pa.string(), ["1", "true"]),
    ([" 1", "2"], pa.string(), [" 1", "2"]),
    (["0x10", "1"], pa.string(), ["0x10", "1"]),
    (["2024-02-29", ""], pa.date32(), [dt.date(2024, 2, 29), None]),
    (["2023-02-29", "2023-02-28"], pa.string(), ["2023-02-29", "2023-02-28"]),
    (["0000-01-01"], pa.string(), ["0000-01-01"]),
    (
        ["2024-01-02 03:04:05.25", "2024-01-02T03:04", "2024-01-02", ""],
        pa.timestamp("us"),
        [dt.datetime(2024, 1, 2, 3, 4, 5, 250000), dt.datetime(2024, 1, 2, 3, 4), dt.datetime(2024, 1, 2), None],
    ),
    (
        ["2024-01-02T03:04:05Z", "2024-01-02 03:04:05+01:00"],
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), dt.datetime(2024, 1, 2, 2, 4, 5, tzinfo=UTC)],
    ),
    (
        ["2024-01-02T03:04:05Z", "2024-01-02T03:04:05"],
        pa.string(),
        ["2024-01-02T03:04:05Z", "2024-01-02T03:04:05"],
    ),
    (["2024-01-02 25:00"], pa.string(), ["2024-01-02 25:00"]),
    (['""', '"a ""b"", c"', '"x\ny"', "ü €"], pa.string(), [None, 'a "b", c', "x\ny", "ü €"]),
    (["", '""'], pa.string(), [None, None]),
]


@pytest.mark.parametrize(("cells", "kind", "values"), TYPES, ids=[" ".join(case[0])[:40] for case in TYPES])
def test_csv_types(tmp_path: Path, cells: list[str], kind: pa.DataType, values: list[object]) -> None:
    column = read_column(tmp_path, cells)
    assert column.type == kind
    assert column.to_pylist() == values


def test_nanoseconds_are_kept(tmp_path: Path) -> None:
    column = read_column(tmp_path, ["2024-01-02 03:04:05.123456789", "2024-01-02 03:04:05"])
    assert column.type == pa.timestamp("ns")
    assert column.cast(pa.int64()).to_pylist()[0] % 10**9 == 123456789


def test_nan_in_numbers_is_a_number(tmp_path: Path) -> None:
    column = read_column(tmp_path, ["1", "nan", ""])
    assert column.type == pa.float64()
    assert str(column.to_pylist()) == "[1.0, nan, None]"


@pytest.mark.parametrize(
    ("last", "kind"),
    [("2.5", pa.float64()), ("x", pa.string()), ("007", pa.string()), (str(2**64), pa.decimal128(38, 0))],
)
def test_type_is_found_from_the_whole_column(tmp_path: Path, last: str, kind: pa.DataType) -> None:
    # Far beyond the first glance and the parser's first default block of one megabyte.
    rows = 400_000
    column = read_column(tmp_path, ["1"] * rows + [last])
    assert len(column) == rows + 1
    assert column.type == kind


CELLS = st.sampled_from(["", "1", "-3", "01", "1.5", "true", "x", "nan", "2024-01-01", "2024-01-01 10:00", str(10**20)])


@given(st.lists(CELLS, min_size=1, max_size=6), st.integers(0, GLANCE_ROWS * 2), st.randoms())
@examples(60)
def test_type_does_not_depend_on_row_order(cells: list[str], padding: int, rng: random.Random) -> None:
    cells = cells + [cells[0]] * padding
    shuffled = rng.sample(cells, len(cells))
    kinds = {
        infer_column(pa.chunked_array([[cell or None for cell in order]], pa.string())).type
        for order in (cells, shuffled)
    }
    assert len(kinds) == 1


def test_header_alone_gives_no_rows(tmp_path: Path) -> None:
    for text in ("a,b", "a,b\n", "a,b\r\n", "\n\na,b\n\n"):
        path = tmp_path / "t.csv"
        path.write_bytes(text.encode())
        table = read_table(path)
        assert table.schema == pa.schema({"a": pa.string(), "b": pa.string()})
        assert table.num_rows == 0


def test_line_endings_blank_lines_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for text in (b"a,b\n1,x\n2,y\n", b"a,b\r\n1,x\r\n2,y\r\n", b"\xef\xbb\xbfa,b\n1,x\n2,y", b"a,b\n\n1,x\n\n2,y\n\n"):
        path.write_bytes(text)
        assert read_table(path).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}


def test_quoted_names_and_a_lone_quote_inside_a_cell(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"a, b","c""d"\n1,5" pipe\n', encoding="utf-8")
    assert read_table(path).to_pydict() == {"a, b": [1], 'c"d': ['5" pipe']}


def test_cells_of_many_lines_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kamino.io.csv.BLOCK_BYTES", 64)
    path = tmp_path / "t.csv"
    cells = ["x\ny,\nz" * (i % 4 + 1) for i in range(50)]
    path.write_text("k,v\n" + "".join(f'{i},"{cell}"\n' for i, cell in enumerate(cells)), encoding="utf-8")
    assert read_table(path).to_pydict() == {"k": list(range(50)), "v": cells}


def test_gzip(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,\n2,y\n"))
    assert read_table(path).to_pydict() == {"a": [1, 2], "b": [None, "y"]}
    assert read_table(str(path)).num_rows == 2
    # Files of other systems come with names in capitals.
    path.rename(tmp_path / "T.CSV.GZ")
    assert read_table(tmp_path / "T.CSV.GZ").num_rows == 2


@given(st.lists(st.text(alphabet='ab",\n\r ü', max_size=6), min_size=1, max_size=8))
@examples(80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_quoting_as_python_writes_it(tmp_path: Path, values: list[str]) -> None:
    import csv

    path = tmp_path / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([["k", "v"], *([["k", value] for value in values])])
    assert read_table(path).column("v").to_pylist() == [value or None for value in values]


def test_a_cell_of_another_type_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\nseven,y\n")
    with pytest.raises(InputError, match="column 'a': found a cell that is no int64") as told:
        read_csv(path, types=pa.schema([("a", pa.int64())]))
    assert "seven" not in str(told.value)
