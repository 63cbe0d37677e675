"""A matrix made from a random sample: sampling, cutting, places, noise, charges, replay."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kamino.errors import BudgetError, PrivacyError
from kamino.privacy import Budget, Gate, Neighbours, PoissonGaussianEvent, PrivacyUnit, SeededNoise
from kamino.privacy.mechanisms.samples import SamplePlan, sample_by_value
from kamino.testing.replay import replay

PLAN = SamplePlan(
    what="ones",
    attributes=("x",),
    sample_rows=8,
    sampling_rate=0.2,
    noise_multiplier=3.0,
    num_columns=2,
    sensitivity=5.0,
)
BUDGET = Budget(epsilon=5.0, delta=1e-6)


def rows(count: int = 40) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 6, (count, 2))


def ones(places: np.ndarray) -> np.ndarray:
    return np.ones((len(places), 2), dtype=np.int64)


def test_values_are_sampled_at_the_rate() -> None:
    # 3,000 coins for 12 rows, most of them alike, at rate 0.3: a row's count has deviation 25; 6 fail once in 10^7.
    table = np.array([[1, 1]] * 9 + [[2, 1], [1, 2], [3, 3]])
    seen = np.zeros((3_000, 12))
    for number in range(3_000):
        places, names = sample_by_value(table, number.to_bytes(32, "little"), rate=0.3, most=12)
        assert len(set(names)) == len(places)
        seen[number, places] = 1
    assert np.all(np.abs(seen.sum(axis=0) - 900) < 6 * 25.1)
    together = (seen[:, :1] * seen[:, 1:]).mean(axis=0)
    assert np.all(np.abs(together - 0.09) < 6 * math.sqrt(0.09 / 3_000))


def test_too_large_samples_are_cut_at_random() -> None:
    # Each of 10 rows is among 4 kept ones in 2 of 5 cases: 800 of 2,000, deviation 22.
    table = np.arange(10)[:, None]
    kept = [sample_by_value(table, i.to_bytes(32, "little"), rate=1.0, most=4)[0] for i in range(2_000)]
    assert all(len(each) == 4 for each in kept)
    assert np.all(np.abs(np.bincount(np.concatenate(kept)) - 800) < 6 * 22)


def test_other_rows_keep_their_coins() -> None:
    coins, table = b"k" * 32, rows(200)
    _, names = sample_by_value(table, coins, rate=0.5, most=200)
    for neighbour in (table[1:], np.delete(table, 77, axis=0), np.vstack([table, [[9, 9]]]), table[::-1]):
        _, others = sample_by_value(neighbour, coins, rate=0.5, most=200)
        assert len({*names} ^ {*others}) <= 1


def test_a_sample_is_charged_before_any_draw() -> None:
    gate = Gate(BUDGET, noise=SeededNoise(1))
    found = gate.release_sample(rows(), ones, PLAN)
    assert found.shape == (8, 2)
    (entry,) = gate.ledger.entries
    assert entry.events == ((PoissonGaussianEvent(noise_multiplier=3.0, sampling_rate=0.2), 1),)
    assert (entry.sigma, entry.sensitivity) == (15.0, 5.0)
    with pytest.raises(BudgetError, match="Nothing was drawn"):
        Gate(Budget(epsilon=0.001, delta=1e-9), noise=_NoCoins()).release_sample(rows(), ones, PLAN)


class _NoCoins(SeededNoise):
    def __init__(self) -> None:
        super().__init__(0)

    def coins(self) -> bytes:
        raise AssertionError("something was drawn")


def test_the_size_of_the_sample_does_not_show() -> None:
    """Without noise, as many lines are 1 as rows were sampled; free places are anywhere."""
    first_lines = []
    for _ in range(60):
        gate = Gate(Budget(epsilon=math.inf, delta=1e-6))
        found = gate.release_sample(rows(), ones, replace(PLAN, sampling_rate=0.1))
        assert found.shape == (8, 2)
        assert set(found.ravel().tolist()) <= {0, 1}
        first_lines.append(int(found[0, 0]))
    # About 4 of 8 places are taken: that the first always is, or never, has probability 1e-17.
    assert 0 < sum(first_lines) < 60


def test_noise_has_the_declared_deviation() -> None:
    # 40,000 numbers of deviation 15: known within 0.4%.
    wide = replace(PLAN, num_columns=5_000)
    found = Gate(BUDGET, noise=SeededNoise(5)).release_sample(
        np.zeros((0, 1), np.int64), lambda places: np.zeros((len(places), 5_000), np.int64), wide
    )
    assert np.std(found) == pytest.approx(15.0, rel=0.02)


def run(table: Any, gate: Gate) -> np.ndarray:
    return gate.release_sample(table, ones, PLAN)


@pytest.mark.parametrize("relation", list(Neighbours))
def test_replay_passes_for_a_sample(relation: Neighbours) -> None:
    table, budget = rows(), Budget(epsilon=5.0, delta=1e-6, neighbours=relation)
    other = table.copy()
    other[5] = [9, 9]
    changes = (other,) if relation is Neighbours.REPLACE else (table[1:], table[:-1], np.vstack([table, [[9, 9]]]))
    for neighbour in changes:
        report = replay(run, table, neighbour, budget=budget)
        assert report.problems == ()
        assert report.num_releases == 2


def test_replay_sees_a_sensitivity_that_is_too_small() -> None:
    def greedy(table: Any, gate: Gate) -> np.ndarray:
        plan = replace(PLAN, sampling_rate=1.0, sample_rows=60, sensitivity=5.0)
        return gate.release_sample(table, lambda places: np.full((len(places), 2), len(places)), plan)

    problems = replay(greedy, rows(), rows()[1:], budget=Budget(epsilon=50.0, delta=1e-6)).problems
    assert any("declared sensitivity" in each for each in problems)


def test_units_of_several_rows_are_refused() -> None:
    gate = Gate(BUDGET, unit=PrivacyUnit(column="who", max_rows=3))
    with pytest.raises(PrivacyError, match="single rows"):
        gate.release_sample(rows(), ones, PLAN)


@pytest.mark.parametrize("change", [{"sample_rows": 0}, {"num_columns": 0}, {"sensitivity": math.inf}])
def test_plans_that_mean_nothing_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PrivacyError):
        replace(PLAN, **change)
    with pytest.raises(PrivacyError, match="noise multiplier"):
        Gate(BUDGET).release_sample(rows(), ones, replace(PLAN, noise_multiplier=0.0))
