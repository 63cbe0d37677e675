"""The place where a table will go is tried before anything is spent."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from tests.contracts import servers

from kamino import Synthesizer
from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.databases.catalogue import read_catalogue
from kamino.pipeline.output.trying import trial_rows, try_target, with_usual_domains
from kamino.schema import Attribute, Boolean, Categorical, Codec, Date, Datetime, Integer, Key, Real, Schema

COLUMNS: dict[str, Attribute] = {
    "id": Key(pattern="C{:02d}"),
    "word": Categorical(values=["x", "it's", 'a "b", c', "é" * 90], nullable=True),
    "number": Integer(min=-5, max=2**60),
    "small": Integer(min=0, max=255, dtype="uint8"),
    "price": Real(min=Decimal("-0.5"), max=Decimal("99.5"), decimals=2, dtype="decimal128(8, 2)"),
    "real": Real(min=0, max=1, decimals=6, nullable=True),
    "day": Date(min=dt.date(1, 1, 1), max=dt.date(9999, 12, 31)),
    "moment": Datetime(min=dt.datetime(1970, 1, 1), max=dt.datetime(2024, 1, 1), timezone="UTC"),
    "flag": Boolean(nullable=True),
    "found": Categorical(nullable=True),
    "counted": Integer(nullable=True),
    "measured": Real(dtype="float32"),
    "born": Date(),
    "came": Date(format="%d/%m/%Y", nullable=True),
    "at": Datetime(),
    "hour": Datetime(resolution=3600, timezone="Europe/Berlin", format="%d/%m/%Y %H:%M", nullable=True),
    "long": Real(dtype="decimal128(38, 9)"),
    "code": Categorical(dtype="int16"),
    "kind": Categorical(dtype="dictionary"),
}


@pytest.fixture
def postgres(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)  # where certificates of tables of a server go
    uri = servers.postgres()
    servers.run_in_postgres(uri, "create schema trial")
    yield f"{uri}{'&' if '?' in uri else '?'}options=-csearch_path%3Dtrial"
    servers.run_in_postgres(uri, "drop schema trial cascade")


@pytest.fixture(params=["csv", "csv.gz", "tsv", "jsonl", "parquet", "feather", "duckdb", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return f"{request.getfixturevalue('postgres')}#made"
    return f"duckdb:///{tmp_path}/out.db#made" if request.param == "duckdb" else str(tmp_path / f"out.{request.param}")


def test_a_trial_leaves_nothing(place: str, tmp_path: Path) -> None:
    alone = [(Schema(attributes={name: each}), ()) for name, each in COLUMNS.items()]
    several: list[tuple[Schema | None, tuple[str, ...]]] = [(Schema(attributes=COLUMNS), ()), (None, ("a", "b c", "Ä"))]
    for schema, names in several if "db#" in place or "postgres" in place else several + alone:
        try_target(place, schema, names, None)
        assert list(tmp_path.iterdir()) == []
        if place.startswith("postgres"):
            with pytest.raises(InputError, match="does not exist"):
                read_table(place)


def test_a_trial_has_the_ends_of_every_domain() -> None:
    rows = trial_rows(with_usual_domains(Schema(attributes=COLUMNS)))
    for name, attribute in COLUMNS.items():
        tried = set(rows.column(name).to_pylist())
        if isinstance(attribute, Integer | Real | Date) and attribute.has_domain:
            assert {attribute.min, attribute.max} <= tried, name
        if attribute.nullable:
            assert None in tried, name
    assert Codec(Schema(attributes={"n": Integer(min=0, max=5)})).encode(rows.select(["number"]).rename_columns(["n"]))


REFUSED: list[tuple[str, dict[str, Attribute], str]] = [
    ("duckdb", {"a": Boolean(), "A": Boolean()}, "already exists"),
    ("postgres", {"x" * 64: Boolean()}, "more than 63 bytes"),
    ("postgres", {"é" * 32: Boolean()}, "more than 63 bytes"),
    ("postgres", {"a": Categorical(values=["a\x00b"])}, "cannot be written|would not come back"),
    ("postgres", {f"c{i}": Boolean() for i in range(1_601)}, "1600 columns"),
    ("duckdb", {"a": Real(min=0, max=10**40, decimals=-30, dtype="decimal256(50, 0)")}, "cannot be written"),
]


@pytest.mark.parametrize(("kind", "columns", "told"), REFUSED, ids=range(len(REFUSED)))
def test_what_a_database_cannot_hold_is_refused(
    kind: str, columns: dict[str, Attribute], told: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = f"duckdb:///{tmp_path}/out.db#made" if kind == "duckdb" else f"{request.getfixturevalue('postgres')}#made"
    with pytest.raises(InputError, match=told):
        try_target(place, Schema(attributes=columns), (), None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["pg_temp.q", "x" * 64, '"' + "é" * 32 + '"'])
def test_names_that_do_not_last_are_refused(name: str, postgres: str) -> None:
    with pytest.raises(InputError, match=r"temporary table|more than 63 bytes"):
        try_target(f"{postgres}#{name}", Schema(attributes={"a": Boolean()}), (), None)


def test_a_temporary_table_of_duckdb_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        try_target(f"duckdb:///{tmp_path}/out.db#temp.q", Schema(attributes={"a": Boolean()}), (), None)


def test_names_are_found_as_they_were_given(postgres: str) -> None:
    table = pa.table({"Word": ["a", "b"] * 30})
    for name in ("People", '"People"', "trial.Those"):
        written = Synthesizer(trust_domain=True, seed=1).fit(table).write(f"{postgres}#{name}", 5)
        assert written.rows == read_table(postgres, query=name).num_rows == 5


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_ids_that_repeat_are_no_primary_key(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    place = f"duckdb:///{tmp_path}/out.db#made" if kind == "duckdb" else f"{request.getfixturevalue('postgres')}#made"
    schema = Schema(attributes={"who": Key(repeats=True), "row": Key(dtype="int64"), "word": Categorical()})
    table = pa.table({"who": [f"p{i // 4}" for i in range(200)], "row": range(200), "word": ["a", "b"] * 100})
    made = Synthesizer(schema, unit="who", max_rows=5, seed=1, anyway=True).fit(table, output=place)
    written = made.write(place, 100)
    found = read_catalogue(written.place if kind == "duckdb" else place, None)
    assert found is not None
    assert (found.primary, found.unique) == (("row",), ())
    assert len(set(read_table(place).column("who").to_pylist())) < 100


def test_a_target_is_tried_before_anything_is_spent(tmp_path: Path) -> None:
    table, place = pa.table({"a": [1, 2] * 30, "A": [1, 2] * 30}), f"duckdb:///{tmp_path}/out.db#made"
    for trust in (True, False):
        synthesizer = Synthesizer(trust_domain=trust, seed=1)
        for run in (synthesizer.fit, synthesizer.dry_run):
            with pytest.raises(InputError, match="already exists") as refused:
                run(table, output=place)
            assert not getattr(refused.value, "__notes__", ())
        assert not synthesizer.is_fitted


def test_a_type_that_cuts_values_is_refused(postgres: str) -> None:
    servers.run_in_postgres(postgres, "create table people (word varchar(3), n int)")
    servers.run_in_postgres(postgres, "insert into people select 'a' || i % 3, i from generate_series(1, 60) as r(i)")
    with pytest.raises(InputError, match="'word' would not come back"):
        Synthesizer(seed=1, anyway=True).fit(f"{postgres}#people", output=f"{postgres}#made")


def test_a_file_of_duckdb_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "out.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table mine as select 1 as a")
    schema = Schema(attributes={"a": Boolean()})
    try_target(f"duckdb:///{path}#other", schema, (), None)
    with pytest.raises(InputError, match="did not make"):
        try_target(f"duckdb:///{path}#mine", schema, (), None)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("select table_name from duckdb_tables()").fetchall() == [("mine",)]
