"""A ledger and its stored releases that are set back together: found by the heads that are kept elsewhere."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.durable.planning import gaussian, planned
from tests.durable.test_chain import chained
from tests.durable.test_ledger_command import SYNTH, folder, kamino

from kamino.errors import InputError, LedgerError
from kamino.privacy.durable import anchor as anchor_module
from kamino.privacy.durable.store import DurableLedger

__all__ = ["folder"]


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "l", tmp_path / "elsewhere" / "heads"


def charge(path: Path, anchor: Path | None, what: str) -> None:
    with DurableLedger.open(path, anchor=anchor) as ledger:
        if not ledger.runs:
            ledger.reserve(planned("one"))
        ledger.charge("one", gaussian(1e-4, what=what))


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_a_ledger_that_is_set_back_is_found(places: tuple[Path, Path], lines: int) -> None:
    path, anchor = places
    for number in range(4):
        charge(path, anchor, f"counts {number}")
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:-lines]))
    with DurableLedger.read(path) as ledger:
        assert ledger.num_lines == len(whole) - lines, "the file alone proves nothing"
    kept = anchor.read_bytes()
    for use in (DurableLedger.open, DurableLedger.read):
        with pytest.raises(LedgerError, match=rf"keeps, of line {len(whole)}: the ledger was set back"):
            use(path, anchor=anchor)
    # Another line in its place does not help.
    charge(path, None, "other")
    with pytest.raises(LedgerError, match="was set back"):
        DurableLedger.open(path, anchor=anchor)
    assert anchor.read_bytes() == kept
    path.write_bytes(b"".join(whole))
    charge(path, anchor, "more")


def test_an_open_ledger_that_is_exchanged_is_found(places: tuple[Path, Path]) -> None:
    """A process that has the older copy open does not enter anything in it."""
    path, anchor = places
    charge(path, anchor, "first")
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    with DurableLedger.open(copy, anchor=anchor) as older:
        charge(path, anchor, "second")
        with pytest.raises(LedgerError, match="was set back"):
            older.charge("one", gaussian(1e-4))


def test_a_head_that_was_not_kept_is_no_fault(places: tuple[Path, Path]) -> None:
    """A process that ended between the two files, or that did not use the anchor, leaves it behind the ledger."""
    path, anchor = places
    charge(path, anchor, "first")
    charge(path, None, "second")
    with DurableLedger.read(path, anchor=anchor) as ledger:
        assert ledger.num_lines == 4
    charge(path, anchor, "third")


def test_an_anchor_of_something_else_is_refused_and_left(places: tuple[Path, Path]) -> None:
    path, anchor = places
    charge(path, anchor, "first")
    other = path.with_name("other")
    charge(other, None, "first")
    for wrong, text in (
        (other, "found something else, expected a file of heads"),
        (path, "found the ledger itself, expected another file"),
    ):
        before = wrong.read_bytes()
        with pytest.raises(LedgerError, match=text):
            DurableLedger.open(path, anchor=wrong)
        assert wrong.read_bytes() == before
    note = path.with_name("note")
    note.write_text("do not touch")
    with pytest.raises(LedgerError, match="found something else, expected a file of heads"):
        DurableLedger.open(path, anchor=note)
    assert note.read_text() == "do not touch"
    with pytest.raises(LedgerError, match="found the heads of another ledger"):
        DurableLedger.open(other, anchor=anchor)
    path.unlink()
    with pytest.raises(LedgerError, match=r"there is no such ledger, but .*heads is there"):
        DurableLedger.open(path, anchor=anchor)
    assert not path.exists()
    with pytest.raises(LedgerError, match="there is no such file of heads"):
        DurableLedger.read(other, anchor=path)
    for bodies in ([{"kind": "heads", "ledger": 1}], [{"kind": "heads", "ledger": "a"}, {"kind": "head", "head": 1}]):
        note.write_bytes(chained(*bodies))
        with pytest.raises(LedgerError, match="found something else, expected a file of heads"):
            anchor_module.Anchor.open(note, "a")


def test_nothing_is_drawn_where_the_anchor_cannot_be_written(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, anchor = places
    charge(path, anchor, "first")
    with DurableLedger.open(path, anchor=anchor) as ledger:
        monkeypatch.setattr(ledger._anchor._chain, "_write", lambda data: (_ for _ in ()).throw(LedgerError("full")))  # type: ignore[union-attr]
        with pytest.raises(LedgerError, match="full"):
            ledger.charge("one", gaussian(1e-4))


def test_commands_keep_and_check_an_anchor(folder: Path, tmp_path: Path) -> None:
    anchor = str(tmp_path / "heads")
    made = kamino(*SYNTH, "--anchor", anchor)
    assert "heads: begun, to keep the heads of l.ledger from line 1 on" in made.replace("\n", "")
    older = Path("l.ledger").read_bytes()
    assert "begun" not in kamino(*SYNTH, "--anchor", anchor)
    assert "and the last head of" in kamino("ledger", "verify", "l.ledger", "--anchor", anchor)
    kamino("ledger", "policy", "l.ledger", "--dataset", "t.csv", "-e", "9", "--anchor", anchor)
    Path("l.ledger").write_bytes(older)
    said = kamino("ledger", "verify", "l.ledger", "--anchor", anchor)
    assert said.startswith("1 ")
    assert "set back to an older copy" in said.replace("\n", " ")
    assert kamino("ledger", "verify", "l.ledger").startswith("0 ")
    for command in (
        [*SYNTH, "--anchor", anchor],
        ["suggest", "t.csv", "-s", "schema.yaml", "--ledger", "l.ledger", "--anchor", anchor],
        ["ledger", "policy", "l.ledger", "--dataset", "t.csv", "-e", "9", "--anchor", anchor],
        ["ledger", "close", "l.ledger", "x", "--anchor", anchor],
    ):
        assert "set back to an older copy" in kamino(*command, error=LedgerError)
    assert Path("l.ledger").read_bytes() == older
    assert "--anchor without a ledger" in kamino(
        "synth", "t.csv", "-s", "schema.yaml", "-o", "o.csv", "--anchor", anchor, error=InputError
    )
    assert "is also an input" in kamino(*SYNTH, "--anchor", "o.csv", error=InputError)
