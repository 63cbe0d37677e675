"""Which tables can be read part by part, how large they are on disk, and what opens them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from kamino.errors import InputError
from kamino.io.databases.sql import is_table_name, is_url, no_query, select_statement, split_table
from kamino.io.registry import DatabaseKind, FileKind, database_kind, file_kind
from kamino.io.streams.many_files import check_file, find_files, is_many
from kamino.io.streams.spark_session import is_spark_frame
from kamino.schema.table_parts import TableParts

if TYPE_CHECKING:
    from kamino.io.tables import Reading


def _kind(source: object) -> FileKind | DatabaseKind | None:
    """The kind of a source that can be read in parts, by its name alone; None for any other."""
    if is_spark_frame(source) or (isinstance(source, str) and is_url(source)):
        return database_kind(source)
    kind = file_kind(source)
    return kind if kind is not None and kind.parts is not None else None


def stream_kind(source: object) -> str | None:
    """The name of that kind."""
    kind = _kind(source)
    return None if kind is None else kind.name


def is_large(source: object, query: str | None = None) -> bool:
    """Whether a source that can be read in parts is too large on disk to be held in memory without need."""
    kind = _kind(source)
    if kind is None or kind.large is None:
        return kind is not None  # its rows are on other machines
    assert isinstance(source, str | os.PathLike), "sources with a kind are named by text"
    try:
        if isinstance(kind, DatabaseKind):
            assert kind.size is not None, "what may be large has a size"
            return kind.size(*_address(str(source), query)) >= kind.large
        path = Path(os.fspath(source))
        files = find_files(path) if is_many(path) else (path,)
        return sum(os.stat(each).st_size for each in files) >= kind.large
    except (OSError, InputError):
        return False  # whoever reads it will say what is wrong


def why_not_streamed(source: object, reading: Reading, *, guarded: bool, by_unit: bool) -> str | None:
    """Say why a source cannot be read in parts; None if it can. `guarded` and `by_unit` are settings of the run."""
    kind = stream_kind(source)
    if kind is None:
        return "only Parquet and CSV files, DuckDB, PostgreSQL and Spark are read in parts"
    if reading.separator or reading.encoding or reading.columns or reading.drop:
        return "separators, encodings and choices of columns are for tables in memory"
    query = _address(source, reading.query)[1] if isinstance(source, str) and is_url(source) else None
    if kind == "csv" and not guarded:
        return "types of a CSV file that are taken from its cells need all of them at once"
    if kind in ("duckdb", "postgres") and by_unit and query is not None and not is_table_name(query):
        return "the rows of a unit are counted off in their order, which a query does not keep; name a table"
    return None


def open_stream(source: object, query: str | None = None, *, private: bool = False) -> TableParts:
    """Open a source that `why_not_streamed` has nothing to say of."""
    kind = _kind(source)
    if is_spark_frame(source):
        from kamino.io.streams.spark_parts import SparkParts

        return SparkParts(source, private=private)
    if kind is None or not isinstance(source, str | os.PathLike):
        raise InputError("found a source that cannot be read in parts; expected Parquet, CSV, a database or Spark.")
    if isinstance(kind, DatabaseKind):
        return _open_table(kind, *_address(str(source), query), private=private)
    if query is not None:
        raise InputError(
            "a query was given, but the source is not a database. Leave the query out, or give a URL such as "
            "duckdb:///file.db."
        )
    path = Path(os.fspath(source))
    if not is_many(path):
        check_file(path)
    assert kind.parts is not None, "it was looked at"
    try:
        return kind.parts(find_files(path) if is_many(path) else (path,), private)
    except PermissionError:
        raise InputError(f"{path}: no permission to read this file. Change its permissions or its owner.") from None


def _address(source: str, query: str | None) -> tuple[str, str | None]:
    """The address of a database, and what is read there: the query, or the table behind a `#`."""
    return split_table(source) if query is None else (source, query)


def _open_table(kind: DatabaseKind, url: str, query: str | None, *, private: bool) -> TableParts:
    """Open a table of a database, or the answer to a query."""
    if query is None:
        raise no_query()
    return kind.parts(url, select_statement(query), query.strip() if is_table_name(query) else None, private)
