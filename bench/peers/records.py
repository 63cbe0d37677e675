"""What was measured, one JSON line for each run, kept so that a comparison goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

LEARNING_ROWS = 5_000


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run of one method on one table; the measures are None where there is no output to judge.

    problem: how it failed, in one line. limit: the CPU seconds it passed, 0 if it did not.
    violations: by constraint, in percent of pairs.
    """

    table: str
    method: str
    run: int
    epsilon: float
    delta: float
    cpu: float = 0.0
    memory: float | None = None
    problem: str = ""
    limit: float = 0.0
    one: float | None = None
    one_max: float | None = None
    two: float | None = None
    violations: dict[str, float] = field(default_factory=dict)
    hard_pairs: int | None = None
    accuracy: float | None = None
    f1: float | None = None

    @property
    def key(self) -> tuple[str, str, int, float, float]:
        """What tells runs apart."""
        return self.table, self.method, self.run, self.epsilon, self.delta


class Store:
    """A file of records; of records with one key the last counts.

    Guarantees:
        A run that is there is not repeated, unless a limit stopped it that is higher now.  [test_runs_are_resumed]
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def records(self) -> dict[tuple[str, str, int, float, float], Record]:
        """All records, in the order in which their runs were first made."""
        if not self.path.exists():
            return {}
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return {record.key: record for record in (Record(**json.loads(line)) for line in lines if line)}

    def add(self, record: Record) -> None:
        """Append one record."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(record)) + "\n")

    def is_done(self, record: Record, *, limit: float, again: Iterable[str] = ()) -> bool:
        """Whether a run with the key of `record` need not be made."""
        found = self.records().get(record.key)
        if found is None or found.method in again:
            return False
        return not found.limit or limit <= found.limit
