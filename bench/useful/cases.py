"""One synthesis to be measured, and what was found about it."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MAIN_EPSILON = 1.0
DELTA = 1e-6
DEFAULT = "default"


class Mode(enum.StrEnum):
    """What is done with the constraints: kept, known to the fit but ignored when drawing, or never given."""

    KEPT = "constraint-aware"
    IGNORED = "independent"
    NOT_GIVEN = "none"
    OTHER = "other"
    """A table that somebody else made."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run of one table. `part` names what is switched off by `changes`, or who else made the table."""

    table: str
    epsilon: float = MAIN_EPSILON
    mode: Mode = Mode.KEPT
    part: str = DEFAULT
    changes: tuple[str, ...] = ()
    run: int = 1
    rows: int | None = None

    @property
    def key(self) -> str:
        """A name for files and stores that tells all cases apart.

        >>> Case(table="adult", rows=100, changes=("parts=8",), part="8 bins").key
        'adult, epsilon 1, constraint-aware, 8 bins (parts=8), 100 rows, run 1'
        """
        part = f"{self.part} ({'; '.join(self.changes)})" if self.changes else self.part
        rows = f", {self.rows} rows" if self.rows is not None else ""
        return f"{self.table}, epsilon {self.epsilon:g}, {self.mode}, {part}{rows}, run {self.run}"

    @property
    def is_plain(self) -> bool:
        """Whether this is Kamino as it comes, constraints kept."""
        return self.part == DEFAULT and self.mode is Mode.KEPT


@dataclass(frozen=True, kw_only=True)
class Record:
    """What was measured. `right` is the share of rows with the true value, by dependency; `cpu` the seconds of a run.

    A metric that says nothing about a table is None. `problem` says why there are no figures.
    """

    case: Case
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    right: Mapping[str, float] = field(default_factory=dict)
    violations: int | None = None
    cpu: float | None = None
    kamino: str = ""
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Record:
        """Read what `to_json` made."""
        case = dict(document["case"])
        case["mode"], case["changes"] = Mode(case["mode"]), tuple(case["changes"])
        return Record(**{**document, "case": Case(**case)})


class Store:
    """Records in one JSON file, written after each, and the tables they are about."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "results.json"
        self._records = self._written()

    def _written(self) -> dict[str, Record]:
        found = json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else []
        return {record.case.key: record for record in map(Record.from_json, found)}

    def find(self, case: Case) -> Record | None:
        """The record of a case, unless it failed."""
        record = self._records.get(case.key)
        return record if record is not None and not record.problem else None

    def add(self, record: Record) -> None:
        """Keep a record, in place of an older one of the same case, beside what other programs have written."""
        self._records = self._written() | self._records | {record.case.key: record}
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self._path.with_suffix(".part")
        part.write_text(json.dumps([each.to_json() for each in self._records.values()], indent=1), encoding="utf-8")
        part.replace(self._path)

    def of(self, cases: Iterable[Case]) -> list[Record]:
        """The records of these cases that there are, in their order."""
        return [record for case in cases if (record := self._records.get(case.key)) is not None]

    def output_of(self, case: Case) -> Path:
        """Where the table of a case is kept."""
        folder = self.folder / "made"
        folder.mkdir(parents=True, exist_ok=True)
        plain = "".join(c if c.isalnum() or c in ".-=" else "_" for c in case.key)
        return folder / f"{plain}.csv"
