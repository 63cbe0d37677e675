"""No row decides how others are read: a quick part of `python -m tests.io.odd_rows`, and tests of the trial itself."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.io.odd_readers import READERS
from tests.io.odd_reading import Cells, Column, OddReader, Seen
from tests.io.odd_rows import odd_row, plain_table, try_reader

SEED = 2026
# `make test` tries so many odd rows on each reader, `make test-slow` so many.
FEW, MANY = 200, 5_000
NUMBERS = {"a": Column(plain=(1, 2), odd=(None, "x", 2.5, ValueError))}


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_no_row_decides_how_others_are_read(reader: OddReader, count: int, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = try_reader(reader, seed=SEED, first=0, count=count // reader.cost, folder=tmp_path)
    assert outcome.faults == []
    assert outcome.tried > count / reader.cost / 3, "sources of most cells can be made"


def test_readers_have_names_of_their_own() -> None:
    assert len({reader.name for reader in READERS}) == len(READERS)


def test_a_row_follows_from_its_number_alone() -> None:
    for reader in READERS:
        for number in (0, 7, 23):
            rows = [odd_row(reader, plain_table(reader, SEED, number), SEED, number) for _ in range(2)]
            assert ascii(rows[0][0]) == ascii(rows[1][0])
            assert list(rows[0][1]) == list(rows[1][1])
            assert all(one is other for one, other in zip(rows[0][1].values(), rows[1][1].values(), strict=True))


def _by_all_cells(cells: Cells) -> Seen:
    """A reader that lets the cells decide the type, as few readers should."""
    return Seen(pa.table({name: pa.array(column, from_pandas=True) for name, column in cells.items()}))


def _as_text(cells: Cells) -> Seen:
    texts = {name: [None if cell is None else str(cell) for cell in column] for name, column in cells.items()}
    return Seen(pa.table({name: pa.array(column, pa.string()) for name, column in texts.items()}))


def _raising(cells: Cells) -> Seen:
    if any(cell is ValueError for column in cells.values() for cell in column):
        raise ValueError("a cell")
    return _as_text(cells)


def _telling(cells: Cells) -> Seen:
    return Seen(_as_text(cells).table, public=any(cell == "x" for column in cells.values() for cell in column))


def _sorting(cells: Cells) -> Seen:
    return Seen(_as_text(cells).table.sort_by("a"))


def _dropping(cells: Cells) -> Seen:
    return Seen(_as_text({name: [cell for cell in column if cell] for name, column in cells.items()}).table)


@pytest.mark.parametrize(
    ("read", "fault"),
    [
        (_as_text, None),
        (_by_all_cells, "schema: a: int64 is a: double"),
        (_raising, "raised ValueError: a cell"),
        (_telling, "public: False is True"),
        (_sorting, "cells: "),
        (_dropping, "rows: "),
    ],
)
def test_faults_are_seen(read: Any, fault: str | None, tmp_path: Path) -> None:
    reader = OddReader(name="broken", columns=NUMBERS, make=lambda cells, folder: cells, read=read)
    found = try_reader(reader, seed=1, first=0, count=300, folder=tmp_path).faults
    assert bool(found) == (fault is not None)
    assert all(fault in each for each in found[:1] if fault)


def test_a_source_that_cannot_be_made_does_not_count(tmp_path: Path) -> None:
    def make(cells: Cells, folder: Path) -> Any:
        return pa.table({name: pa.array(column, pa.int64()) for name, column in cells.items()})

    reader = OddReader(name="numbers", columns=NUMBERS, make=make)
    outcome = try_reader(reader, seed=1, first=0, count=300, folder=tmp_path)
    assert outcome.faults == []
    assert outcome.tried + outcome.unmade == 300
    assert 0 < outcome.unmade < 300
