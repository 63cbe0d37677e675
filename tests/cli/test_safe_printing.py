"""Names, values and rules that would command a terminal, a spreadsheet or a browser are shown, not obeyed."""

from __future__ import annotations

import csv
import json
import sys
import unicodedata
import warnings
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from typer.testing import CliRunner

from kamino import InputError, Synthesizer
from kamino.cli.app import app, main
from kamino.cli.console import SafeConsole, json_text, safe
from kamino.errors import KaminoError, visible
from kamino.io.write import quote_formulas, unquote_formulas
from kamino.pipeline import stages
from kamino.pipeline.program import measuring_stages
from kamino.schema import Categorical, Integer, Schema

EVIL = "\x1b]0;owned\x07\x1b[2Jx\u202ey\x9b31m\r"
HARMLESS = "né — 漢 👩‍👩‍👧"


def obeyed(text: str) -> list[str]:
    """What is in a text that a terminal obeys, its line breaks left out."""
    return [
        c for c in text if (unicodedata.category(c) in ("Cc", "Zl", "Zp") and c != "\n") or c in "\u202e\u2066\u200f"
    ]


@given(st.text())
def test_nothing_a_terminal_obeys_is_printed(text: str) -> None:
    assert obeyed(visible(text)) == []
    assert obeyed(str(KaminoError(text))) == []
    out = StringIO()
    SafeConsole(file=out, highlight=False).print(text, markup=False)
    assert obeyed(out.getvalue()) == []
    assert obeyed(json_text({"a": text})) == []
    assert json.loads(json_text({"a": text})) == {"a": text}


def test_harmless_text_is_as_it_is() -> None:
    assert visible(HARMLESS) == HARMLESS
    assert json_text([HARMLESS]) == f'[\n  "{HARMLESS}"\n]'


@pytest.fixture
def evil(tmp_path: Path) -> Path:
    """A table, its schema and rules, each with texts that command a terminal."""
    name = f"n{EVIL}".replace("\r", "")
    rows = "".join(f'"{EVIL}","{i % 2}"\n' for i in range(30))
    (tmp_path / "t.csv").write_text(f'"{name}",b\n{rows}', encoding="utf-8")
    (tmp_path / "r.dc").write_text(f'check (b >= 1)\n"{name}" -> b\n', encoding="utf-8")
    attributes = {name: Categorical(values=[EVIL, "x"], nullable=True), "b": Integer(min=0, max=1)}
    (tmp_path / "s.yaml").write_text(Schema(attributes=attributes).to_yaml(), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "t.csv", "-c", "r.dc", "--explain"),
        ("check", "t.csv", "-c", "r.dc", "--json"),
        ("plan", "-s", "s.yaml"),
        ("plan", "-s", "s.yaml", "--json"),
        ("init", "t.csv"),
        ("init", "t.csv", "--trust-domain"),
        ("synth", "t.csv", "-s", "s.yaml", "-o", "o.csv", "--seed", "1"),
        ("report", "t.csv", "t.csv", "-o", "r.html", "--text"),
        ("suggest", "t.csv", "-s", "s.yaml", "-e", "100"),
    ],
    ids=" ".join,
)
def test_commands_print_nothing_a_terminal_obeys(
    evil: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(evil)
    told = CliRunner().invoke(app, list(arguments)).output
    assert obeyed(told) == []


def test_names_are_shown_whole(evil: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is escaped is wider than it was: it is escaped before it is laid out, so that no column is too narrow."""
    monkeypatch.chdir(evil)
    monkeypatch.setenv("COLUMNS", "400")
    name = visible(f"n{EVIL}".replace("\r", ""))
    for arguments in ("check t.csv -c r.dc", "plan -s s.yaml", "synth t.csv -o o.csv --trust-domain --seed 1"):
        told = CliRunner().invoke(app, arguments.split()).output
        assert name in told, arguments
    out = StringIO()
    grid = Table("one", "two")
    grid.add_row(safe("a\nb\x07c"), "d\x07e\rf")
    SafeConsole(file=out, width=60).print(grid, "g\x08h")
    assert "│ a\\nb\\x07c │ d\\x07e\\rf │" in out.getvalue()
    assert "g\\x08h" in out.getvalue()


def test_errors_print_nothing_a_terminal_obeys(
    evil: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(evil)
    (evil / "wrong.dc").write_text(f'"{EVIL[:-1]}q" -> b\n', encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["kamino", "check", "t.csv", "-c", "wrong.dc"])
    with pytest.raises(SystemExit), warnings.catch_warnings():
        main()
    told = capsys.readouterr().err
    assert "\\x1b" in told
    assert obeyed(told) == []


def test_a_page_shows_what_a_terminal_obeys(evil: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(evil)
    CliRunner().invoke(app, ["report", "t.csv", "t.csv", "-o", "r.html"])
    assert obeyed((evil / "r.html").read_text(encoding="utf-8")) == []


TEXTS = ["=1+1", "+1", "-1", "@x", "'=x", "''=x", "'x", "x=1", "", "\t=x", None]


def test_a_safe_file_has_no_formula(tmp_path: Path) -> None:
    values = [text for text in TEXTS if text]
    table = pa.table({"=n": TEXTS, "m": range(-3, 8)})
    quoted = quote_formulas(table)
    assert unquote_formulas(quoted).equals(table)
    assert len(set(quoted.column(0).to_pylist())) == len(TEXTS)
    schema = Schema(attributes={"=n": Categorical(values=values), "m": Integer(min=-3, max=3)})
    made = Synthesizer(schema, "check (\"=n\" != '@x')", seed=1).fit(pa.table({"=n": values, "m": range(len(values))}))
    written = made.write(tmp_path / "o.csv", 300, spreadsheet_safe=True)
    assert written.certificate["spreadsheet_safe"] is True
    assert sum(written.violations.values()) == 0
    with open(tmp_path / "o.csv", encoding="utf-8", newline="") as handle:
        rows = list(csv.reader(handle))
    assert rows[0] == ["'=n", "m"]
    assert not any(row[0].startswith(("=", "+", "-", "@", "\t")) for row in rows)
    assert "'=1+1" in {row[0] for row in rows}
    with pytest.raises(InputError, match="only cells of CSV become formulas"):
        made.write(tmp_path / "o.parquet", 3, spreadsheet_safe=True)


def test_no_warning_of_numpy_reaches_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = measuring_stages.encode

    def warning(*arguments: object) -> object:
        np.float64(1.0) / np.zeros(1)
        return encode(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(measuring_stages, "encode", warning)
    table = pa.table({"a": [1, 2]})
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        Synthesizer(trust_domain=True, seed=1).fit(table)
    monkeypatch.setattr(stages, "QUIET", True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        Synthesizer(trust_domain=True, seed=1).fit(table)
    assert seen == []
