"""The report as one HTML file that needs nothing else: no script, no network, no fonts.

A number gets onto the page only by its key in the report, so that page and report cannot differ.
"""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup

from kamino.errors import visible, visible_json
from kamino.evaluate.measure.identifiers import line_about
from kamino.evaluate.report.charts import histogram_chart, lying_bars, percent
from kamino.evaluate.report.document import Document
from kamino.evaluate.report.heatmap import heat_map, worst_pairs
from kamino.evaluate.report.svg import tag

MISSING = "–"
# With more columns than this, heat maps would be millions of cells that nobody can tell apart.
MAX_MAPPED = 60


def render_page(document: Document) -> str:
    """The page of a report.

    Guarantees:
        Names and values cannot become markup.  [test_names_and_values_are_escaped]
        Every number on the page is the report's.  [test_numbers_on_the_page_are_those_of_the_json]
        Nothing is loaded from anywhere.  [test_page_refers_to_nothing_outside]
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("kamino.evaluate.report"),
        autoescape=True,
        finalize=lambda value: visible(value, keep="\n") if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    names = ("true", "synthetic") if document["internal"] else ("released", "synthetic")
    return environment.get_template("report.html").render(
        report=document,
        names=names,
        num=lambda key, style="plain": number(document, key, style),
        chart=lambda index: histogram_chart(
            document["columns"][index]["histogram"], f"columns.{index}.histogram", names
        ),
        accuracy_chart=lambda: _accuracy_chart(document, names),
        heat=lambda key, signed=False: _heat(document, key, signed),
        worst=lambda key, count=8: worst_pairs(lookup(document, key), count),
        identifiers=_capital(line_about(document["identifiers"])),
        embedded=embed(document),
    )


def _capital(sentence: str) -> str:
    """The sentence with a capital; the names inside stay as they are."""
    return sentence[:1].upper() + sentence[1:]


def lookup(document: Any, key: str) -> Any:
    """What stands under a key such as `columns.3.true.mean`; `None` where there is nothing."""
    found = document
    for part in key.split("."):
        if isinstance(found, list):
            found = found[int(part)]
        elif isinstance(found, dict):
            found = found.get(part)
        else:
            return None
    return found


def number(document: Document, key: str, style: str = "plain") -> Markup:
    """The number under a key, rounded for people, with the exact one and its key beside it."""
    value = lookup(document, key)
    if value is None:
        return Markup(MISSING)
    exact = value if isinstance(value, str) else json.dumps(value)
    return tag("data", write(value, style), value=exact, data_key=key)


def write(value: Any, style: str) -> str:
    """A number as people read it: `count`, `distance`, `percent`, `share`, `signed` or `plain`.

    >>> write(1234567, "count"), write(0.02345, "distance"), write(0.00001, "distance"), write(0.5, "share")
    ('1,234,567', '0.023', '1e-5', '50%')
    """
    if isinstance(value, str):
        return value
    match style:
        case "count":
            return f"{value:,}"
        case "distance":
            small = 0 < abs(value) < 0.0005
            return "0" if value == 0 else f"{value:.0e}".replace("e-0", "e-") if small else f"{value:.3f}"
        case "signed":
            return f"{value:+.3f}"
        case "percent":
            return percent(value / 100)
        case "share":
            return percent(value)
        case _:
            large = 1_000 <= abs(value) < 1e15
            return f"{value:,.0f}" if large else f"{value:.4g}".replace("e-0", "e-")


def embed(document: Document) -> Markup:
    """The report as JSON that can stand inside a script element."""
    text = visible_json(json.dumps(document, ensure_ascii=False, allow_nan=False))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def _heat(document: Document, key: str, signed: bool) -> Markup:
    names = document[key.split(".")[0]]["names"]
    matrix = lookup(document, key)
    if len(names) > MAX_MAPPED:
        return tag("p", f"Not drawn: {len(names)} columns are too many. The numbers are in the JSON.", class_="note")
    largest = max((abs(v) for row in matrix for v in row if v is not None), default=0.0)
    top = 1.0 if signed and key.split(".")[-1] != "difference" else max(0.1, largest)
    return heat_map(names, matrix, key, top=top, signed=signed)


def _accuracy_chart(document: Document, names: tuple[str, str]) -> Markup:
    rows = document["learning"]["attributes"]
    bars = [
        ({"label": row["name"], **row["accuracy"]}, f"learning.attributes.{i}.accuracy") for i, row in enumerate(rows)
    ]
    lowest = min((min(bar["true"], bar["synthetic"]) for bar, _ in bars), default=0.0)
    low = 0.5 if lowest >= 0.5 else 0.0
    return lying_bars(bars, names, top=1.0, low=low)
