"""Deviations, tails and invented values of numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kamino.evaluate.measure.shapes_of_numbers import compare_shapes
from kamino.evaluate.report.document import internal_report
from kamino.evaluate.report.verdict import LEVELS

ROWS = 4_000


def _table(numbers: np.ndarray) -> pa.Table:  # type: ignore[type-arg]
    return pa.table({"x": numbers, "c": np.resize(["a", "b"], len(numbers))})


def _reasons(true: np.ndarray, synthetic: np.ndarray) -> dict[str, str]:  # type: ignore[type-arg]
    found = internal_report(_table(true), _table(synthetic))["verdict"]
    assert found["level"] in LEVELS
    return {each["text"]: each["level"] for each in found["reasons"]}


def test_what_bins_hide_of_numbers_is_in_the_verdict() -> None:
    rng = np.random.default_rng(5)
    true = rng.choice(rng.integers(0, 3_000, 200), ROWS).astype(np.float64)
    # Another sample of the same has nothing to complain about.
    again = rng.choice(true, ROWS)
    assert not [text for text in _reasons(true, again) if text.startswith(("standard", "tails", "values that"))]
    # Values between those that exist.
    near = again + rng.integers(1, 9, ROWS)
    invented = [text for text in _reasons(true, near) if text.startswith("values that no row")]
    assert len(invented) == 1
    assert "x 1" in invented[0]
    assert "→" in invented[0]
    # A tail that is too long: few rows, so that no distance shows it.
    tail = again.copy()
    tail[:60] += 60_000
    reasons = _reasons(true, tail)
    (spread,) = (text for text in reasons if text.startswith("standard deviations (x "))
    assert reasons[spread] == "poor"
    assert reasons["tails (x)"] == "fair"


def test_numbers_that_do_not_repeat_have_no_invented_values() -> None:
    rng = np.random.default_rng(5)
    shapes = compare_shapes(*(pa.chunked_array([rng.normal(size=ROWS)]) for _ in range(2)))
    assert shapes is not None
    assert shapes.found.invented is None
    assert abs(shapes.found.deviation - 1) < 0.2
    assert shapes.found.tails < 0.5


def test_columns_without_a_shape() -> None:
    def shape(one: list[object], two: list[object]) -> object:
        return compare_shapes(pa.chunked_array([one]), pa.chunked_array([two]))

    assert shape(["a"] * 99, ["a"] * 99) is None
    assert shape([1] * 99, [1, 2] * 50) is None
    assert shape([1, 2], [1, 2]) is None
    assert shape([1.0, float("inf")] * 20, [1.0] * 40) is None
    assert shape([1, 2] * 99, ["1", "x"] * 99) is None
    assert shape([1e308, -1e308] * 99, [1e308, -1e308] * 99) is None
