"""Real values of single persons, which a table for release would hold because its domains were called public."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from tests.cli.test_check_command import kamino
from tests.contracts.servers import fill_postgres, postgres
from tests.trying import examples

from kamino import Synthesizer
from kamino.engine import own_values
from kamino.engine.own_values import FEW_VALUES, columns_of_single_units, count_units
from kamino.errors import InputError
from kamino.io import write_table
from kamino.pipeline import Settings
from kamino.pipeline.plan.run_plan import plan_table
from kamino.pipeline.plan.written_values import own_values as columns_of
from kamino.privacy.private import PrivateTable
from kamino.schema import Categorical, Key, Schema, Source, draft_schema

NAMES = ["Ann", "Bob", "Cleo", "Dan", "Eve", "Finn", "Gus", "Hal", "Ida", "Jon"]


def persons(rows: int = 300) -> pa.Table:
    """A table of persons: what tells one from another, and what many have."""
    rng = np.random.default_rng(3)
    at = np.arange(rows)
    couple = at // 2
    return pa.table(
        {
            "name": [f"{NAMES[i % 10]} {chr(65 + i % 26)}{i}" for i in range(rows)],
            "address": [f"{i} Long Street, flat {i % 7}" for i in range(rows)],
            "phone": [f"+41 79 {1_000_000 + 7 * int(i)}" for i in couple],
            "ip": [f"10.0.{i // 250}.{i % 250}" for i in range(rows)],
            "comment": [f"called twice about case {i}" if i % 3 else "none" for i in range(rows)],
            "code": pa.array([f"X{i}" if i % 4 == 0 else None for i in range(rows)]),
            "city": [f"city {int(i)}" for i in rng.geometric(0.1, rows)],
            "job": [["nurse", "cook", "clerk"][i % 3] for i in range(rows)],
            "salary": np.round(rng.uniform(1e4, 9e4, rows), 2),
            "badge": rng.permutation(rows) + 10_000,
            "since": [dt.date(1990, 1, 1) + dt.timedelta(days=int(d)) for d in rng.permutation(9000)[:rows]],
            "seen": [dt.datetime(2020, 1, 1) + dt.timedelta(seconds=int(s)) for s in rng.permutation(10**6)[:rows]],
        }
    )


OWN = ("name", "address", "phone", "ip", "comment", "code")
SAID = "found name, address, phone, ip, comment, code, nearly all of whose values belong to one row alone"
ASKED: dict[str, Any] = {"trust_domain": True, "unit": "row"}


def test_values_of_one_person_are_refused() -> None:
    """Numbers, dates and times give their range only, and what many share is nobody's own."""
    table = persons()
    with pytest.raises(InputError, match=SAID) as refused:
        Synthesizer(**ASKED).dry_run(table)
    said = str(refused.value)
    assert "real ones would be written, whatever epsilon is" in said
    assert "Reading(drop=('name', 'address'" in said
    assert "accept=True (real ones are written, on your word). Nothing was spent" in said
    for name in table.column_names:
        for cell in table.column(name).drop_null().to_pylist():
            assert str(cell) not in said or cell == "none"
    accepted = Synthesizer(**ASKED, accept=True, epsilon=10.0).fit(table)
    told = accepted.certificate(accepted.sample(20))
    assert told["mark"] == "for release"
    assert any(note.startswith("name: 300 different texts for about") for note in told["notes"])
    # What is marked anyway goes on, as the ids of persons do.
    for marked in ({"seed": 1}, {"epsilon": float("inf")}):
        Synthesizer(**ASKED, **marked).dry_run(table)
    # Made up, or found within the budget, or left out.
    keyed = {name: {"type": "key"} if name != "comment" else {"type": "categorical"} for name in OWN}
    schema = Schema.from_yaml(_yaml({**_drafted(table, OWN), **keyed}))
    synthetic = Synthesizer(schema, unit="row", epsilon=3.0).fit(table).sample(300)
    for name in OWN[:4]:
        assert not set(synthetic.column(name).to_pylist()) & set(table.column(name).to_pylist())
    Synthesizer(**ASKED).dry_run(table.drop_columns(list(OWN)))


def _drafted(table: pa.Table, but: tuple[str, ...]) -> dict[str, Any]:
    import yaml

    found = yaml.safe_load(draft_schema(table, trust_domain=True).to_yaml())["attributes"]
    return {name: each for name, each in found.items() if name not in but}


def _yaml(attributes: dict[str, Any]) -> str:
    import yaml

    return yaml.safe_dump({"attributes": attributes}, sort_keys=False)


def test_ids_and_own_values_are_refused_in_one_line() -> None:
    table = persons(60).append_column("patient_id", pa.array([f"P{i}" for i in range(60)]))
    with pytest.raises(InputError) as refused:
        Synthesizer(**ASKED).dry_run(table)
    said = str(refused.value)
    assert "\n" not in said
    assert said.index("found patient_id, which looks like the id") < said.index("and found name, address")
    assert said.count("Nothing was spent") == 1


@pytest.mark.parametrize("rows", [0, 1, 2, FEW_VALUES - 1])
def test_hardly_any_values_say_nothing(rows: int) -> None:
    assert columns_of_single_units(PrivateTable(persons(rows)), OWN, None) == ()


@pytest.mark.parametrize(
    ("texts", "refused"),
    [
        # Of 20,000 full names, 500 persons: two in three have one of their own, and only four in five names occur once.
        (lambda rng: [f"N{i}" for i in rng.integers(0, 1_200, 500)], True),
        (lambda rng: [f"N{i}" for i in rng.integers(0, 500, 500)], False),
        # Half of the places occur once, and nine persons in ten live in one of the others.
        (lambda rng: [f"P{i}" for i in rng.zipf(1.6, 500)], False),
        # A comment on one row in fifty.
        (lambda rng: [f"case {i}" if i % 50 == 0 else "none" for i in range(500)], True),
        (lambda rng: [None if i % 50 else f"case {i}" for i in range(500)], True),
        (lambda rng: [None] * 500, False),
        (lambda rng: [f"{i % 250}" + "x" for i in range(500)], True),
        (lambda rng: [f"{i % 150}" + "x" for i in range(500)], False),
    ],
)
def test_a_column_that_tells_most_apart_is_refused(texts: Any, refused: bool) -> None:
    table = pa.table({"a": pa.array(texts(np.random.default_rng(7)), pa.string())})
    assert columns_of_single_units(PrivateTable(table), ("a",), None) == (("a",) if refused else ())


def test_a_person_with_several_rows_has_values_of_its_own() -> None:
    """Each value is in ten rows, all of them of one person: by rows it repeats, by persons it does not."""
    visits = pa.table(
        {
            "who": [f"W{i // 10}" for i in range(400)],
            "street": [f"{i // 10} Long Street" for i in range(400)],
            "ward": [f"ward {i % 7}" for i in range(400)],
        }
    )
    with pytest.raises(InputError, match="found street, nearly all of whose values belong to one who alone"):
        Synthesizer(trust_domain=True, unit="who", max_rows=10).dry_run(visits)
    assert columns_of_single_units(PrivateTable(visits), ("who", "street", "ward"), "who") == ("who", "street")
    assert columns_of_single_units(PrivateTable(visits), ("who", "street", "ward"), None) == ()


@given(
    rows=st.lists(st.tuples(st.none() | st.integers(0, 12), st.none() | st.integers(0, 4), st.booleans()), max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=3),
    texts=st.booleans(),
    as_category=st.booleans(),
)
@examples(150)
def test_values_of_single_units(rows: list[Any], cuts: list[int], texts: bool, as_category: bool) -> None:
    """Counted by hand: the units of each value, of rows or of another column, up to three."""
    values = [None if value is None else f"v{value}" if texts else value for value, _, _ in rows]
    units = [unit for _, unit, _ in rows]
    table = pa.table(
        {"value": pa.array(values, pa.string() if texts else pa.int64()), "unit": pa.array(units, pa.int64())}
    )
    if as_category:
        table = table.set_column(0, "value", table.column("value").dictionary_encode())
    in_parts = PrivateTable(_Parts(table, sorted({min(cut, len(rows)) for cut in cuts})))
    by_unit: dict[Any, set[Any]] = defaultdict(set)
    for value, unit in zip(values, units, strict=True):
        if value is not None:
            by_unit[value].add(unit)
    by_row = Counter(value for value in values if value is not None)
    owners = {unit for value, unit in zip(values, units, strict=True) if value is not None}
    for private in (PrivateTable(table), in_parts):
        for unit, true, whole in (
            (None, [min(3, n) for n in by_row.values()], by_row.total()),
            ("unit", [min(3, len(u)) for u in by_unit.values()], len(owners)),
            ("value", [1] * len(by_row), len(by_row)),
        ):
            found, count = count_units(private, "value", unit)
            assert (sorted(found), count) == (sorted(true), whole)


class _Parts:
    """A table in parts, some of them without rows."""

    is_ordered = True

    def __init__(self, table: pa.Table, cuts: list[int]) -> None:
        self._table, self._cuts = table, [0, *cuts, table.num_rows]

    @property
    def schema(self) -> pa.Schema:
        return self._table.schema

    def parts(self, names: Any = None) -> Any:
        chosen = self._table if names is None else self._table.select(list(names))
        for first, last in zip(self._cuts, self._cuts[1:], strict=False):
            yield chosen.slice(first, last - first)


@pytest.mark.parametrize(
    ("kind", "engine"),
    [
        ("csv", "memory"),
        *((kind, engine) for kind in ("parquet", "duckdb", "postgres") for engine in ("memory", "streamed")),
    ],
)
def test_every_source_and_engine_refuses(tmp_path: Path, kind: str, engine: str) -> None:
    table, source = persons(), str(tmp_path / f"t.{kind}")
    if kind == "duckdb":
        source = f"duckdb:///{tmp_path}/t.db#persons"
        with duckdb.connect(str(tmp_path / "t.db")) as connection:
            connection.register("given", table)
            connection.execute("create table persons as select * from given")
    elif kind == "postgres":
        source = f"{postgres()}#persons"
        fill_postgres(postgres(), table, "persons")
    else:
        write_table(table, source)
    for unit in ({"unit": "row"}, {"unit": "badge", "max_rows": 2}):
        alone = "row" if unit["unit"] == "row" else "badge"
        with pytest.raises(InputError, match=SAID.replace("one row", f"one {alone}")):
            Synthesizer(trust_domain=True, engine=engine, **unit).fit(source)


def test_the_command_refuses_and_takes_a_word_for_it(tmp_path: Path) -> None:
    write_table(persons(), tmp_path / "t.csv")
    asked = ("synth", "t.csv", "-o", "o.csv", "--trust-domain", "--unit", "row")
    for more in ((), ("--dry-run",), ("--ledger", "l")):
        ran = kamino(*asked, *more, cwd=tmp_path)
        assert ran.returncode == 2
        assert SAID in ran.stderr
        assert "Nothing was spent" in ran.stderr
        assert not (tmp_path / "o.csv").exists()
    ran = kamino(*asked, "--accept", "-n", "20", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr


def test_categories_of_a_frame_are_refused_as_well() -> None:
    """A category of pandas lists its cells, and ids are ids however they are stored."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"ssn": [f"{i:09}" for i in range(80)], "name": [f"n{i}" for i in range(80)], "a": 1})
    for made in (frame, frame.astype({"ssn": "category", "name": "category"})):
        with pytest.raises(InputError) as refused:
            Synthesizer(**ASKED).dry_run(made)
        assert "found ssn, which looks like the id of a person" in str(refused.value)
        assert "found name, nearly all of whose values belong to one row alone" in str(refused.value)
    # An order is declared by somebody: the categories are as public as the type.
    ordered = frame.assign(name=pandas.Categorical(frame.name, ordered=True)).drop(columns="ssn")
    Synthesizer(**ASKED).dry_run(ordered)


def test_only_columns_called_public_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not without `trust_domain`, not where a schema declares the values or the type of numbers, not where accepted."""
    table, asked = persons(), list[str]()

    def noted(private: PrivateTable, names: Any, unit: str | None) -> tuple[str, ...]:
        asked.extend(names)
        return columns_of_single_units(private, names, unit)

    monkeypatch.setattr("kamino.pipeline.plan.written_values.columns_of_single_units", noted)
    monkeypatch.setattr(own_values, "count_units", _watched(own_values.count_units, asked))
    schema = draft_schema(table, trust_domain=True)
    private = PrivateTable(table)
    for given_schema, chosen in (
        (schema, Settings(unit="row")),
        (None, Settings(unit="row")),
        (schema, Settings(unit="row", trust_domain=True, accept=True)),
        (_declared(schema), Settings(unit="row", trust_domain=True)),
    ):
        from kamino.constraints import Constraints

        plan_table(private, given_schema, Constraints(), chosen)
        assert asked == []
    assert columns_of(private, schema, Settings(unit="row", trust_domain=True)) == OWN
    assert set(asked) == {"name", "address", "phone", "ip", "comment", "code", "city", "job"}


def _watched(count: Any, asked: list[str]) -> Any:
    def counted(private: PrivateTable, name: str, unit: str | None) -> Any:
        asked.append(name)
        return count(private, name, unit)

    return counted


def _declared(schema: Schema) -> Schema:
    for name, attribute in schema.attributes.items():
        if isinstance(attribute, Categorical):
            made = Categorical(**{**attribute.fields(), "source": Source.DECLARED})
            schema = schema.with_attribute(name, made)
    return schema


def test_a_schema_that_lists_real_values_marks_what_is_made_with_it() -> None:
    """Without `--trust-domain` the table is not asked; the noisy number of rows tells it, once it is there.

    That of 3,000 rows has a deviation of 6.5; 3,334 would change the mark, fifty deviations from it.
    """
    table = persons(3_000)
    made = Synthesizer(draft_schema(table, trust_domain=True), unit="row", epsilon=9.0).fit(table)
    told = made.certificate(made.sample(5))
    assert told["mark"] == "not for release"
    made._fitted = replace(made.fitted, settings=replace(made.fitted.settings, accept=True))
    assert made.certificate(made.sample(5))["mark"] == "for release"


def test_a_schema_that_lists_what_units_own_marks_what_is_made_with_it() -> None:
    """Persons have ten rows each: their streets are a tenth of the rows, and of the persons nearly all.

    The noisy number of 300 persons has a deviation of 2.7; 334 would change a mark, twelve deviations from it.
    """
    visits = pa.table(
        {
            "who": [f"W{i // 10}" for i in range(3_000)],
            "street": [f"{i // 10} Long Street" for i in range(3_000)],
            "ward": [f"ward {i % 7}" for i in range(3_000)],
        }
    )
    drafted = draft_schema(visits, trust_domain=True)
    for attributes, mark in (
        ({**drafted.attributes, "who": Key(repeats=True)}, "not for release"),
        ({"who": Key(repeats=True), "ward": drafted["ward"]}, "for release"),
        ({"who": drafted["who"], "ward": drafted["ward"]}, "not for release"),
    ):
        made = Synthesizer(Schema(attributes=attributes, unit="who", max_rows=10), epsilon=9.0)
        made.fit(visits.select(list(attributes)))
        assert made.certificate(made.sample(5))["mark"] == mark


def test_init_lists_no_values_of_one_person(tmp_path: Path) -> None:
    write_table(persons(), tmp_path / "t.parquet")
    drafted = kamino("init", "t.parquet", "--trust-domain", "-o", "s.yaml", cwd=tmp_path)
    assert drafted.returncode == 0, drafted.stderr
    schema = Schema.from_yaml((tmp_path / "s.yaml").read_text())
    assert schema.missing_domains == OWN
    assert "name: nearly all of its values occur once, so they are not listed." in drafted.stderr
    assert "Long Street" not in (tmp_path / "s.yaml").read_text() + drafted.stderr
    kamino("init", "t.parquet", "--trust-domain", "--accept", "-o", "a.yaml", cwd=tmp_path)
    assert Schema.from_yaml((tmp_path / "a.yaml").read_text()) == draft_schema(persons(), trust_domain=True)
    # The draft leaves them to be found, or the run asks.
    asked = ("synth", "t.parquet", "-s", "s.yaml", "-o", "o.csv", "--unit", "row", "--dry-run")
    assert kamino(*asked, cwd=tmp_path).returncode == 0
    assert SAID in kamino(*asked, "--trust-domain", cwd=tmp_path).stderr
