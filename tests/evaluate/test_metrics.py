"""Distances on cases with known answers."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.constraints.strategies import tables
from tests.trying import examples

from kamino.errors import InputError
from kamino.evaluate.measure.metrics import bin_tables, bin_tables_by_mass, distances_of, marginal_distances


def test_distance_is_half_the_l1() -> None:
    true = pa.table({"x": ["u", "u", "v", None], "y": ["p", "q", "p", "q"]})
    synthetic = pa.table({"x": ["u", "v", "v", "v"], "y": ["p", "p", "q", "q"]})
    one = marginal_distances(true, synthetic, order=1)
    assert one.by_attributes == {("x",): 0.5, ("y",): 0.0}
    assert (one.mean, one.maximum) == (0.25, 0.5)
    # true cells: up uq vp -q; synthetic cells: up vp vq vq; a quarter each, so uq and -q against vq and vq
    assert marginal_distances(true, synthetic, order=2).by_attributes == {("x", "y"): 0.5}


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
    assert marginal_distances(one, pa.table({"x": ["a", "b"] * 50}), order=1).mean == 0
    assert marginal_distances(one, one.slice(0, 0), order=1).mean == 1
    assert marginal_distances(one.slice(0, 0), one.slice(0, 0), order=1).mean == 0


def test_missing_columns_are_named() -> None:
    with pytest.raises(InputError, match="lacks the columns y"):
        marginal_distances(pa.table({"x": [1], "y": [1]}), pa.table({"x": [1]}), order=1)


@examples(50)
@given(tables())
def test_a_table_is_at_no_distance_from_itself(table: pa.Table) -> None:
    assert marginal_distances(table, table, order=2).maximum == 0


def bins_by_counting(true: list[float | None], values: list[float | None], num_bins: int) -> list[int]:
    """Bins of equal mass by definition: count the distinct cuts below a value, null after all bins."""
    known = [v for v in true if v is not None]
    cuts = sorted({float(np.quantile(known, i / num_bins)) for i in range(num_bins)} - {max(known)}) if known else []
    return [len(cuts) + 1 if v is None else sum(cut < v for cut in cuts) for v in values]


NUMBERS = st.lists(st.sampled_from([None, 0, 1, 2, 3, 50, 51.5, 1000]), max_size=30)


@examples(100)
@given(NUMBERS, NUMBERS, st.integers(1, 20))
def test_bins_of_equal_mass_agree_with_counting(
    true: list[float | None], synthetic: list[float | None], num_bins: int
) -> None:
    one, two = (pa.table({"n": pa.array(values, pa.float64())}) for values in (true, synthetic))
    pair = bin_tables_by_mass(one, two, num_bins=num_bins)
    assert pair.true["n"].tolist() == bins_by_counting(true, true, num_bins)
    assert pair.synthetic["n"].tolist() == bins_by_counting(true, synthetic, num_bins)
    assert max([*pair.true["n"], *pair.synthetic["n"]], default=0) < pair.sizes["n"]


def test_bins_of_equal_mass_hold_equally_many_rows() -> None:
    values = [float(v) ** 3 for v in range(1, 2002)]
    table = pa.table({"n": values})
    counts = np.bincount(bin_tables_by_mass(table, table).true["n"])
    # the smallest value alone, then 20 bins of 100
    assert counts.tolist() == [1, *[100] * 20]


def test_equal_mass_sees_what_equal_width_hides() -> None:
    true = pa.table({"n": [*range(100), 10_000]})
    flat = pa.table({"n": [*[50] * 100, 10_000]})
    assert distances_of(bin_tables(true, flat), order=1).mean == 0
    assert distances_of(bin_tables_by_mass(true, flat), order=1).mean > 0.9


def test_a_spike_a_constant_one_row_and_no_rows_by_mass() -> None:
    spike = pa.table({"n": [0] * 91 + list(range(1, 11))})
    assert bin_tables_by_mass(spike, pa.table({"n": [-1, 0, 1, 99, None]})).synthetic["n"].tolist() == [0, 0, 1, 2, 3]
    constant = pa.table({"n": [5, 5, None]})
    assert bin_tables_by_mass(constant, pa.table({"n": [4, 5, 6, None]})).synthetic["n"].tolist() == [0, 0, 0, 1]
    row = spike.slice(0, 1)
    assert distances_of(bin_tables_by_mass(row, row), order=1).mean == 0
    assert distances_of(bin_tables_by_mass(spike.slice(0, 0), row), order=1).mean == 1
    text = pa.table({"t": ["a", None], "d": [date(2024, 1, 1), None]})
    assert distances_of(bin_tables_by_mass(text, text), order=2).mean == 0
