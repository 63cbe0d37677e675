"""Tools to test a pipeline for leaks: does anything leave it around its releases?

Write the pipeline as `run(table, gate)`, make a neighbouring table, and replay.

>>> import numpy as np
>>> import pyarrow as pa
>>> def honest(table, gate):
...     counts = np.bincount(table["age"].to_numpy(), minlength=100)
...     return gate.release_counts(counts, what="ages", attributes=("age",), noise_multiplier=9.0)
>>> def leaking(table, gate):
...     return honest(table, gate)[: table.num_rows]
>>> table = pa.table({"age": [21, 30, 44]})
>>> assert_replay(honest, table, remove_row(table, 0))
>>> replay(leaking, table, remove_row(table, 0)).problems
('the output differs: <output>: arrays of another shape or type',)

For tests only: a recording holds private data in memory. What is told of a leak holds no value of a table.
"""

from __future__ import annotations

from kamino.testing.compensating import compensate
from kamino.testing.noise_checks import noise_problems
from kamino.testing.replay import (
    LeakError,
    Recording,
    ReplayReport,
    add_row,
    assert_replay,
    record,
    remove_row,
    replace_row,
    replay,
)
from kamino.testing.same import first_difference
from kamino.testing.strangers import odd_cells, strangers, with_invalid_text

__all__ = [
    "LeakError",
    "Recording",
    "ReplayReport",
    "add_row",
    "assert_replay",
    "compensate",
    "first_difference",
    "noise_problems",
    "odd_cells",
    "record",
    "remove_row",
    "replace_row",
    "replay",
    "strangers",
    "with_invalid_text",
]
