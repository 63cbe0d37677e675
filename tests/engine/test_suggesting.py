"""Suggested constraints: what was planted is found, chance is not, and nothing leaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from kamino.constraints import Constraints
from kamino.engine.suggesting import suggest_constraints
from kamino.privacy import Budget, Gate, SeededNoise


def made(num_rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    town, sort, pay = rng.integers(0, 40, num_rows), rng.integers(0, 6, num_rows), rng.integers(0, 1000, num_rows)
    return pa.table(
        {
            "number": [f"n{i}" for i in range(num_rows)],
            "town": [f"t{i}" for i in town],
            "county": town % 7,
            "sort": sort,
            "fee": (town % 7 * 3 + sort * 5) % 11,
            "pay": pay,
            "tax": pa.array(pay // 10, mask=rng.random(num_rows) < 0.01),
            "coin": rng.integers(0, 2, num_rows),
        }
    )


def test_planted_constraints_are_suggested() -> None:
    gate = Gate(Budget(epsilon=0.5, delta=1e-6), noise=SeededNoise(4))
    found = suggest_constraints(made(20_000), gate, ordered=("pay", "tax", "coin"))
    lines = {each.line for each in found}
    assert {"key (number)", "town -> county", "pay -> tax"} <= lines
    assert "county, sort -> fee" in lines
    assert "not (t1.pay < t2.pay and t1.tax > t2.tax)" in lines
    assert not any(line.endswith(("-> coin", "-> town", "-> pay")) for line in lines)
    assert not any("coin <" in line or "coin >" in line for line in lines)
    assert len(Constraints.parse("\n".join(map(str, found)))) == len(found)


def test_the_budget_is_spent_in_two_releases() -> None:
    gate = Gate(Budget(epsilon=0.5, delta=1e-6), noise=SeededNoise(4))
    suggest_constraints(made(2_000), gate)
    assert len(gate.ledger.to_rows()) == 2
    assert 0.49 < gate.ledger.spent() <= 0.5


def test_replay_passes_for_suggestions(replays: Callable[..., None]) -> None:
    def run(table: pa.Table, gate: Gate) -> Any:
        return [str(each) for each in suggest_constraints(table, gate, ordered=("pay", "tax"))]

    replays(run, made(60))


def test_an_empty_table_suggests_nothing() -> None:
    gate = Gate(Budget(epsilon=0.5, delta=1e-6), noise=SeededNoise(4))
    assert not any("->" in each.line for each in suggest_constraints(made(0), gate))
