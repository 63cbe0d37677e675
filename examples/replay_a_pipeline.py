"""Test a pipeline of one's own for leaks: what it makes must follow from its releases alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kamino.privacy import Gate
from kamino.testing import noise_problems, record, remove_row, strangers


def mean_age(table: pa.Table, gate: Gate) -> float:
    """A pipeline: a noisy histogram of ages, and the mean of it."""
    ages = np.clip(table["age"].fill_null(0).to_numpy(), 0, 99)
    counts = np.bincount(ages, minlength=100)
    noisy = gate.release_counts(counts, what="histogram of ages", attributes=("age",), noise_multiplier=9.0)
    kept = np.maximum(noisy, 0)
    return float(kept @ np.arange(100) / max(kept.sum(), 1))


def mean_age_that_peeks(table: pa.Table, gate: Gate) -> float:
    """The same, but divided by the true number of rows, which nobody paid for."""
    ages = np.clip(table["age"].fill_null(0).to_numpy(), 0, 99)
    noisy = gate.release_counts(
        np.bincount(ages, minlength=100), what="histogram of ages", attributes=("age",), noise_multiplier=9.0
    )
    return float(np.maximum(noisy, 0) @ np.arange(100) / max(table.num_rows, 1))


table = pa.table({"age": [21, 30, 44, 58, 63]})
for pipeline in (mean_age, mean_age_that_peeks):
    recording = record(pipeline, table)
    problems = [*recording.play(remove_row(table, 0)).problems, *noise_problems(recording.records)]
    # Given its releases, a pipeline may know nothing of its table: nor on tables that are no neighbours.
    for other in strangers(table).values():
        problems += recording.play(other, neighbour=False).problems
    print(pipeline.__name__, "leaks" if problems else "passes")
