"""Which statements are run as queries: a single SELECT, WITH, VALUES or FROM, and no other kind of statement.

`COPY t TO 'x.csv'` would put private rows on a disk, which no read-only transaction forbids. So the kind of a statement
is looked at first. Which functions a SELECT calls is not: no list of names holds all that a database can do. What a
query can reach is for the database to say. DuckDB is opened read-only and closed to all other files; on a server, a
query runs in a read-only transaction, with all the rights of the user that the connection names: for a superuser, that
is reading files of the server.
"""

from __future__ import annotations

import logging

from kamino.errors import InputError
from kamino.limits import MAX_QUERY_CHARS


def refuse_writing(statement: str, *, dialect: str, where: str, strict: bool = True) -> None:
    """Raise an `InputError` unless `statement` is a single query, of a kind that only reads.

    Where not `strict`, a text that cannot be parsed here passes: the database has parsed it.

    Guarantees:
        No kind of statement that writes passes.  [test_only_reading_queries_run]
        What functions may do is left to the rights of the user.  [test_a_query_has_the_rights_of_its_user]
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
        if isinstance(node, not_reading):
            raise _refused(where, "does more than read")


def _refused(where: str, why: str) -> InputError:
    return InputError(
        f"{where}: the query is wrong: it {why}. Expected a single SELECT (or WITH, VALUES, FROM), or the name of a "
        "table. Nothing was run."
    )
