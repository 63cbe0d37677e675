"""Soft constraints: the law of the blocks, weights that match measured rates, and what the plan says of them."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from tests.sampling.fakes import FakeModel, integers

from kamino.constraints import Constraints, DenialConstraint, print_constraint
from kamino.engine.rates import RateEstimate, RateEstimates
from kamino.sampling import DrawOptions, StepKind, Weight, build_plan, draw_table
from kamino.sampling.partners import rates_of
from kamino.sampling.soft.soft_notes import soft_notes
from kamino.sampling.soft.sweeps import SweepLog
from kamino.sampling.soft.weights import HEAVIEST, FoundWeights, _found, find_weights, target_of
from kamino.sampling.steps import blocks
from kamino.schema import Codec

ORDER = "soft: not (t1.a < t2.a and t1.b > t2.b)"


def problem(text: str, **sizes: int) -> tuple[Codec, FakeModel, list[DenialConstraint]]:
    codec = integers(**sizes)
    return codec, FakeModel(codec, list(sizes), sharpness=0.5), list(Constraints.parse(text))


def found(text: str, rate: float, deviation: float, *, num_rows: int, **sizes: int) -> tuple[FoundWeights, float]:
    """The weights for one constraint, and the rate of a table of twice as many rows drawn with them."""
    codec, model, (constraint,) = problem(text, **sizes)
    plan = build_plan(codec, [constraint], sequence=list(sizes))
    rng = np.random.default_rng(3)
    rates = RateEstimates(items=(RateEstimate(constraint=constraint, rate=rate, deviation=deviation),))
    weights = find_weights(plan, model, codec, rates, rng, num_rows=num_rows)
    table = draw_table(
        plan, model, codec, 2 * num_rows, rng, DrawOptions(weights=weights.weights, targets=weights.targets)
    )
    return weights, rates_of(codec, table, [constraint])[constraint]


def test_blocks_follow_their_law() -> None:
    """Three rows are drawn one by one: 700 tables against all eight, each share within 4 deviations (6e-4 in all)."""
    codec, model, constraints = problem("weight 0.8: key (b)\nweight 0.5: check (b < 1)", b=2)
    plan = build_plan(codec, constraints)
    rng, draws = np.random.default_rng(1), 700
    seen = Counter(
        tuple(draw_table(plan, model, codec, 3, rng, DrawOptions(sweeps=5))["b"].tolist()) for _ in range(draws)
    )
    p = model.table("b")
    law = {}
    for rows in product(range(2), repeat=3):
        pairs = sum(rows[i] == rows[j] for i in range(3) for j in range(i))
        law[rows] = math.prod(p[code] for code in rows) * math.exp(-0.8 * pairs - 0.5 * sum(rows))
    total = sum(law.values())
    for rows, weight in law.items():
        share = weight / total
        assert seen[rows] / draws == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / draws))


def test_sharing_lines_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that weigh codes alike are weighed once; each for itself, they take the same codes."""
    codec, model, constraints = problem(f"{ORDER}\nsoft: a -> b", a=5, b=6)
    plan = build_plan(codec, constraints, sequence=["a", "b"])
    options = DrawOptions(weights=dict.fromkeys(constraints, Weight(5.0)), sweeps=2)
    drawn = []
    for few in (1, 1_000):
        monkeypatch.setattr(blocks, "_FEW", few)
        drawn.append(draw_table(plan, model, codec, 2_000, np.random.default_rng(4), options)["b"])
    assert np.array_equal(*drawn)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 60])
def test_points_find_their_places(size: int) -> None:
    """Some codes have no weight, at either end and between, and no point finds them."""
    rng = np.random.default_rng(size)
    weight = rng.random((20, size)) * (rng.random((20, size)) < 0.5)
    weight[:, size // 2] = 1.0
    cumulative, line = np.cumsum(weight, axis=1), rng.integers(0, 20, 500)
    points = rng.random(500)
    points[:40] = np.repeat([0.0, np.nextafter(1.0, 0.0)], 20)
    found = blocks._places_at(cumulative, line, points)
    expected = [
        np.searchsorted(cumulative[k], p * cumulative[k, -1], side="right") for k, p in zip(line, points, strict=True)
    ]
    assert found.tolist() == expected
    assert np.all(weight[line, found] > 0)


def test_weight_zero_changes_nothing() -> None:
    codec, model, constraints = problem(f"{ORDER}\nsoft: a -> b\nsoft: check (b < 2)", a=9, b=9)
    with_soft = build_plan(codec, constraints, sequence=["a", "b"])
    without = build_plan(codec, [], sequence=["a", "b"])
    weights = dict.fromkeys(constraints, Weight(0.0))
    drawn = draw_table(with_soft, model, codec, 500, np.random.default_rng(1), DrawOptions(weights=weights))
    free = draw_table(without, model, codec, 500, np.random.default_rng(1))
    assert all(np.array_equal(drawn[name], free[name]) for name in free)


def test_weights_do_not_depend_on_size() -> None:
    codec, model, (constraint,) = problem(ORDER, a=10, b=10)
    plan = build_plan(codec, [constraint], sequence=["a", "b"])
    rates = []
    for num_rows in (1_500, 12_000):
        table = draw_table(
            plan, model, codec, num_rows, np.random.default_rng(2), DrawOptions(weights={constraint: Weight(15.0)})
        )
        rates.append(rates_of(codec, table, [constraint])[constraint])
    assert rates[0] == pytest.approx(rates[1], rel=0.1)


@pytest.mark.parametrize(
    ("text", "rate", "sizes"),
    [
        ("soft: a -> b", 0.0012, {"a": 60, "b": 10}),
        ("soft: a -> b", 0.01, {"a": 9, "b": 10}),
        (ORDER, 0.1, {"a": 10, "b": 10}),
        pytest.param(ORDER, 0.05, {"a": 50, "b": 500}, marks=pytest.mark.slow),
        ("soft: check (b < 3)", 0.05, {"a": 3, "b": 10}),
    ],
)
def test_planted_rates_are_delivered(text: str, rate: float, sizes: dict[str, int]) -> None:
    weights, delivered = found(text, rate, 0.05 * rate, num_rows=1_500, **sizes)
    assert weights.items[0].unweighted > 3 * rate
    assert delivered == pytest.approx(rate, rel=0.3)


@pytest.mark.parametrize(("a", "b"), [(2, 1), (5, 4), (40, 30), (100, 100)])
def test_keys_may_allow_few_rows(a: int, b: int) -> None:
    """Every combination once is a table, also where samples of the usual size cannot be."""
    text = "key (a, b)\na -> d\nd -> a\nsoft: b -> c"
    codec, model, constraints = problem(text, a=a, b=b, c=6, d=a)
    plan = build_plan(codec, constraints, sequence=["a", "d", "b", "c"])
    rates = RateEstimates(items=(RateEstimate(constraint=constraints[-1], rate=0.02, deviation=0.001),))
    weights = find_weights(plan, model, codec, rates, np.random.default_rng(3), num_rows=2_000)
    assert weights.items[0].weight >= 0


def test_two_constraints_are_matched_together() -> None:
    codec, model, constraints = problem(f"{ORDER}\nsoft: not (t1.a < t2.a and t1.c > t2.c)", a=10, b=10, c=10)
    plan = build_plan(codec, constraints, sequence=["a", "b", "c"])
    rng = np.random.default_rng(3)
    rates = RateEstimates(items=tuple(RateEstimate(constraint=c, rate=0.1, deviation=0.01) for c in constraints))
    weights = find_weights(plan, model, codec, rates, rng, num_rows=1_000)
    table = draw_table(plan, model, codec, 3_000, rng, DrawOptions(weights=weights.weights, targets=weights.targets))
    assert list(rates_of(codec, table, constraints).values()) == pytest.approx([0.1, 0.1], rel=0.2)


def test_kept_rates_get_weight_zero() -> None:
    for rate, deviation in ((0.4, 0.01), (0.3, 0.08), (-0.1, 0.3)):
        weights, _ = found(ORDER, rate, deviation, num_rows=500, a=10, b=10)
        assert weights.items[0].weight == 0.0
        assert weights.items[0].delivered == weights.items[0].unweighted


def test_negative_rates_get_the_heaviest_weight() -> None:
    weights, delivered = found("soft: check (b < 3)", -0.01, 0.005, num_rows=500, a=3, b=10)
    assert weights.items[0].weight == HEAVIEST
    assert delivered == 0.0
    assert weights.items[0].measured == 0.0, "noise took it below zero, and no part of the pairs is there"
    constraints = Constraints.parse("soft: check (b < 3)")
    assert FoundWeights.from_json(json.loads(json.dumps(weights.to_json())), constraints) == weights


def test_sweeps_are_reported_and_converge() -> None:
    codec, model, (constraint,) = problem(ORDER, a=10, b=10)
    plan = build_plan(codec, [constraint], sequence=["a", "b"])
    seen: list[tuple[str, int, float]] = []
    draw_table(
        plan,
        model,
        codec,
        2_000,
        np.random.default_rng(1),
        DrawOptions(
            weights={constraint: Weight(15.0)},
            sweeps=3,
            on_sweep=lambda name, number, rates: seen.append((name, number, rates[constraint])),
        ),
    )
    assert [(name, number) for name, number, _ in seen] == [("b", 0), ("b", 1), ("b", 2), ("b", 3)]
    assert seen[3][2] == pytest.approx(seen[2][2], rel=0.2)


def test_plan_says_where_soft_constraints_are_weighed() -> None:
    codec = integers(a=5, b=5, c=5)
    rules = Constraints.parse("a -> b\nsoft: key (a, b)\nsoft: b -> c\nweight 2: key (c)")
    plan = build_plan(codec, rules, sequence=["a", "b", "c"])
    lookup, indexed = plan.steps[1], plan.steps[2]
    assert (lookup.kind, lookup.soft) == (StepKind.LOOKUP, ())
    assert indexed.kind is StepKind.INDEXED
    assert [print_constraint(c) for c in indexed.soft] == ["weight 2.0: key (c)", "soft: b -> c"]
    assert [print_constraint(c) for c in plan.untreated] == ["soft: key (a, b)"]
    assert plan.to_json()["untreated"] == ["soft: key (a, b)"]


def test_soft_constraints_break_no_hard_one() -> None:
    codec, model, constraints = problem(f"{ORDER}\ncheck (b <= a)\nc -> a", c=30, a=10, b=10)
    plan = build_plan(codec, constraints, sequence=["c", "a", "b"])
    table = draw_table(
        plan, model, codec, 400, np.random.default_rng(1), DrawOptions(weights={constraints[0]: Weight(200.0)})
    )
    rates = rates_of(codec, table, constraints)
    assert rates[constraints[1]] == rates[constraints[2]] == 0.0
    free = draw_table(plan, model, codec, 400, np.random.default_rng(1))
    assert rates[constraints[0]] < 0.5 * rates_of(codec, free, constraints)[constraints[0]]


@pytest.mark.parametrize("sweeps", [0, 2])
def test_sweeps_are_logged(sweeps: int) -> None:
    codec, model, (constraint,) = problem(ORDER, a=10, b=10)
    plan = build_plan(codec, [constraint], sequence=["a", "b"])
    log, rng = SweepLog(), np.random.default_rng(1)
    table = draw_table(
        plan,
        model,
        codec,
        500,
        rng,
        DrawOptions(weights={constraint: Weight(15.0)}, targets={}, sweeps=sweeps, on_sweep=log),
    )
    assert [(each.attribute, each.sweep) for each in log.records] == [("b", number) for number in range(sweeps + 1)]
    (line,) = log.lines()
    assert line.endswith(f"{rates_of(codec, table, [constraint])[constraint]:.4%}")
    assert str(log.records[-1]).startswith(f"b, sweep {sweeps}: soft: not (")


def test_notes_name_what_is_not_weighed() -> None:
    codec = integers(a=5, b=5, c=5, d=1000)
    rules = Constraints.parse(
        "a -> b\nsoft: key (a, b)\nsoft: b -> c\nsoft: a -> d\nsoft: not (t1.a < t2.a and t1.d > t2.d)"
    )
    notes = soft_notes(build_plan(codec, rules, sequence=["a", "b", "c", "d"]), codec)
    assert [note.partition(":")[2].partition(":")[0].strip() for note in notes] == ["key (a, b)", "a -> d"]
    assert "hard constraints decide b" in notes[0]
    assert "d has 1000 values" in notes[1]


def test_noise_alone_moves_no_rate() -> None:
    """The target is within a deviation of what was measured, and as near to the model as that allows."""
    (constraint,) = Constraints.parse(ORDER)
    for measured, by_itself, target in ((0.3, 0.32, 0.32), (0.3, 0.5, 0.35), (0.3, 0.1, 0.25), (-0.01, 0.3, 0.0)):
        estimate = RateEstimate(constraint=constraint, rate=measured, deviation=0.05)
        assert target_of(estimate, by_itself) == pytest.approx(target)


def test_a_rate_below_zero_is_told_as_zero() -> None:
    (constraint,) = Constraints.parse(ORDER)
    estimate = RateEstimate(constraint=constraint, rate=-0.01, deviation=0.05)
    assert _found(estimate, {constraint: 0.3}, {}, {constraint: 0.0}).measured == 0.0
