"""What databases declare of tables, and tables that are put into them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from kamino import Synthesizer
from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.databases import row_digest
from kamino.io.databases.catalogue import declared_attributes, read_catalogue, with_nulls_as_declared
from kamino.io.databases.row_digest import digest_of_parts, digest_of_rows
from kamino.io.databases.storing import MADE_BY, DatabaseTable, StagedTable, staged_table

TABLES = (
    "create table dept (id int primary key, name text)",
    "create table item (id bigint primary key, dept int not null references dept (id), mood {mood} not null, "
    "price numeric(8, 2), tag uuid, mail varchar(40) unique, note text, unique (dept, note))",
    "comment on column item.price is 'in euros'",
)


@pytest.fixture(params=["duckdb", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Any]]:
    if request.param == "duckdb":
        path = tmp_path / "shop.db"

        def run(*statements: str) -> None:
            with duckdb.connect(str(path)) as connection:
                for statement in statements:
                    connection.execute(statement)

        run(*(each.format(mood="enum('sad', 'ok')") for each in TABLES))
        yield f"duckdb:///{path}", run
        return
    server = request.getfixturevalue("postgres_server")
    server.psql("create schema shop; create type shop.mood as enum ('sad', 'ok');")

    def psql(*statements: str) -> None:
        server.psql(";".join(f"set search_path to shop; {each}" for each in statements))

    psql(*(each.format(mood="shop.mood") for each in TABLES))
    uri = server.get_uri()
    yield f"{uri}{'&' if '?' in uri else '?'}options=-csearch_path%3Dshop", psql
    server.psql("drop schema shop cascade")


def test_catalogues(database: tuple[str, Any]) -> None:
    url, _ = database
    found = read_catalogue(url, "item")
    assert found is not None
    assert (found.primary, found.unique) == (("id",), (("mail",), ("dept", "note")))
    assert [each.name for each in found.columns if each.not_null] == ["id", "dept", "mood"]
    assert (found["price"].comment, found["dept"].references) == ("in euros", "dept (id)")
    assert found.enums == {"mood": ("sad", "ok")}
    assert read_catalogue(url, "select * from item") is None
    assert read_catalogue(url + "#item", None) == found


def test_a_catalogue_is_read_without_rows(database: tuple[str, Any]) -> None:
    url, run = database
    seen = [read_catalogue(url, "item")]
    run("insert into dept values (1, 'x')", "insert into item values (1, 1, 'ok', 1.5, null, 'a@b.cd', null)")
    seen.append(read_catalogue(url, "item"))
    assert seen[0] == seen[1]


def test_declared_attributes(database: tuple[str, Any]) -> None:
    url, _ = database
    catalogue = read_catalogue(url, "item")
    assert catalogue is not None
    table = with_nulls_as_declared(read_table(url, query="item", private=True), catalogue)
    found = declared_attributes(catalogue, table.schema)
    assert (found["id"].type, found["id"].dtype) == ("key", "int64")
    assert (found["tag"].type, found["tag"].pattern) == ("key", "uuid")
    assert (found["mail"].type, found["mail"].dtype) == ("key", "string")
    assert (found["dept"].type, found["dept"].nullable, found["dept"].description) == (
        "categorical", False, "refers to dept (id)",
    )  # fmt: skip
    assert (found["mood"].values, found["mood"].nullable) == (("sad", "ok"), False)
    assert (found["price"].dtype, found["price"].decimals, found["price"].description) == (
        "decimal128(8, 2)", 2, "in euros",
    )  # fmt: skip
    assert "note" not in found


def test_checks_of_a_database_are_domains(database: tuple[str, Any]) -> None:
    """Nothing is spent on what a CHECK lists; one on two columns, a wide one and one that is no rule here give none."""
    url, run = database
    run(
        "create table shirt (size text check (size in ('S', 'M', 'L')), "
        "cut varchar(9) check (cut = 'slim' or cut = 'wide'), "
        "stars int check (stars between 1 and 5), stock int check (stock >= 0 and stock < 1000000), "
        "old int, check (old < stars or old > 9), check (length(size) < 3))",
        "insert into shirt select 'S', 'slim', 1 + i % 5, i, 0 from generate_series(1, 900) as r(i)",
    )
    made = Synthesizer(seed=1, anyway=True).fit(url, query="shirt")
    schema: Any = made.fitted.schema
    assert schema["size"].values == ("S", "M", "L")
    assert schema["cut"].values == ("slim", "wide")
    assert (schema["stars"].min, schema["stars"].max) == (1, 5)
    assert {name for name, source in schema.sources.items() if source.value == "declared"} == {"size", "cut", "stars"}
    asked = {
        name
        for entry in made.ledger["entries"]
        if entry["kind"] in ("categories", "bounds")
        for name in entry["attributes"]
    }
    assert asked == {"stock", "old"}
    assert set(made.sample(200)["stars"].to_pylist()) <= {1, 2, 3, 4, 5, None}


ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "small": pa.array([7, None], pa.uint8()),
        "word": ["x", "it's"],
        "real": [1.5, None],
    }
)


def put(url: str, *, rows: pa.Table = ROWS, name: str = "made", fail: bool = False) -> None:
    target = DatabaseTable.of(f"{url}#{name}")
    assert target is not None
    with staged_table(target, rows.schema, catalogue=None, strict=["id"], keys=["id"]) as table:
        staged: StagedTable = table
        staged.write(iter([rows]))
        assert staged.read().to_pydict() == rows.to_pydict()
        assert staged.schema.equals(staged.read().schema)
        assert pa.concat_tables(staged.parts()).to_pydict() == rows.to_pydict()
        assert digest_of_parts(staged) == digest_of_rows(staged.read())
        if fail:
            raise InputError("stopped")
        staged.place(f"{MADE_BY}.")


def test_a_table_is_put_into_a_database(database: tuple[str, Any]) -> None:
    url, _ = database
    put(url)
    found = read_catalogue(url, "made")
    assert found is not None
    assert (found.primary, found["id"].not_null, found["word"].not_null) == (("id",), True, False)
    assert read_table(url, query="made").to_pydict() == ROWS.to_pydict()
    assert digest_of_rows(ROWS) == digest_of_rows(ROWS.take([1, 0]))
    assert digest_of_rows(ROWS) != digest_of_rows(ROWS.slice(1))
    put(url, rows=ROWS.slice(0, 1))  # what Kamino made is replaced
    assert read_table(url, query="made").num_rows == 1


@pytest.mark.parametrize("rows", [0, 1, 1_000])
def test_rows_in_parts_have_the_digest_of_the_table(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    class Parts:
        schema = pa.schema([("a", pa.int64()), ("b", pa.string())])

        def parts(self, names: Any = None) -> Iterator[pa.Table]:
            return iter([table.slice(start, 70) for start in range(0, max(rows, 1), 70)])

    table = pa.table(
        {"a": [i * 7919 % 101 for i in range(rows)], "b": ["x", None, "é", ""] * (rows // 4) + [""] * (rows % 4)}
    )
    table = table.cast(Parts.schema)
    for at_once in (10, 300, 1 << 20):
        monkeypatch.setattr(row_digest, "LINES_AT_ONCE", at_once)
        assert digest_of_parts(Parts()) == digest_of_rows(table)


def test_a_failing_write_leaves_the_database(database: tuple[str, Any]) -> None:
    url, _ = database
    put(url)
    with pytest.raises(InputError, match="stopped"):
        put(url, rows=ROWS.slice(0, 1), fail=True)
    assert read_table(url, query="made").num_rows == 2
    twice = pa.concat_tables([ROWS, ROWS])  # breaks the primary key
    with pytest.raises(InputError, match="cannot be written"):
        put(url, rows=twice)
    assert read_table(url, query="made").num_rows == 2


def test_a_table_of_somebody_else_is_not_replaced(database: tuple[str, Any]) -> None:
    url, _ = database
    with pytest.raises(InputError, match="Kamino did not make; it is not replaced"):
        put(url, name="item")
    assert read_catalogue(url, "item") is not None


def test_a_new_file_that_fails_is_not_left(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="stopped"):
        put(f"duckdb:///{tmp_path}/new.db", fail=True)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="there is no folder"):
        put(f"duckdb:///{tmp_path}/none/new.db")


def test_an_output_names_a_table() -> None:
    assert DatabaseTable.of("out.csv") is None
    with pytest.raises(InputError, match="without the name of a table") as caught:
        DatabaseTable.of("postgresql://me:S3CRET@host/db")
    assert "S3CRET" not in str(caught.value)
    with pytest.raises(InputError, match="cannot write there"):
        DatabaseTable.of("mysql://host/db#t")
