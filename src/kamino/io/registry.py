"""Kinds of tables, one row each: how one is known, whether its columns have types, and how it is read and written.

A new format is a row here. Readers are slow to import, and are when a table is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kamino.io.databases.sql import duckdb_path, is_table_name, name_parts, scheme_of
from kamino.io.normalise import Choose, chosen_columns
from kamino.io.streams.many_files import is_many
from kamino.io.streams.spark_session import is_spark_frame

if TYPE_CHECKING:
    from kamino.io.tables import Reading
    from kamino.schema.table_parts import TableParts

PACKED = (".gz", ".zst")


@dataclass(frozen=True, kw_only=True)
class FileKind:
    """A kind of file.

    endings: of its names; where it `may_be_packed`, those of compressed files may follow.
    typed: whether its columns have types; else types are found in cells, or within the budget.
    names_columns: whether it names its columns apart from its rows.
    read: reads one as a whole. parts: reads one, or many, part by part, if that can be done; `large` is from how many
    bytes on disk on it is done unasked. written: the endings of names under which one is written.
    """

    name: str
    endings: tuple[str, ...]
    may_be_packed: bool = False
    typed: bool
    names_columns: bool = True
    takes_query: bool = False
    read: Callable[[Path, Reading, bool, Choose], pa.Table]
    parts: Callable[[tuple[Path, ...], bool], TableParts] | None = None
    large: int | None = None
    written: tuple[str, ...] = ()

    def knows(self, path: Path) -> bool:
        """Whether a file is of this kind by its name."""
        packed = ("", *PACKED) if self.may_be_packed else ("",)
        return path.name.lower().endswith(tuple(f"{ending}{how}" for ending in self.endings for how in packed))


def _csv(path: Path, reading: Reading, private: bool, choose: Choose) -> pa.Table:
    if private:
        from kamino.io.private_csv import PrivateCsv

        return reading.cells.read(chosen_columns(PrivateCsv.of(path, reading.dialect).read(), choose, where=str(path)))
    from kamino.io.csv import read_csv, with_types

    text = chosen_columns(read_csv(path, as_text=True, dialect=reading.dialect), choose, where=str(path))
    return with_types(reading.cells.read(text), None, where=str(path))


def _csv_parts(paths: tuple[Path, ...], private: bool) -> TableParts:
    from kamino.io.streams.csv_parts import CsvParts

    del private  # all cells are text
    return CsvParts(paths[0])


def _json_lines(path: Path, reading: Reading, private: bool, choose: Choose) -> pa.Table:
    from kamino.io.formats.json_lines import read_json_lines, read_private_json_lines

    if private:
        # What is left out has no name here.
        lines = read_private_json_lines(path, names=reading.columns, encoding=reading.encoding)
        return reading.cells.read(lines)
    lines = read_json_lines(path, names=reading.columns, encoding=reading.encoding, written=reading.cells)
    return chosen_columns(lines, choose, where=str(path))


def _parquet(path: Path, reading: Reading, private: bool, choose: Choose) -> pa.Table:
    from kamino.io.parquet import read_parquet

    del reading
    return read_parquet(path, private=private, choose=choose)


def _parquet_parts(paths: tuple[Path, ...], private: bool) -> TableParts:
    from kamino.io.streams.parquet_parts import ParquetParts

    return ParquetParts(paths, private=private)


def _feather(path: Path, reading: Reading, private: bool, choose: Choose) -> pa.Table:
    from kamino.io.formats.feather import read_feather

    del reading
    return read_feather(path, private=private, choose=choose)


def _workbook(path: Path, reading: Reading, private: bool, choose: Choose) -> pa.Table:
    from kamino.io.formats.excel import read_excel

    sheet = read_excel(path, sheet=reading.query, private=private, written=reading.cells)
    return chosen_columns(sheet, choose, where=str(path))


PARQUET = FileKind(
    name="parquet",
    endings=(".parquet",),
    typed=True,
    read=_parquet,
    parts=_parquet_parts,
    large=128 << 20,
    written=(".parquet",),
)
CSV = FileKind(
    name="csv",
    endings=(".csv",),
    may_be_packed=True,
    typed=False,
    read=_csv,
    parts=_csv_parts,
    large=512 << 20,
    written=(".csv", ".csv.gz", ".csv.zst"),
)
TSV = FileKind(name="tsv", endings=(".tsv",), may_be_packed=True, typed=False, read=_csv, written=(".tsv",))
FILES = (
    CSV,
    TSV,
    FileKind(name="tab", endings=(".tab",), typed=False, read=_csv),
    FileKind(
        name="json lines",
        endings=(".jsonl", ".ndjson"),
        may_be_packed=True,
        typed=False,
        names_columns=False,
        read=_json_lines,
        written=(".jsonl",),
    ),
    PARQUET,
    FileKind(name="feather", endings=(".feather", ".arrow"), typed=True, read=_feather, written=(".feather",)),
    FileKind(name="workbook", endings=(".xlsx",), typed=False, takes_query=True, read=_workbook),
)
# The endings of files that are written, and of those that know dates.
WRITTEN = tuple(ending for kind in FILES for ending in kind.written)
TYPED = tuple(ending for kind in FILES if kind.typed for ending in kind.written)


@dataclass(frozen=True, kw_only=True)
class DatabaseKind:
    """A kind of database: what reads the answer to a statement, as a whole and in parts.

    enums and catalogue: what it declares of an answer, and of a table by its name; size: the bytes of a table on disk.
    """

    name: str
    schemes: tuple[str, ...]
    read: Callable[[str, str, bool, Choose], pa.Table]
    parts: Callable[[str, str, str | None, bool], TableParts]
    enums: Callable[[str, str], dict[str, tuple[str, ...]]]
    catalogue: Callable[[str, str], dict[str, Any]] | None
    size: Callable[[str, str | None], int] | None
    large: int | None
    is_written: bool


def _duckdb(url: str, statement: str, private: bool, choose: Choose) -> pa.Table:
    from kamino.io.databases.duckdb_file import read_duckdb

    return read_duckdb(duckdb_path(url), statement, private=private, choose=choose)


def _duckdb_parts(url: str, statement: str, table: str | None, private: bool) -> TableParts:
    from kamino.io.streams.duckdb_parts import DuckdbParts

    return DuckdbParts(Path(duckdb_path(url)), statement, is_table=table is not None, private=private)


def _duckdb_enums(url: str, statement: str) -> dict[str, tuple[str, ...]]:
    from kamino.io.databases.duckdb_file import enums_of_duckdb

    return enums_of_duckdb(duckdb_path(url), statement)


def _duckdb_catalogue(url: str, table: str) -> dict[str, Any]:
    from kamino.io.databases.duckdb_file import catalogue_of_duckdb

    return catalogue_of_duckdb(duckdb_path(url), name_parts(table))


def _duckdb_size(url: str, table: str | None) -> int:
    del table
    return os.stat(duckdb_path(url)).st_size


def _postgres(url: str, statement: str, private: bool, choose: Choose) -> pa.Table:
    from kamino.io.databases.postgres import read_postgres

    return read_postgres(url, statement, private=private, choose=choose)


def _postgres_parts(url: str, statement: str, table: str | None, private: bool) -> TableParts:
    from kamino.io.streams.postgres_parts import PostgresParts

    return PostgresParts(url, statement, table=table, private=private)


def _postgres_enums(url: str, statement: str) -> dict[str, tuple[str, ...]]:
    from kamino.io.databases.postgres import enums_of_postgres

    return enums_of_postgres(url, statement)


def _postgres_catalogue(url: str, table: str) -> dict[str, Any]:
    from kamino.io.databases.postgres import catalogue_of_postgres

    return catalogue_of_postgres(url, table.strip().rstrip(";").rstrip())


def _postgres_size(url: str, table: str | None) -> int:
    from kamino.io.databases.postgres import relation_bytes

    return relation_bytes(url, table) if table is not None and is_table_name(table) else 0


def _spark(url: str, statement: str, private: bool, choose: Choose) -> pa.Table:
    parts: Iterator[pa.Table] = _spark_parts(url, statement, None, private).parts()
    return chosen_columns(pa.concat_tables(parts), choose, where="Spark")


def _spark_parts(url: str, statement: str, table: str | None, private: bool) -> TableParts:
    from kamino.io.streams.spark_parts import SparkParts, open_spark_query

    del table
    return SparkParts(open_spark_query(url, statement), private=private)


DUCKDB = DatabaseKind(
    name="duckdb",
    schemes=("duckdb",),
    read=_duckdb,
    parts=_duckdb_parts,
    enums=_duckdb_enums,
    catalogue=_duckdb_catalogue,
    size=_duckdb_size,
    large=512 << 20,
    is_written=True,
)
POSTGRES = DatabaseKind(
    name="postgres",
    schemes=("postgresql", "postgres"),
    read=_postgres,
    parts=_postgres_parts,
    enums=_postgres_enums,
    catalogue=_postgres_catalogue,
    size=_postgres_size,
    large=1 << 30,
    is_written=True,
)
SPARK = DatabaseKind(
    name="spark",
    schemes=("spark",),
    read=_spark,
    parts=_spark_parts,
    enums=lambda url, statement: {},
    catalogue=None,
    size=None,  # its rows are on other machines
    large=None,
    is_written=False,
)
DATABASES = (DUCKDB, POSTGRES, SPARK)


def file_kind(source: object) -> FileKind | None:
    """The kind of a file, a folder or a pattern, by its name; None for what is none that is known."""
    if not isinstance(source, str | os.PathLike):
        return None
    path = Path(os.fspath(source))
    if is_many(path):
        return PARQUET
    return next((kind for kind in FILES if kind.knows(path)), None)


def database_kind(source: object) -> DatabaseKind | None:
    """The kind of database that an address names, or a frame of Spark is of; None for any other source."""
    if is_spark_frame(source):
        return SPARK
    scheme = scheme_of(source) if isinstance(source, str) else None
    return next((kind for kind in DATABASES if scheme in kind.schemes), None)
