"""Rows in order, by counting; numbers without repetition, by sorting."""

from __future__ import annotations

import numpy as np
import pytest

from kamino.arrays import distinct, stable_order


@pytest.mark.parametrize("size", [0, 1, 100, 5000])
@pytest.mark.parametrize("high", [1, 2, 70_000, 2**40, 2**62])
def test_stable_order_is_that_of_numpy(size: int, high: int) -> None:
    rng = np.random.default_rng(size)
    first, second = rng.integers(-5, high, size), rng.integers(0, 7, size)
    assert stable_order(first).tolist() == np.argsort(first, kind="stable").tolist()
    assert stable_order(first, second).tolist() == np.lexsort((second, first)).tolist()
    assert stable_order(second, first, second).tolist() == np.lexsort((second, first, second)).tolist()


@pytest.mark.parametrize("size", [0, 1, 100, 5000])
@pytest.mark.parametrize("high", [1, 70_000, 2**62])
def test_distinct_numbers_are_those_of_numpy(size: int, high: int) -> None:
    rng = np.random.default_rng(size)
    first, second = rng.integers(-5, high, size), rng.integers(0, 7, 3)
    assert distinct(first).tolist() == np.unique(first).tolist()
    assert distinct(first, second).tolist() == np.union1d(first, second).tolist()
    parts = rng.integers(-5, 9, size) / 4
    assert distinct(parts).tolist() == np.unique(parts).tolist()
