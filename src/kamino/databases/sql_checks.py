"""Conditions of SQL on one row, its owners and the public rows that it names, which constraints cannot say.

    check (lines.received <= lines.shipped + interval 30 day)
    check (weather.hour = floor(flights.scheduled / 100))

Rows that make one false are drawn anew.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kamino.databases.formula_lines import AGGREGATES, ALLOWED, Joins, parsed, quoted
from kamino.databases.table_rules import SqlCheck, dotted
from kamino.errors import ConstraintError
from kamino.schema.database import Database, Role

_CHECK = re.compile(r"(check|not)\s*\((.*)\)\s*\Z", re.I | re.S)


def is_check(text: str) -> bool:
    """Whether a line is a check of SQL, as far as its first word goes, on single rows."""
    return _CHECK.match(text) is not None and re.search(r"\bt[12]\s*\.\s*\S+?\s*\.", text) is None


def columns_of(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The condition of a check, which must not be false, and the tables and columns that it names.

    Raises:
        ConstraintError: it is no condition on columns with their tables.
    """
    from sqlglot import exp

    match = _CHECK.match(text)
    assert match is not None, "asked before"
    tree = parsed(match[2])
    for node in tree.walk():
        if type(node).__name__ not in ALLOWED or type(node).__name__ in AGGREGATES:
            raise ConstraintError(
                f"found {type(node).__name__.lower()} in a check, expected arithmetic, comparisons and case"
            )
    columns = [(each.table, each.name) for each in tree.find_all(exp.Column)]
    bare = [name for table, name in columns if not table]
    if bare:
        raise ConstraintError(f"found {bare[0]!r} without its table, expected a name such as orders.{bare[0]}")
    if not columns:
        raise ConstraintError("found a check of no column, expected one such as orders.placed")
    sql = tree.sql(dialect="duckdb")
    return (sql if match[1].lower() == "check" else f"not coalesce({sql}, false)"), columns


def broken_query(check: SqlCheck, database: Database) -> str:
    """A query of the rows of a table, as it is written, that make a check false."""
    joins = Joins(database, check.table)
    for name in check.tables:
        joins.reach(name)
    return f"select 1 from {quoted(check.table)}{joins.sql()} where not coalesce({identified(check.sql)}, true)"


def wide_query(check: SqlCheck, database: Database) -> str:
    """A query that says of each row of a table `wide`, with dotted names, whether it makes a check false, in order."""
    from sqlglot import exp

    tree = parsed(check.sql)
    for column in list(tree.find_all(exp.Column)):
        if database[column.table].role is not Role.PUBLIC:
            column.replace(exp.column(dotted(column.table, column.name), quoted=True))
    joined = "".join(_public_join(name, check.table, database) for name in check.tables)
    value = tree.sql(dialect="duckdb", identify=True)
    return f'select not coalesce({value}, true) as broken from wide{joined} order by wide."#"'


def keys_read(check: SqlCheck, database: Database) -> tuple[str, ...]:
    """The private columns that a check reads, those by which it finds public rows included."""
    private = [name for name in check.columns if database[name.partition(".")[0]].role is not Role.PUBLIC]
    for name in check.tables:
        if database[name].role is Role.PUBLIC:
            key = Joins(database, check.table).key_to(name, database.path(check.table))
            private += [dotted(key.table, column) for column in key.columns]
    return tuple(dict.fromkeys(private))


def _public_join(name: str, table: str, database: Database) -> str:
    if database[name].role is not Role.PUBLIC:
        return ""
    key = Joins(database, table).key_to(name, database.path(table))
    pairs = zip(key.columns, key.to, strict=True)
    on = " and ".join(f"wide.{quoted(dotted(key.table, c))} = {quoted(name)}.{quoted(t)}" for c, t in pairs)
    return f" left join {quoted(name)} on {on}"


def identified(sql: str) -> str:
    """A condition with all its names in quotes."""
    text: str = parsed(sql).sql(dialect="duckdb", identify=True)
    return text


def false_rows(checks: Sequence[SqlCheck], database: Database, wide: Any, public: Any) -> Any:
    """Which rows of a wide table make one of the checks false, as an array of booleans."""
    import duckdb
    import numpy as np

    found = np.zeros(wide.num_rows, dtype=np.bool_)
    with duckdb.connect() as db:
        db.execute("set threads to 1")
        db.register("wide", wide)
        for name, table in public.items():
            db.register(name, table)
        for check in checks:
            column = db.sql(wide_query(check, database)).to_arrow_table().column("broken")
            found |= np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False), dtype=np.bool_)
    return found
