"""A whole run on a table of yes and no: parities are measured as planned, and follow from releases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kamino.constraints import Constraints
from kamino.pipeline import Settings
from kamino.pipeline.fitting import fit, open_gate
from kamino.pipeline.output.drawn_table import draw
from kamino.pipeline.plan.run_plan import plan_table
from kamino.privacy import Gate, Neighbours
from kamino.privacy.private import PrivateTable
from kamino.schema import Boolean, Integer, Schema

NAMES = [f"answer{i}" for i in range(7)]
SCHEMA = Schema(
    attributes={**{name: Boolean(nullable=i == 0) for i, name in enumerate(NAMES)}, "age": Integer(min=0, max=99)}
)
RULES = Constraints.parse("check (not (answer1 = true and answer2 = true))")


def answers(rows: int = 6000, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    bits = [rng.random(rows) < 0.2 + age / 200 for _ in NAMES]
    bits[2] &= ~bits[1]
    bits[6] = np.where(rng.random(rows) < 0.5, bits[4] ^ bits[5], bits[6])
    columns = {name: pa.array(bit) for name, bit in zip(NAMES, bits, strict=True)}
    columns[NAMES[0]] = pa.array(bits[0], mask=rng.random(rows) < 0.1)
    return pa.table({**columns, "age": age})


def parities(entries: Any) -> int:
    return sum(entry.what == "3-way interaction" for entry in entries)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_the_ledger_is_what_was_planned_with_parities(neighbours: Neighbours) -> None:
    options = Settings(epsilon=2.0, neighbours=neighbours, seed=3)
    private, gate = PrivateTable(answers()), open_gate(options)
    plan = plan_table(private, SCHEMA, RULES, options)
    fit(private, plan, gate)
    assert plan.schedule.differences(gate.ledger.entries, neighbours) == ()
    assert parities(gate.ledger.entries) > 5


@pytest.mark.parametrize("rules", ["", "answer3 -> answer4\nanswer5, answer6 -> answer1"])
@pytest.mark.parametrize("neighbours", Neighbours)
def test_columns_that_say_nothing_new_are_no_trouble(neighbours: Neighbours, rules: str) -> None:
    """One value, nothing but null, the same column twice, and columns that follow from others."""
    table = answers(3000)
    bits = [table[name] for name in NAMES]
    bits[0], bits[2] = pa.nulls(3000, pa.bool_()), pa.array(np.ones(3000, dtype=bool))
    bits[1], bits[4] = pa.array(np.logical_and(bits[5], bits[6])), bits[3]
    same = pa.table({**dict(zip(NAMES, bits, strict=True)), "age": table["age"]})
    options = Settings(epsilon=2.0, neighbours=neighbours, seed=3)
    private, gate = PrivateTable(same), open_gate(options)
    plan = plan_table(private, SCHEMA, Constraints.parse(rules), options)
    fitted = fit(private, plan, gate)
    assert plan.schedule.differences(gate.ledger.entries, neighbours) == ()
    assert draw(fitted, 200, np.random.default_rng(1)).num_rows == 200


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_next_to_no_rows_have_no_parities(rows: int) -> None:
    options = Settings(epsilon=2.0, seed=3)
    private, gate = PrivateTable(answers().slice(0, rows)), open_gate(options)
    fitted = fit(private, plan_table(private, SCHEMA, RULES, options), gate)
    assert parities(gate.ledger.entries) == 0
    assert draw(fitted, 20, np.random.default_rng(1)).num_rows == 20


def test_replay_passes_for_parities(replays: Any) -> None:
    """Which parities are measured, and what of them is believed, follows from releases on neighbours and strangers."""
    measured: list[int] = []

    def run(table: pa.Table, gate: Gate) -> Any:
        options = Settings(neighbours=gate.budget.neighbours, epsilon=gate.budget.epsilon)
        private = PrivateTable(table)
        fitted = fit(private, plan_table(private, SCHEMA, RULES, options), gate)
        measured.append(parities(gate.ledger.entries))
        bundle = fitted.to_bundle()
        return draw(fitted, 50, np.random.default_rng(7)), dict(bundle.texts), dict(bundle.arrays)

    replays(run, answers(1500), epsilon=8.0)
    assert max(measured) > 5
