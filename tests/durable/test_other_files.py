"""What is no ledger is never written to, whatever it is and whichever command is given it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.durable.other_files import COMMANDS, count_changed
from tests.durable.planning import gaussian, planned
from tests.durable.test_chain import ledger_file
from tests.killed import is_killed
from typer.testing import CliRunner

from kamino import nameless
from kamino.cli.app import app
from kamino.errors import LedgerError
from kamino.privacy.durable import hash_chain as chain_module
from kamino.privacy.durable.durable_run import begin
from kamino.privacy.durable.journal import Journal, journal_path, journals_of
from kamino.privacy.durable.store import DurableLedger

OPEN = """
from kamino.privacy.durable import hash_chain
from kamino.privacy.durable.store import DurableLedger
if not {has_nameless}:
    hash_chain.open_nameless = lambda folder: None
arm()
DurableLedger.open("l").close_file()
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_files_of_other_kinds_are_never_changed(tmp_path: Path, command: str) -> None:
    files, changed = count_changed(tmp_path, command)
    assert files > 60
    assert changed == 0


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to a text", "link to nothing"])
def test_what_is_no_file_of_its_own_is_left_as_it_is(tmp_path: Path, kind: str) -> None:
    """A pipe does not hang, and a link is followed: to a new ledger, but not into a file of another kind."""
    path, aim = tmp_path / "l", tmp_path / "aim"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(aim)
    if kind == "link to a text":
        aim.write_text("do not touch")
    result = CliRunner().invoke(app, ["ledger", "policy", str(path), "--dataset", "d", "-e", "1"])
    if kind == "link to nothing":
        assert result.exit_code == 0
        assert path.is_symlink()
        DurableLedger.read(aim).close_file()
        return
    assert isinstance(result.exception, LedgerError)
    assert "or a new name" in str(result.exception)
    if kind == "link to a text":
        assert aim.read_text() == "do not touch"


def test_a_file_that_is_named_as_stored_releases_is_kept(tmp_path: Path) -> None:
    """What an earlier process left of a run that was never entered goes; notes of somebody do not."""
    path = ledger_file(tmp_path)
    notes = [journal_path(path, name) for name in ("notes", "v1.0", "0123456789ab")]
    for number, each in enumerate(notes):
        each.write_text("do not touch" + "\n" * (number % 2))
    orphan = journal_path(path, "ba9876543210")
    Journal.create(orphan, "ba9876543210").release()
    begin(DurableLedger.open(path), planned("x")).leave()
    assert not orphan.exists()
    assert [each.read_text().strip() for each in notes] == ["do not touch"] * 3


@pytest.mark.parametrize("has_nameless", [True, False])
def test_a_killed_writer_leaves_nothing(tmp_path: Path, has_nameless: bool) -> None:
    """A new ledger is there with its first line, or not at all, whenever its process is killed.

    Without nameless files an empty or torn one may be left: it is refused as any other file is.
    """
    path, step, states, killed = tmp_path / "l", 2, set(), True
    while killed:
        call, before = step // 2, step % 2 == 0
        step += 1
        killed = is_killed(OPEN.format(has_nameless=has_nameless), tmp_path, call=call, before=before)
        names = [each.name for each in tmp_path.iterdir()]
        states.add(path.stat().st_size > 0 if names else None)
        assert names in ([], ["l"])
        if names and (has_nameless or not killed):
            DurableLedger.read(path).close_file()
        path.unlink(missing_ok=True)
    assert states == ({None, True} if has_nameless else {None, False, True})
    assert step > 8


def test_a_ledger_is_begun_where_files_have_names_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the system has no nameless files, and where it gives them no name."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr(chain_module, "open_nameless", lambda folder: None)
        path = ledger_file(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("kamino.nameless.os.link", refuse)
        other = tmp_path / "other"
        other.mkdir()
        ledger_file(other)
        begin(DurableLedger.open(path), planned("x")).leave()
    assert nameless.open_nameless(tmp_path) is not None
    for each in (path, other / "l.ledger"):
        with DurableLedger.open(each) as ledger:
            ledger.charge("one", gaussian(1e-4))
    assert journals_of(path) == {}
