"""Try readers with odd rows: `python -m tests.io.odd_rows --count 200000 --seed 1`.

The law: for any table T and any row r, `read(T + r)` is `read(T)` and one row more. Names, types, and the kind of frame
that will come back are the same, the other rows are read as they were, and nothing is raised.

A row follows from the seed, the reader and its number alone, so that `--reader NAME --from NUMBER --count 1` makes one
again.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.io.odd_readers import READERS
from tests.io.odd_reading import Cells, Column, OddReader, Seen

# So many odd rows are tried on one table.
ROWS_PER_TABLE = 10
MOST_COLUMNS, MOST_ROWS = 3, 5


@dataclass
class Outcome:
    """What became of the odd rows of one reader. `unmade` are sources that cannot be made, which do not count."""

    reader: str
    seed: int
    tried: int = 0
    unmade: int = 0
    cpu: float = 0.0
    faults: list[str] = field(default_factory=list)


def plain_table(reader: OddReader, seed: int, number: int) -> Cells:
    """The table of a number: a few columns of ordinary cells, with an odd one here and there."""
    rng = random.Random(f"{seed}:{reader.name}:{number // ROWS_PER_TABLE}")
    names = rng.sample(sorted(reader.columns), min(len(reader.columns), rng.randint(1, MOST_COLUMNS)))
    rows, oddness = rng.randint(0, MOST_ROWS), rng.choice((0.0, 0.0, 0.1))
    columns = {name: reader.columns[name] for name in names}
    return {
        name: [rng.choice(_beside(each) if rng.random() < oddness else each.plain) for _ in range(rows)]
        for name, each in columns.items()
    }


def _beside(column: Column) -> Sequence[Any]:
    return column.odd if column.beside is None else column.beside


def odd_row(reader: OddReader, cells: Cells, seed: int, number: int) -> tuple[int, dict[str, Any]]:
    """The odd row of a number, and the place where it is put."""
    rng = random.Random(f"{seed}:{reader.name}:{number}:row")
    rows = len(next(iter(cells.values())))
    place = rng.randint(0, rows) if reader.anywhere else rows
    chosen = rng.choice(sorted(cells))
    columns = {name: reader.columns[name] for name in cells}
    return place, {
        name: rng.choice(each.odd if name == chosen or rng.random() < 0.5 else each.plain)
        for name, each in columns.items()
    }


def try_reader(reader: OddReader, *, seed: int, first: int, count: int, folder: Path) -> Outcome:
    """Read tables with and without odd rows, so many of these."""
    outcome, begin = Outcome(reader.name, seed), time.process_time()
    cells: Cells = {}
    without: Seen | str | None = None
    for number in range(first, first + count):
        if number == first or number % ROWS_PER_TABLE == 0:
            cells = plain_table(reader, seed, number)
            without = _seen(reader, cells, folder)
        place, row = odd_row(reader, cells, seed, number)
        longer = {name: [*column[:place], row[name], *column[place:]] for name, column in cells.items()}
        found = _seen(reader, longer, folder) if without is not None else None
        if without is None or found is None:
            outcome.unmade += 1
            continue
        outcome.tried += 1
        fault = difference(without, found, place)
        if fault and len(outcome.faults) < 50:
            outcome.faults.append(f"number {number}: {fault}; row {place} of {_shown(longer)}")
    outcome.cpu = time.process_time() - begin
    return outcome


def _seen(reader: OddReader, cells: Cells, folder: Path) -> Seen | str | None:
    """What is read; what was raised; or None where there is no such source."""
    try:
        source = reader.make(cells, folder)
    except Exception:  # a library may refuse cells in any way
        return None
    try:
        seen = reader.read(source)
        _ = seen.rows  # cells that Python cannot hold are a fault too
        return seen
    except Exception as problem:
        return f"{type(problem).__name__}: {str(problem)[:200]}"


def difference(without: Seen | str, found: Seen | str, place: int) -> str:
    """Say in what a table with an odd row at a place is not the table without and one row more; "" if in nothing."""
    if isinstance(without, str) or isinstance(found, str):
        return f"raised {without if isinstance(without, str) else found}"
    if not found.table.schema.equals(without.table.schema, check_metadata=True):
        return f"schema: {_line(without.table.schema)} is {_line(found.table.schema)}"
    if found.public != without.public:
        return f"public: {without.public} is {found.public}"
    before, after = without.rows, found.rows
    if len(after) != len(before) + 1:
        return f"rows: {len(before)} and one are {len(after)}"
    after = [*after[:place], *after[place + 1 :]]
    return "" if before == after else f"cells: {before} are {after}"


def _line(schema: pa.Schema) -> str:
    return str(schema).replace("\n", ", ")


def _shown(cells: Cells) -> str:
    return ascii({name: [_cell(cell) for cell in column] for name, column in cells.items()})[:600]


def _cell(cell: Any) -> str:
    try:
        return f"{type(cell).__name__} {str(cell)[:60]}"
    except Exception:
        return type(cell).__name__


def main() -> int:
    """Try all readers, or one; print a line of JSON for each."""
    options = argparse.ArgumentParser()
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--reader", choices=[reader.name for reader in READERS])
    options.add_argument("--from", type=int, default=0, dest="first")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    shares, failed = sum(reader.share for reader in READERS), False
    with tempfile.TemporaryDirectory(prefix="kamino-odd-") as folder:
        for reader in READERS:
            if chosen.reader not in (None, reader.name):
                continue
            count = chosen.count if chosen.reader else -(-chosen.count * reader.share // shares)
            outcome = try_reader(reader, seed=chosen.seed, first=chosen.first, count=count, folder=Path(folder))
            print(json.dumps(vars(outcome)), flush=True)
            failed |= bool(outcome.faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
