"""What is known before the first release is used before it: dry runs, types that rules ask for, limits of keys."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.cli.test_check_command import kamino

from kamino import Synthesizer
from kamino.constraints import Constraints
from kamino.errors import ConstraintErrors, KaminoError
from kamino.io import write_table
from kamino.pipeline.plan.expectations import effort_of
from kamino.pipeline.plan.required_types import refuse_clashing_types, with_required_types
from kamino.schema import Boolean, Categorical, Date, Datetime, Integer, Key, Real, Schema

TABLE = pa.table({"a": ["x", "y"] * 30, "n": list(range(60)), "m": [i / 2 for i in range(60)]})


def test_a_dry_run_releases_and_writes_nothing(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "t.csv")
    before = sorted(path.name for path in tmp_path.iterdir())
    ran = kamino("synth", "t.csv", "-o", "o.csv", "-n", "40", "--save-model", "m.kamino", "--dry-run", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    for said in (
        "passes over some columns",
        "MiB of memory",
        "s of one core",
        "It would spend the whole budget",
        "write o.csv, o.csv.certificate.json, m.kamino",
        "Dry run",
    ):
        assert said in ran.stdout


def test_a_dry_run_refuses_what_a_run_refuses() -> None:
    synthesizer = Synthesizer(None, "check (n > 99)", trust_domain=True, seed=1)
    with pytest.raises(KaminoError) as refused:
        synthesizer.dry_run(TABLE)
    with pytest.raises(KaminoError) as fitted:
        synthesizer.fit(TABLE)
    assert str(refused.value) == str(fitted.value)
    assert not getattr(fitted.value, "__notes__", ())


def test_effort_grows_with_rows_and_says_nothing_of_the_table() -> None:
    synthesizer = Synthesizer(trust_domain=True)
    few, many = (effort_of(synthesizer.dry_run(TABLE, num_rows=n)) for n in (100, 1_000_000))
    assert (few.passes, few.is_complete) == (many.passes, True)
    assert few.memory < many.memory
    assert few.seconds < many.seconds
    private = Synthesizer()
    assert effort_of(private.dry_run(TABLE)) == effort_of(private.dry_run(TABLE.slice(0, 3)))


FOUND = {
    "text": Categorical(nullable=True),
    "integer": Integer(nullable=True),
    "real": Real(nullable=True),
    "boolean": Boolean(nullable=True),
    "date": Date(nullable=True),
    "datetime": Datetime(nullable=True),
}
RULES = [
    "check (a >= 17)",
    "check (a >= 1.5)",
    "check (a = 'x')",
    "check (a = true)",
    "check (a > '2020-02-03')",
    "check (a > date '2020-02-03')",
    "check (a > timestamp '2020-02-03 10:00:00')",
    "not (t1.a < t1.b)",
    "not (t1.a < t1.b and t1.b > 3)",
    "not (t1.a < t2.b and t1.a = 'x')",
]


@pytest.mark.parametrize("rule", RULES)
def test_rules_decide_types_that_are_in_doubt(rule: str) -> None:
    """Whatever types are found, the rules can be read with what becomes of them."""
    constraints = Constraints.parse(rule)
    refuse_clashing_types(constraints)
    for one in FOUND.values():
        for two in FOUND.values():
            schema = with_required_types(Schema(attributes={"a": one, "b": two}), constraints)
            from kamino.pipeline.plan.bound_schema import bind_constraints

            assert len(bind_constraints(constraints, schema)) == 1


def test_rules_that_need_two_types_are_refused() -> None:
    with pytest.raises(ConstraintErrors, match="compared with text here and with a number elsewhere"):
        refuse_clashing_types(Constraints.parse("check (a > 3)\ncheck (a != 'x')"))


def test_a_type_that_a_rule_asks_for_ends_no_run(tmp_path: Path) -> None:
    """Of thirty rows every column stays text, for want of rows; the rule says that one is a number."""
    write_table(TABLE.slice(0, 30), tmp_path / "t.csv")
    (tmp_path / "r.dc").write_text("check (n >= 0)\n")
    made = Synthesizer(None, tmp_path / "r.dc", seed=1, anyway=True).fit(tmp_path / "t.csv")
    assert isinstance(made.fitted.schema["n"], Integer)


def test_keys_bound_the_rows_that_nobody_asked_for() -> None:
    schema = Schema(
        attributes={"a": Categorical(values=["x", "y"]), "n": Integer(min=0, max=9), "m": Real(min=0, max=30)}
    )
    made = Synthesizer(schema, "key (n)", seed=1).fit(TABLE)
    drawn = made.sample()
    assert drawn.num_rows == 10, "refused, its budget spent, for about 60 rows"
    assert "hard keys allow 10 rows" in " ".join(made.certificate(drawn)["notes"])
    keyed = Schema(attributes={"a": Categorical(values=["x", "y"]), "n": Key(dtype="string", pattern="K{:01d}")})
    assert Synthesizer(keyed, seed=1).fit(TABLE.select(["a", "n"])).sample().num_rows == 9


def test_a_key_over_one_value_has_one_row(tmp_path: Path) -> None:
    schema = Schema(
        attributes={"a": Categorical(values=["x", "y"]), "n": Integer(min=3, max=3), "m": Real(min=0, max=30)}
    )
    made = Synthesizer(schema, "key (n)", seed=1).fit(TABLE, num_rows=1)
    assert made.sample(1).num_rows == 1
    made.save(tmp_path / "m.kamino")
    assert Synthesizer.load(tmp_path / "m.kamino").sample(1).num_rows == 1
