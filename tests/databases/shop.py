"""A made-up database of three levels for tests: patients, their visits and notes, doses of visits; wards are public."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from kamino.databases.rule_lines import parse_rules
from kamino.databases.table_rules import DatabaseRules
from kamino.schema.database import Database
from kamino.schema.files.database_file import read_database

SCHEMA = """
tables:
  wards: {role: public, key: ward}
  patients:
    role: root
    key: id
    attributes:
      id: {type: key, dtype: int64}
      born: {type: date, min: 1940-01-01, max: 2019-12-31}
      sex: {type: categorical, values: [f, m], nullable: true}
      visits: {type: integer, min: 0, max: 6}
      urgent: {type: integer, min: 0, max: 6}
  visits:
    role: owned by patients
    key: visit
    foreign_keys:
      - {columns: patient, references: patients}
      - {columns: ward, references: wards}
    attributes:
      visit: {type: key}
      patient: {type: key, dtype: int64}
      number: {type: integer, min: 1, max: 6}
      day: {type: date, min: 1941-01-01, max: 2020-12-31}
      ward: {type: categorical, nullable: true}
      kind: {type: categorical, values: [plan, rush, call]}
      cost: {type: real, decimals: 2}
  doses:
    role: owned by visits
    key: [visit, number]
    foreign_keys: [{columns: visit, references: visits}]
    attributes:
      visit: {type: key}
      number: {type: integer, min: 1, max: 4}
      drug: {type: categorical, values: [a, b, c]}
      amount: {type: real, decimals: 2, min: 0, max: 10}
  notes:
    role: owned by patients
    foreign_keys: [{columns: patient, references: patients}]
    attributes:
      patient: {type: key, dtype: int64}
      tone: {type: categorical, values: [good, bad]}
"""
RULES = """
count(visits) = patients.visits
count(visits where kind = 'rush') = patients.urgent
each visits has 0..4 doses
each patients has 0..3 notes
number (visits.number)
number (doses.number)
check (visits.day >= patients.born)
sum(doses.amount) = visits.cost
not (patients.sex is null and visits.kind = 'call')
check (doses.amount * 2 <= 19 or doses.drug = 'a')
"""
Tables = dict[str, pa.Table]


def database() -> Database:
    return read_database(SCHEMA)


def rules() -> DatabaseRules:
    return parse_rules(RULES, database())


def wards() -> pa.Table:
    return pa.table({"ward": ["north", "south", "east"], "beds": [10, 20, 30]})


def tables(families: int = 150, *, seed: int = 4) -> Tables:
    """True tables that keep the rules."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[dict[str, object]]] = {"patients": [], "visits": [], "doses": [], "notes": []}
    for i in range(families):
        born = np.datetime64("1950-01-01") + int(rng.integers(0, 20_000))
        sex = [None, "f", "m"][int(rng.integers(0, 3))]
        kinds = [
            ["plan", "rush", "call"][int(rng.integers(0, 3 if sex else 2))] for _ in range(int(rng.integers(0, 5)))
        ]
        rows["patients"].append(
            {"id": 1000 + i, "born": born.item(), "sex": sex, "visits": len(kinds), "urgent": kinds.count("rush")}
        )
        for number, kind in enumerate(kinds, start=1):
            visit, day = f"v{i}-{number}", np.datetime64("2012-01-01") + int(rng.integers(0, 3000))
            amounts = np.round(rng.uniform(0, 9, int(rng.integers(0, 4))), 2)
            ward = [None, "north", "south", "east"][int(rng.integers(0, 4))]
            cost = round(float(amounts.sum()), 2)
            rows["visits"].append(
                {
                    "visit": visit,
                    "patient": 1000 + i,
                    "number": number,
                    "day": max(day, born).item(),
                    "ward": ward,
                    "kind": kind,
                    "cost": cost,
                }
            )
            for place, amount in enumerate(amounts, start=1):
                rows["doses"].append(
                    {"visit": visit, "number": place, "drug": "abc"[int(rng.integers(0, 3))], "amount": float(amount)}
                )
        for _ in range(int(rng.integers(0, 3))):
            rows["notes"].append({"patient": 1000 + i, "tone": ["good", "bad"][int(rng.random() < 0.3)]})
    found = {name: pa.Table.from_pylist(each) for name, each in rows.items()}
    return {"wards": wards(), **found}


def without_family(found: Mapping[str, pa.Table], place: int) -> Tables:
    """The tables without one patient and all that hangs on it."""
    patient = found["patients"].column("id")[place].as_py()
    visits = set(found["visits"].filter(pa.compute.equal(found["visits"]["patient"], patient))["visit"].to_pylist())
    return {
        **found,
        "patients": found["patients"].filter(pa.compute.not_equal(found["patients"]["id"], patient)),
        "visits": found["visits"].filter(pa.compute.not_equal(found["visits"]["patient"], patient)),
        "notes": found["notes"].filter(pa.compute.not_equal(found["notes"]["patient"], patient)),
        "doses": found["doses"].filter([v not in visits for v in found["doses"]["visit"].to_pylist()]),
    }


def with_family(found: Mapping[str, pa.Table], *, children: int, key: int = 77) -> Tables:
    """The tables with one patient more, who has so many visits, each with doses."""
    patient = {"id": key, "born": None, "sex": "f", "visits": children, "urgent": 0}
    visits = [
        {
            "visit": f"new{i}",
            "patient": key,
            "number": i + 1,
            "day": None,
            "ward": "nowhere",
            "kind": "plan",
            "cost": 1.0,
        }
        for i in range(children)
    ]
    doses = [{"visit": f"new{i}", "number": 1, "drug": "z", "amount": 1e9} for i in range(children)]
    more = {"patients": [patient], "visits": visits, "doses": doses}
    added = {
        name: pa.concat_tables([found[name], pa.Table.from_pylist(each, schema=found[name].schema)])
        for name, each in more.items()
    }
    return {**found, **added}
