"""Read the answer to a query from a PostgreSQL server, in a read-only transaction, through ADBC.

A query has all the rights of the user in the URL, within a transaction that cannot change the database. A superuser
reads files of the server, and whoever may replicate makes a replication slot, which no transaction forbids: the user
should be one that may read the table and no more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kamino.errors import InputError
from kamino.io.databases.queries import refuse_writing
from kamino.io.normalise import Choose, chosen_columns, every_column, normalise_table

WHERE = "PostgreSQL query"
_TYPE_KEYS = (b"POSTGRESQL:type", b"ADBC:postgresql:typname")
_CONNECT_REASONS = {
    "refused": "no server listens there",
    "No such file": "no server listens there",
    "translate host name": "the host name is not known",
    "password authentication": "user or password was not accepted",
    "no password supplied": "a password is needed",
    "no pg_hba.conf entry": "the server does not admit this user from here",
    "role": "the user does not exist",
    "database": "the database does not exist",
    "timeout": "the server did not answer in time",
}
_LOST = ("server closed the connection", "no connection to the server", "terminating connection", "SSL SYSCALL error")


def read_postgres(url: str, statement: str, *, private: bool = False, choose: Choose = every_column) -> pa.Table:
    """Run `statement` on the server at `url`.

    Guarantees:
        - The transaction cannot change the database, and no query makes it one that can.
          [test_postgres_session_is_read_only, test_a_query_has_the_rights_of_its_user]
        - No message holds the URL, which may hold a password.  [test_postgres_connection_errors]
        - No message holds a cell.  [test_no_cast_quotes_a_cell]
    """
    refuse_writing(statement, dialect="postgres", where=WHERE)
    with _reading(url, statement) as cursor:
        cursor.execute(statement)
        table = cursor.fetch_arrow_table()
    table = chosen_columns(table, choose, where=WHERE)
    return normalise_table(convert_types(table, private=private), where=WHERE, private=private)


# Names of types that occur in one schema only: the driver tells no more than the name.
_ENUMS = """
    SELECT t.typname, e.enumlabel FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid
    WHERE (SELECT count(*) FROM pg_type o WHERE o.typname = t.typname) = 1 ORDER BY t.typname, e.enumsortorder
"""


def enums_of_postgres(url: str, statement: str) -> dict[str, tuple[str, ...]]:
    """The values of the columns of a query whose type is an enum, by column: declared with the type, not by any row."""
    refuse_writing(statement, dialect="postgres", where=WHERE)
    with _reading(url) as cursor:
        cursor.execute(f"SELECT * FROM (\n{statement}\n) AS asked LIMIT 0")
        fields = list(cursor.fetch_arrow_table().schema)
        cursor.execute(_ENUMS)
        labels: dict[str, list[str]] = {}
        for kind, label in cursor.fetchall():
            labels.setdefault(kind, []).append(label)
    kinds = {field.name: _server_type(field) for field in fields}
    return {name: tuple(labels[kind]) for name, kind in kinds.items() if kind in labels}


_COLUMNS = """
    SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, col_description(a.attrelid, a.attnum)
    FROM pg_attribute a WHERE a.attrelid = to_regclass({table}) AND a.attnum > 0 AND NOT a.attisdropped
    ORDER BY a.attnum
"""
_RULES = """
    SELECT c.contype::text, array_to_json(ARRAY(SELECT a.attname FROM unnest(c.conkey) WITH ORDINALITY AS k(num, place)
        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.num ORDER BY k.place))::text,
        CASE WHEN c.contype = 'f' THEN c.confrelid::regclass::text || ' (' || (SELECT a.attname FROM pg_attribute a
            WHERE a.attrelid = c.confrelid AND a.attnum = c.confkey[1]) || ')' END
    FROM pg_constraint c WHERE c.conrelid = to_regclass({table}) AND c.contype IN ('p', 'u', 'f') ORDER BY c.oid
"""
# What was added as NOT VALID need not hold for the rows that were there.
_CHECKS = """
    SELECT pg_get_expr(c.conbin, c.conrelid) FROM pg_constraint c
    WHERE c.conrelid = to_regclass({table}) AND c.contype = 'c' AND c.convalidated ORDER BY c.oid
"""


def catalogue_of_postgres(url: str, table: str) -> dict[str, Any]:
    """What the server declares of a table, by its name as it stands in a query."""
    literal = "'" + table.replace("'", "''") + "'"
    with _reading(url) as cursor:
        cursor.execute(_COLUMNS.format(table=literal))
        columns = cursor.fetchall()
        cursor.execute(_RULES.format(table=literal))
        rules = [(kind, tuple(json.loads(names)), other) for kind, names, other in cursor.fetchall()]
        cursor.execute(_CHECKS.format(table=literal))
        checks = tuple(text for (text,) in cursor.fetchall() if text)
    refers = {names[0]: other for kind, names, other in rules if kind == "f" and len(names) == 1}
    return {
        "columns": [
            {"name": name, "kind": kind, "not_null": strict, "comment": comment, "references": refers.get(name)}
            for name, kind, strict, comment in columns
        ],
        "primary": next((names for kind, names, _ in rules if kind == "p"), ()),
        "unique": tuple(names for kind, names, _ in rules if kind == "u"),
        "checks": checks,
    }


@contextmanager
def _reading(url: str, statement: str | None = None) -> Iterator[Any]:
    """A cursor in one transaction that cannot change the database; what fails is told without values.

    `statement` is what reads rows in it; None where nothing does.
    """
    dbapi = load_driver()
    connection, failure = connect(dbapi, url, autocommit=False)
    if failure is not None:
        # Raised here, not where it was caught, so that the driver's error is not its context either.
        raise failure
    with connection:
        try:
            with connection.cursor() as cursor:
                # The server takes this back for no query: a transaction that has begun to read stays as it is.
                cursor.execute("SET TRANSACTION READ ONLY")
                yield cursor
        except (dbapi.Error, pa.ArrowException, OSError) as error:
            raise query_failed(error, str(error) if statement is None else said_unread(connection, statement)) from None


def said_unread(connection: Any, statement: str) -> str:
    """What the server says of a query that it does not run: nothing of any row; empty where it finds no fault."""
    try:
        connection.rollback()
        with connection.cursor() as cursor:
            cursor.adbc_prepare(statement)
    except Exception as error:  # also a connection that is lost by now
        return str(error)
    return ""


def relation_bytes(url: str, table: str) -> int:
    """How much room a table takes on the server; 0 for what is no table."""
    literal = "'" + table.replace("'", "''") + "'"
    with _reading(url) as cursor:
        cursor.execute(f"SELECT coalesce(pg_table_size(to_regclass({literal})), 0)::bigint")
        (found,) = cursor.fetchone()
    return int(found)


@contextmanager
def writing_session(url: str) -> Iterator[tuple[Any, Any]]:
    """A connection and its cursor in one transaction, which is taken back unless it is committed in the block."""
    dbapi = load_driver()
    connection, failure = connect(dbapi, url, autocommit=False)
    if failure is not None:
        raise failure
    try:
        with connection, connection.cursor() as cursor:
            yield connection, cursor
    except (dbapi.Error, pa.ArrowException, OSError) as error:
        state = getattr(error, "sqlstate", None) or type(error).__name__
        found = re.search(r"ERROR:\s*([^\n]+)", str(error))
        # The table is synthetic and what it is called was given, so that the server's words may be passed on.
        said = found.group(1).strip() if found else "no more is known"
        raise InputError(f"PostgreSQL: the table cannot be written ({state}: {said}). Nothing was changed.") from None


def connect(dbapi: Any, url: str, *, autocommit: bool) -> tuple[Any, InputError | None]:
    """A connection, or what to raise: where it is raised, the driver's error must not be its context."""
    try:
        return dbapi.connect(url, autocommit=autocommit), None
    except dbapi.Error as error:
        return None, _connection_failed(str(error))


def load_driver() -> Any:
    """The driver, if it is installed."""
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise InputError(
            "reading from PostgreSQL needs the package adbc-driver-postgresql, which is not installed. "
            "Install it with: pip install 'kamino-synth[postgres]'"
        ) from None
    return dbapi


def _connection_failed(text: str) -> InputError:
    # The driver's text may repeat a part of the URL, so it is recognised and not passed on.
    reason = next((said for key, said in _CONNECT_REASONS.items() if key in text), "the URL or the server is at fault")
    return InputError(
        f"cannot connect to PostgreSQL: {reason}. Expected postgresql://user:password@host:port/database, "
        "with special characters percent-encoded."
    )


def query_failed(error: Exception, said: str) -> InputError:
    """Name an error by its code; pass on what the server `said` of the query without running it, if it did.

    Errors of class 42 concern the query's text, or a cell that is cast to the name of a table, a type or a function.
    """
    state = getattr(error, "sqlstate", None) or ""
    found = re.search(r"ERROR:\s*([^\n]+)", said)
    if state == "42501":
        why = found.group(1).strip() if found else "permission denied"
        return InputError(
            f"{WHERE}: the server refused it: {why}. A query has the rights of the user in the URL: "
            "ask for what this user may read."
        )
    if state.startswith("42") and found:
        return InputError(f"{WHERE}: the query is wrong: {found.group(1).strip()}. Correct the query.")
    if state == "25006":
        return InputError(f"{WHERE}: the query would change the database. Expected a SELECT.")
    if state.startswith(("57P", "08")) or any(said in str(error) for said in _LOST):
        return InputError(
            "PostgreSQL: the connection to the server was lost while the table was read. Start the run again when the "
            "server is back."
        )
    code = f"SQLSTATE {state}" if state else type(error).__name__
    return InputError(
        f"{WHERE}: the query failed ({code}); the details may quote values and are left out. Run the query "
        "in psql to see them."
    )


def convert_types(table: pa.Table, *, private: bool, scales: Mapping[str, int] = MappingProxyType({})) -> pa.Table:
    """Give `numeric` its number type back, and refuse types whose Arrow form means something else.

    `scales` are the places of columns whose type declares them; those of others are found in the cells.
    """
    for position, field in enumerate(table.schema):
        kind = _server_type(field)
        if kind == "numeric":
            text = _numeric_text(table.column(position))
            # How many places and digits there are depends on the rows, so a private table gets floats.
            column = pc.cast(text, pa.float64()) if private else _decimals(text, field.name, scales.get(field.name))
            table = table.set_column(position, pa.field(field.name, column.type), column)
        elif kind == "money" or (kind and _is_opaque(field)):
            # The driver gives money as a count of cents, and types it does not know as raw bytes.
            target = "numeric" if kind == "money" else "text"
            raise InputError(
                f"{WHERE}: column '{field.name}' has type {kind}, which Kamino cannot compare. Cast it in "
                "the query: "
                f'"{field.name}"::{target}.'
            )
    return table


def _server_type(field: pa.Field) -> str:
    metadata = field.metadata or {}
    return next((metadata[key].decode() for key in _TYPE_KEYS if key in metadata), "")


def is_numeric(field: pa.Field) -> bool:
    """Whether a column is of the server's type `numeric`."""
    return _server_type(field) == "numeric"


def _is_opaque(field: pa.Field) -> bool:
    kind = field.type
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.opaque"


def _numeric_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The driver's text for `numeric`, without its wrapping."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], type=column.type.storage_type)
    return pc.cast(column, pa.string())


def _decimals(text: pa.ChunkedArray, name: str, declared: int | None) -> pa.ChunkedArray:
    """Turn the text of `numeric` into decimals with as many places as the type declares, or as the longest one has."""
    if declared is not None:
        return pc.cast(text, pa.decimal128(38, declared))
    digits = pc.replace_substring_regex(text, r"[-.]", "")
    if pc.any(pc.match_substring_regex(digits, r"[^0-9]")).as_py():
        raise InputError(
            f"{WHERE}: column '{name}' of type numeric has NaN or infinity, which a decimal cannot hold. "
            "Cast it in "
            f'the query: "{name}"::double precision.'
        )
    point = pc.find_substring(text, ".")
    places = pc.if_else(pc.less(point, 0), 0, pc.subtract(pc.subtract(pc.utf8_length(text), point), 1))
    scale = int(pc.max(places).as_py() or 0)
    whole = int(pc.max(pc.subtract(pc.utf8_length(digits), places)).as_py() or 0)
    if whole + scale > 76:
        raise InputError(
            f"{WHERE}: column '{name}' of type numeric has more than 76 digits. Cast it in the query: "
            f'"{name}"::double precision.'
        )
    return pc.cast(text, pa.decimal128(38, scale) if whole + scale <= 38 else pa.decimal256(76, scale))
