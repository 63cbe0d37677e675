"""Public maps of dependencies are used as they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.sampling.fakes import FakeModel, integers

from kamino.constraints import Constraints
from kamino.errors import SamplingError
from kamino.sampling import StepKind, build_plan, draw_table
from kamino.sampling.codes.recounting import broken_constraints

ZIPS = pa.table({"zip": list(range(90)), "state": [i % 7 for i in range(90)], "extra": ["x"] * 90})


def test_lookup_uses_the_map() -> None:
    codec = integers(zip=100, state=8)
    plan = build_plan(codec, Constraints.parse("zip -> state"), references={(("zip",), "state"): ZIPS})
    assert [step.kind for step in plan.steps] == [StepKind.FREE, StepKind.LOOKUP]
    assert "public map" in plan.steps[1].reason
    assert plan.to_json()["references"] == [{"left": ["zip"], "right": "state", "entries": 90}]
    table = draw_table(plan, FakeModel(codec, plan.sequence), codec, 1000, np.random.default_rng(0))
    known = table["zip"] < 90
    assert known.any()
    assert np.array_equal(table["state"][known], table["zip"][known] % 7)


def test_ownership_uses_the_map() -> None:
    codec = integers(zip=100, state=8)
    constraints = Constraints.parse("zip -> state")
    plan = build_plan(codec, constraints, references={(("zip",), "state"): ZIPS}, sequence=("state", "zip"))
    assert plan.steps[1].kind is StepKind.OWNERSHIP
    table = draw_table(plan, FakeModel(codec, plan.sequence), codec, 1000, np.random.default_rng(0))
    known = table["zip"] < 90
    assert np.array_equal(table["state"][known], table["zip"][known] % 7)


@pytest.mark.parametrize(
    ("left", "table", "message"),
    [
        ("zip", pa.table({"zip": [1]}), "no column state"),
        ("zip", pa.table({"zip": [1, 1], "state": [1, 2]}), "two values of state"),
        ("state", ZIPS, "no hard constraint"),
    ],
)
def test_wrong_references_are_refused(left: str, table: pa.Table, message: str) -> None:
    right = "state" if left == "zip" else "zip"
    with pytest.raises(SamplingError, match=message):
        build_plan(integers(zip=9, state=8), Constraints.parse("zip -> state"), references={((left,), right): table})


def test_values_outside_the_domain_are_left_out() -> None:
    table = pa.table({"zip": [1, 2, 500, None], "state": [1, 99, 3, 2]})
    plan = build_plan(
        integers(zip=9, state=8), Constraints.parse("zip -> state"), references={(("zip",), "state"): table}
    )
    assert plan.references[("zip",), "state"].num_entries == 1


def test_a_wide_left_side_is_drawn_among_those_of_its_right_sides() -> None:
    """The counts of 2,400 times are noise; those of 24 hours and 60 minutes are not. Wide right sides are looked up."""
    time = np.arange(1440)
    times = pa.table({"time": time, "hour": time // 60, "minute": time % 60})
    rules = Constraints.parse("time -> hour\ntime -> minute")
    references = {(("time",), "hour"): times, (("time",), "minute"): times}
    plan = build_plan(integers(time=1440, hour=24, minute=60), rules, references=references)
    assert plan.sequence[-1] == "time"
    assert [step.kind for step in plan.steps] == [StepKind.FREE, StepKind.FREE, StepKind.OWNERSHIP]
    plan = build_plan(integers(time=1440, hour=700, minute=800), rules, references=references)
    assert plan.sequence[0] == "time"
    assert [step.kind for step in plan.steps] == [StepKind.FREE, StepKind.LOOKUP, StepKind.LOOKUP]


@pytest.mark.parametrize(
    ("rule", "hours", "implied"),
    [
        ("not (t1.time < t2.time and t1.hour > t2.hour)", [i // 60 for i in range(1440)], True),
        ("not (t1.time < t2.time and t1.hour < t2.hour)", [i // 60 for i in range(1440)], False),
        ("not (t1.time < t2.time and t1.hour < t2.hour)", [23 - i // 60 for i in range(1440)], True),
        ("not (t1.time < t2.time and t1.hour > t2.hour)", [i // 60 for i in range(1439)], False),
        ("not (t1.time < t2.time and t1.hour > t2.hour)", [*(i // 60 for i in range(1439)), 0], False),
    ],
    ids=["rises", "falls", "falls in both", "a value unknown", "one step back"],
)
def test_a_map_may_keep_an_order(rule: str, hours: list[int], implied: bool) -> None:
    rules = Constraints.parse(f"time -> hour\n{rule}")
    reference = pa.table({"time": range(len(hours)), "hour": hours})
    codec = integers(time=1440, hour=24)
    plan = build_plan(codec, rules, references={(("time",), "hour"): reference})
    (_, order) = rules
    assert (order in plan.implied) == implied
    assert order in plan.hard
    if implied:
        table = draw_table(plan, FakeModel(codec, plan.sequence), codec, 500, np.random.default_rng(0))
        assert broken_constraints(codec, table, list(rules)) == ()
        assert (np.array(hours)[table["time"]] == table["hour"]).all()
