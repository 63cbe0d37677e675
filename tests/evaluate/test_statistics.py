"""Columns side by side: types, statistics, values where none should be."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from kamino.errors import InputError
from kamino.evaluate.measure.columns import Kind, align, kind_of, numbers, type_fits
from kamino.evaluate.measure.statistics import Faults, describe, find_faults


def column(values: list[object], kind: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


def test_align_orders_columns_and_takes_the_true_types() -> None:
    true = pa.table({"a": [1.5, 2.0], "b": ["x", "y"], "c": [1, 2]})
    aligned = align(true, pa.table({"c": ["u", "v"], "b": [None, None], "a": [1, 2]}))
    assert aligned.column_names == ["a", "b", "c"]
    # integers become reals, a column of nulls becomes text, and text cannot become an integer
    assert [str(t) for t in aligned.schema.types] == ["double", "string", "string"]


def test_align_names_missing_columns() -> None:
    with pytest.raises(InputError, match="lacks the columns b"):
        align(pa.table({"a": [1], "b": [1]}), pa.table({"a": [1]}))
    with pytest.raises(InputError, match=r"lacks the columns b and has others: B, c; .* Rename them"):
        align(pa.table({"a": [1], "b": [1]}), pa.table({"a": [1], "B": [1], "c": [1]}))


@pytest.mark.parametrize(
    ("true", "synthetic", "fits"),
    [
        (pa.int64(), pa.float64(), True),
        (pa.date32(), pa.timestamp("us"), True),
        (pa.string(), pa.int64(), False),
        (pa.int64(), pa.date32(), False),
        (pa.bool_(), pa.string(), False),
    ],
)
def test_type_fits(true: pa.DataType, synthetic: pa.DataType, fits: bool) -> None:
    assert type_fits(true, synthetic) is fits


def test_numbers_of_decimals_dates_and_times() -> None:
    assert numbers(column([Decimal("1.25")], pa.decimal128(5, 2))).tolist() == [1.25]
    assert numbers(column([date(1970, 1, 2)])).tolist() == [86400.0]
    assert numbers(column([datetime(1970, 1, 1, 0, 0, 1)], pa.timestamp("ms"))).tolist() == [1.0]
    assert kind_of(pa.timestamp("us", tz="UTC")) is Kind.TIME


def test_describe_numbers() -> None:
    found = describe(column([0, 0, 4, 4, None]))
    assert (found.rows, found.nulls, found.distinct, found.null_share) == (5, 1, 2, 0.2)
    assert (found.mean, found.std) == (2.0, 2.0)
    assert found.quantiles == (0.0, 0.0, 2.0, 4.0, 4.0)


def test_describe_leaves_out_what_is_not_finite() -> None:
    found = describe(column([1.0, float("nan"), float("inf")]))
    assert (found.mean, found.nulls) == (1.0, 1)


def test_describe_times_as_text() -> None:
    found = describe(column([date(2024, 1, 1), date(2024, 1, 3)]))
    assert found.mean == "2024-01-02"
    assert found.quantiles[-1] == "2024-01-03"
    assert found.std is None
    assert describe(column([datetime(2024, 1, 1, 12)], pa.timestamp("us"))).mean == "2024-01-01 12:00:00"


def test_describe_categories_and_nothing() -> None:
    found = describe(column(["a", "b", "a", None]))
    assert (found.distinct, found.nulls, found.mean, found.quantiles) == (2, 1, None, ())
    assert describe(column([], pa.int64())).mean is None
    assert describe(column([], pa.int64())).null_share == 0


def test_faults_of_ranges_values_types_and_nulls() -> None:
    assert find_faults(column([1, 5]), column([0, 1, 5, 6, 7])) == Faults(type_fits=True, outside=3, new_nulls=False)
    assert find_faults(column(["a", None]), column(["a", "z", None])) == Faults(
        type_fits=True, outside=1, new_nulls=False
    )
    assert find_faults(column(["a"]), column(["a", None])).new_nulls
    assert find_faults(column([1, 2]), column(["1", "x"])) == Faults(type_fits=False, outside=1, new_nulls=False)
    assert find_faults(column([date(2024, 1, 1)]), column([date(2024, 1, 2)])).outside == 1
    assert find_faults(column([1]), column([], pa.int64())).outside == 0
    assert find_faults(column([None], pa.int64()), column([3])).outside == 1
