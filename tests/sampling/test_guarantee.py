"""No hard constraint is ever broken, or the error names a set that really cannot hold."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.constraints.brute_force import violations
from tests.sampling.brute_force import table_exists
from tests.sampling.fakes import FakeModel, integers
from tests.sampling.strategies import problems
from tests.trying import examples

from kamino.constraints import Constraints
from kamino.errors import SamplingError
from kamino.sampling import DrawOptions, build_plan, draw_table
from kamino.sampling.closed_world import close_world
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.codes.recounting import broken_constraints
from kamino.schema import Codec


def named_constraints(error: SamplingError) -> Constraints:
    named = re.search(r"(?:this constraint|together): (.*)\. (?:Ask|Widen) ", str(error))
    assert named is not None, str(error)
    return Constraints.parse("\n".join(named.group(1).split("; ")))


def refuse_only_the_impossible(codec: Codec, error: SamplingError, num_rows: int) -> None:
    assert not table_exists(codec, list(named_constraints(error)), num_rows), str(error)


def rows_of(codec: Codec, table: dict[str, np.ndarray], num_rows: int) -> list[dict[str, object]]:
    values = {name: codec[name].decode(codes).to_pylist() for name, codes in table.items()}
    return [{name: column[i] for name, column in values.items()} for i in range(num_rows)]


def parents_along(sequence: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {name: sequence[max(0, i - 2) : i] for i, name in enumerate(sequence)}


@examples(400, suppress_health_check=list(HealthCheck))
@given(problems(), st.integers(0, 2**32))
def test_random_constraints_hold(problem: tuple[Codec, Constraints, int], seed: int) -> None:
    codec, constraints, num_rows = problem
    try:
        plan = build_plan(codec, constraints, num_rows=num_rows)
        model = FakeModel(codec, plan.sequence, seed=seed, parents=parents_along(plan.sequence), sharpness=2.0)
        table = draw_table(plan, model, codec, num_rows, np.random.default_rng(seed))
    except SamplingError as error:
        refuse_only_the_impossible(codec, error, num_rows)
        return
    assert set(table) == set(codec.attributes)
    assert all(len(codes) == num_rows for codes in table.values())
    rows = rows_of(codec, table, num_rows)
    for constraint in constraints:
        assert not violations(constraint, rows), f"{constraint} in {rows}"


@pytest.mark.parametrize("seed", range(3))
def test_columns_break_no_check_before_repair(seed: int) -> None:
    """Also where owners are known, and a row can have no value of its owners."""
    codec = integers(b=6, c=6, d=3, a=60)
    constraints = Constraints.parse("a -> b\na -> c\ncheck (not (d = 0 and a > 5))")
    plan, judge = build_plan(codec, constraints, sequence=["b", "c", "d", "a"]), Judge(codec)
    model = FakeModel(codec, plan.sequence, seed=seed, parents=parents_along(plan.sequence))
    first = draw_table(plan, model, codec, 2_000, np.random.default_rng(seed))
    world = close_world(judge, plan, first, first)
    later = replace(plan, references=world.references)
    for options in (DrawOptions(check=False), DrawOptions(check=False, world=world)):
        table = draw_table(later, model, codec, 600, np.random.default_rng(seed), options)
        assert broken_constraints(codec, table, list(constraints)) == ()


@examples(100, suppress_health_check=list(HealthCheck))
@given(problems(), st.integers(0, 2**32))
def test_random_sequences_hold_too(problem: tuple[Codec, Constraints, int], seed: int) -> None:
    codec, constraints, num_rows = problem
    rng = np.random.default_rng(seed)
    order = [str(name) for name in rng.permutation(list(codec.attributes))]
    try:
        plan = build_plan(codec, constraints, num_rows=num_rows, sequence=order)
        table = draw_table(plan, FakeModel(codec, order, seed=seed), codec, num_rows, rng)
    except SamplingError as error:
        refuse_only_the_impossible(codec, error, num_rows)
        return
    rows = rows_of(codec, table, num_rows)
    assert not any(violations(constraint, rows) for constraint in constraints)
