"""What is said of domains that were found, who gets one without paying, and when a run is refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

from kamino.cli.app import app
from kamino.constraints import Constraints
from kamino.engine.discovery import FoundDomains
from kamino.engine.lost_cells import Lost
from kamino.errors import InputError
from kamino.io.databases.sql import declared_enums
from kamino.pipeline import Settings, Synthesizer
from kamino.pipeline.output.release_note import release_note
from kamino.pipeline.output.taken import column_notes, refuse_useless, taken_columns
from kamino.pipeline.plan.public_domains import with_public_domains
from kamino.pipeline.plan.run_plan import plan_run
from kamino.privacy.schedule import Rule
from kamino.schema import Boolean, Categorical, Integer, Key, Real, Schema, Source


def table(rows: int = 4_000) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "zip": rng.choice([10_115, 20_095, 80_331, 50_667], rows),
            "state": rng.choice(["CA", "NY", "TX"], rows),
            "size": rng.choice(["S", "M", "L"], rows),
            "pay": np.round(rng.gamma(3, 10, rows), 2),
        }
    )


def write(folder: Path, made: pa.Table) -> Path:
    pa.csv.write_csv(made, folder / "t.csv")
    return folder / "t.csv"


def test_accepted_values_are_a_domain() -> None:
    schema = Schema(
        attributes={"size": Categorical(), "level": Integer(), "code": Categorical(), "pay": Real(), "on": Boolean()}
    )
    rules = (
        "check (size in ('S', 'M'))\ncheck (level in (3, 1, 2))\ncheck (code in (7, 8))\ncheck (pay in (1, 2))\n"
        "check (on in ('yes'))"
    )
    made: Any = with_public_domains(schema, Constraints.parse(rules), ())
    assert made["size"] == Categorical(values=["S", "M"], source=Source.DECLARED)
    assert (made["level"].min, made["level"].max) == (1, 3)
    assert made["code"].values == (7, 8)
    assert made["pay"] == schema["pay"]
    assert made["on"] == schema["on"]
    for line in (
        "soft: check (size in ('S', 'M'))",
        "check (size in ('S', 'M') or level > 3)",
        "check (size != 'S')",
        "size -> level",
    ):
        assert with_public_domains(schema, Constraints.parse(line), ()) == schema


def test_public_lists_are_domains() -> None:
    schema = Schema(attributes={"state": Categorical(), "land": Categorical(), "age": Integer()})
    made: Any = with_public_domains(schema, Constraints(), [("state", "us-states")])
    assert "Ohio" in made["state"].values
    assert made["state"].source is Source.DECLARED
    assert made.missing_domains == ("land", "age")
    with pytest.raises(InputError, match=r"no public list .us-sates.\. Did you mean .us-states."):
        with_public_domains(schema, Constraints(), [("state", "us-sates")])
    with pytest.raises(InputError, match="expected a category"):
        with_public_domains(schema, Constraints(), [("age", "us-states")])


def test_what_is_public_is_not_paid_for(tmp_path: Path) -> None:
    path = write(tmp_path, table())
    made = Synthesizer(
        constraints="check (size in ('S', 'M', 'L'))", value_lists=[("state", "us-state-codes")], seed=1
    ).fit(path)
    asked = {name for entry in made.ledger["entries"] if entry["kind"] == "categories" for name in entry["attributes"]}
    assert not asked
    schema: Any = made.fitted.schema
    assert schema["size"].values == ("S", "M", "L")
    assert len(schema["state"].values) == 51
    with pytest.raises(InputError, match=r"which is no column. Did you mean 'state'"):
        Synthesizer(value_lists=[("stat", "us-states")]).fit(path)
    made.save(tmp_path / "m.kamino")
    again = Synthesizer.load(tmp_path / "m.kamino")
    assert again.settings.value_lists == (("state", "us-state-codes"),)
    assert again.fitted.found is not None
    assert again.fitted.found.lost == made.fitted.found.lost  # type: ignore[union-attr]


def test_a_useless_table_is_refused_early(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = write(tmp_path, pa.table({f"c{i}": rng.choice([f"v{k}" for k in range(400)], 600) for i in range(8)}))
    with pytest.raises(InputError, match=r"found no useful domain for \d of 8 columns .* or say anyway=True") as caught:
        Synthesizer(seed=1).fit(path)
    assert "epsilon 0." in caught.value.__notes__[0]
    made = Synthesizer(seed=1, anyway=True).fit(path)
    assert made.ledger["spent_epsilon"]["add_remove"] == pytest.approx(1.0, rel=1e-3)


def test_too_few_rows_are_refused_at_once(tmp_path: Path) -> None:
    """Fifty rows of eight columns: a hundredth of the budget says that nothing can be found with the rest."""
    rng = np.random.default_rng(1)
    columns = {f"c{i}": rng.choice(["a", "b"], 50) for i in range(8)}
    path = write(tmp_path, pa.table(columns))
    with pytest.raises(InputError, match=r"found about [\d,]+ rows \(a noisy number\), too few") as caught:
        Synthesizer(seed=1).fit(path)
    assert "epsilon 0.1" in caught.value.__notes__[0] or "epsilon 0.0" in caught.value.__notes__[0]
    declared = {name: Categorical(values=["a", "b"], nullable=True) for name in list(columns)[:5]}
    rest = {name: Categorical(nullable=True) for name in list(columns)[5:]}
    assert Synthesizer(Schema(attributes={**declared, **rest}), seed=1).fit(path).sample(5).num_rows == 5


def visits(persons: int, each: int) -> tuple[pa.Table, Schema]:
    rng = np.random.default_rng(1)
    columns = {f"c{i}": rng.choice(list("abcdef"), persons * each) for i in range(12)}
    declared = {name: Categorical(values=list("abcdef")) for name in columns}
    who = np.repeat(np.arange(persons), each)
    return pa.table({"who": who, **columns}), Schema(attributes={"who": Key(repeats=True), **declared})


def test_a_table_of_noise_is_refused(tmp_path: Path) -> None:
    """Thirty persons with 40 rows each: what one of them may move is larger than all that is there to be seen."""
    made, declared = visits(30, 40)
    said = (
        r"found about [\d,]+ rows .* counts of 12 of 12 columns .* may be off by as many.* \(max_rows\).* anyway=True"
    )
    open_ended = declared.with_attribute("c0", Categorical())
    with pytest.raises(InputError, match=said) as caught:
        Synthesizer(open_ended, unit="who", max_rows=40, seed=0).fit(made)
    assert "epsilon 0.0" in caught.value.__notes__[0], "the number of rows, and no more"
    text = pa.table({name: made[name].cast(pa.string()) for name in made.column_names})
    pa.csv.write_csv(text, tmp_path / "t.csv")
    with pytest.raises(InputError, match=r"too few to find the domains|may be off by as many|no useful domain"):
        Synthesizer(unit="who", max_rows=40, seed=0).fit(tmp_path / "t.csv")
    assert Synthesizer(declared, unit="who", max_rows=40, seed=1).fit(made).sample(5).num_rows == 5


def test_a_table_of_noise_is_told(tmp_path: Path) -> None:
    made, declared = visits(30, 40)
    asked: dict[str, Any] = {"unit": "who", "max_rows": 40, "seed": 1}
    noisy = Synthesizer(declared, **asked).fit(made)
    certificate = noisy.certificate(noisy.sample(50), sha256="0")
    assert certificate["notes"][0].startswith("mostly noise: of about ")
    assert "**This table is mostly noise: of about" in release_note(certificate, table="o.csv")
    (tmp_path / "s.yaml").write_text("unit: who\nmax_rows: 40\n" + declared.to_yaml())
    told = CliRunner().invoke(app, ["plan", "-s", str(tmp_path / "s.yaml"), "-n", "1200"])
    assert "Warning: mostly noise: of about 1,200 rows, counts of 12 of 12 columns" in told.stdout.replace("\n", " ")
    many = CliRunner().invoke(app, ["plan", "-s", str(tmp_path / "s.yaml"), "-n", "120000"])
    assert "mostly noise" not in many.stdout
    useful = Synthesizer(declared, unit="who", max_rows=1, epsilon=4.0, seed=1).fit(visits(2_000, 1)[0])
    assert not any("mostly noise" in note for note in useful.certificate(useful.sample(5))["notes"])


def test_single_columns_that_noise_hides_are_told() -> None:
    """Five hundred names have four rows each; nine of ten rows are of one country, which stands out."""
    rng = np.random.default_rng(0)
    rows, names, countries = 2_000, [f"n{i}" for i in range(500)], [f"c{i}" for i in range(41)]
    made = pa.table(
        {
            "name": rng.choice(names, rows),
            "age": rng.integers(18, 80, rows),
            "country": rng.choice(countries, rows, p=[0.9, *[0.1 / 40] * 40]),
            "gain": np.where(rng.random(rows) < 0.9, 0, rng.integers(0, 99_999, rows)),
        }
    )
    fitted = Synthesizer(seed=1, trust_domain=True).fit(made)
    certificate = fitted.certificate(fitted.sample(20), sha256="0")
    (note,) = (each for each in certificate["notes"] if each.startswith("hidden by noise"))
    assert note.startswith("hidden by noise: name. Of about ")
    assert note in release_note(certificate, table="o.csv")
    few = Synthesizer(seed=1, trust_domain=True).fit(made.slice(0, 300))
    notes = [each for each in few.certificate(few.sample(20))["notes"] if each.startswith("hidden by noise")]
    assert "name, age" in notes[0]
    assert "country" not in notes[0]
    sure = Synthesizer(seed=1, trust_domain=True, epsilon=50.0).fit(made)
    assert not any("hidden by noise" in each for each in sure.certificate(sure.sample(20))["notes"])


def found(schema: Schema, *, by_default: tuple[str, ...] = (), **lost: Lost) -> FoundDomains:
    return FoundDomains(schema=schema, types_found=True, by_default=by_default, lost=lost)


NONE = Lost(outside=0.0, unreadable=0.0, within=0.01)
PRIVATE = Source.PRIVATE
SCHEMA = Schema(
    attributes={
        "zip": Integer(min=0, max=99_999, source=PRIVATE),
        "city": Categorical(values=["Rome", "other"], other="other", source=PRIVATE),
        "pay": Real(min=0, max=64, decimals=2, source=PRIVATE),
        "id": Categorical(values=["other"], other="other", source=PRIVATE),
    }
)


def test_most_columns_must_be_useful() -> None:
    half = Lost(outside=0.3, unreadable=0.3, within=0.05)
    rest = {"zip": NONE, "city": NONE, "id": NONE}
    refuse_useless(found(SCHEMA, **rest, pay=half), Settings())
    with pytest.raises(InputError, match=r"3 of 4 columns \(zip, pay, id\)"):
        refuse_useless(found(SCHEMA, by_default=("zip",), **rest, pay=half), Settings())
    refuse_useless(found(SCHEMA, by_default=("zip",), **rest, pay=half), Settings(anyway=True))


def test_notes_tell_what_is_lost() -> None:
    lost = {
        "zip": NONE,
        "city": Lost(outside=0.123, unreadable=0.0, within=0.02),
        "pay": Lost(outside=0.031, unreadable=0.052, within=0.02),
        "id": NONE,
    }
    notes = column_notes(SCHEMA, found(SCHEMA, by_default=("zip",), **lost))
    assert notes == (
        "zip: no range stood out of the noise; the usual one of its name or type was taken, 0 to 99,999. Declare its "
        "domain in a schema",
        "city: about 12.3% of its cells became other (± 2.0%)",
        "pay: about 3.1% of its cells lay outside 0 to 64 (± 2.0%)",
        "pay: about 5.2% of its cells cannot be read as real, and became null (± 2.0%)",
        "zip: a code by the name, read as a quantity, so most values are made up. Declare its values in a schema "
        "(type: categorical), or declare it as `type: key`",
    )


def test_codes_read_as_quantities_are_named() -> None:
    declared = Schema(attributes={"zip": Integer(min=0, max=9), "age": Integer(min=0, max=9, source=Source.ASSERTED)})
    assert column_notes(declared, None) == ()
    asserted = Schema(attributes={"zip": Integer(min=0, max=9, source=Source.ASSERTED)})
    assert column_notes(asserted, None)[0].startswith("zip: a code by the name, read as a quantity")


def test_every_column_is_told_with_its_reason() -> None:
    lines = {each["name"]: each for each in taken_columns(SCHEMA, found(SCHEMA, zip=NONE))}
    assert lines["zip"]["taken_for"] == "integer"
    assert lines["zip"]["why"] == "as its cells are written; domain found within the budget"
    assert lines["zip"]["lost"] == {"outside": 0.0, "unreadable": 0.0, "within": 0.01}
    assert lines["city"]["domain"] == "1 value and other"
    trusted = Schema(attributes={"zip": Categorical(values=[1, 2], source=Source.ASSERTED, dtype="int64")})
    assert taken_columns(trusted, None)[0]["why"] == "by its name, a code; values from the table"


def test_codes_of_a_trusted_table_keep_their_values(tmp_path: Path) -> None:
    made = Synthesizer(trust_domain=True, seed=1).fit(write(tmp_path, table()))
    assert set(made.sample(500)["zip"].to_pylist()) <= {10_115, 20_095, 80_331, 50_667}
    schema = Schema(
        attributes={"zip": Integer(), "state": Categorical(), "size": Categorical(), "pay": Real(decimals=2)}
    )
    declared = Synthesizer(schema, trust_domain=True, seed=1).fit(write(tmp_path, table()))
    assert isinstance(declared.fitted.schema["zip"], Integer)
    assert declared.fitted.schema["zip"].source is Source.ASSERTED


def test_a_plan_before_the_number_of_rows_bounds_the_run() -> None:
    """`kamino plan` knows no rows: what it shows is the least noise of each release, and the run has no less."""
    schema = Schema(attributes={"a": Integer(), "b": Categorical(), "c": Real()})
    early = plan_run(schema, Constraints(), Settings())
    assert all(each.rule is Rule.AT_MOST for each in early.schedule if each.part == "domains")
    for rows in (10, 3_000, 10**6):
        exact = early.with_rows(rows)
        assert all(each.rule is Rule.EACH for each in exact.schedule)
        for planned in exact.schedule:
            matching = [e for e in early.schedule if (e.what, e.attributes) == (planned.what, planned.attributes)]
            least = min(e.noise_multiplier or 0.0 for e in matching)
            assert (planned.noise_multiplier or 0.0) >= least * (1 - 1e-9) or planned.kind == "bounds"


def test_init_says_what_it_took_columns_for(tmp_path: Path) -> None:
    path = write(tmp_path, table(50).append_column("age", pa.array([30] * 50)))
    done = CliRunner().invoke(app, ["init", str(path), "-o", str(tmp_path / "s.yaml")])
    assert done.exit_code == 0
    said = done.stderr
    assert "zip: categorical, by its name a code. List its values, or make it `type: key`." in said
    assert "pay: real, as its cells are written." in said
    assert "age: its name suggests min: 0, max: 120" in said
    confirmed = CliRunner().invoke(app, ["init", str(path), "--usual-bounds"])
    assert "max: 120" in confirmed.stdout
    assert "suggests" not in confirmed.stderr


def _with_enum(path: Path, rows: int) -> str:
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.execute("create type mood as enum ('sad', 'ok', 'glad')")
        connection.execute(f"create table t as select 'ok'::mood as m, i from range({rows}) as r(i)")
    return f"duckdb:///{path}"


@pytest.mark.parametrize("rows", [0, 9])
def test_enums_are_read_without_rows(tmp_path: Path, rows: int) -> None:
    assert declared_enums(_with_enum(tmp_path / "t.db", rows), "t") == {"m": ("sad", "ok", "glad")}
    assert declared_enums("t.csv", None) == {}


def test_enums_of_a_database_are_domains(tmp_path: Path) -> None:
    made = Synthesizer(seed=1, anyway=True).fit(_with_enum(tmp_path / "t.db", 500), query="t")
    assert made.fitted.schema["m"] == Categorical(values=["sad", "ok", "glad"], nullable=True, source=Source.DECLARED)
    assert all(entry["kind"] != "categories" for entry in made.ledger["entries"])


@pytest.mark.parametrize("size", [10**13, 10**16, 10**18, 10**20, -(10**20)])
@pytest.mark.parametrize("kind", [pa.decimal128(38, 0), pa.decimal128(24, 2), pa.float64()])
def test_huge_numbers_get_a_range(size: int, kind: pa.DataType) -> None:
    """Numbers beyond 2^62 are in the last cell, from 2^61; none stops a run that has spent something."""
    numbers = pa.array([Decimal(size * (1 + i % 9)) for i in range(500)], pa.decimal128(38, 0))
    table = pa.table({"n": numbers.cast(kind), "m": [i % 3 for i in range(500)]})
    made = Synthesizer(epsilon=20.0, seed=1).fit(table, num_rows=500).sample(200)
    assert made.schema.field("n").type == kind
    assert made.column("n").null_count < 200
    drawn = [float(each) for each in made.column("n").to_pylist() if each is not None]
    assert abs(np.median(drawn)) >= min(abs(size), 2**61)
