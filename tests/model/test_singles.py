"""Categories whose noise is in many pairs are counted again."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.model.memory import MemoryMeasurer, ReplayMeasurer

from kamino.model.marginal.columns.binning import BinLimits, choose_bins, spread_anew
from kamino.model.marginal.columns.histogram import Histogram, measure_histogram
from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.pairs.selection import Limits, Scored, select
from kamino.model.protocol import CodeMap, ModelAttribute

NAME = ModelAttribute(name="name", size=300, ordered=False)
ATTRIBUTES = (NAME, *(ModelAttribute(name=f"x{i}", size=3, ordered=False) for i in range(7)))


def rows_of_names(rows: int = 20_000, seed: int = 1) -> dict[str, np.ndarray]:
    """Many names of few rows each, and seven small attributes that all hang together."""
    rng = np.random.default_rng(seed)
    share = rng.pareto(1.5, NAME.size) + 0.2
    columns = {"name": rng.choice(NAME.size, rows, p=share / share.sum())}
    base = rng.integers(0, 3, rows)
    for attribute in ATTRIBUTES[1:]:
        columns[attribute.name] = np.where(rng.random(rows) < 0.7, base, rng.integers(0, 3, rows))
    return columns


def histogram_of(counts: np.ndarray, sigma: float, rng: np.random.Generator) -> Histogram:
    def count(code_map: CodeMap, level: int) -> tuple[np.ndarray, float]:
        return np.round(counts + rng.normal(0, sigma, len(counts))), sigma

    return measure_histogram(NAME, count)


def test_two_counts_are_one() -> None:
    """Two counts with noise of 20 are as near to the truth as one with noise of 20 / sqrt(2)."""
    rng = np.random.default_rng(2)
    true = np.bincount(rows_of_names()["name"], minlength=NAME.size).astype(float)
    twice, once = [], []
    for _ in range(20):
        joined = histogram_of(true, 20.0, rng).joined(np.round(true + rng.normal(0, 20.0, len(true))), 20.0)
        assert joined.sigma == pytest.approx(20 / np.sqrt(2))
        twice.append(np.abs(joined.counts - true).sum())
        once.append(np.abs(histogram_of(true, 20 / np.sqrt(2), rng).counts - true).sum())
    assert np.mean(twice) == pytest.approx(np.mean(once), rel=0.03)


def test_what_is_closed_stays_closed() -> None:
    rng = np.random.default_rng(3)
    true = np.bincount(rows_of_names()["name"], minlength=NAME.size).astype(float)
    first = histogram_of(true, 5.0, rng)
    cells = choose_bins(NAME, first, BinLimits(least_rows=50))
    closed = np.flatnonzero(cells.map.labels == cells.map.labels.max())[:10]
    cells.share[closed] = 0.0
    found = spread_anew(cells, first.joined(true, 5.0))
    assert (found.share[closed] == 0).all()
    sums = np.bincount(found.map.labels, weights=found.share)
    np.testing.assert_allclose(sums, 1.0)
    assert not np.allclose(found.share, cells.share)


def test_categories_are_counted_again() -> None:
    """More than once, for a smaller error of the column; and with the whole budget, no more."""
    columns = rows_of_names()
    measurer = MemoryMeasurer(columns, seed=4)
    model = fit_marginal(measurer, ATTRIBUTES, noise_multiplier=4.2)
    counted = Counter(name for name, _ in model.releases)
    assert counted["name"] > 1
    assert measurer.cost == pytest.approx(1 / 4.2**2, rel=1e-5)
    true = np.bincount(columns["name"], minlength=NAME.size)
    made = np.bincount(model.sample(20_000, np.random.default_rng(0))["name"], minlength=NAME.size)
    first = histogram_of(true.astype(float), 4.2 / np.sqrt(dict(model.releases[:1])["name"]), np.random.default_rng(5))
    assert np.abs(made - true).sum() < 0.9 * np.abs(first.counts * (20_000 / first.counts.sum()) - true).sum()


def test_without_noise_nothing_is_counted_again() -> None:
    model = fit_marginal(MemoryMeasurer(rows_of_names(2000)), ATTRIBUTES[:4], noise_multiplier=0.0)
    counted = Counter(name for name, _ in model.releases)
    assert counted["name"] == 1


def test_counting_again_depends_on_releases_only() -> None:
    first = MemoryMeasurer(rows_of_names(), seed=6)
    model = fit_marginal(first, ATTRIBUTES, noise_multiplier=4.2)
    again = fit_marginal(ReplayMeasurer(rows_of_names(20, seed=7), first.record), ATTRIBUTES, noise_multiplier=4.2)
    (meta, arrays), (meta2, arrays2) = model.to_arrays(), again.to_arrays()
    assert meta == meta2
    assert all(np.array_equal(arrays[name], arrays2[name]) for name in arrays)


def test_what_is_known_well_is_not_worth_counting() -> None:
    """Of two attributes with as much error in pairs, the one that is known with more noise is chosen."""
    single = Scored(attributes=(0,), error=0.0, answer=np.full(50, 400.0), known=40.0, times=3.0)

    def chosen(known: float) -> list[Scored]:
        each = Scored(attributes=(0,), error=0.0, answer=single.answer, known=known, times=3.0)
        each = Scored(attributes=(0,), error=each.left(np.inf), answer=each.answer, known=known, times=3.0)
        pair = Scored(attributes=(0, 1), error=2500.0, answer=np.full(100, 200.0))
        limits = Limits(marginals=1, cells=10_000, single_weight=2.0)
        return select([each, pair], sizes=[50, 2], cliques=[(0,), (1,)], sequence=None, sigma=20.0, limits=limits)

    assert [s.attributes for s in chosen(60.0)] == [(0,)]
    assert [s.attributes for s in chosen(5.0)] == [(0, 1)]
