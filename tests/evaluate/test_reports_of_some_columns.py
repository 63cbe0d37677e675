"""A report on a run that left columns out, or read them as people write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import kamino
from kamino import InputError, Reading, Synthesizer
from kamino.cli.app import app

ROWS = 1_500
READ = Reading(drop=("name",), nulls=("NA",), numbers={"price": "1,234.5"})
TOLD = ("--nulls", "NA", "--numbers", "price=1,234.5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, path = np.random.default_rng(2), tmp_path_factory.mktemp("some")
    frame = pd.DataFrame(
        {
            "name": [f"Person {number}" for number in range(ROWS)],
            "city": rng.choice(["Rome", "Oslo"], ROWS),
            "price": [f"${each:,.0f}" if each > 300 else "NA" for each in rng.gamma(2, 900, ROWS)],
        }
    )
    frame.to_csv(path / "true.csv", index=False)
    made = Synthesizer(epsilon=20.0, seed=1).fit(path / "true.csv", reading=READ)
    made.write(path / "out.csv", ROWS)
    return path


def _report(folder: Path, *more: str, synthetic: str = "out.csv") -> Any:
    return CliRunner().invoke(app, ["report", str(folder / "true.csv"), str(folder / synthetic), *more])


def test_columns_that_a_run_left_out_are_not_missed(folder: Path) -> None:
    ran = _report(folder, *TOLD, "--json")
    assert ran.exit_code == 0, ran.output
    assert "Left out, since the certificate says that the run did not read them: name." in ran.stderr
    document = json.loads(ran.stdout)
    assert [each["name"] for each in document["columns"]] == ["city", "price"]
    (price,) = (each for each in document["columns"] if each["name"] == "price")
    assert price["kind"] == "number"
    assert price["distance"] < 0.3


def test_columns_are_left_out_where_there_is_no_certificate(folder: Path) -> None:
    (folder / "bare.csv").write_bytes((folder / "out.csv").read_bytes())
    ran = _report(folder, *TOLD, synthetic="bare.csv")
    assert isinstance(ran.exception, InputError)
    assert "leave them out (--drop name)" in str(ran.exception)
    for which in (("--drop", "name"), ("--columns", "city,price")):
        assert _report(folder, *TOLD, *which, "--json", synthetic="bare.csv").exit_code == 0
    document = json.loads(_report(folder, "--columns", "city", "--json", synthetic="bare.csv").stdout)
    assert [each["name"] for each in document["columns"]] == ["city"]


def test_python_reports_on_some_columns(folder: Path) -> None:
    with pytest.raises(InputError, match=r"leave them out \(Reading\(drop=\('name',\)\)\)"):
        kamino.report(folder / "true.csv", folder / "out.csv")
    found = kamino.report(folder / "true.csv", folder / "out.csv", reading=READ)
    assert [each["name"] for each in found.document["columns"]] == ["city", "price"]
