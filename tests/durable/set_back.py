"""Attacks on the stored releases of a run: an older copy of their file is put back, to see more draws than charges.

python -m tests.durable.set_back: prints what each attack came to.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.test_replay_of_commands import SCHEMA, private_table

from kamino.errors import LedgerError
from kamino.pipeline import Synthesizer
from kamino.pipeline.ledgering import LedgerUse
from kamino.privacy.durable.journal import Journal, journals_of
from kamino.privacy.durable.store import DurableLedger
from kamino.privacy.ledger import Entry
from kamino.privacy.tape import StoredTape
from kamino.schema import Schema

TABLE = private_table(150)
KNOWN = Schema.from_yaml(SCHEMA)
STOPS = 9
TRIES = 10


class StoppedError(BaseException):
    """In the place of a kill."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What an attack came to: how many releases were tried, how many of them have a second draw that somebody saw, how
    many draws of one release there are at most, the charges before and after, and whether the head is the same.
    """

    tried: int
    drawn_anew: int
    most_draws: int
    charges: tuple[int, int]
    head_is_same: bool
    refused: str

    def __str__(self) -> str:
        head = "head unchanged" if self.head_is_same else "head changed"
        refused = f"; refused: {self.refused[:150]}..." if self.refused else "; not refused"
        return (
            f"{self.drawn_anew} of {self.tried} releases drawn anew, at most {self.most_draws} draws of one, "
            f"charges {self.charges[0]} -> {self.charges[1]}, {head}{refused}"
        )


class Watched:
    """Runs about one dataset, of which every release that is handed out is seen, and every state of the file kept."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "l.ledger"
        self.seen: dict[int, set[str]] = {}
        self.copies: dict[int, bytes] = {}
        """The file as it was before the release of each number was asked for; choices have numbers as well."""
        self.refused = ""

    def run(self, *, stop_at: int | None = None) -> None:
        """Fit, and leave the stored releases there; with `stop_at`, stop before the first release from there on."""
        use = LedgerUse(path=self.path, dataset="people")
        made = Synthesizer(KNOWN, ledger=use)
        with self._watching(stop_at), suppress(StoppedError):
            try:
                made.fit(TABLE, keep_releases=True)
            except LedgerError as problem:
                self.refused = str(problem)
            else:
                made.leave()

    def put_back(self, number: int) -> None:
        """Put the file back as it was before the release at this place, from 1 on, or -1 for the last one asked for."""
        (stored,) = journals_of(self.path).values()
        numbers = sorted(self.copies)
        stored.write_bytes(self.copies[numbers[number - 1 if number > 0 else number]])

    def state(self) -> tuple[int, str]:
        """The charges, and the head."""
        with DurableLedger.read(self.path) as ledger:
            return sum(len(run.charged) for run in ledger.runs.values()), ledger.head

    def outcome(self, before: tuple[int, str], tried: int) -> Outcome:
        draws = [len(found) for found in self.seen.values()]
        charges, head = self.state()
        return Outcome(
            tried=tried,
            drawn_anew=sum(each > 1 for each in draws),
            most_draws=max(draws),
            charges=(before[0], charges),
            head_is_same=head == before[1],
            refused=self.refused,
        )

    @contextmanager
    def _watching(self, stop_at: int | None) -> Iterator[None]:
        play = StoredTape.play

        def watched(tape: StoredTape, entry: Entry, *given: Any) -> Any:
            number = tape._number + 1
            if number not in self.copies:
                (stored,) = journals_of(self.path).values()
                self.copies[number] = stored.read_bytes()
            if stop_at is not None and number >= stop_at:
                raise StoppedError
            released = play(tape, entry, *given)
            self.seen.setdefault(number, set()).add(hashlib.sha256(pickle.dumps(released)).hexdigest())
            return released

        StoredTape.play = watched  # type: ignore[method-assign]
        try:
            yield
        finally:
            StoredTape.play = play  # type: ignore[method-assign]


def finished(folder: Path) -> Outcome:
    """A finished run's file is put back as it was before some of its releases, the second one among them."""
    runs = Watched(folder)
    runs.run()
    before = runs.state()
    for number in range(len(runs.copies), 1, -5):
        runs.put_back(number)
        runs.run()
    return runs.outcome(before, tried=len(runs.copies) - 1)


def unfinished(folder: Path) -> Outcome:
    """An unfinished run's file is put back as it was before its second release, which is then asked for, many times."""
    runs = Watched(folder)
    runs.run(stop_at=STOPS)
    before = runs.state()
    for _ in range(TRIES):
        runs.put_back(2)
        runs.run(stop_at=3)
    return runs.outcome(before, tried=1)


def last(folder: Path) -> Outcome:
    """An unfinished run's file is put back as it was before its last release, which is then asked for, many times."""
    runs = Watched(folder)
    runs.run(stop_at=STOPS)
    before = runs.state()
    for _ in range(TRIES):
        runs.put_back(-2)
        runs.run(stop_at=STOPS)
    return runs.outcome(before, tried=1)


def unentered(folder: Path) -> Outcome:
    """A run is ended whenever its release is stored and is not yet in the ledger. Its line is read, and taken away."""
    runs = Watched(folder)
    runs.run(stop_at=STOPS)
    before = runs.state()
    keep = Journal.keep

    def kept(journal: Journal, number: int, *given: Any, **options: Any) -> None:
        keep(journal, number, *given, **options)
        line = journal.path.read_bytes().splitlines()[-1]
        body = json.loads(line[65:])
        if body["kind"] != "sealed":
            runs.seen.setdefault(number, set()).add(hashlib.sha256(line[65:]).hexdigest())
        raise StoppedError

    place = len(runs.copies)
    Journal.keep = kept  # type: ignore[assignment, method-assign]
    try:
        for _ in range(TRIES):
            runs.run()
            runs.put_back(place)
    finally:
        Journal.keep = keep  # type: ignore[method-assign]
    return runs.outcome(before, tried=1)


ATTACKS: dict[str, Callable[[Path], Outcome]] = {
    "a finished run, put back": finished,
    "an unfinished run, put back": unfinished,
    "an unfinished run, its last release taken away": last,
    "an unfinished run, ended before a stored release is entered": unentered,
}


def main() -> None:
    """Print what each attack came to."""
    for name, attack in ATTACKS.items():
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name}: {attack(Path(folder))}")


if __name__ == "__main__":
    main()
