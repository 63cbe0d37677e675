"""Measuring phases: what is found, what is left alone, what it costs, and that it survives saving."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.model.memory import MemoryMeasurer, ReplayMeasurer

from kamino.errors import ModelError
from kamino.model import ModelAttribute, fit_marginal, load_model
from kamino.model.marginal.columns.histogram import (
    PHASES,
    level_shares,
    measure_histogram,
    measured_phase,
    phase_counts,
)
from kamino.model.marginal.columns.periods import PHASE_SHARE, CycleMap, project
from kamino.model.phase import Phase

DIGITS = Phase(factors=(10,))
NUMBER = ModelAttribute(name="number", size=10_001, ordered=True, null_code=10_000, phase=DIGITS)
DAY = ModelAttribute(name="day", size=1096, ordered=True, phase=Phase(factors=(7,)))
ATTRIBUTES = (DAY, NUMBER, ModelAttribute(name="kind", size=3))


def days(rng, rows):
    weight = np.where(np.arange(1096) % 7 < 2, 0.7, 1.0) * (1 + 0.5 * np.sin(np.arange(1096) / 170))
    return rng.choice(1096, rows, p=weight / weight.sum())


def numbers(rng, rows):
    codes = np.minimum(rng.gamma(2.0, 900.0, rows).astype(np.int64), 9999)
    codes = np.where(rng.random(rows) < 0.7, codes // 5 * 5, codes)
    return np.where(rng.random(rows) < 0.1, 10_000, codes)


def table(seed=0, rows=20_000):
    rng = np.random.default_rng(seed)
    return {"day": days(rng, rows), "number": numbers(rng, rows), "kind": rng.integers(0, 3, rows)}


def counter(attribute, codes, sigma, rng, asked=None):
    phase = measured_phase(attribute)
    by_phase = PHASE_SHARE / phase_counts(phase)[0] if phase is not None else 0.0

    def count(code_map, level):
        share = by_phase if level == PHASES else level_shares(attribute)[level]
        if asked is not None:
            asked.append((code_map, share))
        exact = np.bincount(code_map(codes), minlength=code_map.bins)
        noise = sigma / np.sqrt(share)
        return exact + rng.normal(0, noise, len(exact)), noise

    return count


def test_a_cycle_map_counts_phases_wherever_they_are():
    phase = Phase(factors=(7,), block=24, offset=100)
    codes = np.array([0, 1, 167, 168, 2**61])
    assert np.array_equal(CycleMap.of(phase)(codes), phase(codes))
    assert CycleMap.of(phase)(np.array([67, 68])).tolist() == [6, 0]


@pytest.mark.parametrize("sigma", [0.0, 10.0])
def test_weekdays_and_digits_are_found(sigma):
    rng = np.random.default_rng(1)
    found = measure_histogram(DAY, counter(DAY, days(rng, 20_000), sigma, rng))
    assert found.weights is not None
    np.testing.assert_allclose(found.weights.table[:2], 0.7 * 7 / 6.4, atol=0.06)
    found = measure_histogram(NUMBER, counter(NUMBER, numbers(rng, 20_000), sigma, rng))
    assert found.weights is not None
    assert found.weights.table[[0, 5]].sum() / 10 == pytest.approx(0.76, abs=0.03)


def test_hardly_any_rhythm_is_found_in_noise():
    """Even columns of two digits: a chi-squared a deviation above its mean has a chance of 15%."""
    rng = np.random.default_rng(2)
    attribute = ModelAttribute(name="x", size=10_000, ordered=True, phase=Phase(factors=(10, 10)))
    columns = [rng.integers(0, 10_000, 5000) for _ in range(50)]
    found = [measure_histogram(attribute, counter(attribute, codes, 10.0, rng)) for codes in columns]
    # 100 digits: more than 31 have a chance below 1e-4.
    digits = [part for each in found if each.weights is not None for part in each.weights.parts]
    assert sum(part.max() - part.min() > 1e-9 for part in digits) <= 31
    assert all(np.abs(part * 10 - 1).max() < 0.25 for part in digits)


def test_only_digits_that_change_inside_a_cell_are_measured():
    """Cells of 4 codes know the tens digit, and cells of 20 do not."""
    for size, factors in ((512, (10,)), (2560, (10, 10))):
        attribute = ModelAttribute(name="x", size=size, ordered=True, phase=Phase(factors=(10, 10), offset=42))
        phase = measured_phase(attribute)
        assert phase is not None
        assert phase.factors == factors
        assert np.array_equal(phase.digit(0)(np.arange(30)), attribute.phase.digit(0)(np.arange(30)))
    assert Phase(factors=(7,), block=24).within(24) is None


def test_a_spike_lends_its_digit_to_no_other_code():
    """Nine of ten rows are code 0, the others are even: the last digit of the others must not follow."""
    rng = np.random.default_rng(3)
    codes = np.where(rng.random(20_000) < 0.9, 0, rng.integers(0, 10_000, 20_000))
    attribute = ModelAttribute(name="x", size=10_000, ordered=True, phase=DIGITS)
    found = measure_histogram(attribute, counter(attribute, codes, 10.0, rng))
    assert found.weights is None or np.abs(found.weights.table - 1).max() < 0.35


def test_smoothed_single_codes_keep_their_digits():
    """Heavy cells are cut down to single codes, which noise covers: what is left of them follows the phase."""
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 1000, 20_000) // 5 * 5
    attribute = ModelAttribute(name="x", size=1000, ordered=True, phase=DIGITS)
    found = measure_histogram(attribute, counter(attribute, codes, 15.0, rng))
    single = (found.width == 1) & (found.noisy < 6 * found.sigma)
    assert found.weights is not None
    assert single.sum() > 50
    assert found.counts[single & (found.starts % 5 > 0)].sum() < 0.1 * found.counts[single].sum()


def test_only_wide_attributes_pay_for_phases():
    rng = np.random.default_rng(5)
    for attribute, wide in ((NUMBER, True), (ModelAttribute(name="x", size=200, ordered=True, phase=DIGITS), False)):
        asked: list[tuple[object, float]] = []
        measure_histogram(attribute, counter(attribute, rng.integers(0, 200, 1000), 5.0, rng, asked))
        for_phases = sum(share for code_map, share in asked if isinstance(code_map, CycleMap))
        assert for_phases == pytest.approx(PHASE_SHARE if wide else 0.0)
        assert sum(share for _, share in asked) <= 1 + 1e-9


@pytest.mark.parametrize("rows", [0, 1, 30])
def test_few_rows_get_no_phases_or_valid_ones(rows):
    rng = np.random.default_rng(6)
    for sigma in (0.0, 30.0):
        found = measure_histogram(DAY, counter(DAY, rng.integers(0, 1096, rows), sigma, rng))
        assert np.isfinite(found.counts).all()
        assert found.weights is None or found.weights.table.min() > 0


def test_projection_is_the_nearest_point():
    counts = np.array([900.0, 30.0, -40.0, 10.0, -20.0])
    found = project(counts, 800.0)
    assert found.sum() == pytest.approx(800)
    assert found.min() >= 0
    rng = np.random.default_rng(7)
    for other in rng.dirichlet(np.ones(5), 2000) * 800:
        assert np.sum((found - counts) ** 2) <= np.sum((other - counts) ** 2) + 1e-6


def test_fit_with_phases_spends_exactly_the_budget():
    measurer = MemoryMeasurer(table())
    model = fit_marginal(measurer, ATTRIBUTES, noise_multiplier=4.2)
    assert 0.999 < measurer.cost * 4.2**2 <= 1.0
    assert sum(share for _, share in model.releases) == pytest.approx(1.0)
    assert model.node("day").cells.weights is not None
    assert model.node("number").cells.weights is not None
    assert model.node("kind").cells.weights is None


def test_fit_with_phases_depends_on_releases_only():
    first = MemoryMeasurer(table())
    model = fit_marginal(first, ATTRIBUTES, noise_multiplier=4.2)
    again = fit_marginal(ReplayMeasurer(table(seed=1, rows=100), first.record), ATTRIBUTES, noise_multiplier=4.2)
    (meta, arrays), (meta2, arrays2) = model.to_arrays(), again.to_arrays()
    assert meta == meta2
    assert arrays.keys() == arrays2.keys()
    assert all(np.array_equal(arrays[k], arrays2[k]) for k in arrays)


@pytest.fixture(scope="module")
def saved():
    model = fit_marginal(MemoryMeasurer(table()), ATTRIBUTES, noise_multiplier=4.2)
    meta, arrays = model.to_arrays()
    return json.loads(json.dumps(meta)), arrays, model


def test_phases_survive_saving(saved):
    meta, arrays, model = saved
    again = load_model(meta, arrays)
    assert again.attributes == model.attributes
    rows, same = (each.sample(3000, np.random.default_rng(1)) for each in (model, again))
    assert all(np.array_equal(rows[name], same[name]) for name in rows)
    codes = np.arange(1096)
    assert np.array_equal(again.node("day").cells.log_share(codes), model.node("day").cells.log_share(codes))
    assert abs((rows["number"][rows["number"] < 10_000] % 5 == 0).mean() - 0.76) < 0.05


def test_a_model_without_phases_is_read_as_before(saved):
    meta, arrays, _ = saved
    nodes = [{k: v for k, v in node.items() if k != "phase"} for node in meta["nodes"]]
    plain = {k: v for k, v in arrays.items() if ".phase." not in k}
    model = load_model({**meta, "nodes": nodes}, plain)
    assert all(node.cells.weights is None for node in model.nodes)


def _place(meta, name):
    return next(i for i, node in enumerate(meta["nodes"]) if node["name"] == name)


@pytest.mark.parametrize(
    "phase",
    [
        {"factors": [7], "block": 0, "offset": 0},
        {"factors": [7], "block": 1, "offset": 7},
        {"factors": [7], "block": 2**60, "offset": 0},
        {"factors": [], "block": 1, "offset": 0},
        {"factors": [2] * 40, "block": 1, "offset": 0},
        {"factors": [8], "block": 1, "offset": 0},
        {"factors": ["7"], "block": 1, "offset": 0},
        {"factors": 7, "block": 1, "offset": 0},
        {"factors": [7], "block": 1},
        {"factors": [7], "block": 1, "offset": 0, "more": 1},
        [7],
        None,
    ],
)
def test_a_crafted_phase_is_refused(saved, phase):
    meta, arrays, _ = saved
    nodes = [dict(node) for node in meta["nodes"]]
    nodes[_place(meta, "day")]["phase"] = phase
    with pytest.raises(ModelError):
        load_model({**meta, "nodes": nodes}, arrays)


@pytest.mark.parametrize(
    "part",
    [
        np.full(7, -1.0),
        np.full(7, 1.0),
        np.full(7, np.nan),
        np.full(6, 1 / 6),
        np.full((7, 1), 1 / 7),
        np.ones(7, dtype=np.int64),
        None,
    ],
)
def test_crafted_weights_are_refused(saved, part):
    meta, arrays, _ = saved
    name = f"{_place(meta, 'day')}.phase.0"
    changed = {**arrays, name: part} if part is not None else {k: v for k, v in arrays.items() if k != name}
    with pytest.raises(ModelError):
        load_model(meta, changed)
