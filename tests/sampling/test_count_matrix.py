"""Counts of groups by context are those of a sparse matrix of scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from kamino.sampling.codes import count_matrix as module
from kamino.sampling.codes.count_matrix import count_matrix
from kamino.sampling.steps.chain.chain_filter import _logsumexp


@given(
    rows=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), max_size=60),
    lines=st.lists(st.integers(0, 6), max_size=9),
    seed=st.integers(0, 99),
)
def test_counts_are_those_of_scipy(rows: list[tuple[int, int]], lines: list[int], seed: int) -> None:
    groups, context = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    ones = np.ones(len(groups))
    expected = sparse.coo_matrix((ones, (groups, context)), shape=(7, 5)).tocsr()
    expected.sum_duplicates()
    found = count_matrix(groups, context, 7, 5)
    dense = np.log(np.random.default_rng(seed).random((5, 3)))
    dense[1, 2] = -np.inf
    assert np.array_equal(found @ dense, expected @ dense)
    assert np.array_equal(found.cells_of_lines(), expected.getnnz(axis=1))
    assert np.array_equal(found.sums_of_lines(), np.asarray(expected.sum(axis=1)).ravel())
    chosen = np.array(lines, dtype=np.int64)
    taken, entries = found.take(chosen), expected[chosen].tocoo()
    assert [*zip(taken.line, taken.column, taken.count, strict=True)] == [
        *zip(entries.row, entries.col, entries.data, strict=True)
    ]
    assert np.array_equal(taken @ dense, expected[chosen] @ dense)
    assert np.array_equal(found.between(1, 3) @ dense[1:3], expected[:, 1:3] @ dense[1:3])
    assert np.array_equal(found.between(3, 9) @ dense[3:], expected[:, 3:9] @ dense[3:])


def test_many_counts_are_those_of_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    groups, context = rng.integers(0, 70_000, 20_000), rng.integers(0, 900, 20_000)
    dense = rng.normal(size=(900, 7))
    expected = sparse.coo_matrix((np.ones(20_000), (groups, context)), shape=(70_000, 900)).tocsr()
    expected.sum_duplicates()
    found = count_matrix(groups, context, 70_000, 900)
    assert np.array_equal(found @ dense, expected @ dense)
    # Without the compiled function the public one is taken.
    monkeypatch.setattr(module, "compiled_function", lambda *names: None)
    module._product.cache_clear()
    assert np.array_equal(found @ dense, expected @ dense)
    assert module._product() is module._by_scipy
    module._product.cache_clear()


def test_sums_of_exponentials_are_those_of_scipy() -> None:
    from scipy.special import logsumexp

    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 7, 5)) * 300
    values[rng.random(values.shape) < 0.3] = -np.inf
    values[3] = -np.inf
    np.testing.assert_allclose(_logsumexp(values), logsumexp(values, axis=1), rtol=1e-14)
