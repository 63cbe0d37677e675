"""`kamino suggest` protects the unit of the schema: noise and rows follow from it."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

from kamino.cli.app import app
from kamino.cli.commands import suggest as suggest_command
from kamino.engine import with_types
from kamino.engine.suggesting import suggest_constraints
from kamino.errors import InputError
from kamino.privacy import Gate
from kamino.privacy.private import PrivateTable, open_table  # noqa: TID251
from kamino.schema import Schema

ATTRIBUTES = """\
attributes:
  who: {type: key}
  city: {type: categorical, values: [Rome, Oslo, Bern]}
  age: {type: integer, min: 0, max: 99}
"""


def private_table(rows: int = 300) -> pa.Table:
    """Everyone has ten rows."""
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "who": [f"p{i // 10}" for i in range(rows)],
            "city": np.array(["Rome", "Oslo", "Bern"])[rng.integers(0, 3, rows)],
            "age": np.arange(rows) % 100,
        }
    )


@pytest.fixture
def suggest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run the command with a schema; give what it printed, the table that was measured, and the gate."""

    def run(unit: str) -> tuple[str, pa.Table, Gate]:
        seen: list[Any] = []

        def spy(private: PrivateTable, gate: Gate, **options: Any) -> Any:
            seen.extend((open_table(private), gate))
            return suggest_constraints(private, gate, **options)

        monkeypatch.setattr(suggest_command, "suggest_constraints", spy)
        pa.csv.write_csv(private_table(), tmp_path / "t.csv")
        (tmp_path / "s.yaml").write_text(ATTRIBUTES + unit)
        ran = CliRunner().invoke(app, ["suggest", str(tmp_path / "t.csv"), "-s", str(tmp_path / "s.yaml")])
        assert ran.exit_code == 0, ran.output
        return ran.stderr, seen[0], seen[1]

    return run


@pytest.mark.parametrize("max_rows", [1, 3, 50])
def test_suggest_protects_the_unit_of_the_schema(suggest: Any, max_rows: int) -> None:
    _, _, alone = suggest("")
    text, table, gate = suggest(f"unit: who\nmax_rows: {max_rows}\n")
    assert gate.ledger.spent() <= 0.5
    assert f"unit: all rows with one value of 'who', at most {max_rows} of them kept" in " ".join(text.split())
    first, scaled = alone.ledger.entries[0], gate.ledger.entries[0]
    assert scaled.sensitivity == pytest.approx(max_rows * first.sensitivity, rel=0.01)
    assert scaled.sigma == pytest.approx(max_rows * first.sigma, rel=0.01)
    assert table.num_rows == 30 * min(max_rows, 10)
    # The rows are numbered by age within each hundred, so that a unit is ten ages in a row.
    owners = Counter(age // 10 for age in table["age"].to_pylist())
    assert set(owners.values()) == {3 * min(max_rows, 10)}


def test_suggest_without_a_unit_protects_a_row(suggest: Any) -> None:
    text, table, gate = suggest("")
    assert "unit: one row; for release." in text
    assert table.num_rows == 300
    assert gate.unit.max_rows == 1


def test_types_without_domains_keep_values() -> None:
    text = pa.table(
        {
            "whole": ["7", "-12345678901", None, "x"],
            "real": ["1.25", "-3e5", None, "nan"],
            "day": ["2024-01-31", "0001-01-01", None, "?"],
            "moment": ["2024-01-31 10:20:30", None, "1999-12-31 23:59:59", "?"],
            "word": ["a", "", None, "b"],
        }
    )
    kinds = {"whole": "integer", "real": "real", "day": "date", "moment": "datetime", "word": "categorical"}
    lines = [f"  {name}: {{type: {kind}, nullable: true}}" for name, kind in kinds.items()]
    typed = open_table(with_types(PrivateTable(text), Schema.from_yaml("attributes:\n" + "\n".join(lines))))
    assert typed.column("whole").to_pylist() == [7, -12345678901, None, None]
    assert typed.column("real").to_pylist() == [1.25, -3e5, None, None]
    assert [None if day is None else day.isoformat() for day in typed.column("day").to_pylist()] == [
        "2024-01-31", "0001-01-01", None, None,
    ]  # fmt: skip
    assert [str(each) for each in typed.column("moment").to_pylist()] == [
        "2024-01-31 10:20:30", "None", "1999-12-31 23:59:59", "None",
    ]  # fmt: skip
    assert typed.column("word").to_pylist() == ["a", "", None, "b"]


KINDS = {
    "who": "{type: key, repeats: true}",
    "row": "{type: key}",
    "city": "{type: categorical}",
    "town": "{type: categorical, values: [a, b]}",
    "id": "{type: integer}",
    "size": "{type: integer, min: 0, max: 9}",
    "cost": "{type: real, nullable: true}",
    "day": "{type: date}",
    "ok": "{type: boolean}",
}


@pytest.mark.parametrize("mask", range(1, 1 << len(KINDS), 5))
def test_any_schema_gives_its_types(mask: int) -> None:
    """Every kind of attribute, alone and with others."""
    names = [name for place, name in enumerate(KINDS) if mask >> place & 1]
    schema = Schema.from_yaml("attributes:\n" + "\n".join(f"  {name}: {KINDS[name]}" for name in names))
    values: dict[str, list[Any]] = {
        "id": [2**63 - 1, 2**63 - 2, 5],
        "size": [1, 2, 3],
        "cost": [1.5, None, 2.0],
        "day": [dt.date(2020, 1, 1)] * 3,
        "ok": [True, False, True],
    }
    table = pa.table({name: values.get(name, ["a", "b", "a"]) for name in names})
    typed = open_table(with_types(PrivateTable(table), schema))
    assert typed.to_pydict() == table.select(list(schema.data_names)).to_pydict()


def test_suggest_takes_ids_that_repeat(tmp_path: Path) -> None:
    rows = "".join(f"p{i // 3},{'ab'[i % 2]},{'xy'[i % 2]},{i % 5}\n" for i in range(600))
    (tmp_path / "t.csv").write_text("who,city,town,id\n" + rows)
    for kinds, refused, told in (
        ("who: {type: key, repeats: true}", False, "spent epsilon 0.5"),
        ("who: {type: categorical}", False, "spent epsilon 0.5"),
        ("who: {type: key}", True, "every column is a key"),
    ):
        others = "{type: key}" if refused else "{type: categorical}"
        text = "".join(f"  {name}: {others}\n" for name in ("city", "town", "id"))
        (tmp_path / "s.yaml").write_text(f"attributes:\n  {kinds}\n{text}")
        ran = CliRunner().invoke(app, ["suggest", str(tmp_path / "t.csv"), "-s", str(tmp_path / "s.yaml")])
        assert (ran.exit_code != 0) == refused, ran.output + repr(ran.exception)
        assert told in ran.output + str(ran.exception)


def test_suggest_works_with_the_draft_of_init(tmp_path: Path) -> None:
    """Seeded: noise makes one of the three a soft one in one run of eight, and hides one in forty."""
    rng = np.random.default_rng(1)
    begin = rng.integers(0, 700, 3_000)
    days = pa.array(begin, pa.int32()).cast(pa.date32()), pa.array(begin + rng.integers(0, 9, 3_000), pa.int32())
    table = pa.table({"begin": days[0], "end": days[1].cast(pa.date32()), "a": begin % 7, "b": begin % 7 * 2})
    pa.csv.write_csv(table, tmp_path / "t.csv")
    data, schema = str(tmp_path / "t.csv"), str(tmp_path / "s.yaml")
    assert CliRunner().invoke(app, ["init", data, "-o", schema]).exit_code == 0
    ran = CliRunner().invoke(app, ["suggest", data, "-s", schema, "-e", "3", "--seed", "1"])
    assert ran.exit_code == 0, ran.output
    assert {"a -> b", "b -> a", "check (begin <= end)"} <= {line.split("  #")[0] for line in ran.stdout.splitlines()}


def test_suggest_asks_whose_privacy(tmp_path: Path) -> None:
    """As a run does: by options where there is no schema, and before anything is spent."""
    rows = "".join(f"C{number // 4},{number % 3},{'abc'[number % 3]}\n" for number in range(400))
    (tmp_path / "t.csv").write_text("customer_id,zip,city\n" + rows)

    def asked(*more: str) -> Any:
        return CliRunner().invoke(app, ["suggest", str(tmp_path / "t.csv"), "--seed", "1", *more])

    refused = asked()
    assert isinstance(refused.exception, InputError)
    assert "found customer_id, which looks like the id of a person" in str(refused.exception)
    assert "--unit customer_id --max-rows N" in str(refused.exception)
    told = asked("--unit", "customer_id", "--max-rows", "4")
    assert told.exit_code == 0, told.output
    assert "unit: customer_id with at most 4 rows" in told.stderr or "customer_id" in told.stderr
    assert asked("--unit", "row").exit_code == 0
