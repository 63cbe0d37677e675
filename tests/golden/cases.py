"""Small runs of every kind, each with a seed, and what of them must stay byte for byte the same."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.pipeline import Synthesizer
from kamino.pipeline.output import in_blocks
from kamino.schema import Boolean, Categorical, Date, Datetime, Integer, Key, Real, Schema

# What a run lets out, by the name of the part.
Outputs = Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A run on a made-up table: what it is given, how many rows are drawn, and how the table comes."""

    table: Callable[[], pa.Table]
    schema: Schema | None = None
    rules: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 150
    given: Mapping[str, Any] | None = None
    kind: str = "table"
    blocks: int | None = None


def outputs_of(case: Case, folder: Path) -> Outputs:
    """Run a case, and return everything that leaves it: plan, ledger, model, table and certificate."""
    with (
        patch.object(in_blocks, "BLOCK_ROWS", case.blocks or in_blocks.BLOCK_ROWS),
        patch.object(in_blocks, "WHOLE_BLOCKS", 1 if case.blocks else in_blocks.WHOLE_BLOCKS),
    ):
        return _run(case, _source(case, folder), folder)


def _run(case: Case, source: object, folder: Path) -> Outputs:
    asked = Synthesizer(case.schema, case.rules, **{"seed": 11, **case.settings})
    plan = asked.dry_run(source, num_rows=case.rows)
    made = asked.fit(source, num_rows=case.rows)
    made.save(folder / "model.kamino")
    written = made.write(folder / "out.csv", case.rows, given=case.given, seed=5)
    again = Synthesizer.load(folder / "model.kamino").write(folder / "again.csv", case.rows, given=case.given, seed=5)
    bundle = made.fitted.to_bundle()
    arrays = b"".join(bundle.arrays[name].tobytes() for name in sorted(bundle.arrays))
    return {
        "plan": _plain(plan.to_json()),
        "ledger": _plain(made.ledger),
        "model": bundle.texts["model.json"].encode() + arrays,
        "table": written.path.read_bytes(),
        "table of the saved model": again.path.read_bytes(),
        "certificate": _plain({**written.certificate, "version": None}),
    }


def _source(case: Case, folder: Path) -> object:
    table = case.table()
    if case.kind == "csv":
        pa.csv.write_csv(table, folder / "in.csv")
        return folder / "in.csv"
    if case.kind == "parquet":
        pa.parquet.write_table(table, folder / "in.parquet", row_group_size=100)
        return folder / "in.parquet"
    if case.kind == "duckdb":
        return _in_duckdb(table, folder / "in.duckdb")
    return table.to_pandas() if case.kind == "pandas" else table


def _in_duckdb(table: pa.Table, path: Path) -> str:
    """A table with a primary key, an enumeration and checks in a database."""
    import duckdb

    with duckdb.connect(str(path)) as connection:
        connection.register("given", table)
        connection.execute("CREATE TYPE kind AS ENUM ('x', 'y', 'z')")
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, b kind, a INTEGER CHECK (a BETWEEN 0 AND 5), "
            "f INTEGER CHECK (f BETWEEN 0 AND 899))"
        )
        connection.execute("INSERT INTO t SELECT row_number() OVER (), b, a, f FROM given")
    return f"duckdb:///{path}#t"


def _plain(document: object) -> bytes:
    return json.dumps(document, indent=1, sort_keys=True, default=str).encode()


ATTRIBUTES = {
    "id": Key(dtype="int64"),
    "a": Integer(min=0, max=5, nullable=True),
    "b": Categorical(values=["x", "y", "z"]),
    "w": Integer(min=0, max=99),
    "f": Integer(min=0, max=899),
    "r": Real(min=0, max=9, decimals=1, nullable=True),
    "t": Boolean(),
    "d": Date(min=dt.date(2020, 1, 1), max=dt.date(2021, 1, 1)),
    "e": Date(min=dt.date(2020, 1, 1), max=dt.date(2021, 1, 1), nullable=True),
    "g": Datetime(min=dt.datetime(2020, 1, 1), max=dt.datetime(2021, 1, 1), nullable=True),
}


def mixed(rows: int = 500) -> pa.Table:
    """Columns of all types, with nulls, ties and maps between some of them."""
    rng = np.random.default_rng(3)
    wide = rng.integers(0, 100, rows)
    start = np.datetime64("2020-01-01") + rng.integers(0, 300, rows)
    return pa.table(
        {
            "id": np.arange(rows),
            "a": pa.array(wide // 17, mask=rng.random(rows) < 0.1),
            "b": np.array(["x", "y", "z"])[(wide // 17) % 3],
            "w": wide,
            "f": np.minimum(rng.gamma(2, 100, rows).astype(int), 899),
            "r": np.round(rng.random(rows) * 9, 1),
            "t": rng.random(rows) < 0.3,
            "d": start,
            "e": pa.array(start + rng.integers(0, 9, rows), mask=rng.random(rows) < 0.1),
            "g": start.astype("datetime64[us]") + rng.integers(0, 86_400_000_000, rows),
        }
    )


def visits(people: int = 120) -> pa.Table:
    """Persons with some visits each."""
    rng = np.random.default_rng(7)
    sizes = np.minimum(1 + rng.geometric(0.3, people), 6)
    who = np.repeat(np.arange(people), sizes)
    return pa.table(
        {
            "person": [f"P{each:04d}" for each in who],
            "clinic": who // 9,
            "sex": np.array(["F", "M"])[(who * 7 % 13) % 2],
            "visit": np.concatenate([np.arange(1, size + 1) for size in sizes]),
            "cost": rng.integers(0, 500, len(who)),
        }
    )


def texts_of_dates() -> pa.Table:
    """Dates as people write them, some of which cannot be read."""
    rng = np.random.default_rng(8)
    days = [f"{day:02d}.{month:02d}.2024" for day, month in rng.integers(1, 13, (300, 2)).tolist()]
    return pa.table({"day": ["unknown", None, "31.02.2024", *days], "age": rng.integers(0, 99, 303)})


def _with_total() -> pa.Table:
    table = mixed().select(["w", "r", "b"])
    return table.append_column("total", pa.array([0.0] * table.num_rows))


def _some(*names: str) -> Schema:
    return Schema(attributes={name: ATTRIBUTES[name] for name in names})


def _of(*names: str) -> Callable[[], pa.Table]:
    return lambda: mixed().select(list(names))


_VISITS = Schema(
    attributes={
        "person": Key(repeats=True, pattern="P{:04d}"),
        "clinic": Key(repeats=True, dtype="int64"),
        "sex": Categorical(values=["F", "M"]),
        "visit": Integer(min=1, max=6),
        "cost": Integer(min=0, max=500),
    }
)
_WITHOUT_DOMAINS = Schema(attributes={"b": Categorical(), "w": Integer(), "f": Integer(min=0, max=899), "d": Date()})
_DAYS = Schema(
    attributes={
        "day": Date(format="%d.%m.%Y", min=dt.date(2024, 1, 1), max=dt.date(2024, 12, 31), nullable=True),
        "age": Integer(min=0, max=99),
    }
)

CASES: Mapping[str, Case] = {
    "all types, no rule": Case(table=mixed, schema=Schema(attributes=ATTRIBUTES)),
    "checks": Case(
        table=_of("a", "b", "f", "r"),
        schema=_some("a", "b", "f", "r"),
        rules="check (f <= 700 or b = 'x')\ncheck (a <= 4)",
    ),
    "dependencies": Case(table=_of("w", "a", "b"), schema=_some("w", "a", "b"), rules="w -> a\nw -> b\na -> b"),
    "a key": Case(table=_of("id", "w", "f"), schema=_some("id", "w", "f"), rules="key (id)\nkey (w, f)", rows=90),
    "an order": Case(table=_of("b", "f", "r"), schema=_some("b", "f", "r"), rules="not (t1.f > t2.f and t1.r < t2.r)"),
    "soft rules": Case(
        table=_of("b", "w", "f"),
        schema=_some("b", "w", "f"),
        rules="soft: b -> f\nsoft: check (f > 10)\nweight 2: not (t1.w > t2.w and t1.f < t2.f and t1.b = t2.b)",
        rows=80,
    ),
    "close dates": Case(
        table=_of("d", "e", "g", "b"), schema=_some("d", "e", "g", "b"), rules="check (d <= e)\nb -> b"
    ),
    "a condition on close dates": Case(
        table=_of("d", "e", "g", "b"),
        schema=_some("d", "e", "g", "b"),
        rules="check (d <= e)",
        given={"e": (dt.date(2020, 3, 1), dt.date(2020, 6, 1)), "b": ["x", "y"]},
    ),
    "ids of groups": Case(
        table=visits,
        schema=_VISITS,
        rules="person -> sex\nperson -> clinic\nkey (person, visit)",
        settings={"unit": "person", "max_rows": 6, "epsilon": 4.0},
    ),
    "a unit that is drawn": Case(
        table=visits, rules="person -> sex", settings={"unit": "person", "max_rows": 3, "trust_domain": True}
    ),
    "domains found": Case(
        table=_of("b", "w", "f", "d"),
        schema=_WITHOUT_DOMAINS,
        rules="w -> b",
        settings={"epsilon": 6.0, "anyway": True},
    ),
    "types found": Case(
        table=_of("b", "w", "f", "d"), kind="csv", settings={"epsilon": 8.0, "anyway": True}, rules="w -> b"
    ),
    "dates as texts": Case(table=texts_of_dates, schema=_DAYS),
    "a row replaced": Case(table=_of("b", "w", "f"), schema=_some("b", "w", "f"), settings={"neighbours": "replace"}),
    "tax": Case(table=lambda: tax(700), rules=TAX_CONSTRAINTS, settings={"trust_domain": True, "epsilon": 2.0}),
    "tax given": Case(
        table=lambda: tax(700),
        rules=TAX_CONSTRAINTS,
        settings={"trust_domain": True, "epsilon": 2.0},
        given={"state": ["CA", "NY"], "salary": (20_000, None)},
        rows=40,
    ),
    "streamed": Case(
        table=_of("a", "b", "w", "f"),
        schema=_some("a", "b", "w", "f"),
        rules="w -> b",
        kind="parquet",
        settings={"engine": "streamed"},
    ),
    "in blocks": Case(
        table=lambda: tax(700),
        rules=TAX_CONSTRAINTS,
        settings={"trust_domain": True, "epsilon": 4.0},
        rows=900,
        blocks=300,
    ),
    "a database": Case(table=_of("b", "a", "f"), kind="duckdb"),
    "a data frame": Case(table=_of("a", "b", "w"), kind="pandas", settings={"trust_domain": True}),
    "by chance, row by row": Case(
        table=_of("b", "w", "a"),
        schema=_some("b", "w", "a"),
        rules="w -> a",
        settings={"sequence": "random", "sampling": "row-by-row"},
        rows=60,
    ),
    "a computed column": Case(
        table=_with_total,
        schema=_some("w", "r", "b"),
        rules="total := w * r\nw -> b",
        settings={"epsilon": 2.0},
    ),
    "not private": Case(table=_of("a", "b", "w"), schema=_some("a", "b", "w"), settings={"epsilon": float("inf")}),
    "neural": Case(
        table=_of("b", "w", "a"),
        schema=_some("b", "w", "a"),
        rules="w -> b\nsoft: w -> a",
        settings={"backend": "neural"},
        rows=60,
    ),
}
