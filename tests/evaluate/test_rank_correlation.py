"""Rank correlations against comparing all rows, and on tables with nulls, ties, constants, one row and none."""

from __future__ import annotations

from datetime import date, datetime
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.evaluate.measure.rank_correlation import average_ranks, compare_ranks, ordered_columns, spearman

NUMBERS = st.sampled_from([None, 0.0, 1.0, 1.5, 2.0, 7.0, -3.0, 1e6])
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=12)


def rank_by_comparing(value: float, values: list[float]) -> float:
    """How many are smaller, plus half of the others that are equal, from 1."""
    return 1 + sum(other < value for other in values) + (sum(other == value for other in values) - 1) / 2


def spearman_by_hand(pairs: list[tuple[float | None, float | None]]) -> float:
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    xs, ys = [a for a, _ in known], [b for _, b in known]
    ranks = [(rank_by_comparing(a, xs), rank_by_comparing(b, ys)) for a, b in known]
    middle = (len(known) + 1) / 2
    top = sum((a - middle) * (b - middle) for a, b in ranks)
    one, two = (sum((rank[side] - middle) ** 2 for rank in ranks) for side in (0, 1))
    return top / (one * two) ** 0.5 if one and two else 0.0


def as_table(rows: list[tuple[float | None, ...]]) -> pa.Table:
    return pa.table({name: pa.array([row[i] for row in rows], pa.float64()) for i, name in enumerate("abc")})


@examples(150)
@given(ROWS, ROWS)
def test_rank_correlations_agree_with_brute_force(
    true: list[tuple[float | None, ...]], synthetic: list[tuple[float | None, ...]]
) -> None:
    found = compare_ranks(as_table(true), as_table(synthetic))
    names = tuple(name for i, name in enumerate("abc") if len({row[i] for row in true} - {None}) > 2)
    assert found.names == names
    errors = []
    for one, two in combinations(range(len(names)), 2):
        i, j = "abc".index(names[one]), "abc".index(names[two])
        a, b = (spearman_by_hand([(row[i], row[j]) for row in rows]) for rows in (true, synthetic))
        assert found.true[one, two] == found.true[two, one] == pytest.approx(a)
        assert found.synthetic[one, two] == pytest.approx(b)
        errors.append(abs(a - b))
    assert found.mean_error == pytest.approx(np.mean(errors) if errors else 0.0)


def test_ties_share_the_mean_of_their_ranks() -> None:
    assert average_ranks(np.array([5.0, 5, 5, 1])).tolist() == [3, 3, 3, 1]
    assert average_ranks(np.array([])).tolist() == []


def test_a_monotone_curve_has_correlation_one() -> None:
    x = np.arange(50.0)
    assert spearman(x, np.exp(x / 3)) == pytest.approx(1)
    assert spearman(x, -(x**3)) == pytest.approx(-1)


def test_constants_one_row_and_no_rows_have_none() -> None:
    x = np.array([1.0, 2, 3])
    assert spearman(x, np.full(3, 7.0)) == 0
    assert spearman(x[:1], x[:1]) == 0
    assert spearman(x[:0], x[:0]) == 0
    assert spearman(x, np.array([np.nan, np.nan, 4])) == 0


def test_ordered_are_numbers_and_times_of_three_values() -> None:
    table = pa.table(
        {
            "n": [1, 2, 3, None],
            "two": [0.5, 1.5, None, None],
            "day": [date(2024, 1, d) for d in (1, 2, 3, 3)],
            "moment": pa.array([datetime(2024, 1, 1, h) for h in (1, 2, 3, 4)], pa.timestamp("us")),
            "flag": [True, False, True, None],
            "text": ["a", "b", "c", "d"],
            "infinite": [1.0, 2.0, float("inf"), float("nan")],
        }
    )
    assert ordered_columns(table) == ("n", "day", "moment")


def test_a_column_of_another_type_has_no_order() -> None:
    true = pa.table({"a": [1, 2, 3], "b": [1, 2, 3]})
    assert compare_ranks(true, pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})).mean_error == 1
    assert compare_ranks(true, pa.table({"a": [3, 2], "b": pa.nulls(2)})).mean_error == 1
    assert compare_ranks(true, true.slice(0, 0)).mean_error == 1


def test_fewer_than_two_ordered_columns_have_no_error() -> None:
    one = pa.table({"a": [1, 2, 3], "t": ["x", "y", "z"]})
    found = compare_ranks(one, one)
    assert (found.names, len(found.errors), found.mean_error) == (("a",), 0, 0.0)
    assert compare_ranks(one.slice(0, 1), one).mean_error == 0
