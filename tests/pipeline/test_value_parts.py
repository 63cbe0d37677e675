"""Parts of dates and numbers: read from the schema, found in tables, and kept in what is drawn."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kamino.constraints import Constraints, count_violations
from kamino.pipeline import Synthesizer
from kamino.pipeline.output import in_blocks as blocks_module
from kamino.pipeline.output.in_blocks import draw_in_blocks, in_blocks
from kamino.pipeline.output.learned_maps import expected_right
from kamino.pipeline.plan.hints import hints_of, model_attributes
from kamino.pipeline.plan.value_parts import parts_of
from kamino.schema import Attribute, Codec, Date, Datetime, Integer, Real, Schema

NEW_YEAR = dt.datetime(2021, 1, 1)


def parts(attribute: Attribute) -> dict[str, np.ndarray]:
    """The number of each value, by part."""
    codec = Codec(Schema(attributes={"a": attribute}))
    codes = np.arange(codec["a"].num_values)
    return {part.name: part.numbers[part.map(codes)] for part in parts_of(codec, "a")}


@pytest.mark.parametrize("timezone", [None, "Europe/Berlin", "-03:30"])
def test_parts_are_those_of_the_values(timezone: str | None) -> None:
    """Hour by hour over two years, and over the changes of clocks where a timezone has them."""
    zone = {} if timezone is None else {"timezone": timezone}
    first = NEW_YEAR if timezone is None else NEW_YEAR.replace(tzinfo=dt.UTC)
    attribute = Datetime(min=first, max=first + dt.timedelta(days=730), resolution=3600, nullable=True, **zone)
    codec = Codec(Schema(attributes={"a": attribute}))
    shown = codec["a"].decode(np.arange(codec["a"].num_values)).to_pandas().dt
    found = parts(attribute)
    assert set(found) >= {"year", "quarter", "month", "week", "day", "weekday", "hour"}
    for name in ("year", "quarter", "month", "day", "hour"):
        assert (found[name] == getattr(shown, name).to_numpy()).all(), name
    assert (found["weekday"] == shown.day_of_week.to_numpy()).all()
    assert (found["week"] == shown.isocalendar().week.to_numpy()).all()
    assert "second" not in found


def test_null_has_a_bin_of_its_own() -> None:
    codec = Codec(Schema(attributes={"a": Date(min=dt.date(2021, 1, 1), max=dt.date(2022, 1, 1), nullable=True)}))
    null = codec["a"].null_code
    assert null is not None
    for part in parts_of(codec, "a"):
        assert part.map(np.array([null])).tolist() == [part.count]
        assert part.map.bins == part.count + 1


def test_digits_of_numbers() -> None:
    found = parts(Integer(min=-120, max=2359))
    numbers = np.arange(-120, 2360)
    assert (found["last digits, modulo 100"] == numbers % 100).all()
    assert (found["first digits, without 100s"] == numbers // 100).all()
    assert parts(Real(min=0, max=9)) == {}
    assert parts_of(Codec(Schema(attributes={"a": Integer(min=0, max=2**40)})), "a") == ()


def timed(rows: int, seed: int) -> pa.Table:
    """Times with their parts: as numbers, as names, and nulls on both sides."""
    rng = np.random.default_rng(seed)
    at = pd.Series(pd.Timestamp("2022-03-01") + pd.to_timedelta(rng.integers(0, 24 * 900, rows), unit="h"))
    at = at.mask(rng.random(rows) < 0.02)
    clock = 100 * rng.integers(5, 24, rows) + rng.integers(0, 60, rows)
    return pa.table(
        {
            "at": pa.array(at, type=pa.timestamp("s")),
            "month": pa.array(at.dt.month.astype("Int64")),
            "weekday": pa.array(at.dt.day_name()),
            "hour": pa.array(at.dt.hour.astype("Int64").mask(rng.random(rows) < 0.1)),
            "clock": clock,
            "minute": clock % 100,
            "kind": rng.choice(["a", "b"], rows),
        }
    )


RULES = "at -> month\nat -> weekday\nat -> hour\nclock -> minute\n"


@pytest.fixture(scope="module")
def made() -> Synthesizer:
    return Synthesizer(None, RULES, epsilon=1.0, delta=1e-6, trust_domain=True, seed=1).fit(timed(12_000, 0))


def right(table: pa.Table) -> dict[str, float]:
    """The share of rows, where both sides are known, that have the part of their left side."""
    frame = table.to_pandas()
    at = pd.to_datetime(frame["at"])
    parts = {"month": at.dt.month, "weekday": at.dt.day_name(), "hour": at.dt.hour, "minute": frame["clock"] % 100}
    known = {name: frame[name].notna() & part.notna() for name, part in parts.items()}
    return {name: float((frame[name] == part)[known[name]].mean()) for name, part in parts.items()}


def test_right_sides_follow_the_parts_of_left_sides(made: Synthesizer, tmp_path: Path) -> None:
    table = timed(12_000, 0)
    drawn = made.sample(8_000)
    assert right(drawn) == dict.fromkeys(("month", "weekday", "hour", "minute"), 1.0)
    for name in ("at", "month", "hour"):
        wanted = table.column(name).null_count / table.num_rows
        assert abs(drawn.column(name).null_count / 8_000 - wanted) < 0.02
    assert [expected_right(made.fitted, each) for each in made.fitted.constraints] == [1.0] * 4
    made.save(tmp_path / "m.kamino")
    again = Synthesizer.load(tmp_path / "m.kamino").sample(3_000, seed=4)
    assert right(again) == dict.fromkeys(("month", "weekday", "hour", "minute"), 1.0)


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize("epsilon", [1.0, float("inf")])
def test_few_rows_are_fitted_and_drawn(rows: int, epsilon: float) -> None:
    attributes = {"at": Date(min=dt.date(2021, 1, 1), max=dt.date(2022, 12, 31), nullable=True)}
    schema = Schema(attributes={**attributes, "month": Integer(min=1, max=12, nullable=True)})
    days = [dt.date(2021, 3, 5), None, dt.date(2022, 3, 5)][:rows]
    months = pa.array([day and day.month for day in days], pa.int64())
    table = pa.table({"at": pa.array(days, pa.date32()), "month": months})
    drawn = Synthesizer(schema, "at -> month", epsilon=epsilon, delta=1e-6, seed=1).fit(table).sample(40)
    assert drawn.num_rows == 40
    assert count_violations(drawn, next(iter(Constraints.parse("at -> month")))) == 0


def test_a_check_and_a_part_hold_together() -> None:
    """Only the first half of the year is allowed: dates of the other half, which the map leads out of it, are not."""
    rules = f"{RULES}check (month <= 6 or month is null)\n"
    table = timed(12_000, 0)
    half = table.filter(pc.fill_null(pc.less_equal(table["month"], 6), True))
    drawn = Synthesizer(None, rules, epsilon=1.0, delta=1e-6, trust_domain=True, seed=1).fit(half).sample(3_000)
    assert all(count_violations(drawn, each) == 0 for each in Constraints.parse(rules))
    assert set(right(drawn).values()) == {1.0}


def test_conditions_on_parts_hold(made: Synthesizer) -> None:
    drawn = made.sample(400, given={"month": 2})
    assert set(drawn.column("month").to_pylist()) == {2}
    assert set(right(drawn).values()) == {1.0}


def test_blocks_follow_the_parts(made: Synthesizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "BLOCK_ROWS", 700)
    monkeypatch.setattr(blocks_module, "WHOLE_BLOCKS", 1)
    assert in_blocks(made.fitted, 2_000)
    blocks = list(draw_in_blocks(made.fitted, 2_000, np.random.default_rng(3)))
    codec = made.fitted.codec
    drawn = [pa.table({name: codec[name].decode(codes) for name, codes in block.items()}) for block in blocks]
    assert set(right(pa.concat_tables(drawn)).values()) == {1.0}


def test_blocks_follow_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of public maps: what the first block lacks gets the right sides that they say."""
    monkeypatch.setattr(blocks_module, "BLOCK_ROWS", 300)
    monkeypatch.setattr(blocks_module, "WHOLE_BLOCKS", 1)
    plot = np.arange(2_000)
    public = pd.DataFrame({"plot": plot, "block": plot // 20, "town": plot // 200})
    public.to_csv(tmp_path / "plots.csv", index=False)
    rules = tmp_path / "r.dc"
    lines = ("plot -> block using plots.csv", "plot -> town using plots.csv", "block -> town", "block -> side")
    rules.write_text("\n".join(lines) + "\n")
    rng = np.random.default_rng(0)
    taken = public.iloc[np.minimum(rng.exponential(300, 3_000).astype(int), 1_999)].reset_index(drop=True)
    table = pa.Table.from_pandas(taken.assign(side=taken["block"] % 2), preserve_index=False)
    made = Synthesizer(None, rules, epsilon=2.0, delta=1e-6, trust_domain=True, seed=1).fit(table)
    assert in_blocks(made.fitted, 3_000)
    blocks = list(draw_in_blocks(made.fitted, 3_000, np.random.default_rng(3)))
    codec = made.fitted.codec
    drawn = pd.concat(pd.DataFrame({n: codec[n].decode(c).to_numpy() for n, c in each.items()}) for each in blocks)
    assert (drawn["plot"] // 20 == drawn["block"]).all()
    assert (drawn["plot"] // 200 == drawn["town"]).all()
    assert drawn.groupby("block")["side"].nunique().max() == 1


def test_what_has_a_reference_is_not_measured(tmp_path: Path) -> None:
    pd.DataFrame({"clock": range(2400), "minute": [i % 100 for i in range(2400)]}).to_csv(
        tmp_path / "m.csv", index=False
    )
    (tmp_path / "r.dc").write_text("clock -> minute using m.csv\n")
    schema = Schema(attributes={"clock": Integer(min=0, max=2359), "minute": Integer(min=0, max=99)})
    codec = Codec(schema)
    for rules, count in (((tmp_path / "r.dc"), 0), ("clock -> minute", 1)):
        bound = Synthesizer(schema, rules).constraints
        hints = hints_of(bound, codec)
        assert len({(each.left, each.right) for each in hints.following}) == count
    assert len(model_attributes(codec)) == 2
