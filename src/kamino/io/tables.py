"""Read a table from wherever it is: a file, a database or a data frame."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from kamino.advice import dropping
from kamino.errors import InputError
from kamino.io.databases.credentials import shown_source
from kamino.io.databases.sql import is_url, no_query, read_sql, split_table, unknown_kind
from kamino.io.formats.dialect import Dialect
from kamino.io.normalise import Choose, chosen_columns, every_column
from kamino.io.registry import FILES, SPARK, FileKind, database_kind
from kamino.io.streams.many_files import check_file, find_files, is_many
from kamino.io.streams.spark_session import is_spark_frame
from kamino.io.written_cells import WrittenCells, checked_nulls, checked_styles
from kamino.schema.attributes import Integer, Real
from kamino.schema.files.messages import did_you_mean
from kamino.schema.schema import Schema

_KNOWN = "Expected a name ending in .csv, .csv.gz, .csv.zst, .tsv, .jsonl, .parquet, .feather or .xlsx."


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Which part of a source is read, and how. All of it is public.

    query: for a database, a single SELECT or the name of a table; for a workbook, the name of a sheet.
    separator, encoding: of a text file; None for what its header line shows.
    columns: the columns to keep, in this order; none for all. They name those of JSON lines, which declare none.
    drop: those to leave out.
    nulls: texts that stand for nothing, such as NA, in all columns. nulls_of: those of a column, by its name.
    numbers: how numbers of a column are written, by its name and an example: `{"price": "1,234.5"}` reads $1,234.50,
    (12) and 7 % too.
    """

    query: str | None = None
    separator: str | None = None
    encoding: str | None = None
    columns: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()
    nulls_of: Mapping[str, Sequence[str]] | tuple[tuple[str, tuple[str, ...]], ...] = ()
    numbers: Mapping[str, str] | tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        of = self.nulls_of.items() if isinstance(self.nulls_of, Mapping) else self.nulls_of
        words = {name: checked_nulls(texts, what=f"the nulls of {name!r}") for name, texts in of}
        object.__setattr__(self, "nulls", checked_nulls(self.nulls, what="nulls"))
        object.__setattr__(self, "nulls_of", tuple(words.items()))
        object.__setattr__(self, "numbers", checked_styles(self.numbers))
        Dialect(separator=self.separator, encoding=self.encoding)
        both = [name for name in self.columns if name in self.drop]
        if both:
            raise InputError(f"found {', '.join(both)} both among the columns to keep and to leave out; say one")

    @property
    def dialect(self) -> Dialect:
        """Separator and encoding."""
        return Dialect(separator=self.separator, encoding=self.encoding)

    @property
    def cells(self) -> WrittenCells:
        """How cells are written."""
        assert isinstance(self.nulls_of, tuple), "it was read"
        assert isinstance(self.numbers, tuple), "it was read"
        return WrittenCells(nulls=self.nulls, nulls_of=self.nulls_of, numbers=self.numbers)

    def with_cells(self, schema: Schema | None) -> Reading:
        """The same, with cells read as a schema says that they are written; what is said here goes before it.

        Guarantees:
            A schema and options read cells alike.  [test_a_schema_says_how_cells_are_written]
        """
        if schema is None:
            return self
        cells, known = self.cells, schema.attributes.items()
        words = {name: each.nulls for name, each in known if each.nulls and self.reads(name)}
        styles = {
            name: each.written
            for name, each in known
            if isinstance(each, Integer | Real) and each.written is not None and self.reads(name)
        }
        return replace(self, nulls_of=words | dict(cells.nulls_of), numbers=styles | dict(cells.numbers))

    def reads(self, name: str) -> bool:
        """Whether a column of this name is read, if there is one."""
        return name not in self.drop and (not self.columns or name in self.columns)

    def chosen(self, names: list[str]) -> list[str]:
        """The columns that are kept of a table with these names.

        Raises:
            InputError: a name is not there, or none is left.
        """
        for name in (*self.columns, *self.drop):
            if name not in names:
                raise InputError(
                    f"found no column {name!r} in the table.{did_you_mean(name, names)} Columns: {', '.join(names)}"
                )
        kept = [name for name in self.columns or names if name not in self.drop]
        if not kept:
            raise InputError(f"found no column that is left after {dropping()}; keep at least one")
        return list(dict.fromkeys(kept))

    def to_json(self) -> dict[str, Any]:
        """What differs from reading all of it, for the record."""
        facts = {"separator": self.separator, "encoding": self.encoding, "columns": self.columns, "drop": self.drop}
        plain = {name: list(v) if isinstance(v, tuple) else v for name, v in facts.items() if v}
        words = {name: list(texts) for name, texts in self.cells.nulls_of}
        written = {"nulls": list(self.nulls), "nulls_of": words, "numbers": dict(self.cells.numbers)}
        return plain | {name: v for name, v in written.items() if v}


ALL = Reading()


def read_table(source: object, *, query: str | None = None, private: bool = False, reading: Reading = ALL) -> pa.Table:
    """Read a table from a file, a SQL query or a data frame, with plain column types.

    Args:
        source: A path ending in `.csv`, `.tsv` or `.jsonl` (also `.gz` and `.zst`), `.parquet`, `.feather` or `.xlsx`;
            a folder of Parquet files, or a pattern such as `part-*.parquet`; a URL
            `duckdb:///file.db` (relative; four slashes for an absolute path) or `postgresql://user@host/database`, with
            `#table` behind it or a query; `spark://host:port` or `spark://local[2]` with a query; or a pandas, polars,
            pyarrow or Spark frame.
        private: Let no name, no type and no error depend on what the rows hold: CSV, JSON lines, workbooks and columns
            of Python objects stay text, as does what is in a category or a dictionary; `numeric` of PostgreSQL becomes
            a float; a cell that its column cannot hold, such as a date outside the years 1 to 9999 or bytes that are
            not UTF-8, becomes null, and so do all cells of a line that cannot be read. The columns of JSON lines are
            those of `reading`.
        query: For a URL: a single SELECT, or the name of a table. It runs read-only. For a workbook: a sheet.
        reading: How text files are written, and which columns are kept.

    Raises:
        InputError: The source cannot be read. The message names the place, never a value of the table.

    Example:
        >>> import pyarrow as pa
        >>> read_table(pa.table({"state": pa.array(["NY", None]).dictionary_encode()})).schema
        state: string
    """
    how = reading if query is None else replace(reading, query=query)
    choose = how.chosen if how.columns or how.drop else every_column
    table = _read(source, how, private=private, choose=choose)
    how.cells.refuse_unknown(table.column_names)
    # Readers of files without types do this before they find types.
    return table if is_untyped(source) else how.cells.read(table)


def is_untyped(source: object) -> bool:
    """Whether a source is a file whose columns have no types, only cells."""
    kind = _own_kind(source)
    return kind is not None and not kind.typed


def declares_names(source: object) -> bool:
    """Whether a source names its columns apart from its rows. JSON lines do not: each line brings its own keys."""
    kind = _own_kind(source)
    return kind is None or kind.names_columns


def _own_kind(source: object) -> FileKind | None:
    """The kind of file that a name says, whatever is there."""
    if not isinstance(source, str | os.PathLike):
        return None
    return next((kind for kind in FILES if kind.knows(Path(os.fspath(source)))), None)


def _read(source: object, reading: Reading, *, private: bool, choose: Choose) -> pa.Table:
    query = reading.query
    if is_spark_frame(source) or database_kind(source) is SPARK:
        from kamino.io.streams.sources import open_stream

        whole = pa.concat_tables(open_stream(source, query, private=private).parts())
        return chosen_columns(whole, choose, where="Spark")
    if isinstance(source, str) and is_url(source):
        if database_kind(source) is None:
            raise unknown_kind(source)
        url, table = split_table(source) if query is None else (source, None)
        if query is None and table is None:
            raise no_query()
        return read_sql(url, str(table) if query is None else query, private=private, choose=choose)
    kind = _own_kind(source)
    if query is not None and (kind is None or not kind.takes_query):
        raise InputError(
            "a query was given, but the source is not a database. Leave the query out, or give a URL such as "
            "duckdb:///file.db or postgresql://user@host/database."
        )
    if isinstance(source, str | os.PathLike):
        return _read_file(Path(os.fspath(source)), reading, private=private, choose=choose)
    from kamino.io.frames import read_frame

    return read_frame(source, private=private, choose=choose)


def _read_file(path: Path, reading: Reading, *, private: bool, choose: Choose) -> pa.Table:
    if is_many(path):
        from kamino.io.streams.parquet_parts import ParquetParts

        return pa.concat_tables(ParquetParts(find_files(path), private=private, choose=choose).parts())
    kind = _own_kind(path)
    if kind is None:
        # What was meant for a database, and misspelled, may hold a password.
        raise InputError(f"{shown_source(str(path))}: cannot tell the kind of file by its name. {_KNOWN}")
    check_file(path)
    try:
        return kind.read(path, reading, private, choose)
    except PermissionError:
        raise InputError(f"{path}: no permission to read this file. Change its permissions or its owner.") from None
