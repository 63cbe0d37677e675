"""Private files that somebody wrote badly: a line, a quote or a cell that cannot be read touches no other row."""

from __future__ import annotations

import io
import json
import os
import random
import zipfile
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.errors import InputError
from kamino.io import Reading, read_table
from kamino.io.databases.catalogue import read_catalogue
from kamino.io.databases.sql import declared_enums
from kamino.io.databases.storing import DatabaseTable
from kamino.io.streams.csv_parts import CsvParts
from kamino.io.text import read_text
from kamino.pipeline.output.writing import stage_in_database
from kamino.schema import Integer, Schema

ROWS = [b"1,x", b'"2","y ""z"""', b'3,"two\nlines"', b",", b'4,5" pipe', b"5,\xc3\xa9"]
PIECES = [
    b'"',
    b'""',
    b",",
    b"\n",
    b"\r",
    b"\r\n",
    b"a",
    b"7",
    b"\xff",
    b"\x00",
    b"\xef\xbb\xbf",
    b" ",
    b";",
    b"\t",
    b"x" * 300,
]


def private_rows(path: Path, content: bytes, **reading: object) -> list[tuple[object, ...]]:
    path.write_bytes(content)
    found = read_table(path, private=True, reading=Reading(**reading))  # type: ignore[arg-type]
    assert all(field.type == pa.string() for field in found.schema)
    return list(zip(*found.to_pydict().values(), strict=True))


@given(st.lists(st.sampled_from(PIECES), max_size=9).map(b"".join))
@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_one_odd_row_changes_no_other(tmp_path: Path, odd: bytes) -> None:
    path = tmp_path / "t.csv"
    whole = b"a,b\n" + b"\n".join(ROWS) + b"\n"
    before = private_rows(path, whole)
    after = private_rows(path, whole + odd + b"\n")
    assert after[: len(before)] == before
    assert pa.concat_tables(CsvParts(path).parts()).equals(read_table(path, private=True))
    lines = path.with_suffix(".jsonl")
    objects = b"".join(b'{"a": %d}\n' % i for i in range(4))
    known = private_rows(lines, objects, columns=("a", "b"))
    assert private_rows(lines, objects + odd + b"\n", columns=("a", "b"))[:4] == known


@pytest.mark.parametrize("odd", [b'9,"z', b'"9,z', b'"', b'9,"a""', b'9,"', b'"9"9,"z'])
@pytest.mark.parametrize("place", range(len(ROWS) + 1))
def test_an_open_quote_takes_in_no_other_row(tmp_path: Path, odd: bytes, place: int) -> None:
    path = tmp_path / "t.csv"
    before = private_rows(path, b"a,b\n" + b"\n".join(ROWS) + b"\n")
    mixed = [*ROWS[:place], odd, *ROWS[place:]]
    after = private_rows(path, b"a,b\n" + b"\n".join(mixed) + b"\n")
    assert after == [*before[:place], (None, None), *before[place:]]


def test_rows_of_many_lines_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = ["x\n" * 5_000 + "y", 'say "no"\r\nor, yes', "z"]
    text = "a,b\n" + "".join(f'{i},"{cell.replace(chr(34), chr(34) * 2)}"\n' for i, cell in enumerate(cells))
    for odd, lost in ((b"", 0), (b'9,"z\n', 1), (b'9,"z\ny",8\n', 1), (b'"z\ny\nx"\n', 1)):
        rows = private_rows(tmp_path / "t.csv", text.encode() + odd)
        assert rows == [*((str(i), cell) for i, cell in enumerate(cells)), *[(None, None)] * lost]
    monkeypatch.setattr("kamino.io.csv_lines.MOST_LETTERS", 30)
    assert private_rows(tmp_path / "t.csv", text.encode())[-2:] == [("1", cells[1]), ("2", "z")]


def test_a_cell_that_is_no_utf8_is_read_by_itself(tmp_path: Path) -> None:
    content = b"a,b\n1,M\xfcller\n2,\x81\n3,\xc3\xbc\n"
    assert private_rows(tmp_path / "t.csv", content) == [("1", "Müller"), ("2", None), ("3", "ü")]
    told = private_rows(tmp_path / "t.csv", content, encoding="utf-8")
    assert told == [("1", None), ("2", None), ("3", "ü")]


def test_a_row_of_any_length_is_read(tmp_path: Path) -> None:
    rows = private_rows(tmp_path / "t.csv", b"a,b\n1,2\n1," + b"x" * 40_000_000 + b"\n3,4\n")
    assert [row[0] for row in rows] == ["1", "1", "3"]


def test_a_header_with_an_open_quote_names_no_cell(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b'a,"b\n1,S3CRET\n2,"x"\n')
    with pytest.raises(InputError, match="a quote in the header is not closed") as told:
        read_table(tmp_path / "t.csv", private=True)
    assert "S3CRET" not in str(told.value)


LINES = [
    "{}", '{"a": 1, "c": 2}', '{"S3CRET": 1}', "S3CRET", "[1]", "null", "7", '"x"', '{"a": [1], "b": {"c": 1}}',
    '{"a": "\\ud800", "b": 1}', '{"\\ud800": 1}', '{"a": 1, "a": 2}', "[" * 100_000, '{"a": ' + "9" * 5_000 + "}",
    '{"a": 1e999, "b": NaN}', '{"a": -Infinity}', '{"a": 1', '{"a": "\\u0000"}', "\ufeff{}", '{"a": "x"} {"a": "y"}',
]  # fmt: skip


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_json_lines_of_a_private_table_name_nothing(tmp_path: Path, line: str, first: bool) -> None:
    path = tmp_path / "t.jsonl"
    lines = ['{"a": 1, "b": "x"}', '{"b": true}']
    path.write_text("\n".join([line, *lines] if first else [*lines, line]) + "\n")
    with pytest.raises(InputError, match="JSON lines declare no columns") as told:
        read_table(path, private=True)
    assert "S3CRET" not in str(told.value).replace(str(tmp_path), "")
    table = read_table(path, private=True, reading=Reading(columns=("a", "b")))
    assert table.schema == pa.schema([("a", pa.string()), ("b", pa.string())])
    rows = table.to_pylist()
    assert rows[1:] if first else rows[:2] == [{"a": "1", "b": "x"}, {"a": None, "b": "true"}]


def test_json_lines_of_the_owner_may_be_named(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"b": 1}\n{"a": 2, "c": [1]}\n')
    assert read_table(path, reading=Reading(columns=("a", "b"))).to_pydict() == {"a": [None, 2], "b": [1, None]}
    with pytest.raises(InputError, match="no key 'bb' in any line"):
        read_table(path, reading=Reading(columns=("a", "bb")))
    path.write_text('{"a": "\\ud800"}\n')
    with pytest.raises(InputError, match=r":1: column 'a': found half of a pair of surrogates"):
        read_table(path)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet", "t.feather", "t.xlsx"])
def test_a_pipe_is_refused(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match="found a pipe or a device, expected a file"):
        read_table(tmp_path / name, private=True)


def test_a_pipe_is_no_other_input_either(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p")
    with pytest.raises(InputError, match="found a pipe, expected a schema file"):
        read_text(tmp_path / "p", what="schema file")
    for ask in (read_catalogue, declared_enums):
        with pytest.raises(InputError, match="no such DuckDB file"):
            ask(f"duckdb:///{tmp_path / 'p'}", "people")
    target = DatabaseTable.of(f"duckdb:///{tmp_path / 'p'}#people")
    assert target is not None
    with (
        pytest.raises(InputError, match="found no file, expected a DuckDB file"),
        stage_in_database(
            target, pa.schema([("a", pa.int64())]), Schema(attributes={"a": Integer(min=0, max=1)}), None
        ),
    ):
        pass


def workbook(path: Path, *rows: str, tail: str = "</sheetData></worksheet>") -> Path:
    """A workbook whose rows are given as XML."""
    openpyxl = pytest.importorskip("openpyxl")
    made = io.BytesIO()
    openpyxl.Workbook().save(made)
    with zipfile.ZipFile(made) as whole, zipfile.ZipFile(path, "w") as packed:
        for each in whole.namelist():
            content = whole.read(each)
            if each == "xl/worksheets/sheet1.xml":
                start = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
                content = (start + "".join(rows) + tail).encode()
            packed.writestr(each, content)
    return path


HEADER = '<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c><c r="B1" t="inlineStr"><is><t>b</t></is></c></row>'
GOOD = '<row r="2"><c r="A2"><v>1</v></c><c r="B2" t="b"><v>1</v></c></row>'
ODD_CELLS = [
    '<c r="A3"><v>S3CRET</v></c>', '<c r="A3" t="s"><v>99</v></c>', '<c r="A3" t="b"><v>x</v></c>',
    '<c r="??"><v>1</v></c>', '<c r="A3" s="x"><v>1</v></c>', '<c r="A3" t="d"><v>x</v></c>', "<c/>", "<v>1</v>",
    f'<c r="A3"><v>{"9" * 5_000}</v></c>', '<c r="A3"><v>1e999</v></c>', '<c r="XFD3"><v>1</v></c>', "",
    '<c r="A3" t="inlineStr"><is/></c>', '<c r="A3" t="str"><v>#N/A</v></c>', '<c r="A3" t="e"><v>#DIV/0!</v></c>',
]  # fmt: skip


@pytest.mark.parametrize("cell", ODD_CELLS)
@pytest.mark.parametrize("number", ["3", "x", "-1", "99999999999", ""])
def test_an_odd_row_of_a_workbook_changes_no_other(tmp_path: Path, cell: str, number: str) -> None:
    before = read_table(workbook(tmp_path / "t.xlsx", HEADER, GOOD), private=True)
    odd = f'<row r="{number}">{cell}</row>' if number else f"<row>{cell}</row>"
    after = read_table(workbook(tmp_path / "t.xlsx", HEADER, GOOD, odd), private=True)
    assert after.slice(0, 1).equals(before)
    assert after.schema == before.schema


def test_a_damaged_workbook_is_told(tmp_path: Path) -> None:
    path = workbook(tmp_path / "t.xlsx", HEADER, GOOD, '<row r="3"><c r="A3"><v>S3CRET</v></c></row>')
    with pytest.raises(InputError, match="row 3: found a cell that cannot be read") as told:
        read_table(path)
    assert "S3CRET" not in str(told.value)
    cut = workbook(tmp_path / "t.xlsx", HEADER, GOOD, tail="<row><c>S3CRET")
    whole = path.read_bytes()
    for private in (False, True):
        cut.write_bytes(whole)
        with pytest.raises(InputError, match="not a readable workbook") as told:
            read_table(cut, private=private)
        assert "S3CRET" not in str(told.value)


@given(st.integers(0, 2**32))
@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_of_a_workbook_is_a_fault(tmp_path: Path, seed: int) -> None:
    """Whatever bytes of the archive or of the sheet are changed, it is read or refused."""
    rng = random.Random(seed)
    path = workbook(tmp_path / "t.xlsx", HEADER, GOOD)
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 3, 20))):
        data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(data)
    for private in (False, True):
        with suppress(InputError):
            read_table(path, private=private)


def test_keys_of_json_are_no_names(tmp_path: Path) -> None:
    """The names that were told are all there is, in their order, whatever the lines hold."""
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({f"k{i}": i, "a": i}) + "\n" for i in range(5)))
    assert read_table(path, private=True, reading=Reading(columns=("z", "a"))).column_names == ["z", "a"]
