"""A run is a program: its stages release what they planned, and are refused anything else while they run."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kamino.constraints import Constraints
from kamino.errors import PrivacyError
from kamino.pipeline import Settings, Synthesizer
from kamino.pipeline.fitting import open_gate
from kamino.pipeline.plan.run_plan import RunPlan, plan_table
from kamino.pipeline.program import programs
from kamino.pipeline.program.programs import PROGRAM, run_program
from kamino.pipeline.program.release_stage import Learned, Means, PrivateRows
from kamino.privacy import Gate
from kamino.privacy.plan_guard import PlanGuard
from kamino.privacy.private import PrivateTable
from kamino.schema import Categorical, Date, Integer, Key, Schema

DAYS = Date(min=dt.date(2020, 1, 1), max=dt.date(2020, 12, 31), nullable=True)
SCHEMA = Schema(
    attributes={
        "who": Key(repeats=True, dtype="int64"),
        "age": Integer(min=0, max=99),
        "city": Categorical(values=["Rome", "Oslo", "Bern"]),
        "in": DAYS,
        "out": DAYS,
    }
)
RULES = Constraints.parse("who -> city\nsoft: city -> age")


def visits(rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(1)
    start = np.datetime64("2020-02-01") + rng.integers(0, 200, rows)
    return pa.table(
        {
            "who": np.arange(rows) // 3,
            "age": rng.integers(0, 99, rows),
            "city": np.array(["Rome", "Oslo", "Bern"])[np.arange(rows) // 3 % 3],
            "in": start,
            "out": start + rng.integers(0, 9, rows),
        }
    )


def run(schema: Schema | None = SCHEMA, **settings: Any) -> tuple[RunPlan, Learned, Gate]:
    asked = Settings(**{"epsilon": 4.0, "seed": 2, "unit": "who", "max_rows": 3, "anyway": True, **settings})
    private = PrivateTable(visits())
    plan = plan_table(private, schema, RULES, asked)
    gate = open_gate(asked)
    return plan, run_program(private, plan, Means(gate=gate)), gate


def test_stages_are_planned_until_one_waits_and_run_to_the_end() -> None:
    plan, known, gate = run()
    names = [stage.name for stage in PROGRAM]
    assert [stage.name for stage in plan.program] == names
    assert known.model is not None
    made = iter(gate.ledger.entries)
    for stage in known.plan.program:
        for release in stage.releases:
            assert release.most >= 1
    assert len(list(made)) <= sum(release.most for release in known.plan.schedule)
    open_ones = Schema(attributes={**SCHEMA.attributes, "city": Categorical(), "age": Integer()})
    early, known, _ = run(open_ones)
    assert [stage.name for stage in early.program] == names[: names.index("find domains") + 1]
    assert [stage.name for stage in known.plan.program] == names
    assert known.plan.of_stage("find domains").releases[-1].part == "domains"


def test_plans_are_small() -> None:
    assert len(fields(RunPlan)) < 10


Fault = Callable[[Gate, Any], Callable[..., Any]]


def extra(gate: Gate, real: Any) -> Any:
    def counts(values: Any, **told: Any) -> Any:
        real(values, **told)
        return real(values, **told)

    return counts


def larger(gate: Gate, real: Any) -> Any:
    def counts(values: Any, **told: Any) -> Any:
        return real(np.concatenate([values.ravel(), np.zeros(10_000, dtype=np.int64)]), **told)

    return counts


def less_noise(gate: Gate, real: Any) -> Any:
    def counts(values: Any, **told: Any) -> Any:
        return real(values, **{**told, "noise_multiplier": told["noise_multiplier"] * 0.99})

    return counts


def of_others(gate: Gate, real: Any) -> Any:
    def counts(values: Any, **told: Any) -> Any:
        return real(values, **{**told, "attributes": (*told["attributes"], "age")})

    return counts


# Which stage is at fault, by what it is about.
STAGES = ("group sizes", "fit model")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("fault", [extra, larger, less_noise, of_others], ids=lambda each: each.__name__)
def test_what_a_stage_did_not_plan_is_refused(fault: Fault, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fault is planted in the first release of counts of a stage; nothing is charged from there on."""
    asked = Settings(epsilon=4.0, seed=2, unit="who", max_rows=3)
    private = PrivateTable(visits())
    plan, gate = plan_table(private, SCHEMA, RULES, asked), open_gate(asked)
    real, planted = gate.release_counts, False
    begun: list[int] = []
    guarded = PlanGuard.stage

    def at(guard: PlanGuard, name: str, planned: Any) -> Any:
        nonlocal planted
        if name == stage and not planted:
            planted = True
            begun.append(len(gate.ledger.entries))
            monkeypatch.setattr(gate, "release_counts", fault(gate, real))
        return guarded(guard, name, planned)

    monkeypatch.setattr(PlanGuard, "stage", at)
    with pytest.raises(PrivacyError, match=f"the stage '{stage}' asks for .* It was not charged and not made"):
        run_program(private, plan, Means(gate=gate))
    made = len(gate.ledger.entries) - begun[0]
    # An extra release is one too many of its kind: those that were planned alike may come first.
    most = sum(each.most for each in plan.of_stage(stage)) if fault is extra else 0
    assert made <= most


def test_stages_in_another_order_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The releases of a stage come in the order that was planned."""
    asked = Settings(epsilon=4.0, seed=2)
    schema = Schema(
        attributes={"a": Key(repeats=True), "b": Key(repeats=True, dtype="int64"), "age": Integer(min=0, max=9)}
    )
    table = pa.table({"a": ["x"] * 40, "b": np.arange(40) // 2, "age": np.arange(40) % 9})
    private = PrivateTable(table)
    plan, gate = plan_table(private, schema, Constraints(), asked), open_gate(asked)
    stage = next(each for each in PROGRAM if each.name == "group sizes")
    planned = plan.allowed_of(stage.name)
    turned = RunPlan.of_stage

    def other_way_round(plan: RunPlan, name: str) -> Any:
        found = turned(plan, name)
        return type(found)(releases=found.releases[::-1]) if name == stage.name else found

    monkeypatch.setattr(RunPlan, "of_stage", other_way_round)
    held = PlanGuard(gate.ledger).held()
    with held as guard, guard.stage(stage.name, planned), pytest.raises(PrivacyError, match="asks for"):
        stage.run(PrivateRows(table=private), Learned(plan=plan), Means(gate=gate))
    assert [entry.attributes for entry in gate.ledger.entries] == [("b",)]


def test_nothing_is_released_between_stages() -> None:
    gate = Gate(Settings(seed=1).budget)
    with PlanGuard(gate.ledger).held(), pytest.raises(PrivacyError, match="between its stages"):
        gate.release_row_count(3, noise_multiplier=9.0)
    assert gate.ledger.entries == ()


def test_a_stage_that_is_not_at_work_is_not_planned_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stages in another order than the program's release nothing that was planned for another."""
    asked = Settings(epsilon=4.0, seed=2, unit="who", max_rows=3)
    private = PrivateTable(visits())
    plan, gate = plan_table(private, SCHEMA, RULES, asked), open_gate(asked)
    late = [each for each in PROGRAM if each.name == "group sizes"]
    turned = [each for each in PROGRAM if each.name != "group sizes"]
    wrong = type("Wrong", (), {"name": "lost cells", "plan": turned[5].plan, "run": late[0].run})()
    monkeypatch.setattr(programs, "PROGRAM", (*turned[:5], wrong))
    with pytest.raises(PrivacyError, match="the stage 'lost cells' asks for"):
        run_program(private, plan, Means(gate=gate))
    assert gate.ledger.entries == ()


def test_a_neural_run_may_have_other_rows_than_were_asked_for() -> None:
    """Its noise is searched once the number of rows is known: the plan for so many rows is a forecast."""
    schema = Schema(attributes={"age": SCHEMA["age"], "city": SCHEMA["city"]})
    made = Synthesizer(schema, epsilon=1.0, seed=1, backend="neural")
    made.fit(visits().select(["age", "city"]), num_rows=20)
    assert made.sample(5, seed=1).num_rows == 5


@pytest.mark.parametrize("seed", range(6))
def test_maps_of_few_steps_stay_within_the_plan(seed: int, tmp_path: Any) -> None:
    """A map, public or learned, tells the values of its right side apart: more cells than bins of quantiles have."""
    (tmp_path / "z.csv").write_text("zone,age\nx,3\ny,84\nz,41\n")
    (tmp_path / "r.dc").write_text("zone -> age using z.csv\nday -> year\ntime -> hour\n")
    rng = np.random.default_rng(seed)
    day = np.datetime64("1900-01-01") + rng.integers(0, 40_000, 200 + 300 * seed)
    zone, time = rng.integers(0, 3, len(day)), rng.integers(0, 1_000, len(day))
    schema = Schema(
        attributes={
            "zone": Categorical(values=["x", "y", "z"]),
            "age": Integer(min=0, max=99),
            "day": Date(min=dt.date(1900, 1, 1), max=dt.date(2012, 12, 31)),
            "year": Integer(min=1900, max=2012),
            "time": Integer(min=0, max=999),
            "hour": Integer(min=0, max=99),
        }
    )
    table = pa.table(
        {
            "zone": np.array(["x", "y", "z"])[zone],
            "age": np.array([3, 84, 41])[zone],
            "day": day,
            "year": day.astype("datetime64[Y]").astype(int) + 1970,
            "time": time,
            "hour": time // 10,
        }
    )
    made = Synthesizer(schema, tmp_path / "r.dc", epsilon=(1.0, 100.0)[seed % 2], seed=seed).fit(table)
    assert made.sample(5, seed=1).num_rows == 5
