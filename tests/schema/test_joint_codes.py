"""Combinations of codes as numbers: exact at every size."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.errors import SchemaError
from kamino.schema.coding import joint_codes
from kamino.schema.coding.joint_codes import (
    distinct_values,
    even_starts,
    flatten_codes,
    number_combinations,
    number_values,
)

SIZES = st.sampled_from([1, 2, 3, 2**31, 2**32, 2**53, 2**53 + 1, 2**61 + 1, 2**62, 2**62 + 1])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[np.ndarray], list[int]]:
    """Columns whose codes are near the ends, near 2^53 and near each other: where wrapping and rounding bite."""
    sizes = draw(st.lists(SIZES, min_size=1, max_size=4))
    num_rows = draw(st.integers(0, 12))
    columns = []
    for size in sizes:
        ends = {0, 1, 2, size - 1, size - 2, size // 2, 2**32, 2**53, 2**53 + 1}
        inside = st.sampled_from(sorted(code for code in ends if 0 <= code < size))
        columns.append(np.array(draw(st.lists(inside, min_size=num_rows, max_size=num_rows)), dtype=np.int64))
    return columns, sizes


@examples(400)
@given(tables(), st.booleans(), st.sampled_from([2**63 - 1, 40, 6]))
def test_numbers_compare_as_combinations(table: tuple[list[np.ndarray], list[int]], sized: bool, most: int) -> None:
    """Also where the limit is so low that values are renumbered, or pairs sorted."""
    columns, sizes = table
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(joint_codes, "MOST_NUMBERS", most)
        numbers, size = number_combinations(columns, sizes if sized else None)
    combinations = list(zip(*(column.tolist() for column in columns), strict=True))
    for i, one in enumerate(combinations):
        for j, other in enumerate(combinations):
            assert (one < other) == (numbers[i] < numbers[j])
            assert (one == other) == (numbers[i] == numbers[j])
    assert all(0 <= number < size for number in numbers.tolist())


@examples(100)
@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.integers(0, 20), st.integers(0, 99))
def test_cells_are_those_of_numpy(sizes: list[int], num_rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, size, num_rows) for size in sizes]
    assert np.array_equal(flatten_codes(columns, sizes), np.ravel_multi_index(tuple(columns), sizes))


def test_what_cannot_be_numbered_is_refused() -> None:
    one = np.array([0, 1])
    with pytest.raises(SchemaError, match=r"at most 2\^63 - 1 can be numbered"):
        flatten_codes([one, one], [2**32, 2**31])
    with pytest.raises(SchemaError, match="float64; expected int64"):
        flatten_codes([one.astype(np.float64)], [2])
    with pytest.raises(SchemaError, match="leave their domain of 1 codes"):
        number_combinations([one], [1])
    with pytest.raises(SchemaError, match="leave their domain"):
        number_combinations([one - 1, one], [2, 2])


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30))
def test_values_are_numbered_in_order(values: list[int]) -> None:
    numbers, count = number_values(np.array(values, dtype=np.int64))
    place = {value: i for i, value in enumerate(sorted(set(values)))}
    assert numbers.tolist() == [place[value] for value in values]
    assert count == len(place)


@given(st.integers(1, 2**62 + 1), st.integers(1, 300))
def test_even_cuts_are_exact(size: int, parts: int) -> None:
    assert even_starts(size, parts).tolist() == [i * size // parts for i in range(parts)]


@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(-3, 40)))
def test_distinct_values_are_those_of_numpy(values: list[int]) -> None:
    codes = np.array(values, dtype=np.int64)
    distinct, place = distinct_values(codes)
    expected, inverse = np.unique(codes, return_inverse=True)
    assert distinct.tolist() == expected.tolist()
    assert place.tolist() == inverse.tolist()
