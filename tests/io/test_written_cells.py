"""Cells as people write them: numbers with signs of currencies and thousands, and words for nothing."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kamino import InputError, Reading, Schema
from kamino.io import read_table
from kamino.io.streams.csv_parts import CsvParts
from kamino.io.written_cells import WrittenParts
from kamino.schema.files.written_numbers import plain_number
from kamino.schema.numbers import STYLES

POINT, COMMA = "1,234.5", "1.234,5"


@pytest.mark.parametrize(
    ("text", "style", "plain"),
    [
        ("$1,234.50", POINT, "1234.50"),
        ("1,234.50 USD", POINT, "1234.50"),
        ("US$ 7", POINT, "7"),
        ("-$5", POINT, "-5"),
        ("$-5", POINT, "-5"),
        ("5-", POINT, "-5"),
        ("\u22125", POINT, "-5"),
        ("(1,234)", POINT, "-1234"),
        ("($12.50)", POINT, "-12.50"),
        ("12.5%", POINT, "12.5"),
        ("12.5 %", POINT, "12.5"),
        ("+7", POINT, "7"),
        (".5", POINT, "0.5"),
        ("007", POINT, "7"),
        ("12,34,567", POINT, "1234567"),
        (" 1,234 ", POINT, "1234"),
        ("1234.5", POINT, "1234.5"),
        ("1.234,56 €", COMMA, "1234.56"),
        ("12,5", COMMA, "12.5"),
        ("1.234", COMMA, "1234"),
        ("1 234,5", "1 234,5", "1234.5"),
        ("1\u202f234,5", "1 234,5", "1234.5"),
        ("CHF 1'234.50", "1'234.5", "1234.50"),
        ("1 234.5", "1 234.5", "1234.5"),
    ],
)
def test_numbers_are_read_as_people_write_them(text: str, style: str, plain: str) -> None:
    assert plain_number(text, style) == plain


@pytest.mark.parametrize(
    "text",
    ["", "$", "NA", "1,23", "1,,234", "1.2.3", "(5", "5)", "(-5)", "--5", "-5-", "1e5", "1 egg", "\u0661", "9" * 80],
)
def test_what_is_no_number_stays_a_text(text: str) -> None:
    assert plain_number(text, POINT) is None


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**12), max_value=10**12), st.data())
def test_a_number_written_in_any_style_is_that_number(number: Decimal, data: st.DataObject) -> None:
    style = data.draw(st.sampled_from(STYLES))
    thousands, point = style[1], style[5]
    text = f"{abs(number):,.3f}".replace(",", "_").replace(".", point).replace("_", thousands)
    written = f"({text})" if number < 0 and data.draw(st.booleans()) else f"-{text}" if number < 0 else text
    money = data.draw(st.sampled_from(["", "$", "€", "EUR "]))
    plain = plain_number(money + written if written[0].isdigit() else written, style)
    assert plain is not None
    assert Decimal(plain) == number


def _file(folder: Path) -> Path:
    path = folder / "t.csv"
    path.write_text('price,bill,code\n"$1,234.50",39.1,00123\n(12),NA,"1,5"\n7 %,,NA\n-999,40,x\n')
    return path


TOLD = Reading(nulls=("NA",), nulls_of={"price": ("-999",)}, numbers={"price": POINT})


def test_a_csv_file_has_numbers_and_nulls(tmp_path: Path) -> None:
    table = read_table(_file(tmp_path), reading=TOLD)
    assert table.to_pydict() == {
        "price": [1234.5, -12.0, 7.0, None],
        "bill": [39.1, None, None, 40.0],
        "code": ["00123", "1,5", None, "x"],
    }


def test_written_cells_are_read_alike_in_parts(tmp_path: Path) -> None:
    path = _file(tmp_path)
    whole = read_table(path, private=True, reading=TOLD)
    parts = WrittenParts(source=CsvParts(path, part_rows=2), cells=TOLD.cells)
    assert pa.concat_tables(parts.parts()).equals(whole)
    assert whole.column("price").to_pylist() == ["1234.50", "-12", "7", None]


def test_typed_columns_have_nulls_too() -> None:
    frame = pd.DataFrame({"n": [1, -999], "x": [0.5, -999.0], "s": ["NA", "$1"]})
    table = read_table(frame, private=True, reading=Reading(nulls=("NA", "-999"), numbers={"s": POINT}))
    assert table.to_pydict() == {"n": [1, None], "x": [0.5, None], "s": [None, "1"]}


def test_a_column_may_hold_nulls_whatever_its_cells_are() -> None:
    fields = pa.schema([pa.field("s", pa.string(), nullable=False)])
    tables = [pa.table({"s": texts}, schema=fields) for texts in (["a"], ["NA"])]
    read = [read_table(each, private=True, reading=Reading(nulls=("NA",))).schema for each in tables]
    assert read[0] == read[1]
    assert read[0].field("s").nullable


SCHEMA = """
attributes:
  price: {type: real, min: -100, max: 9999, decimals: 2, written: "1,234.5", nulls: ["-999"], nullable: true}
  bill: {type: real, min: 0, max: 99, decimals: 1, nulls: [NA], nullable: true}
  code: {type: categorical, values: ["00123", x], nulls: [NA], nullable: true}
"""


def test_a_schema_says_how_cells_are_written(tmp_path: Path) -> None:
    schema = Schema.from_yaml(SCHEMA)
    assert Schema.from_yaml(schema.to_yaml()) == schema
    reading = Reading().with_cells(schema)
    table = read_table(_file(tmp_path), reading=reading, private=True)
    assert table.column("price").to_pylist() == ["1234.50", "-12", "7", None]
    assert table.column("bill").to_pylist() == ["39.1", None, None, "40"]
    # What is said of the reading goes before what the schema says.
    assert dict(Reading(numbers={"price": COMMA}).with_cells(schema).cells.numbers)["price"] == COMMA


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"numbers": {"price": "$"}}, "found the style '$' for the numbers of 'price'; expected an example"),
        ({"nulls": 7}, "found nulls of type int"),
        ({"nulls_of": {"price": 7}}, "found the nulls of 'price' of type int"),
    ],
)
def test_ways_of_writing_that_cannot_be_are_told(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match="expected") as problem:
        Reading(**given)
    assert said in str(problem.value)


def test_a_column_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no column 'prise' in the table.*Did you mean 'price'"):
        read_table(_file(tmp_path), reading=Reading(numbers={"prise": POINT}))


def test_what_is_read_in_which_way_is_recorded() -> None:
    assert TOLD.to_json() == {"nulls": ["NA"], "nulls_of": {"price": ["-999"]}, "numbers": {"price": POINT}}
    assert Reading().to_json() == {}
