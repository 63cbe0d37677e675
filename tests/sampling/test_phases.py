"""Choices whose codes follow a phase inside a run: probabilities, cuts by checks, and what the steps draw."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.model.test_phase import phase_weights
from tests.sampling.fakes import FakeModel, integers

from kamino.constraints import Constraints
from kamino.model.phase import Phase, PhaseWeights
from kamino.sampling import Sampling, build_plan, draw_table
from kamino.sampling.codes.choices import Choices, make_choices
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.draw_options import DrawOptions
from kamino.sampling.plan.sampling_plan import StepKind

# Multiples of five make up 8/10 of the codes, other numbers the rest: 0 and 5 have 16 times the weight of the others.
FIVES = PhaseWeights(phase=Phase(factors=(10,)), parts=(np.where(np.arange(10) % 5 == 0, 16.0, 1.0),))


def _choices(text: str, weights: PhaseWeights) -> tuple[Choices, np.ndarray]:
    """Choices cut by checks, and the probability of each code by listing them."""
    codec = integers(x=3, a=-200)
    model = FakeModel(codec, ("x", "a"), parents={"a": ("x",)}, max_bins=7, weights={"a": weights})
    columns = {"x": np.arange(3)}
    conditional = model.conditional("a", columns, 3)
    checks = list(Constraints.parse(text))
    chance = np.exp(conditional.dense())[conditional.context]
    rows, codes = (grid.ravel() for grid in np.indices(chance.shape))
    judge = Judge(codec)
    for check in checks:
        both = {"x": rows, "a": codes}
        chance[judge.violates(check, both, both).reshape(chance.shape)] = 0.0
    return make_choices(conditional, judge, checks, columns), chance / chance.sum(axis=1, keepdims=True)


CHECKS = ["", "check (a >= 13)\ncheck (a < 171)", "check (a != 45)", "check (a >= 20)\nnot (a > 150 and x < 1)"]


@pytest.mark.parametrize("text", CHECKS)
@given(weights=phase_weights())
def test_choices_keep_probabilities_by_phase(text: str, weights: PhaseWeights) -> None:
    choices, wanted = _choices(text, weights)
    codes = np.broadcast_to(np.arange(201), (3, 201))
    for each in (choices, choices.by_code()):
        found = np.exp(each.log_of(codes, np.arange(3)[:, None]))
        np.testing.assert_allclose(found / found.sum(axis=1, keepdims=True), wanted, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("text", CHECKS)
@pytest.mark.parametrize("independent", [False, True])
def test_choices_draw_what_they_say(text: str, independent: bool) -> None:
    """False alarm below 1e-5 for each case."""
    choices, wanted = _choices(text, FIVES)
    rows = np.repeat(1, 60_000)
    drawn = choices.draw(np.random.default_rng(0), rows, independent=independent)
    kept = wanted[1] > 0
    counts = np.bincount(drawn, minlength=201)
    assert not counts[~kept].any()
    assert stats.chisquare(counts[kept], wanted[1][kept] * 60_000).pvalue > 1e-5


@given(st.lists(st.integers(1, 199), min_size=1, max_size=5, unique=True), phase_weights())
def test_pieces_of_a_run_share_its_mass(cuts: list[int], weights: PhaseWeights) -> None:
    edges = np.array([0, *sorted(cuts), 200])
    pieces = weights.mass(edges[:-1], np.diff(edges))
    np.testing.assert_allclose(pieces.sum(), weights.mass(np.array([0]), np.array([200]))[0], rtol=1e-9)
    for (low, high), mass in zip(pairwise(edges), pieces, strict=True):
        np.testing.assert_allclose(mass, weights(np.arange(low, high)).sum(), rtol=1e-9)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", StepKind.FREE),
        ("check (a >= 1000)", StepKind.MASK),
        ("x -> a", StepKind.LOOKUP),
        ("a -> x", StepKind.OWNERSHIP),
        ("key (a)", StepKind.UNIQUE),
        ("not (t1.x < t2.x and t1.a > t2.a)", StepKind.CHAIN),
        ("not (t1.x < t2.x and t1.a = t2.a and t2.x > 390)", StepKind.INDEXED),
    ],
)
def test_every_step_keeps_the_phase(text: str, kind: StepKind) -> None:
    """Eight of ten codes are multiples of five, whatever constraint binds the column."""
    codec = integers(x=400, a=100_000)
    constraints = list(Constraints.parse(text))
    plan = build_plan(codec, constraints)
    assert [step.kind for step in plan.steps if step.attribute == "a"] == [kind]
    model = FakeModel(codec, plan.sequence, max_bins=8, weights={"a": FIVES})
    table = draw_table(plan, model, codec, 1500, np.random.default_rng(0))
    values = np.unique(table["a"])
    assert len(values) > 100
    assert abs((values % 5 == 0).mean() - 0.8) < 5 * np.sqrt(0.16 / len(values))


@pytest.mark.parametrize("size", [20_000, 100_000], ids=["listed", "drawn"])
def test_rows_one_by_one_keep_the_phase(size: int) -> None:
    codec = integers(x=400, a=size)
    plan = build_plan(codec, list(Constraints.parse("not (t1.x < t2.x and t1.a = t2.a and t2.x > 390)")))
    model = FakeModel(codec, plan.sequence, max_bins=8, weights={"a": FIVES})
    table = draw_table(plan, model, codec, 500, np.random.default_rng(0), DrawOptions(sampling=Sampling.ROW_BY_ROW))
    assert abs((table["a"] % 5 == 0).mean() - 0.8) < 5 * np.sqrt(0.16 / 500)
