"""A table as people keep it: dollars, NA, names; what `init`, `check` and `synth` make of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.csv
import pytest
from click.testing import Result
from typer.testing import CliRunner

from kamino import Reading, Schema, Synthesizer
from kamino.cli.app import app

ROWS = 3_000


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(7)
    table = pd.DataFrame(
        {
            "name": [f"Person {number}" for number in range(ROWS)],
            "city": rng.choice(["Rome", "Oslo"], ROWS),
            "price": [f"${each:,.2f}" for each in rng.gamma(2, 900, ROWS)],
            "fee": ["NA" if number % 10 == 0 else f"{number % 90 / 10}" for number in range(ROWS)],
        }
    )
    path = tmp_path_factory.mktemp("messy")
    table.to_csv(path / "t.csv", index=False)
    return path


DECLARED = """
attributes:
  name: {type: key}
  city: {type: categorical, values: [Oslo, Rome]}
  price: {type: real, min: 0, max: 20000, decimals: 2, nullable: true%s}
  fee: {type: real, min: 0, max: 9, decimals: 1, nullable: true%s}
"""


def _check(folder: Path, schema: str, *more: str) -> tuple[int, str]:
    (folder / "s.yaml").write_text(schema)
    done = run("check", str(folder / "t.csv"), "-s", str(folder / "s.yaml"), *more)
    return done.exit_code, done.stdout


def test_what_would_become_other_is_told(folder: Path) -> None:
    assert run("init", str(folder / "t.csv"), "-o", str(folder / "raw.yaml")).exit_code == 0
    raw = (folder / "raw.yaml").read_text()
    code, said = _check(folder, raw)
    assert code == 0
    assert "name: about 100% of its cells would become `other`: few rows share a value. List its values" in said
    assert "price: about 100%" in said
    assert 'Its cells look like numbers: say `type: real, written: "1,234.5"`' in said
    assert "city: about" not in said
    document = json.loads(_check(folder, raw, "--json")[1])
    expected = document["would_become_other"]
    assert set(expected) == {"name", "price"} | ({"fee"} & set(expected))
    # A run does lose them.
    synthesizer = Synthesizer(Schema.from_yaml(raw), epsilon=1.0, seed=3, anyway=True).fit(folder / "t.csv")
    drawn = synthesizer.sample(200).to_pandas()
    assert (drawn["price"] == "other").mean() > 0.9


def test_why_cells_cannot_be_read_is_told(folder: Path) -> None:
    code, said = _check(folder, DECLARED % ("", ""))
    assert code == 1
    assert f'price: {ROWS:,} cells, numbers written as 1,234.5: say `written: "1,234.5"`' in said
    assert f"fee: {ROWS // 10} cells, NA: if that stands for nothing, say `nulls: ['NA']`" in said
    mended = DECLARED % (', written: "1,234.5"', ", nulls: [NA]")
    assert _check(folder, mended)[0] == 0
    told = ("--numbers", "price=1,234.5", "--nulls", "fee=NA")
    assert _check(folder, DECLARED % ("", ""), *told)[0] == 0


@pytest.mark.parametrize("engine", ["memory", "streamed"])
def test_a_run_reads_what_a_schema_says(folder: Path, engine: str) -> None:
    mended = Schema.from_yaml(DECLARED % (', written: "1,234.5"', ", nulls: [NA]"))
    drawn = Synthesizer(mended, epsilon=50.0, engine=engine, seed=1).fit(folder / "t.csv").sample(2_000).to_pandas()
    assert abs(drawn["price"].mean() - 1_800) < 300
    assert 0.05 < drawn["fee"].isna().mean() < 0.15


def test_a_run_without_a_schema_reads_what_options_say(folder: Path) -> None:
    out = folder / "out.csv"
    told = ("--numbers", "price=1,234.5", "--nulls", "NA", "--drop", "name", "-e", "5", "--seed", "1", "-n", "500")
    assert run("synth", str(folder / "t.csv"), "-o", str(out), *told).exit_code == 0
    written: Any = pyarrow.csv.read_csv(out)
    assert [str(written.schema.field(name).type) for name in ("price", "fee")] == ["double", "double"]


def test_a_few_odd_cells_make_no_category_of_a_cost(folder: Path) -> None:
    path = folder / "costs.csv"
    costs = [f"{number % 700}.5" for number in range(4_000)]
    costs[:6] = ["tbd", "see note", "?", "free", "1.2.3", "unknown"]
    path.write_text("cost,x\n" + "".join(f"{cost},1\n" for cost in costs))
    assert "cost: {type: real" in run("init", str(path)).stdout
    fitted = Synthesizer(epsilon=5.0, trust_domain=True, seed=1).fit(path, reading=Reading(columns=("cost",))).fitted
    assert fitted.schema["cost"].type == "real"
