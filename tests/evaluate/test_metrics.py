"""Distances on cases with known answers."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest
from hypothesis import given, settings
from tests.constraints.strategies import tables

from kamino.errors import InputError
from kamino.evaluate.metrics import bin_tables, distances_of


def test_distance_is_half_the_l1() -> None:
    true = pa.table({"x": ["u", "u", "v", None], "y": ["p", "q", "p", "q"]})
    synthetic = pa.table({"x": ["u", "v", "v", "v"], "y": ["p", "p", "q", "q"]})
    one = distances_of(bin_tables(true, synthetic), order=1)
    assert one.by_attributes == {("x",): 0.5, ("y",): 0.0}
    assert (one.mean, one.maximum) == (0.25, 0.5)
    # true cells: up uq vp -q; synthetic cells: up vp vq vq; a quarter each, so uq and -q against vq and vq
    assert distances_of(bin_tables(true, synthetic), order=2).by_attributes == {("x", "y"): 0.5}


def test_numbers_fall_into_sixteen_bins_of_the_true_range() -> None:
    true = pa.table({"n": [*range(16), 16]})
    pair = bin_tables(true, pa.table({"n": [-5, 0, 99, None]}))
    assert pair.true["n"].tolist() == [*range(16), 15]
    assert pair.synthetic["n"].tolist() == [0, 0, 15, 16]


def test_dates_are_numbers() -> None:
    days = pa.table({"d": [date(2024, 1, 1), date(2024, 1, 17)]})
    assert bin_tables(days, days).true["d"].tolist() == [0, 15]


def test_sizes_may_differ_and_empty_is_far_from_anything() -> None:
    one = pa.table({"x": ["a", "b"]})
    assert distances_of(bin_tables(one, pa.table({"x": ["a", "b"] * 50})), order=1).mean == 0
    assert distances_of(bin_tables(one, one.slice(0, 0)), order=1).mean == 1
    assert distances_of(bin_tables(one.slice(0, 0), one.slice(0, 0)), order=1).mean == 0


def test_missing_columns_are_named() -> None:
    with pytest.raises(InputError, match="lacks the columns y"):
        distances_of(bin_tables(pa.table({"x": [1], "y": [1]}), pa.table({"x": [1]})), order=1)


@settings(max_examples=50, deadline=None)
@given(tables())
def test_a_table_is_at_no_distance_from_itself(table: pa.Table) -> None:
    assert distances_of(bin_tables(table, table), order=2).maximum == 0
