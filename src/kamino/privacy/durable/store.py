"""The durable ledger: all releases about datasets, over runs, users and processes, in one file.

A run is entered before it reads anything, with all that it may spend. Each release is then charged before it is drawn:
its line is on the disk first. What a run did not spend is given back when it is closed, as far as its policy's filter
allows (see `kamino.privacy.durable.policing`).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from kamino.errors import BudgetError, LedgerError
from kamino.limits import MAX_LEDGER_BYTES, MAX_LEDGER_LINE_BYTES, MAX_LEDGER_LINES
from kamino.privacy.accounting.accountant import Tally, epsilon_of
from kamino.privacy.accounting.budget import Neighbours
from kamino.privacy.accounting.events import GaussianEvent
from kamino.privacy.durable.anchor import Anchor
from kamino.privacy.durable.hash_chain import Chain, Limits, Line
from kamino.privacy.durable.ledger_lines import (
    FORMAT,
    PlannedRun,
    Policy,
    StoredRelease,
    charge_body,
    close_body,
    entry_body,
    entry_hash,
    format_body,
    header_body,
    read_charge,
    read_close,
    read_format,
    read_header,
    read_policy,
    read_run,
    read_stored,
)
from kamino.privacy.durable.policing import (
    FINDING_PART,
    ROUNDING,
    RunState,
    decide,
    reserved_gaussian,
    tallies_after,
)
from kamino.privacy.ledger import Entry

LEDGER_LIMITS = Limits(
    what="a ledger", file_bytes=MAX_LEDGER_BYTES, lines=MAX_LEDGER_LINES, line_bytes=MAX_LEDGER_LINE_BYTES
)
DONE, GIVEN_UP = "done", "given up"


class DurableLedger:
    """An open ledger file. Every change is made under the file's lock, on all that other processes wrote before.

    Guarantees:
        The policy of a dataset holds, whichever processes ask.  [test_eight_processes_keep_the_policy_exactly]
        Nothing is drawn that is not charged on the disk.  [test_a_charge_is_on_the_disk_before_the_draw]
        A run is refused before its table is read.  [test_a_run_over_the_policy_reads_nothing]
        The bytes do not depend on the table, given the releases.  [test_replay_passes_with_a_ledger]
    """

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self.runs: dict[str, RunState] = {}
        self.policies: dict[str, Policy] = {}
        self.heads: set[str] = set()
        """The hash of each line."""
        self._identity = ""
        self._format = FORMAT
        self._anchor: Anchor | None = None

    @classmethod
    def open(cls, path: str | Path, *, version: str = "", anchor: Path | None = None) -> DurableLedger:
        """Open a ledger to enter runs; one that is not there is begun. With an anchor, its heads are kept there, too.

        Raises:
            LedgerError: the file cannot be written, is no ledger, or was changed, or set back behind the anchor.

        Guarantees:
            What is no ledger is never written to.  [test_files_of_other_kinds_are_never_changed]
        """
        place = Path(path)
        if not place.exists():
            if anchor is not None and anchor.exists():
                raise LedgerError(
                    f"{place}: there is no such ledger, but {anchor} is there; expected the ledger whose heads it "
                    "keeps, or both new. Put the ledger back"
                )
            with suppress(FileExistsError):
                Chain.create(place, LEDGER_LIMITS, header_body(secrets.token_hex(8), version)).close()
        return cls._opened(Chain.open(place, LEDGER_LIMITS), anchor)

    @classmethod
    def read(cls, path: str | Path, *, anchor: Path | None = None) -> DurableLedger:
        """Open a ledger to look at it, checking every line, and that it has the last head of an anchor."""
        return cls._opened(Chain.open(Path(path), LEDGER_LIMITS, read_only=True), anchor, read_only=True)

    @classmethod
    def _opened(cls, chain: Chain, anchor: Path | None, *, read_only: bool = False) -> DurableLedger:
        ledger = cls(chain)
        try:
            if anchor is not None and anchor.exists() and anchor.samefile(chain.path):
                raise LedgerError(f"{anchor}: found the ledger itself, expected another file, best on another disk")
            with ledger._current(shared=read_only):
                if not chain.num_lines:
                    raise LedgerError(
                        f"{chain.path}: found an empty file, expected a ledger or a new name. The file was not changed"
                    )
                if anchor is not None:
                    ledger._anchor = Anchor.open(anchor, ledger._identity, create=not read_only)
                    ledger._confirm()
        except BaseException:
            ledger.close_file()
            raise
        return ledger

    def close_file(self) -> None:
        """Close the file."""
        self._chain.close()
        if self._anchor is not None:
            self._anchor.close_file()

    def __enter__(self) -> DurableLedger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_file()

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._chain.path

    @property
    def head(self) -> str:
        """The hash of the last line, which vouches for all."""
        return self._chain.head

    @property
    def num_lines(self) -> int:
        """How many lines there are."""
        return self._chain.num_lines

    @property
    def half_line(self) -> int:
        """How many bytes a process that died left behind the last line; they count for nothing."""
        return self._chain.half_line

    def set_policy(self, policy: Policy) -> Policy:
        """Enter a policy for a dataset, in the place of an earlier one; returns it as it was entered.

        Where releases were made already, the part of delta for finding categories is not left open.
        """
        with self._current():
            if policy.finding_delta is None and self.runs_of(policy.dataset):
                policy = replace(policy, finding_delta=FINDING_PART * policy.budget.delta)
            self._append(policy.to_body())
        return policy

    def reserve(self, planned: PlannedRun) -> RunState:
        """Enter a run with all that it may spend, or raise and enter nothing.

        Raises:
            BudgetError: the policy of the dataset does not allow it.
        """
        with self._current():
            policy = self.policies.get(planned.dataset)
            bodies = [planned.to_body()]
            if policy is not None:
                decided = decide(policy, self.runs.values(), planned)
                bodies = [*([decided.to_body()] if decided != policy else []), *bodies]
            if self._format != FORMAT:
                bodies = [format_body(), *bodies]
            self._append(*bodies)
            return self.runs[planned.run]

    def charge(self, run: str, entry: Entry) -> None:
        """Enter one release of an open run, within what was set aside for it; on the disk when it returns."""
        with self._current():
            state = self._open_run(run)
            body = charge_body(run, len(state.charged) + 1, entry)
            fault = _over(state, entry)
            if fault:
                raise BudgetError(
                    f"releasing {entry.what!r} would go over {fault} that the ledger holds for run {run}. "
                    "Nothing was drawn."
                )
            self._append(body)

    def enter_stored(self, release: StoredRelease) -> None:
        """Enter that a release is stored, with its key: on the disk when it returns, and only then anybody may see it.

        Guarantees:
            One charge shows one draw, whichever copy of the stored releases is put back.
            [test_stored_releases_that_are_put_back_show_nothing_new]
        """
        with self._current():
            self._open_run(release.run)
            self._append(release.to_body())

    def close_run(self, run: str, outcome: str) -> None:
        """Enter that a run makes no more releases, and so give back what it did not spend; nothing if it was before."""
        with self._current():
            if self.runs[run].is_open:
                self._append(close_body(run, outcome))

    def refresh(self) -> None:
        """Read what other processes have entered."""
        with self._current(shared=True):
            pass

    def runs_of(self, dataset: str) -> tuple[RunState, ...]:
        """The runs about a dataset, in the order they were entered."""
        return tuple(run for run in self.runs.values() if run.planned.dataset == dataset)

    def price(self, dataset: str, *, delta: float, neighbours: Neighbours) -> float:
        """The epsilon at a delta of all that was released about a dataset, by the accountant on all events together.

        This is the price of these releases if their list had been fixed beforehand. Where later ones were chosen by
        earlier ones, what holds is the bound of the policy.
        """
        return epsilon_of(self.total(dataset, neighbours), delta=delta, neighbours=neighbours)

    def total(self, dataset: str, neighbours: Neighbours) -> Tally:
        """All events about a dataset, added up."""
        total = Tally()
        for run in self.runs_of(dataset):
            spent = run.tallies[neighbours]
            total = replace(total, gaussian=total.gaussian + spent.gaussian, delta=total.delta + spent.delta)
            for event, count in spent.sampled:
                total = total.plus(event, count, neighbours)
        return total

    def _open_run(self, run: str) -> RunState:
        state = self.runs[run]
        if not state.is_open:
            raise LedgerError(
                f"{self.path}: run {run} was closed ({state.outcome}), so that it may release nothing more; start anew"
            )
        return state

    @contextmanager
    def _current(self, *, shared: bool = False) -> Iterator[None]:
        """Hold the lock, with all lines read."""
        with self._chain.locked(shared=shared):
            for line in self._chain.read_on():
                self._take(line)
            self._confirm()
            yield

    def _confirm(self) -> None:
        """Refuse a ledger that was set back behind its anchor."""
        if self._anchor is not None:
            self._anchor.confirm(self.path, self.heads)

    def _append(self, *bodies: dict[str, object]) -> None:
        for line in self._chain.append(*bodies):
            self._take(line)
        if self._anchor is not None:
            self._anchor.keep(self.head, self.num_lines)

    def _take(self, line: Line) -> None:
        """Let a line count."""
        self.heads.add(line.head)
        try:
            match "ledger" if line.number == 1 else line.body.get("kind"):
                case "ledger" if line.number == 1:
                    self._identity, self._format = read_header(line.body)
                case "policy":
                    policy = read_policy(line.body)
                    self.policies[policy.dataset] = policy
                case "run":
                    self._take_run(read_run(line.body))
                case "charge":
                    self._take_charge(line)
                case "stored":
                    self._take_stored(read_stored(line.body))
                case "format":
                    self._format = read_format(line.body)
                case "close":
                    run, outcome = read_close(line.body)
                    self._known(run).outcome = outcome
                case _:
                    raise LedgerError("found a line of a kind that this Kamino does not know")
        except LedgerError as problem:
            place = f"{self.path}: line {line.number}" if line.number > 1 else str(self.path)
            raise LedgerError(f"{place}: {problem}") from None

    def _take_run(self, planned: PlannedRun) -> None:
        if planned.run in self.runs:
            raise LedgerError("found a run that was entered before")
        tallies = {relation: Tally() for relation in Neighbours}
        self.runs[planned.run] = RunState(planned=planned, tallies=tallies, charged=[], is_bound=self._format >= FORMAT)

    def _take_charge(self, line: Line) -> None:
        charge = read_charge(line.body)
        state = self._known(charge.run)
        if charge.number != len(state.charged) + 1 or not state.is_open:
            raise LedgerError("found a charge out of order, or after its run was closed")
        state.tallies = tallies_after(state.tallies, charge.events)
        state.charged.append(charge.entry)

    def _take_stored(self, release: StoredRelease) -> None:
        state = self._known(release.run)
        last = state.stored[-1].number if state.stored else 0
        if not state.is_bound or not state.is_open or release.number <= last:
            raise LedgerError("found a stored release out of order, or after its run was closed")
        state.stored.append(release)

    def _known(self, run: str) -> RunState:
        if run not in self.runs:
            raise LedgerError("found a run that was not entered")
        return self.runs[run]


def charged_as(entry: Entry) -> str:
    """The hash that a ledger knows a release by."""
    return entry_hash(entry_body(entry))


def _over(state: RunState, entry: Entry) -> str:
    """What a release would go over of what is set aside for its run; nothing, if it does not."""
    after, planned = tallies_after(state.tallies, entry.events), state.planned
    own = planned.budget.neighbours
    if own is Neighbours.REPLACE and any(_grows(event) for event, _ in entry.events):
        return "the price under add or remove"
    if planned.sampled:
        return "" if after[own].delta <= planned.budget.delta * (1 + ROUNDING) else "the delta"
    if after[own].sampled:
        return "the price of Gaussian releases, for it is sampled,"
    if any(after[each].gaussian > reserved_gaussian(planned, each) for each in Neighbours):
        return "the mu²"
    return "" if after[own].delta <= planned.finding_delta * (1 + ROUNDING) else "the delta"


def _grows(event: object) -> bool:
    """Whether an event costs more under add or remove than under replace: its run promises nothing there."""
    return isinstance(event, GaussianEvent) and event.noise_multiplier < event.replace_multiplier * (1 - ROUNDING)
