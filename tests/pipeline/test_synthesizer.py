"""The front door: shapes, types, conditions, files."""

from __future__ import annotations

import datetime as dt
import re
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.pipeline.test_privacy_of_synth import RULES, SCHEMA, private_table
from threadpoolctl import threadpool_info, threadpool_limits

import kamino
from kamino import Constraints, Synthesizer, errors
from kamino.errors import InputError, KaminoError, ModelError, PrivacyError
from kamino.io import read_table, write_table
from kamino.pipeline import Stage
from kamino.pipeline.program import model_stages
from kamino.privacy.private import PrivateTable
from kamino.schema import Integer, Schema

TYPED = pa.table(
    {
        "n32": pa.array([1, 2, None] * 40, pa.int32()),
        "text": pa.array(["01", "x", None] * 40),
        "money": pa.array([Decimal("1.50"), Decimal("2.00"), Decimal("9.99")] * 40, pa.decimal128(10, 2)),
        "real": pa.array([0.25, 1.5, 2.0] * 40),
        "flag": pa.array([True, False, None] * 40),
        "day": pa.array([dt.date(2024, 2, 29), dt.date(2024, 3, 1), None] * 40),
        "at": pa.array([dt.datetime(2024, 2, 29, 12), None, dt.datetime(2024, 3, 1)] * 40, pa.timestamp("ms")),
        "only": pa.array(["same"] * 120),
    }
)


def test_output_has_the_input_columns_order_and_types() -> None:
    made = Synthesizer(trust_domain=True, seed=1).fit(TYPED).sample(60)
    assert made.schema.equals(TYPED.schema)
    assert made.column("only").null_count == 0
    assert {str(v) for v in made.column("money").to_pylist()} <= {f"{n / 100:.2f}" for n in range(150, 1000)}


def test_csv_comes_out_as_it_came_in(tmp_path: Path) -> None:
    write_table(TYPED.drop_columns(["money"]), tmp_path / "in.csv")
    true = read_table(tmp_path / "in.csv")
    made = Synthesizer(trust_domain=True, seed=1).fit(tmp_path / "in.csv").sample(60)
    write_table(made, tmp_path / "out.csv")
    again = read_table(tmp_path / "out.csv")
    assert again.column_names == true.column_names
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", str(made.column("day").drop_null()[0]))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.Table])
def test_frames_come_back_as_their_own_kind(kind: type) -> None:
    table = private_table().drop_columns(["id"])
    frame = {pd.DataFrame: table.to_pandas, pl.DataFrame: lambda: pl.from_arrow(table), pa.Table: lambda: table}[kind]()
    assert isinstance(Synthesizer(trust_domain=True, seed=1).fit(frame).sample(10), kind)


def test_keys_are_made_up_and_unique() -> None:
    made = Synthesizer(SCHEMA, RULES, seed=1).fit(private_table()).sample(30)
    assert made.column("id").to_pylist()[:2] == ["P00001", "P00002"]
    assert len(set(made.column("id").to_pylist())) == 30


@pytest.mark.parametrize("rows", [0, 1, 7, 500])
def test_sample_has_the_asked_rows(rows: int) -> None:
    fitted = Synthesizer(SCHEMA, RULES, seed=1).fit(private_table())
    assert fitted.sample(rows).num_rows == rows


def test_conditions_hold() -> None:
    fitted = Synthesizer(SCHEMA, seed=1).fit(private_table())
    made = fitted.sample(40, given={"city": ["Rome", None], "vip": False})
    assert set(made.column("city").to_pylist()) <= {"Rome", None}
    assert set(made.column("vip").to_pylist()) == {False}
    assert made.num_rows == 40
    with pytest.raises(InputError, match="'city' with Atlantis; expected one of Rome, Oslo, Bern, or nothing"):
        fitted.sample(5, given={"city": "Atlantis"})


def test_default_size_is_about_the_true_one() -> None:
    made = Synthesizer(SCHEMA, seed=1).fit(private_table(3_000)).sample()
    assert 2_800 <= made.num_rows <= 3_200


def test_checks_on_rows_hold() -> None:
    made = Synthesizer(SCHEMA, RULES, seed=1, epsilon=0.2).fit(private_table()).sample(400)
    assert min(made.column("age").drop_null().to_pylist()) >= 18


def test_saved_model_samples_the_same(tmp_path: Path) -> None:
    fitted = Synthesizer(SCHEMA, RULES, seed=1).fit(private_table())
    fitted.save(tmp_path / "m.kamino")
    again = Synthesizer.load(tmp_path / "m.kamino")
    assert again.ledger == fitted.ledger
    assert again.fitted.constraints == fitted.fitted.constraints
    assert again.sample(50, seed=4).equals(fitted.sample(50, seed=4))


def test_fit_can_be_repeated() -> None:
    synthesizer = Synthesizer(SCHEMA, seed=1)
    first = synthesizer.fit(private_table()).sample(20)
    assert synthesizer.fit(private_table()).sample(20).equals(first)


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("options", [{"trust_domain": True}, {"anyway": True}], ids=["trusted", "found"])
def test_next_to_no_rows_work(rows: int, options: dict[str, Any]) -> None:
    # Whether a table is empty is private: it may not be a reason to fail.
    table = TYPED.slice(0, rows)
    assert Synthesizer(seed=1, **options).fit(table).sample(9).num_rows == 9


@pytest.mark.parametrize("options", [{"trust_domain": True}, {"anyway": True}], ids=["trusted", "found"])
def test_one_column_and_all_null_work(options: dict[str, Any]) -> None:
    for table in (TYPED.select(["n32"]), pa.table({"a": pa.nulls(50, pa.string()), "b": pa.nulls(50, pa.int64())})):
        assert Synthesizer(seed=1, **options).fit(table).sample(9).num_rows == 9


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 1.0}, "delta"),
        ({"delta": 0.0}, "delta"),
        ({"unit": "id"}, "max_rows"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((PrivacyError, InputError), match=message):
        Synthesizer(SCHEMA, **settings)


def test_what_does_not_fit_is_refused_before_any_budget_is_spent() -> None:
    with pytest.raises(KaminoError, match="vip"):
        Synthesizer(SCHEMA).fit(private_table().drop_columns(["vip"]))
    with pytest.raises(KaminoError, match="not in the schema"):
        Synthesizer(SCHEMA, "cty -> zone").fit(private_table())
    with pytest.raises(InputError, match="no columns"):
        Synthesizer().fit(pa.table({}))
    with pytest.raises(ModelError, match=r"call fit\(table\)"):
        Synthesizer(SCHEMA).sample(3)


def test_stages_are_told() -> None:
    told: list[Stage] = []
    Synthesizer(seed=1, anyway=True).fit(private_table(), progress=told.append)
    assert told == [Stage.READ, Stage.DOMAINS, Stage.FIT]


def test_public_names() -> None:
    assert {"Constraints", "Schema", "Synthesizer", "Settings", "InputError", "Sampling"} < set(kamino.__all__)
    assert dir(kamino) == sorted(kamino.__all__)
    assert kamino.Synthesizer is Synthesizer
    assert kamino.Constraints is Constraints
    for name in kamino.__all__:
        assert getattr(kamino, name).__name__ == name if name != "__version__" else kamino.__version__
    kinds = {name: each for name, each in vars(errors).items() if isinstance(each, type)}
    ours = {name for name, each in kinds.items() if each.__module__ == errors.__name__}
    assert ours <= set(kamino.__all__)
    with pytest.raises(AttributeError):
        _ = kamino.nothing


def test_a_reference_table_is_the_map(tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text("city,zone\nRome,N\nOslo,S\nBern,S\n")  # not as in the private table
    (tmp_path / "rules.dc").write_text("city -> zone using zones.csv\n")
    fitted = Synthesizer(SCHEMA, tmp_path / "rules.dc", seed=1, epsilon=8.0).fit(private_table(1_000))
    fitted.save(tmp_path / "m.kamino")
    for made in (fitted.sample(300), Synthesizer.load(tmp_path / "m.kamino").sample(300, seed=1)):
        pairs = {(row["city"], row["zone"]) for row in made.select(["city", "zone"]).to_pylist()}
        known = {pair for pair in pairs if None not in pair}
        assert known <= {("Rome", "N"), ("Oslo", "S"), ("Bern", "S")}
        assert len(known) == 3


def test_a_key_over_too_small_a_domain_is_refused_before_anything_is_spent() -> None:
    from kamino.constraints import Constraints as Rules
    from kamino.errors import SamplingError
    from kamino.pipeline import Settings
    from kamino.pipeline.plan.run_plan import plan_table
    from kamino.schema import Categorical, Integer, Schema

    schema = Schema(attributes={"a": Integer(min=0, max=9), "b": Categorical(values=["x", "y"])})
    table = pa.table({"a": list(range(10)), "b": ["x"] * 10})
    with pytest.raises(SamplingError, match=r"key \(a\)") as refused:
        Synthesizer(schema, "key (a)").fit(table, num_rows=11)
    assert not hasattr(refused.value, "__notes__")  # which would say what is spent
    with pytest.raises(SamplingError, match=r"key \(a\)"):
        plan_table(PrivateTable(table), schema, Rules.parse("key (a)"), Settings(), num_rows=11)
    made = Synthesizer(schema, "key (a)", seed=1).fit(table, num_rows=10).sample(10)
    assert sorted(made.column("a").to_pylist()) == list(range(10))


def test_what_is_not_promised_of_soft_constraints_is_said() -> None:
    """A soft constraint that ends on a column which hard ones decide is not weighed: plan and certificate say so."""
    schema = Schema(attributes={"a": Integer(min=0, max=9), "b": Integer(min=0, max=9), "c": Integer(min=0, max=9)})
    rules = Constraints.parse("a -> c\nb -> c\nsoft: not (t1.b > t2.b and t1.c < t2.c and t1.a != t2.a)")
    table = pa.table({"a": [1, 2, 3] * 30, "b": [1, 1, 2] * 30, "c": [4, 4, 6] * 30})
    made = Synthesizer(schema, rules, seed=1).fit(table)
    notes = made.certificate(made.sample(20))["notes"]
    of_noise = ("mostly noise", "hidden by noise")  # whatever noise makes of 90 rows is said as well
    (note,) = (each for each in notes if "the map was" not in each and not each.startswith(of_noise))
    assert "not weighed, for hard constraints decide b" in note
    assert made.plan(90).notes == (note,)
    by_row = Synthesizer(schema, rules, seed=1, sampling="row-by-row").fit(table)
    rest = [each for each in by_row.certificate(by_row.sample(20))["notes"] if not each.startswith(of_noise)]
    assert all("the map was" in each for each in rest)
    assert by_row.plan(90).notes == ()


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("age", (30, 40)),
        ("age", (None, 25)),
        ("pay", (40.5, None)),
        ("day", (dt.date(2020, 3, 1), dt.date(2020, 4, 30))),
    ],
)
def test_intervals_hold(name: str, ends: tuple[Any, Any]) -> None:
    fitted = Synthesizer(SCHEMA, RULES, seed=1).fit(private_table(400))
    drawn = fitted.sample(60, given={name: ends})
    low, high = (end if end is not None else limit for end, limit in zip(ends, _limits(name), strict=True))
    found = drawn.column(name).to_pylist()
    assert all(value is not None and low <= value <= high for value in found)
    assert len(set(found)) > 3
    document = fitted.certificate(drawn, given={name: ends})["given"][name]
    assert set(document) == {"from", "to"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"age": np.int64(33)}, [33]),
        ({"age": np.array([30, 31], np.int16)}, [30, 31]),
        ({"age": pd.Series([30, 31]).unique()}, [30, 31]),
        ({"age": (np.float32(30), np.int8(40))}, {"from": 30.0, "to": 40}),
        ({"day": np.datetime64("2020-03-01")}, ["2020-03-01"]),
        ({"at": (np.datetime64("2024-02-29T12", "ns"), None)}, {"from": "2024-02-29 12:00:00", "to": None}),
    ],
    ids=str,
)
def test_conditions_may_be_of_numpy(given: Any, said: Any) -> None:
    (name,) = given
    trusted = Synthesizer(trust_domain=True, seed=1).fit(TYPED) if name == "at" else None
    fitted = trusted or Synthesizer(SCHEMA, RULES, seed=1).fit(private_table(400))
    drawn = fitted.sample(20, given=given)
    assert fitted.certificate(drawn, given=given)["given"][name] == said


def _limits(name: str) -> tuple[Any, Any]:
    return SCHEMA[name].min, SCHEMA[name].max


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"age": (30, 20)}, "an interval of 'age' from 30 to 20 without any value; expected a value from"),
        ({"age": (1, 2, 3)}, "found 3 ends of an interval of 'age'; expected two"),
        ({"city": ("Oslo", "Rome")}, "whose values have no order; expected a list of values"),
        ({"age": ("a", "b")}, "found ends of another type than 'age'"),
        (["age"], "found given of type list; expected a mapping"),
    ],
)
def test_wrong_conditions_are_told(given: Any, text: str) -> None:
    with pytest.raises(InputError) as caught:
        Synthesizer(SCHEMA, seed=1).fit(private_table()).sample(3, given=given)
    assert text in str(caught.value)


def test_wide_intervals_are_drawn() -> None:
    table = pa.table({"at": pa.array([dt.datetime(2020, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)] * 30)})
    made = Synthesizer(trust_domain=True, seed=1).fit(table)
    ends = (dt.datetime(2021, 1, 1), dt.datetime(2021, 6, 1))
    drawn = made.sample(200, given={"at": ends}).column("at").to_pylist()
    assert all(ends[0] <= each <= ends[1] for each in drawn)
    assert len(set(drawn)) > 100
    dates = made.sample(50, given={"at": (dt.date(2021, 1, 1), dt.date(2021, 6, 1))}).column("at").to_pylist()
    assert all(ends[0] <= each <= ends[1] for each in dates), "a date among times is its midnight"


@pytest.mark.parametrize("rows", ["5", 2.5, True])
def test_a_number_of_rows_is_whole(rows: Any) -> None:
    with pytest.raises(InputError, match=r"found num_rows .* expected a whole number"):
        Synthesizer(SCHEMA, seed=1).fit(private_table()).sample(rows)


def test_a_small_table_without_noise_is_quick() -> None:
    rng = np.random.default_rng(1)
    numbers = {f"n{i}": rng.integers(0, 200, 344) for i in range(6)}
    words = {f"w{i}": rng.choice(["a", "b", "c"], 344) for i in range(4)}
    begin = time.process_time()
    Synthesizer(trust_domain=True, epsilon=float("inf"), seed=1).fit(pa.table({**numbers, **words})).sample(344)
    assert time.process_time() - begin < 5


def test_a_fit_has_one_thread_for_linear_algebra(monkeypatch: pytest.MonkeyPatch) -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    seen: list[set[int]] = []
    original = model_stages.fit_model

    def watched(*arguments: Any, **named: Any) -> Any:
        seen.append(threads())
        return original(*arguments, **named)

    monkeypatch.setattr(model_stages, "fit_model", watched)
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        Synthesizer(constraints="", epsilon=1.0, trust_domain=True, seed=1).fit(TYPED.select(["n32", "flag"]))
        assert threads() == before
    assert seen == [{1}]
    assert before != {1}
