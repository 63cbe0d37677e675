"""Separators, encodings and kinds of files: what is read is what was written, and cells never decide how."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from kamino.errors import InputError
from kamino.io import Reading, read_table, write_table

ROWS = {"name": ["Ann", "Béla", None], "age": [31, None, 5], "rate": [1.5, 2.0, None]}


def written(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    path = folder / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_separators_and_encodings_are_found(tmp_path: Path, separator: str, encoding: str) -> None:
    lines = ["prénom,age,rate", "Ann,31,1.5", "Béla,,2.0"]
    path = written(tmp_path, "t.csv", "\n".join(lines).replace(",", separator), encoding)
    table = read_table(path)
    assert table.to_pydict() == {"prénom": ["Ann", "Béla"], "age": [31, None], "rate": [1.5, 2.0]}


def test_separators_and_encodings_are_given(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "a:b,c\n1:é\n", "latin-1")
    with pytest.raises(InputError, match=r"not UTF-8.*Reading\(encoding="):
        read_table(path)
    reading = Reading(separator=":", encoding="latin-1")
    assert read_table(path, reading=reading).to_pydict() == {"a": [1], "b,c": ["é"]}
    assert read_table(written(tmp_path, "t.tsv", "a;b\tc\n1\t2\n")).to_pydict() == {"a;b": [1], "c": [2]}
    for bad in ({"separator": "ab"}, {"separator": "x"}, {"encoding": "klingon"}, {"encoding": "rot13"}):
        with pytest.raises(InputError, match="found the"):
            Reading(**bad)


def test_a_row_that_does_not_fit_names_the_separator(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.csv:2: the row has 1 cells, expected 2.*Reading\(separator="):
        read_table(written(tmp_path, "t.csv", "note; or remark\nx\n"))


FIRST_LINES = {
    "t.csv": "a,b\n{}\n",
    "t.tsv": "a\tb\n{}\n",
    "t.jsonl": '{{"a": 1, "b": 2}}\n{}\n',
}


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("t.csv", ["1,2", ";;;;,|||\t\t", "x;y;z,", '"é",é']),
        ("t.tsv", ["1\t2", ";,;\t,,,,", "é\té"]),
        ("t.jsonl", ['{"a": 3, "b": 4}', '{"a": "x", "c": 1}', '{"a": [1], "b": {"c": 2}}', '{"b": true}', "{}"]),
    ],
)
def test_only_the_header_line_is_looked_at(tmp_path: Path, name: str, rows: list[str]) -> None:
    """Private tables: neither names, nor types, nor errors follow from cells."""
    seen = set()
    for row in rows:
        # JSON lines have no header: their columns are told.
        reading = Reading(columns=("a", "b") if name == "t.jsonl" else ())
        table = read_table(written(tmp_path, name, FIRST_LINES[name].format(row)), private=True, reading=reading)
        seen.add(str(table.schema))
    assert seen == {"a: string\nb: string"}


def test_a_workbook_is_text_where_it_is_private(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    seen = set()
    for cell in (1, 2.5, "x", dt.datetime(2024, 1, 2), True, None):
        book = openpyxl.Workbook()
        book.active.append(["a", "b"])
        book.active.append([cell, 1])
        book.save(tmp_path / "t.xlsx")
        seen.add(str(read_table(tmp_path / "t.xlsx", private=True).schema))
    assert seen == {"a: string\nb: string"}


def test_a_workbook_reads_as_its_cells(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.title = "People"
    for row in (["name", "age", "born", "ok", "rate"], ["Ann", 31, dt.datetime(1990, 1, 2), True, 1.5], [None] * 5,
                ["7", None, dt.datetime(1991, 1, 2), False, 2]):  # fmt: skip
        book.active.append(row)
    book.create_sheet("Other").append(["x"])
    book.save(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx")
    assert table.to_pydict() == {
        "name": ["Ann", "7"], "age": [31, None], "born": [dt.date(1990, 1, 2), dt.date(1991, 1, 2)],
        "ok": [True, False], "rate": [1.5, 2.0],
    }  # fmt: skip
    assert read_table(tmp_path / "t.xlsx", query="Other").column_names == ["x"]
    with pytest.raises(InputError, match="no sheet 'None'; expected one of People, Other"):
        read_table(tmp_path / "t.xlsx", query="None")
    with pytest.raises(InputError, match="not a readable workbook"):
        read_table(written(tmp_path, "bad.xlsx", "S3CRET"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("S3CRET", r":2: found no JSON"),
        ('["S3CRET"]', r":2: found JSON that is no object"),
        ('{"a": ["S3CRET"]}', r":2: column 'a': found a list or an object"),
        ('{"S3CRET": 1}', r":2: found a key that the first line does not have"),
    ],
)
def test_faulty_json_lines_are_told_by_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_table(written(tmp_path, "t.jsonl", f'{{"a": 1}}\n{line}\n'))
    assert "S3CRET" not in str(caught.value).replace("t.jsonl", "")


def test_texts_of_json_stay_texts(tmp_path: Path) -> None:
    lines = [{"zip": "02134", "n": 1, "day": "2024-01-02"}, {"zip": "10115", "n": 2.5, "day": None}]
    table = read_table(written(tmp_path, "t.jsonl", "\n".join(map(json.dumps, lines))))
    assert table.to_pydict() == {"zip": ["02134", "10115"], "n": [1.0, 2.5], "day": [dt.date(2024, 1, 2), None]}
    texts = read_table(written(tmp_path, "u.jsonl", '{"code": "12"}\n{"code": "13"}'))
    assert texts.column("code").to_pylist() == ["12", "13"]


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "feather"])
def test_formats_round_trip(tmp_path: Path, ending: str) -> None:
    table = pa.table(
        {
            "text": ["a\tb", 'say "x"', None, "línea\nnueva"],
            "whole": pa.array([1, None, -3, 4], pa.int64()),
            "real": [0.5, 1e-9, None, 3.0],
            "flag": [True, None, False, True],
            "day": [dt.date(2024, 1, 2), None, dt.date(1999, 12, 31), dt.date(2000, 1, 1)],
            "moment": pa.array([dt.datetime(2024, 1, 2, 3, 4, 5), None, None, None], pa.timestamp("us")),
        }
    )
    write_table(table, tmp_path / f"t.{ending}")
    assert read_table(tmp_path / f"t.{ending}").equals(table)


def test_times_are_written_with_what_they_need(tmp_path: Path) -> None:
    whole = pa.array([dt.datetime(2024, 1, 2, 3, 4, 5), dt.datetime(2024, 1, 2)], pa.timestamp("us"))
    tenths = pa.array([dt.datetime(2024, 1, 2, 3, 4, 5, 500_000), dt.datetime(2024, 1, 2)], pa.timestamp("ns"))
    zoned = pa.array([dt.datetime(2024, 1, 2, 3, 4, 5), None], pa.timestamp("ms", "UTC"))
    write_table(pa.table({"whole": whole, "tenths": tenths, "zoned": zoned}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines()[1:] == [
        "2024-01-02 03:04:05,2024-01-02 03:04:05.5,2024-01-02 03:04:05Z",
        "2024-01-02 00:00:00,2024-01-02 00:00:00.0,",
    ]


def test_names_with_separators_come_back(tmp_path: Path) -> None:
    table = pa.table({"a;b;c": [1], "d|e|f|g": [Decimal("1.5")], "h\ti": ["x"]})
    for ending in ("csv", "tsv"):
        write_table(table, tmp_path / f"t.{ending}")
        assert read_table(tmp_path / f"t.{ending}").column_names == table.column_names


def test_columns_are_chosen_and_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "a,b,c\n1,2,3\n")
    assert read_table(path, reading=Reading(columns=("c", "a"))).column_names == ["c", "a"]
    assert read_table(path, reading=Reading(drop=("b",))).column_names == ["a", "c"]
    with pytest.raises(InputError, match=r"no column 'aa' in the table\. Did you mean 'a'"):
        read_table(path, reading=Reading(drop=("aa",)))
    with pytest.raises(InputError, match="no column that is left"):
        read_table(path, reading=Reading(drop=("a", "b", "c")))
    with pytest.raises(InputError, match="both among"):
        Reading(columns=("a",), drop=("a",))
