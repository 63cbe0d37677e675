"""What is said of wrong use, of numbers of one, and of runs that end early."""

from __future__ import annotations

import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from kamino.cli.app import app, main
from kamino.cli.render_run import print_run
from kamino.errors import InputError
from kamino.pipeline import Synthesizer


def complaint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["kamino", *arguments])
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in (2, 130)
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-e", "abc"), "'--epsilon': found abc; expected a number. See kamino synth --help."),
        (("-n", "1.5"), "'--rows': found 1.5; expected a whole number. See kamino synth --help."),
        (("-n", "-4"), "'--rows': found -4; expected 0 or more. See kamino synth --help."),
        (("--sampling", "foo"), "'foo' is not one of 'independent',"),
    ],
)
def test_wrong_values_are_told_in_our_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    told = complaint(monkeypatch, capsys, "synth", "t.csv", "-o", "o.csv", *arguments)
    assert message in told
    assert "Input should" not in told
    assert "Value error" not in told


@pytest.mark.parametrize("problem", [InputError("broken"), KeyboardInterrupt()])
def test_what_was_added_to_an_error_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, problem: BaseException
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        problem.add_note("epsilon 0.5 of 1 is spent.")
        raise problem

    monkeypatch.setattr(Synthesizer, "fit", fail)
    told = complaint(monkeypatch, capsys, "synth", "t.csv", "-o", str(tmp_path / "o.csv"))
    assert "kamino: epsilon 0.5 of 1 is spent." in told


def test_a_folder_is_called_one(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["init", str(tmp_path)])
    assert "found a directory" in str(ran.exception)


def test_one_row_is_no_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\nx\n")
    (tmp_path / "r.dc").write_text("check (a = 'x')\n")
    told = CliRunner().invoke(app, ["check", str(tmp_path / "t.csv"), "-c", str(tmp_path / "r.dc")]).output
    assert "1 row, 1 constraint\n" in told
    assert "1 row │" in told


def test_plan_says_what_rows_are_for() -> None:
    told = CliRunner().invoke(app, ["plan", "--help"], env={"COLUMNS": "200"}).output
    assert "Rows to plan for" in told
    assert "as many as there are" not in told


def test_a_run_without_hard_constraints_promises_none() -> None:
    soft = {"text": "soft: a -> b", "hard": False, "violations": 3, "rate": 0.1, "sweeps": []}
    certificate = {
        "mark": "for release",
        "privacy": {"neighbours": "add_remove", "spent_epsilon": {"add_remove": 1.0}, "delta": 1e-6} | UNIT,
        "domains": {},
        "finding_domains": {"share": 0.0, "delta": 0.0},
        "constraints": [soft, soft],
        "notes": [],
        "rows": 1,
        "given": {"dept": ["Sales", "HR"], "age": [None]},
    }
    out = StringIO()
    print_run(Console(file=out, width=160), certificate, output=None, seconds=None)
    assert "2 soft, no hard given" in out.getvalue()
    assert "dept=Sales or HR, age= in every row" in out.getvalue()


UNIT = {"unit": "one row", "releases": 2}
