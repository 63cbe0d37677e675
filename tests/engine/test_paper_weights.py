"""The noisy violation matrix of a sample: bounded in what a row can do, within the budget, nothing around the gate."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.constraints import Constraints, DenialConstraint
from kamino.engine.paper_weights import (
    SAMPLING_RATE,
    _least,
    matrix_sensitivity,
    paper_noise,
    release_violation_matrix,
    violation_matrix,
)
from kamino.engine.rates import model_share
from kamino.privacy import Budget, Gate, Neighbours, PoissonGaussianEvent, SeededNoise, multiplier_for
from kamino.privacy.private import PrivateCodes
from kamino.schema import Codec, Integer, Schema

CODEC = Codec(Schema(attributes={n: Integer(min=0, max=3, nullable=True) for n in "abc"}))
RULES = Constraints.parse(
    "soft: a -> b\nsoft: key (b)\nsoft: not (t1.a < t2.a and t1.c >= t2.c)\nsoft: check (a >= 2)\na -> c\n"
    "weight 2: b -> a"
)
SOFT = tuple(c for c in RULES if c.strength.kind.value == "soft")


def made(num_rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table({n: pa.array(rng.integers(0, 4, num_rows), mask=rng.random(num_rows) < 0.1) for n in "abc"})


def matrix(rows: np.ndarray, constraints: tuple[DenialConstraint, ...] = SOFT) -> np.ndarray:
    return violation_matrix(CODEC, {n: rows[:, i] for i, n in enumerate("abc")}, constraints)


@examples(100, suppress_health_check=list(HealthCheck))
@given(st.integers(2, 9), st.integers(0, 10**6))
def test_the_matrix_moves_within_its_sensitivity(most: int, seed: int) -> None:
    """A row comes into a free place, or gives way to another: the two moves that the proof is made of."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 5, (most, 3))
    other = rows.copy()
    other[0] = rng.integers(0, 5, 3)
    bound = matrix_sensitivity(SOFT, most) * (1 + 1e-12)
    assert np.linalg.norm(matrix(rows) - matrix(other)) <= bound
    grown = np.zeros_like(matrix(rows))
    grown[1:] = matrix(rows[1:])
    assert np.linalg.norm(matrix(rows) - grown) <= bound


def test_the_bound_is_reached() -> None:
    pairs = tuple(c for c in SOFT if not c.is_unary)[1:2]
    rows = np.zeros((7, 3), dtype=np.int64)
    other = rows.copy()
    other[0, 1] = 4
    assert np.linalg.norm(matrix(rows, pairs) - matrix(other, pairs)) == math.sqrt(42) == matrix_sensitivity(pairs, 7)
    assert matrix_sensitivity(SOFT, 7) == math.sqrt(3 * 42 + 1)


@pytest.mark.parametrize("sample_rows", [3, 12, 40])
def test_replay_passes_for_the_violation_matrix(sample_rows: int, replays: Callable[..., None]) -> None:
    def run(table: pa.Table, gate: Gate) -> Any:
        found = release_violation_matrix(
            PrivateCodes(CODEC.encode(table)),
            CODEC,
            RULES,
            gate,
            sample_rows=sample_rows,
            noise_multiplier=9.0,
            num_rows=30,
        )
        return found.values

    replays(run, made(30), epsilon=3.0)


def test_exact_entries_are_counts_within_the_sample() -> None:
    table = made(30)
    found = release_violation_matrix(
        PrivateCodes(CODEC.encode(table)),
        CODEC,
        RULES,
        Gate(Budget(epsilon=math.inf, delta=1e-6)),
        sample_rows=30,
        noise_multiplier=0.0,
        num_rows=30,
    )
    coded = CODEC.encode(table)
    expected = matrix(np.column_stack([coded[n] for n in "abc"]))
    assert sorted(found.values.tolist()) == sorted(expected.tolist())
    assert found.constraints == SOFT


@pytest.mark.slow
@pytest.mark.parametrize("relation", list(Neighbours))
def test_noise_of_the_paper_fits_the_budget(relation: Neighbours) -> None:
    gate = Gate(Budget(epsilon=1.0, delta=1e-6, neighbours=relation), noise=SeededNoise(1))
    gate.release_row_count(30, noise_multiplier=50.0)
    noise = paper_noise(RULES, gate)
    model = multiplier_for(gate.gaussian_left() * model_share(RULES))
    gate.release_row_count(30, noise_multiplier=model)
    coded = CODEC.encode(made(30))
    release_violation_matrix(
        PrivateCodes(coded),
        CODEC,
        RULES,
        gate,
        sample_rows=5,
        noise_multiplier=noise,
        num_rows=30,
        sampling_rate=SAMPLING_RATE,
    )
    assert 0.999 < gate.ledger.spent() <= 1.0


@pytest.mark.parametrize("needed", [0.31, 0.7, 1.3, 2.1, 90.0])
def test_the_least_noise_that_fits_is_found(needed: float) -> None:
    found = _least(lambda noise: needed / noise, 1.0)
    assert needed <= found <= 1.001 * needed
    flat = _least(lambda noise: 0.5 if noise >= needed else 2.0, 1.0)
    assert needed <= flat <= 1.001 * needed


def test_events_are_what_is_charged() -> None:
    gate = Gate(Budget(epsilon=3.0, delta=1e-6), noise=SeededNoise(1))
    facts = {"sample_rows": 3, "noise_multiplier": 2.0, "num_rows": 30}
    release_violation_matrix(PrivateCodes(CODEC.encode(made(30))), CODEC, RULES, gate, **facts)
    assert gate.ledger.entries[0].events == ((PoissonGaussianEvent(noise_multiplier=2.0, sampling_rate=0.1), 1),)
    hard = Constraints.parse("a -> b")
    assert paper_noise(hard, gate) == 0.0
    assert release_violation_matrix(PrivateCodes(CODEC.encode(made(30))), CODEC, hard, gate, **facts).constraints == ()
    assert len(gate.ledger.entries) == 1
