"""`kamino ledger`, and what commands with --ledger say when it cannot be used."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.durable.test_chain import ledger_file
from tests.durable.test_resume import prepare
from typer.testing import CliRunner

from kamino.cli.app import app
from kamino.errors import BudgetError, InputError, KaminoError, LedgerError
from kamino.privacy.durable import hash_chain as chain_module
from kamino.privacy.durable.journal import journals_of
from kamino.privacy.durable.store import DurableLedger

RUN = ["t.csv", "-s", "schema.yaml", "--seed", "5", "--ledger", "l.ledger"]
SYNTH = ["synth", *RUN, "-c", "rules.dc", "-o", "o.csv", "-n", "20"]


def kamino(*arguments: str, error: type[KaminoError] | None = None) -> str:
    """What a command prints; or, with an error, what it says of it."""
    result = CliRunner().invoke(app, list(arguments))
    if error is not None:
        assert isinstance(result.exception, error), result.output
        assert "\n" not in str(result.exception)
        return str(result.exception)
    assert result.exit_code in (0, 1), (result.output, result.exception)
    return f"{result.exit_code} {result.output}"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    prepare(tmp_path / "run")
    monkeypatch.chdir(tmp_path / "run")
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "run"


def test_a_dataset_has_one_budget_over_commands(folder: Path) -> None:
    """Policy, synthesis, suggestions, refusal, and what is shown of it all."""
    set_to = kamino("ledger", "policy", "l.ledger", "--dataset", "t.csv", "-e", "1.2")
    assert "t.csv: at most epsilon 1.2 at delta 1e-06; add_remove, unit: a row, gaussian composition" in set_to
    made = kamino(*SYNTH)
    assert re.search(r"ledger l.ledger: run \w{12}; 't.csv' is at epsilon 1.* of 1.2 at delta 1e-06, after 1 run", made)
    assert "'t.csv' is at epsilon 1." in kamino("suggest", *RUN, "-e", "0.4")
    refused = kamino(*SYNTH, error=BudgetError)
    assert "allows epsilon=1.2 at delta=1e-06, and with this run all runs would come to epsilon 1.52" in refused
    shown = kamino("ledger", "show", "l.ledger")
    assert "at most epsilon 1.2 at delta 1e-06, 1e-07 of it for finding categories" in shown
    assert "one more or one less: epsilon 1.0" in shown
    assert shown.count("not for release") == 2 + 2, "each run, and the line on both"
    assert "mark not for release together: 2 of 2 runs are not for release" in " ".join(shown.split())
    assert re.search(r"synth +│ 1 ", shown)
    assert re.search(r"suggest +│ 0.4 ", shown)
    head = re.search(r"head (\w{64}), (\d+) lines", shown)
    assert head is not None
    assert "the chain is whole and has the given head; every policy holds" in kamino(
        "ledger", "verify", "l.ledger", "--head", head[1]
    )
    assert {path.name for path in folder.iterdir()} == {
        *("t.csv", "rules.dc", "schema.yaml", "l.ledger", "o.csv", "o.csv.certificate.json")
    }


def test_verify_says_no(tmp_path: Path) -> None:
    path = ledger_file(tmp_path)
    with DurableLedger.read(path) as ledger:
        head = ledger.head
    whole = path.read_bytes()
    assert kamino("ledger", "verify", str(path), "--head", head).startswith("0 ")
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert kamino("ledger", "verify", str(path)).startswith("0 ")
    assert "1 " in kamino("ledger", "verify", str(path), "--head", head)
    assert "lines were cut from the end" in kamino("ledger", "verify", str(path), "--head", head).replace("\n", " ")
    path.write_bytes(whole[:-20])
    assert "follow the last whole line" in kamino("ledger", "verify", str(path))
    path.write_bytes(whole.replace(b"counts 2", b"counts 8"))
    said = kamino("ledger", "verify", str(path))
    assert said.startswith("1 ")
    assert "line 5: found a hash that does not follow" in said
    path.write_bytes(whole)
    assert "expected the 64" in kamino("ledger", "verify", str(path), "--head", "abc", error=InputError)
    assert "no dataset 'x'; expected one of d" in kamino(
        "ledger", "show", str(path), "--dataset", "x", error=LedgerError
    )


def test_a_policy_is_shown_replaced_and_checked(tmp_path: Path) -> None:
    path = str(tmp_path / "l")
    assert "expected --dataset NAME" in kamino("ledger", "policy", path, "-e", "1", error=InputError)
    options = ("--dataset", "d", "--neighbours", "replace", "--composition", "basic", "--unit", "who", "-d", "1e-5")
    kamino("ledger", "policy", path, "-e", "3", *options)
    shown = kamino("ledger", "policy", path)
    assert "d: at most epsilon 3 at delta 1e-05; replace, unit: all rows with one value of 'who', basic" in shown
    kamino("ledger", "policy", path, "-e", "4", *options)
    assert "at most epsilon 4" in kamino("ledger", "show", path)
    assert "There is no policy" in kamino("ledger", "policy", path, "--dataset", "other")
    for wrong in (("-e", "-1"), ("-e", "inf"), ("-e", "1", "-d", "2"), ("-e", "1", "--finding-delta", "1")):
        kamino("ledger", "policy", path, "--dataset", "d", *wrong, error=KaminoError)


def test_close_frees_what_a_run_holds(folder: Path) -> None:
    ledger_file(folder)
    assert "unfinished, releases lost" in kamino("ledger", "show", "l.ledger")
    assert "run one: 5 charges stay; closed as given up" in kamino("ledger", "close", "l.ledger", "one")
    assert "given up" in kamino("ledger", "show", "l.ledger")
    assert "found no run two" in kamino("ledger", "close", "l.ledger", "two", error=LedgerError)


class Failing:
    """The system, as the ledger sees it, with a call that fails."""

    def __init__(self, name: str, number: int) -> None:
        self._name, self._number = name, number

    def __getattr__(self, name: str) -> Any:
        return self._fail if name == self._name else getattr(os, name)

    def _fail(self, *_: Any) -> Any:
        raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize("command", [SYNTH, ["suggest", *RUN]], ids=["synth", "suggest"])
def test_a_ledger_that_cannot_be_used_ends_a_run_in_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Before anything is read, and with nothing left behind."""
    before = {path.name for path in folder.iterdir()}
    for name, text in (
        ("t.csv", "is also an input" if command is SYNTH else "expected a ledger"),
        (".", "found a directory, expected a ledger"),
        ("nowhere/l", "there is no folder nowhere"),
        ("schema.yaml", "is also an input" if command is SYNTH else "expected a ledger"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr("kamino.pipeline.engines.read_table", lambda *_, **__: pytest.fail("the table was read"))
            assert text in kamino(*(name if each == "l.ledger" else each for each in command), error=KaminoError)
    with monkeypatch.context() as patched:
        patched.setattr(chain_module, "os", Failing("fsync", errno.ENOSPC))
        assert "cannot be written (No space left on device)" in kamino(*command, error=LedgerError)
    assert {path.name for path in folder.iterdir()} - {"l.ledger"} == before
    kamino(*command)
    before = {path.name for path in folder.iterdir()}
    with monkeypatch.context() as patched:
        patched.setattr(chain_module, "os", Failing("open", errno.EROFS))
        said = kamino(*command, error=LedgerError)
        assert "l.ledger: a ledger cannot be opened for writing (Read-only file system)" in said
    with monkeypatch.context() as patched:
        patched.setattr(chain_module, "os", Failing("fsync", errno.ENOSPC))
        assert "Nothing was entered" in kamino(*command, error=LedgerError)
    assert {path.name for path in folder.iterdir()} == before
    assert journals_of(folder / "l.ledger") == {}


def test_options_without_a_ledger_are_refused(folder: Path) -> None:
    for option in (("--dataset", "d"), ("--resume",), ("--no-resume",)):
        told = kamino("synth", "t.csv", "-s", "schema.yaml", "-o", "o.csv", *option, error=InputError)
        assert "without a ledger; expected --ledger FILE as well" in told


def test_help_says_what_the_commands_do() -> None:
    for name in ("show", "verify", "policy", "close"):
        assert "FILE" in kamino("ledger", name, "--help")
    assert "verify" in kamino("ledger", "--help")
