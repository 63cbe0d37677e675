"""Pairs of files that differ in one odd row, of every kind that is read."""

from __future__ import annotations

import codecs
import csv
import functools
import gzip
import io
import random
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from tests.fuzz.file_rows import (
    COLUMNS,
    OddRow,
    json_line,
    odd_json_line,
    odd_line,
    odd_sheet_row,
    odd_texts,
    plain_texts,
    separated,
    sheet_row,
    typed_rows,
)

Write = Callable[[Path], None]
MOST_COLUMNS = 3
MOST_ROWS = (3, 24, 24, 24, 150)
# Of files that have no neighbour, so many have nothing in common but their header.
STRANGERS = 0.08


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file under trial: its name, what names it on the command line, and options to read it with."""

    kind: str
    file: str
    address: str
    options: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    in_parts: bool = False
    names_itself: bool = True


@dataclass(frozen=True, kw_only=True)
class Pair:
    """How a file and another are written. `is_neighbour`: whether they differ in one row, however they are read."""

    plain: Write
    other: Write
    is_neighbour: bool
    told: str


@dataclass(frozen=True, kw_only=True)
class FileKind:
    """A kind of file: a source of some columns, the rows of a file, and how rows make a file."""

    name: str
    share: int
    source: Callable[[tuple[str, ...]], Source]
    row: Callable[[Sequence[str], random.Random], bytes]
    odd: Callable[[Sequence[str], random.Random], OddRow]
    write: Callable[[Sequence[str], Sequence[bytes], Path], None]


def _text_kind(
    name: str,
    file: str,
    *,
    separator: str = ",",
    encoding: str = "utf-8",
    share: int = 2,
    options: tuple[str, ...] = (),
) -> FileKind:
    bare = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}.get(encoding, encoding)
    mark = {"utf-8-sig": codecs.BOM_UTF8, "utf-16": codecs.BOM_UTF16_LE}.get(encoding, b"")

    def row(names: Sequence[str], rng: random.Random) -> bytes:
        texts = odd_texts(names, rng) if rng.random() < 0.05 else plain_texts(names, rng)
        return separated(texts, separator, rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))).encode(bare, "replace")

    def write(names: Sequence[str], rows: Sequence[bytes], path: Path) -> None:
        content = mark + separated(names, separator, csv.QUOTE_MINIMAL).encode(bare) + b"".join(rows)
        path.write_bytes(gzip.compress(content, 1) if file.endswith(".gz") else content)

    def source(names: tuple[str, ...]) -> Source:
        parts = not options and separator == "," and not file.endswith(".tsv")
        return Source(kind=name, file=file, address=file, options=options, names=names, in_parts=parts)

    def odd(names: Sequence[str], rng: random.Random) -> OddRow:
        return odd_line(names, separator, bare, rng)

    return FileKind(name=name, share=share, source=source, row=row, odd=odd, write=write)


def _json_kind(name: str, file: str, share: int) -> FileKind:
    def write(names: Sequence[str], rows: Sequence[bytes], path: Path) -> None:
        content = b"".join(rows)
        path.write_bytes(gzip.compress(content, 1) if file.endswith(".gz") else content)

    def source(names: tuple[str, ...]) -> Source:
        return Source(kind=name, file=file, address=file, names=names, names_itself=False)

    return FileKind(name=name, share=share, source=source, row=json_line, odd=odd_json_line, write=write)


@functools.cache
def empty_workbook() -> dict[str, bytes]:
    """The parts of a workbook, by their names in its archive."""
    import openpyxl

    made = io.BytesIO()
    openpyxl.Workbook().save(made)
    with zipfile.ZipFile(made) as whole:
        return {name: whole.read(name) for name in whole.namelist()}


_SHEET = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'


def _write_sheet(names: Sequence[str], rows: Sequence[bytes], path: Path) -> None:
    sheet = _SHEET + sheet_row(names) + b"".join(rows) + b"</sheetData></worksheet>"
    with zipfile.ZipFile(path, "w") as packed:
        for name, content in empty_workbook().items():
            packed.writestr(name, sheet if name == "xl/worksheets/sheet1.xml" else content)


SHEET = FileKind(
    name="xlsx",
    share=2,
    source=lambda names: Source(kind="xlsx", file="t.xlsx", address="t.xlsx", names=names),
    row=lambda names, rng: sheet_row(plain_texts(names, rng)),
    odd=odd_sheet_row,
    write=_write_sheet,
)


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _unpacked(names: Sequence[str], rows: Sequence[bytes]) -> pa.Table:
    empty = typed_rows(names, 0, 0, random.Random(0))
    return pa.concat_tables([empty, *(pa.ipc.open_stream(row).read_all() for row in rows)]).combine_chunks()


def _write_duckdb(names: Sequence[str], rows: Sequence[bytes], path: Path) -> None:
    import duckdb

    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.register("given", _unpacked(names, rows))
        connection.execute("create table people as select * from given")


def _typed_kind(name: str, file: str, share: int, save: Callable[[pa.Table, Path], None] | None) -> FileKind:
    def write(names: Sequence[str], rows: Sequence[bytes], path: Path) -> None:
        if save is None:
            _write_duckdb(names, rows, path)
        else:
            save(_unpacked(names, rows), path)

    def source(names: tuple[str, ...]) -> Source:
        address = f"duckdb:///{file}#people" if save is None else file
        return Source(kind=name, file=file, address=address, names=names, in_parts=name != "feather")

    return FileKind(
        name=name,
        share=share,
        source=source,
        row=lambda names, rng: _packed(typed_rows(names, 1, 0.02, rng, texts=save is None)),
        odd=lambda names, rng: OddRow(data=_packed(typed_rows(names, 1, 0.6, rng, texts=save is None))),
        write=write,
    )


KINDS: tuple[FileKind, ...] = (
    _text_kind("csv", "t.csv", share=8),
    _text_kind("csv-semicolon", "t.csv", separator=";"),
    _text_kind("csv-told", "t.csv", encoding="cp1252", options=("--encoding", "cp1252", "--separator", ",")),
    _text_kind("csv-utf-8-told", "t.csv", options=("--encoding", "utf-8")),
    _text_kind("csv-marked", "t.csv", encoding="utf-8-sig"),
    _text_kind("csv-utf-16", "t.csv", encoding="utf-16"),
    _text_kind("csv-western", "t.csv", encoding="cp1252"),
    _text_kind("csv-gz", "t.csv.gz", share=1),
    _text_kind("tsv", "t.tsv", separator="\t"),
    _json_kind("jsonl", "t.jsonl", 5),
    _json_kind("jsonl-gz", "t.jsonl.gz", 1),
    SHEET,
    _typed_kind("parquet", "t.parquet", 3, lambda table, path: pa.parquet.write_table(table, path)),
    _typed_kind("feather", "t.feather", 2, lambda table, path: pa.feather.write_feather(table, str(path))),
    _typed_kind("duckdb", "t.db", 2, None),
)


@dataclass(frozen=True, kw_only=True)
class Base:
    """A file that many others are compared with."""

    kind: FileKind
    source: Source
    rows: tuple[bytes, ...]

    def write(self, path: Path) -> None:
        """Write the file."""
        self.kind.write(self.source.names, self.rows, path)


def base_of(rng: random.Random) -> Base:
    """A file of a few columns."""
    kind = rng.choices(KINDS, [each.share for each in KINDS])[0]
    names = tuple(rng.sample(sorted(COLUMNS), rng.randint(1, MOST_COLUMNS)))
    rows = tuple(kind.row(names, rng) for _ in range(rng.randint(0, rng.choice(MOST_ROWS))))
    return Base(kind=kind, source=kind.source(names), rows=rows)


def pair_of(base: Base, rng: random.Random, *, replaced: bool = False) -> Pair:
    """The file, and the same with an odd row more at some place, or instead of another; or one with the same header."""
    names, rows = base.source.names, base.rows
    if rng.random() < STRANGERS:
        others = [base.kind.odd(names, rng).data for _ in range(rng.choice((0, 1, 10, 60)))]
        return Pair(plain=base.write, other=_written(base, others), is_neighbour=False, told="a stranger")
    odd = base.kind.odd(names, rng)
    place = rng.randint(0, len(rows))
    other = _written(base, [*rows[:place], odd.data, *rows[place + replaced :]])
    return Pair(plain=base.write, other=other, is_neighbour=odd.is_one, told=repr(odd.data[:200]))


def _written(base: Base, rows: Sequence[bytes]) -> Write:
    return lambda path: base.kind.write(base.source.names, rows, path)
