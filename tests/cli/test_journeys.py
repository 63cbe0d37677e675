"""Two people's journeys, by the commands they run: a steward who signs, and an engineer who delivers."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.test_check_command import kamino

from kamino.io import read_table

CITY = {"A1": "Rome", "A2": "Rome", "B1": "Paris", "B2": "Paris"}


def admissions(folder: Path, rows: int = 600) -> None:
    """A hospital's admissions: several a patient, dates as people write them, a few cells that are wrong."""
    draw = random.Random(8)
    lines = ["patient_id,ward,city,admitted,age"]
    for number in range(rows):
        ward = draw.choice(list(CITY))
        day = f"{draw.randint(1, 12)}/{draw.randint(1, 28)}/2023"
        age = "unknown" if number % 97 == 0 else draw.randint(0, 95)
        lines.append(f"P{draw.randint(1, 150):04d},{ward},{CITY[ward]},{day},{age}")
    (folder / "admissions.csv").write_text("\n".join(lines) + "\n")
    (folder / "wards.csv").write_text("ward,city\n" + "".join(f"{w},{c}\n" for w, c in CITY.items()))
    (folder / "rules.dc").write_text("ward -> city using wards.csv\ncheck (age >= 0)\n")


def test_a_steward_signs(tmp_path: Path) -> None:
    admissions(tmp_path)
    # A schema to start from: it recognises dates, and asks whose privacy is promised.
    ran = kamino("init", "admissions.csv", "-o", "schema.yaml", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "patient_id, which looks like the id of a person" in ran.stderr.replace("\n", " ")
    drafted = (tmp_path / "schema.yaml").read_text()
    assert "format: '%m/%d/%Y'" in drafted

    # The first run stops before it costs anything.
    ran = kamino("synth", "admissions.csv", "-s", "schema.yaml", "-c", "rules.dc", "-o", "out.csv", cwd=tmp_path)
    assert ran.returncode == 2
    assert not (tmp_path / "out.csv").exists()

    # The steward edits the file: domains, and the unit. Wards and cities come from the public map.
    (tmp_path / "schema.yaml").write_text(
        "unit: patient_id\n"
        "max_rows: 8\n"
        "attributes:\n"
        "  patient_id: {type: key, pattern: 'P{:06d}'}\n"
        "  ward: {type: categorical, nullable: true}\n"
        "  city: {type: categorical, nullable: true}\n"
        "  admitted: {type: date, min: 2023-01-01, max: 2023-12-31, format: '%m/%d/%Y'}\n"
        "  age: {type: integer, min: 0, max: 110, nullable: true}\n"
    )
    ran = kamino("check", "admissions.csv", "-s", "schema.yaml", cwd=tmp_path)
    assert ran.returncode == 1, "seven ages are words"
    assert "1 of 4 columns have cells that a run would change" in ran.stdout
    ran = kamino("check", "admissions.csv", "-s", "schema.yaml", "--json", cwd=tmp_path)
    assert {each["name"]: each["unreadable"] for each in json.loads(ran.stdout)["cells"]}["age"] == 7

    ran = kamino("plan", "-s", "schema.yaml", "-c", "rules.dc", "-n", "600", "--accuracy", "0.2", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    for said in ("What it means: someone who knows all other rows", "comes out within ±", "takes epsilon"):
        assert said in ran.stdout

    options = ("-s", "schema.yaml", "-c", "rules.dc", "-n", "500", "--epsilon", "2", "-o", "out.csv")
    ran = kamino("synth", "admissions.csv", *options, "--dry-run", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert not (tmp_path / "out.csv").exists()
    ran = kamino("synth", "admissions.csv", *options, "--release-note", "release-note.md", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr

    certificate = json.loads((tmp_path / "out.csv.certificate.json").read_text())
    assert certificate["mark"] == "for release"
    assert certificate["privacy"]["unit"].startswith("all rows with one value of 'patient_id'")
    assert certificate["sha256"] == hashlib.sha256((tmp_path / "out.csv").read_bytes()).hexdigest()
    assert certificate["constraints"][0]["reference"]["rows_contradicting"] == 0
    note = (tmp_path / "release-note.md").read_text()
    assert certificate["words"]["meaning"] in note
    assert kamino("check", "out.csv", "-c", "rules.dc", cwd=tmp_path).returncode == 0

    # Ages that are words make the column of the original text, so that the rule on ages cannot be counted there.
    ran = kamino("report", "admissions.csv", "out.csv", "-o", "report.html", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "of this very file" in (tmp_path / "report.html").read_text()
    # No id of a patient is written anywhere.
    real = {line.split(",")[0] for line in (tmp_path / "admissions.csv").read_text().splitlines()[1:]}
    assert real.isdisjoint(read_table(tmp_path / "out.csv").column("patient_id").to_pylist())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    # As the other tests of PostgreSQL do: a plain import warns where no folder is set for running programs.
    pgserver = pytest.importorskip("pgserver")
    started = pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="stop")
    yield started
    started.cleanup()


def test_an_engineer_delivers(server: Any, tmp_path: Path) -> None:
    server.psql("create table orders (order_id int, status text, region text, total numeric(8,2), day date)")
    server.psql(
        "insert into orders select i, (array['new','paid','sent'])[1 + i % 3], (array['n','s'])[1 + i % 2], "
        "(i * 7 % 500)::numeric / 4, date '2024-01-01' + i % 90 from generate_series(1, 3000) i"
    )
    url = server.get_uri()
    (tmp_path / "rules.dc").write_text("check (total >= 0)\n")
    query = ("-q", "select status, region, total, day from orders")
    ran = kamino("synth", url, *query, "-c", "rules.dc", "-o", "orders.parquet", "--dry-run", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "domains will be found within the budget" in ran.stdout
    ran = kamino("synth", url, *query, "-c", "rules.dc", "-o", "orders.parquet", "-n", "1000", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    made = read_table(tmp_path / "orders.parquet")
    assert (made.num_rows, made.column_names) == (1000, ["status", "region", "total", "day"])
    assert {"new", "paid", "sent"} <= set(made.column("status").to_pylist()) | {"other", None}
    certificate = json.loads((tmp_path / "orders.parquet.certificate.json").read_text())
    assert certificate["domains"]["private"] == ["status", "region", "total", "day"]
    assert certificate["constraints"][0]["violations"] == 0
    assert certificate["mark"] == "for release"
