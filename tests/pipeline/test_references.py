"""Reference tables are read and checked before anything is spent, supply domains, and are told of afterwards."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.test_check_command import kamino

from kamino import Synthesizer
from kamino.errors import KaminoError
from kamino.evaluate.following import count_following
from kamino.io import read_table, write_table
from kamino.schema import Categorical, Integer, Schema

CITY = {f"1{7 * i:04d}": "Rome" if i % 2 else "Paris" for i in range(20)}
MAP = "zip,city\n" + "".join(f"{zip_code},{city}\n" for zip_code, city in CITY.items())


def private_table(rows: int = 300) -> pa.Table:
    draw = random.Random(4)
    zips = [draw.choice(list(CITY)) for _ in range(rows)]
    return pa.table({"zip": zips, "city": [CITY[z] for z in zips], "age": [draw.randint(18, 80) for _ in zips]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_table(private_table(), tmp_path / "t.csv")
    write_table(private_table(), tmp_path / "t.parquet")
    (tmp_path / "zips.csv").write_text(MAP)
    (tmp_path / "rules.dc").write_text("zip -> city using zips.csv\n")
    return tmp_path


BAD = {
    "no file": (None, "zips.csv: no such file"),
    "no column": ("zip,town\n10000,Rome\n", "found no column city"),
    "no row": ("zip,city\n", "found no row"),
    "two values": ("zip,city\n10000,Rome\n10000,Paris\n", "found two values of city for zip = 10000: Paris and Rome"),
    "torn": ('zip,city\n10000,"Rome\n', "zips.csv"),
}


@pytest.mark.parametrize(
    ("case", "command"), [*((case, "synth") for case in BAD), ("no file", "check"), ("two values", "plan")]
)
def test_bad_references_cost_nothing(case: str, command: str, folder: Path) -> None:
    text, said = BAD[case]
    (folder / "zips.csv").unlink()
    if text is not None:
        (folder / "zips.csv").write_text(text)
    (folder / "s.yaml").write_text("attributes:\n  zip: {type: categorical}\n  city: {type: categorical}\n")
    arguments = {
        "check": ("check", "t.csv"),
        "plan": ("plan", "-s", "s.yaml"),
        "synth": ("synth", "t.csv", "-o", "o.csv"),
    }
    before = sorted(path.name for path in folder.iterdir())
    ran = kamino(*arguments[command], "-c", "rules.dc", cwd=folder)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1), ran.stderr
    assert said in ran.stderr
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_right_side_outside_its_domain_is_refused(folder: Path) -> None:
    schema = Schema(
        attributes={
            "zip": Categorical(values=sorted(CITY)),
            "city": Categorical(values=["Paris"]),
            "age": Integer(min=0, max=99),
        }
    )
    with pytest.raises(KaminoError, match="found 10 left sides whose city lies outside its domain, such as Rome for"):
        Synthesizer(schema, folder / "rules.dc").plan()


def test_a_soft_dependency_with_a_reference_is_refused(folder: Path) -> None:
    (folder / "rules.dc").write_text("soft: zip -> city using zips.csv\n")
    with pytest.raises(KaminoError, match="would not be used"):
        Synthesizer(None, folder / "rules.dc", seed=1).fit(folder / "t.csv")


@pytest.mark.parametrize("file", ["t.csv", "t.parquet"])
def test_references_supply_domains(file: str, folder: Path) -> None:
    made = Synthesizer(None, folder / "rules.dc", seed=3).fit(folder / file)
    schema = made.fitted.schema
    assert schema["city"].categories == ("Paris", "Rome")  # type: ignore[union-attr]
    assert {str(value) for value in schema["zip"].categories} == set(CITY)  # type: ignore[union-attr]
    assert {schema.sources[name].value for name in ("zip", "city")} == {"declared"}
    searched = {
        name for entry in made.ledger["entries"] if entry["kind"] == "categories" for name in entry["attributes"]
    }
    assert searched.isdisjoint({"zip", "city"})


def test_a_trusted_domain_is_widened_by_what_the_map_leads_to(folder: Path) -> None:
    table = private_table().set_column(1, "city", pa.array(["Paris"] * 300))
    made = Synthesizer(None, folder / "rules.dc", seed=3, trust_domain=True).fit(table)
    drawn = made.sample(200)
    assert {(z, c) for z, c in zip(drawn["zip"].to_pylist(), drawn["city"].to_pylist(), strict=True)} <= set(
        CITY.items()
    )


def test_check_counts_rows_that_contradict(folder: Path) -> None:
    table = private_table(100)
    city = table.column("city").to_pylist()
    wrong = ["Rome" if city[0] == "Paris" else "Paris", *city[1:]]
    write_table(table.set_column(1, "city", pa.array(wrong)).slice(0, 1), folder / "one.csv")
    ran = kamino("check", "one.csv", "-c", "rules.dc", cwd=folder)
    assert ran.returncode == 1, "one row alone breaks no dependency, and contradicts the map"
    assert "zips.csv: 1 row contradict it, 0 follow it" in ran.stdout
    ran = kamino("check", "one.csv", "-c", "rules.dc", "--json", cwd=folder)
    assert json.loads(ran.stdout)["constraints"][0]["reference"]["rows_contradicting"] == 1


def test_the_certificate_says_who_follows(folder: Path) -> None:
    ran = kamino("synth", "t.csv", "-c", "rules.dc", "-o", "o.csv", "-n", "200", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    told = json.loads((folder / "o.csv.certificate.json").read_text())["constraints"][0]["reference"]
    rows = [tuple(map(str, row.values())) for row in read_table(folder / "o.csv").select(["zip", "city"]).to_pylist()]
    follows = sum(CITY.get(zip_code) == city for zip_code, city in rows)
    assert (told["rows_following"], told["rows_contradicting"]) == (follows, 0)
    assert told["share_following"] == follows / 200
    assert f"{follows / 200:.1%} of the rows follow zips.csv" in ran.stdout


CELLS = st.one_of(st.none(), st.integers(0, 3))


@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=12), st.dictionaries(st.tuples(CELLS, CELLS), CELLS, max_size=9)
)
def test_following_agrees_with_looking_up(
    rows: list[tuple[int | None, ...]], listed: dict[tuple[int | None, int | None], int | None]
) -> None:
    kind = pa.int64()
    table = pa.table({name: pa.array([row[i] for row in rows], kind) for i, name in enumerate("abc")})
    entries = [(*left, right) for left, right in listed.items()]
    reference = pa.table({name: pa.array([row[i] for row in entries], kind) for i, name in enumerate("abc")})
    known = {left: right for left, right in listed.items() if None not in left and right is not None}
    found = count_following(table, ("a", "b"), "c", reference)
    wanted = [(known[a, b], c) for a, b, c in rows if (a, b) in known]
    assert found.known == len(wanted)
    assert found.following == sum(one == two for one, two in wanted)
    assert found.contradicting == sum(two is not None and one != two for one, two in wanted)
