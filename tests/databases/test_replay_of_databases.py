"""A whole run on a database, replayed: nothing of a family leaves but through the gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.databases import shop

import kamino.engine.families as families
from kamino.databases.drawing import Drawer
from kamino.databases.family_layout import lay_out
from kamino.databases.fitting_levels import check_private, fit_database
from kamino.databases.making import make_tables
from kamino.databases.rule_lines import parse_rules
from kamino.privacy import Budget, Gate, Neighbours, PrivacyUnit
from kamino.privacy.private import PrivateTable
from kamino.schema.files.database_file import read_database
from kamino.testing.replay import assert_replay, replay

UNIT = PrivacyUnit(family="patients", max_rows=4)


def run(tables: Mapping[str, pa.Table], gate: Gate, schema: str = shop.SCHEMA, rules: str = shop.RULES) -> object:
    """Fit and draw a database; what comes of it."""
    database = read_database(schema)
    layout = lay_out(database, parse_rules(rules, database), {"wards": tables["wards"]})
    private = {name: PrivateTable(tables[name]) for name in database.private}
    for name, table in private.items():
        check_private(name, database[name].known, table)
    fitted = fit_database(private, layout, gate)
    drawn = Drawer(fitted=fitted, rng=np.random.default_rng(1)).draw(20)
    return make_tables(fitted, drawn), gate.ledger.to_dict()


def moved(tables: shop.Tables) -> shop.Tables:
    """The tables with a visit of one patient given to another: two families are others."""
    visits = tables["visits"]
    owners = visits["patient"].to_pylist()
    owners[0] = next(each for each in owners if each != owners[0])
    place = visits.column_names.index("patient")
    return {**tables, "visits": visits.set_column(place, "patient", pa.array(owners))}


def with_orphans(tables: shop.Tables) -> shop.Tables:
    """The tables with visits and doses that hang on nobody."""
    visit = {"visit": "lost", "patient": 5, "number": 1, "day": None, "ward": None, "kind": "plan", "cost": 0.0}
    visits = pa.concat_tables([tables["visits"], pa.Table.from_pylist([visit] * 3, schema=tables["visits"].schema)])
    return {**tables, "visits": visits}


NEIGHBOURS: dict[str, Callable[[shop.Tables], shop.Tables]] = {
    "a family less": lambda found: shop.without_family(found, 3),
    "a family without children": lambda found: shop.with_family(found, children=0),
    "a family of many": lambda found: shop.with_family(found, children=60),
    "a family whose key is null": lambda found: {
        **found,
        "patients": pa.concat_tables(
            [found["patients"], pa.Table.from_pylist([{"id": None, "visits": 3}], schema=found["patients"].schema)]
        ),
    },
    "a key twice": lambda found: shop.with_family(found, children=0, key=1003),
    "orphans": with_orphans,
}


QUICK = ("a family less", "a family of many")
EACH = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NEIGHBOURS]


@pytest.mark.parametrize("name", EACH)
def test_replay_passes_for_databases(name: str) -> None:
    found = shop.tables(60)
    assert_replay(run, found, NEIGHBOURS[name](found), unit=UNIT)


@pytest.mark.slow
def test_replay_passes_for_a_family_in_the_place_of_another() -> None:
    found = shop.tables(60)
    other = shop.with_family(shop.without_family(found, 5), children=3)
    assert_replay(run, found, other, budget=Budget(epsilon=1.0, delta=1e-6, neighbours=Neighbours.REPLACE), unit=UNIT)


def test_children_that_move_are_two_families() -> None:
    """Given the releases, nothing else follows which family a row hangs on."""
    from kamino.testing.replay import record

    found = shop.tables(60)
    recorded = record(run, found, unit=UNIT)
    assert recorded.play(moved(found), neighbour=False).problems == ()
    empty = {name: table if name == "wards" else table.slice(0, 0) for name, table in found.items()}
    assert recorded.play(empty, neighbour=False).problems == ()
    assert recorded.play(shop.tables(9, seed=8), neighbour=False).problems == ()


OPEN = shop.SCHEMA.replace("amount: {type: real, decimals: 2, min: 0, max: 10}", "amount: {type: real, decimals: 2}")
OPEN = OPEN.replace("kind: {type: categorical, values: [plan, rush, call]}", "kind: {type: categorical}")
OPEN_RULES = "each patients has 0..6 visits\neach visits has 0..4 doses\nsum(doses.amount) = visits.cost\n"


@pytest.mark.parametrize("name", [pytest.param("a family less", marks=pytest.mark.slow), "a family of many"])
def test_replay_passes_where_domains_are_found(name: str) -> None:
    """Numbers of notes are found, too: the largest one is no domain."""
    found = shop.tables(80)

    def found_run(tables: Mapping[str, pa.Table], gate: Gate) -> object:
        return run(tables, gate, OPEN, OPEN_RULES)

    assert_replay(found_run, found, NEIGHBOURS[name](found), unit=UNIT)


def _cut_by_others(self: Any, column: Any) -> Any:
    counts = _counts(self, column)
    return np.minimum(counts, counts.sum() % 3)


_counts = families.Families._counts
_choose = families.Families._choose


def _by_place(self: Any, wanted: Any) -> Any:
    places, second = _choose(self, wanted)
    return {name: np.roll(rows, len(rows) % 7) if name != self._root else rows for name, rows in places.items()}, second


def _every_child(self: Any, wanted: Any) -> Any:
    """As many samples as there are rows in the last table."""
    places, second = _choose(self, wanted)
    times = 1 + self._typed[wanted.path[-1]].num_rows % 3
    return {name: np.tile(rows, times) for name, rows in places.items()}, np.tile(second, times)


LEAKS: dict[str, tuple[type, str, Any]] = {
    "children cut by what others have": (families.Families, "_counts", _cut_by_others),
    "rows chosen by the number of families": (families.Families, "_choose", _by_place),
    "more samples than said": (families.Families, "_choose", _every_child),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LEAKS))
def test_planted_leaks_of_families_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, method, leak = LEAKS[name]
    monkeypatch.setattr(owner, method, leak)
    found = shop.tables(60)
    assert any(replay(run, found, change(found), unit=UNIT).problems for change in list(NEIGHBOURS.values())[:3])


def test_a_largest_number_as_a_domain_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from kamino.databases import fitting_levels
    from kamino.schema import Integer

    def peeking(held: families.Families, *args: Any) -> Any:
        found = dict(args[2])
        name = "patients.#notes"
        most = int(families.Families._counts(held, families.CountOf(table="patients", child="visits")).max())
        return found | {name: Integer(min=0, max=most)}

    monkeypatch.setattr(fitting_levels, "_found", peeking)
    found = shop.tables(60)
    assert replay(run, found, shop.with_family(found, children=60), unit=UNIT).problems


def test_the_budget_of_a_database_is_spent_once() -> None:
    gate = Gate(Budget(epsilon=1.0, delta=1e-6), unit=UNIT)
    run(shop.tables(60), gate)
    # What likeness of siblings does not need is left.
    assert 0.9 <= gate.ledger.spent() <= 1.0
    assert gate.ledger.to_dict()["unit"]["text"] == "one row of 'patients' with all rows that hang on it"
