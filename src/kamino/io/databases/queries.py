"""Which queries are run: one that reads, and nothing that writes, loads or changes a setting.

`COPY t TO 'x.csv'` would put private rows on a disk, which no read-only session forbids. A query is parsed first, and
only a single SELECT (or WITH, VALUES, FROM) is passed on.
"""

from __future__ import annotations

import logging

from kamino.errors import InputError
from kamino.limits import MAX_QUERY_CHARS

# Functions of PostgreSQL that reach out of the session, whatever its transaction forbids.
_REACHING_OUT = ("lo_", "dblink", "pg_file_", "pg_read_", "pg_ls_", "pg_reload_", "pg_terminate_", "pg_cancel_")


def refuse_writing(statement: str, *, dialect: str, where: str, strict: bool = True) -> None:
    """Raise an `InputError` unless `statement` is a single query that only reads.

    Where not `strict`, a text that cannot be parsed here passes: the database has parsed it.

    Guarantees:
        No statement that writes passes.  [test_only_reading_queries_run]
    """
    if len(statement) > MAX_QUERY_CHARS:
        raise InputError(f"{where}: the query has more than {MAX_QUERY_CHARS} characters. Create a view, and name it.")
    import sqlglot  # slow to import: only when a database is read
    from sqlglot import exp

    reading = (exp.Query, exp.Values)
    not_reading: tuple[type[exp.Expr], ...] = (
        # Older versions do not call all of these DML.
        *(exp.DML, exp.Insert, exp.Update, exp.Delete, exp.Merge),
        *(exp.DDL, exp.Into, exp.Lock, exp.Command, exp.Copy),
    )
    try:
        logging.getLogger("sqlglot").setLevel(logging.ERROR)
        trees = [tree for tree in sqlglot.parse(statement, read=dialect) if tree is not None]
    except (sqlglot.errors.SqlglotError, RecursionError):
        if strict:
            raise _refused(where, "cannot be parsed: a syntax error") from None
        return
    if not trees:
        raise InputError(f"{where}: the query gives no table. Expected a SELECT or the name of a table.")
    if len(trees) > 1:
        raise _refused(where, f"has {len(trees)} statements")
    if not isinstance(trees[0], reading):
        raise _refused(where, "does more than read, or is no SELECT")
    for node in trees[0].walk():
        name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        if isinstance(node, not_reading) or (dialect == "postgres" and name.startswith(_REACHING_OUT)):
            raise _refused(where, "does more than read")


def _refused(where: str, why: str) -> InputError:
    return InputError(
        f"{where}: the query is wrong: it {why}. Expected a single SELECT (or WITH, VALUES, FROM), or the name of a "
        "table. Nothing was run."
    )
