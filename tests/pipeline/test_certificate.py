"""What a certificate lists: all that was promised, the condition, and what surprises."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

from kamino.constraints import Constraints
from kamino.errors import SamplingError
from kamino.pipeline import Synthesizer
from kamino.schema import Categorical, Date, Integer, Key, Schema, Source

SCHEMA = Schema(
    attributes={
        "emp id": Key(pattern="E{:04d}"),
        "badge": Key(),
        "dept": Categorical(values=["HR", "Sales"]),
        "boss": Categorical(values=["Ann", "Bob"]),
        "age": Integer(min=18, max=65, nullable=True, source=Source.PRIVATE),
        "day": Date(min=dt.date(2024, 1, 1), max=dt.date(2024, 1, 3)),
    }
)
RULES = Constraints.parse('key ("emp id")\nbadge -> age\ndept -> boss\ncheck (age > 70)')


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    rows = 80
    table = pa.table(
        {
            "emp id": [f"real{i}" for i in range(rows)],
            "badge": [f"b{i}" for i in range(rows)],
            "dept": ["HR", "Sales"] * (rows // 2),
            "boss": ["Ann", "Bob"] * (rows // 2),
            "age": [40] * rows,
            "day": [dt.date(2024, 1, 2)] * rows,
        }
    )
    return Synthesizer(SCHEMA, RULES, epsilon=float("inf"), seed=1).fit(table)


def test_declared_keys_and_what_they_satisfy_are_listed(fitted: Synthesizer, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m.kamino")
    for each in (fitted, Synthesizer.load(tmp_path / "m.kamino")):
        table = each.sample(30)
        found = each.certificate(table)["constraints"]
        assert sorted(c["text"] for c in found) == sorted(
            ['key ("emp id")', "badge -> age", "dept -> boss", "check (age > 70)", "key (badge)"]
        )
        assert all(c["hard"] and c["violations"] == 0 for c in found)
    twice = table.set_column(1, "badge", pa.array(["same"] * 30))
    broken = {c["text"]: c["violations"] for c in fitted.certificate(twice)["constraints"]}
    assert broken["key (badge)"] == 435


def test_the_condition_is_recorded(fitted: Synthesizer) -> None:
    given = {"dept": "HR", "day": [dt.date(2024, 1, 2), dt.date(2024, 1, 3)]}
    certificate = fitted.certificate(fitted.sample(5, given=given), given=given)
    assert certificate["given"] == {"dept": ["HR"], "day": ["2024-01-02", "2024-01-03"]}
    assert "given" not in fitted.certificate(fitted.sample(5))


def test_notes_are_in_the_certificate(fitted: Synthesizer) -> None:
    assert fitted.certificate(fitted.sample(5))["notes"] == ["age: only null satisfies the checks on it"]


def test_a_condition_that_no_row_meets_is_named(fitted: Synthesizer) -> None:
    with pytest.raises(SamplingError, match="found the condition age=30 and dept=HR, but no row over") as told:
        fitted.sample(5, given={"age": 30, "dept": "HR"})
    assert "fewer rows" not in str(told.value)


def test_a_condition_is_met_as_far_as_a_key_allows() -> None:
    names = [f"n{i}" for i in range(300)]
    table = pa.table({"name": names, "dept": ["HR", "Sales"] * 150})
    made = Synthesizer(constraints="key (name)", trust_domain=True, epsilon=float("inf"), seed=1).fit(table)
    assert made.sample(300, given={"dept": "HR"}).num_rows == 300
    with pytest.raises(SamplingError, match="found the condition dept=HR, but no table of 301 rows"):
        made.sample(301, given={"dept": "HR"})
