"""Read the answer to a query from a DuckDB file, opened read-only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from kamino.errors import InputError
from kamino.io.databases.queries import refuse_writing
from kamino.io.normalise import Choose, chosen_columns, every_column, normalise_table

# Otherwise a query could read and write other files, or a table name be taken for a Python variable of the caller.
_CLOSED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}


def read_duckdb(path: str, statement: str, *, private: bool = False, choose: Choose = every_column) -> pa.Table:
    """Run `statement`, a single query that reads, in the DuckDB file at `path`; it reaches no other file.

    What takes more memory than DuckDB may use, such as a large sort, it sets aside in `path.tmp` and removes again.

    Guarantees:
        Nothing else is written.  [test_a_query_writes_no_file]
    """
    with _opened(path, _CLOSED) as connection:
        relation = _relation(connection, statement, path)
        with _telling(path, reads_rows=True):
            answer: pa.Table = relation.to_arrow_table()
    where = f"{path}: query"
    return normalise_table(chosen_columns(answer, choose, where=where), where=where, private=private)


def columns_of_duckdb(path: str, statement: str) -> pa.Table:
    """An empty table with the columns of the answer."""
    with _opened(path, _CLOSED) as connection:
        relation = _relation(connection, statement, path)
        with _telling(path, reads_rows=True):
            empty: pa.Table = relation.limit(0).to_arrow_table()
    return empty


def batches_of_duckdb(path: str, statement: str, names: Sequence[str], *, rows: int) -> Iterator[pa.RecordBatch]:
    """Run `statement` as `read_duckdb` does, and give the named columns of the answer batch by batch.

    One thread reads, so that the rows of a table come in their order, and no more than a few batches are held.
    """
    with _opened(path, {**_CLOSED, "threads": 1}) as connection:
        relation = _relation(connection, statement, path)
        with _telling(path, reads_rows=True):
            relation = relation.select(*(duckdb.ColumnExpression(name) for name in names))
            newer = getattr(relation, "to_arrow_reader", None)  # older versions have the other name
            yield from newer(rows) if newer is not None else relation.fetch_arrow_reader(rows)


@contextmanager
def _opened(path: str, config: dict[str, Any]) -> Iterator[duckdb.DuckDBPyConnection]:
    if not Path(path).is_file():
        raise InputError(f"{path}: no such DuckDB file. Check the path; it is relative to {Path.cwd()}.")
    try:
        connection = duckdb.connect(path, read_only=True, config=config)
    except duckdb.Error as error:
        raise InputError(
            f"{path}: cannot be opened as a DuckDB file ({type(error).__name__}): damaged, of another "
            "format, or open for writing elsewhere. Close other programs that use it."
        ) from None
    with connection:
        yield connection


def enums_of_duckdb(path: str, statement: str) -> dict[str, tuple[str, ...]]:
    """The values of the columns of a query whose type is an enum, by column: declared with the type, not by any row."""
    with _opened(path, _CLOSED) as connection:
        relation = _relation(connection, statement, path)
        names, types = list(relation.columns), list[Any](relation.types)
    pairs = zip(names, types, strict=True)
    return {name: tuple(dict(kind.children)["values"]) for name, kind in pairs if kind.id == "enum"}


def catalogue_of_duckdb(path: str, parts: tuple[str, ...]) -> dict[str, Any]:
    """What the file declares of a table, or view, by the parts of its name."""
    schema, table = (parts[-2] if len(parts) > 1 else None), parts[-1]
    which = "lower(table_name) = lower($table) and lower(schema_name) = lower(coalesce($schema, 'main'))"
    given = {"table": table, "schema": schema}
    with _opened(path, _CLOSED) as connection:
        columns = connection.execute(
            f"select column_name, data_type, is_nullable, comment from duckdb_columns() where {which} "
            "and not internal order by column_index",
            given,
        ).fetchall()
        rules = connection.execute(
            "select constraint_type, constraint_column_names, referenced_table, referenced_column_names, expression "
            f"from duckdb_constraints() where {which} order by constraint_index",
            given,
        ).fetchall()
    refers = {names[0]: f"{other} ({there[0]})" for kind, names, other, there, _ in rules
              if kind == "FOREIGN KEY" and len(names) == 1}  # fmt: skip
    return {
        "columns": [
            {"name": name, "kind": kind, "not_null": not nullable, "comment": comment, "references": refers.get(name)}
            for name, kind, nullable, comment in columns
        ],
        "primary": next((tuple(names) for kind, names, *_ in rules if kind == "PRIMARY KEY"), ()),
        "unique": tuple(tuple(names) for kind, names, *_ in rules if kind == "UNIQUE"),
        "checks": tuple(text for kind, *_, text in rules if kind == "CHECK" and text),
    }


def _relation(connection: duckdb.DuckDBPyConnection, statement: str, path: str) -> duckdb.DuckDBPyRelation:
    """The answer to a query, of which no row is read yet: what is wrong is wrong in the text."""
    with _telling(path, reads_rows=False):
        _refuse_writing(connection, statement, path)
        relation = connection.sql(statement)
    if relation is None:
        raise InputError(f"{path}: the query gives no table. Expected a SELECT or the name of a table.")
    return relation


@contextmanager
def _telling(path: str, *, reads_rows: bool) -> Iterator[None]:
    """Say what went wrong in the block, without any value of the table."""
    # While no row is read, these three speak of the query's text and the names of tables and columns.
    of_text = (duckdb.CatalogException, duckdb.ParserException, duckdb.BinderException)
    told: tuple[type[Exception], ...] = () if reads_rows else of_text
    try:
        yield
    except told as error:
        first_line = str(error).strip().splitlines()[0]
        raise InputError(f"{path}: the query is wrong: {first_line} Correct the query.") from None
    except duckdb.PermissionException:
        raise InputError(
            f"{path}: the query reaches for another file, which is not allowed. Read that file by its own path, or "
            "copy it into a table first."
        ) from None
    except duckdb.Error as error:
        raise InputError(
            f"{path}: the query failed ({type(error).__name__}); the details may quote values and are left "
            "out. Run the query in DuckDB to see them. It must be a SELECT."
        ) from None


def _refuse_writing(connection: duckdb.DuckDBPyConnection, statement: str, path: str) -> None:
    """Refuse what DuckDB's own parser, or ours, does not take for a single SELECT."""
    try:
        kinds = [found.type for found in connection.extract_statements(statement)]
    except duckdb.NotImplementedException:  # older versions cannot take apart a WITH that writes
        kinds = []
    readable = kinds == [duckdb.StatementType.SELECT]
    refuse_writing(statement, dialect="duckdb", where=path, strict=not readable)
    if not readable:
        raise InputError(
            f"{path}: the query is wrong: it is no single SELECT, nor the name of a table. Nothing was run."
        )
