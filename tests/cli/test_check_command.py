"""`kamino check` as a user runs it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.forked import COMMAND, forks

COMMANDS = ("init", "check", "suggest", "plan", "synth", "sample", "report", "demo")
TABLE = "zip,city,age\n01,A,30\n01,B,17\n02,C,\n"


def kamino(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return forks().run(COMMAND, *arguments, folder=cwd, environment={"PATH": "/usr/bin", "COLUMNS": "120"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(TABLE)
    (tmp_path / "rules.dc").write_text("zip -> city\nsoft: check (age >= 18)\n")
    return tmp_path


def test_violations_of_a_hard_constraint_exit_with_1(folder: Path) -> None:
    ran = kamino("check", "people.csv", "-c", "rules.dc", cwd=folder)
    assert ran.returncode == 1, ran.stderr
    assert "1 of 1 hard constraints violated." in ran.stdout
    assert "for its owner, not for release" in ran.stdout
    assert ran.stderr == ""


def test_json_has_the_promised_shape(folder: Path) -> None:
    ran = kamino("check", "people.csv", "-c", "rules.dc", "--json", cwd=folder)
    document = json.loads(ran.stdout)
    assert document["rows"] == 3
    hard, soft = document["constraints"]
    assert list(hard) == ["text", "class", "hard", "violations", "pairs", "of", "unit", "percent", "seconds"]
    assert {k: hard[k] for k in ("text", "class", "hard", "violations", "pairs")} == {
        "text": "zip -> city",
        "class": "fd",
        "hard": True,
        "violations": 1,
        "pairs": 3,
    }
    assert hard["percent"] == pytest.approx(100 / 3)
    assert (soft["hard"], soft["violations"], soft["pairs"]) == (False, 1, 3)
    assert [(each["of"], each["unit"]) for each in (hard, soft)] == [(3, "pairs"), (3, "rows")]


def test_soft_violations_alone_exit_with_0(folder: Path) -> None:
    (folder / "rules.dc").write_text("soft: zip -> city\nzip, age -> city")
    assert kamino("check", "people.csv", "-c", "rules.dc", cwd=folder).returncode == 0


def test_show_prints_the_offending_rows(folder: Path) -> None:
    ran = kamino("check", "people.csv", "-c", "rules.dc", "--show", "5", cwd=folder)
    assert "Violations of 1, rows counted from 1" in ran.stdout
    assert "│   1 │ 01  │ A    │" in ran.stdout
    assert "│   2 │ 01  │ B    │" in ran.stdout
    assert "│ 3" not in ran.stdout.split("Violations of 1")[1].split("Violations of 2")[0]


def test_explain_shows_class_method_and_findings(folder: Path) -> None:
    (folder / "rules.dc").write_text("zip -> city\nnot (t2.city != t1.city and t2.zip = t1.zip)")
    plain = kamino("check", "people.csv", "-c", "rules.dc", cwd=folder).stdout
    assert "1 note on the constraints: see --explain." in plain
    shown = kamino("check", "people.csv", "-c", "rules.dc", "--explain", cwd=folder).stdout
    assert "running sums" in shown
    assert "duplicate: not (t2.city != t1.city and t2.zip = t1.zip)" in shown
    assert "zip -> city" in shown.split("says the same as an earlier constraint:")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "none.csv", "-c", "rules.dc"), "kamino: none.csv"),
        (("check", "people.csv", "-c", "none.dc"), "kamino: none.dc: there is no such constraint file; check the path"),
        (("check", "people.csv", "-c", "bad.dc"), "kamino: bad.dc:1:1: attribute 'zpi' is not in the schema."),
        (("check", "people.csv"), "kamino: found nothing to check the table against; expected -c rules.dc"),
        (("check", "people.csv", "-c", "rules.dc", "--show", "-1"), "--show"),
        (("chekc",), "No such command 'chekc'"),
    ],
)
def test_wrong_use_exits_with_2(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    (folder / "bad.dc").write_text("zpi -> city\nkey (\n")
    ran = kamino(*arguments, cwd=folder)
    assert ran.returncode == 2
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr


def test_all_faults_of_a_file_are_listed(folder: Path) -> None:
    (folder / "bad.dc").write_text("zpi -> city\nkey (\n")
    assert len(kamino("check", "people.csv", "-c", "bad.dc", cwd=folder).stderr.splitlines()) == 2


def test_empty_table_satisfies_everything(folder: Path) -> None:
    (folder / "people.csv").write_text("zip,city,age\n")
    ran = kamino("check", "people.csv", "-c", "rules.dc", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert "0 rows, 2 constraints" in ran.stdout


def test_demo_keeps_what_ignoring_constraints_breaks(tmp_path: Path) -> None:
    ran = kamino("demo", "--rows", "20000", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "no violation of 4 hard" in ran.stdout
    for part in ("Original, first rows", "Synthetic, first rows", "Distance to the original", "Share of rows by cost"):
        assert part in ran.stdout
    assert len([line for line in ran.stdout.splitlines() if line.startswith(("Note", "Warning"))]) <= 3


def test_what_a_demo_says_to_try_next_runs(tmp_path: Path) -> None:
    ran = kamino("demo", "--rows", "400", "-o", "made", cwd=tmp_path)
    following = ran.stdout.split("Next:")[1].splitlines()
    commands = [line.split()[1:] for line in following if line.startswith("  kamino") and "YOUR" not in line]
    assert [each[0] for each in commands] == ["report", "verify"]
    for command in commands:
        tried = kamino(*command, cwd=tmp_path)
        assert tried.returncode == 0, (command, tried.stdout, tried.stderr)
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_fits_the_house(command: tuple[str, ...], tmp_path: Path) -> None:
    ran = kamino(*command, "--help", cwd=tmp_path)
    assert ran.returncode == 0
    assert "Usage:" in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 120


def test_a_table_in_parts_is_checked_alike(tmp_path: Path) -> None:
    table = pa.table({"zip": ["01", "01", "02", None], "city": ["A", "B", "C", "A"], "age": [30, 17, None, 200]})
    (tmp_path / "parts").mkdir()
    for start in (0, 3):
        pq.write_table(table.slice(start, 3), tmp_path / "parts" / f"{start}.parquet")
    (tmp_path / "rules.dc").write_text("zip -> city\nsoft: check (age >= 18)\nkey (zip)\n")
    (tmp_path / "schema.yaml").write_text(
        "attributes:\n  zip: {type: categorical}\n  city: {type: categorical}\n"
        "  age: {type: integer, min: 0, max: 120}\n"
    )
    told = []
    for engine in ("memory", "streamed"):
        ran = kamino(
            "check", "parts", "-c", "rules.dc", "-s", "schema.yaml", "--json", "--engine", engine, cwd=tmp_path
        )
        assert ran.returncode == 1, ran.stderr
        document = json.loads(ran.stdout)
        for each in document["constraints"]:
            del each["seconds"]
        told.append(document)
    assert told[0] == told[1]
    assert [each["violations"] for each in told[0]["constraints"]] == [1, 1, 1]
    ran = kamino("check", "parts", "-c", "rules.dc", "--show", "2", "--engine", "streamed", cwd=tmp_path)
    assert ran.returncode == 2
    assert "leave out --show" in ran.stderr
