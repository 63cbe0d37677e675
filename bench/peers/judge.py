"""What an output is worth: the same functions for every method, ours included."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from bench.peers.records import LEARNING_ROWS, Record
from kamino.constraints import Constraints, print_constraint
from kamino.errors import KaminoError
from kamino.evaluate.checking import check_table
from kamino.evaluate.learn.learning import train_models
from kamino.evaluate.measure.metrics import bin_tables, distances_of
from kamino.io.csv import read_csv

TRUTH = "truth"


def judge(record: Record, table: pa.Table, rules: Constraints, output: Path) -> Record:
    """The record with its measures, or with the problem of an output that cannot be judged."""
    try:
        made = read_csv(output, types=table.schema)
        pair = bin_tables(table, made)
    except (KaminoError, OSError) as problem:
        return replace(record, problem=f"failed: its output cannot be read ({type(problem).__name__})")
    if made.num_rows != table.num_rows:
        return replace(record, problem=f"failed: made {made.num_rows:,} of {table.num_rows:,} rows")
    one, checks = distances_of(pair, order=1), check_table(made, rules).checks
    return replace(
        record,
        one=one.mean,
        one_max=one.maximum,
        two=distances_of(pair, order=2).mean,
        violations={print_constraint(check.constraint): check.percent for check in checks},
        hard_pairs=sum(check.violations for check in checks if check.constraint.is_hard),
    )


def learn(record: Record, table: pa.Table, output: Path | None) -> Record:
    """The record with the accuracy of models trained on the output, or, without one, on the true table."""
    made = read_csv(output, types=table.schema) if output else table
    side = "synthetic" if output else "true"
    scores = train_models(table, made, max_rows=LEARNING_ROWS, sides=(side,))
    return replace(record, accuracy=scores.mean("accuracy", side), f1=scores.mean("f1", side))
