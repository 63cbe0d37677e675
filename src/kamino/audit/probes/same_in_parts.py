"""Whether a table that is read in parts is measured as one in memory is: the same releases of the same true answers.

Runs are recorded on a table in memory, and played back on the same table in parts of a few rows, of which some are
empty. Nothing may differ: no release that is asked for, no true answer, not a byte of what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from kamino.audit import subjects
from kamino.audit.probes.probe import Probe
from kamino.audit.subjects import Subject
from kamino.engine.streamed import EncodedParts
from kamino.errors import KaminoError
from kamino.privacy import SecureNoise
from kamino.privacy.tape import Truth
from kamino.schema import Codec, Schema
from kamino.testing.replay import record

# Runs that between them use all that is counted in parts, at budgets at which they ask for much.
_RUNS: tuple[Callable[[], Subject], ...] = (
    partial(subjects.violating, epsilon=8.0),
    partial(subjects.found, epsilon=40.0),
    subjects.found_texts,
    subjects.grouped,
    subjects.dated,
)
_PART_ROWS = 7


@dataclass(frozen=True, kw_only=True)
class InParts:
    """A table that is read in parts of a few rows; every third is empty."""

    table: pa.Table
    is_ordered: bool = True

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.table.schema

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns, by default all, part by part."""
        chosen = self.table if names is None else self.table.select(list(names))
        for number, start in enumerate(range(0, max(chosen.num_rows, 1), _PART_ROWS)):
            if number % 3 == 1:
                yield chosen.slice(start, 0)
            yield chosen.slice(start, _PART_ROWS)


def part_problems() -> Iterator[str]:
    """Tell of which runs something differs where the table is read in parts."""
    for make in _RUNS:
        subject = make()
        yield from (f"{subject.name}: {problem}" for problem in _of_a_run(subject))
    yield from _of_codes()


def _of_a_run(subject: Subject) -> Iterator[str]:
    recording = record(subject.run, subject.table, budget=subject.budget, unit=subject.unit, noise=SecureNoise())
    report = recording.play(InParts(table=subject.table))
    yield from report.problems
    for number, (entry, whole, parts) in enumerate(report.pairs, start=1):
        if not _same(whole, parts):
            yield f"the true input of release {number} ({entry.kind} on {', '.join(entry.attributes)}) is another"


def _of_codes() -> Iterator[str]:
    """Read codes of some columns, which are kept, then of others beside them, and all once more."""
    table = subjects.made_up().drop_columns(["who"])
    codec = Codec(Schema(attributes={name: subjects.SCHEMA[name] for name in table.column_names}))
    whole = codec.encode(table)
    for kept_bytes in (1 << 20, 300, 0):
        parts = EncodedParts(InParts(table=table), codec, kept_bytes=kept_bytes)
        for names in (("age",), ("pay", "age"), ("city", "age", "pay"), ("city", "age", "pay")):
            try:
                found = list(parts.parts(names))
            except KaminoError as problem:
                yield f"codes that are made part by part, or kept, do not fit: {problem}"
                continue
            if any(not np.array_equal(np.concatenate([part[name] for part in found]), whole[name]) for name in names):
                yield "codes that are made part by part, or kept, are others"


def _same(whole: Truth, parts: Truth) -> bool:
    if isinstance(whole, Mapping) or whole is None:
        return bool(whole == parts)
    first: Any = whole
    return np.array_equal(first, np.asarray(parts))


PARTS = Probe(
    name="tables in parts",
    does="Runs on a table in memory are played back on the same table in parts: every true answer must be the same.",
    cannot="Parts that are counted on other machines, which tests of engines compare.",
    search=part_problems,
)
