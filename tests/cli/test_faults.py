"""What is said of wrong use, of numbers of one, and of runs that end early."""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from functools import partial
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import kamino.cli.app as app_module
from kamino.cli.app import COMMANDS, app, main
from kamino.cli.render_run import print_run
from kamino.cli.stage_bar import show_stages
from kamino.errors import InputError
from kamino.pipeline import Stage, Synthesizer
from kamino.pipeline.stages import TimeLeft


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """The command line puts its own in the place of Python's."""
    before = sys.excepthook, sys.unraisablehook, threading.excepthook
    with warnings.catch_warnings():
        yield
    sys.excepthook, sys.unraisablehook, threading.excepthook = before


def complaint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["kamino", *arguments])
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code in (2, 3, 130)
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


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, MemoryError, RecursionError, OverflowError])
def test_an_unforeseen_error_shows_its_class_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, kind: type[Exception]
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        problem = kind("the day 4711-01-02")
        problem.add_note("epsilon 0.5 of 1 is spent.")
        raise problem from KeyError("the day 4711-01-02")

    monkeypatch.setattr(Synthesizer, "fit", fail)
    told = complaint(monkeypatch, capsys, "synth", "t.csv", "-o", str(tmp_path / "o.csv"))
    assert kind.__name__ in told
    assert "epsilon 0.5 of 1 is spent." in told
    assert "4711" not in told
    assert "Traceback" not in told


def test_errors_outside_the_main_thread_show_their_class_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        warnings.warn("the day 4711-01-02", RuntimeWarning, stacklevel=1)
        thread = threading.Thread(target=lambda: int("the day 4711-01-02"))
        thread.start()
        thread.join()
        raise InputError("broken")

    monkeypatch.setattr(Synthesizer, "fit", fail)
    told = complaint(monkeypatch, capsys, "synth", "t.csv", "-o", str(tmp_path / "o.csv"))
    assert "ValueError" in told
    assert "4711" not in told


@pytest.mark.parametrize(
    "arguments",
    [
        ("synth", "postgresql:/me:S3CRET@host/db", "-o", "o.csv"),
        ("synth", "t.csv", "postgresql://me:S3CRET@host/db", "-o", "o.csv"),
        ("postgresql://me:S3CRET@host/db",),
        ("check", "postgresql:/me:S3CRET@host/db", "-c", "postgresql://me:S3CRET@host/db"),
        ("init", "postgresql//me:S3CRET@host/db", "-q", "t"),
        ("report", "postgresql//me:S3CRET@host/db", "o.csv"),
    ],
)
def test_no_line_of_the_command_holds_a_password(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "S3CRET" not in complaint(monkeypatch, capsys, *arguments)


def test_synth_tells_no_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """How long a run takes depends on the table: neither the result nor the progress says it."""
    (tmp_path / "t.csv").write_text("a\n" + "x\n" * 50)
    arguments = ["synth", str(tmp_path / "t.csv"), "-o", str(tmp_path / "o.csv"), "-n", "5", "--anyway"]
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output
    assert not re.search(r"\d s\b|\d:\d\d", told.output)
    file = StringIO()
    monkeypatch.setattr(
        "kamino.cli.stage_bar.error_console", lambda: Console(file=file, force_terminal=True, width=200)
    )
    with show_stages(Stage.READ, Stage.FIT) as progress:
        progress(Stage.FIT)
    assert Stage.FIT.value in file.getvalue()
    assert not re.search(r"\d:\d\d", file.getvalue())


@pytest.mark.parametrize("stage", [Stage.FIT, Stage.SAMPLE])
def test_drawing_tells_the_time_left(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are drawn from a public model; how long the table took to be read and measured is not told."""
    file, clock = StringIO(), iter(range(0, 10_000, 100))
    monkeypatch.setattr(
        "kamino.cli.stage_bar.error_console", lambda: Console(file=file, force_terminal=True, width=200)
    )
    monkeypatch.setattr("kamino.pipeline.stages.TimeLeft", partial(TimeLeft, clock=lambda: float(next(clock))))
    with show_stages(Stage.FIT, Stage.SAMPLE) as progress:
        for done in range(4):
            progress(stage, done, 4)
    assert stage.value in file.getvalue()
    assert (", 1 min 40 s left" in file.getvalue()) == (stage is Stage.SAMPLE)


@pytest.mark.parametrize("address", ["postgresql://me:s3cret@127.0.0.1:1/db", "postgresql://me@127.0.0.1:1/db"])
def test_a_password_on_the_command_line_is_told(address: str, tmp_path: Path) -> None:
    (tmp_path / "r.dc").write_text("a -> b\n")
    told = CliRunner().invoke(app, ["check", address, "-q", "t", "-c", str(tmp_path / "r.dc")])
    assert ("set PGPASSWORD" in told.output) == ("s3cret" in address)
    assert "s3cret" not in told.output
    assert "s3cret" not in str(told.exception)


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
        "words": {"meaning": "one row more or less changes little"},
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


@pytest.mark.parametrize("arguments", [(), ("synth",), ("check",), ("ledger",), ("ledger", "show")])
def test_flags_are_listed_without_a_type(arguments: tuple[str, ...]) -> None:
    told = CliRunner().invoke(app, [*arguments, "--help"], env={"COLUMNS": "200"}).output
    flags = [line for line in told.splitlines() if re.search(r"--(help|version|trust-domain|json)\b", line)]
    assert flags
    assert not any("bool" in line.lower() for line in flags), flags


def test_the_collector_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(app_module, "app", lambda **_: seen.append(gc.get_threshold()[0]))
    monkeypatch.setattr(sys, "argv", ["kamino", "--version"])
    before = gc.get_threshold()
    with pytest.raises(SystemExit):
        app_module.main()
    assert seen == [app_module.NEW_OBJECTS]
    assert gc.get_threshold() == before


@pytest.mark.parametrize("name", [*COMMANDS, "ledger show", "ledger verify"])
def test_paragraphs_of_help_are_filled(name: str) -> None:
    """A line ends where the next word does not fit, not where a line of the source does."""
    told = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "80"}).output
    text, _, _ = told.partition("╭")
    lines = [line.strip() for line in text.splitlines()]
    for line, following in pairwise(lines):
        if line and following and not line.startswith("Usage"):
            assert len(line) + 1 + len(following.split()[0]) > 78, (line, following)


@pytest.mark.parametrize("said", [None, "some-plugin"])
def test_no_plugin_is_asked(monkeypatch: pytest.MonkeyPatch, said: str | None) -> None:
    name = "PYDANTIC_DISABLE_PLUGINS"
    monkeypatch.delenv(name, raising=False)
    if said is not None:
        monkeypatch.setenv(name, said)
    seen: list[str | None] = []
    monkeypatch.setattr(app_module, "app", lambda **_: seen.append(os.environ.get(name)))
    monkeypatch.setattr(sys, "argv", ["kamino", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert seen == [said or "__all__"]
    assert os.environ.get(name) == said
