"""`kamino report` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
import typer
from tests.evaluate.report_tables import RULES, table
from typer.testing import CliRunner

from kamino.cli.commands.report import report
from kamino.errors import InputError
from kamino.pipeline import Synthesizer


def run(*arguments: str | Path) -> Any:
    app = typer.Typer()
    app.command()(report)
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(table(200, 1), tmp_path / "true.csv")
    pyarrow.csv.write_csv(table(150, 2), tmp_path / "synth.csv")
    (tmp_path / "rules.dc").write_text(str(RULES))
    return tmp_path


def test_page_json_and_text(folder: Path) -> None:
    files = folder / "true.csv", folder / "synth.csv", "-c", folder / "rules.dc"
    shown = run(*files, "-o", folder / "report.html", "--json")
    document = json.loads(shown.stdout)
    page = (folder / "report.html").read_text(encoding="utf-8")
    embedded = json.loads(page.split('id="report">')[1].split("</script>")[0])
    assert embedded == document
    assert document["sources"] == {"true": "true.csv", "synthetic": "synth.csv"}
    assert "Wrote" in shown.stderr
    text = run(*files).stdout
    assert "1 of 2 hard constraints broken" in text
    assert "internal: computed from the private table" in text
    assert "zip -> city" in text
    assert "2-way, bins of equal mass" in text
    assert "rank correlations" in text


def test_dates_are_compared_as_dates(tmp_path: Path) -> None:
    """The original writes 10/23/64, the synthetic table 1964-10-23; ids are made up: neither makes a table poor."""
    rows = [f"{1 + i % 12}/{1 + i % 28}/{60 + i % 3},P{i // 4}" for i in range(400)]
    (tmp_path / "true.csv").write_text("day,person\n" + "\n".join(rows) + "\n")
    schema = (
        "attributes:\n  day: {type: date, min: 1960-01-01, max: 1962-12-31, format: '%m/%d/%y'}\n"
        "  person: {type: key, repeats: true, pattern: 'Q{:03d}'}\n"
    )
    made = [f"196{i % 3}-{1 + i % 12:02d}-{1 + i % 28:02d},Q{i // 5:03d}" for i in range(400)]
    (tmp_path / "synth.csv").write_text("day,person\n" + "\n".join(made) + "\n")
    facts = {"mark": "for release", "privacy": {"epsilon": 1.0, "delta": 1e-9}, "schema": schema}
    (tmp_path / "synth.csv.certificate.json").write_text(json.dumps(facts))
    document = json.loads(run(tmp_path / "true.csv", tmp_path / "synth.csv", "--json").stdout)
    assert [(each["name"], each["distance"]) for each in document["columns"]] == [("day", 0.0)]
    assert [(each["name"], each["why"]) for each in document["identifiers"]] == [("person", "ids that were made up")]
    facts["schema"] = "attributes: ["
    (tmp_path / "synth.csv.certificate.json").write_text(json.dumps(facts))
    document = json.loads(run(tmp_path / "true.csv", tmp_path / "synth.csv", "--json").stdout)
    assert document["columns"][0]["distance"] > 0.99, "without a schema, texts and dates have nothing in common"


def test_certificate_beside_the_table_is_found(folder: Path) -> None:
    facts = {"mark": "not for release", "privacy": {"epsilon": 2.0, "delta": 1e-9}, "sha256": "0"}
    (folder / "synth.csv.certificate.json").write_text(json.dumps(facts))
    document = json.loads(run(folder / "true.csv", folder / "synth.csv", "--json").stdout)
    assert document["certificate"]["privacy"]["epsilon"] == 2.0
    assert document["certificate"]["fits"] is False
    (folder / "other.json").write_text("[]")
    with pytest.raises(InputError, match="expected a certificate"):
        run(folder / "true.csv", folder / "synth.csv", "--certificate", folder / "other.json")
    (folder / "other.json").write_text("{")
    with pytest.raises(InputError, match=r"other.json:1:2: found text that is not JSON"):
        run(folder / "true.csv", folder / "synth.csv", "--certificate", folder / "other.json")


def test_wrong_use_says_what_to_do(folder: Path) -> None:
    with pytest.raises(InputError, match="expected the true and the synthetic one"):
        run(folder / "synth.csv")
    with pytest.raises(InputError, match="needs the true table"):
        run(folder / "synth.csv", "--public", folder / "m.model", "--model-training")
    with pytest.raises(InputError, match="found no table"):
        run()


def test_true_table_beside_public_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"found a true table beside --public; .* leave it out"):
        run(folder / "true.csv", folder / "synth.csv", "--public", folder / "m.model")


def test_help_asks_for_no_table_that_may_be_left_out() -> None:
    assert "required" not in run("--help").stdout


def test_page_is_html_and_never_an_input(folder: Path) -> None:
    files = folder / "true.csv", folder / "synth.csv"
    with pytest.raises(InputError, match=r"r.txt: expected a file that ends in .html or .htm"):
        run(*files, "-o", folder / "r.txt")
    before = (folder / "true.csv").read_bytes()
    with pytest.raises(InputError, match=r"expected a file that ends in .html"):
        run(*files, "-o", folder / "true.csv")
    (folder / "link.html").symlink_to(folder / "true.csv")
    with pytest.raises(InputError, match="also an input"):
        run(*files, "-o", folder / "link.html")
    (folder / "rules.html").write_text(str(RULES))
    with pytest.raises(InputError, match="also an input"):
        run(*files, "-c", folder / "rules.html", "-o", folder / "rules.html")
    assert (folder / "true.csv").read_bytes() == before
    run(*files, "-o", folder / "r.HTM")
    assert (folder / "r.HTM").is_file()


def test_text_says_what_was_not_counted_and_left_out(folder: Path) -> None:
    rows = 60
    true = pa.table({"id": [f"t{i}" for i in range(rows)], "c": ["a", "b"] * 30, "n": list(range(rows))})
    synthetic = pa.table({"id": [f"s{i}" for i in range(rows)], "c": ["a", "b"] * 30, "n": ["x"] * rows})
    pyarrow.csv.write_csv(true, folder / "t.csv")
    pyarrow.csv.write_csv(synthetic.append_column("more", synthetic["c"]), folder / "s.csv")
    (folder / "r.dc").write_text("check (n >= 0)\nkey (id)\n")
    text = run(folder / "t.csv", folder / "s.csv", "-c", folder / "r.dc").stdout
    assert "1 of 2 hard constraints could not be counted" in text
    assert "broken" not in text
    assert "check (n >= 0): not counted: n is text in the synthetic table, expected a number" in text
    assert "left out as identifiers: id (a key)" in text
    assert "only in the synthetic table: more" in text


def test_public_report_needs_no_table(folder: Path) -> None:
    private = pa.table({"c": ["a", "b"] * 50, "n": list(range(100))})
    made = Synthesizer(constraints="check (n >= 0)", epsilon=1.0, trust_domain=True, seed=1).fit(private)
    made.save(folder / "m.model")
    pyarrow.csv.write_csv(made.sample(60), folder / "drawn.csv")
    alone = run(folder / "drawn.csv", "--public", folder / "m.model", "--json", "-o", folder / "p.html").stdout
    document = json.loads(alone)
    assert document["internal"] is False
    assert document["certificate"]["mark"] == "not for release"
    assert (
        sum(event["count"] for event in document["certificate"]["events"])
        == document["certificate"]["privacy"]["releases"]
    )
    assert [c["text"] for c in document["constraints"]] == ["check (n >= 0)"]
    assert "No private table was read" in (folder / "p.html").read_text(encoding="utf-8")
    assert document["rows"]["measured"] > 0
    assert "true" not in document["rows"]
    text = run(folder / "drawn.csv", "--public", folder / "m.model").stdout
    assert "distance of marginals" in text
    assert "halves" not in text
    assert "equal mass" not in text
    assert "–" not in text


def test_training_models_is_an_option(folder: Path) -> None:
    pytest.importorskip("sklearn")
    small = pa.table({"c": ["a", "b", "b"] * 20, "n": list(range(60)), "id": [f"k{i}" for i in range(60)]})
    pyarrow.csv.write_csv(small, folder / "small.csv")
    shown = run(
        folder / "small.csv", folder / "small.csv", "--model-training", "--training-rows", "30", "--json", "--text"
    )
    learning = json.loads(shown.stdout[: shown.stdout.rindex("}") + 1])["learning"]
    assert (learning["train_rows"], len(learning["models"])) == (30, 9)
    assert [row["name"] for row in learning["attributes"]] == ["c", "n"]
    assert "models trained on" in shown.stdout
