"""Values of a wide left side as lines with all their right sides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling.exactness import make_task
from tests.sampling.fakes import FakeModel, integers
from tests.trying import examples

from kamino.constraints import Constraints
from kamino.sampling import StepKind, build_plan, draw_table
from kamino.sampling.codes.recounting import broken_constraints
from kamino.sampling.steps.ownership.lines import deal_lines

RULES = "id -> town\nid -> code\nid -> region\ncode -> region"


def dealt(seed: int, num_values: int, num_rows: int):
    """Rows whose right sides meet at random, and the lines dealt to them."""
    rng = np.random.default_rng(seed)
    codec = integers(town=40, code=-60, region=6, id=num_values)
    code = rng.choice(61, num_rows, p=rng.dirichlet(np.full(61, 0.5)))
    columns = {"town": rng.choice(40, num_rows, p=rng.dirichlet(np.full(40, 0.5))), "code": code, "region": code % 6}
    columns["region"][code == 60] = rng.integers(0, 6, int((code == 60).sum()))
    hard = list(Constraints.parse(RULES))
    chance = np.tile(rng.dirichlet(np.full(num_values, 0.8)), (num_rows, 1))
    task = make_task(codec, "id", columns, chance, hard[:3], StepKind.OWNERSHIP, rng)
    rights = frozenset({"town", "code", "region"})
    return task, hard, deal_lines(task, rights, np.arange(num_rows), hard, ())


@given(seed=st.integers(0, 2**32), num_values=st.integers(1, 80), num_rows=st.integers(1, 300))
@examples(40)
def test_every_row_draws_a_line(seed: int, num_values: int, num_rows: int) -> None:
    task, hard, lines = dealt(seed, num_values, num_rows)
    assert lines is not None
    table = {name: task.columns[name][lines.source] for name in lines.columns}
    combinations = np.unique(np.stack(list(table.values())), axis=1).shape[1]
    assert combinations <= num_values
    assert np.isin(lines.of_row, lines.owner).all()
    # Rows of one owner are alike, and what the rules tie together still is.
    for owner in np.unique(lines.of_row):
        assert all(len(np.unique(table[name][lines.of_row == owner])) == 1 for name in ("town", "code"))
    codec = task.judge.codec
    assert broken_constraints(codec, {**table, "id": np.zeros(num_rows, np.int64)}, hard[3:]) == ()
    assert lines.wanted.sum() == pytest.approx(num_rows)


@pytest.mark.parametrize("seed", range(4))
def test_right_sides_keep_their_frequencies(seed: int) -> None:
    """400 values for 20,000 rows, and 2,000 pairs of right sides: they cannot add up to every town, but nearly."""
    task, _, lines = dealt(seed, 400, 20_000)
    for name, size in (("town", 40), ("code", 61), ("region", 6)):
        before, after = (np.bincount(c, minlength=size) for c in (task.columns[name], task.columns[name][lines.source]))
        assert np.abs(before - after).sum() / 2 / 20_000 < 0.06


def test_what_is_tied_to_right_sides_goes_with_them() -> None:
    task, hard, _ = dealt(0, 20, 200)
    rights = frozenset({"town", "code"})
    lines = deal_lines(task, rights, np.arange(200), hard, ())
    assert lines.columns == {"town", "code", "region"}
    # Without `code -> region` nothing ties the region.
    assert deal_lines(task, rights, np.arange(200), hard[:2], ()).columns == rights
    # A soft constraint has a rate to keep.
    soft = list(Constraints.parse("soft: region -> town"))
    assert deal_lines(task, rights, np.arange(200), [*hard[:2], *soft], ()).columns == {*rights, "region"}


def test_columns_that_are_there_already_stay() -> None:
    task, hard, _ = dealt(0, 20, 200)
    rights = frozenset({"town", "code"})
    assert deal_lines(task, rights, np.arange(200), hard, {"region"}) is None
    # A row and its copy break both of these.
    for rule in ("key (town, region)", "not (t1.town = t2.region and t1.code = t2.code)"):
        assert deal_lines(task, rights, np.arange(200), [*hard, *Constraints.parse(rule)], ()) is None


@pytest.mark.parametrize("seed", range(3))
def test_few_values_with_many_right_sides_make_no_copies(seed: int) -> None:
    """300 ids, and ten thousand combinations that independent draws make: rows move, none becomes a copy."""
    codec = integers(town=100, code=120, region=8, amount=50_000, id=300)
    constraints = Constraints.parse(RULES)
    plan = build_plan(codec, constraints)
    rng = np.random.default_rng(seed)
    tables = {name: rng.dirichlet(np.full(codec[name].size, 0.7)) for name in ("town", "code", "region", "id")}
    model = FakeModel(codec, plan.sequence, seed=seed, max_bins=400, tables=tables)
    table = draw_table(plan, model, codec, 6_000, np.random.default_rng(seed))
    assert broken_constraints(codec, table, list(constraints)) == ()
    rows = np.unique(np.stack([*table.values()]), axis=1).shape[1]
    assert rows > 5_900
    used = np.bincount(table["id"], minlength=300) / 6_000
    assert np.abs(used - tables["id"]).sum() / 2 < 0.06


@pytest.mark.parametrize("seed", range(3))
def test_right_sides_that_go_together_stay_together(seed: int) -> None:
    """Of 10,000 rows 3 in 100 have a town outside their region: values with many rows are not given such lines."""
    rng = np.random.default_rng(seed)
    codec = integers(town=40, region=5, id=300)
    town = rng.choice(40, 10_000, p=rng.dirichlet(np.full(40, 0.5)))
    region = np.where(rng.random(10_000) < 0.03, rng.integers(0, 5, 10_000), town % 5)
    hard = list(Constraints.parse("id -> town\nid -> region"))
    chance = np.tile(rng.dirichlet(np.ones(300)), (10_000, 1))
    task = make_task(codec, "id", {"town": town, "region": region}, chance, hard, StepKind.OWNERSHIP, rng)
    lines = deal_lines(task, frozenset({"town", "region"}), np.arange(10_000), hard, ())
    assert lines is not None
    assert np.mean(town[lines.source] % 5 == region[lines.source]) > 0.95
