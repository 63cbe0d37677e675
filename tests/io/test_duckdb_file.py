from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.databases.duckdb_file import _telling


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute("""
            CREATE TABLE item AS SELECT * FROM (VALUES
                (1::TINYINT, 1.5::DOUBLE, 2.50::DECIMAL(9, 2), true, 'S3CRET', DATE '2024-01-02',
                 TIMESTAMP '2024-01-02 03:04:05', 'a'::ENUM('a', 'b'), 5::HUGEINT),
                (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
            ) AS t(small, number, price, flag, word, day, moment, kind, big)
        """)
        connection.execute('CREATE TABLE "odd name" AS SELECT 1 AS a')
        connection.execute("CREATE SCHEMA s")
        connection.execute("CREATE TABLE s.t AS SELECT 7 AS a")
    return path


def url(path: Path) -> str:
    return f"duckdb:///{path}"


def test_all_types(database: Path) -> None:
    table = read_table(url(database), query="item")
    assert [str(kind) for kind in table.schema.types] == [
        "int8", "double", "decimal128(9, 2)", "bool", "string", "date32[day]", "timestamp[us]", "string",
        "decimal128(38, 0)",
    ]  # fmt: skip
    assert [list(row.values()) for row in table.to_pylist()] == [
        [1, 1.5, Decimal("2.50"), True, "S3CRET", dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5), "a",
         Decimal(5)],
        [None] * 9,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "value"),
    [("s.t", 7), ('"odd name"', 1), (" s.t ; ", 7), ("SELECT a + 1 AS a FROM s.t", 8),
     ("WITH q AS (FROM s.t) SELECT a FROM q;", 7)],
)  # fmt: skip
def test_table_name_or_select(database: Path, query: str, value: int) -> None:
    assert read_table(url(database), query=query).column("a").to_pylist() == [value]


def test_relative_path(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(database.parent)
    assert read_table("duckdb:///shop.db", query="item").num_rows == 2


def test_a_python_variable_is_not_a_table(database: Path) -> None:
    statement = pa.table({"a": [1]})
    assert statement.num_rows == 1
    for name in ("statement", "relation", "table"):
        with pytest.raises(InputError, match="query is wrong"):
            read_table(url(database), query=f"SELECT * FROM {name}")


def test_the_file_is_not_changed(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a statement that writes were taken for a query: the session is read-only."""
    monkeypatch.setattr("kamino.io.databases.duckdb_file._refuse_writing", lambda *_: None)
    before = database.read_bytes()
    for query in ("CREATE TABLE x AS SELECT 1", "DROP TABLE item", "DELETE FROM item"):
        with pytest.raises(InputError, match=r"query failed .* must be a SELECT"):
            read_table(url(database), query=query)
    assert database.read_bytes() == before


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("nope", "query is wrong: Catalog Error: Table with name nope does not exist"),
        ("SELECT nope FROM item", 'query is wrong: Binder Error: Referenced column "nope" not found'),
        ("SELEC 1", "query is wrong: Parser Error"),
        ("SELECT CAST(word AS INT) AS a FROM item", "query failed"),
        ("SELECT error(word) AS a FROM item", "query failed"),
        ("SELECT 1 AS a, 2 AS a", "'a' occurs more than once"),
        ("SELECT TIME '10:00' AS a", "column 'a' has type time64"),
        ("SELECT [1] AS a", "column 'a' has type list"),
        ("SELECT DATE 'infinity' AS a", "column 'a' has a date outside"),
        ("-- nothing", "query gives no table"),
    ],
)
def test_errors_hold_no_value(database: Path, query: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_table(url(database), query=query)
    assert "S3CRET" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_error_while_rows_are_read_is_not_quoted(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its kind: while rows are read, an error of the catalogue may speak of a cell too."""
    with pytest.raises(InputError, match="query is wrong: Catalog Error"):
        read_table(url(database), query="nope")
    for kind in (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException):
        with pytest.raises(InputError, match="query failed") as told, _telling("x.db", reads_rows=True):
            raise kind("Catalog Error: S3CRET is no table")
        assert "S3CRET" not in str(told.value)


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_query_writes_no_file(database: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    target = database.with_name(name)
    statements = (f"COPY item TO '{target}'", f"COPY (SELECT 1) TO '{target}'", f"EXPORT DATABASE '{target}'")
    for query in statements:
        with pytest.raises(InputError, match="query is wrong: it"):
            read_table(url(database), query=query)
    # The session refuses it as well.
    monkeypatch.setattr("kamino.io.databases.duckdb_file._refuse_writing", lambda *_: None)
    for query in (*statements, f"SELECT * FROM read_csv('{database}')", f"ATTACH '{target}'"):
        with pytest.raises(InputError, match=r"query (reaches for another file|failed)"):
            read_table(url(database), query=query)
    assert sorted(path.name for path in database.parent.iterdir()) == [database.name]


def test_missing_or_foreign_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such DuckDB file"):
        read_table(url(tmp_path / "none.db"), query="t")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "text.db").write_text("S3CRET" * 5000)
    with pytest.raises(InputError, match="cannot be opened as a DuckDB file") as caught:
        read_table(url(tmp_path / "text.db"), query="t")
    assert "S3CRET" not in str(caught.value)
