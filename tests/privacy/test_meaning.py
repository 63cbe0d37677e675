"""What a budget means: odds of a guess and true positives, beside the trade-off curve that dp_accounting computes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kamino.privacy import Budget, GaussianEvent, Neighbours, PoissonGaussianEvent
from kamino.privacy.accounting.accountant import tally
from kamino.privacy.accounting.calibration import max_mu
from kamino.privacy.accounting.events import DeltaEvent
from kamino.privacy.accounting.meaning import (
    FALSE_POSITIVES,
    meaning_of_budget,
    meaning_of_ledger,
    of_epsilon,
    of_gaussian,
    of_tally,
)

# Ten budgets, small and large.
BUDGETS = [
    (0.05, 1e-9),
    (0.1, 1e-6),
    (0.3, 1e-7),
    (0.5, 1e-5),
    (1, 1e-6),
    (1, 1e-3),
    (2, 1e-6),
    (3, 1e-9),
    (5, 1e-6),
    (9, 1e-5),
]


def curve(mu: float, neighbours: Neighbours) -> tuple[float, float]:
    """Odds and true positives from the privacy loss distribution of dp_accounting, by its own tangents."""
    import dp_accounting
    from dp_accounting import pld

    relation = dp_accounting.NeighboringRelation
    # There, a Gaussian event's sum moves by twice its norm bound under replace; mu is the distance it really moves.
    own, ratio = (
        (relation.ADD_OR_REMOVE_ONE, 1.0) if neighbours is Neighbours.ADD_REMOVE else (relation.REPLACE_ONE, 2.0)
    )
    accountant = pld.PLDAccountant(own, value_discretization_interval=min(1e-4, mu / 1000))
    accountant.compose(dp_accounting.GaussianDpEvent(ratio / mu))
    epsilons = np.concatenate([np.linspace(0, 1, 4001), np.linspace(1.01, 30, 2900)])
    deltas = np.array(accountant.get_delta(epsilons.tolist()))
    found = np.minimum(
        np.exp(epsilons) * FALSE_POSITIVES + deltas, 1 - np.exp(-epsilons) * (1 - deltas - FALSE_POSITIVES)
    )
    return (1 + deltas[0]) / 2, float(found.min())


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_odds_agree_with_the_trade_off_curve(epsilon: float, delta: float, neighbours: Neighbours) -> None:
    budget = Budget(epsilon=epsilon, delta=delta, neighbours=neighbours)
    found = meaning_of_budget(budget)
    guess, true_positives = curve(max_mu(budget), neighbours)
    assert found.guess == pytest.approx(guess, rel=1e-3)
    assert found.true_positives == pytest.approx(true_positives, rel=1e-3)


def test_the_default_budget_in_words() -> None:
    text = meaning_of_budget(Budget(epsilon=1.0, delta=1e-6)).describe("one row")
    assert "right at most 54.7 times in 100" in text
    assert "finds it at most 1.83 times in 100" in text


def test_a_guess_is_what_an_optimal_test_reaches() -> None:
    """Draw from both sides of a Gaussian mechanism. False alarms: 1 in 10,000 (4 deviations of 400,000 draws)."""
    rng = np.random.default_rng(5)
    mu, n = 0.7, 200_000
    without, with_row = rng.normal(0, 1, n), rng.normal(mu, 1, n)
    right = ((without < mu / 2).mean() + (with_row >= mu / 2).mean()) / 2
    assert abs(right - of_gaussian(mu).guess) < 4 * 0.5 / math.sqrt(2 * n)
    threshold = np.quantile(without, 1 - FALSE_POSITIVES)
    assert abs((with_row >= threshold).mean() - of_gaussian(mu).true_positives) < 0.003


def test_events_of_delta_are_counted() -> None:
    plain, with_delta = of_gaussian(0.3), of_gaussian(0.3, delta=0.01)
    assert with_delta.guess == pytest.approx(0.5 + (1 - (1 - 0.01) * (2 - 2 * plain.guess)) / 2)
    assert with_delta.true_positives > plain.true_positives
    total = tally([(GaussianEvent(noise_multiplier=1 / 0.3), 1), (DeltaEvent(delta=0.01), 1)], Neighbours.ADD_REMOVE)
    assert of_tally(total, Neighbours.ADD_REMOVE).guess == pytest.approx(with_delta.guess)


def test_sampled_events_are_bounded_by_their_curve() -> None:
    """One sample of all rows is a plain Gaussian release, and the general bound is above what is exact."""
    sampled = tally([(PoissonGaussianEvent(noise_multiplier=4.0, sampling_rate=1.0), 1)], Neighbours.ADD_REMOVE)
    exact, bound = of_gaussian(0.25), of_tally(sampled, Neighbours.ADD_REMOVE)
    assert bound.guess == pytest.approx(exact.guess, rel=1e-3)
    assert bound.true_positives == pytest.approx(exact.true_positives, rel=0.01)
    assert not bound.exact
    assert of_epsilon(1.0, 1e-6).guess > meaning_of_budget(Budget(epsilon=1.0, delta=1e-6)).guess


def test_a_ledger_means_its_events_under_both_relations() -> None:
    from kamino.privacy import Entry, Ledger

    ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
    for _ in range(2):
        ledger.charge(
            Entry(kind="counts", what="a", attributes=("a",), events=((GaussianEvent(noise_multiplier=8.0), 1),))
        )
    found = meaning_of_ledger(ledger.to_dict())
    mu = math.sqrt(2) / 8
    assert found[Neighbours.ADD_REMOVE] == of_gaussian(mu)
    assert found[Neighbours.REPLACE] == of_gaussian(2 * mu)
    open_run = meaning_of_ledger(Ledger(Budget(epsilon=math.inf, delta=1e-6)).to_dict())
    assert open_run[Neighbours.ADD_REMOVE].guess == 1.0
