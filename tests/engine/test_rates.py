"""Noisy violation rates: true without noise, bounded in what a row can do, near with noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.sampling.fakes import FakeModel
from tests.trying import examples

from kamino.constraints import Constraints, count_violations
from kamino.engine import rates
from kamino.engine.rates import RateEstimates, model_share, release_rates
from kamino.privacy import Budget, Gate, Neighbours, SeededNoise
from kamino.privacy.private import PrivateCodes
from kamino.schema import Codec, Integer, Schema
from kamino.testing.replay import add_row, assert_replay, remove_row, replace_row

CODEC = Codec(
    Schema(
        attributes={
            "a": Integer(min=0, max=4, nullable=True),
            "b": Integer(min=0, max=3, nullable=True),
            "c": Integer(min=0, max=99_999, nullable=True),
        }
    )
)
RULES = Constraints.parse(
    "soft: a -> b\nsoft: key (b)\nsoft: not (t1.a < t2.a and t1.c >= t2.c)\nsoft: check (a >= 2)\na -> c\n"
    "weight 2: b -> a\nsoft: not (t1.a <= t2.a and t1.b >= t2.b)"
)


class SaidModel(FakeModel):
    """A model that says how many rows there are, and that all values are equally likely."""

    def __init__(self, num_rows: float) -> None:
        super().__init__(CODEC, list(CODEC.attributes))
        self.num_rows = num_rows

    def marginal(self, attributes: tuple[str, ...]) -> np.ndarray:
        (name,) = attributes
        return np.full(CODEC[name].size, 1 / CODEC[name].size)


def made(num_rows: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "a": pa.array(rng.integers(0, 5, num_rows), mask=rng.random(num_rows) < 0.1),
            "b": pa.array(rng.integers(0, 4, num_rows), mask=rng.random(num_rows) < 0.1),
            "c": pa.array(rng.integers(0, 100_000, num_rows)),
        }
    )


def run(table: pa.Table, gate: Gate, *, num_rows: float = 60.0, noise_multiplier: float = 9.0) -> RateEstimates:
    model = SaidModel(num_rows)
    return release_rates(
        PrivateCodes(CODEC.encode(table)), CODEC, RULES, gate, model=model, noise_multiplier=noise_multiplier
    )


def truth(table: pa.Table) -> list[float]:
    soft = [c for c in RULES if c.strength.kind.value == "soft"]
    every = {True: table.num_rows, False: math.comb(table.num_rows, 2)}
    return [count_violations(table, c) / every[c.is_unary] for c in soft]


def test_exact_rates_are_true() -> None:
    table = made(200)
    found = run(table, Gate(Budget(epsilon=math.inf, delta=1e-6)), num_rows=200)
    assert [each.rate for each in found.items] == pytest.approx(truth(table), abs=1e-4)
    assert [each.deviation for each in found.items] == [0.0] * 5


@pytest.mark.parametrize("num_rows", [2.0, 39.0, 40.0, 41.0, 400.0])
def test_replay_passes_for_rates(num_rows: float, replays: Callable[..., None]) -> None:
    """The noisy number of rows may be below, at or above the true one: the sensitivity must hold for each."""

    def seen(table: pa.Table, gate: Gate) -> Any:
        return run(table, gate, num_rows=num_rows, noise_multiplier=30.0).to_json()

    table = made(40)
    replays(seen, table)


@examples(60, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 12), st.integers(0, 10**6), st.integers(2, 15), st.data())
def test_rates_move_within_their_sensitivity(num_rows: int, seed: int, public: int, data: st.DataObject) -> None:
    """Replay compares what a row moves with what was declared; small groups with a small cap come near the bound."""
    table = made(num_rows, seed)
    row = {
        "a": data.draw(st.sampled_from([None, 0, 2, 4])),
        "b": data.draw(st.sampled_from([None, 0, 3])),
        "c": data.draw(st.sampled_from([None, 0, 99_999])),
    }
    place = data.draw(st.integers(0, num_rows - 1))

    def seen(some: pa.Table, gate: Gate) -> Any:
        return run(some, gate, num_rows=public, noise_multiplier=9.0).to_json()

    grow, other = Neighbours.ADD_REMOVE, Neighbours.REPLACE
    moves = ((grow, add_row(table, row)), (grow, remove_row(table, place)), (other, replace_row(table, place, row)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rates, "_MORE_ROWS", 0)
        for relation, neighbour in moves:
            assert_replay(seen, table, neighbour, budget=Budget(epsilon=1.0, delta=1e-6, neighbours=relation))


def test_noise_is_as_large_as_stated() -> None:
    """Twenty runs of five rates: the mean squared error in stated deviations is 1 within 0.5 (> 3 sigma)."""
    table = made(3000)
    true = np.array(truth(table))
    errors = []
    for seed in range(20):
        gate = Gate(Budget(epsilon=1.0, delta=1e-6), noise=SeededNoise(seed))
        found = run(table, gate, num_rows=3000, noise_multiplier=15.0).items
        errors.append([(e.rate - t) / e.deviation for e, t in zip(found, true, strict=True)])
    assert np.mean(np.square(errors)) == pytest.approx(1.0, abs=0.5)


def test_small_groups_need_little_noise() -> None:
    """A row violates with its group at most: a fifth of the rows, so about a fifth of the noise."""
    found = run(made(20_000), Gate(Budget(epsilon=1.0, delta=1e-6)), num_rows=20_000).items
    assert found[0].deviation < 0.25 * found[2].deviation


def test_nothing_soft_costs_nothing() -> None:
    gate = Gate(Budget(epsilon=1.0, delta=1e-6))
    coded = CODEC.encode(made(10))
    found = release_rates(
        PrivateCodes(coded), CODEC, Constraints.parse("a -> b"), gate, model=SaidModel(10), noise_multiplier=9.0
    )
    assert found == RateEstimates()
    assert not gate.ledger.to_rows()


def test_rates_take_their_share_only_if_something_is_soft() -> None:
    assert model_share(RULES) == 1 - rates.RATES_SHARE
    assert model_share(Constraints.parse("a -> b\nweight 2: b -> a")) == 1.0


def test_estimates_survive_json() -> None:
    found = run(made(50), Gate(Budget(epsilon=1.0, delta=1e-6)))
    assert RateEstimates.from_json(found.to_json(), RULES) == found
