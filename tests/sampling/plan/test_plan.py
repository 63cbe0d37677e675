"""Plans: data made from schema and constraints alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from tests.constraints.brute_force import violations
from tests.sampling.fakes import integers
from tests.sampling.strategies import problems
from tests.sampling.tables import ADULT, ADULT_CONSTRAINTS, TAX, TAX_CONSTRAINTS, TPCH, TPCH_CONSTRAINTS
from tests.trying import examples

from kamino.constraints import Constraints, DenialConstraint, print_constraint
from kamino.errors import SamplingError, SchemaError
from kamino.sampling import SamplingPlan, Step, StepKind, build_plan
from kamino.sampling.plan.planner import require
from kamino.sampling.plan.shapes import split_implied
from kamino.schema import Boolean, Codec, Integer, Key, Schema

ADULT_PLAN = """\
attribute      step    constraints                                                                    why
education      free                                                                                   no constraint on pairs of rows ends here
education-num  lookup  education -> education-num                                                     one value for each education
capital-loss   free                                                                                   no constraint on pairs of rows ends here
capital-gain   chain   not (t1.capital-gain < t2.capital-gain and t1.capital-loss < t2.capital-loss)  never rises with capital-loss: drawn jointly
sex            free                                                                                   no constraint on pairs of rows ends here
income         free                                                                                   no constraint on pairs of rows ends here
age            mask    check (age >= 17)                                                              values restricted by 1 check on single rows"""  # noqa: E501


def kinds(plan: SamplingPlan) -> list[tuple[str, str]]:
    return [(step.attribute, step.kind.value) for step in plan.steps]


def test_adult_plan_snapshot() -> None:
    assert str(build_plan(ADULT, ADULT_CONSTRAINTS, num_rows=32561)) == ADULT_PLAN


def test_tax_plan_snapshot() -> None:
    assert kinds(build_plan(TAX, TAX_CONSTRAINTS, num_rows=30000)) == [
        ("MaritalStatus", "free"),
        ("HasChild", "free"),
        ("State", "free"),
        ("AreaCode", "ownership"),
        ("ChildExemp", "lookup"),
        ("Zip", "ownership"),
        ("City", "lookup"),
        ("SingleExemp", "lookup"),
        ("Salary", "free"),
        ("Rate", "chain"),
        ("Gender", "free"),
    ]


def test_tpch_plan_snapshot() -> None:
    plan = build_plan(TPCH, TPCH_CONSTRAINTS, num_rows=20000)
    assert kinds(plan) == [
        ("c_mktsegment", "free"),
        ("n_name", "free"),
        ("n_regionkey", "lookup"),
        ("c_nationkey", "free"),
        ("c_custkey", "ownership"),
        ("o_orderstatus", "free"),
        ("c_acctbal", "free"),
    ]


def test_plan_is_json() -> None:
    data = json.loads(json.dumps(build_plan(TPCH, TPCH_CONSTRAINTS).to_json()))
    assert data["sequence"][0] == "c_mktsegment"
    assert data["steps"][2]["constraints"] == ["n_name -> n_regionkey"]


def test_plan_invariants() -> None:
    step = Step(attribute="a", kind=StepKind.FREE)
    with pytest.raises(SamplingError, match="follow its sequence"):
        SamplingPlan(sequence=("b",), steps=(step,))
    with pytest.raises(SamplingError, match="more than once"):
        SamplingPlan(sequence=("a", "a"), steps=(step, step))


def test_plan_reads_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever could read rows is broken while planning; public domains are still listed, through decoding."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("planning must not encode or read a table")

    monkeypatch.setattr("kamino.schema.AttributeCodec.encode", refuse)
    monkeypatch.setattr("kamino.schema.Codec.encode", refuse)
    monkeypatch.setattr(pa, "csv", refuse, raising=False)
    assert build_plan(TAX, TAX_CONSTRAINTS, num_rows=100).sequence


def test_plans_are_deterministic() -> None:
    assert build_plan(TAX, TAX_CONSTRAINTS) == build_plan(TAX, TAX_CONSTRAINTS)


@examples(100, suppress_health_check=list(HealthCheck))
@given(problems())
def test_every_constraint_has_its_place(problem: tuple[Codec, Constraints, int]) -> None:
    codec, constraints, num_rows = problem
    try:
        plan = build_plan(codec, constraints, num_rows=num_rows)
    except SamplingError:
        return
    placed = sorted(print_constraint(c) for c in plan.hard)
    assert placed == sorted(print_constraint(c) for c in constraints)
    for i, step in enumerate(plan.steps):
        for constraint in step.enforced:
            assert step.attribute in constraint.attributes
            assert set(constraint.attributes) <= set(plan.sequence[: i + 1])


@examples(100, suppress_health_check=list(HealthCheck))
@given(problems())
def test_implied_constraints_hold(problem: tuple[Codec, Constraints, int]) -> None:
    from itertools import combinations, product

    codec, constraints, _ = problem
    kept, implied = split_implied(constraints)
    names = list(codec.attributes)[:3]
    domains = [[codec[n].value_of(i) for i in range(codec[n].size)][-3:] for n in names]
    small = [dict(zip(names, values, strict=True)) for values in product(*domains)]

    def readable(constraint: DenialConstraint) -> bool:
        return set(constraint.attributes) <= set(names)

    def broken(which: Iterable[DenialConstraint], rows: list[dict[str, object]]) -> bool:
        return any(violations(c, rows) for c in which if readable(c))

    if not all(readable(c) for c in kept):
        return
    for one, other in combinations([*small, *small], 2):
        if not broken(kept, [one, other]):
            assert not broken(implied, [one, other])


def test_made_up_keys_need_no_step() -> None:
    codec = Codec(Schema(attributes={"id": Key(), "a": Integer(min=0, max=3), "b": Boolean()}))
    plan = build_plan(
        codec, Constraints.parse("key (id)\nid -> a\nnot (t1.id != t2.id and t1.a = t2.a and t1.b != t2.b)")
    )
    assert kinds(plan) == [("a", "free"), ("b", "lookup")]
    with pytest.raises(SamplingError, match="compares a key"):
        build_plan(codec, Constraints.parse("not (t1.id < t2.id and t1.a > t2.a)"))
    with pytest.raises(SchemaError, match="not in the schema"):
        build_plan(codec, Constraints.parse("key (idd)"))


def test_soft_constraints_are_listed_and_weighted_ones_indexed() -> None:
    plan = build_plan(integers(a=3, b=3), Constraints.parse("soft: a -> b\nweight 2: key (a)"))
    assert [print_constraint(c) for c in plan.soft] == ["soft: a -> b"]
    assert ("a", "indexed") in kinds(plan)


@pytest.mark.parametrize(
    ("text", "sizes", "num_rows", "named"),
    [
        ("key (a)\nb -> a", {"a": 5, "b": 9}, 6, ["key (a)"]),
        ("key (a, b)\na -> b", {"a": 5, "b": 9}, 6, ["a -> b", "key (a, b)"]),
        ("check (a > 2)\nb -> a\ncheck (a < 3)", {"a": 5, "b": 9}, 1, ["check (a < 3)", "check (a > 2)"]),
        ("check (a > 7)\ncheck (b > 0)", {"a": 5, "b": 9}, 1, ["check (a > 7)"]),
        ("key (a)", {"a": 1_000_000, "b": 2}, 1_000_001, ["key (a)"]),
        ("key (a)\ncheck (a is not null)", {"a": -5, "b": 2}, 6, ["check (a is not null)", "key (a)"]),
    ],
)
def test_refusals_name_the_smallest_set(text: str, sizes: dict[str, int], num_rows: int, named: list[str]) -> None:
    codec = integers(**sizes)
    with pytest.raises(SamplingError) as caught:
        build_plan(codec, Constraints.parse(text), num_rows=num_rows)
    texts = re.search(r"(?:this constraint|together): (.*)\. (?:Ask|Widen) ", str(caught.value))
    assert texts is not None
    assert sorted(texts.group(1).split("; ")) == named
    build_plan(codec, Constraints.parse(text.replace("> 7", ">= 0").replace("< 3", ">= 0")), num_rows=1)


def test_nulls_do_not_fill_a_key() -> None:
    assert build_plan(integers(a=-2), Constraints.parse("key (a)"), num_rows=100).steps[0].kind is StepKind.UNIQUE


def test_what_a_check_compares_with_a_right_side_comes_after_it() -> None:
    """The other way round, the largest value of air among the rows of a route would decide how long the route is."""
    codec = integers(route=30, length=500, air=500, free=3)
    rules = Constraints.parse("route -> length\ncheck (air <= length)")
    required = require(codec, rules)
    (chain,) = required.chains
    assert chain[-1] == "air"
    assert set(chain) == {"route", "length", "air"}
    order = required.arrange().sequence
    assert order.index("length") < order.index("air")
