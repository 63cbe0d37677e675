from __future__ import annotations

import numpy as np

from kamino.model.marginal.even_draws import draw_bins, draw_codes
from kamino.model.protocol import Cells, CodeMap


def test_drawing_is_unbiased():
    # 4,000 draws of one row each: a frequency is off by more than 0.03 with chance below 1e-3 a cell.
    table = np.array([[0.1, 0.6, 0.3], [0.5, 0.0, 0.5]])
    context = np.array([0, 1, 1, 0, 0])
    counts = np.zeros((5, 3))
    rng = np.random.default_rng(0)
    for _ in range(4000):
        counts[np.arange(5), draw_bins(context, table, rng)] += 1
    np.testing.assert_allclose(counts / 4000, table[context], atol=0.03)


def test_drawing_is_stratified():
    rng = np.random.default_rng(1)
    table = rng.dirichlet(np.ones(7), size=20)
    context = rng.integers(0, 20, 20_000)
    drawn = draw_bins(context, table, rng)
    counts = np.bincount(context * 7 + drawn, minlength=140).reshape(20, 7)
    expected = np.bincount(context, minlength=20)[:, None] * table
    # Independent draws would be off by 10 rows on average here.
    assert np.abs(counts - expected).mean() < 1.0
    assert np.abs(counts - expected).max() < 5.0
    # Small contexts are balanced together too: the whole column is as close.
    assert np.abs(counts.sum(axis=0) - expected.sum(axis=0)).max() < 25.0


def test_a_value_without_mass_is_never_drawn():
    table = np.array([[0.0, 1.0, 0.0], [0.3, 0.7, 0.0]])
    drawn = draw_bins(np.repeat([0, 1], 5000), table, np.random.default_rng(2))
    assert set(drawn[:5000]) == {1}
    assert set(drawn[5000:]) == {0, 1}


def test_rows_do_not_move_with_their_position():
    # Two columns drawn from the same contexts must be independent given them.
    rng = np.random.default_rng(3)
    context = np.zeros(20_000, dtype=np.int64)
    table = np.array([[0.5, 0.5]])
    a, b = draw_bins(context, table, rng), draw_bins(context, table, rng)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.035


def test_codes_stay_in_their_bins_and_follow_the_shares():
    cells = Cells(
        map=CodeMap(size=100, bins=2, starts=np.array([0, 10, 50]), labels=np.array([0, 1, 0])),
        width=np.array([10, 40, 50]),
        share=np.array([0.25, 1.0, 0.75]),
    )
    bins = np.repeat([0, 1], 4000)
    codes = draw_codes(bins, cells, np.random.default_rng(4))
    np.testing.assert_array_equal(cells.map(codes), bins)
    assert abs((codes[:4000] < 10).mean() - 0.25) < 0.001
    counts = np.bincount(codes[4000:], minlength=50)[10:50]
    assert counts.min() >= 98
    assert counts.max() <= 102


def test_no_rows():
    assert len(draw_bins(np.zeros(0, dtype=np.int64), np.ones((1, 3)) / 3, np.random.default_rng(0))) == 0
