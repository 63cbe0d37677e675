"""Text files, workbooks and DuckDB files as readers under trial: rows that are written well, and lines that are not."""

from __future__ import annotations

import codecs
import csv
import gzip
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import duckdb
import pyarrow as pa
from tests.fuzz.file_pairs import empty_workbook
from tests.fuzz.file_rows import ODD_JSON, ODD_TEXTS, PIECES, separated
from tests.io.odd_frames import DUCKDB_CELLS, arrow_table
from tests.io.odd_reading import Cells, Column, OddReader, Seen
from tests.io.oddities import TEXTS

from kamino.io import Reading, read_table
from kamino.io.databases.sql import select_statement
from kamino.io.streams.csv_parts import CsvParts
from kamino.io.streams.duckdb_parts import DuckdbParts
from kamino.io.written_cells import WrittenParts

Read = Callable[[Any], Seen]
TEXT_CELLS: Mapping[str, Column] = {
    "name": Column(plain=("Ann", "Béla", "x y", ""), odd=(*ODD_TEXTS, *TEXTS)),
    "n": Column(plain=("1", "2", "-7", ""), odd=(*ODD_TEXTS, *TEXTS)),
    "day": Column(plain=("2024-01-02", "1999-12-31"), odd=ODD_TEXTS),
}
QUOTES = (b'"', b'"x', b'9,"x', b'9,"', b'9,"a""', b'"9"9,"x', b'",', b'"x,y', b'9,x,"', b'""",x')
RAGGED = (
    *(
        b"9",
        b"1,2,3",
        b"9,x,",
        b'"9"',
        b'"a\nb",1,2',
        b'9,"a\r\nb",c',
        b'"9",8,"x,y"',
        b"\xff",
        b"\x00",
        b"\xef\xbb\xbf",
    ),
    *(b'"x"y,1', b'9,"x"y', b"x" * 70_000, b"\xff,\xfe,\xfd", b" ", b"\x1a", b"\x85", b"#", b"--", b",,,,,,,,"),
)
WHOLE = (
    *(b",", b'"",""', b'9,5" pipe', b"9,\xff", b"\xe9,\xc3", b"9,\x00", b"\x00,\x00", b'9,"a\nb"', b'"a\r\nb",c'),
    *(
        b"9," + b"x" * 70_000,
        b'"9","a,b"',
        b'9,"say ""no"""',
        b"9,\xed\xa0\x80",
        b"\xef\xbb\xbf9,x",
        b"9,\xc2\x85",
        b"9, ",
    ),
    *(b"%s,9" % each for each in PIECES if not set(each) & set(b'",\r\n')),
)
# Cells as people write them, read by options that are public.
_SUMS = ("$1,234.50", "1,234", "(12)", "7 %", "NA", "", "-3", "EUR 5", "1.234,5", "0.5")
WRITTEN_CELLS: Mapping[str, Column] = {
    "price": Column(
        plain=_SUMS[:6],
        odd=(
            *(*ODD_TEXTS, *TEXTS, *_SUMS, "-999", "n/a", "((1))", "-(1)", "$", "%", ",", "1,,234", "\u0661", "9" * 400),
            "1" + ",234" * 30,
        ),
    ),
    "comma": Column(plain=("1.234,5", "12,5 €", "-3"), odd=(*ODD_TEXTS, *_SUMS, "1.2.3,4", "1,2,3")),
    "name": Column(plain=("Ann", "NA", "1,5"), odd=(*ODD_TEXTS, "-", " NA ", "na")),
}
WRITTEN_SO = Reading(
    nulls=("NA", "-"), nulls_of={"price": ("-999", "n/a")}, numbers={"price": "1,234.5", "comma": "1.234,5"}
)
LINES = {
    "line": Column(
        plain=(b"1,x", b"2,y", b',"a b"', b"3,\xc3\xa9"), odd=(*QUOTES, *RAGGED, *WHOLE), beside=(*RAGGED, *WHOLE)
    )
}
JSON_CELLS = {
    name: Column(plain=('"x"', "1", "2.50", "true", "null", '"2024-01-02"'), odd=ODD_JSON) for name in ("a", "b", "c")
}
JSON_LINES = {
    "line": Column(
        plain=(b'{"a": 1, "b": "x"}', b'{"b": true}'),
        odd=(
            *(b"{}", b"[1]", b"null", b"7", b"x", b'{"a": 1', b'{"a": "\\ud800"}', b'{"a": 1, "a": 2}', b'{"c": 1}'),
            *(b"[" * 100_000, b"\xff", b'{"a": "\xff"}', b'\xef\xbb\xbf{"a": 1}', b'{"a": 1}}', b'{"a": [1], "b": {}}'),
            *(b'{"\\ud800": 1}', b'{"a": ' + b"9" * 5_000 + b"}", b'{"a": 1} \r', b"\x00", b'{"": 1}', b'{"a": NaN}'),
        ),
    )
}
XML_CELLS = {
    name: Column(
        plain=('<c t="inlineStr"><is><t>x</t></is></c>', "<c><v>1</v></c>", "<c/>", '<c t="b"><v>1</v></c>'),
        odd=tuple(
            f'<c t="{kind}"{style}><v>{escape(text)}</v></c>'
            for text in ("1", "x", "", "-1", "99999999", "1e999", "9" * 5_000, "43831.5", "2024-01-02", "#N/A", "NaN")
            for kind in ("n", "s", "b", "d", "e", "str", "zz")
            for style in ("", ' s="x"', ' r="??"', ' s="99"')
        ),
    )
    for name in ("a", "b")
}  # fmt: skip


def in_memory(path: Path, reading: Reading = Reading()) -> Seen:
    """Read as a run does that trusts nothing."""
    return Seen(read_table(path, private=True, reading=reading))


def _as_written(path: Path, *, parts: bool) -> Seen:
    """Read cells as people write them, of those columns that are there, as a whole or in parts."""
    names = CsvParts(path).schema.names
    cells = WRITTEN_SO.cells
    told = Reading(
        nulls=cells.nulls,
        nulls_of={name: words for name, words in cells.nulls_of if name in names},
        numbers={name: style for name, style in cells.numbers if name in names},
    )
    if not parts:
        return in_memory(path, told)
    read = WrittenParts(source=CsvParts(path, part_rows=2), cells=told.cells)
    return Seen(pa.concat_tables(read.parts()), public=str(read.schema))


def in_parts(path: Path) -> Seen:
    """Read as the streamed engine does, a few rows at a time."""
    parts = CsvParts(path, part_rows=2)
    return Seen(pa.concat_tables(parts.parts()), public=str(parts.schema))


def _written(file: str, encoding: str, separator: str, quoting: int) -> Callable[[Cells, Path], Path]:
    def write(cells: Cells, folder: Path) -> Path:
        rows = [list(cells), *(list(row) for row in zip(*cells.values(), strict=True))]
        content = "".join(separated(row, separator, quoting) for row in rows).encode(encoding, "replace")
        (folder / file).write_bytes(gzip.compress(content, 1) if file.endswith(".gz") else content)
        return folder / file

    return write


def _lines(file: str, header: bytes) -> Callable[[Cells, Path], Path]:
    def write(cells: Cells, folder: Path) -> Path:
        (folder / file).write_bytes(header + b"".join(line + b"\n" for line in cells["line"]))
        return folder / file

    return write


def _objects(cells: Cells, folder: Path) -> tuple[Path, Sequence[str]]:
    rows = zip(*cells.values(), strict=True)
    lines = ("{" + ", ".join(f'"{n}": {v}' for n, v in zip(cells, row, strict=True)) + "}\n" for row in rows)
    (folder / "t.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder / "t.jsonl", list(cells)


def _named(source: tuple[Path, Sequence[str]]) -> Seen:
    return in_memory(source[0], Reading(columns=tuple(source[1])))


def _sheet(cells: Cells, folder: Path) -> Path:
    head = "".join(f'<c t="inlineStr"><is><t>{name}</t></is></c>' for name in cells)
    # A row without any value is no row of a workbook, so each has a last cell.
    rows = ("".join(row) + "<c><v>1</v></c>" for row in zip(*cells.values(), strict=True))
    body = "".join(f"<row>{row}</row>" for row in (head + '<c t="inlineStr"><is><t>end</t></is></c>', *rows))
    name = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    sheet = f'<worksheet xmlns="{name}"><sheetData>{body}</sheetData></worksheet>'
    with zipfile.ZipFile(folder / "t.xlsx", "w") as packed:
        for each, content in empty_workbook().items():
            packed.writestr(each, sheet if each == "xl/worksheets/sheet1.xml" else content)
    return folder / "t.xlsx"


def _database(cells: Cells, folder: Path) -> Path:
    path = folder / "t.db"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.register("given", arrow_table(cells))
        connection.execute("create table people as select * from given")
    return path


def _of_database(path: Path) -> Seen:
    table = read_table(f"duckdb:///{path}", query="people", private=True)
    parts = DuckdbParts(path, select_statement("people"), is_table=True, private=True, part_rows=2)
    # NaN equals itself in texts alone.
    return Seen(table, public=Seen(pa.concat_tables(parts.parts())).rows == Seen(table).rows)


def _reader(
    name: str, make: Callable[[Cells, Path], Any], columns: Mapping[str, Column], read: Read = in_memory, share: int = 4
) -> OddReader:
    return OddReader(name=name, columns=columns, make=make, read=read, share=share)


_told = {
    each: partial(in_memory, reading=Reading(encoding=each)) for each in ("cp1252", "gb18030", "shift_jis", "utf-8")
}
# Where a quote may stand in another letter's bytes, a line that is badly written may take in others.
FILES: tuple[OddReader, ...] = (
    _reader("csv", _written("t.csv", "utf-8", ",", csv.QUOTE_MINIMAL), TEXT_CELLS),
    _reader("csv-quoted-parts", _written("t.csv", "utf-8", ",", csv.QUOTE_ALL), TEXT_CELLS, in_parts),
    _reader("csv-marked", _written("t.csv", "utf-8-sig", ";", csv.QUOTE_MINIMAL), TEXT_CELLS),
    _reader("csv-utf-16", _written("t.csv", "utf-16", ",", csv.QUOTE_MINIMAL), TEXT_CELLS, in_parts),
    _reader("csv-utf-32", _written("t.csv", "utf-32", "|", csv.QUOTE_ALL), TEXT_CELLS),
    _reader("csv-western", _written("t.csv", "cp1252", ",", csv.QUOTE_MINIMAL), TEXT_CELLS, _told["cp1252"]),
    _reader("csv-gb18030", _written("t.csv", "gb18030", ",", csv.QUOTE_MINIMAL), TEXT_CELLS, _told["gb18030"]),
    _reader("csv-shift-jis", _written("t.csv", "shift_jis", ",", csv.QUOTE_MINIMAL), TEXT_CELLS, _told["shift_jis"]),
    _reader("csv-gz", _written("t.csv.gz", "utf-8", ",", csv.QUOTE_MINIMAL), TEXT_CELLS, share=2),
    _reader(
        "csv-as-written",
        _written("t.csv", "utf-8", ",", csv.QUOTE_MINIMAL),
        WRITTEN_CELLS,
        partial(_as_written, parts=False),
    ),
    _reader(
        "csv-as-written-parts",
        _written("t.csv", "utf-8", ";", csv.QUOTE_ALL),
        WRITTEN_CELLS,
        partial(_as_written, parts=True),
    ),
    _reader("tsv", _written("t.tsv", "utf-8", "\t", csv.QUOTE_MINIMAL), TEXT_CELLS),
    _reader("csv-lines", _lines("t.csv", b"a,b\n"), LINES, share=8),
    _reader("csv-lines-marked", _lines("t.csv", codecs.BOM_UTF8 + b'"a",b\n'), LINES),
    _reader("csv-lines-told", _lines("t.csv", b"a,b\r\n"), LINES, _told["utf-8"]),
    _reader("csv-lines-parts", _lines("t.csv", b"\na,b\n"), LINES, in_parts, share=8),
    _reader("json-lines", _objects, JSON_CELLS, _named, share=8),
    _reader("json-lines-raw", _lines("t.jsonl", b""), JSON_LINES, lambda path: _named((path, ("a", "b")))),
    _reader("workbook", _sheet, XML_CELLS, share=2),
    OddReader(name="duckdb", columns=DUCKDB_CELLS, make=_database, read=_of_database, cost=10),
)
