"""Random databases are drawn without a violation, or refused before anything is spent."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.databases.random_databases import random_database

from kamino.databases.synthesizer_of_databases import DatabaseSynthesizer
from kamino.errors import ConstraintErrors, SchemaError

SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 300))]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_databases_hold(seed: int, tmp_path: Path) -> None:
    """What is written breaks nothing, by a count in what was written: `write` refuses anything else."""
    made = random_database(seed)
    try:
        synthesizer = DatabaseSynthesizer(made.schema, made.rules, epsilon=2.0, seed=seed)
        synthesizer.layout(made.tables)
    except (SchemaError, ConstraintErrors):
        return  # before anything is spent
    written = synthesizer.fit(made.tables).write(tmp_path / "out", 25)
    certificate = written.certificate
    counted = [*certificate["rules"], *certificate["foreign_keys"], *certificate["keys"]]
    assert sum(next(v for k, v in each.items() if k != "text") for each in counted) == 0
    assert written.rows["t0"] == 25
