"""What a steward is told: whose privacy, what epsilon means, what is for release, and what may be concluded."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.cli.test_check_command import kamino

from kamino import Synthesizer
from kamino.constraints import Constraints
from kamino.errors import InputError
from kamino.io import write_table
from kamino.pipeline.output.certificate import certificate_of
from kamino.pipeline.output.release_mark import weak_promises
from kamino.pipeline.output.release_note import release_note
from kamino.pipeline.plan.group_ids import with_person_ids
from kamino.pipeline.plan.whose_privacy import (
    asked_columns,
    could_hold_ids,
    looks_like_person,
    person_columns,
    written_ids,
)
from kamino.schema import Boolean, Categorical, Date, Datetime, Integer, Key, Real, Schema, draft_schema

TABLE = pa.table({"zone": ["x", "y"] * 40, "age": list(range(80))})
VISITS = TABLE.append_column("patient_id", pa.array([i // 8 for i in range(80)]))
NAMED_VISITS = TABLE.append_column("patient_id", pa.array([f"P{i // 8}" for i in range(80)]))
SCHEMA = Schema(attributes={"zone": Categorical(values=["x", "y"]), "age": Integer(min=0, max=99)})
PERSONS = [
    "patient_id",
    "PatientID",
    "patientid",
    "subject_id",
    "customer_number",
    "SSN",
    "user id",
    "emp_no",
    "c_ssn",
    "memberId",
    "ssn_1",
    "email_address",
    "home email",
    "passport_no_old",
    "iban_of_payer",
]
OTHERS = [
    "id",
    "zip",
    "age",
    "state",
    "patient_age",
    "order_id",
    "product_code",
    "flight_no",
    "key",
    "note",
    "valid",
    "accounting",
    "3Ssn_Porch",
    "email_count",
    "passport_country",
    "login_attempts",
]


@pytest.mark.parametrize("name", PERSONS)
def test_ids_of_persons_are_recognised(name: str) -> None:
    assert looks_like_person(name)


@pytest.mark.parametrize("name", OTHERS)
def test_other_names_are_not(name: str) -> None:
    assert not looks_like_person(name)


@pytest.mark.parametrize(
    ("name", "attribute", "could"),
    [
        ("ssn", Integer(min=0, max=508), False),
        ("ssn", Integer(min=1_010_001, max=899_999_999), True),
        ("ssn", Integer(), True),
        ("ssn", Categorical(values=[0, 144, 508], source="asserted"), False),
        ("ssn", Categorical(values=["078-05-1120"], source="asserted"), True),
        ("ssn", Categorical(values=["yes", "no"], source="asserted"), False),
        ("ssn", Categorical(nullable=True), True),
        ("ssn", Real(min=0, max=10**9, decimals=0), True),
        ("ssn", Real(min=0, max=10**9, decimals=2), False),
        ("ssn", Real(), True),
        ("ssn", Boolean(), False),
        ("ssn", Date(), False),
        ("ssn", Datetime(), False),
        ("ssn", Key(), True),
        ("email", Categorical(values=["Y", "N"], source="asserted"), False),
        ("email", Categorical(values=["Y", "N", "a@b.org"], source="asserted"), True),
        ("email", Categorical(values=["Y"], other="other", source="private"), True),
        ("patient_id", Integer(min=1, max=9), True),
        ("patient_id", Integer(min=0, max=1), False),
        ("patient_id", Categorical(values=["P1"], source="asserted"), True),
        ("userid", Categorical(values=["bob"], source="asserted"), True),
    ],
)
def test_ids_need_room(name: str, attribute: Any, could: bool) -> None:
    """By what is declared or public of a column: nothing that is not known speaks against its name."""
    assert could_hold_ids(name, attribute) == could
    schema = Schema(attributes={name: attribute, "age": Integer(min=0, max=9)})
    assert (name in person_columns(schema.names, known=schema.attributes)) == could
    asserted = attribute.has_domain and attribute.source.value == "asserted"
    assert written_ids(schema) == ((name,) if could and asserted else ())


def test_a_porch_is_no_person(tmp_path: Path) -> None:
    """A number of few values, in a column of houses whose name has letters in it that an id has."""
    porch = [0, 0, 0, 144, 508] * 40
    houses = pa.table({"3Ssn_Porch": porch, "ssn": porch, "rooms": [1, 2, 3, 4] * 50})
    write_table(houses, tmp_path / "h.csv")
    ran = kamino("synth", "h.csv", "-o", "o.csv", "--trust-domain", "--drop", "ssn", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert json.loads((tmp_path / "o.csv.certificate.json").read_text())["mark"] == "for release"
    # Of a column that is called so there is more to ask: the range says that it is none.
    Synthesizer(trust_domain=True, unit="row").dry_run(houses)
    Synthesizer(draft_schema(houses, trust_domain=True)).dry_run(houses)
    with pytest.raises(InputError, match="found ssn, which looks like the id of a person"):
        Synthesizer().dry_run(houses)


def test_synth_asks_whose_privacy(tmp_path: Path) -> None:
    write_table(VISITS, tmp_path / "v.csv")
    ran = kamino("synth", "v.csv", "-o", "o.csv", cwd=tmp_path)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
    assert "--unit patient_id --max-rows N" in ran.stderr
    assert "--unit row" in ran.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.csv"]
    ran = kamino("init", "v.csv", "-o", "s.yaml", cwd=tmp_path)
    assert "looks like the id of a person" in ran.stderr
    assert "# unit: patient_id" in (tmp_path / "s.yaml").read_text()
    assert "id of a" in " ".join(kamino("synth", "--help", cwd=tmp_path).stdout.split())


@pytest.mark.parametrize("name", ["id", "ID", "Subject", "customer", "idcode", "pid"])
def test_bare_ids_are_asked_about(name: str, tmp_path: Path) -> None:
    """Where values are called public; a schema that declares the column, and a key, are an answer."""
    visits = VISITS.rename_columns(["zone", "age", name])
    with pytest.raises(
        InputError, match=f"found {name}, which looks like the id of a person.*unit={name!r}, max_rows=N"
    ):
        Synthesizer(seed=1, trust_domain=True).dry_run(visits)
    empty = visits.slice(0, 0)
    with pytest.raises(InputError, match=f"found {name}, which looks like"):  # by its name: no row is looked at
        Synthesizer(seed=1, trust_domain=True).dry_run(empty)
    Synthesizer(seed=1, trust_domain=True, unit="row").dry_run(visits)
    Synthesizer(None, f"key ({name})", seed=1, trust_domain=True).dry_run(visits)
    declared = Schema(attributes={**SCHEMA.attributes, name: Key()})
    Synthesizer(declared, seed=1, trust_domain=True).dry_run(visits)
    listed = Schema(attributes={**SCHEMA.attributes, name: Integer(min=0, max=9)})
    Synthesizer(listed, seed=1, trust_domain=True).dry_run(visits)
    write_table(visits, tmp_path / "v.csv")
    ran = kamino("init", "v.csv", "--trust-domain", "-o", "s.yaml", cwd=tmp_path)
    assert f"# unit: {name}" in (tmp_path / "s.yaml").read_text()
    assert "looks like the id of a person" in ran.stderr
    ran = kamino("synth", "v.csv", "-s", "s.yaml", "-o", "o.csv", cwd=tmp_path)
    assert (ran.returncode, f"--unit {name}" in ran.stderr) == (2, True)


def test_bare_ids_are_not_asked_about_where_domains_are_found() -> None:
    assert asked_columns(["id", "subject"], {}) == ()
    assert asked_columns(["id", "subject", "subject_matter"], {}, trust_domain=True) == ("id", "subject")


def test_who_said_it_is_not_asked() -> None:
    with pytest.raises(InputError, match="no word on whose privacy"):
        Synthesizer(seed=1, trust_domain=True).fit(VISITS)
    by_row = Synthesizer(seed=1, trust_domain=True, unit="row").fit(VISITS)
    assert by_row.certificate(by_row.sample(5))["privacy"]["unit"] == "one row"
    by_person = Synthesizer(seed=1, trust_domain=True, unit="patient_id", max_rows=4).fit(VISITS)
    told = by_person.certificate(by_person.sample(5))
    assert told["privacy"]["unit"] == "all rows with one value of 'patient_id', at most 4 of them kept"
    assert "all rows with one value of 'patient_id'" in told["words"]["meaning"]
    Synthesizer(None, "key (patient_id)", seed=1, trust_domain=True).dry_run(VISITS)


@pytest.mark.parametrize("visits", [VISITS, NAMED_VISITS], ids=["numbers", "texts"])
@pytest.mark.parametrize("rules", ["", "key (patient_id)"])
def test_real_ids_of_persons_are_refused(visits: pa.Table, rules: str) -> None:
    """Domains that were called public hold the ids themselves: nobody finds them in a table "for release"."""
    asked: dict[str, Any] = {"trust_domain": True, "unit": "row"}
    with pytest.raises(InputError, match="real ids would be written") as refused:
        Synthesizer(None, rules, **asked).dry_run(visits)
    assert "Reading(drop=('patient_id',))" in str(refused.value)
    assert str(refused.value).endswith("Nothing was spent")
    if rules:
        return
    accepted = Synthesizer(None, rules, accept=True, **asked).fit(visits)
    told = accepted.certificate(accepted.sample(5))
    assert told["mark"] == "for release"
    assert any(note.startswith("patient_id: by its name the id of a person, and real ones") for note in told["notes"])
    # A model that was fitted before this was asked for draws tables that are not for release.
    before = replace(accepted.fitted, settings=replace(accepted.fitted.settings, accept=False))
    assert certificate_of(before, rows=5, violations={})["mark"] == "not for release"
    # Ids that are made up are no real ones, and a seed marks what it makes anyway.
    made_up = Synthesizer(with_person_ids(draft_schema(visits, trust_domain=True)), **asked).dry_run(visits)
    assert not any("real ids" in warning for warning in made_up.warnings)
    seeded = Synthesizer(None, seed=1, **asked).dry_run(visits)
    assert any("real ids would be written" in warning for warning in seeded.warnings)


def test_a_schema_may_say_that_each_row_is_its_own() -> None:
    schema = Schema.from_yaml("unit: row\nattributes:\n  patient_id: {type: integer, min: 0, max: 9}\n")
    assert Schema.from_yaml(schema.to_yaml()) == schema
    Synthesizer(schema, seed=1).dry_run(VISITS.select(["patient_id"]))


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows", "said"),
    [
        (10.5, 1e-6, 100, "epsilon 10.5 is above 10"),
        (1.0, 0.1, 100, "delta 0.1 is above one over"),
        (10.0, 0.01, 100, None),
        (1.0, 0.02, 10, "delta 0.02 is above 0.01: publishing one row in 50 as it is"),
        (1.0, 0.5, None, "delta 0.5 is above 0.01"),
        (1.0, 0.01, None, None),
    ],
)
def test_weak_budgets_are_not_for_release(epsilon: float, delta: float, rows: int | None, said: str | None) -> None:
    found = weak_promises(epsilon, delta, rows)
    assert ([said] if said else []) == [line[: len(said or "")] for line in found]


def test_what_is_weak_needs_an_owner_who_accepts_it() -> None:
    for accept, mark in ((False, "not for release"), (True, "for release")):
        made = Synthesizer(SCHEMA, epsilon=20.0, accept=accept).fit(TABLE)
        told = made.certificate(made.sample(5))
        assert told["mark"] == mark
        assert bool(told["words"]["may"]) == accept
        assert "epsilon 20 is above 10" in told["notes"][0]
    plan = Synthesizer(SCHEMA, delta=0.01).plan(1000)
    assert "delta 0.01 is above one over" in plan.warnings[0]


def test_a_weak_promise_is_warned_of_before_the_run(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "t.csv")
    (tmp_path / "s.yaml").write_text(SCHEMA.to_yaml())
    ran = kamino("synth", "t.csv", "-s", "s.yaml", "-o", "o.csv", "-n", "20", "-e", "12", "-d", "0.5", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    said = " ".join(ran.stderr.split())
    assert "Warning: epsilon 12 is above 10, where little is left of the promise" in said
    assert "will be marked not for release, unless you say --accept" in said
    certificate = json.loads((tmp_path / "o.csv.certificate.json").read_text())
    assert certificate["mark"] == "not for release"
    assert any(note.startswith("delta 0.5 is above one over the rows") for note in certificate["notes"])


def test_plan_certificate_and_report_say_what_epsilon_means(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "t.csv")
    (tmp_path / "s.yaml").write_text(SCHEMA.to_yaml())
    said = "is right at most 54.7 times in 100"
    assert said in kamino("plan", "-s", "s.yaml", cwd=tmp_path).stdout
    note = ("--release-note", "note.md", "--save-model", "m.kamino")
    ran = kamino("synth", "t.csv", "-s", "s.yaml", "-o", "o.csv", "-n", "50", *note, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    certificate = json.loads((tmp_path / "o.csv.certificate.json").read_text())
    assert said in ran.stdout
    assert said in certificate["words"]["meaning"]
    assert certificate["privacy"]["meaning"]["add_remove"]["guess_right_at_most"] == pytest.approx(0.5471, abs=1e-4)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", certificate["date"])
    assert certificate["sha256"] == hashlib.sha256((tmp_path / "o.csv").read_bytes()).hexdigest()
    text = (tmp_path / "note.md").read_text()
    assert text == release_note(certificate, table="o.csv")
    page = kamino("report", "t.csv", "o.csv", "-o", "r.html", cwd=tmp_path)
    assert page.returncode == 0, page.stderr
    assert said in (tmp_path / "r.html").read_text()
    public = kamino("report", "--public", "m.kamino", "o.csv", "-o", "p.html", "--text", cwd=tmp_path)
    assert public.returncode == 0, public.stderr
    shown = (tmp_path / "p.html").read_text().split('<script type="application/json"')[0]
    for praise in ("Good", "Fair", "Poor"):
        assert f"{praise}." not in public.stdout
        assert f">{praise}." not in shown
    assert "aithful to what was released" in public.stdout
    assert "aithful to what was released" in shown
    assert 'class="noise"' in shown, "released bars carry the noise of their counts"


def test_hashes_follow_from_the_facts(tmp_path: Path) -> None:
    (tmp_path / "z.csv").write_text("zone,age\nx,3\ny,4\n")
    (tmp_path / "r.dc").write_text("zone -> age using z.csv\n")
    made = Synthesizer(SCHEMA, tmp_path / "r.dc", seed=1).fit(TABLE)
    table = made.sample(5)
    hashes = made.certificate(table)["hashes"]
    assert hashes["schema"] == hashlib.sha256(SCHEMA.to_yaml().encode()).hexdigest()
    assert set(hashes["references"]) == {"zone -> age"}
    made.save(tmp_path / "m.kamino")
    assert Synthesizer.load(tmp_path / "m.kamino").certificate(table)["hashes"] == hashes
    other = Synthesizer(SCHEMA, Constraints.parse("check (age >= 0)"), seed=1).fit(TABLE)
    assert other.certificate(table)["hashes"]["rules"] != hashes["rules"]


def test_the_release_note_is_one_page() -> None:
    made = Synthesizer(SCHEMA, "check (age >= 0)\nsoft: zone -> age", seed=1).fit(TABLE)
    certificate = made.certificate(made.sample(20), sha256="0" * 64)
    text = release_note(certificate, table="o.csv")
    assert len(text.split()) < 450
    for said in (certificate["words"]["meaning"], certificate["date"], certificate["mark"], "`check (age >= 0)`"):
        assert said in text
