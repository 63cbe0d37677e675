"""Read a table from wherever it is: a file, a database or a data frame."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from kamino.errors import InputError
from kamino.io.csv import read_csv
from kamino.io.databases.credentials import shown_source
from kamino.io.databases.sql import is_url, read_sql
from kamino.io.frames import read_frame
from kamino.io.parquet import read_parquet
from kamino.io.streams.many_files import find_files, is_many


def read_table(source: object, *, query: str | None = None, private: bool = False) -> pa.Table:
    """Read a table from a file, a SQL query or a data frame, with plain column types.

    Args:
        source: A path ending in `.csv`, `.csv.gz` or `.parquet`; a folder of Parquet files, or a pattern such as
            `part-*.parquet`; a URL `duckdb:///file.db` (relative; four
            slashes for an absolute path) or `postgresql://user@host/database`; or a pandas, polars or pyarrow
            frame.
        private: Let no type and no error depend on what the cells hold: CSV and columns of Python objects stay text,
            as do numbers in a dictionary; `numeric` of PostgreSQL becomes a float; a cell that its column cannot hold,
            such as a date outside the years 1 to 9999 or bytes that are not UTF-8, becomes null.
        query: For a URL only: a single SELECT, or the name of a table. It runs read-only.

    Raises:
        InputError: The source cannot be read. The message names the place, never a value of the table.

    Example:
        >>> import pyarrow as pa
        >>> read_table(pa.table({"state": pa.array(["NY", None]).dictionary_encode()})).schema
        state: string
    """
    if isinstance(source, str) and is_url(source):
        if query is None:
            raise InputError(
                "a SQL source needs a query, and none was given. Say query='SELECT ...' or the name of a table."
            )
        return read_sql(source, query, private=private)
    if query is not None:
        raise InputError(
            "a query was given, but the source is not a database. Leave the query out, or give a URL such as "
            "duckdb:///file.db or postgresql://user@host/database."
        )
    if isinstance(source, str | os.PathLike):
        return _read_file(Path(os.fspath(source)), private=private)
    return read_frame(source, private=private)


def _read_file(path: Path, *, private: bool) -> pa.Table:
    name = path.name.lower()
    # What was meant for a database, and misspelled, may hold a password.
    shown = shown_source(str(path))
    if is_many(path):
        from kamino.io.streams.parquet_parts import ParquetParts

        return pa.concat_tables(ParquetParts(find_files(path), private=private).parts())
    if not name.endswith((".csv", ".csv.gz", ".parquet")):
        raise InputError(
            f"{shown}: cannot tell the kind of file by its name. Expected a name ending in .csv, .csv.gz or .parquet."
        )
    if not path.exists():
        raise InputError(f"{shown}: no such file. Check the path; it is relative to {Path.cwd()}.")
    try:
        return read_parquet(path, private=private) if name.endswith(".parquet") else read_csv(path, as_text=private)
    except PermissionError:
        raise InputError(f"{path}: no permission to read this file. Change its permissions or its owner.") from None
