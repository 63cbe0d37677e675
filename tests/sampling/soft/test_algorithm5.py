"""The paper's weights: where they start, which way they move, what they mean."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.sampling.fakes import integers

from kamino.constraints import Constraints
from kamino.engine.paper_weights import NoisyMatrix
from kamino.pipeline.weighing import paper_weights
from kamino.privacy import Budget, Gate
from kamino.privacy.private import PrivateCodes
from kamino.sampling import build_plan
from kamino.sampling.soft.algorithm5 import START, learn_weights
from kamino.sampling.soft.prices import Per, Weight, price_of
from kamino.sampling.soft.weights import FoundWeight, FoundWeights

CODEC = integers(a=4, b=4)
RULES = Constraints.parse("soft: a -> b\nsoft: key (b)\nsoft: check (b < 2)")
FIRST = next(iter(RULES))
PLAN = build_plan(CODEC, RULES, sequence=["a", "b"])


def learned(values: np.ndarray) -> list[float]:
    matrix = NoisyMatrix(constraints=tuple(RULES), values=values)
    return [each.weight for each in learn_weights(matrix, PLAN, np.random.default_rng(1)).items]


def test_weights_fall_from_the_start() -> None:
    assert learned(np.full((50, 3), -7)) == [START] * 3
    some = np.zeros((50, 3), dtype=np.int64)
    some[:5, 0], some[:, 1], some[0, 2] = 1, 1, 1
    few, all_lines, one_line = learned(some)
    assert all_lines == 0.0
    assert 0 < few < one_line < START


def test_huge_noise_leaves_the_start_value() -> None:
    """Lines that are far from 0 give the objective no slope: what the paper's noise does to its own method."""
    noise = np.random.default_rng(2).normal(0, 5_000, (100, 3)).astype(np.int64)
    assert learned(noise) == pytest.approx([START] * 3)


def test_untreated_constraints_get_no_weight() -> None:
    rules = Constraints.parse("a -> b\nsoft: key (a, b)")
    plan = build_plan(CODEC, rules, sequence=["a", "b"])
    soft = plan.untreated
    found = learn_weights(
        NoisyMatrix(constraints=soft, values=np.zeros((5, 1), np.int64)), plan, np.random.default_rng(1)
    )
    assert found.weights == {soft[0]: Weight(0.0, Per.VIOLATION)}


def test_prices_say_what_weights_mean() -> None:
    dependency, _, single = RULES
    assert price_of(dependency, {dependency: Weight(8.0)}, 100) == 0.08
    assert price_of(dependency, {dependency: Weight(8.0, Per.VIOLATION)}, 100) == 8.0
    assert (
        price_of(single, {single: Weight(8.0)}, 100)
        == price_of(single, {single: Weight(8.0, Per.VIOLATION)}, 100)
        == 8.0
    )
    (fixed,) = Constraints.parse("weight 2.5: a -> b")
    assert price_of(fixed, {}, 100) == 2.5


def test_the_meaning_survives_json() -> None:
    found = FoundWeights(items=(FoundWeight(constraint=FIRST, weight=0.5, per_violation=True),))
    again = FoundWeights.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False)), RULES)
    assert again == found
    assert again.weights[FIRST].per is Per.VIOLATION
    assert again.targets == {}


def test_replay_passes_for_paper_weights(replays: Callable[..., None]) -> None:
    def run(table: pa.Table, gate: Gate) -> Any:
        # Nulls are no values here: the neighbour's row of nulls becomes the nearest code.
        codes = {n: np.nan_to_num(table[n].to_numpy(zero_copy_only=False)).astype(np.int64) for n in "ab"}
        coded = CODEC.encode(pa.table(codes))
        found = paper_weights(
            PrivateCodes(coded),
            CODEC,
            PLAN,
            RULES,
            gate,
            sample_rows=10,
            noise_multiplier=6.0,
            num_rows=40,
            rng=np.random.default_rng(3),
        )
        return found.to_json()

    rng = np.random.default_rng(1)
    replays(run, pa.table({n: rng.integers(0, 4, 40) for n in "ab"}), epsilon=3.0)


def test_without_noise_the_weights_are_learned_from_true_counts() -> None:
    coded = CODEC.encode(pa.table({"a": np.arange(40) % 4, "b": np.arange(40) % 4}))
    gate = Gate(Budget(epsilon=math.inf, delta=1e-6))
    found = paper_weights(
        PrivateCodes(coded),
        CODEC,
        PLAN,
        RULES,
        gate,
        sample_rows=40,
        noise_multiplier=0.0,
        num_rows=40,
        rng=np.random.default_rng(3),
    )
    kept, broken, half = (each.weight for each in found.items)
    assert kept == START
    assert broken <= START
    assert half < START
