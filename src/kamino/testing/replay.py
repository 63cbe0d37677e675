"""Replay: does anything leave a run around its releases?

A run is recorded on a table, then repeated on a neighbouring table, where the gate hands out what it
recorded. All that the run may know of the table are the releases, so the second run must ask for the same
releases in the same order and make the same output, to the last byte. What differs has leaked. The recorder
also keeps each mechanism's true input, and checks that it moved no further between the two tables than the
release's declared sensitivity.

    >>> import numpy as np
    >>> import pyarrow as pa
    >>> def run(table, gate):
    ...     counts = np.bincount(table["age"].to_numpy(), minlength=100)
    ...     return gate.release_counts(counts, what="ages", attributes=("age",), noise_multiplier=9.0)
    >>> table = pa.table({"age": [21, 30, 44]})
    >>> assert_replay(run, table, remove_row(table, 2))
    >>> replay(lambda table, gate: table.num_rows, table, remove_row(table, 2)).problems
    ('the output differs: <output>: not equal',)

Given the releases, a run may know nothing of its table at all. So `Recording.play` also plays back on tables that are
no neighbours, such as `kamino.testing.strangers` makes: there only the output is compared.

    >>> record(run, table).play(table.slice(0, 0), neighbour=False).problems
    ()

For tests only: a tape holds private data in memory. Problems are told without any value of the tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias, cast

import numpy as np
import pyarrow as pa

from kamino.privacy.accounting.budget import Budget
from kamino.privacy.gate import Gate
from kamino.privacy.ledger import Entry
from kamino.privacy.noise import Noise, SeededNoise
from kamino.privacy.tape import S, T, Truth
from kamino.privacy.unit import PrivacyUnit
from kamino.testing.same import first_difference

Run: TypeAlias = Callable[[Any, Gate], object]
Record: TypeAlias = tuple[Entry, Truth, object]
Pair: TypeAlias = tuple[Entry, Truth, Truth]


class LeakError(AssertionError):
    """A run let something out around its releases, or declared too small a sensitivity."""


class _DivergedError(Exception):
    """The second run asked for something that was not recorded: there is nothing to hand out."""


@dataclass(frozen=True, kw_only=True)
class ReplayReport:
    """What a replay found; no problems means that the run passed."""

    num_releases: int
    problems: tuple[str, ...]
    pairs: tuple[Pair, ...] = field(default=(), repr=False, compare=False)
    """Each release with its true input on both tables, if these are neighbours. Private."""


class Recorder:
    """Draws as usual, and keeps every release with its true input."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def play(self, entry: Entry, truth: Callable[[], S], answer: Callable[[S], T]) -> T:
        """Draw, and keep the release."""
        private = truth()
        released = answer(private)
        self.records.append((entry, _copy(private), _copy(released)))
        return released

    def __repr__(self) -> str:
        return f"Recorder(releases={len(self.records)})"


class Replayer:
    """Hands out what was recorded, and notes whatever is not as it was on the recorded table."""

    def __init__(self, records: Sequence[Record], *, neighbour: bool = True) -> None:
        self._records = records
        self._neighbour = neighbour
        self._next = 0
        self.problems: list[str] = []
        self.pairs: list[Pair] = []
        self.diverged = False

    def play(self, entry: Entry, truth: Callable[[], S], answer: Callable[[S], T]) -> T:
        """Return the recorded release."""
        number = self._next + 1
        if self._next >= len(self._records):
            self._diverge(f"release {number} ({_name(entry)}) was not asked for on the first table")
        recorded, first, released = self._records[self._next]
        if entry != recorded:
            fields = [name for name in vars(entry) if getattr(entry, name) != getattr(recorded, name)]
            self._diverge(f"release {number} differs between the tables in: {', '.join(fields)}")
        self._next += 1
        second = truth()  # asked for on every table: it must not fail on any
        if self._neighbour:
            self._compare(number, entry, first, second)
            self.pairs.append((entry, first, second))
        return cast(T, _copy(released))

    def finish(self) -> None:
        """Note if the second run stopped asking too early."""
        if self._next < len(self._records) and not self.diverged:
            self.diverged = True
            self.problems.append(f"release {self._next + 1} was asked for on the first table only")

    def _compare(self, number: int, entry: Entry, first: Truth, second: Truth) -> None:
        moved = _distance(first, second) * entry.grid
        if moved > entry.sensitivity * (1 + 1e-9):
            times = _about(moved / entry.sensitivity) if entry.sensitivity else "infinitely many"
            self.problems.append(
                f"the true input of release {number} ({_name(entry)}) moved by {times} times its declared sensitivity"
            )

    def _diverge(self, problem: str) -> NoReturn:
        self.diverged = True
        self.problems.append(problem)
        raise _DivergedError

    def __repr__(self) -> str:
        return f"Replayer(releases={len(self._records)}, played={self._next})"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Recording:
    """A run on one table, with all its releases, to be played back on others. It holds private data."""

    run: Run
    budget: Budget
    unit: PrivacyUnit | None
    noise: Noise
    records: tuple[Record, ...]
    output: object

    def play(self, table: Any, *, neighbour: bool = True) -> ReplayReport:
        """Run on another table with the recorded releases, and compare; sensitivities only if it is a neighbour.

        Guarantees:
            What follows from the table around the gate is seen.  [test_every_planted_fault_is_caught]
        """
        replayer = Replayer(self.records, neighbour=neighbour)
        second = _outcome(self.run, table, Gate(self.budget, unit=self.unit, noise=self.noise, tape=replayer))
        replayer.finish()
        problems = list(replayer.problems)
        if not replayer.diverged:
            difference = first_difference(self.output, second)
            if difference:
                problems.append(f"the output differs: {difference}")
        pairs = tuple(replayer.pairs)
        return ReplayReport(num_releases=len(self.records), problems=tuple(problems), pairs=pairs)

    def assert_plays(self, table: Any, *, neighbour: bool = True) -> None:
        """Raise `LeakError` with all problems that `play` finds."""
        report = self.play(table, neighbour=neighbour)
        if report.problems:
            raise LeakError("the run leaks: " + "; ".join(report.problems) + ".")


def record(
    run: Run,
    table: Any,
    *,
    budget: Budget | None = None,
    unit: PrivacyUnit | None = None,
    noise: Noise | None = None,
) -> Recording:
    """Run on `table` and keep every release. `run(table, gate)` must take its own randomness from a fixed seed."""
    budget = budget or Budget(epsilon=1.0, delta=1e-6)
    recorder = Recorder()
    noise = noise or SeededNoise(0)
    output = run(table, Gate(budget, unit=unit, noise=noise, tape=recorder))
    return Recording(run=run, budget=budget, unit=unit, noise=noise, records=tuple(recorder.records), output=output)


def replay(
    run: Run,
    table: Any,
    neighbour: Any,
    *,
    budget: Budget | None = None,
    unit: PrivacyUnit | None = None,
    noise: Noise | None = None,
) -> ReplayReport:
    """Run on `table`, run again on `neighbour` with the recorded releases, and compare.

    `run(table, gate)` must take its own randomness from a fixed seed. `table` and `neighbour` must differ in
    one privacy unit as the budget's relation says: `remove_row`, `add_row` and `replace_row` make such
    tables. An exception on one table only is a leak as well.
    """
    return record(run, table, budget=budget, unit=unit, noise=noise).play(neighbour)


def assert_replay(
    run: Run,
    table: Any,
    neighbour: Any,
    *,
    budget: Budget | None = None,
    unit: PrivacyUnit | None = None,
    noise: Noise | None = None,
) -> None:
    """Raise `LeakError` with all problems that `replay` finds."""
    record(run, table, budget=budget, unit=unit, noise=noise).assert_plays(neighbour)


def remove_row(table: pa.Table, place: int) -> pa.Table:
    """Return the table without one row."""
    return pa.concat_tables([table.slice(0, place), table.slice(place + 1)])


def add_row(table: pa.Table, row: Mapping[str, object]) -> pa.Table:
    """Return the table with one row more, at the end."""
    return pa.concat_tables([table, pa.Table.from_pylist([dict(row)], schema=table.schema)])


def replace_row(table: pa.Table, place: int, row: Mapping[str, object]) -> pa.Table:
    """Return the table with another row at one place."""
    new = pa.Table.from_pylist([dict(row)], schema=table.schema)
    return pa.concat_tables([table.slice(0, place), new, table.slice(place + 1)])


@dataclass(frozen=True, kw_only=True)
class _Failed:
    error: str


def _outcome(run: Run, table: Any, gate: Gate) -> object:
    """Return the run's output, or the type of what it raised: its text may hold private values."""
    try:
        return run(table, gate)
    except Exception as error:
        return _Failed(error=type(error).__name__)


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _name(entry: Entry) -> str:
    return f"{entry.kind} on {', '.join(entry.attributes) or 'no attribute'}"


def _distance(first: Truth, second: Truth) -> float:
    if first is None or second is None:
        return 0.0
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return math.sqrt(sum((first.get(key, 0) - second.get(key, 0)) ** 2 for key in {*first, *second}))
    move = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    return float(np.sqrt((move**2).sum()))


def _about(ratio: float) -> str:
    """Say a ratio so roughly that no value can be read from it."""
    return "more than 1,000" if ratio > 1_000 else "more than 10" if ratio > 10 else f"about {ratio:.1f}"
