"""What is audited is what runs: the same plan, rule for rule and release for release, for every kind of table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from kamino.audit.auditing import audit
from kamino.audit.subjects import subject_of_run
from kamino.cli.app import app
from kamino.pipeline import Synthesizer

RULES = "kind -> size\nsoft: check (size > 1)"


def rows(num_rows: int = 400) -> pa.Table:
    rng = np.random.default_rng(2)
    kind = rng.integers(0, 3, num_rows)
    return pa.table(
        {
            "id": pa.array(np.arange(num_rows), pa.int32()),
            "kind": np.array(["x", "y", "z"])[kind],
            "size": pa.array(kind * 2, pa.int32()),
            "born": pa.array(rng.integers(1950, 2000, num_rows), pa.int32()),
        }
    )


def in_duckdb(folder: Path) -> str:
    with duckdb.connect(str(folder / "x.db")) as connection:
        connection.register("given", rows())
        connection.execute("CREATE TYPE kind AS ENUM ('x', 'y', 'z')")
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, kind kind, size INTEGER CHECK (size BETWEEN 0 AND 9), "
            "born INTEGER NOT NULL CHECK (born BETWEEN 1900 AND 2020))"
        )
        connection.execute("INSERT INTO t SELECT * FROM given")
    return f"duckdb:///{folder / 'x.db'}"


def of_a_table(folder: Path) -> tuple[object, dict[str, Any]]:
    return f"{in_duckdb(folder)}#t", {}


def of_a_query(folder: Path) -> tuple[object, dict[str, Any]]:
    return in_duckdb(folder), {"query": "SELECT kind, size, born FROM t WHERE size < 5"}


def of_a_streamed_folder(folder: Path) -> tuple[object, dict[str, Any]]:
    (folder / "parts").mkdir()
    for number in range(3):
        pyarrow.parquet.write_table(rows().slice(number * 130, 130), folder / "parts" / f"{number}.parquet")
    return str(folder / "parts"), {"engine": "streamed"}


def of_a_csv(folder: Path) -> tuple[object, dict[str, Any]]:
    pyarrow.csv.write_csv(rows(), folder / "x.csv")
    return folder / "x.csv", {}


def of_a_frame(folder: Path) -> tuple[object, dict[str, Any]]:
    frame = rows().to_pandas()
    frame["kind"] = frame["kind"].astype("category").cat.as_ordered()
    return frame, {}


SOURCES = [of_a_table, of_a_query, of_a_streamed_folder, of_a_csv, of_a_frame]


@pytest.mark.parametrize("trusted", [False, True], ids=["found", "trusted"])
@pytest.mark.parametrize("source", SOURCES, ids=[each.__name__ for each in SOURCES])
def test_an_audit_plans_what_a_run_plans(
    source: Callable[[Path], tuple[object, dict[str, Any]]], trusted: bool, tmp_path: Path
) -> None:
    table, more = source(tmp_path)
    query, engine = more.get("query"), more.get("engine")
    asked = Synthesizer(
        constraints=RULES, epsilon=4.0, trust_domain=trusted, anyway=True, unit="row", engine=engine, accept=True
    )
    run = asked.dry_run(table, query=query)
    audited = subject_of_run("this table", table, asked.job(table, query=query).request).plan
    assert audited is not None
    assert audited.schema == run.schema
    assert (audited.constraints, audited.held) == (run.constraints, run.held)
    assert audited.schedule == run.schedule
    assert audited.missing == run.missing
    assert audited.to_json()["releases"] == run.to_json()["releases"]


def test_the_command_audits_what_synth_runs(tmp_path: Path) -> None:
    """A table of a database with a key, an enumeration and checks: as its owner would audit it."""
    table, _ = of_a_table(tmp_path)
    run = Synthesizer().dry_run(table)
    told = CliRunner().invoke(app, ["audit", str(table), "--json", "--runs", "200"])
    assert told.exit_code == 0, told.output
    planned = json.loads(told.output)["plan"]
    assert planned["releases"] == run.to_json()["releases"]
    assert planned["domains_to_find"] == list(run.missing) == []
    assert planned["sampling"] == run.to_json()["sampling"]


def test_an_audit_of_a_database_passes_and_replays_its_plan(tmp_path: Path) -> None:
    table, _ = of_a_table(tmp_path)
    subject = subject_of_run("this table", table, Synthesizer().job(table).request)
    result = audit(subject, runs=200)
    assert result.passed, result
