"""One run in a durable ledger: entered before it reads anything, charged before each draw, and able to go on.

    reserve  ->  charge 1, draw 1, store 1, enter it  ->  charge 2, ...  ->  close  ->  the table is written  ->  finish

The process may end anywhere. The ledger then holds what was charged and what was stored, the journal what was drawn;
whoever goes on repeats the run with both. Charges that are in the ledger are not made again, and releases that are
stored are not drawn again. Only under the last charge anything is drawn anew, and only what nobody has seen.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from kamino.advice import ledger_command
from kamino.errors import LedgerError
from kamino.privacy.durable.hash_chain import remove
from kamino.privacy.durable.journal import Journal, changed, journal_path, journals_of, set_back
from kamino.privacy.durable.ledger_lines import PlannedRun, StoredRelease
from kamino.privacy.durable.policing import RunState
from kamino.privacy.durable.store import DONE, GIVEN_UP, DurableLedger, charged_as
from kamino.privacy.gate import Gate
from kamino.privacy.ledger import Entry

Tell = Callable[[str], None]


class DurableRun:
    """A run that this process works on.

    Guarantees:
        Nothing is charged twice, nothing drawn without a charge, however often the process is killed.
        [test_random_kills_then_resume]
        A run that asks for something else than the one it goes on with is refused.
        [test_a_run_that_changed_does_not_go_on]
        A run that is done draws nothing, an open one nothing but under its last charge, whatever is put back.
        [test_stored_releases_that_are_put_back_show_nothing_new]
        A run that failed before its first charge leaves nothing set aside.  [test_a_run_that_charged_nothing_is_free]
    """

    def __init__(self, ledger: DurableLedger, state: RunState, journal: Journal) -> None:
        self.ledger = ledger
        self._run = state.planned.run
        self._journal = journal
        self._asked = 0
        self.num_stored = len(journal)

    @property
    def state(self) -> RunState:
        """What the ledger says of the run."""
        return self.ledger.runs[self._run]

    @property
    def draw_seed(self) -> int:
        """Of choices that cost no privacy, so that they are the same when the run goes on."""
        return self._journal.draw_seed

    def attach(self, gate: Gate) -> None:
        """Enter every charge of a gate in the ledger, and store each of its releases."""
        self._asked = 0
        gate.store(self, on_charge=self._charge)

    def _charge(self, entry: Entry) -> None:
        self._asked += 1
        charged = self.state.charged
        if self._asked > len(charged):
            self.ledger.charge(self._run, entry)
        elif charged[self._asked - 1] != charged_as(entry):
            raise LedgerError(changed(self._journal.path, f"charge {self._asked} ({entry.kind})"))

    def find(self, number: int, entry: Entry) -> tuple[bool, Any]:
        """Whether a release was stored under a number, and what it was.

        Raises:
            LedgerError: it was not, and may not be drawn, for it was drawn before.
        """
        is_stored, released = self._journal.find(number, entry)
        state = self.state
        if not is_stored and (not state.is_open or self._asked < len(state.charged)):
            raise LedgerError(
                set_back(self._journal.path, f"no release {number} ({entry.kind}), which was drawn before")
            )
        return is_stored, released

    def keep(self, number: int, entry: Entry, released: object) -> None:
        """Store a release, and let the ledger vouch for it; both are on the disk when this returns."""
        if not self.state.is_bound:
            self._journal.keep(number, entry, released, key=None)
            return
        key = secrets.token_hex(32)
        head = self._journal.keep(number, entry, released, key=key)
        self.ledger.enter_stored(StoredRelease(run=self._run, number=number, hash=head, key=key))

    def close(self) -> None:
        """Say that the run makes no more releases: what it did not spend is given back."""
        if self.state.is_open and self._asked < len(self.state.charged):
            raise LedgerError(changed(self._journal.path, f"charge {self._asked + 1}, which was not asked for,"))
        self.ledger.close_run(self._run, DONE)

    def finish(self) -> None:
        """Remove the stored releases: what they were for is written."""
        self._journal.discard()
        self.ledger.close_file()

    def leave(self) -> None:
        """End early: a run that charged nothing is taken back; any other one can go on later."""
        state = self.state
        if state.is_open and not state.charged:
            # The process may end because the disk is full: then the run stays entered, and can go on or be closed.
            with suppress(LedgerError):
                self.ledger.close_run(self._run, GIVEN_UP)
                remove(self._journal.path)
        self._journal.release()
        self.ledger.close_file()


def go_on(ledger: DurableLedger, plan: str, dataset: str) -> DurableRun | None:
    """The earliest unfinished run of the same plan that no process works on; None if there is none."""
    for run in unfinished(ledger, dataset):
        if run.planned.plan != plan:
            continue
        journal = Journal.reopen(journal_path(ledger.path, run.planned.run), run.planned.run)
        if journal is None:
            continue
        # The process that had the run may have ended it since the ledger was read.
        try:
            ledger.refresh()
            if journal.path.exists() and run.outcome != GIVEN_UP:
                journal.take(run)
                return DurableRun(ledger, run, journal)
        except BaseException:
            journal.release()
            raise
        journal.release()
    return None


def begin(ledger: DurableLedger, planned: PlannedRun) -> DurableRun:
    """Enter a new run, with all that it may spend.

    Raises:
        BudgetError: the policy of the dataset does not allow it. Nothing was entered.
    """
    planned = replace(planned, run=secrets.token_hex(6))
    remove_orphans(ledger)
    # The file and its lock come first: an entered run always has a process at work, or releases to go on from.
    journal = Journal.create(journal_path(ledger.path, planned.run), planned.run)
    try:
        state = ledger.reserve(planned)
    except BaseException:
        journal.discard()
        raise
    return DurableRun(ledger, state, journal)


def unfinished(ledger: DurableLedger, dataset: str) -> tuple[RunState, ...]:
    """Runs whose stored releases are there: they can go on, or a process is at work on them."""
    there = journals_of(ledger.path)
    return tuple(run for run in ledger.runs_of(dataset) if run.planned.run in there and run.outcome != GIVEN_UP)


def faults_of_stored(ledger: DurableLedger) -> list[str]:
    """What is wrong with the stored releases beside a ledger: one line for each run whose are not there, as they were.

    Guarantees:
        An older copy is found, and a process at work is no fault.  [test_verify_finds_an_older_copy]
    """
    faults = []
    for run, path in journals_of(ledger.path).items():
        state = ledger.runs.get(run)
        if state is not None and state.outcome != GIVEN_UP:
            try:
                Journal.check(path, state)
            except LedgerError as problem:
                # One that is not there any more belongs to a run that was just finished.
                faults += [str(problem)] if path.exists() else []
    return faults


def close_by_hand(ledger: DurableLedger, run: str) -> RunState:
    """Give up a run that nobody wants to go on with: what it was charged for stays, the rest is given back.

    Raises:
        LedgerError: there is no such run, or a process is at work on it.
    """
    state = ledger.runs.get(run)
    if state is None:
        raise LedgerError(
            f"{ledger.path}: found no run {run}; expected one of those that `{ledger_command('show')}` lists"
        )
    path = journal_path(ledger.path, run)
    journal = Journal.reopen(path, run) if path.exists() else None
    if journal is None and path.exists():
        raise LedgerError(f"{ledger.path}: a process is at work on run {run}; end it first")
    ledger.close_run(run, GIVEN_UP)
    if journal is not None:
        journal.discard()
    return state


def remove_orphans(ledger: DurableLedger) -> None:
    """Remove files of stored releases that can be of no use: their run was never entered, or was given up."""
    ledger.refresh()
    for run, path in tuple(_useless(ledger)):

        def is_useless(run: str = run) -> bool:
            ledger.refresh()
            return run in dict(_useless(ledger))

        Journal.remove_if_unused(path, run, is_useless=is_useless)


def _useless(ledger: DurableLedger) -> Iterable[tuple[str, Path]]:
    for run, path in journals_of(ledger.path).items():
        known = ledger.runs.get(run)
        if known is None or known.outcome == GIVEN_UP:
            yield run, path
