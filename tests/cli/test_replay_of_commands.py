"""Whole commands, replayed from the file on: what is printed and written tells nothing of the table around the gate."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import kamino.io
from kamino.cli.app import app
from kamino.cli.commands import synth as synth_command
from kamino.pipeline import engines
from kamino.pipeline import fitting as fitting_module
from kamino.privacy import Budget, Gate, Neighbours, PrivacyUnit
from kamino.testing.replay import assert_replay, record, remove_row
from kamino.testing.strangers import with_invalid_text

SCHEMA = """\
attributes:
  city: {type: categorical, values: [Rome, Oslo, Bern], nullable: true}
  zone: {type: categorical, values: [N, S], nullable: true}
  age: {type: integer, min: 15, max: 90, nullable: true}
  pay: {type: real, min: 0, max: 100, decimals: 1, nullable: true}
"""
WITH_UNIT = f"unit: who\nmax_rows: 3\n{SCHEMA}  who: {{type: key}}\n"
RULES = "city -> zone\nsoft: not (t1.city = t2.city and t1.age > t2.age and t1.pay < t2.pay)\n"


def private_table(rows: int = 200) -> pa.Table:
    rng = np.random.default_rng(5)
    city = rng.choice(3, rows)
    age = rng.integers(18, 90, rows)
    return pa.table(
        {
            "city": np.array(["Rome", "Oslo", "Bern"])[city],
            "zone": np.array(["S", "N", "N"])[city],
            "age": age,
            "pay": np.round(np.clip(age + rng.normal(0, 5, rows), 0, 100), 1),
        }
    )


def _write_csv(table: pa.Table, path: Path) -> None:
    # Of a table whose first chunk is empty, older versions of pyarrow write the header twice.
    pa.csv.write_csv(table.combine_chunks(), path)


def _write_parquet(table: pa.Table, path: Path) -> None:
    pa.parquet.write_table(table, path)


def _write_duckdb(table: pa.Table, path: Path) -> None:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("create table people as select * from given")


WRITERS: dict[str, tuple[Callable[[pa.Table, Path], None], str, list[str]]] = {
    "csv": (_write_csv, "data.csv", []),
    "parquet": (_write_parquet, "data.parquet", []),
    "duckdb": (_write_duckdb, "data.db", ["-q", "people"]),
}


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a command on a file of the table with the gate of the replay; give all that it leaves behind."""

    def run(
        table: pa.Table, gate: Gate, kind: str, arguments: list[str], rules: str = RULES, schema: str = SCHEMA
    ) -> Any:
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        monkeypatch.chdir(folder)
        write, name, options = WRITERS[kind]
        write(table, folder / name)
        (folder / "schema.yaml").write_text(schema)
        (folder / "rules.dc").write_text(rules)
        given = {path.name for path in folder.iterdir()}
        monkeypatch.setattr(fitting_module, "open_gate", lambda settings: gate)
        # The clock stands still: whatever else is told as a number of seconds is compared as it is.
        monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
        source = f"duckdb:///{folder / name}" if kind == "duckdb" else name
        result = CliRunner().invoke(app, [arguments[0], source, *options, *arguments[1:]])
        left = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name not in given}
        return result.exit_code, result.output, left, str(result.exception), getattr(result.exception, "__notes__", [])

    return run


SYNTH = ["synth", "-o", "out.csv", "-c", "rules.dc", "--seed", "3", "--save-model", "m.kamino", "-n", "60", "--anyway"]


@pytest.mark.parametrize("kind", WRITERS)
def test_replay_passes_for_the_synth_command(replays: Any, command: Any, kind: str) -> None:
    ends = []

    def run(table: pa.Table, gate: Gate) -> Any:
        outcome = command(table, gate, kind, [*SYNTH, "-s", "schema.yaml"])
        ends.append(outcome)
        return outcome

    replays(run, private_table(), relations=(Neighbours.ADD_REMOVE,))
    code, text, left, *_ = ends[0]
    assert code == 0, text
    assert sorted(left) == ["m.kamino", "out.csv", "out.csv.certificate.json"]


def test_replay_passes_for_the_synth_command_without_a_number_of_rows(replays: Any, command: Any) -> None:
    """How many rows are drawn by default follows from releases alone."""
    plain = [each for each in SYNTH if each not in ("-n", "60")]
    ends = []

    def run(table: pa.Table, gate: Gate) -> Any:
        ends.append(command(table, gate, "csv", [*plain, "-s", "schema.yaml"]))
        return ends[-1]

    replays(run, private_table(), relations=(Neighbours.ADD_REMOVE,))
    code, text, left, *_ = ends[0]
    assert code == 0, text
    assert 150 < left["out.csv"].count(b"\n") < 250


@pytest.mark.parametrize("kind", ["csv", pytest.param("duckdb", marks=pytest.mark.slow)])
def test_replay_passes_for_the_synth_command_without_schema(replays: Any, command: Any, kind: str) -> None:
    replays(lambda table, gate: command(table, gate, kind, SYNTH), private_table(), relations=(Neighbours.ADD_REMOVE,))


@pytest.mark.parametrize(("rows", "said", "most"), [(40, "too few", 0.2), (900, "found no useful domain for", 0.75)])
def test_replay_passes_for_a_table_that_is_refused(
    replays: Any, command: Any, rows: int, said: str, most: float
) -> None:
    """Too few rows, or most columns useless: the run ends early, says so, and leaves nothing behind."""
    ends = []
    texts = pa.table({name: [f"{name}{place}" for place in range(rows)] for name in ("a", "b", "c")})

    def run(table: pa.Table, gate: Gate) -> Any:
        ends.append((command(table, gate, "csv", ["synth", "-o", "out.csv"]), gate.ledger.spent()))
        return ends[-1]

    replays(run, texts, relations=(Neighbours.ADD_REMOVE,))
    (code, _, left, error, notes), spent = ends[0]
    assert code != 0
    assert left == {}
    assert said in error
    assert "--anyway" in error
    assert "is spent" in notes[0]
    assert spent < most  # what was left for the model is not spent


def test_replay_passes_for_public_lists(replays: Any, command: Any) -> None:
    rules = "check (city in ('Rome', 'Oslo', 'Bern'))"
    lists = ["--public-list", "zone=us-state-codes"]
    replays(
        lambda table, gate: command(table, gate, "csv", [*SYNTH, *lists], rules),
        private_table(),
        relations=(Neighbours.ADD_REMOVE,),
    )


def test_replay_passes_for_a_run_that_fails_late(replays: Any, command: Any) -> None:
    """What is said of an error after a release, and of what is spent, comes from releases too."""
    ends, beyond = [], "check (age > 5000)\ncheck (age is not null)"

    def run(table: pa.Table, gate: Gate) -> Any:
        outcome = command(table, gate, "csv", ["synth", "-o", "out.csv", "-c", "rules.dc"], beyond)
        ends.append(outcome)
        return outcome

    replays(run, private_table(800), relations=(Neighbours.ADD_REMOVE,))
    _, _, left, error, notes = ends[0]
    assert left == {}
    assert "no row over the schema's domains satisfies these constraints together" in error
    assert "of 1 is spent" in notes[0]


@pytest.mark.parametrize("schema", [[], ["-s", "schema.yaml"]], ids=["untyped", "typed"])
def test_replay_passes_for_a_file_of_odd_cells(replays: Any, command: Any, schema: list[str]) -> None:
    """A cell that is no number, or no value of the domain, changes neither a type nor a message."""
    table = private_table()
    text = pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})
    odd = pa.concat_tables([text, pa.table({name: ["?!"] for name in text.column_names})])
    replays(
        lambda table, gate: command(table, gate, "csv", [*SYNTH, *schema]),
        text,
        extra=(odd,),
        relations=(Neighbours.ADD_REMOVE,),
    )


def _odd_row(kind: str, table: pa.Table) -> pa.Table:
    """A row whose cells are at the edge of their types, and a text that is none where the file can hold it."""
    raw = pa.array([b"\xff"])
    no_text = pa.Array.from_buffers(pa.string(), 1, raw.buffers()) if kind == "parquet" else pa.array(["\x00\ufffd"])
    odd = {
        "city": no_text,
        "zone": no_text,
        "age": pa.array([-(2**63)]),
        "pay": pa.array([float("inf")]),
        "day": pa.array([2**31 - 1], pa.int32()).view(pa.date32()),
        "at": pa.array([2**63 - 2]).view(pa.timestamp("ns")),
        "who": pa.array([253_402_300_799 * 10**6]).view(pa.timestamp("us", "Asia/Tokyo")),
        "cost": pa.array(["9" * 34]).cast(pa.decimal128(38, 4)),
    }
    return pa.table({name: odd[name] for name in table.column_names}).cast(table.schema)


ODD_SCHEMA = (
    SCHEMA
    + """\
  day: {type: date, min: 1970-01-01, max: 9999-12-31, nullable: true}
  at: {type: datetime, min: 1970-01-01, max: 2030-01-01, dtype: "timestamp[ns]", nullable: true}
  who: {type: datetime, min: 1970-01-01, max: 2030-01-01, timezone: Asia/Tokyo, nullable: true}
  cost: {type: real, min: 0, max: 100, decimals: 2, nullable: true}
"""
)


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        pytest.param("parquet", [], id="parquet-found"),
        pytest.param("parquet", ["-s", "schema.yaml"], id="parquet-declared"),
        pytest.param("duckdb", [], id="duckdb-found"),
        pytest.param("duckdb", ["-s", "schema.yaml"], id="duckdb-declared", marks=pytest.mark.slow),
    ],
)
def test_replay_passes_for_odd_cells_of_typed_files(command: Any, kind: str, schema: list[str]) -> None:
    """A cell at the edge of its type, or that its type cannot hold, changes neither a type nor a message."""
    plain = private_table()
    days = np.arange(plain.num_rows) * 50
    more = {
        "day": pa.array(days.astype(np.int32)).view(pa.date32()),
        "at": pa.array(days * 86_400 * 10**9).view(pa.timestamp("ns")),
        "who": pa.array(days // 150 * 10**6).view(pa.timestamp("us", "Asia/Tokyo")),
        "cost": pa.array([int(day) for day in days]).cast(pa.decimal128(38, 4)),
    }
    table = pa.table({**dict(zip(plain.column_names, plain.columns, strict=True)), **more})
    odd = pa.concat_tables([table, _odd_row(kind, table)])
    unit = PrivacyUnit(column="who", max_rows=3)
    rules = "soft: check (day >= at)\nsoft: not (t1.city = t2.city and t1.day < t2.at)"
    ends = []

    def run(private: pa.Table, gate: Gate) -> Any:
        arguments = ["synth", "-o", "out.csv", "-c", "rules.dc", "--seed", "3", "-n", "20", "--anyway", *schema]
        ends.append(command(private, gate, kind, [*arguments, "--unit", "who", "--max-rows", "3"], rules, ODD_SCHEMA))
        return ends[-1]

    budget = Budget(epsilon=1.0, delta=1e-6)
    assert_replay(run, table, odd, budget=budget, unit=unit)
    assert_replay(run, odd, table, budget=budget, unit=unit)
    assert ends[0][0] == 0, ends[0]


@pytest.mark.parametrize("schema", [[], ["-s", "schema.yaml"]], ids=["untyped", "typed"])
def test_replay_passes_for_the_suggest_command(replays: Any, command: Any, schema: list[str]) -> None:
    def run(table: pa.Table, gate: Gate) -> Any:
        return command(table, gate, "csv", ["suggest", *schema, "--seed", "1"])

    replays(run, private_table(), relations=(Neighbours.ADD_REMOVE,))


def test_replay_passes_for_the_suggest_command_with_a_unit(replays: Any, command: Any) -> None:
    def run(table: pa.Table, gate: Gate) -> Any:
        return command(table, gate, "csv", ["suggest", "-s", "schema.yaml", "--seed", "1"], schema=WITH_UNIT)

    table = private_table(60)
    owned = table.append_column("who", pa.array([f"p{place // 4}" for place in range(60)]))
    unit = PrivacyUnit(column="who", max_rows=3)
    replays(run, owned, relations=(Neighbours.ADD_REMOVE,), unit=unit)


def test_replay_passes_for_text_that_is_no_text(command: Any) -> None:
    """A typed file can hold bytes that are no UTF-8 where text is declared: such a cell is null."""

    def run(table: pa.Table, gate: Gate) -> Any:
        return command(table, gate, "parquet", [*SYNTH, "-s", "schema.yaml"], "city -> zone")

    table = private_table()
    record(run, table).assert_plays(with_invalid_text(table))


def test_a_true_count_told_as_seconds_is_caught(command: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    read, show = kamino.io.read_table, synth_command.print_run

    def spy(*given: Any, **options: Any) -> pa.Table:
        table = read(*given, **options)
        counts.append(table.num_rows)
        return table

    def tell(*given: Any, **options: Any) -> None:
        show(*given, **options)
        print(f"took {counts[0] / 100:.1f} s")

    def run(table: pa.Table, gate: Gate) -> Any:
        counts.clear()
        return command(table, gate, "csv", [*SYNTH, "-s", "schema.yaml"], "city -> zone")

    table = private_table()
    clean = record(run, table)
    assert clean.play(table.slice(0, 0), neighbour=False).problems == ()
    monkeypatch.setattr(engines, "read_table", spy)
    monkeypatch.setattr(synth_command, "print_run", tell)
    planted = record(run, table)
    assert "took 2.0 s" in planted.output[1]
    assert planted.play(remove_row(table, 0)).problems == ()
    assert planted.play(pa.concat_tables([table] * 10), neighbour=False).problems == (
        "the output differs: <output>[1]: not equal",
    )
