"""The report without the private table."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from tests.evaluate.report_tables import HOSTILE

from kamino.constraints import Constraints
from kamino.errors import InputError
from kamino.evaluate.report.document import PUBLIC
from kamino.evaluate.report.page import render_page
from kamino.evaluate.report.public import public_report
from kamino.model import Cells, CodeMap, MarginalModel, ModelAttribute
from kamino.model.marginal.nodes import Node
from kamino.schema import Categorical, Codec, Date, Integer, Key, Schema

SCHEMA = Schema(
    attributes={
        "id": Key(),
        "kind": Categorical(values=("a", HOSTILE)),
        "n": Integer(min=0, max=99, nullable=True),
        "day": Date(min=date(2024, 1, 1), max=date(2024, 1, 4)),
    }
)


def node(name: str, size: int, bins: int, table: list[list[float]], parents: tuple[str, ...] = ()) -> Node:
    """A node whose bins are equal runs of codes."""
    starts = np.arange(bins, dtype=np.int64) * (size // bins)
    cells = Cells(
        map=CodeMap(size=size, bins=bins, starts=starts, labels=np.arange(bins)),
        width=np.diff(starts, append=size),
        share=np.ones(bins),
    )
    return Node(attribute=ModelAttribute(name=name, size=size), cells=cells, parents=parents, table=np.array(table))


@pytest.fixture
def model() -> MarginalModel:
    """`kind` is a fair coin; `n` is below 50 for a and above for the other, never null; `day` is uniform."""
    numbers = replace(node("n", 101, 2, [[1.0, 0.0], [0.0, 1.0]], ("kind",)))
    return MarginalModel(
        nodes=(node("kind", 2, 2, [[0.5, 0.5]]), numbers, node("day", 4, 4, [[0.25] * 4])), num_rows=1000.4
    )


def synthetic(kinds: list[str], numbers: list[int]) -> pa.Table:
    rows = len(kinds)
    days = [date(2024, 1, 1 + i % 4) for i in range(rows)]
    return pa.table({"id": list(range(rows)), "kind": kinds, "n": numbers, "day": days})


def test_a_table_as_the_model_says_is_at_no_distance(model: MarginalModel) -> None:
    table = synthetic(["a"] * 4 + [HOSTILE] * 4, [0, 10, 20, 30, 60, 70, 80, 90])
    report = public_report(model, Codec(SCHEMA), table, Constraints.parse("check (n >= 0)"), mark=PUBLIC)
    assert (report["internal"], report["mark"]) == (False, PUBLIC)
    assert report["rows"] == {"measured": 1000, "synthetic": 8}
    assert [m["mean"] for m in report["marginals"]] == pytest.approx([0, 0])
    assert report["correlations"]["true"][0][1] == pytest.approx(1)
    assert report["correlations"]["synthetic"][0][1] == pytest.approx(1)
    assert report["constraints"][0]["true"] is None
    assert report["constraints"][0]["synthetic"]["violations"] == 0
    assert report["verdict"]["statement"] == "faithful to what was released"
    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_what_the_model_does_not_say_is_seen(model: MarginalModel) -> None:
    table = synthetic(["a"] * 4 + [HOSTILE] * 4, [60, 70, 80, 90, 0, 10, 20, 150])
    report = public_report(model, Codec(SCHEMA), table, mark=PUBLIC)
    two = {m["order"]: m for m in report["marginals"]}[2]
    assert two["worst"] == ["kind", "n"]
    # 7 of 8 rows are in cells that the model calls impossible
    assert two["max"] == pytest.approx(7 / 8)
    assert report["columns"][1]["outside"] == 1
    assert report["verdict"]["statement"] == "not faithful to what was released"


def test_histograms_of_the_model(model: MarginalModel) -> None:
    report = public_report(model, Codec(SCHEMA), synthetic(["a", HOSTILE], [0, 99]), mark=PUBLIC)
    kind, number, day = (column["histogram"] for column in report["columns"])
    assert [(bar["label"], bar["true"]) for bar in kind["scale"]] == [("a", 0.5), (HOSTILE, 0.5)]
    assert [bar["label"] for bar in day["scale"]] == ["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"]
    assert number["scale"][0]["label"] == "0 to 3"
    # half of the rows are spread over 50 codes, four of which are in the first bar
    assert number["scale"][0]["true"] == pytest.approx(0.5 * 4 / 50)
    assert number["rest"][0]["label"] == "null"
    for histogram in (kind, number, day):
        bars = histogram["scale"] + histogram["rest"]
        assert [sum(bar[side] for bar in bars) for side in ("true", "synthetic")] == pytest.approx([1, 1])


def test_keys_are_identifiers_by_schema_and_constraint_alone(model: MarginalModel) -> None:
    # every n is its own, and only a constraint makes it a key
    table = synthetic(["a"] * 4 + [HOSTILE] * 4, [0, 10, 20, 30, 60, 70, 80, 150])
    plain = public_report(model, Codec(SCHEMA), table, mark=PUBLIC)
    assert [row["name"] for row in plain["identifiers"]] == ["id"]
    assert [column["name"] for column in plain["columns"]] == ["kind", "n", "day"]
    keyed = public_report(model, Codec(SCHEMA), table, Constraints.parse("key (n)"), mark=PUBLIC)
    assert [(row["name"], row["why"]) for row in keyed["identifiers"]] == [("id", "a key"), ("n", "a key")]
    assert [column["name"] for column in keyed["columns"]] == keyed["pairs"]["names"] == ["kind", "day"]
    assert keyed["identifiers"][1]["synthetic"] == {"nulls": 0, "null_share": 0.0, "distinct": 8}
    assert keyed["verdict"]["statement"] == "faithful to what was released"
    rules = Constraints.parse("key (n)\nkey (kind)\nkey (day)")
    assert [row["name"] for row in public_report(model, Codec(SCHEMA), table, rules, mark=PUBLIC)["identifiers"]] == [
        "id"
    ]


def test_columns_that_the_synthetic_table_lacks_are_named(model: MarginalModel) -> None:
    table = synthetic(["a", HOSTILE], [0, 99])
    with pytest.raises(InputError, match="lacks the columns n and has others: id, m; expected those of the model"):
        public_report(model, Codec(SCHEMA), table.rename_columns(["id", "kind", "m", "day"]), mark=PUBLIC)
    without = public_report(
        model, Codec(SCHEMA), table.drop_columns(["id"]), Constraints.parse("key (id)\ncheck (n >= 0)"), mark=PUBLIC
    )
    assert without["constraints"][0]["not_counted"] == "id is not in the synthetic table"
    assert without["constraints"][1]["synthetic"]["violations"] == 0


@pytest.mark.parametrize("rows", [0, 1])
def test_public_report_of_hardly_any_rows(model: MarginalModel, rows: int) -> None:
    report = public_report(
        model,
        Codec(SCHEMA),
        synthetic(["a", HOSTILE], [0, 99]).slice(0, rows),
        Constraints.parse("key (n)"),
        mark=PUBLIC,
    )
    report["sources"] = {"true": None, "synthetic": "s.csv"}
    json.dumps(report, allow_nan=False)
    assert "synthetic rows" in render_page(report)


def test_page_of_a_public_report_says_so(model: MarginalModel) -> None:
    report = public_report(model, Codec(SCHEMA), synthetic(["a", HOSTILE], [0, 99]), mark=PUBLIC)
    report["sources"] = {"true": None, "synthetic": "s.csv"}
    page = render_page(report)
    assert "No private table was read" in page
    assert "the private table has about" in page
    assert 'data-key="rows.measured"' in page
    assert "Left out as identifiers: id (a key)" in page
    assert "computed from the private table" not in page
    assert HOSTILE not in page


def test_the_public_page_does_not_praise(model: MarginalModel) -> None:
    table = synthetic(["a"] * 4 + [HOSTILE] * 4, [0, 10, 20, 30, 60, 70, 80, 90])
    entry = {"kind": "counts", "attributes": ["n"], "sigma": 12.0, "shape": [101]}
    report = public_report(model, Codec(SCHEMA), table, ledger={"entries": [entry]}, mark=PUBLIC)
    assert "level" not in report["verdict"]
    noisy = {column["name"]: column.get("noise") for column in report["columns"]}
    assert noisy["kind"] is None
    assert noisy["n"]["sigma"] == 12.0
    bars = report["columns"][1]["histogram"]["scale"]
    assert [bar["error"] for bar in bars] == pytest.approx(
        [1.96 * 12 * (101 / len(bars)) ** 0.5 / model.num_rows] * len(bars)
    )
