from __future__ import annotations

import numpy as np
import pytest

from kamino.model.marginal.columns import denoise
from kamino.model.marginal.columns.binning import BinLimits, bin_counts, choose_bins
from kamino.model.marginal.columns.denoise import SPIKE, even_out, even_out_lines, shrink
from kamino.model.marginal.columns.histogram import first_cells, level_shares, levels, measure_histogram
from kamino.model.protocol import ModelAttribute


def counter(attribute, codes, sigma, rng):
    def count(code_map, level):
        noise = sigma / np.sqrt(level_shares(attribute)[level])
        exact = np.bincount(code_map(codes), minlength=code_map.bins)
        return exact + rng.normal(0, noise, len(exact)), noise

    return count


def test_a_spike_in_a_domain_of_a_billion_codes_is_found():
    rng = np.random.default_rng(0)
    spike = 123_456_789
    codes = np.concatenate([np.full(8000, spike), rng.integers(0, 10**9, 2000)])
    attribute = ModelAttribute(name="x", size=10**9, ordered=True)
    found = measure_histogram(attribute, counter(attribute, codes, 20.0, rng))
    assert len(found.starts) < 20_000
    run = np.searchsorted(found.starts, spike, side="right") - 1
    assert found.starts[run] == spike
    assert found.width[run] == 1
    assert found.counts[run] == pytest.approx(8000, rel=0.12)
    cells = choose_bins(attribute, found, BinLimits(least_rows=200))
    assert (cells.map.labels == cells.map.labels[run]).sum() == 1


def test_levels_depend_on_the_schema_only():
    assert levels(ModelAttribute(name="x", size=100, ordered=True)) == 1
    assert levels(ModelAttribute(name="x", size=10**5)) == 1
    assert levels(ModelAttribute(name="x", size=10**9, ordered=True)) > 2


def test_null_is_a_cell_of_its_own():
    attribute = ModelAttribute(name="x", size=100_001, ordered=True, null_code=100_000)
    assert first_cells(attribute)[-1] == 100_000
    codes = np.concatenate([np.full(500, 100_000), np.arange(5000) * 20])
    found = measure_histogram(attribute, counter(attribute, codes, 1.0, np.random.default_rng(0)))
    cells = choose_bins(attribute, found, BinLimits(least_rows=100))
    null = cells.map(np.array([100_000]))[0]
    assert (cells.map.labels == null).sum() == 1


def test_smoothing_an_even_histogram_takes_most_noise_out():
    rng = np.random.default_rng(1)
    noisy = 50 + rng.normal(0, 20, 256)
    smooth = even_out(noisy, np.ones(256, dtype=np.int64), 20.0, np.zeros(256, bool))
    assert np.abs(smooth - 50).mean() < 0.4 * np.abs(noisy - 50).mean()
    assert smooth.sum() == pytest.approx(noisy.sum())
    assert smooth.min() >= 0


def made_up(rng, kind):
    """The true counts of 128 cells: humps with a floor, a falling slope, or steps, at random places."""
    place = np.arange(128)
    match kind:
        case "humps":
            return 5.0 + sum(200 * np.exp(-np.abs(place - at) / 4) for at in rng.uniform(0, 128, 2))
        case "slope":
            return 200 * np.exp(-place / rng.uniform(10, 60))
        case _:
            return 20.0 + 150 * np.isin(np.searchsorted(np.sort(rng.uniform(0, 128, 2)), place), [1])


def error(found, true):
    """How far counts are from the truth in sixteen groups of eight cells."""
    return np.abs((found - true).reshape(16, 8).sum(axis=1)).sum()


def by_thresholds(noisy, sigma, believed=2.0):
    """Halve, and believe a split if it is so many deviations from an even one; the mean over sixteen places."""
    found = []
    for shift in range(0, 128, 8):
        cells = np.roll(noisy, shift)
        mass = np.array([max(cells.sum(), 0.0)])
        for level in range(1, 8):
            left, right = cells.reshape(1 << level, -1).sum(axis=1).reshape(-1, 2).T
            both = np.maximum(left, 0) + np.maximum(right, 0)
            seen = np.divide(np.maximum(left, 0), both, out=np.full(len(both), 0.5), where=both > 0)
            share = np.where(np.abs(left - right) > believed * sigma * np.sqrt(2 * 128 / (1 << level)), seen, 0.5)
            mass = np.stack([mass * share, mass * (1 - share)], axis=1).ravel()
        found.append(np.roll(mass, -shift))
    return np.mean(found, axis=0)


@pytest.mark.parametrize(("kind", "at_most"), [("humps", 0.97), ("slope", 0.8), ("steps", 1.2)])
def test_counts_are_nearer(kind, at_most):
    """Sixty histograms each. Steps are what thresholds are made for; columns of real tables have few of them."""
    rng = np.random.default_rng(3)
    errors = []
    for _ in range(60):
        true = made_up(rng, kind)
        noisy = np.round(true + rng.normal(0, 60, 128))
        new = even_out(noisy, np.ones(128, dtype=np.int64), 60.0, np.zeros(128, bool))
        errors.append([error(new, true), error(by_thresholds(noisy, 60.0), true)])
    new, old = np.mean(errors, axis=0)
    assert new < at_most * old, (new, old)


def test_shifts_bring_counts_nearer(monkeypatch):
    """Steps: one halving alone gives what it cannot split at a cut to the wrong side of it."""
    rng = np.random.default_rng(3)
    errors: dict[int, list[float]] = {1: [], denoise.SHIFTS: []}
    for _ in range(60):
        true = made_up(rng, "steps")
        noisy = np.round(true + rng.normal(0, 60, 128))
        for shifts, found in errors.items():
            monkeypatch.setattr(denoise, "SHIFTS", shifts)
            found.append(error(even_out(noisy, np.ones(128, dtype=np.int64), 60.0, np.zeros(128, bool)), true))
    one, many = np.mean(errors[1]), np.mean(errors[max(errors)])
    assert many < 0.95 * one, (one, many)


@pytest.mark.parametrize("seed", range(8))
def test_tails_beside_spikes_are_kept(seed):
    """An eighth of the rows lie beside a spike, ten in a cell: no cell shows them, but the number of all rows does."""
    rng = np.random.default_rng(seed)
    true = np.full(128, 5.0)
    true[40] = 4400.0
    noisy, width, alone = np.round(true + rng.normal(0, 50, 128)), np.ones(128, dtype=np.int64), np.zeros(128, bool)
    beside = np.arange(128) != 40
    found = even_out(noisy, width, 50.0, alone, rows=(true.sum() + rng.normal(0, 60), 60.0))
    assert found[beside].sum() == pytest.approx(635, abs=350)
    assert found.sum() == pytest.approx(true.sum(), abs=250)
    alone[40] = True
    apart = even_out(noisy, width, 50.0, alone, rows=(true.sum(), 60.0))
    assert apart[40] == noisy[40]
    assert apart[beside].sum() == pytest.approx(635, abs=350)


def test_clear_counts_stay():
    """Where noise is a few rows and counts are thousands, what is rounded to a grid would be off by hundreds."""
    rng = np.random.default_rng(0)
    true = np.round(20_000 / np.arange(1, 101) ** 0.8)
    noisy = np.round(true + rng.normal(0, 2.0, 100))
    found = shrink(noisy, 2.0)
    assert np.abs(found - true).max() < 6 * 2.0
    assert np.abs(found - true).mean() < 2.0


def test_shrinking_a_wide_histogram_takes_most_noise_out():
    rng = np.random.default_rng(2)
    true = np.where(rng.random(5000) < 0.02, 300.0, 2.0)
    noisy = np.round(true + rng.normal(0, 15, 5000))
    found = shrink(noisy, 15.0)
    assert np.abs(found - true).sum() < 0.35 * np.abs(np.maximum(noisy, 0) - true).sum()
    assert found.sum() == pytest.approx(true.sum(), rel=0.1)


def test_rare_values_share_a_bin_and_keep_their_proportions():
    counts = np.array([500.0, 3.0, 400.0, 9.0])
    codes = np.repeat(np.arange(4), counts.astype(int))
    attribute = ModelAttribute(name="x", size=4)
    found = measure_histogram(attribute, counter(attribute, codes, 0.0, np.random.default_rng(0)))
    cells = choose_bins(attribute, found, BinLimits(least_rows=50))
    assert cells.map.labels.tolist() == [0, 2, 1, 2]
    np.testing.assert_allclose(cells.share, [1, 0.25, 1, 0.75])
    np.testing.assert_allclose(bin_counts(found, cells)[0], [500, 400, 12])


@pytest.mark.parametrize("null", [False, True])
def test_no_bin_at_the_end_holds_few_rows(null):
    """Counts that fall off: what is left at the end joins the bin before, a spike before it does not."""
    counts = np.array([900, 100, 60, 20, 5, 1, 0, 0, 0, 0] + [40] * null)
    codes = np.repeat(np.arange(len(counts)), counts)
    attribute = ModelAttribute(name="x", size=len(counts), ordered=True, null_code=len(counts) - 1 if null else None)
    found = measure_histogram(attribute, counter(attribute, codes, 0.0, np.random.default_rng(0)))
    cells = choose_bins(attribute, found, BinLimits(least_rows=50))
    inside = np.bincount(cells.map.labels, weights=counts)
    assert cells.map.labels.tolist() == [0, 1, 2, 2, 2, 2, 2, 2, 2, 2] + [3] * null
    assert (inside[:3] >= 50).all()
    beside = choose_bins(attribute, found, BinLimits(least_rows=850))
    assert beside.map.labels.tolist() == [0, 1, 1, 1, 1, 1, 1, 1, 1, 1] + [2] * null


@pytest.mark.parametrize("ordered", [False, True])
def test_one_value(ordered):
    attribute = ModelAttribute(name="x", size=1, ordered=ordered)
    found = measure_histogram(
        attribute, counter(attribute, np.zeros(10, dtype=np.int64), 1.0, np.random.default_rng(0))
    )
    cells = choose_bins(attribute, found, BinLimits(least_rows=100))
    assert cells.map.bins == 1
    assert cells.share.tolist() == [1.0]


def test_all_null():
    attribute = ModelAttribute(name="x", size=1, ordered=True, null_code=0)
    found = measure_histogram(
        attribute, counter(attribute, np.zeros(10, dtype=np.int64), 1.0, np.random.default_rng(0))
    )
    assert choose_bins(attribute, found, BinLimits(least_rows=100)).map.bins == 1


@pytest.mark.parametrize("null", [None, 0, 100_000])
@pytest.mark.parametrize("high", [False, True])
def test_spikes_at_the_ends_are_kept(null, high):
    """A tenth of the rows at zero, or at a cap, of which later levels would see no more than noise."""
    attribute = ModelAttribute(name="x", size=100_001, ordered=True, null_code=null)
    values = np.flatnonzero(np.arange(100_001) != null)
    end = values[-1 if high else 0]
    rng = np.random.default_rng(4)
    codes = np.concatenate([np.full(300, end), rng.choice(values, 2700)])
    found = measure_histogram(attribute, counter(attribute, codes, 30.0, rng))
    run = np.searchsorted(found.starts, end, side="right") - 1
    assert found.width[run] == 1
    assert found.counts[run] == pytest.approx(300, abs=90)
    cells = choose_bins(attribute, found, BinLimits(least_rows=100))
    assert (cells.map.labels == cells.map(np.array([end]))[0]).sum() == 1


@pytest.mark.parametrize("null", [None, 0, 100_000])
def test_ends_without_a_spike_are_no_runs(null):
    attribute = ModelAttribute(name="x", size=100_001, ordered=True, null_code=null)
    rng = np.random.default_rng(4)
    codes = rng.choice(np.flatnonzero(np.arange(100_001) != null), 3000)
    found = measure_histogram(attribute, counter(attribute, codes, 30.0, rng))
    assert np.flatnonzero(found.width == 1).tolist() == ([] if null is None else [np.searchsorted(found.starts, null)])
    assert found.starts[0] == 0


@pytest.mark.parametrize("seed", range(8))
def test_noise_beside_a_spike_takes_none_of_it(seed):
    """Each level cuts 64 cells around the spike, whose noise sums to more than that of the cell they were cut from."""
    rng = np.random.default_rng(seed)
    spike = 123_456_789
    codes = np.concatenate([np.full(8000, spike), rng.integers(0, 10**9, 12_000)])
    attribute = ModelAttribute(name="x", size=10**9, ordered=True)
    found = measure_histogram(attribute, counter(attribute, codes, 25.0, rng))
    run = np.searchsorted(found.starts, spike, side="right") - 1
    assert found.counts[run] == pytest.approx(8000, abs=350)


@pytest.mark.parametrize("cells", [1, 2, 5, 16, 37])
@pytest.mark.parametrize("is_known", [True, False])
def test_histograms_are_evened_out_side_by_side(cells: int, is_known: bool) -> None:
    rng = np.random.default_rng(cells)
    noisy = rng.normal(rng.choice([0.0, 5.0, 80.0], (40, cells)), 4.0)
    noisy[:3] = [[-9.0], [0.0], [90.0]]  # nothing but noise, nothing at all, nothing but spikes
    width, sums = rng.integers(1, 9, (40, cells)), (rng.normal(300, 90, 40), np.full(40, 9.0))
    found = even_out_lines(noisy, width, 4.0, sums if is_known else None)
    first = even_out_lines(noisy[:1], width[:1], 4.0)[0]
    np.testing.assert_allclose(first, even_out(noisy[0], width[0], 4.0, np.zeros(cells, bool)))
    for line in range(40):
        spikes = noisy[line] > SPIKE * 4.0
        assert (found[line][spikes] >= noisy[line][spikes]).all()
        assert (found[line] >= 0).all()


def test_even_lines_stay_even():
    """Sixteen lines of 64 cells, thirty rows each under noise of a hundred: alone, one line believes its noise."""
    rng = np.random.default_rng(9)
    noisy, width = np.round(rng.normal(30, 100, (16, 64))), np.ones((16, 64), dtype=np.int64)
    known = np.full(16, 64 * 30.0), np.full(16, 50.0)
    together = even_out_lines(noisy, width, 100.0, known)
    alone = [even_out_lines(noisy[i : i + 1], width[:1], 100.0, (known[0][:1], known[1][:1]))[0] for i in range(16)]
    halves = [np.abs(each.reshape(16, 2, 32).sum(axis=2) - 960).mean() for each in (together, np.array(alone))]
    assert halves[0] < 0.6 * halves[1], halves


@pytest.mark.parametrize("cells", [1, 2, 3, 100])
@pytest.mark.parametrize("top", [0.0, 1e-9, 1.0, 1e6, 2.0**40])
def test_any_counts_are_evened_out(cells, top):
    """No rows, hardly any, very many; noise that is nothing beside them, or all; widths beyond 2^60."""
    rng = np.random.default_rng(cells)
    for sigma in (1e-6, 1.0, 1e6):
        for width in (np.ones(cells, dtype=np.int64), rng.integers(1, 2**61, cells)):
            noisy = np.round(top * rng.random(cells) + rng.normal(0, sigma, cells))
            for rows in (None, (top * cells, sigma), (0.0, 1e-9), (-5.0, 1.0)):
                found = even_out(noisy, width, sigma, np.zeros(cells, bool), rows)
                assert np.isfinite(found).all()
                assert (found >= 0).all()
