"""Servers that tests of engines start once in a process: PostgreSQL and Spark."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
import warnings
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest


def postgres() -> str:
    """The address of a server of our own."""
    sys.audit("tests.process")
    return _postgres()


@cache
def _postgres() -> str:
    pgserver = pytest.importorskip("pgserver")
    folder = tempfile.mkdtemp(prefix="kamino-postgres-")
    server = pgserver.get_server(folder, cleanup_mode="stop")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.cleanup)
    return str(server.get_uri())


def run_in_postgres(url: str, statement: str) -> None:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(statement)


def fill_postgres(url: str, table: pa.Table, name: str) -> None:
    """Put a table on the server, in place of the one of this name."""
    from adbc_driver_postgresql import dbapi

    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):  # the server has no character of number 0
            clean = pc.replace_substring(table.column(place), "\x00", "")
            table = table.set_column(place, field, clean)
    with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP TABLE IF EXISTS {name} CASCADE")
        cursor.adbc_ingest(name, table, mode="create")


def spark() -> Any:
    """A session with two cores of this machine."""
    sys.audit("tests.process")
    return _spark()


@cache
def _spark() -> Any:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'kamino-synth[spark]'")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, and there is none here")
    from kamino.io.streams.spark_session import spark_session

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = spark_session("spark://local[2]")
    session.sparkContext.setLogLevel("OFF")
    session.conf.set("spark.sql.shuffle.partitions", "2")
    atexit.register(session.stop)
    return session


def spark_schema(table: pa.Table) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(table.schema)
