"""Histograms of two columns on one scale."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from tests.constraints.strategies import tables
from tests.trying import examples

from kamino.evaluate.measure.columns import Kind
from kamino.evaluate.measure.histograms import NUM_BINS, TOP_VALUES, Bar, histogram


def column(values: list[object], kind: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


def test_categories_by_frequency_then_others_then_null() -> None:
    true = [f"v{i:02}" for i in range(30) for _ in range(30 - i)] + [None]
    found = histogram(column(true), column(["v00", "new"]))
    assert [bar.label for bar in found.scale] == [f"v{i:02}" for i in range(TOP_VALUES)]
    assert [bar.label for bar in found.rest] == ["11 others", "null"]
    assert found.scale[0].synthetic == 0.5
    assert found.rest[0].synthetic == 0.5


def test_integers_in_whole_steps() -> None:
    found = histogram(column(list(range(100))), column([0, 99, 120, -1]))
    assert len(found.scale) <= NUM_BINS
    assert (found.scale[0].label, found.scale[-1].label) == ("0 to 4", "95 to 99")
    assert found.scale[0] == Bar(label="0 to 4", true=0.05, synthetic=0.25)
    assert {bar.label: bar.synthetic for bar in found.rest} == {"below": 0.25, "above": 0.25}


def test_few_values_have_a_bar_each() -> None:
    assert [b.label for b in histogram(column([1, 2, 4]), column([3])).scale] == ["1", "2", "3", "4"]
    assert [b.label for b in histogram(column([0.5, 1000.25]), column([0.5])).scale] == ["0.5", "1000"]
    assert [b.label for b in histogram(column([7, 7]), column([7])).scale] == ["7"]


def test_dates_and_times_have_readable_labels() -> None:
    days = [date(2024, 1, 1), date(2024, 12, 31)]
    assert histogram(column(days), column(days)).scale[0].label == "2024-01-01"
    many = [date.fromordinal(738000 + i) for i in range(100)]
    assert " to " in histogram(column(many), column(many)).scale[0].label
    times = [datetime(2024, 1, 1, hour, minute) for hour in range(24) for minute in (0, 30)]
    found = histogram(column(times, pa.timestamp("us")), column(times, pa.timestamp("us")))
    assert found.kind is Kind.TIME
    assert found.scale[0].label.startswith("2024-01-01 00:00:00 to ")


def test_a_column_of_another_type_is_compared_as_text() -> None:
    found = histogram(column([1, 2]), column(["1", "x"]))
    assert {bar.label: (bar.true, bar.synthetic) for bar in found.scale} == {
        "1": (0.5, 0.5),
        "2": (0.5, 0),
        "x": (0, 0.5),
    }


def test_nothing_to_show() -> None:
    assert histogram(column([], pa.int64()), column([], pa.int64())).scale == ()
    assert histogram(column([None, None], pa.int64()), column([1], pa.int64())).rest[0].label == "null"


@examples(60)
@given(tables(), tables())
def test_histogram_shares_add_up(true: pa.Table, synthetic: pa.Table) -> None:
    for name in set(true.column_names) & set(synthetic.column_names):
        found = histogram(true.column(name), synthetic.column(name))
        bars = found.scale + found.rest
        for side, table in (("true", true), ("synthetic", synthetic)):
            assert sum(getattr(bar, side) for bar in bars) == pytest.approx(float(table.num_rows > 0))
