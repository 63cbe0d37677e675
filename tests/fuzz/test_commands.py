"""Whole commands on pairs of files: a quick part of `python -m tests.fuzz.commands`, and tests of the trial itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.fuzz.commands import COMMANDS, SHARES, replay_pairs, trial_of
from tests.fuzz.file_pairs import KINDS, base_of, pair_of

from kamino.cli.commands import synth as synth_command
from kamino.errors import InputError
from kamino.io import private_csv
from kamino.io.formats import json_lines
from kamino.pipeline import engines

SEED = 2026
# `make test` replays so many pairs, `make test-slow` so many; `make fuzz` replays 20,000.
FEW, MANY = 80, 2_000


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_file_shows_through_its_releases_alone(count: int, tmp_path: Path) -> None:
    outcome = replay_pairs(seed=SEED, first=0, count=count, folder=tmp_path)
    assert outcome.faults == []
    assert outcome.pairs == count
    # Runs that are all refused would say little.
    assert outcome.ends[0] > count / 2
    assert count / 2 < outcome.neighbours < count


def test_a_pair_follows_from_its_number_alone(tmp_path: Path) -> None:
    for number in range(120):
        written = []
        for _ in range(2):
            base = base_of(random.Random(number))
            pair = pair_of(base, random.Random(-number))
            trial = trial_of(base, random.Random(number))
            content = []
            for write in (pair.plain, pair.other) if base.kind.name not in ("duckdb", "csv-gz", "jsonl-gz") else ():
                write(tmp_path / base.source.file)
                content.append((tmp_path / base.source.file).read_bytes())
            written.append((trial, pair.told, pair.is_neighbour, content))
        assert written[0] == written[1]


def test_every_kind_and_every_command_has_a_share() -> None:
    assert set(SHARES) == set(COMMANDS)
    assert all(kind.share > 0 for kind in KINDS)


def _raise(*given: Any, **options: Any) -> Any:
    raise InputError("t.csv:3: the row has 1 cells")


def _tell_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    read, show, counts = engines.read_table, synth_command.print_run, [0]

    def spy(*given: Any, **options: Any) -> Any:
        table = read(*given, **options)
        counts[0] = table.num_rows
        return table

    def tell(*given: Any, **options: Any) -> None:
        show(*given, **options)
        print(f"{counts[0]} rows were read")

    monkeypatch.setattr(engines, "read_table", spy)
    monkeypatch.setattr(synth_command, "print_run", tell)


LEAKS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a ragged line is an error": lambda patch: patch.setattr(private_csv, "with_nulls_for_lost", _raise),
    "a line that is no JSON is an error": lambda patch: patch.setattr(json_lines, "_object_or_nothing", _raise),
    "the rows are told": _tell_rows,
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_seen(leak: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    LEAKS[leak](monkeypatch)
    faults = [
        fault
        for first in range(0, 100, 20)
        for fault in replay_pairs(seed=SEED, first=first, count=4, folder=tmp_path, told=lambda line: None).faults
    ]
    assert faults
