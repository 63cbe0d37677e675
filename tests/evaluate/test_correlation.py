"""Correlations on cases with known answers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kamino.evaluate.measure.columns import Kind
from kamino.evaluate.measure.correlation import correlate, correlation_ratio, cramers_v, pearson


def test_pearson() -> None:
    x = np.array([1.0, 2, 3, 4])
    assert pearson(x, -2 * x + 1) == pytest.approx(-1)
    assert pearson(x, np.array([1.0, -1, -1, 1])) == pytest.approx(0)
    assert pearson(x, np.ones(4)) == 0
    assert pearson(np.array([1.0, 2, np.nan, 3]), np.array([1.0, 2, 100, 3])) == pytest.approx(1)
    assert pearson(np.array([1e9, 1e9 + 1, 1e9 + 2]), np.array([1.0, 2, 3])) == pytest.approx(1)


def test_cramers_v() -> None:
    x = np.array([0, 0, 1, 1, 2, 2] * 10)
    assert cramers_v(x, (x + 1) % 3) == pytest.approx(1)
    assert cramers_v(x, np.array([0, 1] * 30)) == 0
    assert cramers_v(x, np.zeros(60, dtype=np.int64)) == 0
    assert cramers_v(np.array([0, 0, 1, 1, -1]), np.array([0, 0, 1, 1, 0])) == pytest.approx(1)
    # a 2 x 2 table 30 10 / 10 30: phi squared is 0.25, less 1/79 for bias, over 1 - 1/79
    one, two = np.repeat([0, 0, 1, 1], [30, 10, 10, 30]), np.repeat([0, 1, 0, 1], [30, 10, 10, 30])
    assert cramers_v(one, two) == pytest.approx(np.sqrt((0.25 - 1 / 79) / (1 - 1 / 79)))


def test_wide_columns_that_have_nothing_to_do_with_each_other() -> None:
    rng = np.random.default_rng(0)
    one, two = rng.integers(0, 500, 2000), rng.integers(0, 500, 2000)
    # without the correction this is about 0.5; four standard deviations of the corrected one are below 0.1
    assert cramers_v(one, two) < 0.1
    assert correlation_ratio(one, rng.normal(size=2000)) < 0.25


def test_correlation_ratio() -> None:
    codes = np.array([0, 0, 1, 1])
    assert correlation_ratio(codes, np.array([1.0, 1, 2, 2])) == pytest.approx(1)
    assert correlation_ratio(codes, np.array([1.0, 2, 1, 2])) == 0
    assert correlation_ratio(codes, np.ones(4)) == 0
    assert correlation_ratio(np.array([0, 1, 2]), np.array([1.0, 2, 3])) == 0
    # between 4 of 6 squares, corrected: 1 - (1/3) (3/2)
    assert correlation_ratio(codes, np.array([0.0, 1, 2, 3])) == pytest.approx(np.sqrt(1 - 0.2 * 3 / 2))


def test_correlate_is_symmetric_and_reads_kinds() -> None:
    table = pa.table({"n": [1, 2, 3, 4], "m": [4, 3, 2, 1], "c": ["a", "a", "b", None]})
    found = correlate(table)
    assert found.names == ("n", "m", "c")
    assert found.values[0, 1] == pytest.approx(-1)
    assert (found.values == found.values.T).all()
    assert np.diag(found.values).tolist() == [1, 1, 1]
    assert correlate(table, kinds={"n": Kind.CATEGORY, "m": Kind.CATEGORY}).values[0, 1] >= 0
