"""What a measured pair adds to what was known is shrunk: noise goes, signals and margins stay."""

from __future__ import annotations

import numpy as np
import pytest

from kamino.model.marginal.adaptive_shrinkage import believed
from kamino.model.marginal.graph.measurement import Measurement
from kamino.model.marginal.graph.shrinkage import shrink_pair, with_margins

SHAPE, SIGMA = (12, 15), 10.0


def independent(rng: np.random.Generator, rows: float = 20_000) -> np.ndarray:
    return rows * np.outer(rng.dirichlet(np.ones(SHAPE[0])), rng.dirichlet(np.ones(SHAPE[1])))


def measured(counts: np.ndarray, rng: np.random.Generator, *, sigma: float = SIGMA) -> Measurement:
    noisy = counts + rng.normal(0, sigma, counts.shape)
    return Measurement(attributes=(0, 1), counts=noisy, sigma=np.full(counts.shape, sigma))


def test_margins_stay() -> None:
    rng = np.random.default_rng(1)
    expected = independent(rng)
    given = measured(expected, rng)
    found = shrink_pair(given, expected, independent(rng)).counts
    assert not np.allclose(found, given.counts)
    for axis in (0, 1):
        np.testing.assert_allclose(found.sum(axis=axis), given.counts.sum(axis=axis), atol=1e-6)


def test_signals_stay_and_noise_goes() -> None:
    rng = np.random.default_rng(2)
    expected = independent(rng)
    true = expected.copy()
    true[2, 3] += 50 * SIGMA
    true[4, 3] -= 0
    found = shrink_pair(measured(true, rng), expected, true).counts
    elsewhere = np.ones(SHAPE, dtype=bool)
    elsewhere[2, 3] = False
    assert found[2, 3] == pytest.approx(true[2, 3], abs=4 * SIGMA)
    raw = measured(true, np.random.default_rng(3)).counts
    assert np.abs(found - true)[elsewhere].mean() < 0.7 * np.abs(raw - true)[elsewhere].mean()


@pytest.mark.parametrize("density", [0.02, 0.1, 0.5, 1.0])
def test_shrunk_counts_are_nearer(density: float) -> None:
    """Whether few cells or all of them are off, on average over ten tables; where all are, nothing is lost."""
    rng = np.random.default_rng(4)
    raw, shrunk = [], []
    for _ in range(10):
        expected = independent(rng)
        moved = rng.random(SHAPE) < density
        true = np.where(moved, expected * rng.gamma(2.0, 0.5, SHAPE), expected)
        given = measured(true, rng)
        raw.append(np.abs(given.counts - true).sum())
        shrunk.append(np.abs(shrink_pair(given, expected, true).counts - true).sum())
    assert np.mean(shrunk) < (1.02 if density == 1.0 else 0.97) * np.mean(raw)


def test_exact_counts_stay() -> None:
    rng = np.random.default_rng(5)
    expected = independent(rng)
    true = expected * rng.gamma(2.0, 0.5, SHAPE)
    found = shrink_pair(measured(true, rng, sigma=0.0), expected, true).counts
    np.testing.assert_allclose(found, true, atol=1.0)


def test_margins_are_fitted() -> None:
    rng = np.random.default_rng(6)
    one, other = independent(rng) * rng.gamma(2.0, 0.5, SHAPE), independent(rng)
    found = with_margins(one, other)
    np.testing.assert_allclose(found.sum(axis=1), other.sum(axis=1), rtol=1e-3)
    np.testing.assert_allclose(found.sum(axis=0), other.sum(axis=0), rtol=1e-3)


def tilted(counts: np.ndarray, strength: float) -> np.ndarray:
    """The table with both attributes rising together a little: `strength` is about their rank correlation."""
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    u, v = ((np.cumsum(m) - m / 2) / m.sum() * 2 - 1 for m in (rows, columns))
    return with_margins(counts * np.exp(3 * strength * np.outer(u, v)), counts)


def rank_covariance(table: np.ndarray) -> float:
    u, v = (np.cumsum(m) - m / 2 for m in (table.sum(axis=1), table.sum(axis=0)))
    return float((u - u.mean()) @ (table - np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()) @ v)


def test_correlations_stay() -> None:
    """A dependence too weak to show in single cells keeps its rank correlation where the order is known."""
    rng = np.random.default_rng(7)
    kept, lost = [], []
    for _ in range(10):
        expected = independent(rng)
        true = tilted(expected, 0.05)
        given = measured(true, rng, sigma=3 * SIGMA)
        wanted = rank_covariance(true)
        kept.append(rank_covariance(shrink_pair(given, expected, true, SHAPE).counts) / wanted)
        lost.append(rank_covariance(shrink_pair(given, expected, true).counts) / wanted)
    assert np.mean(kept) == pytest.approx(1.0, abs=0.25)
    assert np.mean(lost) < 0.6


def test_null_has_no_rank() -> None:
    """What the last value, without a rank, says of the others is shrunk with the rest: noise alone goes there."""
    rng = np.random.default_rng(8)
    expected = independent(rng)
    given = measured(expected, rng)
    ranked = (SHAPE[0] - 1, SHAPE[1] - 1)
    found, plain = (shrink_pair(given, expected, expected, each).counts for each in (ranked, None))
    np.testing.assert_allclose(found[-1], plain[-1], atol=SIGMA)
    np.testing.assert_allclose(found.sum(axis=0), given.counts.sum(axis=0), atol=1e-6)


def test_what_cannot_vary_is_not_believed() -> None:
    """Numbers of a few rows at most under noise of a hundred; how far the noise goes says nothing of them."""
    rng = np.random.default_rng(8)
    found, noise, scale = rng.normal(0, 100, 500), np.full(500, 1e4), np.full(500, 9.0)
    assert believed(found, noise, scale, most=1.0).max() < 1e-3
    assert believed(found * 40, noise, scale).min() >= 0
    assert np.median(believed(found * 40, noise, scale)) > 0.9
