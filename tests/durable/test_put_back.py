"""Stored releases that are put back show nothing new: one charge, one draw that anybody sees."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.durable.planning import BUDGET, planned
from tests.durable.set_back import ATTACKS, STOPS, StoppedError
from tests.durable.test_chain import chained
from tests.trying import examples
from typer.testing import CliRunner

from kamino.cli.app import app
from kamino.errors import LedgerError
from kamino.privacy import Gate
from kamino.privacy.durable.durable_run import DurableRun, begin, close_by_hand, go_on
from kamino.privacy.durable.journal import Journal, journals_of
from kamino.privacy.durable.ledger_lines import StoredRelease, format_body, header_body
from kamino.privacy.durable.store import DONE, DurableLedger

NUM_RELEASES = 4
FORMAT_1 = Path(__file__).parent / "format_1"


@pytest.mark.parametrize("attack", ATTACKS)
def test_stored_releases_that_are_put_back_show_nothing_new(tmp_path: Path, attack: str) -> None:
    outcome = ATTACKS[attack](tmp_path)
    assert outcome.tried > 0
    assert (outcome.drawn_anew, outcome.most_draws) == (0, 1), outcome
    assert outcome.charges[0] == outcome.charges[1]
    assert outcome.head_is_same
    assert attack.startswith("a finished") or outcome.charges[0] <= STOPS, "the run is not unfinished"
    assert not outcome.refused or "an older copy was put back" in outcome.refused


class Onlooker:
    """Runs that are ended anywhere, and all draws that somebody could see who reads both files at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.draws: dict[tuple[str, int], set[int]] = defaultdict(set)
        self.copies: list[bytes] = []

    def work(self, monkeypatch: pytest.MonkeyPatch, release: int, point: str) -> None:
        """Go on with the run, or begin it, and be ended at a point of one of its releases."""
        ledger = DurableLedger.open(self.path)
        run: DurableRun | None = None
        with monkeypatch.context() as patched, suppress(StoppedError, LedgerError):
            run = go_on(ledger, "p", "d") or begin(ledger, planned("new"))
            gate = Gate(BUDGET)
            run.attach(gate)
            for number in range(1, NUM_RELEASES + 1):
                if number == release:
                    _end_at(patched, point)
                self._see(run, number, gate.release_row_count(1_000, noise_multiplier=20.0 + number))
            run.close()
        if run is not None:
            run._journal.release()
        ledger.close_file()
        self.look()

    def look(self) -> None:
        """Open what can be opened with the keys that the ledger has."""
        with DurableLedger.read(self.path) as ledger:
            for run, path in journals_of(self.path).items():
                content = path.read_bytes()
                self.copies.append(content)
                if run not in ledger.runs:
                    continue
                keys = {each.hash: each.key for each in ledger.runs[run].stored}
                for line in content.splitlines()[1:]:
                    body = json.loads(line[65:])
                    key = keys.get(line[:64].decode())
                    if body["kind"] == "sealed" and key is None:
                        continue
                    found = _released(self.path, run, line, key)
                    self.draws[run, body["number"]].add(found)

    def put_back(self, copy: int) -> None:
        for path in journals_of(self.path).values():
            path.write_bytes(self.copies[copy % len(self.copies)])

    def cut(self, lines: int) -> None:
        for path in journals_of(self.path).values():
            whole = path.read_bytes().splitlines(keepends=True)
            path.write_bytes(b"".join(whole[: max(1, len(whole) - lines)]))

    def _see(self, run: DurableRun, number: int, released: int) -> None:
        self.draws[run.state.planned.run, number].add(released)


def _released(ledger: Path, run: str, line: bytes, key: str | None) -> int:
    """The number in one line of stored releases."""
    from kamino.privacy.durable import journal

    body = json.loads(line[65:])
    found = journal._decode(body if key is None else journal._opened(body, key, ledger), ledger)
    return int(found[0])  # type: ignore[index]


def _end_at(patched: pytest.MonkeyPatch, point: str) -> None:
    """End the run before or after the next call of something."""
    when, name = point.split()
    owner: Any = Journal if name == "keep" else DurableLedger
    real: Callable[..., Any] = getattr(owner, name)

    def ended(*given: Any, **options: Any) -> None:
        if when == "after":
            real(*given, **options)
        raise StoppedError

    patched.setattr(owner, name, ended)


POINTS = [f"{when} {name}" for name in ("charge", "keep", "enter_stored") for when in ("before", "after")]
ACTS = st.one_of(
    st.tuples(st.just("work"), st.integers(1, NUM_RELEASES + 1), st.sampled_from(POINTS)),
    st.tuples(st.just("put back"), st.integers(0, 30)),
    st.tuples(st.just("cut"), st.integers(1, 3)),
)


@examples(40)
@given(acts=st.lists(ACTS, min_size=2, max_size=9))
def test_one_charge_shows_one_draw(tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[Any, ...]]) -> None:
    """However a run is ended and whatever copy is put back: noise is of the system, and no number is seen twice."""
    onlooker = Onlooker(tmp_path_factory.mktemp("put") / "l")
    DurableLedger.open(onlooker.path).close_file()
    with pytest.MonkeyPatch.context() as monkeypatch:
        for act in acts:
            match act:
                case ("work", release, point):
                    onlooker.work(monkeypatch, release, point)
                case ("put back", copy) if onlooker.copies:
                    onlooker.put_back(copy)
                case ("cut", lines):
                    onlooker.cut(lines)
    assert all(len(found) == 1 for found in onlooker.draws.values()), onlooker.draws
    with DurableLedger.read(onlooker.path) as ledger:
        for run, state in ledger.runs.items():
            assert len([number for name, number in onlooker.draws if name == run]) <= len(state.charged)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A ledger of format 1: a policy, a run that is done, and one of 4 charges, of which 3 releases are stored."""
    for each in FORMAT_1.iterdir():
        shutil.copy(each, tmp_path)
    return tmp_path / "people.ledger"


def _ask(run: DurableRun, count: int) -> list[int]:
    gate = Gate(BUDGET)
    run.attach(gate)
    return [gate.release_row_count(1_000, noise_multiplier=20.0) for _ in range(count)]


def test_a_ledger_of_format_1_is_read_and_goes_on(old: Path) -> None:
    before = old.read_bytes()
    with DurableLedger.read(old) as ledger:
        assert [(len(run.charged), run.outcome, run.is_bound) for run in ledger.runs.values()] == [
            (2, DONE, False),
            (4, None, False),
        ]
    run = go_on(DurableLedger.open(old), "p", "d")
    assert run is not None
    assert _ask(run, 5)[:3] == [218, 198, 192]
    run.close()
    run.finish()
    assert old.read_bytes().startswith(before)
    new = begin(DurableLedger.open(old), planned("new"))
    _ask(new, 2)
    new.leave()
    with DurableLedger.read(old) as ledger:
        assert [(len(each.charged), each.is_bound, len(each.stored)) for each in ledger.runs.values()] == [
            (2, False, 0),
            (5, False, 0),
            (2, True, 2),
        ]
    again = go_on(DurableLedger.open(old), "p", "d")
    assert again is not None
    assert again.num_stored == 2
    again.leave()


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_a_run_of_format_1_draws_under_its_last_charge_only(old: Path, lines: int) -> None:
    """Its ledger does not vouch for what is stored, but says how often it was charged."""
    (stored,) = journals_of(old).values()
    whole = stored.read_bytes().splitlines(keepends=True)
    stored.write_bytes(b"".join(whole[:-lines]))
    run = go_on(DurableLedger.open(old), "p", "d")
    assert run is not None
    with pytest.raises(LedgerError, match=r"found no release \d \(counts\), which was drawn before: an older copy"):
        _ask(run, 4)
    run.leave()
    with DurableLedger.open(old) as ledger:
        close_by_hand(ledger, run.state.planned.run)
    assert journals_of(old) == {}


def test_a_run_that_is_done_draws_nothing(tmp_path: Path) -> None:
    """Not even where its plan asks for another release than before."""
    path = tmp_path / "l"
    run = begin(DurableLedger.open(path), planned("new"))
    released = _ask(run, 2)
    run.close()
    run.leave()
    again = go_on(DurableLedger.open(path), "p", "d")
    assert again is not None
    assert _ask(again, 2) == released
    with pytest.raises(LedgerError, match=r"was closed \(done\)"):
        _ask(again, 3)
    again.leave()


def test_verify_finds_an_older_copy(tmp_path: Path) -> None:
    path = tmp_path / "l"
    run = begin(DurableLedger.open(path), planned("new"))
    (stored,) = journals_of(path).values()
    begun = stored.read_bytes()
    _ask(run, 2)
    whole = stored.read_bytes()
    verify = ["ledger", "verify", str(path)]
    for content, is_right in ((whole, True), (whole + b"half", True), (begun, False), (b"do not touch", False)):
        stored.write_bytes(content)
        result = CliRunner().invoke(app, verify)
        assert result.exit_code == (0 if is_right else 1), result.output
        said = " ".join(result.output.split())
        assert is_right or "an older copy was put back" in said or "found something else" in said
    run.leave()


def test_stored_lines_out_of_order_are_refused(tmp_path: Path) -> None:
    line = StoredRelease(run="one", number=1, hash="0" * 64, key="1" * 64).to_body()
    run = planned("one").to_body()
    old = {**header_body("i", "0"), "format": 1}
    wrong: dict[str, list[dict[str, Any]]] = {
        "in format 1": [old, run, line],
        "of an unknown run": [header_body("i", "0"), line],
        "twice": [header_body("i", "0"), run, line, line],
        "after the end": [header_body("i", "0"), run, {"kind": "close", "run": "one", "outcome": "done"}, line],
        "a short key": [header_body("i", "0"), run, {**line, "key": "1" * 62}],
        "a key of other letters": [header_body("i", "0"), run, {**line, "key": "g" * 64}],
        "an unknown format": [header_body("i", "0"), {"kind": "format", "format": 3}],
        "a format that is true": [header_body("i", "0"), {"kind": "format", "format": True}],
    }
    for bodies in wrong.values():
        (tmp_path / "l").write_bytes(chained(*bodies))
        with pytest.raises(LedgerError, match=r"line [234]: found"):
            DurableLedger.read(tmp_path / "l")
    (tmp_path / "l").write_bytes(chained(old, run, format_body(), planned("two").to_body(), {**line, "run": "two"}))
    with DurableLedger.read(tmp_path / "l") as ledger:
        assert [state.is_bound for state in ledger.runs.values()] == [False, True]
