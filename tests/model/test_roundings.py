"""Roundings: classes of numbers by their endings, what is measured of them, and what is left alone."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from tests.model.memory import MemoryMeasurer, ReplayMeasurer
from tests.model.test_periods import counter

from kamino.arrays import IntArray
from kamino.errors import ModelError
from kamino.model import ModelAttribute, fit_marginal, load_model
from kamino.model.marginal.columns.histogram import Histogram, measure_histogram, measured_phase, phase_counts
from kamino.model.marginal.columns.periods import CycleMap, believe
from kamino.model.marginal.columns.roundings import EndingMap
from kamino.model.phase import Phase, PhaseWeights, codes_inside
from kamino.model.protocol import CodeMap
from kamino.model.rounding import Rounding

ROWS = 10_000


def number(size: int, offset: int = 0) -> ModelAttribute:
    digits = sum(2 * 10**each <= size for each in range(1, 7))
    phase = Phase(factors=(10,) * digits, rounds=True, offset=offset % 10**digits)
    return ModelAttribute(name="x", size=size, ordered=True, phase=phase)


def prices(rng: np.random.Generator) -> IntArray:
    """Prices in hundredths of a cent: one of them has four decimals."""
    cents = rng.choice([0, 99, 95, 50], ROWS, p=[0.3, 0.4, 0.2, 0.1])
    found = (np.floor(rng.gamma(2.0, 15.0, ROWS)).astype(np.int64) * 100 + cents) * 100
    found[0] += 37
    return np.minimum(found, 1_999_999)


def salaries(rng: np.random.Generator) -> IntArray:
    """Most are in thousands."""
    exact = rng.integers(10_000, 90_000, ROWS)
    return np.where(rng.random(ROWS) < 0.6, exact // 1000 * 1000, exact)


def drawn(found: Histogram, rng: np.random.Generator) -> IntArray:
    run = rng.choice(len(found.counts), ROWS, p=found.counts / found.counts.sum())
    return codes_inside(found.weights, found.starts[run], found.width[run], rng.random(ROWS), rng)


@pytest.mark.parametrize("pairs_at", [None, 0, 1])
@pytest.mark.parametrize("offset", [0, 7, 950])
def test_classes_of_a_run_are_counted(offset: int, pairs_at: int | None) -> None:
    rounding = Rounding(depth=3, offset=offset, pairs_at=pairs_at)
    rng = np.random.default_rng(1)
    starts, width = rng.integers(0, 5000, 50), rng.integers(1, 3000, 50)
    found = rounding.count_codes(starts, width)
    for line, start, many in zip(found, starts, width, strict=True):
        assert np.array_equal(line, np.bincount(rounding(np.arange(start, start + many)), minlength=rounding.count))


def test_weights_follow_the_classes() -> None:
    rounding = Rounding(depth=2, offset=37, pairs_at=0)
    part = np.random.default_rng(2).random(rounding.count) + 0.01
    phase = Phase(factors=(10, 10), offset=37, rounds=True)
    weights = PhaseWeights(phase=phase, parts=(part / part.sum(),), rounding=rounding)
    codes = np.arange(500)
    ratio = weights(codes) / part[rounding(codes)]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
    starts, width = np.array([0, 13, 99]), np.array([1, 250, 401])
    np.testing.assert_allclose(
        weights.mass(starts, width), [weights(np.arange(s, s + w)).sum() for s, w in zip(starts, width, strict=True)]
    )


Share = Callable[[IntArray], "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]"]
HABITS: list[tuple[str, Callable[[np.random.Generator], IntArray], int, list[Share]]] = [
    ("prices", prices, 2_000_000, [lambda x: x % 100 == 0, lambda x: x // 100 % 100 == 99, lambda x: x % 10_000 == 0]),
    ("salaries", salaries, 100_000, [lambda x: x % 1000 == 0, lambda x: x % 10 == 0]),
]


@pytest.mark.parametrize(("draw", "size", "shares"), [each[1:] for each in HABITS], ids=[each[0] for each in HABITS])
@pytest.mark.parametrize("sigma", [0.0, 3.0])
def test_habits_of_digits_are_kept(
    draw: Callable[[np.random.Generator], IntArray], size: int, shares: list[Share], sigma: float
) -> None:
    """Digit by digit, two of them, a price would end in 99 as often as chance has it."""
    rng = np.random.default_rng(1)
    codes = draw(rng)
    made = drawn(measure_histogram(number(size), counter(number(size), codes, sigma, rng)), rng)
    for share in shares:
        assert abs(share(made).mean() - share(codes).mean()) < 0.05


def test_digits_that_never_stand_second_are_known() -> None:
    """Times of the day, such as 1755: minutes end at 59."""
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 24, ROWS) * 100 + rng.integers(0, 60, ROWS)
    attribute = number(2400)
    made = drawn(measure_histogram(attribute, counter(attribute, codes, 1.0, rng)), rng)
    assert (made % 100 > 59).mean() < 0.03


def test_no_habit_is_found_in_even_numbers() -> None:
    """A chi-squared two deviations above its mean has a chance of 4%, for each of two digits; a pair, 2%."""
    rng = np.random.default_rng(2)
    attribute = number(100_000)
    found = [
        measure_histogram(attribute, counter(attribute, rng.integers(0, 100_000, 5000), 10.0, rng)) for _ in range(60)
    ]
    weights = [each.weights for each in found if each.weights is not None]
    assert len(weights) <= 18, "more have a chance below 1e-4"
    # How often the last digits occur stays within a third of what chance has.
    for each in weights:
        last = np.bincount(np.arange(each.phase.cycle) % 10, weights=each.table) / each.table.sum()
        assert np.abs(last * 10 - 1).max() < 0.6


def test_only_zeros_that_stand_out_are_looked_at() -> None:
    rng = np.random.default_rng(30)
    for codes, many in ((rng.integers(0, 100_000, ROWS), 3), (salaries(rng), 4)):
        asked: list[tuple[object, float]] = []
        attribute = number(100_000)
        measure_histogram(attribute, counter(attribute, codes, 1.0, rng, asked))
        phase = measured_phase(attribute)
        assert phase is not None
        most, cells = phase_counts(phase)
        bins = [getattr(each, "bins", 0) for each, _ in asked if hasattr(each, "rounding")]
        assert len(bins) == many <= most
        assert max(bins) <= cells


def test_maps_of_endings_have_keys_of_their_own() -> None:
    """Answers that were counted ahead are found by the key of a map."""
    rounding, bins = Rounding(depth=1), np.arange(10)
    maps = [
        EndingMap.of(rounding, bins),
        EndingMap.of(rounding, bins[::-1].copy()),
        EndingMap.of(Rounding(depth=1, offset=3), bins),
        CycleMap.of(Phase(factors=(10,))),
        CycleMap.of(Phase(factors=(10,), offset=3)),
        CodeMap.identity(10),
    ]
    assert len({each.key for each in maps}) == len(maps)
    assert CodeMap.identity(10).key == CodeMap.identity(10).key


def test_what_stands_apart_leaves_no_positive_noise() -> None:
    """All rows are zeros: nine digits of noise must not add up."""
    rng = np.random.default_rng(4)
    left = []
    for _ in range(200):
        counts = np.append(5000.0, np.zeros(9)) + rng.normal(0, 20, 10)
        found = believe(counts, np.full(10, 500.0), np.full(10, 400.0), 0)
        assert found is not None
        assert found.sum() == pytest.approx(5000)
        assert found.min() >= 0
        left.append(found[1:].sum())
    assert np.mean(left) < 40, "the half of a normal variable of 60 rows; cutting off each digit would leave 72"
    assert believe(np.full(10, 500.0), np.full(10, 500.0), np.full(10, 400.0), 0) is None


@pytest.mark.parametrize("field", [{"depth": 0}, {"depth": 7}, {"offset": 1000}, {"pairs_at": 2}, {"pairs_at": -1}])
def test_impossible_roundings_are_refused(field: dict[str, int]) -> None:
    with pytest.raises(ModelError):
        Rounding(**{"depth": 3, **field})
    with pytest.raises(ModelError):
        Phase(factors=(10, 7), rounds=True)


def test_models_with_roundings_are_saved_and_depend_on_releases_only() -> None:
    attributes = (number(2_000_000), ModelAttribute(name="kind", size=3))
    rng = np.random.default_rng(5)
    table = {"x": prices(rng), "kind": rng.integers(0, 3, ROWS)}
    first = MemoryMeasurer(table)
    model = fit_marginal(first, attributes, noise_multiplier=4.2)
    assert 0.999 < first.cost * 4.2**2 <= 1.0
    meta, arrays = model.to_arrays()
    other = {"x": rng.integers(0, 2_000_000, 50), "kind": rng.integers(0, 3, 50)}
    replayed = fit_marginal(ReplayMeasurer(other, first.record), attributes, noise_multiplier=4.2).to_arrays()
    assert replayed[0] == meta
    assert all(np.array_equal(arrays[name], replayed[1][name]) for name in arrays)
    again = load_model(json.loads(json.dumps(meta)), arrays)
    rows, same = (each.sample(2000, np.random.default_rng(1)) for each in (model, again))
    assert np.array_equal(rows["x"], same["x"])
    assert (rows["x"] % 100 == 0).mean() > 0.9
    broken = json.loads(json.dumps(meta))
    place = next(i for i, node in enumerate(broken["nodes"]) if node["name"] == "x")
    for crafted in ({"pairs_at": 9}, {"pairs_at": -1}, {"pairs_at": "0"}, {}, {"pairs_at": None}, [1]):
        broken["nodes"][place]["phase"]["rounding"] = crafted
        with pytest.raises(ModelError):
            load_model(broken, arrays)


def test_null_and_spikes_lend_their_ending_to_no_other_number() -> None:
    rng = np.random.default_rng(6)
    codes = np.where(rng.random(ROWS) < 0.8, 5000, rng.integers(0, 100_000, ROWS))
    attribute = number(100_000)
    found = measure_histogram(attribute, counter(attribute, codes, 3.0, rng))
    made = drawn(found, rng)
    others = made[made != 5000]
    assert (others % 1000 == 0).mean() < 0.03
