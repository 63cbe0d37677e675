"""One view of a PostgreSQL database for many passes over a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa

from kamino.io.databases.postgres import WHERE, connect, load_driver, query_failed, said_unread
from kamino.io.databases.queries import refuse_writing

# What a session of many passes is set to: rows come as they are stored, and it may rest between passes.
_SETTINGS = """
    SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY;
    SET LOCAL idle_in_transaction_session_timeout = 0;
    SET LOCAL synchronize_seqscans = off;
    SET LOCAL max_parallel_workers_per_gather = 0;
    SET LOCAL enable_indexscan = off;
    SET LOCAL enable_indexonlyscan = off;
    SET LOCAL enable_bitmapscan = off
"""


class Snapshot:
    """One read-only transaction in which a query is run again and again, on the same rows every time.

    Guarantees:
        It cannot change the database, and creates nothing there.  [test_a_snapshot_writes_nothing]
        A server that is gone is told in a line.  [test_a_killed_server_is_told_with_what_was_spent]
    """

    def __init__(self, url: str, statement: str) -> None:
        refuse_writing(statement, dialect="postgres", where=WHERE)
        self._dbapi, self._statement = load_driver(), statement
        connection, failure = connect(self._dbapi, url, autocommit=False)
        if failure is not None:
            raise failure
        self._connection = connection
        try:
            with self._cursor() as cursor:
                for setting in _SETTINGS.split(";"):
                    cursor.execute(setting)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return "Snapshot(PostgreSQL)"

    def columns(self) -> pa.Table:
        """An empty table with the columns of the answer, as the driver gives them."""
        with self._cursor() as cursor:
            cursor.execute(f"SELECT * FROM (\n{self._statement}\n) AS asked LIMIT 0")
            return cursor.fetch_arrow_table()

    def batches(self, statement: str) -> Iterator[pa.RecordBatch]:
        """Run a query that reads, and give its answer batch by batch."""
        with self._cursor() as cursor:
            cursor.execute(statement)
            with cursor.fetch_record_batch() as reader:
                yield from reader

    def keeps_order(self, table: str) -> bool:
        """Whether a name is that of a table that is stored here, and not of a view or of a table of another server."""
        literal = "'" + table.replace("'", "''") + "'"
        with self._cursor() as cursor:
            cursor.execute(f"SELECT relkind::text FROM pg_class WHERE oid = to_regclass({literal})")
            found = cursor.fetchone()
        return found is not None and found[0] in ("r", "m", "p")

    def close(self) -> None:
        """End the transaction."""
        with suppress(Exception):
            self._connection.close()

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        try:
            with self._connection.cursor() as cursor:
                yield cursor
        except (self._dbapi.Error, pa.ArrowException, OSError) as error:
            raise query_failed(error, said_unread(self._connection, self._statement)) from None
