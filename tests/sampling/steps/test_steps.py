"""Steps on larger columns: what they promise holds, and what they choose makes sense."""

from __future__ import annotations

import contextlib
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from tests.sampling.exactness import make_task
from tests.sampling.fakes import FakeModel, integers

from kamino.constraints import Constraints, count_violations
from kamino.errors import SamplingError
from kamino.model.protocol import CodeMap, TupleModel
from kamino.sampling import DrawOptions, Sampling, StepKind, build_plan, draw_table
from kamino.sampling.codes.choices import make_choices
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.codes.recounting import broken_constraints
from kamino.sampling.partners import DEAD
from kamino.sampling.sampler import DRAWERS
from kamino.sampling.steps.ownership.owners import assign_owners
from kamino.sampling.steps.ownership.taking import take_as_drawn
from kamino.sampling.steps.task import Task
from kamino.schema import Codec, Integer, Schema


def _no_repair(*_: object) -> None:
    raise AssertionError("a step left violations behind")


def draw(
    codec: Codec, text: str, num_rows: int = 2000, *, seed: int = 0, repaired: bool = False
) -> tuple[dict[str, np.ndarray], list[StepKind]]:
    constraints = Constraints.parse(text)
    plan = build_plan(codec, constraints, num_rows=num_rows)
    names = plan.sequence
    parents = {name: names[max(0, i - 1) : i] for i, name in enumerate(names)}
    model = FakeModel(codec, names, seed=seed, parents=parents, sharpness=1.5)
    assert isinstance(model, TupleModel)
    # The steps themselves must keep the constraints; the repair at the end would hide that they do not.
    refuse = (
        contextlib.nullcontext()
        if repaired
        else mock.patch("kamino.sampling.repair.repairing._Repair.keep_most", _no_repair)
    )
    with refuse:
        table = draw_table(plan, model, codec, num_rows, np.random.default_rng(seed))
    assert broken_constraints(codec, table, list(constraints)) == ()
    return table, [step.kind for step in plan.steps]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (StepKind.LOOKUP, "x -> a\ny -> a"),
        (StepKind.OWNERSHIP, "a -> x\na -> y"),
        (StepKind.OWNERSHIP, "x, a -> y"),
        (StepKind.CHAIN, "not (t1.x = t2.x and t1.y < t2.y and t1.a > t2.a)"),
        (StepKind.UNIQUE, "key (x, y, a)"),
        (StepKind.INDEXED, "not (t1.x = t2.x and t1.y != t2.y and t1.a <= t2.a)\nx -> a"),
    ],
)
def test_steps_break_nothing(kind: StepKind, text: str) -> None:
    """Each step by itself, without the repair at the end."""
    codec = integers(x=-4, y=-6, a=-30)
    constraints = list(Constraints.parse(text))
    rng = np.random.default_rng(0)
    columns = {"x": rng.integers(0, 5, 80), "y": rng.integers(0, 7, 80)}
    task = make_task(codec, "a", columns, rng.dirichlet(np.ones(31), 80), constraints, kind, rng)
    codes = DRAWERS[kind](task)
    alive = codes >= 0
    table = {name: column[alive] for name, column in {**columns, "a": codes}.items()}
    assert alive.sum() > 20
    assert broken_constraints(codec, table, constraints) == ()


def test_ownership_holds() -> None:
    table, kinds = draw(integers(zip=500, state=6), "zip -> state")
    assert kinds == [StepKind.FREE, StepKind.OWNERSHIP]
    assert len(np.unique(table["state"])) == 6


def test_ownership_of_a_very_wide_attribute_holds() -> None:
    table, kinds = draw(integers(zip=5_000_000, state=6), "zip -> state")
    assert kinds == [StepKind.FREE, StepKind.OWNERSHIP]
    assert len(np.unique(table["zip"])) > 1000


def test_ownership_with_too_few_values_keeps_the_rows() -> None:
    codec = integers(zip=150, city=14, state=14)
    table, _ = draw(codec, "zip -> city\nzip -> state", 3000)
    assert len(table["zip"]) == 3000


def test_sure_owners_are_followed() -> None:
    truth = np.random.default_rng(0).integers(0, 5, 200)
    expected = np.full((5, 200), 0.1)
    expected[truth, np.arange(200)] = 10.0
    assert np.array_equal(assign_owners(expected, expected.sum(axis=1)), truth)


def test_values_of_a_bin_are_shared_out() -> None:
    """Two bins of 40 values each: of one, two owners have 70 and 30 rows in a hundred; the other has but one."""
    bins = np.repeat([0, 1], 40)
    expected = np.where(bins == 0, np.array([[7.0], [3.0]]), np.array([[10.0], [0.0]]))
    owner = assign_owners(expected, expected.sum(axis=1), bins=bins)
    assert np.bincount(owner[bins == 0], minlength=2).tolist() == [28, 12]
    assert np.all(owner[bins == 1] == 0)


@pytest.mark.parametrize("seed", range(5))
def test_values_add_up_to_their_owners(seed: int) -> None:
    """Values of any sizes, in bins of many: the rows of each owner's values are its own, but for two in a hundred."""
    rng = np.random.default_rng(seed)
    size, bins = rng.gamma(1.0, 5.0, 400) + 0.5, rng.integers(0, 4, 400)
    share = rng.dirichlet(np.full(15, 2.0), 4)
    expected = (share[bins] * size[:, None]).T
    owner = assign_owners(expected, expected.sum(axis=1), bins=bins)
    given = np.zeros((4, 15))
    np.add.at(given, (bins, owner), size)
    wanted = np.stack([expected[:, bins == each].sum(axis=1) for each in range(4)])
    assert np.abs(given - wanted).sum() / 2 < 0.04 * wanted.sum()
    assert np.abs((given - wanted).sum(axis=0)).sum() / 2 < 0.02 * wanted.sum()


def test_every_owner_has_a_value() -> None:
    """One owner is the likeliest of every value; it must not take them all."""
    wanted = np.array([900.0, 60.0, 30.0, 10.0])
    owner = assign_owners(np.outer(wanted, np.full(50, 1 / 50)), wanted)
    held = np.bincount(owner, minlength=4)
    assert np.all(held >= 1)
    assert held[0] >= 40
    few = assign_owners(np.outer(wanted, np.full(4, 1 / 4)), wanted)
    assert sorted(few.tolist()) == [0, 1, 2, 3]


def test_frequent_values_go_to_large_owners() -> None:
    """A value for each owner, as frequent as the owner; the model knows the frequencies, not who has which."""
    wanted = np.random.default_rng(0).permutation(1.5 ** np.arange(10))
    values = np.random.default_rng(1).permutation(wanted)
    owner = assign_owners(np.outer(wanted, values / values.sum()), wanted)
    assert np.array_equal(wanted[owner], values)


def test_owners_have_values_in_their_bins() -> None:
    """Ten owners, ten bins of ten values, all rows everywhere alike: each owner has one value of each bin."""
    bins = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 10))
    owner = assign_owners(np.full((10, 100), 5.0), np.full(10, 500.0), bins=bins)
    assert len({(int(who), int(where)) for who, where in zip(owner, bins, strict=True)}) == 100


def test_small_owners_have_values_of_a_wide_domain() -> None:
    """3,000 owners, some with hundreds of rows, and 4,000 values of one bin: drawn by rows, large owners take all."""
    codec = integers(y=3000, a=4000)
    often = 1 / np.arange(1, 3001)
    tables = {"y": often / often.sum(), "a": np.ones(1)}
    model = FakeModel(codec, ("y", "a"), max_bins=3000, tables=tables)
    whole = CodeMap(size=4000, bins=1, starts=np.zeros(1, dtype=np.int64), labels=np.zeros(1, dtype=np.int64))
    model.map_of = lambda name: whole if name == "a" else FakeModel.map_of(model, name)
    judge, rng = Judge(codec), np.random.default_rng(0)
    columns = {"y": rng.choice(3000, 20_000, p=tables["y"])}
    (step,) = [s for s in build_plan(codec, Constraints.parse("a -> y"), sequence=("y", "a")).steps if s.constraints]
    choices = make_choices(model.conditional("a", columns, 20_000), judge, (), columns)
    task = Task(step=step, choices=choices, judge=judge, columns=columns, num_rows=20_000, rng=rng, references={})
    rows = np.arange(20_000)
    codes = take_as_drawn(task, rows, np.zeros(20_000, dtype=np.int64), columns["y"])
    assert np.all(codes != DEAD)
    assert broken_constraints(codec, columns | {"a": codes}, list(Constraints.parse("a -> y"))) == ()


@pytest.mark.parametrize("rare", [True, False])
def test_rare_owners_of_rare_values_stay(rare: bool) -> None:
    """A tenth of 60 combinations of y and z has few rows. Are there values as rare, they stay; else they are noise."""
    codec = integers(y=6, z=10, a=60)
    often = np.where(np.arange(60) % 10 == 0, 2.0, 50.0) if rare else np.full(60, 45.0)
    rows = np.repeat(np.arange(60), np.where(np.arange(60) % 10, 50, 2))
    columns = {"y": rows // 10, "z": rows % 10}
    chance = np.tile(often / often.sum(), (len(rows), 1))
    rules = list(Constraints.parse("a -> y\na -> z"))
    task = make_task(codec, "a", columns, chance, rules, StepKind.OWNERSHIP, np.random.default_rng(0))
    codes = DRAWERS[StepKind.OWNERSHIP](task)
    assert np.any(codes == DEAD) != rare


def test_chain_holds() -> None:
    codec = Codec(
        Schema(
            attributes={
                "state": Integer(min=0, max=5),
                "salary": Integer(min=0, max=400_000),
                "rate": Integer(min=0, max=900_000, nullable=True),
            }
        )
    )
    table, kinds = draw(codec, "not (t1.state = t2.state and t1.salary > t2.salary and t1.rate < t2.rate)", 600)
    assert kinds[-1] is StepKind.CHAIN
    assert len(np.unique(table["rate"])) > 100


def test_long_chains_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kamino.sampling.steps.chain.chain._MAX_LEVELS", 50)
    draw(integers(x=100_000, a=200_000), "not (t1.x > t2.x and t1.a > t2.a)")


def test_chain_of_equal_ties_holds() -> None:
    draw(integers(x=30, a=100_000), "not (t1.x >= t2.x and t1.a < t2.a)")


@pytest.mark.parametrize("rows", [60, 4000])
@pytest.mark.parametrize(
    "text",
    [
        "x -> a\nnot (t1.x > t2.x and t1.a < t2.a)",
        "not (t1.x > t2.x and t1.a > t2.a)\nx -> a",
        "g, x -> a\nnot (t1.g = t2.g and t1.x > t2.x and t1.a < t2.a)",
        "x -> a\nnot (t1.x > t2.x and t1.a < t2.a)\ncheck (a != 7)",
    ],
)
def test_an_order_with_a_dependency_is_a_chain(text: str, rows: int) -> None:
    """A small and a large group; the steps keep both constraints without the repair at the end."""
    table, kinds = draw(integers(g=3, x=-300, a=-40), text, rows)
    assert StepKind.CHAIN in kinds
    assert StepKind.INDEXED not in kinds
    assert len(np.unique(table["a"])) > 3


def test_other_dependencies_beside_an_order_are_no_chain() -> None:
    """Rows of two groups share a value: an order within each group does not say so."""
    _, kinds = draw(integers(g=2, x=5, a=5), "x -> a\nnot (t1.g = t2.g and t1.x > t2.x and t1.a < t2.a)", 50)
    assert StepKind.CHAIN not in kinds


def test_a_chain_with_ties_keeps_the_marginal() -> None:
    """The model does not know x: the likeliest value alone would be the exact answer, and a poor one."""
    codec = integers(x=200, a=10)
    weight = np.arange(1.0, 11.0) / 55
    model = FakeModel(codec, ("x", "a"), max_bins=300, tables={"x": np.full(200, 1 / 200), "a": weight})
    plan = build_plan(codec, Constraints.parse("x -> a\nnot (t1.x > t2.x and t1.a < t2.a)"), sequence=("x", "a"))
    assert plan.steps[-1].kind is StepKind.CHAIN
    table = draw_table(plan, model, codec, 10_000, np.random.default_rng(0))
    assert np.abs(np.bincount(table["a"], minlength=10) / 10_000 - weight).sum() / 2 < 0.03


@pytest.mark.parametrize("size", [200, -200])
def test_ownership_keeps_the_marginal(size: int) -> None:
    """The model is sure of some owners only; values that others also might have keep their rows all the same."""
    codec = integers(y=10, a=size)
    rng = np.random.default_rng(2)
    count = codec["a"].size
    home = rng.integers(0, 10, size=count)
    sure = rng.uniform(0.2, 1.0, size=count)
    joint = np.where(home[None, :] == np.arange(10)[:, None], sure, (1 - sure) / 9)
    if size < 0:
        joint[:, -1] = 3.0
    tables = {"y": joint.sum(axis=1) / joint.sum(), "a": joint / joint.sum(axis=1, keepdims=True)}
    model = FakeModel(codec, ("y", "a"), parents={"a": ("y",)}, max_bins=300, tables=tables)
    plan = build_plan(codec, Constraints.parse("a -> y"), sequence=("y", "a"))
    assert plan.steps[-1].kind is StepKind.OWNERSHIP
    table = draw_table(plan, model, codec, 20_000, np.random.default_rng(0))
    used = np.bincount(table["a"], minlength=count) / 20_000
    expected = joint.sum(axis=0) / joint.sum()
    assert used[-1] == pytest.approx(expected[-1], rel=0.1)
    assert np.abs(used - expected).sum() / 2 < 0.05


def test_chain_follows_the_model() -> None:
    """Where the model has the order already, the chain leaves it: the mean of each block stays."""
    codec = integers(x=5, a=5)
    table = np.full((5, 5), 0.01) + 0.95 * np.eye(5)
    model = FakeModel(codec, ("x", "a"), parents={"a": ("x",)}, tables={"a": table, "x": np.full(5, 0.2)})
    plan = build_plan(codec, Constraints.parse("not (t1.x > t2.x and t1.a < t2.a)"))
    drawn = draw_table(plan, model, codec, 1000, np.random.default_rng(0))
    assert np.mean(drawn["x"] == drawn["a"]) > 0.98


def test_lookup_learns_the_map() -> None:
    codec = integers(x=16, a=16)
    truth = np.random.default_rng(0).permutation(16)
    table = np.full((16, 16), 0.03)
    table[np.arange(16), truth] = 0.55
    model = FakeModel(codec, ("x", "a"), parents={"a": ("x",)}, tables={"a": table, "x": np.full(16, 1 / 16)})
    drawn = draw_table(build_plan(codec, Constraints.parse("x -> a")), model, codec, 1000, np.random.default_rng(0))
    assert np.array_equal(drawn["a"], truth[drawn["x"]])


def _blind_draw(size: int, *, mixed: float) -> tuple[np.ndarray, np.ndarray]:
    """Shares in the column a of a table with x -> a, of a model that knows c only; and the expected ones."""
    codec = integers(c=2, x=4000, a=size)
    names, rng, seed = ("c", "x", "a"), np.random.default_rng(1), 0
    log = 2.0 * rng.normal(size=codec["a"].size) + mixed * rng.normal(size=(2, codec["a"].size))
    tables = {"a": np.exp(log) / np.exp(log).sum(axis=1, keepdims=True)}
    model = FakeModel(codec, names, parents={"a": ("c",)}, max_bins=4000, tables=tables)
    plan = build_plan(codec, Constraints.parse("x -> a"), sequence=names)
    assert plan.steps[-1].kind is StepKind.LOOKUP
    table = draw_table(plan, model, codec, 8000, np.random.default_rng(seed))
    assert broken_constraints(codec, table, list(Constraints.parse("x -> a"))) == ()
    used = np.bincount(table["a"], minlength=codec["a"].size) / 8000
    expected = np.bincount(table["c"], minlength=2) / 8000 @ model.table("a")
    return used, expected


@pytest.mark.parametrize("mixed", [0.0, 0.5])
def test_blind_lookup_keeps_the_marginal(mixed: float) -> None:
    """The product of the rows' distributions would be 0.44 to 0.48 away: its values are the frequent ones alone."""
    used, expected = _blind_draw(300, mixed=mixed)
    assert np.abs(used - expected).sum() / 2 < 0.08


def test_lookup_by_wide_bins_keeps_the_marginal() -> None:
    """The model depends on x, but in 16 bins of 250 values: it cannot tell which value goes with which x."""
    codec = integers(x=4000, a=300)
    weight = np.exp(2.0 * np.random.default_rng(1).normal(size=300))
    tables = {"x": np.full(16, 1 / 16), "a": np.tile(weight / weight.sum(), (16, 1))}
    model = FakeModel(codec, ("x", "a"), parents={"a": ("x",)}, max_bins=16, tables=tables)
    model.map_of = lambda name: CodeMap.identity(300) if name == "a" else FakeModel.map_of(model, name)
    plan = build_plan(codec, Constraints.parse("x -> a"), sequence=("x", "a"))
    table = draw_table(plan, model, codec, 8000, np.random.default_rng(0))
    used = np.bincount(table["a"], minlength=300) / 8000
    assert np.abs(used - weight / weight.sum()).sum() / 2 < 0.08


def test_blind_lookup_keeps_the_share_of_nulls() -> None:
    used, expected = _blind_draw(-300, mixed=0.5)
    assert used[-1] == pytest.approx(expected[-1], abs=0.004)
    assert np.abs(used - expected).sum() / 2 < 0.08


def test_lookup_keeps_the_share_of_nulls() -> None:
    """A model that knows the left side, but is not sure: half of its mass is on values that the group does not take."""
    codec = integers(x=40, a=-20)
    table = np.full((40, 21), 0.4 / 20)
    table[np.arange(40), np.arange(40) % 20] += 0.5
    table[:, -1] = 0.1
    model = FakeModel(codec, ("x", "a"), parents={"a": ("x",)}, tables={"a": table, "x": np.full(40, 1 / 40)})
    drawn = draw_table(build_plan(codec, Constraints.parse("x -> a")), model, codec, 4000, np.random.default_rng(0))
    there = drawn["a"] != 20
    assert np.mean(~there) == pytest.approx(0.1, abs=0.01)
    assert np.array_equal(drawn["a"][there], drawn["x"][there] % 20)


def test_chain_keeps_the_share_of_nulls() -> None:
    """Groups of about 20 rows whose values hardly know the order: nulls would be the easiest way to keep it."""
    codec = integers(g=100, x=30, a=-30)
    table = np.append(np.full(30, 0.9 / 30), 0.1)
    tables = {"g": np.full(100, 0.01), "x": np.full(30, 1 / 30), "a": table}
    model = FakeModel(codec, ("g", "x", "a"), max_bins=200, tables=tables)
    plan = build_plan(codec, Constraints.parse("not (t1.g = t2.g and t1.x < t2.x and t1.a > t2.a)"))
    drawn = draw_table(plan, model, codec, 2000, np.random.default_rng(0))
    assert np.mean(drawn["a"] == 30) == pytest.approx(0.1, abs=0.01)


def test_blind_lookup_rules_out_what_a_row_cannot_have() -> None:
    """Rows of both contexts share a group: the one value that both may have is taken."""
    codec = integers(c=2, x=50, a=3)
    tables = {"c": np.array([0.5, 0.5]), "x": np.full(50, 0.02), "a": np.array([[0.9, 0.1, 0.0], [0.0, 0.1, 0.9]])}
    names = ("c", "x", "a")
    model = FakeModel(codec, names, parents={"a": ("c",)}, tables=tables)
    plan = build_plan(codec, Constraints.parse("x -> a"), sequence=names)
    table = draw_table(plan, model, codec, 2000, np.random.default_rng(0))
    assert np.all(table["a"] == 1)


@pytest.mark.parametrize("size", [2000, 2400, 3_000_000, 10**9])
def test_unique_holds(size: int) -> None:
    table, _ = draw(integers(a=size, b=3), "key (a)")
    assert len(np.unique(table["a"])) == 2000


def test_composite_keys_hold() -> None:
    draw(integers(a=400, b=40, c=3), "key (a, b)")


def test_indexed_holds() -> None:
    _, kinds = draw(integers(a=6, b=6, c=6), "not (t1.a < t2.a and t1.b < t2.b and t1.c > t2.c)", 400)
    assert StepKind.INDEXED in kinds


def test_weights_are_felt() -> None:
    """A weighted dependency is broken less often than one that is ignored."""
    codec = integers(a=10, b=4)
    broken = []
    for text in ("weight 1: a -> b", "soft: a -> b"):
        plan = build_plan(codec, Constraints.parse(text))
        table = draw_table(plan, FakeModel(codec, plan.sequence), codec, 300, np.random.default_rng(0))
        (constraint,) = Constraints.parse("a -> b")
        broken.append(count_violations(_decode(codec, table), constraint))
    assert broken[0] < 0.3 * broken[1]


def _decode(codec: Codec, table: dict[str, np.ndarray]) -> object:
    from kamino.schema import CodedTable

    return codec.decode(CodedTable(columns=table, num_rows=len(next(iter(table.values())))))


def test_choices_keep_probabilities() -> None:
    codec = integers(x=3, a=-200)
    model = FakeModel(codec, ("x", "a"), parents={"a": ("x",)}, max_bins=7)
    columns = {"x": np.arange(3)}
    conditional = model.conditional("a", columns, 3)
    choices = make_choices(conditional, Judge(codec), (), columns)
    codes = np.arange(201)
    for row in range(3):
        log_share = conditional.cells.log_share(codes)
        wanted = np.exp(conditional.log_prob[row, conditional.cells.map(codes)] + log_share)
        mine = np.exp(choices.log_of(codes, np.full(201, row)))
        dense = np.exp(choices.by_code().log_of(codes, np.full(201, row)))
        assert np.allclose(mine / mine.sum(), wanted / wanted.sum())
        assert np.allclose(dense / dense.sum(), wanted / wanted.sum())


@pytest.mark.parametrize("size", [40, 3_000_000])
def test_choices_obey_checks(size: int) -> None:
    codec = integers(x=size, a=-size)
    text = "check (a != 7)\nnot (a > 11 and x < 9)\ncheck (a < 30)\nnot (a < x and x < 20)"
    table, kinds = draw(codec, text, 500)
    assert kinds == [StepKind.FREE, StepKind.MASK] or kinds == [StepKind.MASK, StepKind.MASK]
    assert len(np.unique(table["a"])) > 1


@pytest.mark.parametrize("sampling", list(Sampling))
def test_ways_to_sample(sampling: Sampling) -> None:
    codec = integers(a=6, b=6)
    constraints = list(Constraints.parse("a -> b\ncheck (b != 3)"))
    plan = build_plan(codec, constraints)
    table = draw_table(
        plan, FakeModel(codec, plan.sequence), codec, 200, np.random.default_rng(0), DrawOptions(sampling=sampling)
    )
    assert all(len(codes) == 200 for codes in table.values())
    broken = len(broken_constraints(codec, table, constraints))
    assert broken == (2 if sampling is Sampling.INDEPENDENT else 0)


def test_progress_is_told() -> None:
    codec = integers(a=3, b=3)
    plan = build_plan(codec, Constraints.parse("a -> b"))
    seen: list[tuple[str, int, int]] = []
    draw_table(
        plan,
        FakeModel(codec, plan.sequence),
        codec,
        5,
        np.random.default_rng(0),
        DrawOptions(progress=lambda step, place, total: seen.append((step.attribute, place, total))),
    )
    assert seen == [("a", 0, 2), ("b", 1, 2)]
    with pytest.raises(SamplingError, match="-1 rows"):
        draw_table(plan, FakeModel(codec, plan.sequence), codec, -1, np.random.default_rng(0))


def test_combinations_that_hardly_occur_take_no_value() -> None:
    """Two right sides that go together, but for a few rows: those become copies instead of taking values away."""
    codec = integers(a=19, x=3, y=3)
    rng = np.random.default_rng(1)
    x = rng.integers(0, 4, 4_000)
    y = np.where(rng.random(4_000) < 0.005, (x + 1) % 4, x)
    constraints = list(Constraints.parse("a -> x\na -> y"))
    task = make_task(codec, "a", {"x": x, "y": y}, np.full((4_000, 20), 0.05), constraints, StepKind.OWNERSHIP, rng)
    codes = DRAWERS[StepKind.OWNERSHIP](task)
    assert set(np.unique((x != y)[codes < 0])) == {True}
    assert np.bincount(codes[codes >= 0], minlength=20).min() > 100


def test_mapped_values_keep_the_models_bins() -> None:
    """a -> y by a map, and a model that knows which bins of a go with y: rows come into bins as it says."""
    codec = integers(y=6, a=60)
    references = {(("a",), "y"): pa.table({"a": range(60), "y": [i % 6 for i in range(60)]})}
    plan = build_plan(codec, Constraints.parse("a -> y"), sequence=("y", "a"), references=references)
    model = FakeModel(codec, ("y", "a"), parents={"a": ("y",)}, max_bins=10, sharpness=2.0)
    table = draw_table(plan, model, codec, 30_000, np.random.default_rng(0))
    assert (table["a"] % 6 == table["y"]).all()
    counts = np.bincount(table["y"] * 10 + table["a"] // 6, minlength=60).reshape(6, 10)
    np.testing.assert_allclose(counts, counts.sum(axis=1, keepdims=True) * model.table("a"), atol=2)


@pytest.mark.parametrize("known", [600, 300])
def test_maps_of_all_right_sides_are_followed(known: int) -> None:
    """a -> y, z with public maps and nulls on every side: rows hold a value of their y and z, evenly of all that have.

    Of the values that the map does not know, all may be somebody's.
    """
    codec = integers(y=-6, z=-10, a=-600)
    references = {
        (("a",), "y"): pa.table({"a": range(known), "y": [i // 10 % 6 for i in range(known)]}),
        (("a",), "z"): pa.table({"a": range(known), "z": [i % 10 for i in range(known)]}),
    }
    rules = Constraints.parse("a -> y\na -> z")
    plan = build_plan(codec, rules, sequence=("y", "z", "a"), references=references)
    model = FakeModel(codec, ("y", "z", "a"), max_bins=40)
    table = draw_table(plan, model, codec, 12_000, np.random.default_rng(0))
    y, z, a = (table[name] for name in "yza")
    mapped = a < known
    there = mapped & (y < 6)
    assert (a[there] // 10 % 6 == y[there]).all()
    assert (a[mapped & (z < 10)] % 10 == z[mapped & (z < 10)]).all()
    assert broken_constraints(codec, table, list(rules)) == ()
    held = np.bincount(a[a < 600], minlength=600)
    assert (held[:known] > 0).mean() > 0.85
    if known == 300:
        assert held[known:].sum() > 0.2 * len(a)
    assert 0 < (a == 600).mean() < 0.1


@pytest.mark.parametrize("seed", range(4))
def test_unsure_lookup_keeps_the_marginal(seed: int) -> None:
    """Each of 300 left sides likes its own value, and all like the first one more than they should.

    By the product of the rows' distributions the first value would take half of all rows, of which it has a sixth.
    """
    codec = integers(x=300, a=12)
    rng = np.random.default_rng(seed)
    own = rng.integers(1, 12, 300)
    table = np.full((300, 12), 0.04)
    table[:, 0] = 0.3
    table[np.arange(300), own] += np.where(rng.random(300) < 0.5, 0.1, 0.9)
    table /= table.sum(axis=1, keepdims=True)
    model = FakeModel(
        codec, ("x", "a"), parents={"a": ("x",)}, max_bins=400, tables={"a": table, "x": rng.dirichlet(np.ones(300))}
    )
    plan = build_plan(codec, Constraints.parse("x -> a"), sequence=("x", "a"))
    drawn = draw_table(plan, model, codec, 20_000, np.random.default_rng(seed))
    expected = np.bincount(drawn["x"], minlength=300) / 20_000 @ table
    used = np.bincount(drawn["a"], minlength=12) / 20_000
    assert np.abs(used - expected).sum() / 2 < 0.06
    sure = table[np.arange(300), own] > 0.5
    assert np.mean((drawn["a"] == own[drawn["x"]])[sure[drawn["x"]]]) > 0.95
