"""Tables with hardly anything in them still make a page, a text and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluate.test_report_command import run

from kamino.evaluate.report.heatmap import heat_map
from kamino.evaluate.report.svg import shorten_all, width_of

PLAIN = "k,c,n,d\n" + "".join(f"k{i},{'ab'[i % 2]},{i % 7},2024-01-0{1 + i % 9}\n" for i in range(40))
ONE_ROW = "k,c,n,d\nk0,a,1,2024-01-01\n"
EMPTY = "k,c,n,d\n"
NULLS = "k,c,n,d\n" + "".join(f"k{i},,,\n" for i in range(40))
CONSTANT = "k,c,n,d\n" + "x,a,1,2024-01-01\n" * 40
CASES = {"plain": PLAIN, "one row": ONE_ROW, "empty": EMPTY, "nulls": NULLS, "constant": CONSTANT}


@pytest.mark.parametrize("true", CASES)
@pytest.mark.parametrize("synthetic", CASES)
def test_every_pair_makes_page_text_and_json(tmp_path: Path, true: str, synthetic: str) -> None:
    (tmp_path / "t.csv").write_text(CASES[true])
    (tmp_path / "s.csv").write_text(CASES[synthetic])
    (tmp_path / "r.dc").write_text("soft: c -> n\ncheck (n >= 0)\nkey (k)\n")
    files = tmp_path / "t.csv", tmp_path / "s.csv", "-c", tmp_path / "r.dc"
    shown = run(*files, "-o", tmp_path / "r.html", "--json")
    assert shown.exit_code == 0
    document = json.loads(shown.stdout)
    assert next(row["name"] for row in document["identifiers"]) == "k"
    assert "</html>" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "hard constraints" in run(*files, "--text").stdout
    if true == synthetic:
        assert document["verdict"]["level"] == ("poor" if synthetic == "constant" else "good")


@given(st.lists(st.text("ab…1é漢", max_size=30), unique=True, max_size=30), st.integers(8, 20))
def test_long_names_are_told_apart(names: list[str], columns: int) -> None:
    short = shorten_all(names, columns)
    assert len(set(short)) == len(names)
    assert all(width_of(text) <= columns for text in short)


def test_a_heat_map_tells_long_names_apart() -> None:
    names = [f"income_of_the_household_in_the_year_{year}" for year in (2022, 2023)]
    shown = str(heat_map(names, [[0.0, 0.1], [0.1, 0.0]], "k", top=1.0, signed=False))
    assert "2022" in shown.split("<title>")[0]
    assert "…" in shown.split("<title>")[0]
