"""Lines of measured dependencies: what they close, and how they count values once more."""

from __future__ import annotations

import numpy as np
import pytest
from tests.model.memory import MemoryMeasurer

from kamino.model.marginal.columns.denoise import shrink
from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.maps.links import Line, counts_by_lines
from kamino.model.marginal.marginal_schedule import Hints
from kamino.model.protocol import ModelAttribute

ROWS, LEFTS, RIGHTS = 20_000, 30, 6
HINTS = Hints(functional=(("left", "right"),), together=(("left", "right"),), tied=frozenset(("left", "right")))


def rows(seed: int, share: np.ndarray, nulls: float = 0.0) -> dict[str, np.ndarray]:
    """A left side, its right side, which may be null, and a column that goes with the right side."""
    rng = np.random.default_rng(seed)
    left = rng.choice(LEFTS, ROWS, p=share)
    right = rng.permutation(np.arange(LEFTS) % RIGHTS)[left]
    other = (right + rng.integers(0, 3, ROWS)) % 8
    return {"left": left, "right": np.where(rng.random(ROWS) < nulls, RIGHTS, right), "other": other}


def beliefs(columns: dict[str, np.ndarray], noise: float, seed: int, null_code: int | None = None) -> np.ndarray:
    """P(right | left) of a fitted model."""
    attributes = (
        ModelAttribute(name="left", size=LEFTS),
        ModelAttribute(name="right", size=RIGHTS + (null_code is not None), null_code=null_code),
        ModelAttribute(name="other", size=8),
    )
    model = fit_marginal(
        MemoryMeasurer(columns, seed=seed),
        attributes,
        noise_multiplier=noise,
        sequence=("left", "right", "other"),
        hints=HINTS,
    )
    found = model.conditional("right", {"left": np.arange(LEFTS)}, LEFTS)
    weight = np.exp(found.log_prob)[found.context]
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def test_clear_lines_have_one_right_side() -> None:
    """Each value has 667 rows, and the noise is a thirtieth of that: no value keeps a part of it elsewhere."""
    for seed in range(3):
        columns = rows(seed, np.full(LEFTS, 1 / LEFTS))
        found = beliefs(columns, 5.0, seed)
        truth = np.zeros(LEFTS, dtype=int)
        truth[columns["left"]] = columns["right"]
        assert found[np.arange(LEFTS), truth].min() > 0.999, seed


def test_clear_lines_leave_nulls_where_they_are() -> None:
    columns = rows(0, np.full(LEFTS, 1 / LEFTS), nulls=0.2)
    found = beliefs(columns, 5.0, 0, null_code=RIGHTS)
    assert found[:, RIGHTS].mean() == pytest.approx(0.2, abs=0.02)
    assert np.all((found[:, :RIGHTS].max(axis=1) + found[:, RIGHTS]) > 0.999)


def test_no_line_loses_its_right_side() -> None:
    """Half of the values have a few rows, near the noise: whatever noise says, the right side of none is closed."""
    share = np.append(np.full(15, 0.064), np.full(15, 0.04 / 15))
    for seed in range(8):
        columns = rows(seed, share / share.sum())
        truth = np.zeros(LEFTS, dtype=int)
        truth[columns["left"]] = columns["right"]
        assert beliefs(columns, 8.0, seed)[np.arange(LEFTS), truth].min() > 1e-6, seed


def keys(sigma: float, lines: float, seed: int = 0) -> tuple[np.ndarray, Histogram, Line]:
    """The rows of 900 keys with twelve owners, their histogram, and their lines: so noisy."""
    rng = np.random.default_rng(seed)
    share = np.array([0.34, 0.16, 0.14, 0.1, 0.08, 0.06, 0.05, 0.03, 0.02, 0.01, 0.007, 0.003])
    owner = rng.choice(12, 900, p=share)
    rows = rng.poisson(rng.gamma(4.0, 7.0, 900)).astype(float)
    noisy = np.round(rows + rng.normal(0, sigma, 900))
    table = np.round(rng.normal(0, lines, (900, 12)))
    table[np.arange(900), owner] += rows
    histogram = Histogram(
        size=900,
        starts=np.arange(900),
        noisy=noisy,
        sigma=np.full(900, sigma),
        counts=shrink(noisy, sigma),
        family=np.arange(900),
    )
    return rows, histogram, Line(table=table, owners=np.bincount(owner, rows, 12), sigma=lines)


@pytest.mark.parametrize("seed", range(3))
def test_lines_count_their_values(seed: int) -> None:
    """Where owners stand out, the error is that of both counts together: 1 / sqrt(1 / 15² + 1 / 5²) = 4.7 and less."""
    rows, histogram, line = keys(15.0, 5.0, seed)
    alone, both = (np.std(counts - rows) for counts in (histogram.counts, counts_by_lines(histogram, [line])))
    assert both < 5.2 < 9.0 < alone


@pytest.mark.parametrize("seed", range(3))
def test_noise_in_lines_adds_no_rows(seed: int) -> None:
    """Where no owner stands out, lines tell little: nothing gets worse, and no rows are made of the largest noise."""
    rows, histogram, line = keys(15.0, 60.0, seed)
    counts = counts_by_lines(histogram, [line])
    assert np.std(counts - rows) < 1.05 * np.std(histogram.counts - rows)
    assert abs(counts.sum() - rows.sum()) < 0.08 * rows.sum()


def test_values_of_very_many_rows_are_counted_by_both() -> None:
    rows, histogram, line = keys(2.0, 1.0)
    large = Histogram(
        size=900,
        starts=histogram.starts,
        noisy=histogram.noisy + 1_000,
        sigma=histogram.sigma,
        counts=histogram.counts + 1_000,
        family=histogram.family,
    )
    told = Line(table=np.where(line.table > 8, line.table + 1_000, line.table), owners=line.owners, sigma=1.0)
    clear = rows > 12
    assert np.std((counts_by_lines(large, [told]) - rows - 1_000)[clear]) < 1.1
