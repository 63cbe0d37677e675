"""One to one: groups and values are matched by size and by weight."""

from __future__ import annotations

import itertools
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling.fakes import FakeModel, integers
from tests.trying import examples

from kamino.constraints import Constraints
from kamino.sampling import StepKind, build_plan, draw_table
from kamino.sampling.codes.choices import Choices
from kamino.sampling.partners import DEAD
from kamino.sampling.steps.shared_values import group_weights
from kamino.sampling.steps.unique.distinct import draw_distinct
from kamino.sampling.steps.unique.matching import match_groups


def choices_of(chance: np.ndarray, groups: np.ndarray) -> Choices:
    """Rows whose group decides what the model expects of their value: a line of `chance` each."""
    codes = np.arange(chance.shape[1])
    return Choices(
        attribute="a",
        context=groups,
        log_weight=np.log(chance),
        starts=codes,
        width=np.ones_like(codes),
        label=codes,
        share=np.ones(len(codes)),
        null_bin=None,
    )


@given(seed=st.integers(0, 2**32), num_groups=st.integers(1, 5), num_values=st.integers(1, 5))
@examples(40)
def test_the_match_has_the_greatest_weight(seed: int, num_groups: int, num_values: int) -> None:
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(num_groups), rng.integers(1, 6, num_groups))
    choices = choices_of(rng.dirichlet(np.ones(num_values), num_groups), groups)
    rows = np.arange(len(groups))
    found = match_groups(choices, rows, groups, rng)
    weight = group_weights(choices, rows, groups, num_groups)
    served = np.flatnonzero(found != DEAD)
    assert len(served) == min(num_groups, num_values)
    best = max(
        sum(weight[g, v] for g, v in zip(some, values, strict=True))
        for some in itertools.combinations(range(num_groups), len(served))
        for values in itertools.permutations(range(num_values), len(served))
    )
    assert weight[served, found[served]].sum() == pytest.approx(best)


@pytest.mark.parametrize("num_groups", [40, 3_000])
def test_matched_values_differ(num_groups: int) -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(num_groups), rng.integers(1, 9, num_groups))
    choices = choices_of(rng.dirichlet(np.ones(num_groups - 7))[None, :], np.zeros_like(groups))
    found = match_groups(choices, np.arange(len(groups)), groups, rng)
    held = found[found != DEAD]
    assert len(held) == num_groups - 7
    assert len(np.unique(held)) == len(held)


@pytest.mark.parametrize("num_values", [60, 2_000])
def test_sizes_are_matched(num_values: int) -> None:
    """A code and its name: names are as frequent as they were counted, though nothing tells which is whose."""
    codec = integers(code=num_values, name=num_values)
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.full(num_values, 0.5))
    tables = {"code": share, "name": rng.permutation(share)}
    plan = build_plan(codec, Constraints.parse("code -> name\nname -> code"), sequence=("code", "name"))
    assert plan.steps[-1].kind is StepKind.UNIQUE
    model = FakeModel(codec, ("code", "name"), max_bins=5_000, tables=tables)
    table = draw_table(plan, model, codec, 30_000, rng)
    used = np.bincount(table["name"], minlength=num_values) / 30_000
    assert np.abs(used - tables["name"]).sum() / 2 < 0.03


def test_one_to_one_keeps_the_share_of_nulls() -> None:
    codec = integers(code=300, name=-300)
    share = np.append(np.full(300, 0.8 / 300), 0.2)
    plan = build_plan(codec, Constraints.parse("code -> name\nname -> code"), sequence=("code", "name"))
    model = FakeModel(codec, ("code", "name"), max_bins=5_000, tables={"name": share})
    table = draw_table(plan, model, codec, 10_000, np.random.default_rng(0))
    assert np.mean(table["name"] == 300) == pytest.approx(0.2, abs=0.02)


def test_many_groups_are_matched_some_at_a_time() -> None:
    """The work of a match grows with the cube of its size: no more than 1,024 values are matched at once."""
    sizes = []

    def matched(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes.append(weight.shape)
        return np.arange(len(weight)), np.arange(len(weight))

    groups = np.repeat(np.arange(20_000), 3)
    choices = choices_of(np.random.default_rng(0).dirichlet(np.ones(20_000))[None, :], np.zeros_like(groups))
    with mock.patch("kamino.sampling.steps.unique.matching._best", matched):
        found = match_groups(choices, np.arange(len(groups)), groups, np.random.default_rng(0))
    assert len(np.unique(found)) == 20_000
    assert np.max(sizes) <= 1_024


def test_values_that_are_handed_out_may_be_impossible() -> None:
    """Thirty items that can have ten values, among forty: each gets one of its own, and nothing is warned of."""
    weight = np.zeros((2, 40))
    weight[0, 10:] = -np.inf
    choices = Choices(
        attribute="a",
        context=np.repeat([0, 1], [30, 10]),
        log_weight=weight,
        starts=np.arange(40),
        width=np.ones(40, dtype=np.int64),
        label=np.arange(40),
        share=np.ones(40),
        null_bin=None,
    )
    codes = draw_distinct(choices, np.zeros(40, dtype=np.int64), np.random.default_rng(0))
    assert sorted(codes.tolist()) == list(range(40))
