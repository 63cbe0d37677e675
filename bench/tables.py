"""The tables that are measured, with their constraints, and how far a synthetic table is from the true one."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from kamino.constraints import Constraints, count_violations
from kamino.constraints.tree import HARD, SOFT
from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.evaluate.measure.marginals import compare_marginals
from kamino.evaluate.measure.metrics import bin_tables, bin_tables_by_mass, distances_of
from kamino.evaluate.measure.rank_correlation import compare_ranks
from kamino.io import read_table

# Distances are also given over the attributes of at most so many values: noise hides what the others say.
WIDE = 300
# Of the three-way marginals so many are compared.
TRIPLES = 100
BUILT_IN = "built-in"
BUILT_IN_ROWS = 30_000


def table_names(folder: Path | None) -> list[str]:
    """The tables of a folder, T/T.csv with T/T.ic; the built-in one without a folder."""
    return sorted(path.stem for path in folder.glob("*/*.ic")) if folder else [BUILT_IN]


@lru_cache(maxsize=8)
def read(folder: Path | None, name: str, *, rows: int = BUILT_IN_ROWS) -> tuple[pa.Table, Constraints]:
    """A table and its constraints; soft are those that the table itself breaks."""
    if folder is None or name == BUILT_IN:
        return tax(rows), Constraints.parse(TAX_CONSTRAINTS)
    table = read_table(folder / name / f"{name}.csv")
    rules = Constraints.parse((folder / name / f"{name}.ic").read_text())
    items = (replace(c, strength=SOFT if count_violations(table, c) else HARD) for c in rules)
    return table, Constraints(tuple(items))


def load(folder: Path | None, name: str) -> tuple[pa.Table, Constraints]:
    """A table and its hard constraints."""
    table, rules = read(folder, name)
    return table, Constraints(tuple(c for c in rules if c.is_hard))


def measure(table: pa.Table, made: pa.Table, rules: Constraints) -> dict[str, Any]:
    """Distances over all attributes and over the narrow ones, by width and by mass; rank errors; violations."""
    pair, by_mass = bin_tables(table, made), bin_tables_by_mass(table, made)
    narrow = [name for name in pair.sizes if pair.sizes[name] <= WIDE]
    return {
        "one": distances_of(pair, order=1).mean,
        "two": distances_of(pair, order=2).mean,
        "three": compare_marginals(pair, order=3, limit=TRIPLES).mean,
        "mass_one": distances_of(by_mass, order=1).mean,
        "mass_two": distances_of(by_mass, order=2).mean,
        "rank": compare_ranks(table, made).mean_error,
        "narrow_one": distances_of(pair, order=1, names=narrow).mean,
        "narrow_two": distances_of(pair, order=2, names=narrow).mean,
        "violations": sum(count_violations(made, c) for c in rules),
    }
