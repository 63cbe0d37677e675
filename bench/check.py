"""Time exact counting: beside plain self-joins in DuckDB, and as the table grows.

python bench/check.py                       # the built-in table only
python bench/check.py --data FOLDER         # also FOLDER/T/T.csv with FOLDER/T/T.ic for each T found
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from kamino.constraints import Constraints, DenialConstraint, count_violations, print_constraint, value_types
from kamino.constraints.counting.conjunction import conjunction_of
from kamino.constraints.tree import Column, NullTest, Predicate, swapped
from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.io import read_table

SUM_RATIO = 10.0
SINGLE_SLACK_SECONDS = 0.05
GROWTH = 2.3
SIZES = (100_000, 200_000, 400_000, 800_000)


def cpu_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of all threads, and the result."""
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def join(predicates: Iterable[Predicate]) -> str:
    """The count of ordered pairs of different rows that satisfy all predicates, as a plain self-join."""
    condition = " AND ".join(["t1.row_number <> t2.row_number", *map(_sql, predicates)])
    return f"SELECT count(*) FROM numbered t1, numbered t2 WHERE {condition}"


def _sql(predicate: Predicate) -> str:
    def side(operand: Any) -> str:
        return f't{operand.tuple}."{operand.name}"' if isinstance(operand, Column) else repr(operand.value)

    if isinstance(predicate, NullTest):
        return f"{side(predicate.column)} IS {'NOT ' if predicate.negated else ''}NULL"
    return f"{side(predicate.left)} {predicate.op.value} {side(predicate.right)}"


def duckdb_count(connection: Any, constraint: DenialConstraint) -> int:
    """Ordered pairs, less half of those that violate both ways: the cheapest plain form, two joins at most."""
    backward = [swapped(predicate) for predicate in constraint.predicates]
    (ordered,) = connection.execute(join(constraint.predicates)).fetchone()
    if conjunction_of(constraint).is_symmetric:
        return int(ordered) // 2
    (twice,) = connection.execute(join([*constraint.predicates, *backward])).fetchone()
    return int(ordered) - int(twice) // 2


def compare_with_duckdb(folder: Path) -> bool:
    """Count every constraint of every table in `folder` both ways; the figures must agree."""
    ours_total = theirs_total = 0.0
    fine = True
    print(f"{'table':8} {'ours':>8} {'duckdb':>8}  {'violations':>12}  constraint")
    for path in sorted(folder.glob("*/*.ic")):
        table = read_table(path.with_suffix(".csv"))
        rules = Constraints.parse(path.read_text(), source=path.name, types=value_types(table))
        connection = duckdb.connect()
        numbered = table.append_column("row_number", pa.array(range(table.num_rows)))
        connection.register("incoming", numbered)
        connection.execute("CREATE TABLE numbered AS SELECT * FROM incoming")
        for constraint in rules:
            ours, count = cpu_seconds(partial(count_violations, table, constraint))
            theirs, expected = cpu_seconds(partial(duckdb_count, connection, constraint))
            ours_total += ours
            theirs_total += theirs
            ok = count == expected and ours <= theirs + SINGLE_SLACK_SECONDS
            fine &= ok
            mark = "" if ok else "  <-- missed"
            print(f"{path.stem:8} {ours:8.3f} {theirs:8.3f}  {count:12,}  {print_constraint(constraint)}{mark}")
    ratio = theirs_total / ours_total
    print(f"sum      {ours_total:8.3f} {theirs_total:8.3f}  DuckDB takes {ratio:.1f} times our CPU (aim {SUM_RATIO:g})")
    return fine and ratio >= SUM_RATIO


def grow() -> bool:
    """Count the built-in table's six constraints at doubling sizes and at a million rows."""
    fine, previous = True, None
    count_all(tax(SIZES[0]))
    for size in SIZES:
        table = tax(size)
        seconds = min(count_all(table) for _ in range(3))
        growth = seconds / previous if previous else None
        fine &= growth is None or growth <= GROWTH
        print(f"{size:>9,} rows  {seconds:6.2f} s" + (f"  x {growth:.2f} (at most {GROWTH})" if growth else ""))
        previous = seconds
    seconds = count_all(tax(1_000_000))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"1,000,000 rows  {seconds:6.2f} s (at most 15), peak memory {peak:.2f} GiB (at most 2)")
    return fine and seconds <= 15 and peak <= 2


def count_all(table: pa.Table) -> float:
    """Processor seconds for all six constraints, which must hold."""
    rules = Constraints.parse(TAX_CONSTRAINTS)
    seconds, counts = cpu_seconds(lambda: [count_violations(table, constraint) for constraint in rules])
    assert counts == [0] * len(rules), counts
    return seconds


def main() -> int:
    """Run what was asked for; exit code 1 where an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with T/T.csv and T/T.ic")
    arguments = parser.parse_args()
    fine = grow()
    if arguments.data:
        fine &= compare_with_duckdb(arguments.data)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
