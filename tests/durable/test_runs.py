"""Runs in a durable ledger: entered before anything is read, charged before each draw, gone on with, refused."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.cli.test_replay_of_commands import RULES, SCHEMA, private_table
from tests.durable.planning import planned, releases_in
from tests.privacy.test_samples import BUDGET as SAMPLE_BUDGET
from tests.privacy.test_samples import PLAN, ones
from tests.privacy.test_samples import rows as sample_rows

import kamino.io
from kamino.errors import BudgetError, ConstraintErrors, InputError, LedgerError
from kamino.io import write_table
from kamino.pipeline import Synthesizer
from kamino.pipeline.ledgering import LedgerUse, dataset_name
from kamino.privacy import Budget, Gate, SecureNoise, SeededNoise
from kamino.privacy.durable.durable_run import begin, close_by_hand, go_on, unfinished
from kamino.privacy.durable.hash_chain import Chain
from kamino.privacy.durable.journal import JOURNAL_LIMITS, Journal, _opened, journals_of
from kamino.privacy.durable.ledger_lines import Policy
from kamino.privacy.durable.store import DurableLedger
from kamino.privacy.ledger import Entry
from kamino.privacy.tape import StoredTape
from kamino.schema import Schema

TABLE = private_table(150)
KNOWN = Schema.from_yaml(SCHEMA)


class Stopped(BaseException):
    """In the place of a kill."""


def synthesizer(path: Path, *, rules: str = RULES, resume: bool | None = None, **settings: Any) -> Synthesizer:
    told: list[str] = []
    use = LedgerUse(path=path, dataset="people", resume=resume, tell=told.append)
    made = Synthesizer(settings.pop("schema", KNOWN), rules, ledger=use, **settings)
    made.told = told  # type: ignore[attr-defined]
    return made


def stop_at(monkeypatch: pytest.MonkeyPatch, at: int | str) -> None:
    """End the run when it asks for a release of a number, or of a kind."""
    play = StoredTape.play

    def stopping(self: StoredTape, entry: Entry, *given: Any) -> Any:
        if at in (self._number + 1, entry.kind):
            raise Stopped
        return play(self, entry, *given)

    monkeypatch.setattr(StoredTape, "play", stopping)


def stopped(monkeypatch: pytest.MonkeyPatch, made: Synthesizer, at: int | str, table: Any = TABLE) -> None:
    with monkeypatch.context() as patched:
        stop_at(patched, at)
        with pytest.raises(Stopped):
            made.fit(table)


def runs_in(path: Path) -> list[tuple[int, str | None]]:
    with DurableLedger.read(path) as ledger:
        return [(len(run.charged), run.outcome) for run in ledger.runs.values()]


def test_a_charge_is_on_the_disk_before_the_draw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen, draw = tmp_path / "l", [], SecureNoise.discrete_gaussian

    def look(self: SecureNoise, sigma: float, shape: tuple[int, ...]) -> Any:
        seen.append(runs_in(path)[0][0])
        return draw(self, sigma, shape)

    monkeypatch.setattr(SecureNoise, "discrete_gaussian", look)
    synthesizer(path).fit(TABLE)
    assert seen == list(range(1, len(seen) + 1))
    assert runs_in(path) == [(len(seen), "done")]


def test_a_release_is_on_the_disk_before_it_is_handed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, play, seen = tmp_path / "l", StoredTape.play, []

    def look(self: StoredTape, *given: Any) -> Any:
        released = play(self, *given)
        (stored,) = journals_of(path).values()
        seen.append(releases_in(stored))
        return released

    monkeypatch.setattr(StoredTape, "play", look)
    synthesizer(path).fit(TABLE)
    assert seen == list(range(1, len(seen) + 1))
    assert journals_of(path) == {}


@pytest.mark.parametrize("number", [1, 4])
def test_a_run_with_noise_of_the_system_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """What was drawn before is kept, what follows is new, and a third run with the same draws ends the same."""
    path = tmp_path / "l"
    stopped(monkeypatch, synthesizer(path), number)
    assert runs_in(path) == [(number, None)]
    (stored,) = journals_of(path).values()
    before = stored.read_bytes()
    second = synthesizer(path)
    second.fit(TABLE, keep_releases=True)
    assert f"{number - 1} release" in second.told[0]  # type: ignore[attr-defined]
    assert stored.read_bytes().startswith(before)
    second.leave()
    paid = runs_in(path)
    assert paid == [(len(second.ledger["entries"]), "done")]
    rows = second.sample(30)
    assert rows != second.sample(30)
    third = synthesizer(path)
    third.fit(TABLE, keep_releases=True)
    assert third.sample(30) == rows
    assert third.ledger == second.ledger
    third.finish()
    assert runs_in(path) == paid
    assert journals_of(path) == {}


def test_another_table_pays_nothing_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored was of the first table and is charged; what follows is of the second, and is charged too."""
    path = tmp_path / "l"
    stopped(monkeypatch, synthesizer(path), 5)
    made = synthesizer(path).fit(TABLE.slice(0, 70))
    assert runs_in(path) == [(len(made.ledger["entries"]), "done")]


def test_a_run_that_changed_does_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l"
    stopped(monkeypatch, synthesizer(path), 4)
    for changes in (
        {"rules": "city -> zone"},
        {"epsilon": 0.5},
        {"sweeps": 2},
        {"schema": KNOWN.with_domain("age", max=80)},
    ):
        with pytest.raises(LedgerError, match="expected one with the same settings, schema, rules, version"):
            synthesizer(path, resume=True, **changes).fit(TABLE)  # type: ignore[arg-type]
    assert runs_in(path) == [(4, None)]
    monkeypatch.setattr(kamino, "__version__", "9.9")
    with pytest.raises(LedgerError, match="version"):
        synthesizer(path, resume=True).fit(TABLE)
    monkeypatch.undo()
    other = synthesizer(path, rules="city -> zone").fit(TABLE)
    assert "have other settings" in other.told[0]  # type: ignore[attr-defined]
    assert runs_in(path) == [(4, None), (len(other.ledger["entries"]), "done")]


def test_a_run_whose_columns_changed_does_not_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, data = tmp_path / "l", tmp_path / "people.csv"
    write_table(TABLE, data)
    stopped(monkeypatch, synthesizer(path, schema=None, rules="", anyway=True), 4, data)
    write_table(TABLE.drop_columns(["zone"]), data)
    with pytest.raises(LedgerError, match=r"charge 3 \(counts\) is another one than was stored.*resume=False"):
        synthesizer(path, schema=None, rules="", anyway=True).fit(data)
    assert runs_in(path) == [(5, None)]
    synthesizer(path, schema=None, rules="", anyway=True, resume=False).fit(data)
    assert [outcome for _, outcome in runs_in(path)] == [None, "done"]


def test_a_run_that_charged_nothing_is_free(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with DurableLedger.open(path) as ledger:
        ledger.set_policy(Policy(dataset="people", budget=Budget(epsilon=1.0, delta=1e-6)))
    with pytest.raises((InputError, LedgerError)):
        synthesizer(path).fit(tmp_path / "nothing.csv")
    with pytest.raises(ConstraintErrors):
        synthesizer(path, rules="check (ctiy > 5)").fit(TABLE)
    assert [outcome for _, outcome in runs_in(path)] == ["given up", "given up"]
    assert journals_of(path) == {}
    synthesizer(path).fit(TABLE)


def test_a_run_over_the_policy_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l"
    with DurableLedger.open(path) as ledger:
        ledger.set_policy(Policy(dataset="people", budget=Budget(epsilon=0.9, delta=1e-6)))
    before = path.read_bytes()
    monkeypatch.setattr(kamino.io, "read_table", lambda *_, **__: pytest.fail("the table was read"))
    with pytest.raises(BudgetError, match=r"allows epsilon=0\.9 at delta=1e-06.*Nothing was read or released"):
        synthesizer(path).fit(TABLE)
    assert path.read_bytes() == before
    assert journals_of(path) == {}


def test_an_unfinished_run_holds_its_budget_until_it_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l"
    with DurableLedger.open(path) as ledger:
        ledger.set_policy(Policy(dataset="people", budget=Budget(epsilon=1.0, delta=1e-6)))
    stopped(monkeypatch, synthesizer(path), 3)
    with pytest.raises(BudgetError, match="Unfinished runs hold a part"):
        synthesizer(path, resume=False).fit(TABLE)
    with DurableLedger.open(path) as ledger:
        (run,) = unfinished(ledger, "people")
        close_by_hand(ledger, run.planned.run)
        with pytest.raises(LedgerError, match="found no run x"):
            close_by_hand(ledger, "x")
    assert journals_of(path) == {}
    synthesizer(path, epsilon=0.5).fit(TABLE)
    assert [outcome for _, outcome in runs_in(path)] == ["given up", "done"]


def test_a_run_at_work_is_neither_gone_on_with_nor_closed(tmp_path: Path) -> None:
    path = tmp_path / "l"
    working = synthesizer(path)
    working.fit(TABLE, keep_releases=True)
    with DurableLedger.open(path) as ledger:
        (run,) = ledger.runs
        with pytest.raises(LedgerError, match="a process is at work on run"):
            close_by_hand(ledger, run)
    with pytest.raises(LedgerError, match="a process is at work on it"):
        synthesizer(path, resume=True).fit(TABLE)
    synthesizer(path).fit(TABLE)
    working.finish()
    assert [outcome for _, outcome in runs_in(path)] == ["done", "done"]


@pytest.fixture
def coins(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All the random bytes that runs ask for."""
    draw, made = SecureNoise.coins, []

    def spy(self: SecureNoise) -> bytes:
        made.append(draw(self))
        return made[-1]

    monkeypatch.setattr(SecureNoise, "coins", spy)
    return made


def unsealed(path: Path) -> bytes:
    """All that the keys in a ledger open of its stored releases."""
    found = b""
    with DurableLedger.read(path) as ledger:
        for run, stored in journals_of(path).items():
            chain = Chain.open(stored, JOURNAL_LIMITS, read_only=True)
            keys = {each.hash: each.key for each in ledger.runs[run].stored}
            opened = [_opened(line.body, keys[line.head], path) for line in chain.read_on() if line.head in keys]
            found += "".join(map(str, opened)).encode()
            chain.close()
    return found


def test_no_secret_bytes_are_stored(tmp_path: Path, coins: list[bytes]) -> None:
    """The bytes that a sample and its noise are made from are secret. A stored sample needs none."""
    path = tmp_path / "l"
    run = begin(DurableLedger.open(path), planned("new", budget=SAMPLE_BUDGET, sampled=True))
    gate = Gate(SAMPLE_BUDGET)
    run.attach(gate)
    released = gate.release_sample(sample_rows(), ones, PLAN)
    (stored,) = journals_of(path).values()
    everything = unsealed(path) + stored.read_bytes() + path.read_bytes()
    assert len(coins) == 1
    assert base64.b64encode(np.ascontiguousarray(released).tobytes()) in everything
    assert base64.b64encode(coins[0]) not in everything
    assert coins[0].hex().encode() not in everything
    run.leave()
    with_it = go_on(DurableLedger.open(path), "p", "d")
    assert with_it is not None
    again = Gate(SAMPLE_BUDGET)
    with_it.attach(again)
    assert np.array_equal(again.release_sample(sample_rows(), lambda _: pytest.fail("measured again"), PLAN), released)
    assert runs_in(path) == [(1, None)]
    with_it.finish()


def test_a_draw_that_was_not_stored_is_drawn_anew_under_its_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coins: list[bytes]
) -> None:
    """With other coins, and so with other noise."""
    path = tmp_path / "l"
    run = begin(DurableLedger.open(path), planned("new", budget=SAMPLE_BUDGET, sampled=True))
    gate = Gate(SAMPLE_BUDGET)
    run.attach(gate)
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "keep", lambda *_, **__: (_ for _ in ()).throw(Stopped))
        with pytest.raises(Stopped):
            gate.release_sample(sample_rows(), ones, PLAN)
    run.leave()
    assert runs_in(path) == [(1, None)]
    with_it = go_on(DurableLedger.open(path), "p", "d")
    assert with_it is not None
    again = Gate(SAMPLE_BUDGET)
    with_it.attach(again)
    again.release_sample(sample_rows(), ones, PLAN)
    assert runs_in(path) == [(1, None)]
    assert len(set(coins)) == 2
    with_it.close()
    with_it.finish()


def test_a_run_that_goes_on_keeps_the_same_rows_of_a_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coins: list[bytes]
) -> None:
    path = tmp_path / "l"
    owned = TABLE.append_column("who", pa.array([f"p{place // 4}" for place in range(TABLE.num_rows)]))
    schema = Schema.from_yaml(f"unit: who\nmax_rows: 3\n{SCHEMA}  who: {{type: key}}\n")
    stopped(monkeypatch, synthesizer(path, schema=schema, rules="city -> zone"), 4, owned)
    again = synthesizer(path, schema=schema, rules="city -> zone")
    again.fit(owned)
    assert len(coins) == 1
    assert "going on" in again.told[0]  # type: ignore[attr-defined]


def test_what_has_no_price_or_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="found epsilon inf with a ledger"):
        synthesizer(tmp_path / "l", epsilon=float("inf")).fit(TABLE)
    with pytest.raises(InputError, match="found jobs or a cluster with a ledger"):
        synthesizer(tmp_path / "l", jobs=2).fit(TABLE)
    with pytest.raises(InputError, match="no name for the dataset"):
        Synthesizer(KNOWN, ledger=tmp_path / "l").fit(TABLE)
    with pytest.raises(InputError, match="and no ledger"):
        Synthesizer(KNOWN, dataset="people")
    assert not (tmp_path / "l").exists()


def test_the_name_of_a_dataset_is_public() -> None:
    use = LedgerUse(path=Path("l"))
    assert dataset_name(use, "folder/people.csv") == dataset_name(use, Path("people.csv")) == "people.csv"
    assert dataset_name(use, "postgresql://me:secret@host/db") == "postgresql://***@host/db"
    assert dataset_name(LedgerUse(path=Path("l"), dataset="census"), TABLE) == "census"
    with pytest.raises(InputError, match="all printable"):
        dataset_name(LedgerUse(path=Path("l"), dataset="a\nb"), TABLE)


def test_a_name_that_cannot_be_shown_is_not_entered(tmp_path: Path) -> None:
    """A line that no reader takes would make the whole ledger useless."""
    path = tmp_path / "l"
    with DurableLedger.open(path) as ledger:
        before = path.read_bytes()
        for changes in ({"dataset": "a\x1b"}, {"unit": "a\nb"}, {"plan": ""}):
            with pytest.raises(LedgerError, match="all of them printable"):
                ledger.reserve(planned("one", **changes))
    assert path.read_bytes() == before


def test_a_descent_is_stored_as_its_end(tmp_path: Path) -> None:
    """Its steps run in one go, as without a ledger; whoever goes on has the trained state."""
    pytest.importorskip("jax")
    from tests.privacy.test_sampled_release import BUDGET, PLAN, Line, make_rows

    path = tmp_path / "l"
    run = begin(DurableLedger.open(path), planned("new", budget=BUDGET, sampled=True))
    gate, plain = Gate(BUDGET, noise=SeededNoise(4)), Gate(BUDGET, noise=SeededNoise(4))
    run.attach(gate)
    plain.noise.begin(1)  # type: ignore[attr-defined]
    state = np.asarray(gate.release_descent(make_rows(), Line(), PLAN))
    assert np.array_equal(state, np.asarray(plain.release_descent(make_rows(), Line(), PLAN)))
    run.leave()
    with_it = go_on(DurableLedger.open(path), "p", "d")
    assert with_it is not None
    again = Gate(BUDGET)
    with_it.attach(again)
    assert np.array_equal(np.asarray(again.release_descent(make_rows(0), Line(), PLAN)), state)
    assert runs_in(path) == [(1, None)]
    with_it.finish()
