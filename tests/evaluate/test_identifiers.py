"""Columns that name rows are left out of what is compared."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from kamino.constraints import Constraints
from kamino.evaluate.measure.identifiers import find_identifiers
from kamino.evaluate.report.document import internal_report
from kamino.evaluate.report.page import render_page


def staff(rows: int, seed: int, start: int) -> pa.Table:
    """A numbered key, a text of which each row has its own, and two columns that tell something."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "emp_id": [start + i for i in range(rows)],
            "badge": [f"secret-{start + i}" for i in range(rows)],
            "dept": rng.choice(["a", "b", "c"], rows),
            "grade": rng.integers(0, 5, rows),
        }
    )


KEY = Constraints.parse("key (emp_id)")


def test_made_up_identifiers_do_not_spoil_the_verdict() -> None:
    report = internal_report(staff(2000, 1, 10_000), staff(2000, 2, 900_000), KEY)
    assert report["verdict"]["level"] == "good"
    assert report["verdict"]["outside_columns"] == 0
    # the bar is that of the other columns: with the badges, halves would be 1 apart in most pairs
    assert report["verdict"]["good_distance"] < 0.1
    assert [(row["name"], row["why"]) for row in report["identifiers"]] == [
        ("emp_id", "a key"),
        ("badge", "a text of which every true row has its own"),
    ]


def test_identifiers_are_left_out_and_none_is_listed() -> None:
    report = internal_report(staff(300, 1, 70_000), staff(300, 2, 80_000), KEY)
    kept = ["dept", "grade"]
    assert report["pairs"]["names"] == report["correlations"]["names"] == [c["name"] for c in report["columns"]] == kept
    assert [(m["order"], m["total"]) for m in report["marginals"]] == [(1, 2), (2, 1)]
    assert report["verdict"]["columns"] == 4
    row = report["identifiers"][0]
    assert row["true"] == row["synthetic"] == {"nulls": 0, "null_share": 0.0, "distinct": 300}
    report["sources"] = {"true": "t", "synthetic": "s"}
    for text in (json.dumps(report), render_page(report)):
        assert not any(value in text for value in ("secret-", "70000", "70299", "80000", "80299"))
    assert "Left out as identifiers: emp_id (a key), badge (a text" in render_page(report)


def test_types_and_nulls_of_identifiers_still_count() -> None:
    true = staff(200, 1, 0)
    texts = staff(200, 1, 0).set_column(0, "emp_id", pa.array([f"x{i}" for i in range(200)]))
    report = internal_report(true, texts, KEY)
    assert (report["verdict"]["level"], report["verdict"]["type_faults"]) == ("poor", 1)
    holes = true.set_column(1, "badge", pa.array([None, *(f"x{i}" for i in range(199))]))
    assert internal_report(true, holes, KEY)["verdict"]["new_null_columns"] == 1


@pytest.mark.parametrize(
    ("columns", "rules", "names"),
    [
        ({"a": ["x", "y", None], "b": [1, 1, 1]}, "", ["a"]),
        ({"a": ["x", "y", "x"], "b": [1, 2, 3]}, "", []),
        ({"a": ["x"], "b": [1]}, "", []),
        ({"a": ["x", None], "b": [1, 1]}, "", []),
        ({"a": [1, 2, 3], "b": [1, 1, 1]}, "key (a, b)", []),
        ({"a": [1, 1, 3], "b": [1, 1, 1]}, "key (a)", ["a"]),
        ({"a": ["x", "y"], "b": ["u", "v"]}, "", []),
        ({"a": [1, 2], "b": [1, 2]}, "key (a)\nkey (b)", []),
    ],
)
def test_which_columns_are_identifiers(columns: dict[str, list[object]], rules: str, names: list[str]) -> None:
    assert list(find_identifiers(pa.table(columns), Constraints.parse(rules))) == names


def test_dictionary_texts_are_texts() -> None:
    table = pa.table({"a": pa.array(["x", "y"]).dictionary_encode(), "b": [1, 1]})
    assert list(find_identifiers(table)) == ["a"]


def test_true_identifiers_that_came_back_are_counted() -> None:
    """Texts from number 250 to 299 are in both tables; numbers are not counted, since made-up ones may meet them."""
    report = internal_report(staff(300, 1, 0), staff(300, 2, 250), KEY)
    assert [row["recurring"] for row in report["identifiers"]] == [None, 50]
    report["sources"] = {"true": "t", "synthetic": "s"}
    page = render_page(report)
    assert "50 true ones occur in the synthetic table" in page
    assert "secret-" not in page
