"""The whole run, replayed: nothing of the table leaves but through the gate."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kamino.constraints import Constraints
from kamino.errors import InputError
from kamino.io import Reading, read_table
from kamino.pipeline import Settings, Synthesizer
from kamino.pipeline.fitting import fit
from kamino.pipeline.output.certificate import notes_of
from kamino.pipeline.output.drawn_table import draw
from kamino.pipeline.output.warned import warnings_of
from kamino.pipeline.plan.run_plan import plan_table
from kamino.privacy import Budget, Gate, Neighbours, PrivacyUnit
from kamino.privacy.noise import SeededNoise
from kamino.privacy.private import PrivateTable
from kamino.sampling import Sampling
from kamino.schema import Boolean, Categorical, Date, Datetime, Integer, Key, Real, Schema
from kamino.testing.replay import add_row

RULES = Constraints.parse(
    "city -> zone\ncheck (age >= 18)\nnot (t1.city = t2.city and t1.age > t2.age and t1.pay < t2.pay)"
)
SCHEMA = Schema(
    attributes={
        "id": Key(pattern="P{:05d}"),
        "city": Categorical(values=["Rome", "Oslo", "Bern"], nullable=True),
        "zone": Categorical(values=["N", "S"], nullable=True),
        "age": Integer(min=15, max=90, nullable=True),
        "pay": Real(min=0, max=100, decimals=1, nullable=True),
        "day": Date(min=dt.date(2020, 1, 1), max=dt.date(2020, 12, 31), nullable=True),
        "vip": Boolean(nullable=True),
    }
)


def private_table(rows: int = 120, *, nulls: bool = True) -> pa.Table:
    rng = np.random.default_rng(5)
    city = rng.choice(3, rows)
    age = rng.integers(18, 90, rows)
    gone = rng.random(rows) < (0.1 if nulls else 0)
    return pa.table(
        {
            "id": [f"secret-{i}" for i in range(rows)],
            "city": pa.array(np.array(["Rome", "Oslo", "Bern"])[city], mask=gone),
            "zone": np.array(["S", "N", "N"])[city],
            "age": age,
            "pay": age.astype(float),
            "day": [dt.date(2020, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 366, rows)],
            "vip": rng.random(rows) < 0.2,
        }
    )


def synthesize(
    table: pa.Table,
    gate: Gate,
    schema: Schema | None,
    *,
    untyped: bool = False,
    rules: Constraints = RULES,
    **settings: Any,
) -> Any:
    """Everything a run lets out: the synthetic table, the model file's content and the ledger."""
    settings = {"anyway": True} | settings
    options = Settings(neighbours=gate.budget.neighbours, epsilon=gate.budget.epsilon, **settings)
    fitted = fit(PrivateTable(table), plan_table(PrivateTable(table), schema, rules, options, untyped=untyped), gate)
    drawn = draw(fitted, 50, np.random.default_rng(7))
    bundle = fitted.to_bundle()
    return drawn, dict(bundle.texts), dict(bundle.arrays)


@pytest.mark.parametrize("nulls", [True, False])
def test_replay_passes_for_synth(replays: Any, nulls: bool) -> None:
    replays(lambda table, gate: synthesize(table, gate, SCHEMA), private_table(nulls=nulls))


CLOCK = Schema(
    attributes={
        "time": Integer(min=0, max=1_439, nullable=True),
        "hour": Integer(min=0, max=23, nullable=True),
        "low": Integer(min=0, max=99, nullable=True),
        "high": Integer(min=0, max=99, nullable=True),
        "kind": Categorical(values=["a", "b"], nullable=True),
    }
)


def clock_table(rows: int = 3_000) -> pa.Table:
    rng = np.random.default_rng(6)
    time, low = np.sort(rng.integers(300, 1_440, rows)), rng.integers(0, 80, rows)
    high = low + rng.integers(0, 20, rows)
    kind = np.where(rng.random(rows) < 0.3 + 0.4 * (time > 800), "a", "b")
    return pa.table({"time": time, "hour": time // 60, "low": low, "high": high, "kind": kind})


def test_replay_passes_for_rules_that_compute(replays: Any) -> None:
    """Sums that are solved for the last column, distances with a tolerance, conditions on parts of numbers."""
    rules = Constraints.parse(
        "check (abs(high - low) <= 20)\ncheck (low + high <= 200)\ncheck (time >= 60 * hour)\n"
        "if kind = 'a' then high >= low"
    )

    def run(table: pa.Table, gate: Gate) -> Any:
        return synthesize(table, gate, CLOCK, rules=rules)

    replays(run, clock_table(400))


def test_replay_passes_for_groups_and_step_functions(replays: Any) -> None:
    """Groups of bins as variables of the model, a step function from joined runs, a check that decides inside bins."""
    rules = Constraints.parse("time -> hour\ncheck (low <= high)")

    def run(table: pa.Table, gate: Gate) -> Any:
        return synthesize(table, gate, CLOCK, rules=rules)

    few = {"empty", "one value", "odd cells"}
    replays(run, clock_table(), epsilon=4.0, relations=(Neighbours.ADD_REMOVE,), others=few)
    model = json.loads(run(clock_table(), Gate(Budget(epsilon=4.0, delta=1e-6), noise=SeededNoise(1)))[1]["model.json"])
    assert any("coarse" in node for node in model["nodes"])


def test_replay_passes_with_domains_found(replays: Any) -> None:
    replays(lambda table, gate: synthesize(table, gate, None), private_table())


def test_replay_passes_for_text(replays: Any) -> None:
    table = private_table(3_000)
    text = pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})
    odd = pa.concat_tables([text, pa.table({name: ["?!"] for name in text.column_names})])
    replays(
        lambda private, gate: synthesize(private, gate, None, untyped=True),
        text,
        extra=(odd,),
        relations=(Neighbours.ADD_REMOVE,),
        others=("empty", "all null", "one value", "odd cells"),
    )


def _odd_frame(rows: int) -> dict[str, pa.Array]:
    rng = np.random.default_rng(5)
    days = rng.integers(0, 20_000, rows)
    return {
        "kind": pa.array(rng.integers(1, 4, rows)).dictionary_encode(),
        "seen": pa.array(days * 86_400_000).view(pa.date64()),
        "until": pa.array(days.astype(np.int32)).view(pa.date32()),
        "at": pa.array(days * 86_400 * 10**9).view(pa.timestamp("ns")),
        "name": pa.array(rng.choice(["a", "b"], rows)),
        "pay": pa.array(rng.random(rows)),
        "cost": pa.array([int(d) for d in days]).cast(pa.decimal128(38, 4)),
    }


def _with_odd_row(columns: dict[str, pa.Array]) -> pa.Table:
    """One more row, in which every cell is one that its column cannot hold, or can just hold."""
    raw = pa.array([b"\xff"])
    odd = {
        "kind": pa.array([2.5]),
        "seen": pa.array([1]).view(pa.date64()),
        "until": pa.array([2_932_896], pa.int32()).view(pa.date32()),
        "at": pa.array([2**63 - 1]).view(pa.timestamp("ns")),
        "name": pa.Array.from_buffers(pa.string(), 1, raw.buffers()),
        "pay": pa.array([float("-inf")]),
        "cost": pa.array(["9" * 34]).cast(pa.decimal128(38, 4)),
    }
    kinds = columns["kind"].dictionary_decode().cast(pa.float64())
    joined = {name: pa.concat_arrays([columns[name], odd[name]]) for name in columns if name != "kind"}
    return pa.table({"kind": pa.concat_arrays([kinds, odd["kind"]]).dictionary_encode(), **joined})


@pytest.mark.parametrize("schema", [True, False], ids=["declared", "found"])
def test_replay_passes_for_cells_that_a_column_cannot_hold(replays: Any, schema: bool) -> None:
    """One row may make integers floats, a day a time, text bytes; or compare a day with times that do not reach it."""
    from kamino.io import read_table
    from kamino.privacy import Budget
    from kamino.testing.replay import assert_replay

    rules = Constraints.parse("soft: not (t1.kind = t2.kind and t1.until < t2.at)\nsoft: check (until >= at)")
    known = Schema(
        attributes={
            "kind": Categorical(values=["1", "2", "3"], nullable=True),
            "seen": Date(min=dt.date(1970, 1, 1), max=dt.date(2030, 1, 1), nullable=True),
            "until": Date(min=dt.date(1970, 1, 1), max=dt.date(9999, 12, 31), nullable=True),
            "at": Datetime(min=dt.datetime(1970, 1, 1), max=dt.datetime(2030, 1, 1), dtype="timestamp[ns]"),
            "name": Categorical(values=["a", "b"], nullable=True),
            "pay": Real(min=0, max=1, decimals=3, nullable=True),
            "cost": Real(min=0, max=20_000, decimals=2, nullable=True),
        }
    )

    def run(table: pa.Table, gate: Gate) -> Any:
        settings = Settings(epsilon=gate.budget.epsilon, seed=1, anyway=True)
        private = read_table(table, private=True)
        fitted = fit(
            PrivateTable(private), plan_table(PrivateTable(private), known if schema else None, rules, settings), gate
        )
        return draw(fitted, 20, np.random.default_rng(7)), dict(fitted.to_bundle().texts)

    columns = _odd_frame(150)
    budget = Budget(epsilon=1.0, delta=1e-6)
    assert_replay(run, pa.table(columns), _with_odd_row(columns), budget=budget)
    assert_replay(run, _with_odd_row(columns), pa.table(columns), budget=budget)


def test_replay_passes_for_a_unit_at_the_end_of_the_calendar() -> None:
    from kamino.io import read_table
    from kamino.privacy import Budget
    from kamino.testing.replay import assert_replay

    table = private_table()
    joined = pa.array([i // 3 * 10**6 for i in range(table.num_rows)]).view(pa.timestamp("us", "Asia/Tokyo"))
    table = table.set_column(0, "id", joined)
    last = pa.array([253_402_300_799 * 10**6]).view(pa.timestamp("us", "Asia/Tokyo"))
    more = pa.concat_tables([table, table.slice(0, 1).set_column(0, "id", last)])
    assert_replay(
        lambda private, gate: synthesize(read_table(private, private=True), gate, SCHEMA, unit="id", max_rows=2),
        table,
        more,
        budget=Budget(epsilon=1.0, delta=1e-6),
        unit=PrivacyUnit(column="id", max_rows=2),
    )


def test_replay_passes_for_a_unit(replays: Any) -> None:
    table = private_table()
    owners = pa.array([f"u{i // 3}" for i in range(table.num_rows)])
    table = table.set_column(0, "id", owners)
    replays(
        lambda private, gate: synthesize(private, gate, SCHEMA, unit="id", max_rows=2),
        table,
        unit=PrivacyUnit(column="id", max_rows=2),
        relations=(Neighbours.ADD_REMOVE,),
    )


def test_replay_passes_for_a_table_of_noise(replays: Any) -> None:
    """Whether a run is refused for noise, after how many releases and in which words, follows from releases alone."""
    table = private_table().slice(0, 40)
    table = table.set_column(0, "id", pa.array([f"u{i // 8}" for i in range(40)]))
    open_ended = SCHEMA.with_attribute("city", Categorical(nullable=True))

    def run(private: pa.Table, gate: Gate) -> Any:
        try:
            asked: dict[str, Any] = {"rules": Constraints(), "unit": "id", "max_rows": 8, "anyway": False}
            return synthesize(private, gate, open_ended, **asked)
        except InputError as problem:
            return str(problem), len(gate.ledger.entries)

    replays(run, table, unit=PrivacyUnit(column="id", max_rows=8), relations=(Neighbours.ADD_REMOVE,))
    gate = Gate(Budget(epsilon=1.0, delta=1e-6), unit=PrivacyUnit(column="id", max_rows=8), noise=SeededNoise(1))
    assert "may be off by as many: the table would be noise" in run(table, gate)[0]


def test_replay_passes_for_dates_with_a_format(replays: Any) -> None:
    """Cells of declared dates that cannot be read are counted, and told, through the gate."""
    day = Date(min="2023-01-01", max="2023-12-31", format="%m/%d/%y", nullable=True)
    schema = Schema(attributes={"day": day, "n": Integer(min=0, max=6)})
    days = [f"{1 + i % 12}/{1 + i % 28}/23" if i % 9 else "soon" for i in range(80)]
    table = pa.table({"day": days, "n": [i % 7 for i in range(80)]})
    odd = pa.table({"day": ["2023-01-01", "13/13/13", "2/29/00", ""], "n": [0, 1, 2, 3]})

    def run(private: pa.Table, gate: Gate) -> Any:
        return synthesize(private, gate, schema, rules=Constraints())

    replays(run, table, extra=(pa.concat_tables([table, odd.slice(1, 1)]),), relations=(Neighbours.ADD_REMOVE,))


@pytest.mark.parametrize("mode", Sampling)
def test_replay_passes_for_every_way_of_drawing(replays: Any, mode: Sampling) -> None:
    replays(
        lambda table, gate: synthesize(table, gate, SCHEMA, sampling=mode),
        private_table(),
        relations=(Neighbours.ADD_REMOVE,),
        others=("empty", "ten times as long", "odd cells"),
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("schema", [SCHEMA, None], ids=["declared", "found"])
def test_budget_is_spent_and_not_overspent(epsilon: float, schema: Schema | None) -> None:
    made = Synthesizer(schema, RULES, epsilon=epsilon, seed=3, anyway=True).fit(private_table())
    spent = made.ledger["spent_epsilon"]["add_remove"]
    assert 0.999 * epsilon <= spent <= epsilon


def test_model_file_holds_no_private_value(tmp_path: Path) -> None:
    made = Synthesizer(SCHEMA, RULES, epsilon=float("inf")).fit(private_table())
    made.save(tmp_path / "m.kamino")
    assert b"secret" not in (tmp_path / "m.kamino").read_bytes()
    assert all("secret" not in text for text in made.fitted.to_bundle().texts.values())


def test_synthesizer_keeps_no_private_row() -> None:
    import gc

    table = private_table()
    made = Synthesizer(SCHEMA, RULES, seed=1).fit(table)
    holders = [obj for obj in gc.get_referrers(table) if obj is not globals() and not hasattr(obj, "f_code")]
    assert all(obj is not vars(made) for obj in holders)
    assert "secret" not in repr(vars(made))


def test_certificate_marks_what_must_not_be_released() -> None:
    table = private_table()
    assert Synthesizer(SCHEMA, seed=1).fit(table).ledger["mark"] == "not for release"
    assert Synthesizer(SCHEMA, epsilon=float("inf")).fit(table).ledger["mark"] == "not private"
    fresh = Synthesizer(SCHEMA).fit(table)
    assert fresh.certificate(fresh.sample(5))["mark"] == "for release"


def test_replay_passes_for_soft_constraints(replays: Any) -> None:
    rules = Constraints.parse(
        "soft: city -> zone\nsoft: check (age >= 40)\nweight 2: not (t1.age > t2.age and t1.pay < t2.pay)"
    )

    def run(table: pa.Table, gate: Gate) -> Any:
        settings = Settings(neighbours=gate.budget.neighbours, epsilon=gate.budget.epsilon, seed=1)
        fitted = fit(PrivateTable(table), plan_table(PrivateTable(table), SCHEMA, rules, settings), gate)
        drawn = draw(fitted, 50, np.random.default_rng(7))
        return drawn, dict(fitted.to_bundle().texts)

    # One row that breaks the order with all others: a statistic that is not scaled by its group moves too far.
    worst = add_row(private_table(), {"city": "Rome", "zone": "N", "age": 90, "pay": 0.0})
    few = ("empty", "ten times as long", "odd cells")
    replays(run, private_table(), relations=(Neighbours.ADD_REMOVE,), extra=(worst,), others=few)
    made = Synthesizer(SCHEMA, rules, epsilon=4.0, seed=1).fit(private_table(600))
    assert made.ledger["spent_epsilon"]["add_remove"] == pytest.approx(4.0, rel=1e-3)
    assert len(made.fitted.soft.items) >= 1


SOFT = Constraints.parse("city -> zone\nsoft: not (t1.city = t2.city and t1.age > t2.age and t1.pay < t2.pay)")
FEW = ("city", "zone", "age", "pay")
FEW_SCHEMA = Schema(attributes={name: SCHEMA[name] for name in FEW})


@pytest.mark.parametrize("weights", ["paper", pytest.param("matching", marks=pytest.mark.slow)])
def test_replay_passes_for_the_paper_preset(replays: Any, weights: str) -> None:
    def run(table: pa.Table, gate: Gate) -> Any:
        settings = Settings.of("paper", epsilon=gate.budget.epsilon, weights=weights, seed=1)
        fitted = fit(PrivateTable(table), plan_table(PrivateTable(table), FEW_SCHEMA, SOFT, settings), gate)
        drawn = draw(fitted, 50, np.random.default_rng(7))
        bundle = fitted.to_bundle()
        return drawn, dict(bundle.texts), dict(bundle.arrays)

    replays(run, private_table().select(FEW), relations=(Neighbours.REPLACE,), others=("empty", "odd cells"))


def test_paper_preset_stays_within_the_budget_and_keeps_hard_constraints(tmp_path: Path) -> None:
    made = Synthesizer(SCHEMA, SOFT, preset="paper", epsilon=1.0, seed=1).fit(private_table(400))
    assert made.ledger["neighbours"] == "replace"
    assert 0.5 < made.ledger["spent_epsilon"]["replace"] <= 1.0
    table = made.sample(300)
    first, second, key = made.certificate(table)["constraints"]
    assert table.num_rows == 300
    assert (first["violations"], key["violations"]) == (0, 0)
    assert 0 <= second["rate"] <= 1
    made.save(tmp_path / "m.kamino")
    loaded = Synthesizer.load(tmp_path / "m.kamino")
    assert loaded.settings.sampling is Sampling.ROW_BY_ROW
    assert loaded.sample(40, seed=5).equals(made.sample(40, seed=5))


@pytest.mark.parametrize("schema", [True, False], ids=["declared", "found"])
def test_replay_passes_for_cells_as_people_write_them(replays: Any, schema: bool) -> None:
    """Notes and warnings too: what is said aloud follows from what was released."""
    price = Real(min=0, max=2_000, decimals=2, nullable=True, written="1,234.5", nulls=("NA",))
    known = Schema(attributes={"price": price, "n": Integer(min=0, max=6, nullable=True)})
    asked = Reading(nulls=("-",), nulls_of={"price": ("NA",)}, numbers={"price": "1,234.5"})
    how = asked.with_cells(known) if schema else asked
    texts = [f"${1_000 + each:,}.50" if each % 9 else "NA" for each in range(400)]
    table = pa.table({"price": texts, "n": [str(each % 7) for each in range(400)]})
    odd = pa.table({"price": ["1.234,5", "((1))", "9" * 400, "-"], "n": ["x", "-", "", "1,1"]})

    def run(private: pa.Table, gate: Gate) -> Any:
        read = read_table(private, private=True, reading=how)
        options = Settings(epsilon=gate.budget.epsilon, anyway=True)
        plan = plan_table(PrivateTable(read), known if schema else None, Constraints(), options, untyped=not schema)
        fitted = fit(PrivateTable(read), plan, gate)
        bundle = fitted.to_bundle()
        return dict(bundle.texts), dict(bundle.arrays), warnings_of(fitted), notes_of(fitted, 100)

    extra = tuple(pa.concat_tables([table, odd.slice(place, 1)]) for place in (0, 3))
    replays(run, table, extra=extra, relations=(Neighbours.ADD_REMOVE,))
