"""The report as a page: structure, escaping, numbers, and nothing from elsewhere."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest
from tests.evaluate.report_tables import HOSTILE, RULES, table

from kamino.evaluate.report.charts import histogram_chart
from kamino.evaluate.report.document import internal_report
from kamino.evaluate.report.page import lookup, render_page, write
from kamino.evaluate.report.statement import statement_of

VOID = {"meta", "link", "br"}
CERTIFICATE = {
    "mark": "for release",
    "privacy": {"epsilon": 1.0, "delta": 1e-6, "neighbours": "add_remove", "unit": "one row", "releases": 85}
    | {"spent_epsilon": {"add_remove": 0.99, "replace": 1.48}},
    "domains": {"declared": ["zip"], "asserted": [], "private": ["city", HOSTILE]},
    "sha256": "0",
}
LEARNING = {
    "train_rows": 140,
    "test_rows": 60,
    "accuracy": {"true": 0.9, "synthetic": 0.89},
    "f1": {"true": 0.8, "synthetic": 0.7},
    "attributes": [
        {"name": HOSTILE, "accuracy": {"true": 0.9, "synthetic": 0.89}, "f1": {"true": 0.8, "synthetic": 0.7}}
    ],
    "models": [
        {"name": "XGBoost", "accuracy": {"true": 0.9, "synthetic": 0.89}, "f1": {"true": 0.8, "synthetic": 0.7}}
    ],
}


class Reader(HTMLParser):
    """Collects elements, texts of keyed elements, and checks that tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.open: list[str] = []
        self.keyed: list[tuple[str, str, str]] = []
        self.report = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attrs}
        self.elements.append((tag, found))
        if tag not in VOID:
            self.open.append(tag)
        if "data-key" in found:
            self.keyed.append((found["data-key"], found["value" if tag == "data" else "data-value"], ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "data":
            key, value, text = self.keyed[-1]
            self.keyed[-1] = (key, value, text + data)
        if self.open and self.open[-1] == "script":
            self.report += data


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    document = internal_report(table(300, 1), table(250, 2), RULES, certificate=statement_of(CERTIFICATE, sha256="1"))
    document["learning"] = LEARNING
    document["sources"] = {"true": f"{HOSTILE}.csv", "synthetic": "synth.csv"}
    return document


@pytest.fixture(scope="module")
def page(report: dict[str, Any]) -> str:
    return render_page(report)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def test_page_has_every_part(page: str, report: dict[str, Any]) -> None:
    found = read(page)
    parts = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    wanted = ["mark", "verdict", "constraints", "distances", "columns", "pairs", "correlations", "learning", "privacy"]
    assert parts == [*wanted, "report"]
    assert page.index("internal: computed from the private table") < page.index('id="verdict"')
    assert sum(tag == "article" for tag, _ in found.elements) == len(report["columns"])
    assert sum(tag == "svg" for tag, _ in found.elements) == len(report["columns"]) + 4 + 1
    assert "of another file" in page
    keys = {key for key, _, _ in found.keyed}
    assert {f"{key}.{field}" for key in ("equal_mass.0", "equal_mass.1") for field in ("mean", "max", "halves")} <= keys
    assert {"ranks.mean_difference", "ranks.max_difference", "ranks.halves", "ranks.true.0.1"} <= keys


def test_numbers_on_the_page_are_those_of_the_json(page: str, report: dict[str, Any]) -> None:
    found = read(page)
    embedded = json.loads(found.report)
    assert embedded == report
    assert len(found.keyed) > 500
    for key, value, text in found.keyed:
        number = lookup(embedded, key)
        assert (number if isinstance(number, str) else json.dumps(number)) == value, key
        if text and not isinstance(number, str):
            shown = float(text.rstrip("%").replace(",", ""))
            scale = 100 if text.endswith("%") and not key.endswith("percent") else 1
            assert shown == pytest.approx(number * scale, rel=0.06, abs=0.0006), key


def test_every_number_of_the_verdict_is_keyed(page: str) -> None:
    verdict = page[page.index('id="verdict"') : page.index('id="constraints"')]
    bare = unescape(re.sub(r"<data .*?</data>|<[^>]*>", " ", verdict))
    # what is left is prose: the ends of the scale, the fixed bound, the orders
    assert set(re.findall(r"\d[\d.,]*\d|\d", bare)) <= {"0", "1", "0.05", "2", "3"}


def test_names_and_values_are_escaped(page: str) -> None:
    assert HOSTILE not in page
    assert page.count("<script") == 1
    assert "alert(" in page
    assert read(page).elements.count(("script", {"type": "application/json", "id": "report"})) == 1


def test_page_refers_to_nothing_outside(page: str) -> None:
    assert not re.search(r"https?:|//[a-z]|@import|url\(|\bsrc=|srcset=", page, re.IGNORECASE)
    links = [a["href"] for _, a in read(page).elements if "href" in a]
    assert links == ["data:,"]
    assert "default-src 'none'" in page


def test_page_of_one_column_and_of_no_rows() -> None:
    for document in (
        internal_report(pa.table({"a": [1, 2]}), pa.table({"a": [2]})),
        internal_report(table(10, 1).slice(0, 0), table(10, 1).slice(0, 0)),
    ):
        document["sources"] = {"true": "a", "synthetic": "b"}
        read(render_page(document))


def test_seventy_columns_stay_a_page() -> None:
    wide = pa.table({f"c{i}": [i % 3, i % 2] for i in range(70)})
    document = internal_report(wide, wide)
    document["sources"] = {"true": "a", "synthetic": "b"}
    assert "70 columns are too many" in render_page(document)


def test_other_values_of_a_wide_column_are_written_not_drawn() -> None:
    row = {
        "kind": "category",
        "scale": [{"label": "a", "true": 0.01, "synthetic": 0.02}],
        "rest": [{"label": "9 others", "true": 0.99, "synthetic": 0.98}],
    }
    chart = histogram_chart(row, "k", ("true", "synthetic"))
    assert chart.count("<rect") == 2
    assert 'data-key="k.rest.0.true"' in chart


@pytest.mark.parametrize(
    ("value", "style", "text"),
    [
        (0, "distance", "0"),
        (0.0004, "distance", "4e-4"),
        (1234.5, "plain", "1,234"),
        (1e-6, "plain", "1e-6"),
        (0.25, "percent", "0.2%"),
        (-0.5, "signed", "-0.500"),
        ("2024-01-01", "plain", "2024-01-01"),
    ],
)
def test_write(value: object, style: str, text: str) -> None:
    assert write(value, style) == text
