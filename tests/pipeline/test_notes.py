"""Notes on what a reader may not expect: each where it is true, and nowhere else."""

from __future__ import annotations

import pytest

from kamino.constraints import Constraints
from kamino.errors import SamplingError
from kamino.pipeline.output.notes import found_notes, promise_notes, trusted_notes
from kamino.pipeline.plan.bound_schema import bind_constraints
from kamino.pipeline.plan.run_plan import plan_run
from kamino.pipeline.settings import Settings
from kamino.sampling import Sampling
from kamino.schema import Categorical, Codec, Integer, Schema, Source

IDS = [f"E{number}" for number in range(100)]
SCHEMA = Schema(
    attributes={
        "dept": Categorical(values=["HR", "IT", "other"], other="other", nullable=True, source=Source.PRIVATE),
        "emp_id": Categorical(values=["other"], other="other", nullable=True, source=Source.PRIVATE),
        "hired": Categorical(values=["other2"], other="other2", nullable=True, source=Source.PRIVATE),
        "said": Categorical(values=["other"], other="other", nullable=True),
        "name": Categorical(values=IDS, source=Source.ASSERTED),
        "age": Integer(min=18, max=65, nullable=True),
        "firm": Integer(min=0, max=4),
    }
)


def promised(rules: str, num_rows: int | None = 1_800) -> tuple[str, ...]:
    return promise_notes(Codec(SCHEMA), bind_constraints(Constraints.parse(rules), SCHEMA), num_rows)


def test_notes_name_empty_domains() -> None:
    (note,) = found_notes(SCHEMA)
    assert note.startswith("emp_id, hired: no value was frequent enough to be found;")
    assert note.endswith("Declare their domains in a schema")
    assert found_notes(Schema(attributes={name: SCHEMA[name] for name in ("dept", "said", "age")})) == ()


@pytest.mark.parametrize(("rows", "told"), [(105, True), (112, False), (90, True)])
def test_notes_name_identifiers_that_were_called_public(rows: int, told: bool) -> None:
    notes = trusted_notes(SCHEMA, rows)
    assert [note.split(":")[0] for note in notes] == (["name"] if told else [])
    assert all(f"100 different texts for about {rows} rows; real ones are written" in note for note in notes)
    declared = SCHEMA["name"].model_copy(update={"source": Source.DECLARED})
    assert trusted_notes(Schema(attributes={"name": declared}), rows) == ()


def test_notes_name_what_null_satisfies() -> None:
    assert promised("check (age > 70)") == ("age: only null satisfies the checks on it",)
    assert promised("check (age > 30)\ncheck (age < 30)\ncheck (age <> 30)") != ()
    assert promised("check (age > 64)") == ()
    assert promised("soft: check (age > 70)") == ()
    (single,) = promised("key (dept)")
    assert single.startswith("key (dept): 3 values for 1,800 rows; all other rows are null there. Declare it as")
    (both,) = promised("key (dept, firm)")
    assert both.startswith("key (dept, firm): 15 combinations for 1,800 rows; all other rows are null in one of them.")
    assert promised("key (dept, firm)", 15) == promised("key (dept)", None) == promised("key (firm)") == ()


def test_plan_has_the_notes() -> None:
    """A domain that was found may be too narrow for a check; one that was declared is refused before it costs."""
    rules = Constraints.parse("check (age > 70)")
    found = SCHEMA.with_domain("age", min=18, max=65)
    assert "age: only null satisfies the checks on it" in plan_run(found, rules, Settings()).notes
    assert plan_run(found, rules, Settings(sampling=Sampling.INDEPENDENT)).notes == ()
    with pytest.raises(SamplingError, match="every row would be null there"):
        plan_run(SCHEMA, rules, Settings())
