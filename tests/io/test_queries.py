"""Which queries are run, and what is shown of an address."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.databases.credentials import mask_credentials, shown_source
from kamino.io.databases.queries import refuse_writing

READING = [
    "SELECT * FROM t",
    "WITH x AS (SELECT 1 AS a) SELECT * FROM x",
    "VALUES (1), (2)",
    "(SELECT a FROM t) UNION ALL (SELECT a FROM t)",
    "SELECT a FROM t -- ; COPY t TO 'x'",
    "SELECT 'COPY t TO x; DELETE' AS a FROM t",
    "SELECT t.a, count(*) AS n FROM t JOIN t AS o USING (a) GROUP BY t.a HAVING count(*) > 0 ORDER BY 1 LIMIT 3",
]
READING_DUCKDB = ["FROM t", "FROM t SELECT a WHERE a > 0", "SELECT * EXCLUDE (b) FROM t", "SELECT $$;COPY$$ AS a"]
WRITING = [
    "COPY t TO 'x.csv'",
    "COPY (SELECT * FROM t) TO 'x.csv'",
    "/* a */ copy t to 'x.csv' -- b",
    "EXPORT DATABASE 'd'",
    "ATTACH 'x.db'",
    "DETACH x",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA database_list",
    "SET threads = 1",
    "CALL pragma_version()",
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY t TO 'x.csv'",
    "WITH x AS (INSERT INTO t VALUES (1, 2) RETURNING *) SELECT * FROM x",
    "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
    "WITH x AS (UPDATE t SET a = 1 RETURNING *) SELECT * FROM x",
    "WITH x AS (SELECT 1 AS a) INSERT INTO t SELECT a, a FROM x",
    "SELECT * INTO n FROM t",
    "SELECT * FROM t FOR UPDATE",
    "EXPLAIN ANALYZE COPY t TO 'x.csv'",
    "CREATE TABLE n AS SELECT * FROM t",
    "CREATE VIEW n AS SELECT * FROM t",
    "INSERT INTO t VALUES (1, 2)",
    "UPDATE t SET a = 1 RETURNING *",
    "DELETE FROM t RETURNING *",
    "MERGE INTO t USING t AS s ON t.a = s.a WHEN MATCHED THEN DELETE",
    "DROP TABLE t",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "BEGIN",
    "VACUUM",
    "DO $$ BEGIN END $$",
    "DESCRIBE t",
    "(" * 3_000 + "COPY t TO 'x.csv'" + ")" * 3_000,
    "SELECT " + "1, " * 60_000 + "1",
]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with duckdb.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b")
    return tmp_path / "t.db"


@pytest.mark.parametrize("query", WRITING, ids=lambda query: query[:40])
def test_only_reading_queries_run(database: Path, monkeypatch: pytest.MonkeyPatch, query: str) -> None:
    monkeypatch.chdir(database.parent)
    before = database.read_bytes()
    with pytest.raises(InputError, match=r"the query (is wrong|has more than)") as caught:
        read_table(f"duckdb:///{database}", query=query)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"the query (is wrong|has more than)"):
        refuse_writing(query, dialect="postgres", where="PostgreSQL query")
    assert [path.name for path in database.parent.iterdir()] == ["t.db"]
    assert database.read_bytes() == before


# What a list of names would have to know: what reads files or reaches out, by whatever name, in whatever spelling.
REACHING_OUT = [
    "SELECT * FROM read_text('{folder}/secret.txt')",
    "SELECT * FROM '{folder}/secret.txt'",
    "SELECT * FROM \"read_csv\"('{folder}/secret.txt')",
    "SELECT * FROM read_blob('{folder}/secret.txt')",
    "SELECT * FROM sniff_csv('{folder}/secret.txt')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM read_csv('https://127.0.0.1:1/x.csv')",
    "SELECT * FROM query('FROM read_text(''{folder}/secret.txt'')')",
    "SELECT * FROM query('COPY t TO ''{folder}/out.csv''')",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM borrowed",
]


@pytest.mark.parametrize("query", REACHING_OUT)
def test_a_duckdb_file_reaches_no_other_file(tmp_path: Path, query: str) -> None:
    """Not by a query, and not by what the file itself holds, which may come from anybody."""
    (tmp_path / "secret.txt").write_text("S3CRET\n")
    with duckdb.connect(tmp_path / "t.db") as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        connection.execute(f"CREATE VIEW borrowed AS SELECT * FROM read_text('{tmp_path}/secret.txt')")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(InputError) as caught:
        read_table(f"duckdb:///{tmp_path}/t.db", query=query.format(folder=tmp_path))
    assert "S3CRET" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("query", [*READING, *READING_DUCKDB])
def test_reading_queries_run(database: Path, query: str) -> None:
    assert read_table(f"duckdb:///{database}", query=query).num_rows
    if query in READING:
        refuse_writing(query, dialect="postgres", where="PostgreSQL query")


MISSPELLED = [
    "postgresql:/me:S3CRET@host/db",
    "postgresql//me:S3CRET@host/db",
    "postgresql:me:S3CRET@host/db",
    "postgressql://me:S3CRET@host/db",
    "postgresql://me:S3CRET@host:port/db",
    "postgresql://me:S3/CRE@T:S3CRET@host/db",
    " postgresql://me:S3CRET@host/db",
    "post gresql://me:S3CRET@host/db",
    "postgresql:/me:one S3CRET two@host/db",
    "http://me:S3CRET@host/db.csv",
    "me:S3CRET@host/db.parquet",
    "host=h user=me password=S3CRET dbname=d",
    "postgresql:/host/db?user=me&password=S3CRET",
    "duckdb:/me:S3CRET@f.db",
]


@pytest.mark.parametrize("source", MISSPELLED)
@pytest.mark.parametrize("query", [None, "t"])
def test_no_message_holds_a_password(source: str, query: str | None) -> None:
    with pytest.raises(InputError) as caught:
        read_table(source, query=query)
    error: BaseException | None = caught.value
    while error is not None:
        assert "S3CRET" not in str(error)
        assert "S3CRET" not in repr(error)
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("path", ["data/t.txt", "a@b/t.txt", "/home/me@work/t.txt", "C:/me/t.txt"])
def test_a_path_is_shown_as_it_is(path: str) -> None:
    assert shown_source(path) == path
    assert mask_credentials(f"{path}: no such file") == f"{path}: no such file"
