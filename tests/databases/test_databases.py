"""Schemas and rules of databases: what is read, refused, counted and drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.databases import shop
from typer.testing import CliRunner

from kamino import DatabaseSynthesizer
from kamino.cli.app import app
from kamino.databases.family_layout import lay_out
from kamino.databases.fitting_levels import owned_tables
from kamino.databases.implied_domains import narrowed
from kamino.databases.kept_rules import count_broken
from kamino.databases.plan_of_databases import plan_lines
from kamino.databases.rule_lines import parse_rules
from kamino.databases.siblings import denoised
from kamino.engine.families import ColumnOf, CountOf, Families, Sample
from kamino.errors import ConstraintErrors, InputError, SamplingError, SchemaError
from kamino.io.write import write_table
from kamino.privacy.private import PrivateTable, open_table  # noqa: TID251 - the rows of families are what is tested
from kamino.schema import Date, Integer, Schema
from kamino.schema.files.database_file import read_database, write_database

COINS = bytes(range(32))


def test_databases_are_read_as_written() -> None:
    text = write_database(shop.database())
    assert write_database(read_database(text)) == text
    assert read_database(text).private == ("patients", "visits", "doses", "notes")


BAD = {
    "role: root": ("role: public", "tables: found no table of role root"),
    "role: owned by patients\n    key: visit": ("role: owner", "tables.visits.role: found 'owner'"),
    "{columns: ward, references: wards}": ("{columns: ward, references: word}", "found no table 'word'. Did you mean"),
    "key: id": ("key: idd", "attribute 'idd' is not in the schema. Did you mean 'id'"),
    "references: visits}": ("references: patients}", "found no foreign key to visits"),
    "    attributes:\n      patient": ("    attrs:\n      patient", "attrs"),
    "tone: {type: categorical, values: [good, bad]}": (
        "tone: {type: key}",
        "tables.notes.attributes.tone: found a key",
    ),
}


@pytest.mark.parametrize("old", list(BAD))
def test_bad_databases_are_refused_in_one_line(old: str) -> None:
    new, told = BAD[old]
    assert old in shop.SCHEMA
    with pytest.raises(SchemaError) as refused:
        read_database(shop.SCHEMA.replace(old, new, 1))
    assert any(told in line for line in str(refused.value).splitlines())


BAD_RULES = {
    "visits.nurse references wards.ward": "found no column 'nurse' in visits",
    "visits.kind references wards.ward": "which the schema does not have",
    "check (visit.day >= patients.born)": "found no table 'visit'. Did you mean 'visits'",
    "check (day >= patients.born)": "without its table",
    "check (notes.tone = visits.kind)": "found visits beside notes",
    "not (t1.visits.day = t2.doses.number)": "expected two of one table",
    "each visits has 4..1 doses": "expected the smaller number first",
    "each notes has 1 doses": "expected a table and what is owned by it",
    "number (visits.day)": "expected an attribute of type integer",
    "count(doses) = patients.visits": "expected a table and what is owned by it",
    "soft: check (doses.amount > 1)": "found a soft rule",
    "sum(notes.tone) = visits.cost": "expected an aggregate of a table that is owned by visits",
    "visits.cost = visits.cost + 1": "on both sides of =",
    "visits.cost = sleep(3)": "found anonymous in a formula",
    "check (wards.beds > 1 and 1 = (select 2))": "in a check",
    "this is nothing": "expected",
}


@pytest.mark.parametrize("line", list(BAD_RULES))
def test_bad_rules_are_refused_in_one_line(line: str) -> None:
    with pytest.raises(ConstraintErrors) as refused:
        parse_rules(f"# rules\n{line}\n", shop.database(), source="rules.dc")
    (told,) = str(refused.value).splitlines()
    assert told.startswith("rules.dc:2:"), told
    assert BAD_RULES[line] in told, told


def families(tables: shop.Tables) -> Families:
    layout = lay_out(shop.database(), shop.rules(), {"wards": tables["wards"]})
    private = {name: PrivateTable(tables[name]) for name in layout.database.private}
    schemas = {
        name: Schema(
            attributes={
                c: layout.attributes.get(f"{name}.{c}", a) for c, a in layout.database[name].known.attributes.items()
            }
        )
        for name in layout.database.private
    }
    return Families(private, schemas, owned_tables(layout), COINS)


DEEP = Sample(
    path=("patients", "visits", "doses"),
    columns={
        "born": ColumnOf(table="patients", column="born"),
        "n": CountOf(table="patients", child="visits"),
        "day": ColumnOf(table="visits", column="day"),
        "m": CountOf(table="visits", child="doses"),
        "amount": ColumnOf(table="doses", column="amount"),
        "other": ColumnOf(table="doses", column="amount", second=True),
        "tone": ColumnOf(table="notes", column="tone"),
    },
    rows=4,
    pairs=True,
    beside=("notes",),
)


def rows_of(found: Families, wanted: Sample = DEEP) -> list[tuple[Any, ...]]:
    table = open_table(found.sample(wanted))
    return sorted(map(repr, zip(*table.to_pydict().values(), strict=True)))  # type: ignore[arg-type]


def test_a_family_depends_on_itself() -> None:
    """In whatever order rows come, and whoever else is there."""
    found = shop.tables(40)
    rng = np.random.default_rng(0)
    mixed = {n: t if n == "wards" else t.take(rng.permutation(t.num_rows)) for n, t in found.items()}
    assert rows_of(families(found)) == rows_of(families(mixed))


def test_one_family_moves_its_own_rows() -> None:
    found = shop.tables(40)
    whole = rows_of(families(found))
    for place in range(10):
        rest = rows_of(families(shop.without_family(found, place)))
        assert len(whole) - len(rest) in (0, 4)
        left = list(whole)
        for row in rest:
            left.remove(row)
    more = rows_of(
        families(shop.with_family(found, children=50)),
        Sample(
            **{
                **vars(DEEP),
                "path": ("patients", "visits"),
                "columns": {"n": DEEP.columns["n"]},
                "pairs": False,
                "beside": (),
            }
        ),
    )
    assert more.count("(50,)") == 4


def test_orphans_hang_on_nothing() -> None:
    found = shop.tables(40)
    visit = {"visit": "v0-1x", "patient": None, "number": 1, "day": None, "ward": None, "kind": "plan", "cost": 0.0}
    lost = pa.concat_tables([found["visits"], pa.Table.from_pylist([visit], schema=found["visits"].schema)])
    assert rows_of(families({**found, "visits": lost})) == rows_of(families(found))


def test_doubled_keys_move_no_other_family() -> None:
    found = shop.tables(40)
    twin = pa.Table.from_pylist(
        [{"id": 1003, "born": None, "sex": "f", "visits": 0, "urgent": 0}], schema=found["patients"].schema
    )
    both = rows_of(families({**found, "patients": pa.concat_tables([found["patients"], twin])}))
    for row in rows_of(families(found)):
        both.remove(row)
    assert len(both) in (0, 4)


def test_a_database_is_planned_without_rows() -> None:
    layout = lay_out(shop.database(), shop.rules(), {"wards": shop.wards()})
    lines = "\n".join(plan_lines(layout))
    assert all(text in lines for text in layout.rules.texts())


@pytest.fixture(scope="module")
def fitted() -> DatabaseSynthesizer:
    return DatabaseSynthesizer(shop.SCHEMA, shop.RULES, epsilon=3.0, seed=2).fit(shop.tables(120))


def test_numbers_of_children_are_rows(fitted: DatabaseSynthesizer) -> None:
    made = fitted.sample(80)
    patients, visits = made["patients"].to_pylist(), made["visits"].to_pylist()
    assert len(patients) == 80
    for patient in patients:
        own = [v for v in visits if v["patient"] == patient["id"]]
        assert len(own) == patient["visits"]
        assert sum(v["kind"] == "rush" for v in own) == patient["urgent"]
        assert [v["number"] for v in own] == list(range(1, len(own) + 1))


def test_frames_come_back_as_frames() -> None:
    pandas = pytest.importorskip("pandas")
    tables = {name: table.to_pandas() for name, table in shop.tables(60).items()}
    made = DatabaseSynthesizer(shop.SCHEMA, shop.RULES, epsilon=3.0, seed=2).fit(tables).sample(10)
    assert set(made) == {"patients", "visits", "doses", "notes"}
    assert all(isinstance(each, pandas.DataFrame) for each in made.values())


def test_broken_rules_are_counted(fitted: DatabaseSynthesizer) -> None:
    layout, true = fitted.fitted.layout, shop.tables(60)
    tables = {name: table for name, table in true.items() if name != "wards"}
    tables["visits"] = tables["visits"].set_column(
        6, "cost", pa.array(np.round(tables["visits"]["cost"].to_numpy(), 2))
    )
    assert [line for line in count_broken(layout, tables).lines() if "amount * 2" not in line] == []
    patients = tables["patients"]
    wrong = patients.set_column(3, "visits", pa.array([9, *patients["visits"].to_pylist()[1:]]))
    assert count_broken(layout, {**tables, "patients": wrong}).rules["count(visits) = patients.visits"] == 1
    lost = count_broken(layout, {**tables, "patients": patients.slice(1)}).orphans["visits(patient) -> patients(id)"]
    assert lost == patients["visits"][0].as_py()
    twice = pa.concat_tables([patients, patients.slice(0, 1)])
    assert count_broken(layout, {**tables, "patients": twice}).doubled["patients(id)"] == 1


def test_a_database_is_certified(fitted: DatabaseSynthesizer, tmp_path: Path) -> None:
    written = fitted.write(tmp_path / "out", 30, ending=".csv")
    on_disk = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert on_disk["tables"]["patients"]["rows"] == 30
    assert on_disk["mark"] == "not for release"
    assert {each["text"] for each in on_disk["rules"]} == set(shop.rules().texts())
    assert written.rows["patients"] == 30
    with pytest.raises(InputError, match="found something there"):
        fitted.write(tmp_path / "out", 30)


def test_a_database_is_written_whole_or_not_at_all(
    fitted: DatabaseSynthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = fitted._drawn

    def without_some(*asked: Any) -> dict[str, pa.Table]:
        tables = drawn(*asked)
        return {**tables, "patients": tables["patients"].slice(3)}

    monkeypatch.setattr(fitted, "_drawn", without_some)
    with pytest.raises(SamplingError, match="nothing was written"):
        fitted.write(tmp_path / "out", 30)
    assert list(tmp_path.iterdir()) == []


def test_implied_domains_leave_out_what_rules_forbid() -> None:
    rules = parse_rules("check (visits.day > patients.born)", shop.database())
    day = Date(min="1930-01-01", max="2000-01-01")
    found = narrowed({"visits.day": day, "patients.born": Date(min="1940-01-01", max="2019-12-31")}, rules, [])
    assert str(found["patients.born"].max) == "1999-12-31"
    assert str(found["visits.day"].min) == "1940-01-02"
    problems: list[str] = []
    narrowed({"visits.day": day, "patients.born": Date(min="2010-01-01", max="2019-12-31")}, rules, problems)
    assert len(problems) == 1


def test_noise_alone_tilts_nothing() -> None:
    rng = np.random.default_rng(3)
    expected = np.outer(rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(6)))
    sigma = 0.002
    found = denoised(expected + rng.normal(0, sigma, expected.shape), expected, sigma, symmetric=False)
    assert np.abs(found - expected).sum() < 0.3 * 0.8 * sigma * expected.size
    band = np.eye(8) / 8
    clear = denoised(band + rng.normal(0, sigma, band.shape), np.full((8, 8), 1 / 64), sigma, symmetric=True)
    assert np.abs(clear - band).sum() < 0.15


def _folder(path: Path) -> Path:
    path.mkdir()
    for name, table in shop.tables(60).items():
        write_table(table, path / f"{name}.csv")
    (path.parent / "database.yaml").write_text(shop.SCHEMA)
    (path.parent / "rules.dc").write_text(shop.RULES)
    return path


def test_options_of_one_table_are_refused_for_a_database(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "in")
    asked = ["synth", str(folder), "-s", str(tmp_path / "database.yaml"), "-o", str(tmp_path / "out")]
    refused = CliRunner().invoke(app, [*asked, "--unit", "id", "--max-rows", "3"])
    assert refused.exit_code != 0
    assert not (tmp_path / "out").exists()


def test_a_folder_comes_in_and_a_folder_goes_out(tmp_path: Path) -> None:
    """From text alone: keys, dates and nulls are read from CSV."""
    folder = _folder(tmp_path / "in")
    asked = ["synth", str(folder), "-s", str(tmp_path / "database.yaml"), "-c", str(tmp_path / "rules.dc")]
    dry = CliRunner().invoke(app, [*asked, "-o", str(tmp_path / "out"), "--dry-run"])
    assert dry.exit_code == 0, dry.output
    done = CliRunner().invoke(app, [*asked, "-o", str(tmp_path / "out"), "-n", "20", "--seed", "1"])
    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("patients.csv", "visits.csv", "doses.csv", "notes.csv", "certificate.json")
    }


def test_a_count_without_a_range_is_found() -> None:
    rules = "each visits has 0..4 doses\neach patients has 0..6 visits"
    made = DatabaseSynthesizer(shop.SCHEMA, rules, epsilon=3.0, seed=2).fit(shop.tables(100))
    found = made.fitted.attributes["patients.#notes"]
    assert isinstance(found, Integer)
    assert found.has_domain
