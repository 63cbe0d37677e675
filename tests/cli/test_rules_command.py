"""`kamino rules`: import, to, explain; and what is exported is what is counted."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import yaml
from typer.testing import CliRunner

from kamino.cli.app import app
from kamino.constraints import Constraints, count_violations, value_types
from kamino.contracts.exporting import exported, query_of
from kamino.sampling.intervals.rules_in_words import clashing_sums, explained

RULES = """
check (a is not null)
key (a, b)
b -> t
check (abs(m - a * 2) <= 1.5)
if t = 'x' then d >= '2024-01-05'
check (length(t) = 1)
check (year(d) = 2024)
check (upper(t) in ('X', 'Y'))
check (case when a > 1 then m else 3 end < 4)
check (t ~ '^[a-y]$')
check (coalesce(b, 2) + a != 5)
key (lower(t)) where a <= 2
key (m) where b = 1
count per (b) <= 2
"""
TABLE = pa.table(
    {
        "a": pa.array([1, 2, None, 2, 3, 1]),
        "b": pa.array([1, 1, 1, 1, 2, None]),
        "m": pa.array([Decimal(v) for v in ("1.5", "6.0", "3", "4.0", "9.9", "2.1")]),
        "t": pa.array(["x", "x", "y", "xx", "z", None]),
        "d": pa.array([date(2024, 1, 4), date(2024, 1, 6), None, date(2023, 1, 1), date(2024, 3, 1), None]),
    }
)


def test_exported_checks_are_those_that_are_counted() -> None:
    rules = Constraints.parse(RULES, types=value_types(TABLE))
    checked = 0
    for each in rules:
        if each.is_unary:
            data = TABLE
            assert data.num_rows
            broken = duckdb.sql(query_of(each, "data")).fetchall()
            assert len(broken) == count_violations(TABLE, each), str(each)
            checked += 1
        else:
            assert bool(_broken_groups(query_of(each, "data"))) == bool(count_violations(TABLE, each))
    assert checked >= 9


def _broken_groups(query: str) -> list[tuple[object, ...]]:
    data = TABLE
    assert data.num_rows
    return duckdb.sql(query).fetchall()


def test_dbt_gets_its_own_tests_and_is_told_of_the_rest() -> None:
    text, left_out = exported("dbt", Constraints.parse("check (a is not null)\nkey (a)\nkey (a, b)\na -> b"), "orders")
    (model,) = yaml.safe_load(text)["models"]
    assert model["columns"] == [{"name": "a", "tests": ["not_null", "unique"]}]
    assert model["tests"] == [{"dbt_utils.unique_combination_of_columns": {"combination_of_columns": ["a", "b"]}}]
    assert [line.split(" (")[0] for line in left_out] == ["a -> b"]


def test_rules_are_explained() -> None:
    rules = Constraints.parse("a + b >= 150\na + b + c <= 100\nc >= 0\nzip -> city\nzip -> city\nx := a + 1")
    lines, clash = explained(rules)
    assert clash
    assert [str(Constraints((each,))) for each in clashing_sums(rules.items)] == [
        "check (a + b >= 150)", "check (a + b + c <= 100)", "check (c >= 0)",
    ]  # fmt: skip
    assert any("is said twice" in line for line in lines)
    assert not explained(Constraints.parse("a + b >= 150\na - b <= 100"))[1]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_rules_are_imported_and_what_is_left_is_told(here: Path) -> None:
    (here / "t.sql").write_text("create table t (a int not null check (a > 0), b text check (soundex(b) = 'X'));")
    done = CliRunner().invoke(app, ["rules", "import", "t.sql", "-o", "rules.dc"])
    assert done.exit_code == 1
    assert "t.sql:1: not carried over: t: b: CHECK (SOUNDEX(b) = 'X')" in done.output
    found = Constraints.parse((here / "rules.dc").read_text())
    assert str(found) == "check (a is not null)\ncheck (a > 0)"
    assert CliRunner().invoke(app, ["rules", "explain", "rules.dc"]).exit_code == 0
    sql = CliRunner().invoke(app, ["rules", "to", "sql", "rules.dc", "--table", "t"])
    assert sql.exit_code == 0
    assert sql.output.splitlines()[0] == 'ALTER TABLE "t" ALTER COLUMN "a" SET NOT NULL;'


def test_a_dump_of_one_table_is_read_whole(here: Path) -> None:
    (here / "t.csv").write_text("a,b\n1,x\n2,x\n2,y\n")
    (here / "t.sql").write_text(
        "CREATE TABLE t (a integer, b text);\nALTER TABLE ONLY t ADD CONSTRAINT p PRIMARY KEY (a);\n"
        "CREATE UNIQUE INDEX i ON t USING btree (lower(b));\nALTER TABLE t ADD FOREIGN KEY (b) REFERENCES u (v);\n"
    )
    done = CliRunner().invoke(app, ["check", "t.csv", "-c", "t.sql", "--json"])
    assert done.exit_code == 1
    import json

    counts = {each["text"]: each["violations"] for each in json.loads(done.stdout)["constraints"]}
    assert counts == {"check (a is not null)": 0, "key (a)": 1, "not (lower(t1.b) = lower(t2.b))": 1}
    (here / "two.sql").write_text("CREATE TABLE t (a int NOT NULL);\nCREATE TABLE u (a int NOT NULL);\n")
    assert CliRunner().invoke(app, ["check", "t.csv", "-c", "two.sql"]).exit_code != 0
