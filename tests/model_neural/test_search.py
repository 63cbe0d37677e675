from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from kamino.errors import BudgetError
from kamino.model.neural.least_noise import least_noise
from kamino.model.neural.neural_parameters import Parameters, Ranges, WideRanges, price
from kamino.model.neural.search import _ends, _path, search_parameters
from kamino.privacy import Budget, GaussianEvent, Neighbours, PoissonGaussianEvent
from kamino.privacy import epsilon as epsilon_of


@pytest.mark.parametrize(
    ("epsilon", "neighbours"), [(0.3, Neighbours.ADD_REMOVE), (1.0, Neighbours.REPLACE), (3.0, Neighbours.ADD_REMOVE)]
)
@pytest.mark.parametrize("ranges", [WideRanges(), Ranges()])
def test_search_ends_at_most_at_the_budget(epsilon: float, neighbours: Neighbours, ranges: Ranges | WideRanges) -> None:
    budget = Budget(epsilon=epsilon, delta=1e-6, neighbours=neighbours)
    other = ((GaussianEvent(noise_multiplier=100.0, replace_multiplier=100.0), 1),)
    found = search_parameters(
        budget, num_rows=30_000, num_models=10, first_size=100, num_histograms=4, other=other, ranges=ranges
    )
    assert found.epsilon == price(found, budget, other) <= epsilon
    assert found.epsilon > 0.9 * epsilon


@pytest.mark.parametrize("learn_weights", [False, True])
def test_search_stops_at_the_first_that_fits(learn_weights: bool) -> None:
    budget = Budget(epsilon=1.0, delta=1e-6, neighbours=Neighbours.REPLACE)
    found = search_parameters(
        budget, num_rows=30_000, num_models=10, first_size=100, learn_weights=learn_weights, ranges=Ranges()
    )
    path = list(_path(*_ends(budget, 30_000, 10, 100, 1, learn_weights, Ranges())))
    place = [(p.steps, p.gradient_noise, p.histogram_noise, p.batch_size, p.weight_rows) for p in path].index(
        (found.steps, found.gradient_noise, found.histogram_noise, found.batch_size, found.weight_rows)
    )
    assert place > 0
    assert price(path[place - 1], budget) > 1.0
    assert bool(found.weight_rows) == learn_weights


def test_priority_is_the_papers() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    first, second, third, fourth, fifth = list(_path(*_ends(budget, 32_000, 4, 5, 1, False, Ranges())))[:5]
    assert (first.steps, first.batch_size, first.gradient_noise) == (10_000, 32, 1.0)
    assert first.histogram_noise == 0.1 / 5
    assert second.steps < first.steps
    assert third == replace(second, gradient_noise=third.gradient_noise)
    assert third.gradient_noise > 1.0
    assert fourth == replace(third, histogram_noise=fourth.histogram_noise)
    assert fourth.histogram_noise > first.histogram_noise
    assert fifth.steps < second.steps  # a sample of 32 minus a hundredth of the range is still 32


def test_ranges_are_the_papers() -> None:
    budget = Budget(epsilon=0.5, delta=1e-6)
    first, last = _ends(budget, 16_000, 4, 5, 1, False, Ranges())
    assert (first.steps, last.steps) == (5_000, 1_000)
    assert (first.batch_size, last.batch_size) == (32, 16)
    assert last.histogram_noise == pytest.approx(4 * math.sqrt(math.log(1.25e6)) / 0.5)
    assert (first.gradient_noise, last.gradient_noise) == (1.0, 1.5)


def test_noise_grows_past_its_range_for_a_small_budget() -> None:
    budget = Budget(epsilon=0.05, delta=1e-6)
    found = search_parameters(budget, num_rows=2_000, num_models=10, first_size=10, ranges=Ranges())
    assert found.gradient_noise > 1.5
    assert found.epsilon <= 0.05


@pytest.mark.parametrize(("num_rows", "epsilon"), [(30_000, 1.0), (1_000, 1.0), (30_000, 0.2)])
def test_wide_search_takes_the_smallest_sample_with_enough_noise(num_rows: int, epsilon: float) -> None:
    budget = Budget(epsilon=epsilon, delta=1e-6, neighbours=Neighbours.REPLACE)
    found = search_parameters(budget, num_rows=num_rows, num_models=5, first_size=9, num_histograms=6)
    assert found.batch_size & (found.batch_size - 1) == 0
    assert found.gradient_noise >= 3.0
    if found.batch_size > 16:
        half = replace(found, batch_size=found.batch_size // 2, gradient_noise=3.0)
        assert price(half, budget) < epsilon
    # Less noise does not fit, and a sample of twice the size says hardly more of a gradient.
    assert price(replace(found, gradient_noise=found.gradient_noise / 1.02), budget) > epsilon
    ranges = WideRanges(batch_size=(2 * found.batch_size, 2 * found.batch_size))
    twice = search_parameters(budget, num_rows=num_rows, num_models=5, first_size=9, num_histograms=6, ranges=ranges)
    assert twice.signal_to_noise < 1.04 * found.signal_to_noise


def test_ranges_that_mean_nothing_are_refused() -> None:
    with pytest.raises(BudgetError, match="a share between 0 and 1"):
        WideRanges(histogram_share=1.0)


def test_the_papers_own_configuration_costs_what_it_did() -> None:
    steps = PoissonGaussianEvent(noise_multiplier=1.1, sampling_rate=23 / 32_561)
    prices = [epsilon_of([(steps, 14 * 1_600)], delta=1e-6, neighbours=each) for each in Neighbours]
    assert prices == pytest.approx([0.493, 0.849], abs=0.001)


def test_a_hopeless_budget_is_refused() -> None:
    spent = ((GaussianEvent(noise_multiplier=0.5), 1),)
    with pytest.raises(BudgetError, match="larger budget"):
        search_parameters(Budget(epsilon=0.5, delta=1e-6), num_rows=900, num_models=3, first_size=10, other=spent)


def test_without_privacy_there_is_no_noise() -> None:
    found = search_parameters(Budget(epsilon=math.inf, delta=1e-6), num_rows=900, num_models=3, first_size=10)
    assert (found.gradient_noise, found.histogram_noise) == (0.0, 0.0)


@pytest.fixture(scope="module")
def with_weights() -> Parameters:
    budget = Budget(epsilon=1.0, delta=1e-6, neighbours=Neighbours.REPLACE)
    return search_parameters(budget, num_rows=9_000, num_models=3, first_size=10, learn_weights=True)


def test_parameters_print(with_weights: Parameters) -> None:
    found = with_weights
    text = found.describe()
    assert "sub-models                    3" in text
    assert f"rows sampled for weights      {found.weight_rows}" in text


def test_weights_are_paid_for_together_with_the_rest(with_weights: Parameters) -> None:
    budget, found = Budget(epsilon=1.0, delta=1e-6, neighbours=Neighbours.REPLACE), with_weights
    ((event, count),) = found.weight_events()
    assert isinstance(event, PoissonGaussianEvent)
    assert (event.noise_multiplier, event.sampling_rate, count) == (found.weight_noise, found.weight_rows / 9_000, 1)
    assert price(replace(found, weight_rows=0), budget) < price(found, budget) == found.epsilon


def test_parameters_survive_json(with_weights: Parameters) -> None:
    free = search_parameters(Budget(epsilon=math.inf, delta=1e-6), num_rows=900, num_models=3, first_size=10)
    for found in (with_weights, free):
        assert Parameters.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False))) == found


def smooth(noise: float) -> float:
    return 0.3 + 2.5 / noise + 1 / noise**2 if noise > 0.4 else math.inf


@pytest.mark.parametrize("limit", [0.31, 1.0, 7.0, 40.0])
@pytest.mark.parametrize("guess", [0.01, 1.0, 3_000.0])
def test_least_noise_is_the_least_that_fits(limit: float, guess: float) -> None:
    found = least_noise(smooth, limit, guess)
    assert found is not None
    assert smooth(found) <= limit < smooth(found / 1.005)


def test_least_noise_asks_for_few_prices() -> None:
    asked: list[float] = []

    def price_of(noise: float) -> float:
        asked.append(noise)
        return smooth(noise)

    least_noise(price_of, 1.0, 3.0)
    assert len(asked) <= 6


def test_no_noise_is_enough_for_a_price_that_does_not_fall() -> None:
    assert least_noise(lambda _: math.inf, 1.0, 1.0) is None
    assert least_noise(lambda _: 2.0, 1.0, 1.0) is None


def test_what_is_free_takes_hardly_any_noise() -> None:
    found = least_noise(lambda _: 0.0, 1.0, 1.0)
    assert found is not None
    assert found < 1e-3
