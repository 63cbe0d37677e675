"""Read the answer to a query from a DuckDB file, opened read-only."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from kamino.errors import InputError
from kamino.io.normalise import normalise_table


def read_duckdb(path: str, statement: str, *, private: bool = False) -> pa.Table:
    """Run `statement` in the DuckDB file at `path`."""
    if not Path(path).is_file():
        raise InputError(f"{path}: no such DuckDB file. Check the path; it is relative to {Path.cwd()}.")
    try:
        connection = duckdb.connect(path, read_only=True)
    except duckdb.Error as error:
        raise InputError(
            f"{path}: cannot be opened as a DuckDB file ({type(error).__name__}): damaged, of another "
            "format, or open for writing elsewhere. Close other programs that use it."
        ) from None
    with connection:
        return normalise_table(_run(connection, statement, path=path), where=f"{path}: query", private=private)


def _run(connection: duckdb.DuckDBPyConnection, statement: str, *, path: str) -> pa.Table:
    try:
        # Otherwise a table name could be taken for a Python variable of the caller.
        connection.execute("SET python_enable_replacements = false")
        relation = connection.sql(statement)
        answer: pa.Table | None = relation.to_arrow_table() if relation is not None else None
    except (duckdb.CatalogException, duckdb.ParserException, duckdb.BinderException) as error:
        # These three speak of the query's text and the names of tables and columns, never of values.
        first_line = str(error).strip().splitlines()[0]
        raise InputError(f"{path}: the query is wrong: {first_line} Correct the query.") from None
    except duckdb.Error as error:
        raise InputError(
            f"{path}: the query failed ({type(error).__name__}); the details may quote values and are left "
            "out. Run the query in DuckDB to see them. It must be a SELECT."
        ) from None
    if answer is None:
        raise InputError(f"{path}: the query gives no table. Expected a SELECT or the name of a table.")
    return answer
