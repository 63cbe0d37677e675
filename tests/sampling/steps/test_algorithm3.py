"""Row by row: the law of the paper's Algorithm 3, its candidates, its prices, and the promise of hard constraints.

Comparisons with an enumerated law are chi-squared tests with a false-alarm rate of 1e-4 each; seeds are fixed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scipy import stats
from tests.constraints.brute_force import violates, violations
from tests.sampling.exactness import compare_with_law, make_task
from tests.sampling.fakes import FakeModel, integers
from tests.sampling.strategies import problems
from tests.sampling.test_guarantee import parents_along, refuse_only_the_impossible, rows_of
from tests.trying import examples

from kamino.constraints import Constraints, DenialConstraint
from kamino.constraints.tree import Column, Comparison, Operator
from kamino.errors import SamplingError
from kamino.sampling import DrawOptions, Sampling, StepKind, Weight, build_plan, draw_table, paper_sequence
from kamino.sampling.codes.recounting import broken_constraints
from kamino.sampling.partners import rates_of
from kamino.sampling.soft.prices import price_of
from kamino.sampling.steps import algorithm3
from kamino.sampling.steps.algorithm3 import draw_row_by_row
from kamino.schema import Codec

SAME_COPY = Comparison(Column("copy", 1), Operator.EQ, Column("copy", 2))
PROBLEMS = [
    ("x -> a", {"x": 2, "a": 3}, {"x": [0, 1, 0, 0]}),
    ("weight 0.7: x -> a", {"x": 2, "a": 3}, {"x": [0, 0, 1, 0]}),
    ("weight 0.6: a, y -> x", {"x": 2, "y": 2, "a": 3}, {"x": [0, 1, 1, 0], "y": [0, 0, 0, 1]}),
    ("weight 0.9: key (a)\nweight 0.4: check (a > 0)", {"x": 1, "a": -2}, {"x": [0, 0, 0, 0]}),
    ("not (t1.x < t2.x and t1.a > t2.a)", {"x": 4, "a": 4}, {"x": [2, 0, 3, 1]}),
    (
        "weight 0.5: not (t1.x <= t2.x and t1.a < t2.a)\nweight 1.2: x -> a\na -> y",
        {"x": 3, "y": 2, "a": -3},
        {"x": [1, 0, 1, 2], "y": [0, 1, 0, 0]},
    ),
]

BY_ROW = (Sampling.ROW_BY_ROW, Sampling.PRINTED)


def prices_of(constraints: list[DenialConstraint]) -> dict[DenialConstraint, float]:
    return {c: np.inf if c.is_hard else price_of(c, {}, 1) for c in constraints}


def log_weight(
    codec: Codec, rows: list[dict[str, object]], prices: dict[DenialConstraint, float], *, row: int
) -> float:
    """What the violations of one row with those before it take off its weight."""
    total = 0.0
    for constraint, price in prices.items():
        others = rows[:row]
        if constraint.is_unary:
            found = int(violates(constraint, rows[row], rows[row]))
        else:
            found = sum(violates(constraint, rows[row], o) or violates(constraint, o, rows[row]) for o in others)
        total -= price * found if found else 0.0
    return total


def law_of(
    codec: Codec, columns: dict[str, list[int]], p: np.ndarray, prices: dict[DenialConstraint, float], *, joint: bool
) -> dict[tuple[int, ...], float]:
    """The law of whole columns: row after row, or all rows together."""
    num_rows, size = p.shape
    law = {(): 1.0}
    for row in range(num_rows):
        grown: dict[tuple[int, ...], float] = {}
        for start, chance in law.items():
            weight = {}
            for code in range(size):
                column = (*start, code)
                rows = [
                    {n: codec[n].value_of(c[i]) for n, c in columns.items()} | {"a": codec["a"].value_of(column[i])}
                    for i in range(row + 1)
                ]
                weight[column] = p[row, code] * np.exp(log_weight(codec, rows, prices, row=row))
            total = 1.0 if joint else sum(weight.values())
            grown |= {column: chance * each / total for column, each in weight.items() if each > 0}
        law = grown
    total = sum(law.values())
    return {column: chance / total for column, chance in law.items()}


Problem = tuple[str, dict[str, int], dict[str, list[int]]]
each_problem = pytest.mark.parametrize("problem", PROBLEMS, ids=[text.replace("\n", "; ") for text, _, _ in PROBLEMS])


def compare(problem: Problem, *, copies: int, sweeps: int = 0, candidates: int = 10) -> None:
    """Draw many copies of four rows in one column, kept apart by an attribute that must be equal, too."""
    text, sizes, columns = problem
    codec, constraints = integers(**sizes, copy=copies), list(Constraints.parse(text))
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.ones(codec["a"].size), size=4)
    arrays = {n: np.tile(np.array(codes, dtype=np.int64), copies) for n, codes in columns.items()}
    arrays["copy"] = np.repeat(np.arange(copies), 4)
    apart = [c.with_predicates((SAME_COPY, *c.predicates)) for c in constraints if not c.is_unary]
    task = make_task(codec, "a", arrays, np.tile(p, (copies, 1)), apart, StepKind.INDEXED, rng)
    alone = {c: price_of(c, {}, 4) for c in constraints if c.is_unary}
    task = replace(task, sweeps=sweeps, candidates=candidates, penalties=alone)
    law = law_of(codec, columns, p, prices_of(constraints), joint=sweeps > 0)
    drawn = draw_row_by_row(task).reshape(copies, 4)
    compare_with_law(Counter(map(tuple, drawn.tolist())), law, copies)


@pytest.fixture(params=["listed", "drawn"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether all codes are weighed or some are drawn."""
    if request.param == "drawn":
        monkeypatch.setattr(algorithm3, "_MOST_ORDERED", 0)
    return str(request.param)


@each_problem
def test_rows_follow_algorithm_3(problem: Problem, way: str) -> None:
    """Many draws stand for p: what they leave to chance is less than the test can tell."""
    compare(problem, copies=1200, candidates=200)


@pytest.mark.parametrize("problem", PROBLEMS[1:4])
def test_sweeps_keep_the_law(problem: Problem, way: str) -> None:
    """Few candidates suffice: the present value is one of them."""
    compare(problem, copies=800, sweeps=8, candidates=3)


def wide(text: str) -> tuple[Codec, FakeModel, list[DenialConstraint]]:
    codec = integers(x=2000, a=2000)
    return codec, FakeModel(codec, ["x", "a"], max_bins=8, sharpness=1.5), list(Constraints.parse(text))


def test_density_counts_once() -> None:
    """Where nothing clashes, a wide column follows p: bins by a chi-squared test with false-alarm rate 1e-4."""
    codec, model, constraints = wide("not (t1.x < t2.x and t1.a > t2.a and t1.x > 1999)")
    plan = build_plan(codec, constraints, sequence=["x", "a"])
    table = draw_table(
        plan, model, codec, 3000, np.random.default_rng(2), DrawOptions(sampling=Sampling.PRINTED, sweeps=1)
    )
    seen = np.bincount(model.map_of("a")(table["a"]), minlength=8)
    assert stats.chisquare(seen, model.table("a") * 3000).pvalue > 1e-4


def test_candidates_are_as_many_as_asked() -> None:
    """A single draw leaves no choice, so prices do nothing; more leave some."""
    codec, model, constraints = wide("weight 5: not (t1.x < t2.x and t1.a > t2.a)")
    plan = build_plan(codec, constraints, sequence=["x", "a"])
    rates = {}
    for candidates in (1, 2, 10):
        rng = np.random.default_rng(2)
        options = {"sampling": Sampling.PRINTED, "sweeps": 0, "candidates": candidates}
        table = draw_table(plan, model, codec, 400, rng, DrawOptions(**options))
        rates[candidates] = rates_of(codec, table, constraints)[constraints[0]]
    assert rates[1] == pytest.approx(0.5, abs=0.08)
    assert rates[2] < 0.8 * rates[1]
    assert rates[10] < 0.8 * rates[2]


@pytest.mark.parametrize(
    ("text", "weight"), [("soft: not (t1.a < t2.a and t1.b > t2.b)", 30.0), ("soft: check (b < 15)\nb -> a", 3.0)]
)
def test_soft_weights_act(text: str, weight: float) -> None:
    """Also where a hard constraint ends at the same attribute, which joint draws cannot do."""
    codec, constraints = integers(a=3, b=30), list(Constraints.parse(text))
    plan = build_plan(codec, constraints, sequence=["a", "b"])
    assert (*plan.steps[1].soft, *plan.steps[1].unweighed) == (constraints[0],)
    model = FakeModel(codec, ["a", "b"], sharpness=0.5)
    rates = []
    for each in (0.0, weight):
        rng, weights = np.random.default_rng(1), {constraints[0]: Weight(each)}
        table = draw_table(plan, model, codec, 300, rng, DrawOptions(sampling=Sampling.PRINTED, weights=weights))
        rates.append(rates_of(codec, table, constraints)[constraints[0]])
    assert rates[1] < 0.5 * rates[0]


@examples(120, suppress_health_check=list(HealthCheck))
@given(problems(), st.integers(0, 2**32), st.sampled_from([0, 256]), st.sampled_from(BY_ROW))
def test_row_by_row_breaks_no_hard_constraint(
    problem: tuple[Codec, Constraints, int], seed: int, most_ordered: int, sampling: Sampling
) -> None:
    """Random sets of constraints, along the paper's order, codes listed or drawn: none broken, or really impossible."""
    codec, constraints, num_rows = problem
    sequence = paper_sequence(codec, constraints)
    options = {"sampling": sampling, "sweeps": seed % 2, "candidates": 1 + seed % 3}
    try:
        plan = build_plan(codec, constraints, num_rows=num_rows, sequence=sequence)
        model = FakeModel(codec, sequence, seed=seed, parents=parents_along(sequence), sharpness=2.0)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(algorithm3, "_MOST_ORDERED", most_ordered)
            table = draw_table(plan, model, codec, num_rows, np.random.default_rng(seed), DrawOptions(**options))
    except SamplingError as error:
        refuse_only_the_impossible(codec, error, num_rows)
        return
    assert all(len(table[name]) == num_rows for name in codec.attributes)
    rows = rows_of(codec, table, num_rows)
    assert not any(violations(constraint, rows) for constraint in constraints)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("z -> c\nz -> s\ny -> s", {"s": 5, "y": 60, "z": 900, "c": 300}),
        ("g -> x\nnot (t1.g = t2.g and t1.x > t2.x and t1.a < t2.a)", {"g": -4, "x": -50, "a": -3000}),
        ("g -> a\nnot (t1.x < t2.x and t1.a > t2.a)\ncheck (a <= x)", {"g": 20, "x": 3000, "a": 3000}),
        ("key (a)\nsoft: g -> a", {"g": 9, "a": 700}),
        ("key (g, a)\nnot (t1.a = t2.x and t1.x = t2.a)", {"g": 3, "x": 500, "a": -500}),
    ],
)
@pytest.mark.parametrize("sampling", BY_ROW)
def test_wide_columns_break_nothing(text: str, sizes: dict[str, int], sampling: Sampling) -> None:
    codec, constraints = integers(**sizes), Constraints.parse(text)
    hard = [c for c in constraints if c.is_hard]
    for sequence in (tuple(sizes), paper_sequence(codec, constraints)):
        plan = build_plan(codec, constraints, num_rows=600, sequence=sequence)
        model = FakeModel(codec, sequence, parents=parents_along(sequence))
        rng = np.random.default_rng(4)
        table = draw_table(plan, model, codec, 600, rng, DrawOptions(sampling=sampling, sweeps=1))
        assert broken_constraints(codec, table, hard) == ()
        assert all(len(codes) == 600 for codes in table.values())
        assert all(len(np.unique(table[name])) > 1 for name in sizes)


def test_a_group_is_drawn_by_all_of_its_rows() -> None:
    """Each row of a group is right with 3 chances in 5. The first row decides for all as printed; mended, all do."""
    codec, constraints = integers(x=40, a=2), list(Constraints.parse("x -> a"))
    plan = build_plan(codec, constraints, sequence=["x", "a"])
    model = FakeModel(codec, ["x", "a"], parents={"a": ("x",)})
    model.table("a")[:] = np.array([0.4, 0.6])
    wrong = {}
    for sampling in BY_ROW:
        options = DrawOptions(sampling=sampling, sweeps=0)
        table = draw_table(plan, model, codec, 4_000, np.random.default_rng(3), options)
        first = np.unique(table["x"], return_index=True)[1]
        wrong[sampling] = int((table["a"][first] == 0).sum())
    # Of 40 groups, 16 are wrong in the mean by their first row; with 100 rows each, 1 in 80 in the mean.
    assert wrong[Sampling.PRINTED] >= 6
    assert wrong[Sampling.ROW_BY_ROW] <= 4


def test_a_few_rows() -> None:
    codec, constraints = integers(x=-3, a=-3), list(Constraints.parse("x -> a\nweight 1: key (a)"))
    plan = build_plan(codec, constraints, sequence=["x", "a"])
    for num_rows in (0, 1, 2):
        rng = np.random.default_rng(0)
        table = draw_table(
            plan, FakeModel(codec, ["x", "a"]), codec, num_rows, rng, DrawOptions(sampling=Sampling.PRINTED)
        )
        assert {name: len(codes) for name, codes in table.items()} == {"x": num_rows, "a": num_rows}


def test_what_cannot_be_is_refused() -> None:
    codec, constraints = integers(x=2, a=3), list(Constraints.parse("key (a)"))
    plan = build_plan(codec, constraints, sequence=["x", "a"])
    model = FakeModel(codec, ["x", "a"])
    with pytest.raises(SamplingError, match=r"key \(a\)"):
        draw_table(plan, model, codec, 9, np.random.default_rng(0), DrawOptions(sampling=Sampling.PRINTED))
    table = draw_table(plan, model, codec, 3, np.random.default_rng(0), DrawOptions(sampling=Sampling.PRINTED))
    assert sorted(table["a"].tolist()) == [0, 1, 2]
    with pytest.raises(SamplingError, match="0 candidates"):
        draw_table(plan, model, codec, 3, np.random.default_rng(0), DrawOptions(candidates=0))
    with pytest.raises(SamplingError, match="-1 sweeps"):
        draw_table(plan, model, codec, 3, np.random.default_rng(0), DrawOptions(sweeps=-1))


def test_public_maps_are_followed() -> None:
    codec, constraints = integers(x=3, a=4), list(Constraints.parse("x -> a"))
    reference = pa.table({"x": [0, 1, 2], "a": [3, 1, 2]})
    plan = build_plan(codec, constraints, sequence=["x", "a"], references={(("x",), "a"): reference})
    table = draw_table(
        plan,
        FakeModel(codec, ["x", "a"]),
        codec,
        50,
        np.random.default_rng(0),
        DrawOptions(sampling=Sampling.PRINTED),
    )
    assert np.array_equal(table["a"], np.array([3, 1, 2])[table["x"]])


def test_sweeps_are_reported() -> None:
    codec, constraints = integers(x=3, a=4), list(Constraints.parse("weight 1: x -> a"))
    plan = build_plan(codec, constraints, sequence=["x", "a"])
    seen: list[tuple[str, int]] = []
    draw_table(
        plan,
        FakeModel(codec, ["x", "a"]),
        codec,
        50,
        np.random.default_rng(0),
        DrawOptions(
            sampling=Sampling.PRINTED, sweeps=2, on_sweep=lambda name, number, rates: seen.append((name, number))
        ),
    )
    assert seen == [("a", 0), ("a", 1), ("a", 2)]
