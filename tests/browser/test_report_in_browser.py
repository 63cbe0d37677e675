"""The report in a real browser: nothing overflows, nothing is loaded, and the numbers are those of the JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.browser.chromium import Page, browser_path, open_browser
from tests.evaluate.report_tables import RULES, table

from kamino.constraints import Constraints
from kamino.evaluate.report.document import internal_report
from kamino.evaluate.report.page import lookup, render_page
from kamino.evaluate.report.statement import statement_of

WIDTHS = (1280, 390)
# Elements that reach beyond the window, but for those inside a box that scrolls by itself.
OVERFLOWING = """
[...document.querySelectorAll('body *')]
  .filter(e => !e.closest('.scroll > *') && e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(e => e.tagName + '.' + e.getAttribute('class'))
"""
# Texts of one chart whose boxes lie on each other; turned labels stand side by side and are checked as such.
OVERLAPPING = """
[...document.querySelectorAll('svg')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  return boxes.flatMap(([one, a], i) => boxes.slice(i + 1)
    .filter(([, b]) => a.left + 1 < b.right && b.left + 1 < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom)
    .map(([two]) => one + ' | ' + two));
})
"""
OUTSIDE_CHART = """
[...document.querySelectorAll('svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')]
    .filter(t => { const b = t.getBoundingClientRect(); return b.left < box.left - 1 || b.right > box.right + 1; })
    .map(t => t.textContent);
})
"""
# Names squeezed until they break letter by letter.
SQUEEZED = "[...document.querySelectorAll('td:first-child')].filter(e => e.getBoundingClientRect().width < 60).length"
EMPTY_CHARTS = "[...document.querySelectorAll('svg')].filter(s => !s.querySelector('rect')).length"
KEYED = "[...document.querySelectorAll('data[data-key]')].map(e => [e.dataset.key, e.value, e.innerText])"


@pytest.fixture(scope="module")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    privacy = {"epsilon": 1.0, "delta": 1e-6, "neighbours": "add_remove", "unit": "one row", "releases": 85}
    statement = statement_of({"mark": "for release", "privacy": privacy, "domains": {"asserted": ["zip"] * 60}})
    # an identifier with a long name, and a constraint that cannot be counted, are as wide as anything
    true, synthetic = (
        table(rows, seed).append_column("identifier_" * 12, pa.array([f"{seed}-{i}" for i in range(rows)]))
        for rows, seed in ((400, 1), (380, 2))
    )
    true = true.append_column("n", pa.array([i % 9 for i in range(400)]))
    synthetic = synthetic.append_column("n", pa.array(["x"] * 380))
    rules = Constraints((*RULES, *Constraints.parse("check (n >= 0)")))
    document = internal_report(true, synthetic, rules, certificate=statement)
    assert document["identifiers"]
    assert document["verdict"]["uncounted"] == 1
    document["sources"] = {"true": "true.csv", "synthetic": "x" * 90 + ".csv"}
    scores = {"accuracy": {"true": 0.9, "synthetic": 0.85}, "f1": {"true": 0.8, "synthetic": 0.7}}
    rows = [{"name": c["name"], **scores} for c in document["columns"]]
    document["learning"] = {"train_rows": 70, "test_rows": 30, **scores, "attributes": rows, "models": rows}
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_page(document), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    browser_path()
    with open_browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overflows_or_overlaps(browser: Page, report_file: Path, width: int, tmp_path: Path) -> None:
    browser.open(report_file, width=width)
    assert browser.evaluate("innerWidth") == width
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.evaluate(OVERFLOWING) == []
    assert browser.evaluate(OVERLAPPING) == []
    assert browser.evaluate(OUTSIDE_CHART) == []
    assert browser.evaluate(SQUEEZED) == 0
    assert browser.evaluate(EMPTY_CHARTS) == 0
    browser.screenshot(tmp_path / f"report-{width}.png")
    assert (tmp_path / f"report-{width}.png").stat().st_size > 50_000


def test_nothing_is_loaded_from_elsewhere(browser: Page, report_file: Path) -> None:
    browser.requests.clear()
    browser.problems.clear()
    browser.open(report_file, width=1280)
    asked = [url for url in browser.requests if not url.startswith("data:")]
    assert asked == [report_file.as_uri()]
    assert browser.problems == []
    assert browser.evaluate("document.scripts.length") == 1


def test_numbers_on_the_page_are_those_of_the_json_in_the_page(browser: Page, report_file: Path) -> None:
    browser.open(report_file, width=390)
    document = json.loads(browser.evaluate("document.getElementById('report').textContent"))
    keyed = browser.evaluate(KEYED)
    assert len(keyed) > 150
    for key, value, text in keyed:
        number = lookup(document, key)
        assert (number if isinstance(number, str) else json.dumps(number)) == value
        assert text


def test_dark_and_light_are_told_apart(browser: Page, report_file: Path) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    browser.open(report_file, width=1280)
    light = browser.evaluate(colour)
    browser.open(report_file, width=1280, dark=True)
    assert browser.evaluate(colour) != light


def test_page_prints(browser: Page, report_file: Path, tmp_path: Path) -> None:
    browser.open(report_file, width=1280)
    browser.print(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
