"""The plan is the program: what a run releases and how it draws is what was planned."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.constraints import Constraints
from kamino.engine.finding_policy import FINDING
from kamino.errors import PrivacyError, SamplingError
from kamino.pipeline import Settings, Synthesizer
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.fitting import fit, open_gate
from kamino.pipeline.plan.run_plan import RunPlan, plan_run, plan_table
from kamino.privacy import Entry, GaussianEvent, Neighbours
from kamino.privacy.private import PrivateTable
from kamino.privacy.schedule import PlannedRelease, Rule, Schedule
from kamino.sampling.plan import planner
from kamino.schema import Boolean, Categorical, Date, Datetime, Integer, Key, Real, Schema

RULES = (
    "a -> b",
    "b -> a",
    "w -> a",
    "w -> b\nw -> f",
    "check (f >= 0)",
    "check (f <= 700 or b = 'x')",
    "not (t1.f > t2.f and t1.r < t2.r)",
    "soft: a -> f",
    "soft: check (r > 1)",
    "weight 2: not (t1.f > t2.f and t1.r < t2.r)",
    "check (d <= e)",
    "check (a <= w)",
    "a -> d",
    "d -> m",
    "d -> m\ncheck (m <= 6)",
)
ATTRIBUTES = {
    "a": Integer(min=0, max=5, nullable=True),
    "b": Categorical(values=["x", "y", "z"]),
    "w": Integer(min=0, max=99),
    "f": Integer(min=0, max=899),
    "r": Real(min=0, max=9, decimals=1, nullable=True),
    "t": Boolean(),
    "d": Date(min=dt.date(2020, 1, 1), max=dt.date(2021, 1, 1)),
    "e": Date(min=dt.date(2020, 1, 1), max=dt.date(2021, 1, 1), nullable=True),
    "m": Integer(min=1, max=12, nullable=True),
    "g": Datetime(min=dt.datetime(2020, 1, 1), max=dt.datetime(2021, 1, 1), nullable=True),
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a run is asked to do, and the table it is asked of."""

    table: pa.Table
    schema: Schema | None
    rules: str
    untyped: bool
    reference: bool
    settings: Settings


@st.composite
def cases(draw: st.DrawFn) -> Case:
    names = draw(st.lists(st.sampled_from(sorted(ATTRIBUTES)), min_size=1, unique=True))
    lines = "\n".join(draw(st.lists(st.sampled_from(RULES), max_size=3, unique=True))).splitlines()
    rules = [rule for rule in lines if _named(rule) <= set(names)]
    declared = draw(st.sampled_from(["all", "all", "some", "none", "untyped"]))
    known = {
        name: ATTRIBUTES[name] if declared == "all" or draw(st.booleans()) else _without_domain(name) for name in names
    }
    unit = draw(st.sampled_from([None, None, 1, 3]))
    table = _table(draw(st.integers(0, 120)), draw(st.integers(0, 9)), unit is not None).select(
        [*names, *(["who"] if unit else [])]
    )
    who = draw(st.sampled_from([Integer(min=0, max=40), Key(repeats=True)]))
    schema = Schema(attributes=known | ({"who": who} if unit else {}))
    rules += ["who -> b"] if unit and "b" in names and draw(st.booleans()) else []
    if declared == "untyped":
        table = pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})
    return Case(
        table=table,
        schema=schema if declared in ("all", "some") else None,
        rules="\n".join(rules),
        untyped=declared == "untyped",
        reference="w -> b" in rules and draw(st.booleans()),
        settings=Settings(
            epsilon=draw(st.sampled_from([0.3, 3.0, float("inf")])),
            neighbours=draw(st.sampled_from(Neighbours)),
            sequence=draw(st.sampled_from(["planned", "planned", "paper", "random"])),
            unit="who" if unit else None,
            max_rows=unit,
            seed=draw(st.integers(0, 99)),
            anyway=True,
        ),
    )


def _named(rule: str) -> set[str]:
    words = "".join(c if c.isalnum() else " " for c in rule.replace("t1.", "").replace("t2.", "")).split()
    return {word for word in words if word in ATTRIBUTES and f"'{word}'" not in rule}


def _without_domain(name: str) -> Any:
    match ATTRIBUTES[name]:
        case Integer():
            return Integer(nullable=True)
        case Real():
            return Real(decimals=1, nullable=True)
        case Categorical():
            return Categorical(nullable=True)
        case Date():
            return Date(nullable=True)
        case Datetime():
            return Datetime(nullable=True)
        case other:
            return other


def _table(num_rows: int, seed: int, owned: bool) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {
        "a": rng.integers(0, 6, num_rows),
        "b": rng.choice(["x", "y", "z"], num_rows),
        "w": rng.integers(0, 100, num_rows),
        "f": np.minimum(rng.gamma(2, 100, num_rows).astype(int), 899),
        "r": np.round(rng.random(num_rows) * 9, 1),
        "t": rng.random(num_rows) < 0.3,
    }
    start = np.datetime64("2020-01-01") + rng.integers(0, 300, num_rows)
    columns["m"] = start.astype("datetime64[M]").astype(int) % 12 + 1
    columns["d"], columns["e"] = start, start + rng.integers(0, 20, num_rows)
    columns["g"] = start.astype("datetime64[us]") + rng.integers(0, 10**12, num_rows).astype("timedelta64[us]")
    return pa.table({**columns, "who": rng.integers(0, 41, num_rows)} if owned else columns)


def run(case: Case, folder: Path) -> tuple[RunPlan, Fitted, tuple[Entry, ...]]:
    """Run, and return the plan that was followed at the end, what was fitted, and the ledger."""
    rules = case.rules
    if case.reference:
        zips = "".join(f"{i},{'xyz'[i % 3]}\n" for i in range(100))
        (folder / "w.csv").write_text(f"w,b\n{zips}")
        rules = rules.replace("w -> b", "w -> b using w.csv")
    plans = []
    original = RunPlan.with_schema

    def with_schema(plan: RunPlan, schema: Schema) -> RunPlan:
        plans.append(original(plan, schema))
        return plans[-1]

    constraints = Constraints.parse(rules)
    plans.append(
        plan_table(
            PrivateTable(case.table), case.schema, constraints, case.settings, untyped=case.untyped, folder=folder
        )
    )
    gate = open_gate(case.settings)
    with patch.object(RunPlan, "with_schema", with_schema):
        fitted = fit(PrivateTable(case.table), plans[0], gate)
    return plans[-1], fitted, gate.ledger.entries


@examples(50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_the_ledger_is_what_was_planned(case: Case, tmp_path: Path) -> None:
    check_ledger(case, tmp_path)


@pytest.mark.slow
@examples(500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_the_ledger_is_what_was_planned_in_many_runs(case: Case, tmp_path: Path) -> None:
    check_ledger(case, tmp_path)


def check_ledger(case: Case, tmp_path: Path) -> None:
    """A run is planned and done, and releases nothing else."""
    try:
        plan, fitted, entries = run(case, tmp_path)
    except SamplingError:
        return  # rules that clash, or types that were found otherwise than they are
    except Exception as problem:
        if case.untyped and "this type was found" in str(problem):
            return
        raise
    assert plan.schedule.differences(entries, case.settings.neighbours) == ()
    assert plan.is_complete
    _assert_steps(plan, fitted)
    if case.schema is not None and not case.schema.missing_domains:
        first = plan_run(case.schema, plan.given, case.settings, folder=tmp_path)
        assert first.to_json() == plan.to_json()


def _assert_steps(plan: RunPlan, fitted: Fitted) -> None:
    """What is printed of order and steps is how the table is drawn."""
    printed = plan.to_json()["sampling"]
    made = fitted.plan.to_json()
    assert fitted.model.sequence == fitted.plan.sequence
    if printed["sequence"] is not None:
        assert printed == made
        return
    order = made["sequence"]
    for chain in printed["chains"]:
        assert sorted(chain, key=order.index) == chain
    for step in made["steps"]:
        own = [each for each in printed["steps"] if max(each["last_of"], key=order.index) == step["attribute"]]
        assert sorted(step["constraints"]) == sorted(c for each in own for c in each["constraints"])
        kinds = {each["kind"] for each in own if each["constraints"]}
        joint = kinds - {"free", "mask"}
        assert {step["kind"]} == (joint or ({"mask"} if kinds else {"free"}))


@pytest.mark.parametrize("epsilon", [1.0, float("inf")])
def test_the_delta_that_is_set_aside_was_planned(epsilon: float, tmp_path: Path) -> None:
    """Categories of columns without types take from what was set aside before the types were found."""
    asked = Settings(epsilon=epsilon, seed=1)
    table = _table(5_000, 1, False).select(["b", "t", "w"])
    texts = pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})
    case = Case(table=texts, schema=None, rules="", untyped=True, reference=False, settings=asked)
    plan, _, entries = run(case, tmp_path)
    assert plan.schedule.differences(entries, asked.neighbours) == ()
    assert [entry.kind for entry in entries[:2]] == ["aside", "counts"]
    taken = [entry.from_aside for entry in entries if entry.kind == "categories"]
    share = asked.delta * FINDING.delta if asked.budget.is_private else 0.0
    assert taken
    assert sum(taken) == pytest.approx(share)
    unplanned = [replace(entry, from_aside=0.0) for entry in entries]
    assert bool(plan.schedule.differences(unplanned, asked.neighbours)) == asked.budget.is_private


def test_the_steps_are_what_was_planned(tmp_path: Path) -> None:
    (tmp_path / "zips.csv").write_text("zip,state\n" + "".join(f"{i},{'abc'[i % 3]}\n" for i in range(30)))
    (tmp_path / "rules.dc").write_text("zip -> state using zips.csv\n")
    schema = Schema(attributes={"state": Categorical(values=["a", "b", "c"]), "zip": Integer(min=0, max=29)})
    synthesizer = Synthesizer(schema, tmp_path / "rules.dc", seed=1)
    printed = synthesizer.plan().to_json()["sampling"]
    assert [(step["attribute"], step["kind"]) for step in printed["steps"]] == [("zip", "free"), ("state", "lookup")]
    zips = np.arange(200) % 30
    fitted = synthesizer.fit(pa.table({"zip": zips, "state": np.array(list("abc"))[zips % 3]})).fitted
    assert fitted.plan.to_json() == printed


@pytest.mark.parametrize("unit", [None, 3])
def test_the_noise_of_a_wide_integer_is_what_was_planned(unit: int | None) -> None:
    schema = Schema(
        attributes={
            "who": Integer(min=0, max=60),
            "age": Integer(min=0, max=899),
            "flag": Boolean(),
        }
    )
    made = Synthesizer(schema, unit="who" if unit else None, max_rows=unit, seed=1)
    (age,) = (each for each in made.plan().expected if each.attribute == "age")
    table = pa.table({"who": np.arange(100) % 61, "age": np.arange(100) * 8, "flag": [True, False] * 50})
    entries = made.fit(table).ledger["entries"]
    first = next(entry for entry in entries if entry["attributes"] == ["age"])
    # 128 even cells, and both ends of the range.
    assert (age.cells, age.sigma) == (130, first["sigma"])
    assert first["shape"] == [130]
    alone = next(each.sigma for each in Synthesizer(schema).plan().expected if each.attribute == "age")
    assert age.sigma == pytest.approx((unit or 1) * alone, rel=1e-3)


def test_a_plan_is_built_once_in_a_run() -> None:
    schema = Schema(attributes={"zip": Integer(min=0, max=29), "state": Categorical(values=["a", "b", "c"])})
    zips = np.arange(300) % 30
    table = pa.table({"zip": zips, "state": np.array(list("abc"))[zips % 3]})
    for rules in ("zip -> state\nsoft: state -> zip", "check (zip < 29)"):
        with (
            patch.object(
                planner.Requirements, "arrange", autospec=True, side_effect=planner.Requirements.arrange
            ) as arranged,
            patch.object(planner, "refuse_unsatisfiable", side_effect=planner.refuse_unsatisfiable) as checked,
        ):
            made = Synthesizer(schema, rules, seed=1).fit(table)
            made.certificate(made.sample(500))
        assert arranged.call_count == 1
        assert checked.call_count == 1


def test_more_rows_than_were_planned_for_are_checked_again() -> None:
    schema = Schema(attributes={"a": Integer(min=0, max=9), "b": Boolean()})
    made = Synthesizer(schema, "key (a)", seed=1).fit(pa.table({"a": list(range(10)), "b": [True] * 10}))
    assert made.sample(10).num_rows == 10
    with pytest.raises(SamplingError, match=r"no table of 11 rows .*: key \(a\)"):
        made.sample(11)


@pytest.mark.parametrize("given", [{"preset": "paper"}, {"backend": "neural", "epsilon": 3.0}])
def test_the_ledger_of_a_neural_run_is_what_was_planned(given: dict[str, Any]) -> None:
    schema = Schema(attributes={"b": Categorical(values=["x", "y", "z"]), "a": Integer(min=0, max=299)})
    asked = Settings.of(**given, seed=1)
    rules = Constraints.parse("soft: a -> b")
    table = _table(200, 1, False).select(["a", "b"])
    early = plan_table(PrivateTable(table), schema, rules, asked)
    gate = open_gate(asked)
    fitted = fit(PrivateTable(table), early, gate)
    assert early.schedule.differences(gate.ledger.entries, asked.neighbours) == ()
    known = plan_run(schema, rules, asked, num_rows=fitted.num_rows)
    assert all(each.rule is Rule.EACH for each in known.schedule)
    assert known.schedule.differences(gate.ledger.entries, asked.neighbours) == ()
    _assert_steps(early, fitted)


def test_a_gate_of_another_budget_is_refused() -> None:
    schema = Schema(attributes={"a": Boolean()})
    table = pa.table({"a": [True]})
    plan = plan_table(PrivateTable(table), schema, Constraints(), Settings())
    with pytest.raises(PrivacyError, match="another budget"):
        fit(PrivateTable(table), plan, open_gate(Settings(epsilon=2.0)))


def test_samples_of_units_are_refused_before_anything_is_spent() -> None:
    schema = Schema(attributes={"a": Integer(min=0, max=99), "b": Integer(min=0, max=99)})
    with pytest.raises(PrivacyError, match="samples single rows"):
        plan_run(schema, Constraints(), Settings(backend="neural", unit="a", max_rows=2))


def entry(**changed: Any) -> Entry:
    facts = {"kind": "counts", "what": "ages", "attributes": ("a",), "shape": (9,), "sigma": 4.0}
    multiplier = changed.pop("z", 4.0)
    events = ((GaussianEvent(noise_multiplier=multiplier), 1),)
    return Entry(**{**facts, "events": events, **changed})


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({}, ""),
        ({"kind": "vector"}, "vector, planned counts"),
        ({"attributes": ("b",)}, "planned on ('a',)"),
        ({"shape": (2, 5)}, "10 cells, planned at most 9"),
        ({"z": 4.1}, "noise multiplier 4.1, planned 4"),
        ({"sigma": 4.1}, "sigma 4.1, planned 4"),
        ({"from_aside": 1e-8}, "1e-08 of the delta set aside, planned 0"),
    ],
)
def test_a_difference_is_told(changed: dict[str, Any], text: str) -> None:
    planned = PlannedRelease(
        part="p", kind="counts", what="ages", attributes=("a",), noise_multiplier=4.0, most_cells=9, sigma=4.0
    )
    found = planned.differs(entry(**changed), Neighbours.ADD_REMOVE)
    assert text in found
    assert bool(found) == bool(text)
    twice = Schedule(releases=(planned,)).differences([entry()] * 2, Neighbours.ADD_REMOVE)
    assert len(twice) == 1


def test_a_share_that_is_not_divided_as_planned_is_told() -> None:
    planned = PlannedRelease(
        part="p",
        kind="counts",
        what="pairs",
        attributes=("a", "b"),
        choose=1,
        rule=Rule.TOGETHER,
        noise_multiplier=4.0,
        most=2,
        share=0.25,
        whole=2.0,
    )
    fair = [entry(z=4.0 * 2**0.5), entry(z=4.0 * 2**0.5, attributes=("b",))]
    rest = replace(planned, part="rest", rule=Rule.REST, kind="vector", noise_multiplier=2.0)
    schedule = Schedule(releases=(planned, rest))
    assert schedule.differences(fair, Neighbours.ADD_REMOVE) == ()
    assert schedule.differences(fair[:1], Neighbours.ADD_REMOVE)
    unfair = [entry(z=4.0 * 1.25**0.5), entry(z=4.0 * 5**0.5, attributes=("b",))]
    assert schedule.differences(unfair, Neighbours.ADD_REMOVE) == ("p, pairs: not divided by cells as planned",)
    assert schedule.differences([entry(z=2.5, kind="vector")], Neighbours.ADD_REMOVE)
