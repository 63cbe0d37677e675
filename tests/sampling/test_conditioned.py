"""Rows that meet a condition: the law of the model given it, and the promise of hard constraints.

Comparisons with an enumerated law are chi-squared tests with a false-alarm rate of 1e-4 each; seeds are fixed.
"""

from __future__ import annotations

import time
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scipy import stats
from tests.constraints.brute_force import violations
from tests.sampling.brute_force import table_exists
from tests.sampling.fakes import FakeModel, integers
from tests.sampling.strategies import problems
from tests.sampling.test_guarantee import parents_along, rows_of
from tests.trying import examples

from kamino.constraints import Constraints
from kamino.errors import SamplingError
from kamino.model.marginal.network import MarginalModel
from kamino.model.marginal.nodes import Node
from kamino.model.protocol import Cells, ModelAttribute, TupleModel
from kamino.sampling import DrawOptions, Sampling, build_plan, conditioned
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.conditioned import checks_of, draw_given
from kamino.schema import Categorical, Codec, Schema

MOST_SECONDS = 10.0


def marginal(fake: FakeModel, codec: Codec) -> MarginalModel:
    """The same model as a network, which can be conditioned exactly."""
    nodes = []
    for name in fake.sequence:
        codes = fake.map_of(name)
        width = np.diff(np.append(codes.starts, codes.size))
        cells = Cells(map=codes, width=width, share=np.ones(len(width)))
        attribute = ModelAttribute(name=name, size=codec[name].size)
        table = fake.table(name).reshape(-1, codes.bins)
        nodes.append(Node(attribute=attribute, cells=cells, parents=fake.parents(name), table=table))
    return MarginalModel(nodes=tuple(nodes), num_rows=1000.0)


def drawn(
    codec: Codec,
    model: TupleModel,
    rules: Constraints,
    allowed: dict[str, np.ndarray],
    num_rows: int,
    seed: int,
    sampling: Sampling = Sampling.CONSTRAINT_AWARE,
) -> dict[str, np.ndarray]:
    checks = checks_of(codec, allowed)
    plan = build_plan(codec, (*rules, *checks), num_rows=num_rows, sequence=model.sequence)
    options = DrawOptions(sampling=sampling, given=checks)
    return draw_given(plan, model, codec, num_rows, np.random.default_rng(seed), options, allowed)


@st.composite
def conditions(draw: st.DrawFn) -> tuple[Codec, Constraints, dict[str, np.ndarray]]:
    codec, rules, _ = draw(problems())
    names = draw(st.lists(st.sampled_from(list(codec.attributes)), min_size=1, max_size=3, unique=True))
    allowed = {}
    for name in names:
        codes = draw(st.lists(st.integers(0, codec[name].size - 1), min_size=1, max_size=3, unique=True))
        allowed[name] = np.array(sorted(codes))
    return codec, rules, allowed


Problem = tuple[Codec, Constraints, dict[str, np.ndarray]]
SIZES = (st.integers(1, 9), st.sampled_from([1, 1, 2, 5, 10]))
SLOW = list(HealthCheck)


@examples(300, suppress_health_check=SLOW)
@given(conditions(), *SIZES, st.integers(0, 2**32))
def test_conditions_hold_with_rules(problem: Problem, size: int, times: int, seed: int) -> None:
    check_condition(problem, size * times, seed, exact=True)


@examples(100, suppress_health_check=SLOW)
@given(conditions(), *SIZES, st.integers(0, 2**32))
def test_conditions_hold_with_a_drawn_prefix(problem: Problem, size: int, times: int, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditioned, "_LEAST_POOL", 200)
        check_condition(problem, size * times, seed, exact=False)


def check_condition(problem: Problem, num_rows: int, seed: int, *, exact: bool) -> None:
    """Every row meets the condition and no constraint is broken; a refusal means that no such table exists."""
    codec, rules, allowed = problem
    sequence = tuple(codec.attributes)
    fake = FakeModel(codec, sequence, seed=seed, parents=parents_along(sequence), sharpness=2.0)
    began = time.process_time()
    table: dict[str, np.ndarray] | None
    try:
        table = drawn(codec, marginal(fake, codec) if exact else fake, rules, allowed, num_rows, seed)
    except SamplingError:
        table = None
    if table is None:
        assert not table_exists(codec, [*rules, *checks_of(codec, allowed)], num_rows)
        return
    assert time.process_time() - began < MOST_SECONDS
    assert all(len(codes) == num_rows for codes in table.values())
    assert all(np.isin(table[name], codes).all() for name, codes in allowed.items())
    rows = rows_of(codec, table, num_rows)
    assert not any(violations(constraint, rows) for constraint in rules)


@examples(100, suppress_health_check=list(HealthCheck))
@given(conditions())
def test_conditions_are_checks(problem: tuple[Codec, Constraints, dict[str, np.ndarray]]) -> None:
    codec, _, allowed = problem
    judge, checks = Judge(codec), checks_of(codec, allowed)
    for name, codes in allowed.items():
        every = {name: np.arange(codec[name].size)}
        broken = [judge.violates(c, every, every) for c in checks if c.attributes == (name,)]
        assert np.flatnonzero(~np.logical_or.reduce(broken)).tolist() == codes.tolist()


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("given_names", [("c",), ("a", "d"), ("b", "c"), ("d",)])
def test_rows_follow_the_conditioned_model(given_names: tuple[str, ...], exact: bool) -> None:
    codec, names = integers(a=3, b=4, c=3, d=-2), ("a", "b", "c", "d")
    parents = {"b": ("a",), "c": ("a", "b"), "d": ("c",)}
    fake = FakeModel(codec, names, seed=3, parents=parents, sharpness=1.5)
    model = marginal(fake, codec)
    allowed = {name: np.array([0, 2]) if name != "a" else np.array([1]) for name in given_names}
    table = drawn(codec, model if exact else fake, Constraints(), allowed, 4_000, 1)
    joint = model.marginal(names)
    for place in product(*map(range, joint.shape)):
        if not all(place[names.index(name)] in codes for name, codes in allowed.items()):
            joint[place] = 0.0
    expected = (joint / joint.sum()).ravel() * 4_000
    seen = np.bincount(np.ravel_multi_index(tuple(table[n] for n in names), joint.shape), minlength=joint.size)
    assert seen[expected == 0].sum() == 0
    kept = expected > 5
    observed, wanted = np.append(seen[kept], seen[~kept].sum()), np.append(expected[kept], expected[~kept].sum())
    statistic = float(((observed - wanted) ** 2 / np.maximum(wanted, 1e-9)).sum())
    assert statistic < stats.chi2.ppf(1 - 1e-4, len(wanted) - 1)


@pytest.mark.parametrize("sampling", list(Sampling))
def test_conditions_hold_whatever_the_sampling(sampling: Sampling) -> None:
    codec = integers(a=5, b=5)
    fake = FakeModel(codec, ("a", "b"), parents={"b": ("a",)})
    table = drawn(codec, marginal(fake, codec), Constraints.parse("a -> b"), {"b": np.array([1, 3])}, 60, 0, sampling)
    assert set(table["b"].tolist()) <= {1, 3}


def test_wide_lists_can_be_conditions() -> None:
    values = [f"v{i}" for i in range(70_000)]
    codec = Codec(Schema(attributes={"a": Categorical(values=values)}))
    fake = FakeModel(codec, ("a",), max_bins=8)
    table = drawn(codec, marginal(fake, codec), Constraints(), {"a": np.array([5, 69_999])}, 50, 0)
    assert set(table["a"].tolist()) == {5, 69_999}


def test_public_maps_narrow_what_leads_to_them() -> None:
    codec = integers(zip=10, state=3)
    reference = pa.table({"zip": range(10), "state": [i % 3 for i in range(10)]})
    rules, allowed = Constraints.parse("zip -> state"), {"state": np.array([1])}
    checks = checks_of(codec, allowed)
    plan = build_plan(codec, (*rules, *checks), sequence=["zip", "state"], references={(("zip",), "state"): reference})
    model = marginal(FakeModel(codec, ("zip", "state")), codec)
    table = draw_given(plan, model, codec, 200, np.random.default_rng(0), DrawOptions(given=checks), allowed)
    assert set(table["zip"].tolist()) == {1, 4, 7}


def test_intervals_are_checks() -> None:
    codec = integers(a=9)
    checks = conditioned.range_checks(codec, {"a": (3, 5)})
    table = pa.table({"a": [codec["a"].value_of(code) for code in range(9)]})
    broken = [any(violations(check, table.slice(code, 1).to_pylist()) for check in checks) for code in range(9)]
    assert [code for code in range(9) if not broken[code]] == [3, 4, 5]
