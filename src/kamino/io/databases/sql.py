"""Read the answer to a SQL query: which database, which query, and what may be said when it fails.

A database quotes values of the table in some of its errors (a failed cast, a division). Only errors about the
query's own text are passed on; all others are named by kind.
"""

from __future__ import annotations

import re

import pyarrow as pa

from kamino.advice import Advice, words
from kamino.errors import InputError
from kamino.io.normalise import Choose, every_column

_URL = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+)://")
_TABLE_PART = r'(?:[^\W\d][\w$]*|"(?:[^"]|"")+")'
_TABLE_NAME = re.compile(rf"^{_TABLE_PART}(?:\.{_TABLE_PART}){{0,2}}$")


def is_url(source: str) -> bool:
    """Say whether `source` is written as a URL, of whatever kind."""
    return _URL.match(source) is not None


def scheme_of(source: str) -> str | None:
    """The kind of address that a URL says it is, in small letters; None for what is no URL."""
    found = _URL.match(source)
    return None if found is None else found.group(1).lower()


def split_table(source: str) -> tuple[str, str | None]:
    """The address of a database and the table that is named behind a `#`, if one is.

    >>> split_table("duckdb:///shop.db#orders"), split_table("duckdb:///shop.db")
    (('duckdb:///shop.db', 'orders'), ('duckdb:///shop.db', None))
    """
    url, mark, table = source.rpartition("#")
    return (url, table) if mark and is_url(url) and _TABLE_NAME.match(table) else (source, None)


def no_query() -> InputError:
    """The refusal of a database of which no table is named."""
    return Advice.of(
        "no-query",
        "found the address of a database, and no table; expected ",
        words("-q 'SELECT …' or -q table, or #table behind the address", "query='SELECT …', or query='table'"),
        ".",
    ).error(InputError)


def read_sql(url: str, query: str, *, private: bool = False, choose: Choose = every_column) -> pa.Table:
    """Run `query`, a SELECT or the name of a table, read-only in the database at `url`.

    Guarantees:
        Nothing but a single query that reads is run.  [test_only_reading_queries_run]
        No message holds a password of the URL.  [test_no_message_holds_a_password]
    """
    from kamino.io.registry import database_kind

    kind, statement = database_kind(url), select_statement(query)
    if kind is None:
        raise unknown_kind(url)
    return kind.read(url, statement, private, choose)


# What DuckDB reads of other kinds, by the scheme of an address: it is copied first, in a line that people fill in.
_BY_DUCKDB = {
    "sqlite": "SELECT * FROM sqlite_scan('FILE.db', 'TABLE')",
    "sqlite3": "SELECT * FROM sqlite_scan('FILE.db', 'TABLE')",
    "mysql": "SELECT * FROM mysql_query('m', 'SELECT * FROM TABLE')",
    "mariadb": "SELECT * FROM mysql_query('m', 'SELECT * FROM TABLE')",
    **dict.fromkeys(("s3", "gs", "gcs", "r2", "https", "http", "hf"), "FROM 'ADDRESS'"),
}
_ATTACHED = dict.fromkeys(("mysql", "mariadb"), "ATTACH 'host=HOST user=USER database=NAME' AS m (TYPE mysql); ")


def unknown_kind(url: str) -> InputError:
    """The refusal of an address of a kind that is not read, with the line that brings such a table here.

    Guarantees:
        It holds nothing of the address but its scheme.  [test_no_message_holds_a_password]
    """
    scheme = scheme_of(url) or ""
    found = f"found a URL of kind '{scheme}', which Kamino cannot read. Expected duckdb:///file.db or "
    found += "postgresql://user@host/database, or the path of a file such as .csv or .parquet."
    if scheme not in _BY_DUCKDB:
        return InputError(found)
    copied = f"{_ATTACHED.get(scheme, '')}COPY ({_BY_DUCKDB[scheme]}) TO 'table.parquet'"
    return InputError(
        f'{found} DuckDB reads it; copy the table first, in Python: import duckdb; duckdb.sql("{copied}")'
    )


def declared_enums(source: object, query: str | None) -> dict[str, tuple[str, ...]]:
    """The values of columns whose type in a database is an enum; of any other source, none. Reads no row.

    Guarantees:
        What rows there are makes no difference.  [test_enums_are_read_without_rows]
    """
    if not isinstance(source, str) or not is_url(source):
        return {}
    if query is None:
        source, query = split_table(source)
    if query is None:
        return {}
    from kamino.io.registry import database_kind

    kind, statement = database_kind(source), select_statement(query)
    return {} if kind is None else kind.enums(source, statement)


def is_table_name(query: str) -> bool:
    """Whether a query is the name of a table and no statement."""
    return _TABLE_NAME.match(query.strip().rstrip(";").rstrip()) is not None


def name_parts(query: str) -> tuple[str, ...]:
    """The parts of a table's name, without quotes.

    >>> name_parts('shop."big item"')
    ('shop', 'big item')
    """
    found = re.findall(_TABLE_PART, query.strip().rstrip(";").rstrip())
    return tuple(part[1:-1].replace('""', '"') if part.startswith('"') else part for part in found)


def folded_parts(query: str) -> tuple[str, ...]:
    """The parts of a table's name as PostgreSQL knows them: what has no quotes is in small letters.

    >>> folded_parts('Shop."Big item"')
    ('shop', 'Big item')
    """
    return name_parts(re.sub(_TABLE_PART, lambda part: part[0] if part[0].startswith('"') else part[0].lower(), query))


def select_statement(query: str) -> str:
    """Return the statement to run: a bare table name becomes a SELECT of all its rows."""
    statement = query.strip().rstrip(";").rstrip()
    if not statement:
        raise InputError("the query is empty. Give a SELECT or the name of a table.")
    if _TABLE_NAME.match(statement):
        return f"SELECT * FROM {statement}"
    return statement


def duckdb_path(url: str) -> str:
    """The path of the file that a DuckDB URL names."""
    _, _, rest = url.partition("://")
    if not rest.startswith("/") or rest == "/":
        raise InputError(
            "a DuckDB URL has three slashes and a path: duckdb:///file.db, or duckdb:////folder/file.db for "
            "an absolute path. Write it so."
        )
    return rest[1:]
