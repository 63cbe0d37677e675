"""Which tables can be read part by part, how large they are on disk, and what opens them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from kamino.errors import InputError
from kamino.io.databases.sql import duckdb_path, is_table_name, is_url, select_statement, split_table
from kamino.io.streams.csv_parts import CsvParts
from kamino.io.streams.many_files import check_file, find_files, is_many
from kamino.io.streams.parquet_parts import ParquetParts
from kamino.io.streams.spark_session import is_spark_frame

if TYPE_CHECKING:
    from kamino.io.streams.duckdb_parts import DuckdbParts
    from kamino.io.streams.postgres_parts import PostgresParts
    from kamino.io.streams.spark_parts import SparkParts
    from kamino.io.tables import Reading

Stream: TypeAlias = "ParquetParts | CsvParts | DuckdbParts | PostgresParts | SparkParts"
# From so many bytes on disk on, a table is read in parts unless somebody says otherwise: some 2 to 4 GiB in memory.
_LARGE = {"parquet": 128 << 20, "csv": 512 << 20, "duckdb": 512 << 20, "postgres": 1 << 30}
_SCHEMES = {"duckdb": "duckdb", "postgresql": "postgres", "postgres": "postgres", "spark": "spark"}


def stream_kind(source: object) -> str | None:
    """The kind of a source that can be read in parts, by its name alone; None for any other."""
    if is_spark_frame(source):
        return "spark"
    if isinstance(source, str) and is_url(source):
        return _SCHEMES.get(source.partition(":")[0].lower())
    if not isinstance(source, str | os.PathLike):
        return None
    path = Path(os.fspath(source))
    name = path.name.lower()
    if is_many(path) or name.endswith(".parquet"):
        return "parquet"
    return "csv" if name.endswith((".csv", ".csv.gz", ".csv.zst")) else None


def is_large(source: object, query: str | None = None) -> bool:
    """Whether a source that can be read in parts is too large on disk to be held in memory without need."""
    kind = stream_kind(source)
    if kind in (None, "spark"):
        return kind == "spark"  # its rows are on other machines
    assert kind is not None, "it was looked at"
    assert isinstance(source, str | os.PathLike), "sources with a kind are named by text"
    try:
        if is_url(str(source)):
            source, query = _address(str(source), query)
        if kind == "postgres":
            from kamino.io.databases.postgres import relation_bytes

            return query is not None and is_table_name(query) and relation_bytes(str(source), query) >= _LARGE[kind]
        path = Path(duckdb_path(str(source))) if kind == "duckdb" else Path(os.fspath(source))
        files = find_files(path) if kind == "parquet" and is_many(path) else (path,)
        return sum(os.stat(each).st_size for each in files) >= _LARGE[kind]
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


def open_stream(source: object, query: str | None = None, *, private: bool = False) -> Stream:
    """Open a source that `why_not_streamed` has nothing to say of."""
    kind = stream_kind(source)
    if is_spark_frame(source):
        from kamino.io.streams.spark_parts import SparkParts

        return SparkParts(source, private=private)
    if kind is None or not isinstance(source, str | os.PathLike):
        raise InputError("found a source that cannot be read in parts; expected Parquet, CSV, a database or Spark.")
    if is_url(str(source)):
        return _open_url(kind, *_address(str(source), query), private=private)
    if query is not None:
        raise InputError(
            "a query was given, but the source is not a database. Leave the query out, or give a URL such as "
            "duckdb:///file.db."
        )
    path = Path(os.fspath(source))
    if not is_many(path):
        check_file(path)
    try:
        if kind == "csv":
            return CsvParts(path)
        return ParquetParts(find_files(path) if is_many(path) else (path,), private=private)
    except PermissionError:
        raise InputError(f"{path}: no permission to read this file. Change its permissions or its owner.") from None


def _address(source: str, query: str | None) -> tuple[str, str | None]:
    """The address of a database, and what is read there: the query, or the table behind a `#`."""
    return split_table(source) if query is None else (source, query)


def _open_url(kind: str, url: str, query: str | None, *, private: bool) -> Stream:
    """Open a table of a database, or the answer to a query; drivers are slow to import."""
    if query is None:
        raise InputError(
            "a SQL source needs a query, and none was given. Say query='SELECT ...' or the name of a table."
        )
    statement, is_table = select_statement(query), is_table_name(query)
    if kind == "duckdb":
        from kamino.io.streams.duckdb_parts import DuckdbParts

        return DuckdbParts(Path(duckdb_path(url)), statement, is_table=is_table, private=private)
    if kind == "postgres":
        from kamino.io.streams.postgres_parts import PostgresParts

        return PostgresParts(url, statement, table=query.strip() if is_table else None, private=private)
    from kamino.io.streams.spark_parts import SparkParts, open_spark_query

    return SparkParts(open_spark_query(url, statement), private=private)
