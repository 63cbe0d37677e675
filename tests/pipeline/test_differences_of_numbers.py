"""A whole run on a table with a sum and a wide category: what is measured more, by difference or again, is as planned.

Names are counted again because their noise is in every pair; overtime is measured with the difference of two columns.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

from kamino.constraints import Constraints
from kamino.model.marginal.columns.resolution import Resolution
from kamino.model.marginal.frame import Frame
from kamino.pipeline import Settings
from kamino.pipeline.fitting import fit, open_gate
from kamino.pipeline.output.drawn_table import draw
from kamino.pipeline.plan.run_plan import plan_table
from kamino.privacy import Gate, Neighbours
from kamino.privacy.private import PrivateTable
from kamino.schema import Boolean, Categorical, Integer, Schema

NAMES = [f"n{i:03}" for i in range(200)]
SCHEMA = Schema(
    attributes={
        "name": Categorical(values=NAMES),
        "regular": Integer(min=0, max=11),
        "gross": Integer(min=0, max=17, nullable=True),
        "overtime": Boolean(),
        **{f"place{i}": Categorical(values=["a", "b", "c"]) for i in range(4)},
    }
)
RULES = Constraints.parse("check (regular <= gross)")


def pay(rows: int = 6000, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    share = rng.pareto(1.5, len(NAMES)) + 0.2
    regular = rng.integers(0, 12, rows)
    overtime = rng.random(rows) < 0.3
    gross = regular + np.where(overtime, rng.integers(3, 6, rows), rng.integers(0, 3, rows))
    return pa.table(
        {
            "name": rng.choice(NAMES, rows, p=share / share.sum()),
            "regular": regular,
            "gross": pa.array(gross, mask=rng.random(rows) < 0.05),
            "overtime": overtime,
            **{f"place{i}": rng.choice(["a", "b", "c"], rows, p=[0.7, 0.2, 0.1]) for i in range(4)},
        }
    )


def measured_by(frames: list[Resolution]) -> Any:
    """Write down at which resolutions a fit measures."""
    original = Frame.measure

    def measure(self: Frame, *args: Any, **others: Any) -> Any:
        frames.append(args[4] if len(args) > 4 else Resolution.BINS)
        return original(self, *args, **others)

    return patch.object(Frame, "measure", measure)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_ledger_is_what_was_planned_with_differences(seed: int, neighbours: Neighbours) -> None:
    options = Settings(epsilon=1.0, neighbours=neighbours, seed=seed)
    private, gate, resolutions = PrivateTable(pay()), open_gate(options), []
    plan = plan_table(private, SCHEMA, RULES, options)
    with measured_by(resolutions):
        fit(private, plan, gate)
    entries = gate.ledger.entries
    assert plan.schedule.differences(entries, neighbours) == ()
    assert Resolution.GAPS in resolutions
    assert sum(entry.attributes == ("name",) for entry in entries) > 1


@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, pytest.param(Neighbours.REPLACE, marks=pytest.mark.slow)])
def test_replay_passes_for_differences_of_numbers(replays: Any, relation: Neighbours) -> None:
    """What is read by differences, and what is counted again, follows from releases on every neighbour and stranger."""
    resolutions: list[Resolution] = []

    def run(table: pa.Table, gate: Gate) -> Any:
        options = Settings(neighbours=gate.budget.neighbours, epsilon=gate.budget.epsilon)
        private = PrivateTable(table)
        with measured_by(resolutions):
            fitted = fit(private, plan_table(private, SCHEMA, RULES, options), gate)
        bundle = fitted.to_bundle()
        return draw(fitted, 50, np.random.default_rng(7)), dict(bundle.texts), dict(bundle.arrays)

    replays(run, pay(1500), epsilon=8.0, relations=(relation,))
    assert Resolution.GAPS in resolutions
