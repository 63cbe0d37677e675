from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.io.odd_postgres import postgres_readers
from tests.io.odd_rows import try_reader

from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.databases.sql import select_statement
from kamino.io.streams.postgres_parts import PostgresParts

UTC = dt.UTC


@pytest.fixture(scope="module")
def url(postgres_server: Any) -> Iterator[str]:
    postgres_server.psql("""
        CREATE SCHEMA shop;
        CREATE TYPE shop.mood AS ENUM ('sad', 'ok');
        CREATE TABLE shop.item (
            small smallint, whole integer, big bigint, single real, number double precision,
            price numeric(10, 2), exact numeric, flag boolean, word text, short varchar(9), fixed char(3),
            id uuid, kind shop.mood, day date, moment timestamp, instant timestamptz);
        INSERT INTO shop.item VALUES
            (1, 2, 3, 1.5, 2.5, 12345.60, -123456789012345678901234567890.123456, true, 'S3CRET', 'v', 'c',
             'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'ok', '2024-01-02', '2024-01-02 03:04:05.25',
             '2024-01-02 03:04:05+01'),
            (NULL, NULL, NULL, NULL, NULL, NULL, 0.0001, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    """)
    yield postgres_server.get_uri()
    postgres_server.psql("DROP SCHEMA shop CASCADE")


def test_all_types(url: str) -> None:
    table = read_table(url, query="shop.item")
    assert [str(kind) for kind in table.schema.types] == [
        "int16", "int32", "int64", "float", "double", "decimal128(38, 2)", "decimal128(38, 6)", "bool", "string",
        "string", "string", "string", "string", "date32[day]", "timestamp[us]", "timestamp[us, tz=UTC]",
    ]  # fmt: skip
    first, second = (list(row.values()) for row in table.to_pylist())
    assert first == [
        1, 2, 3, 1.5, 2.5, Decimal("12345.60"), Decimal("-123456789012345678901234567890.123456"), True, "S3CRET",
        "v", "c  ", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "ok", dt.date(2024, 1, 2),
        dt.datetime(2024, 1, 2, 3, 4, 5, 250000), dt.datetime(2024, 1, 2, 2, 4, 5, tzinfo=UTC),
    ]  # fmt: skip
    assert second == [None] * 6 + [Decimal("0.0001")] + [None] * 9


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("shop.item", 2),
        ("shop.item ;", 2),
        ('"shop"."item"', 2),
        ("SELECT * FROM shop.item WHERE flag;", 1),
        ("SELECT word FROM shop.item WHERE false", 0),
        ("WITH q AS (SELECT 1 AS a) SELECT * FROM q", 1),
    ],
)
def test_table_name_or_select(url: str, query: str, rows: int) -> None:
    assert read_table(url, query=query).num_rows == rows
    assert sum(part.num_rows for part in PostgresParts(url, select_statement(query), private=True).parts()) == rows


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ("(1), (22)", pa.decimal128(38, 0)),
        ("(1.5), (-22.25), (0)", pa.decimal128(38, 2)),
        (f"({'9' * 50}.5)", pa.decimal256(76, 1)),
        ("(NULL::numeric)", pa.decimal128(38, 0)),
    ],
)
def test_numeric_becomes_decimal(url: str, values: str, kind: pa.DataType) -> None:
    column = read_table(url, query=f"SELECT a::numeric AS a FROM (VALUES {values}) AS t(a)").column("a")
    assert column.type == kind
    texts = [text.strip("()") for text in values.split(", ")]
    assert column.to_pylist() == [None if "NULL" in text else Decimal(text) for text in texts]


@pytest.mark.parametrize("count", [40, pytest.param(3_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("place", [0, 1], ids=["whole", "parts"])
def test_no_row_of_a_server_decides_how_others_are_read(url: str, place: int, count: int, tmp_path: Path) -> None:
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(url) as connection:
        reader = postgres_readers(url, connection)[place]
        outcome = try_reader(reader, seed=2026, first=0, count=count, folder=tmp_path)
    assert outcome.faults == []
    assert outcome.tried > count / 2


def test_numeric_without_rows(url: str) -> None:
    assert read_table(url, query="SELECT exact FROM shop.item WHERE false").num_rows == 0


def test_postgres_session_is_read_only(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a statement that writes were taken for a query."""
    monkeypatch.setattr("kamino.io.databases.postgres.refuse_writing", lambda *_, **__: None)
    for query in ("CREATE TABLE x (a int)", "DELETE FROM shop.item", "INSERT INTO shop.item (small) VALUES (1)"):
        with pytest.raises(InputError, match="would change the database"):
            read_table(url, query=query)
    assert read_table(url, query="shop.item").num_rows == 2


# What a SELECT can do beside reading tables, under names that no list has.
READING_A_FILE = r"""SELECT U&"pg_\0072ead_file"('PG_VERSION') AS a"""
MAKING_A_SLOT = "SELECT slot_name::text AS a FROM pg_create_physical_replication_slot('kamino_slot')"
GIVING_A_ROLE_BACK = """
    WITH x AS MATERIALIZED (SELECT set_config('role', 'none', false) AS a)
    SELECT word FROM x, LATERAL
        ts_stat('SELECT to_tsvector(''simple'', pg_read_file(''PG_VERSION''))' || left(a, 0)) AS s
"""
WRITING = [
    "SELECT shop.bump() AS a",
    "SELECT set_config('transaction_read_only', 'off', false) AS a, shop.bump() AS b",
    "SELECT set_config('default_transaction_read_only', 'off', false) AS a, shop.bump() AS b",
    "SELECT nextval('shop.counter') AS a",
    "SELECT lo_create(0)::integer AS a",
]


def test_a_query_has_the_rights_of_its_user(url: str, postgres_server: Any) -> None:
    """A transaction that is read-only keeps tables as they are; the rest is for the rights of the user to forbid."""
    postgres_server.psql("""
        CREATE SEQUENCE shop.counter;
        CREATE FUNCTION shop.bump() RETURNS integer VOLATILE LANGUAGE sql
            AS 'INSERT INTO shop.item (small) VALUES (9) RETURNING 1';
        CREATE ROLE kamino_reader LOGIN; GRANT USAGE ON SCHEMA shop TO kamino_reader;
        GRANT SELECT ON shop.item TO kamino_reader;
    """)
    reader = url.replace("postgres:@", "kamino_reader:@")
    try:
        assert read_table(reader, query="SELECT small FROM shop.item").num_rows == 2
        for query in (READING_A_FILE, MAKING_A_SLOT, "SELECT pg_ls_dir('.') AS a", "SELECT nextval('shop.counter')"):
            with pytest.raises(InputError, match=r"the server refused it: permission denied.*rights of the user"):
                read_table(reader, query=query)
        for query in WRITING:
            for address in (url, reader):
                with pytest.raises(InputError, match=r"would change the database|refused it|SQLSTATE 25001"):
                    read_table(address, query=query)
        assert read_table(url, query="shop.item").num_rows == 2
        # A role that a connection takes on is given back by the query, so that it is no promise to run in one.
        role = f"{url}{'&' if '?' in url else '?'}options=-crole%3Dkamino_reader"
        with pytest.raises(InputError, match="permission denied"):
            read_table(role, query=READING_A_FILE)
        assert read_table(role, query=GIVING_A_ROLE_BACK).num_rows == 1
        # A superuser may read files of the server: this is said in the documentation, and not hidden by a list.
        assert read_table(url, query=READING_A_FILE).num_rows == 1
    finally:
        postgres_server.psql("""
            DROP FUNCTION shop.bump; DROP SEQUENCE shop.counter; DROP OWNED BY kamino_reader; DROP ROLE kamino_reader;
        """)


# Casts and functions that take a cell for the name of something, or for a text in a language of its own.
NAMING = [
    *(f"SELECT (word::{kind})::text AS a FROM shop.item" for kind in (
        *("regclass", "regproc", "regprocedure", "regoper", "regoperator", "regtype", "regrole", "regnamespace"),
        *("regconfig", "regdictionary", "tsquery", "tsvector", "xml", "jsonpath", "json", "name::regclass"),
    )),
    "SELECT current_setting(word) AS a FROM shop.item",
    "SELECT to_tsquery(word::regconfig, 'x')::text AS a FROM shop.item",
    "SELECT nextval(word) AS a FROM shop.item",
    "SELECT pg_relation_size(word::regclass) AS a FROM shop.item",
    "SELECT has_table_privilege(word, 'select') AS a FROM shop.item",
    "SELECT has_table_privilege('shop.item', word) AS a FROM shop.item",
    "SELECT now() AT TIME ZONE word AS a FROM shop.item",
    "SELECT date_trunc(word, now()) AS a FROM shop.item",
    "SELECT small FROM shop.item WHERE small = (SELECT word::regclass::int FROM shop.item LIMIT 1)",
    "SELECT query_to_xml(word, true, true, '')::text AS a FROM shop.item",
    "SELECT convert_from('x', word) AS a FROM shop.item",
    "SELECT encode('x', word) AS a FROM shop.item",
]  # fmt: skip


@pytest.mark.parametrize("query", NAMING)
@pytest.mark.parametrize("in_parts", [False, True])
def test_no_cast_quotes_a_cell(url: str, query: str, in_parts: bool) -> None:
    told: list[InputError] = []
    try:
        pa.concat_tables(PostgresParts(url, query).parts()) if in_parts else read_table(url, query=query, private=True)
    except InputError as problem:
        told.append(problem)
    assert all("s3cret" not in str(each).lower() for each in told)
    assert all(each.__cause__ is None and each.__suppress_context__ for each in told)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("nope", 'query is wrong: relation "nope" does not exist'),
        ("SELECT nope FROM shop.item", 'query is wrong: column "nope" does not exist'),
        ("SELEC 1", "query is wrong: it"),
        ("COPY shop.item TO '/tmp/S3CRET'", "query is wrong: it"),
        ("WITH x AS (DELETE FROM shop.item RETURNING *) SELECT * FROM x", "query is wrong: it does more than read"),
        ("SELECT word::int FROM shop.item", r"query failed \(SQLSTATE 22P02\)"),
        ("SELECT 1 / 0 AS a", r"query failed \(SQLSTATE 22012\)"),
        ("SELECT 1 AS a, 2 AS a", "'a' occurs more than once"),
        ("SELECT FROM shop.item", "found no columns"),
        ("SELECT 'NaN'::numeric AS a", "'a' of type numeric has NaN or infinity.*double precision"),
        ("SELECT (10::numeric ^ 90) AS a", "'a' of type numeric has more than 76 digits"),
        ("SELECT 5::money AS a", "'a' has type money.*::numeric"),
        ("SELECT '127.0.0.1'::inet AS a", "'a' has type inet.*::text"),
        ("SELECT time '10:00' AS a", "'a' has type time64"),
        ("SELECT interval '1 day' AS a", "'a' has type month_day_nano_interval"),
        ("SELECT ARRAY[1] AS a", "'a' has type list"),
        ("SELECT 'S3CRET'::bytea AS a", "'a' has type binary"),
        ("SELECT 'infinity'::date AS a", "'a' has a date outside"),
    ],
)
def test_errors_hold_no_value(url: str, query: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_table(url, query=query)
    assert "S3CRET" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_postgres_connection_errors(url: str) -> None:
    host = url.partition("host=")[2]
    for bad, reason in [
        ("postgresql://user:S3CRET@127.0.0.1:1/db", "no server listens there"),
        ("postgresql://user:S3@S3CRET/db", "the host name is not known"),
        (f"postgresql://postgres:S3CRET@/nodb?host={host}", "the database does not exist"),
        (f"postgresql://nobody:S3CRET@/postgres?host={host}", "the user does not exist"),
        ("postgresql://user:%S3CRET@host/db", "the URL or the server is at fault"),
    ]:
        with pytest.raises(InputError, match=f"cannot connect to PostgreSQL: {reason}") as caught:
            read_table(bad, query="t")
        assert "S3CRET" not in str(caught.value)


def test_driver_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql", None)
    with pytest.raises(InputError, match=r"pip install 'kamino-synth\[postgres\]'"):
        read_table("postgresql://localhost/db", query="t")


def test_enums_of_a_server_are_read_from_its_catalogue(url: str) -> None:
    from kamino.io.databases.sql import declared_enums

    found = declared_enums(url, "SELECT * FROM shop.item WHERE false")
    assert list(found.values()) == [("sad", "ok")]
