"""Columns that are computed: exact in what is written, never read, and told wherever tables are."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.contracts.recodings import RecodingCase, RecodingLaws, random_table

from kamino.constraints import Constraints
from kamino.engine.recoded import RecodedParts, recode
from kamino.errors import InputError, KaminoError
from kamino.io import read_table
from kamino.layout.derived_columns import DerivedColumns
from kamino.layout.table_layout import outer_steps
from kamino.pipeline import Synthesizer, fitting, verify
from kamino.pipeline.output.drawn_table import draw
from kamino.privacy import Gate, Neighbours
from kamino.privacy.private import PrivateTable, TableParts, open_table  # noqa: TID251
from kamino.schema import Categorical, Date, Integer, Real, Schema

LINES = "total := price * quantity\nwith_tax := round(total * 1.19, 2)\nname := first || '-' || last"
INNER = {
    "price": Real(min=0, max=99, decimals=2, nullable=True),
    "quantity": Integer(min=0, max=20),
    "first": Categorical(values=["Ada", "Max"]),
    "last": Categorical(values=["Lee", "Kay"], nullable=True),
}
ORDER = ("total", "price", "name", "quantity", "first", "last", "with_tax")
INNER_SCHEMA = Schema(attributes=INNER)
# What computed columns are declared as, where a schema names them: their domains say nothing.
SCHEMA = Schema(
    attributes={
        "total": Real(min=0, max=1_980, decimals=2, nullable=True),
        "price": INNER["price"],
        "name": Categorical(values=["?"], nullable=True),
        "quantity": INNER["quantity"],
        "first": INNER["first"],
        "last": INNER["last"],
        "with_tax": Real(min=0, max=2_400, decimals=2, nullable=True),
    }
)


def step_of(lines: str, schema: Schema = SCHEMA) -> DerivedColumns:
    (step,) = outer_steps(Constraints.parse(lines), schema_columns(schema))
    assert isinstance(step, DerivedColumns)
    return step.bound(schema)


def schema_columns(schema: Schema) -> pa.Schema:
    return random_table(schema, 0).schema


class _Computed(RecodingCase):
    """Rows whose computed columns are what they are computed as."""

    def table(self, seed: int) -> pa.Table:
        inner = random_table(self.recoding.schema(self.schema), seed)
        return self.recoding.backward(inner, np.random.default_rng(seed))


class TestDerivedColumns(RecodingLaws):
    cases = (
        _Computed(
            schema=SCHEMA,
            recoding=step_of(LINES),
            kept="check (total = price * quantity)\ncheck (with_tax = round(total * 1.19, 2))",
            drawn="check (price > 1)\nfirst -> last",
        ),
    )


def orders(rows: int = 400, kind: Any = None) -> pa.Table:
    """Prices, quantities and what they come to, with nulls; prices as doubles or as decimals."""
    rng = np.random.default_rng(3)
    cents, quantity = rng.integers(1, 9_900, rows), rng.integers(0, 20, rows)
    price = [None if cent % 10 == 0 else Decimal(int(cent)).scaleb(-2) for cent in cents]
    total = [None if p is None else p * int(q) for p, q in zip(price, quantity, strict=True)]
    kind = pa.decimal128(12, 2) if kind is None else kind
    exact = [pa.array(each, pa.decimal128(12, 2)) for each in (total, price)]
    made = [each.cast(pa.string()).cast(kind) if pa.types.is_floating(kind) else each.cast(kind) for each in exact]
    return pa.table({"total": made[0], "price": made[1], "quantity": quantity})


FIRST = Schema(attributes={"price": INNER["price"], "quantity": INNER["quantity"]})


@pytest.mark.parametrize("rule", ["total := price * quantity", "check (price * quantity = total)"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.decimal128(12, 2)], ids=["doubles", "decimals"])
def test_derived_columns_are_right_in_what_is_written(rule: str, ending: str, kind: Any, tmp_path: Path) -> None:
    schema = Schema(attributes={"price": Real(min=0, max=99, decimals=2, nullable=True), "quantity": INNER["quantity"]})
    made = Synthesizer(schema, rule, epsilon=4.0, seed=2).fit(orders(kind=kind))
    made.save(tmp_path / "model.kamino")
    for number, each in enumerate((made, Synthesizer.load(tmp_path / "model.kamino"))):
        written = each.write(tmp_path / f"{number}.{ending}", 300, seed=5)
        table = read_table(written.path)
        assert table.column_names == ["total", "price", "quantity"]
        for row in table.to_pylist():
            price = None if row["price"] is None else Decimal(str(row["price"]))
            total = None if row["total"] is None else Decimal(str(row["total"]))
            assert total == (None if price is None else price * row["quantity"])
        assert written.violations["check (total = price * quantity)"] == 0
        found = verify(written.path, constraints=_rules(tmp_path, rule))
        assert found.holds, found.failed
    again = Synthesizer.load(tmp_path / "model.kamino").fit(orders(kind=kind)).sample(20)
    assert again.column_names == ["total", "price", "quantity"]
    assert "total" not in str(made.ledger["entries"])
    assert pa.types.is_floating(made.sample(3).schema.field("total").type) == pa.types.is_floating(kind)


def _rules(folder: Path, text: str) -> Path:
    path = folder / "rules.dc"
    path.write_text(text)
    return path


def test_columns_that_are_computed_are_not_read(tmp_path: Path) -> None:
    """Whatever stands in the column, everything that leaves the run is the same, and a source in parts is not asked."""
    other = orders().set_column(0, "total", pa.array([Decimal("1.00")] * 400, pa.decimal128(12, 2)))
    one, two = (
        Synthesizer(FIRST, "total := price * quantity", seed=1).fit(each).fitted.to_bundle()
        for each in (orders(), other)
    )
    assert dict(one.texts) == dict(two.texts)
    asked: list[tuple[str, ...]] = []

    class Asked:
        schema, is_ordered = orders().schema, True

        def parts(self, names: Any = None) -> Any:
            asked.append(tuple(names))
            yield orders().select(list(names))

    assert isinstance(Asked(), TableParts)
    steps = outer_steps(Constraints.parse("total := price * quantity"), orders().schema)
    list(RecodedParts(Asked(), steps).parts())
    list(RecodedParts(Asked(), steps).parts(["quantity"]))
    assert asked == [("price", "quantity"), ("quantity",)]


@pytest.mark.parametrize("schema", [FIRST, None], ids=["declared", "found"])
def test_replay_passes_for_computed_columns(replays: Any, schema: Schema | None) -> None:
    """A whole job, from opening the table on: the computed column of a neighbour may hold anything."""

    def run(table: pa.Table, gate: Gate) -> Any:
        asked = {"epsilon": gate.budget.epsilon, "neighbours": gate.budget.neighbours, "anyway": True}
        rule = "total := price * quantity"
        job = Synthesizer(schema, rule, **asked).job(table)
        with pytest.MonkeyPatch.context() as patching:
            patching.setattr(fitting, "open_gate", lambda settings: gate)
            fitted = job.fit()
        bundle = fitted.to_bundle()
        drawn = draw(fitted, 30, np.random.default_rng(7))
        return drawn, dict(bundle.texts), dict(bundle.arrays), [event.to_json() for event in job.events()]

    other = orders(120).set_column(0, "total", pa.array([Decimal("7.00")] * 120, pa.decimal128(12, 2)))
    few = {"empty", "one value", "odd cells"}
    relations = (Neighbours.ADD_REMOVE,)
    replays(run, orders(120), extra=(other,), others=few, relations=relations, epsilon=4.0)


def test_recoded_parts_are_the_recoded_table(tmp_path: Path) -> None:
    class InParts:
        schema, is_ordered = orders().schema, True

        def parts(self, names: Any = None) -> Any:
            table = orders() if names is None else orders().select(list(names))
            yield from (table.slice(0, 130), table.slice(130))

    steps = outer_steps(Constraints.parse("total := price * quantity"), orders().schema)
    whole, parts = (recode(PrivateTable(each), steps) for each in (orders(), InParts()))
    assert parts.is_streamed
    assert open_table(whole).equals(open_table(parts))
    assert whole.names == ("price", "quantity")


def test_a_streamed_run_computes_the_same(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(orders(), tmp_path / "in.parquet", row_group_size=90)
    rule = "total := price * quantity"
    written = [
        Synthesizer(FIRST, rule, seed=1, engine=engine)
        .fit(tmp_path / "in.parquet")
        .write(tmp_path / f"{engine}.csv", 50, seed=1)
        for engine in ("memory", "streamed")
    ]
    assert written[0].path.read_bytes() == written[1].path.read_bytes()


def test_types_and_domains_are_found_for_the_others(tmp_path: Path) -> None:
    table = orders(800)
    pa.csv.write_csv(table, tmp_path / "in.csv")
    rule = "total := price * quantity"
    made = Synthesizer(constraints=rule, epsilon=20.0, seed=1, anyway=True, accept=True).fit(tmp_path / "in.csv")
    written = made.write(tmp_path / "out.csv", 40, seed=1)
    assert set(written.violations.values()) == {0}
    assert written.path.read_text().splitlines()[0] == "total,price,quantity"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("total := price / quantity", "round it"),
        ("total := price * quantity\ncheck (total > 5)", "names 'total', which is computed: total := price"),
        ("total := price * quantity\ntotal -> quantity", "names 'total', which is computed"),
        ("nothing := price * quantity", "found no column 'nothing' to compute"),
        ("total := price * nothing", "nothing"),
        ("total := first || last", "first"),
        ("total := price * quantity\nprice := total / 2", "circle"),
        ("total := " + " * ".join(["price"] * 20), "may have"),
    ],
)
def test_what_cannot_be_computed_is_refused_before_spending(rules: str, message: str) -> None:
    with pytest.raises(KaminoError, match=message) as refused:
        Synthesizer(FIRST, rules, seed=1).fit(orders())
    assert not any("releases were made" in note for note in getattr(refused.value, "__notes__", []))


def test_conditions_are_on_what_is_computed_from() -> None:
    made = Synthesizer(FIRST, "total := price * quantity", seed=1).fit(orders())
    with pytest.raises(InputError, match="which is computed: total := price \\* quantity; expected one on 'price' or"):
        made.sample(3, given={"total": 5})
    rows = made.sample(20, given={"quantity": (3, 4)})
    assert all(row["total"] == row["price"] * row["quantity"] for row in rows.to_pylist() if row["price"] is not None)


def test_a_check_that_is_not_alone_stays_a_check() -> None:
    """Where something else is said of the column, a check does not say how it is computed."""
    rules = Constraints.parse("check (total = price * quantity)\ncheck (total < 100)")
    assert outer_steps(rules, orders().schema) == ()
    alone = Constraints.parse("check (total = price * quantity)")
    assert [each.kind for each in outer_steps(alone, orders().schema)] == ["derived"]
    # One whose domain is declared is drawn within it.
    assert outer_steps(alone, orders().schema, ["total"]) == ()


@pytest.mark.parametrize(
    ("lines", "kinds"),
    [
        ("a := d2 - d1\nb := year(d1)", [pa.int64(), pa.int64()]),
        ("a := n * n * n\nb := choose(n > 3, n, 0)", [pa.int64(), pa.int64()]),
        ("a := round(n / 3, 4)\nb := n * 0.5", [pa.decimal128(38, 4), pa.decimal128(38, 1)]),
    ],
)
def test_types_are_the_same_for_all_rows(lines: str, kinds: list[Any]) -> None:
    day = Date(min="2020-01-01", max="2021-01-01", nullable=True)
    inner = {"n": Integer(min=0, max=2_000_000, nullable=True), "d1": day, "d2": day}
    schema = Schema(attributes={**inner, "a": Categorical(values=["x"]), "b": Categorical(values=["x"])})
    step = step_of(lines.replace("choose(n > 3, n, 0)", "max(n, 3)"), schema)
    for seed in range(3):
        back = step.backward(random_table(step.schema(schema), seed), np.random.default_rng(0))
        assert [back.schema.field(name).type for name in "ab"] == kinds
