"""Columns that are there already: they stay, and the rest is drawn to fit them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.constraints.brute_force import violations
from tests.sampling.fakes import FakeModel, integers
from tests.sampling.strategies import problems
from tests.sampling.test_guarantee import parents_along, rows_of
from tests.trying import examples

from kamino.constraints import Constraints
from kamino.errors import SamplingError
from kamino.sampling import DrawOptions, build_plan, draw_table
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.repair.repairing import repair
from kamino.schema import Codec


@examples(100, suppress_health_check=list(HealthCheck))
@given(problems(), st.integers(1, 4), st.integers(0, 2**32))
def test_a_prefix_is_completed(problem: tuple[Codec, Constraints, int], length: int, seed: int) -> None:
    """The prefix is that of a table that exists; now and then no completion is found, and that is said."""
    codec, rules, num_rows = problem
    sequence = tuple(codec.attributes)
    model = FakeModel(codec, sequence, seed=seed, parents=parents_along(sequence))
    try:
        plan = build_plan(codec, rules, num_rows=num_rows, sequence=sequence)
        whole = draw_table(plan, model, codec, num_rows, np.random.default_rng(seed))
        prefix = {name: whole[name] for name in sequence[:length]}
        table = draw_table(plan, model, codec, num_rows, np.random.default_rng(seed + 1), DrawOptions(prefix=prefix))
    except SamplingError:
        return
    assert all(np.array_equal(table[name], codes) for name, codes in prefix.items())
    rows = rows_of(codec, table, num_rows)
    assert not any(violations(constraint, rows) for constraint in rules)


@pytest.mark.parametrize(
    "text", ["a -> b", "b -> a", "key (a, b)", "not (t1.a < t2.a and t1.b > t2.b)", "check (a < b)"]
)
def test_wide_columns_are_completed(text: str) -> None:
    codec, rng = integers(a=40, b=400), np.random.default_rng(0)
    rules = Constraints.parse(text)
    plan = build_plan(codec, rules, sequence=["a", "b"])
    prefix = {"a": rng.integers(0, 40, 500)}
    model = FakeModel(codec, ("a", "b"), parents={"b": ("a",)})
    table = draw_table(plan, model, codec, 500, rng, DrawOptions(prefix=prefix))
    assert np.array_equal(table["a"], prefix["a"])
    assert not any(violations(constraint, rows_of(codec, table, 500)) for constraint in rules)


def test_fixed_columns_stay() -> None:
    codec, rng = integers(a=3, b=3), np.random.default_rng(0)
    table = {"a": rng.integers(0, 3, 60), "b": rng.integers(0, 3, 60)}
    (rule,) = Constraints.parse("a -> b")
    repaired = repair(Judge(codec), table, [rule], 60, rng, fixed=["a"])
    assert np.array_equal(repaired["a"], table["a"])
    with pytest.raises(SamplingError, match="no table was found"):
        repair(Judge(codec), table, [rule], 60, rng, fixed=["a", "b"])


def test_a_wrong_prefix_is_refused() -> None:
    codec = integers(a=3, b=3)
    plan = build_plan(codec, Constraints(), sequence=["a", "b"])
    model, rng = FakeModel(codec, ("a", "b")), np.random.default_rng(0)
    for prefix, text in (
        ({"b": np.zeros(5, np.int64)}, "found columns b to start from; expected the first attributes of the plan: a"),
        ({"a": np.zeros(4, np.int64)}, "with 4 codes; expected 5 codes from 0 to 2"),
        ({"a": np.full(5, 3)}, "with 5 codes; expected 5 codes from 0 to 2"),
    ):
        with pytest.raises(SamplingError, match=text):
            draw_table(plan, model, codec, 5, rng, DrawOptions(prefix=prefix))
