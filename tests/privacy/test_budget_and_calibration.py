from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.errors import BudgetError, PrivacyError
from kamino.privacy import (
    Budget,
    DeltaEvent,
    GaussianEvent,
    Neighbours,
    PoissonGaussianEvent,
    calibrate,
    epsilon,
    gaussian_mu,
    multiplier_for,
)

ONE = Budget(epsilon=1.0, delta=1e-6)
budgets = st.builds(
    Budget, epsilon=st.floats(0.05, 20), delta=st.floats(1e-10, 1e-3), neighbours=st.sampled_from(Neighbours)
)


@pytest.mark.parametrize(
    ("epsilon_", "delta"), [(0, 1e-6), (-1, 1e-6), (math.nan, 1e-6), (1, 0), (1, 1), (1, -1e-6), (1, math.nan)]
)
def test_budget_refuses_nonsense(epsilon_, delta):
    with pytest.raises(PrivacyError, match="expected"):
        Budget(epsilon=epsilon_, delta=delta)


def test_budget_refuses_a_relation_by_name():
    with pytest.raises(PrivacyError, match="ADD_REMOVE"):
        Budget(epsilon=1, delta=1e-6, neighbours="replace")  # type: ignore[arg-type]


def test_one_release_has_the_known_multiplier():
    assert 1 / gaussian_mu(ONE) == pytest.approx(4.2247, abs=5e-5)
    ((event, _),) = calibrate([(GaussianEvent(noise_multiplier=1.0), 1)], ONE)
    assert event.noise_multiplier == pytest.approx(4.2247, abs=5e-5)


@examples(60)
@given(budgets, st.lists(st.floats(0.01, 1.0), min_size=1, max_size=50), st.floats(0, 0.9))
def test_shares_of_mu_fit_the_budget(budget, weights, reserved):
    reserved_delta = reserved * budget.delta
    mu = gaussian_mu(budget, reserved_delta=reserved_delta)
    shares = [mu**2 * weight / sum(weights) for weight in weights]
    z = [multiplier_for(share) for share in shares]
    events = [(GaussianEvent(noise_multiplier=one, replace_multiplier=one), 1) for one in z]
    events.append((DeltaEvent(delta=reserved_delta), 1))
    price = epsilon(events, delta=budget.delta, neighbours=budget.neighbours)
    assert 0.999 * budget.epsilon <= price <= budget.epsilon


@examples(40)
@given(
    budgets,
    st.lists(st.tuples(st.builds(GaussianEvent, noise_multiplier=st.floats(0.1, 9)), st.integers(1, 9)), min_size=1),
)
def test_calibrated_plan_costs_the_budget(budget, planned):
    plan = calibrate(planned, budget)
    price = epsilon(plan, delta=budget.delta, neighbours=budget.neighbours)
    assert 0.999 * budget.epsilon <= price <= budget.epsilon
    ratios = [new.noise_multiplier / old.noise_multiplier for (new, _), (old, _) in zip(plan, planned, strict=True)]
    assert max(ratios) == pytest.approx(min(ratios))


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("target", [0.3, 1.0, pytest.param(4.0, marks=pytest.mark.slow)])
def test_calibrated_sampled_plan_costs_the_budget(neighbours, target):
    budget = Budget(epsilon=target, delta=1e-6, neighbours=neighbours)
    planned = [
        (PoissonGaussianEvent(noise_multiplier=1.0, sampling_rate=0.01), 500),
        (GaussianEvent(noise_multiplier=10.0), 3),
        (DeltaEvent(delta=1e-7), 1),
    ]
    price = epsilon(calibrate(planned, budget), delta=1e-6, neighbours=neighbours)
    assert 0.999 * target <= price <= target


def test_calibration_without_privacy_has_no_noise():
    budget = Budget(epsilon=math.inf, delta=1e-6)
    ((event, _),) = calibrate([(GaussianEvent(noise_multiplier=1.0), 1)], budget)
    assert event.noise_multiplier == 0
    assert gaussian_mu(budget) == math.inf
    assert multiplier_for(gaussian_mu(budget) / 7) == 0


def test_plans_that_cannot_be_calibrated_are_refused():
    with pytest.raises(BudgetError, match="leaves nothing"):
        calibrate([(DeltaEvent(delta=1e-6), 1), (GaussianEvent(noise_multiplier=1.0), 1)], ONE)
    with pytest.raises(PrivacyError, match="multiplier 0"):
        calibrate([(GaussianEvent(noise_multiplier=0.0), 1)], ONE)
    with pytest.raises(PrivacyError, match="more than 0"):
        multiplier_for(0.0)
