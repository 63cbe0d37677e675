"""Files of several kinds and databases, from one end of a command to the other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.cli.test_check_command import kamino
from typer.testing import CliRunner

from kamino import Synthesizer
from kamino.cli.app import app
from kamino.io import read_table
from kamino.io.databases.catalogue import read_catalogue
from kamino.schema import Schema

PEOPLE = """
    create table people (
        person_id bigint primary key, kind {kind} not null, price numeric(8, 2) not null, tag uuid,
        mail varchar(40) unique, seen timestamp, age smallint not null, ok boolean, born date)
"""
ROWS = """
    insert into people select i, {kind}, (i * 7 % 500) * 0.25, null, null, timestamp '2024-01-01 10:00:00' {minutes},
    i % 90, i % 3 = 0, date '1990-01-01' from {series}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    pgserver = pytest.importorskip("pgserver")
    started = pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="stop")
    yield started
    started.cleanup()


def in_duckdb(path: Path) -> str:
    with duckdb.connect(str(path)) as connection:
        connection.execute(PEOPLE.format(kind="enum('a', 'b')"))
        connection.execute(
            ROWS.format(kind="if(i % 3 = 1, 'a', 'b')", minutes="+ interval (i) minute", series="range(2000) r(i)")
        )
    return f"duckdb:///{path}"


def in_postgres(server: Any) -> str:
    server.psql("drop table if exists people, made; drop type if exists kind; create type kind as enum ('a', 'b');")
    server.psql(PEOPLE.format(kind="kind"))
    server.psql(
        ROWS.format(
            kind="case when i % 3 = 1 then 'a' else 'b' end::kind",
            minutes="+ i * interval '1 minute'",
            series="generate_series(1, 2000) i",
        )
    )
    return str(server.get_uri())


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_one_command_from_database_to_database(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if kind == "duckdb":
        url, out = in_duckdb(tmp_path / "in.db"), f"duckdb:///{tmp_path}/out.db#made"
    else:
        url = in_postgres(request.getfixturevalue("server"))
        out = f"{url}#made"
    ran = kamino("synth", url, "-q", "people", "-o", out, "-e", "5", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    true, made = read_catalogue(url, "people"), read_catalogue(out, None)
    assert true is not None
    assert made is not None
    # Types, NOT NULL, primary and other keys are those of the table that was read.
    assert [(c.name, c.kind, c.not_null) for c in made.columns] == [(c.name, c.kind, c.not_null) for c in true.columns]
    assert (made.primary, made.unique, made.enums) == (true.primary, true.unique, true.enums)
    table = read_table(out)
    assert 1900 < table.num_rows < 2100
    ids = table.column("person_id").to_pylist()
    assert len(set(ids)) == len(ids)
    ran = kamino("verify", out, cwd=tmp_path)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    ran = kamino("report", url, out, "-q", "people", "--json", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["sources"]["synthetic"].endswith("#made")
    # A second run takes the place of the first; what Kamino did not make stays.
    ran = kamino("synth", url, "-q", "people", "-o", out, "-e", "5", "-n", "7", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert read_table(out).num_rows == 7
    ran = kamino("synth", url, "-q", "people", "-o", f"{url}#people", cwd=tmp_path)
    assert ran.returncode == 2
    assert "Kamino did not make" in ran.stderr
    assert read_table(url, query="people").num_rows == 2000


def test_nothing_is_said_at_the_end_but_what_was_asked(tmp_path: Path) -> None:
    """DuckDB lists objects of its own that are left when Python ends."""
    url = in_duckdb(tmp_path / "in.db")
    wrong = kamino("synth", url, "-q", "nothing", "-o", "out.csv", cwd=tmp_path)
    ran = kamino("synth", url, "-q", "people", "-o", "out.csv", "--seed", "1", "-n", "50", cwd=tmp_path)
    assert (wrong.returncode, ran.returncode) == (2, 0), ran.stderr
    assert "leaked" not in wrong.stderr + ran.stderr


def test_verify_notices_a_changed_row_in_a_database(tmp_path: Path) -> None:
    out = tmp_path / "out.db"
    made = Synthesizer(epsilon=1.0).fit(pa.table({"age": list(range(50)) * 40}))
    made.write(f"duckdb:///{out}#made", 20)
    assert kamino("verify", f"duckdb:///{out}", "-q", "made", cwd=tmp_path).returncode == 0
    with duckdb.connect(str(out)) as connection:
        connection.execute("update made set age = 1 + age")
    assert kamino("verify", f"duckdb:///{out}#made", cwd=tmp_path).returncode == 1


def test_init_takes_over_the_catalogue(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "shop.db")) as connection:
        connection.execute("create table dept (id int primary key)")
        connection.execute(
            "create table item (id bigint primary key, dept int references dept (id), mood enum('sad', 'ok') not null, "
            "tag uuid, price decimal(8, 2), note text, unique (dept, note))"
        )
        connection.execute("comment on column item.price is 'in euros'")
    ran = kamino("init", "duckdb:///shop.db#item", "-o", "s.yaml", "--drop", "note", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    schema = Schema.from_yaml((tmp_path / "s.yaml").read_text())
    assert [(name, each.type, each.nullable) for name, each in schema.attributes.items()] == [
        ("id", "key", False), ("dept", "categorical", True), ("mood", "categorical", False), ("tag", "key", False),
        ("price", "real", True),
    ]  # fmt: skip
    assert schema["mood"].values == ("sad", "ok")  # type: ignore[union-attr]
    assert (schema["dept"].description, schema["price"].description) == ("refers to dept (id)", "in euros")
    assert "key (dept, note)" in ran.stderr


def test_constraints_are_read_from_ddl(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id;age\n1;5\n1;-2\n")
    (tmp_path / "rules.sql").write_text(
        "create table t (id int primary key, age int check (age >= 0) references u (v));"
    )
    ran = kamino("check", "t.csv", "-c", "rules.sql", "--json", cwd=tmp_path)
    assert ran.returncode == 1
    assert {c["text"]: c["violations"] for c in json.loads(ran.stdout)["constraints"]} == {
        "check (id is not null)": 0, "key (id)": 1, "check (age >= 0)": 1,
    }  # fmt: skip
    assert "rules.sql: not taken over: age: REFERENCES u (v)" in ran.stderr
    (tmp_path / "s.yaml").write_text("attributes:\n  id: {type: key}\n  age: {type: integer, min: -5, max: 9}\n")
    ran = kamino("synth", "t.csv", "-c", "rules.sql", "-s", "s.yaml", "-n", "5", "-o", "o.tsv", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "not taken over: age: REFERENCES u (v)" in ran.stderr
    made = read_table(tmp_path / "o.tsv")
    assert made.num_rows == 5
    assert min(made.column("age").to_pylist()) >= 0


@pytest.mark.parametrize("ending", ["tsv", "jsonl", "feather"])
def test_synth_writes_other_kinds_of_files(tmp_path: Path, ending: str) -> None:
    lines = "\n".join(f"{i};{i % 5};é{i % 3}" for i in range(300))
    (tmp_path / "t.csv").write_bytes(f"id;size;café\n{lines}\n".encode("cp1252"))
    out = f"o.{ending}"
    ran = kamino("synth", "t.csv", "-o", out, "--trust-domain", "--drop", "id", "-n", "30", "-e", "9", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    made = read_table(tmp_path / out)
    assert (made.column_names, made.num_rows) == (["size", "café"], 30)
    assert set(made.column("café").to_pylist()) <= {"é0", "é1", "é2"}
    assert kamino("verify", out, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("synth", "t.csv", "-c", "r.dc", "--drop", "zip", "-o", "o.csv"), "r.dc:2:1: attribute 'zip' is not among"),
        (
            ("synth", "t.csv", "-c", "r.dc", "--columns", "age", "-o", "o.csv"),
            "r.dc:2:8: attribute 'city' is not",
        ),
        (("check", "t.csv", "-c", "r.dc", "--drop", "zip"), "keep it, or take this rule out"),
        (("check", "t.csv", "-c", "r.sql", "--drop", "zip"), "attribute 'zip' is not among"),
        (("synth", "t.csv", "-s", "s.yaml", "--drop", "zip", "-o", "o.csv"), "keep it, or take the attribute out"),
        (("suggest", "t.csv", "-s", "s.yaml", "--drop", "zip"), "keep it, or take the attribute out"),
        (("synth", "t.csv", "--unit", "zip", "--max-rows", "3", "--drop", "zip", "-o", "o.csv"), "name another unit"),
    ],
    ids=" ".join,
)
def test_what_needs_a_column_that_is_left_out_is_told(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    (tmp_path / "t.csv").write_text("zip,city,age\n" + "1,a,3\n2,b,4\n" * 20)
    (tmp_path / "r.dc").write_text("check (age >= 0)\nzip -> city\n")
    (tmp_path / "r.sql").write_text("CREATE TABLE t (zip INT UNIQUE, city TEXT, age INT)")
    (tmp_path / "s.yaml").write_text("attributes:\n  zip: {type: integer, min: 0, max: 9}\n  age: {type: integer}\n")
    ran = kamino(*arguments, cwd=tmp_path)
    assert ran.returncode == 2
    assert told in ran.stderr
    assert "--columns and --drop" in ran.stderr


def test_integer_keys_stay_integers() -> None:
    table = pa.table({"id": pa.array(range(40), pa.int32()), "account": range(40), "age": list(range(20)) * 2})
    schema = "attributes:\n  id: {type: key}\n  account: {type: key}\n  age: {type: integer, min: 0, max: 20}\n"
    made = Synthesizer(schema, epsilon=1.0).fit(table).sample(6)
    assert [made.schema.field(name).type for name in ("id", "account")] == [pa.int32(), pa.int64()]
    assert not set(made.column("id").to_pylist()) & set(made.column("account").to_pylist())


def test_times_are_written_at_their_resolution(tmp_path: Path) -> None:
    schema = (
        "attributes:\n"
        "  a: {type: datetime, min: 2024-01-01T00:00:00, max: 2024-01-02T00:00:00, resolution: 60}\n"
        "  b: {type: datetime, min: 2024-01-01T00:00:00, max: 2024-01-01T00:00:09, resolution: 0.25}\n"
    )
    table = pa.table({name: pa.array([0] * 9, pa.timestamp("us")) for name in "ab"})
    Synthesizer(schema, epsilon=1.0).fit(table).write(tmp_path / "o.csv", 20)
    lines = (tmp_path / "o.csv").read_text().splitlines()[1:]
    assert all(re.fullmatch(r"[-0-9]{10} [:0-9]{8},[-0-9]{10} [:0-9]{8}\.\d\d", line) for line in lines), lines[:3]
    assert kamino("verify", "o.csv", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("command", ["init", "check", "suggest", "synth", "report", "audit", "verify"])
def test_every_command_that_reads_a_table_takes_a_query(command: str) -> None:
    told = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
    assert re.search(r"--query +-q\b", told), told


@pytest.mark.parametrize("more", [("init",), ("check", "-c", "r.dc"), ("suggest", "-e", "5")], ids=lambda more: more[0])
def test_a_query_chooses_rows_and_columns(more: tuple[str, ...], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    in_duckdb(tmp_path / "in.db")
    (tmp_path / "r.dc").write_text("check (age < 10)\n")
    query = "select age, ok from people where age < 10"
    ran = CliRunner().invoke(app, [more[0], "duckdb:///in.db", "-q", query, *more[1:]])
    assert ran.exit_code == 0, ran.output
    assert "price" not in ran.output
