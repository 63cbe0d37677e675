"""`kamino synth`, `sample` and `init` as a user runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.cli.test_check_command import kamino
from typer.testing import CliRunner

from kamino.cli.app import app
from kamino.constraints import Constraints, count_violations
from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.errors import ModelError
from kamino.io import read_table, write_table
from kamino.schema import draft_schema

MARKER = "MARKER-4471"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("synth")
    table = tax(400, seed=2)
    write_table(table, path / "tax.csv")
    write_table(table, path / "tax.parquet")
    (path / "tax.yaml").write_text(draft_schema(table, trust_domain=True).to_yaml())
    (path / "tax.dc").write_text(TAX_CONSTRAINTS)
    (path / "empty").mkdir()
    return path


def test_synth_writes_a_table_and_its_certificate(folder: Path) -> None:
    ran = kamino("synth", "tax.csv", "-s", "tax.yaml", "-c", "tax.dc", "-n", "300", "-o", "out.csv", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    made = read_table(folder / "out.csv")
    assert (made.num_rows, made.column_names) == (300, tax(1).column_names)
    certificate = json.loads((folder / "out.csv.certificate.json").read_text())
    assert certificate["mark"] == "for release"
    assert 0.999 <= certificate["privacy"]["spent_epsilon"]["add_remove"] <= 1
    assert "epsilon 1, delta 1e-06" in ran.stdout
    typed = read_table(folder / "tax.parquet").schema
    for constraint in Constraints.parse(TAX_CONSTRAINTS):
        assert count_violations(made.cast(typed), constraint) == 0


def test_synth_then_sample(folder: Path) -> None:
    options = ("--trust-domain", "-o", "p.parquet", "--save-model", "m.kamino", "--seed", "1")
    ran = kamino("synth", "tax.parquet", *options, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert "not for release" in ran.stdout
    assert "10 taken from the table because you called them public" in ran.stdout
    ran = kamino("sample", "m.kamino", "-n", "20", "-g", "marital_status=S", "-o", "s.csv", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert set(read_table(folder / "s.csv").column("marital_status").to_pylist()) == {"S"}


def test_domains_are_found_without_a_schema(folder: Path) -> None:
    ran = kamino("synth", "tax.parquet", "-o", "found.csv", "-n", "30", "--anyway", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    took = re.search(r"found within the budget \(which took ([\d.]+)% of it, and 1e-07 of delta\)", ran.stdout)
    assert took
    assert 15 <= float(took.group(1)) <= 51
    assert "What each column was taken for" in ran.stdout
    assert "by the type of" in ran.stdout


def test_init_drafts_names_and_types_only(folder: Path) -> None:
    ran = kamino("init", "tax.csv", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert "  salary: {type: integer, nullable: true}" in ran.stdout
    assert "values" not in ran.stdout
    ran = kamino("init", "tax.csv", "--trust-domain", "-o", "drafted.yaml", cwd=folder)
    assert "10 domains were taken from the table because you said --trust-domain" in ran.stderr.replace("\n", " ")
    assert "source: asserted" in (folder / "drafted.yaml").read_text()


BAD = {
    "no file": (("none.csv", "-o", "bad.csv"), "none.csv: no such file"),
    "no schema": (("tax.csv", "-s", "none.yaml", "-o", "bad.csv"), "none.yaml: there is no such schema file"),
    "schema of another table": (("other.csv", "-s", "tax.yaml", "-o", "bad.csv"), "state"),
    "unknown attribute": (("tax.csv", "-c", "bad.dc", "-o", "bad.csv"), "bad.dc:1:1: attribute 'zpi'"),
    "epsilon 0": (("tax.csv", "-e", "0", "-o", "bad.csv"), "epsilon"),
    "epsilon below 0": (("tax.csv", "-e", "-1", "-o", "bad.csv"), "epsilon"),
    "delta 1": (("tax.csv", "-d", "1", "-o", "bad.csv"), "delta"),
    "rows below 0": (("tax.csv", "-n", "-4", "-o", "bad.csv"), "rows"),
    "unreadable": (("broken.parquet", "-o", "bad.csv"), "broken.parquet"),
    "no header": (("blank.csv", "-o", "bad.csv"), "blank.csv"),
    "output kind": (
        ("tax.csv", "-o", "bad.xlsx"),
        "a name ending in .csv, .csv.gz, .csv.zst, .tsv, .jsonl, .parquet or .feather",
    ),
    "output folder": (("tax.csv", "-o", "nowhere/bad.csv"), "there is no folder nowhere"),
    "full disk": (("tax.csv", "--trust-domain", "-o", "/dev/full/bad.csv"), "bad.csv"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_clear_line(folder: Path, case: str) -> None:
    (folder / "bad.dc").write_text("zpi -> city")
    (folder / "other.csv").write_text(f"a,b\n{MARKER},2\n")
    (folder / "broken.parquet").write_text(MARKER)
    (folder / "blank.csv").write_text("")
    before = sorted(path.name for path in folder.rglob("*"))
    arguments, message = BAD[case]
    ran = kamino("synth", *arguments, cwd=folder)
    assert ran.returncode == 2, ran.stdout
    assert message in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert MARKER not in ran.stderr + ran.stdout
    assert sorted(path.name for path in folder.rglob("*")) == before


def test_full_disk_leaves_no_partial_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    from kamino.errors import InputError
    from kamino.pipeline import Synthesizer

    fitted = Synthesizer(trust_domain=True, seed=1).fit(folder / "tax.parquet")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        fitted.write(folder / "empty" / "x.csv", 10)
    assert list((folder / "empty").iterdir()) == []


def test_a_table_that_breaks_a_hard_constraint_is_not_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kamino.errors import SamplingError
    from kamino.pipeline import Synthesizer

    fitted = Synthesizer(constraints=TAX_CONSTRAINTS, trust_domain=True, seed=1).fit(folder / "tax.parquet")
    broken = Synthesizer(trust_domain=True, seed=1).fit(folder / "tax.parquet").sample(500)
    codes = fitted.fitted.codec.encode(broken).columns
    monkeypatch.setattr("kamino.pipeline.output.writing.draw_columns", lambda *_, **__: codes)
    monkeypatch.setattr("kamino.pipeline.output.writing.mend_columns", lambda *_, **__: codes)
    with pytest.raises(SamplingError, match="zip -> city"):
        fitted.write(folder / "empty" / "x.csv", 500)
    assert list((folder / "empty").iterdir()) == []


def test_plan_command_reads_no_data(folder: Path) -> None:
    ran = kamino("plan", "-s", "tax.yaml", "-c", "tax.dc", "-n", "400", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert "ownership" in ran.stdout
    assert "noise of 4.2247 times the sensitivity" in ran.stdout
    again = kamino("plan", "-s", "tax.yaml", "-c", "tax.dc", "-n", "400", "--json", cwd=folder)
    document = json.loads(again.stdout)
    assert document["noise_multiplier"] == pytest.approx(4.2247, abs=1e-4)
    assert {step["attribute"] for step in document["sampling"]["steps"]} == set(tax(1).column_names)
    (folder / "bare.yaml").write_text(draft_schema(tax(1)).to_yaml())
    bare = kamino("plan", "-s", "bare.yaml", cwd=folder)
    said = "9 domains will be found within the budget (15% to 50% of it, the more the fewer rows there are)"
    assert said in " ".join(bare.stdout.split())
    assert kamino("plan", cwd=folder).returncode == 2


def test_plan_shows_units_references_and_releases(folder: Path) -> None:
    (folder / "zips.yaml").write_text(
        "attributes:\n  state: {type: categorical, values: [a, b]}\n  zip: {type: integer, min: 0, max: 9}\n"
        "  who: {type: integer, min: 0, max: 899}\n"
    )
    (folder / "zips.csv").write_text("zip,state\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(10)))
    (folder / "zips.dc").write_text("zip -> state using zips.csv\n")
    ran = kamino("plan", "-s", "zips.yaml", "-c", "zips.dc", "--unit", "who", "--max-rows", "3", "--json", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    document = json.loads(ran.stdout)
    assert document["sampling"]["chains"] == [["zip", "state"]]
    kinds = {tuple(each["last_of"]): each["kind"] for each in document["sampling"]["steps"]}
    assert kinds == {("state",): "lookup", ("zip",): "free", ("who",): "free"}
    assert document["unit"] == "all rows with one value of 'who', at most 3 of them kept"
    alone = json.loads(kamino("plan", "-s", "zips.yaml", "-c", "zips.dc", "--json", cwd=folder).stdout)
    for three, one in zip(document["measurements"], alone["measurements"], strict=True):
        assert three["sigma"] == pytest.approx(3 * one["sigma"], rel=1e-2)
    assert [each["cells"] for each in alone["measurements"]] == [2, 10, 130]
    shown = kamino("plan", "-s", "zips.yaml", cwd=folder).stdout
    assert "chosen by the model" in shown
    assert "what is left" in shown
    assert kamino("plan", "-s", "zips.yaml", "-c", "zips.dc", "--unit", "who", cwd=folder).returncode == 2


def test_clashing_constraints_are_refused(folder: Path) -> None:
    (folder / "clash.dc").write_text("check (salary > 90000)\ncheck (salary < 80000)\n")
    for command in (("plan", "-s", "tax.yaml"), ("synth", "tax.csv", "-s", "tax.yaml", "-o", "clash.csv")):
        ran = kamino(*command, "-c", "clash.dc", cwd=folder)
        assert ran.returncode == 2
        assert "salary > 90000" in ran.stderr
        assert "salary < 80000" in ran.stderr
    assert not (folder / "clash.csv").exists()


def test_plan_of_the_paper_preset(folder: Path) -> None:
    ran = kamino("plan", "-s", "tax.yaml", "-c", "tax.dc", "-n", "20000", "--preset", "paper", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    for words in ("lookup", "parameters, within the budget", "noise multiplier of a step", "replace (this run)"):
        assert words in ran.stdout
    assert "row by row" not in ran.stdout
    printed = kamino("plan", "-s", "tax.yaml", "-c", "tax.dc", "-n", "20000", "--preset", "printed", cwd=folder)
    assert "row by row" in printed.stdout
    without = kamino("plan", "-s", "tax.yaml", "--preset", "paper", cwd=folder)
    assert "give -n to see them" in without.stdout


def test_synth_shows_how_soft_constraints_settle(folder: Path) -> None:
    (folder / "soft.dc").write_text("soft: not (t1.state = t2.state and t1.salary > t2.salary and t1.rate < t2.rate)\n")
    given = ("-s", "tax.yaml", "-c", "soft.dc", "--seed", "1", "--sweeps", "2", "-n", "300")
    ran = kamino("synth", "tax.csv", *given, "-o", "soft.csv", "--save-model", "soft.kamino", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    assert "measured (noisy)" in ran.stdout
    certificate = json.loads((folder / "soft.csv.certificate.json").read_text())
    (soft,) = certificate["constraints"]
    assert soft["deviation"] > 0
    assert 0 <= soft["rate"] <= 1
    if soft["weight"]:
        assert "after each sweep" in ran.stdout
        assert len(soft["sweeps"]) >= 3
    again = kamino("sample", "soft.kamino", "-o", "more.csv", "-n", "50", "--sweeps", "0", cwd=folder)
    assert again.returncode == 0, again.stderr
    assert certificate["method"] == {
        "backend": "marginal",
        "sequence": "planned",
        "sampling": "constraint-aware",
        "weights": "matching",
    }


def test_a_model_too_large_to_save_costs_no_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget is spent by then: the table is written, and then the error is told."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("kamino.pipeline.model_file._MOST_YAML_VALUES", 3)
    options = ["--trust-domain", "-o", "wide.csv", "--save-model", "wide.kamino", "-n", "20"]
    ran = CliRunner().invoke(app, ["synth", "tax.parquet", *options])
    assert isinstance(ran.exception, ModelError)
    assert "schema.yaml has more in it than any model file may hold" in str(ran.exception)
    assert "draw without saving" in str(ran.exception)
    assert read_table(folder / "wide.csv").num_rows == 20
    assert not (folder / "wide.kamino").exists()
