"""Prices of Gaussian releases at the extremes, against the same formulas in as many digits as they need."""

from __future__ import annotations

import math
import random

import mpmath
import pytest

from kamino.errors import PrivacyError
from kamino.privacy import Budget, GaussianEvent, epsilon, gaussian_mu, multiplier_for
from kamino.privacy.accounting.calibration import max_mu
from kamino.privacy.accounting.gaussian_delta import epsilon_at, log_delta, mills

DELTAS = (5e-324, 1e-300, 1e-200, 1e-105, 1e-100, 1e-99, 1e-60, 1e-30, 1e-12, 1e-6, 1e-3, 0.5)
EPSILONS = (1e-300, 1e-50, 1e-20, 1e-10, 1e-8, 1e-6, 1e-4, 0.01, 0.3, 1.0, 3.0, 10.0, 50.0, 300.0, 700.0)


def true_log_delta(mu: float, at: float) -> mpmath.mpf:
    """Theorem 8 of Balle and Wang (2018); its two terms agree in about as many digits as mu is small."""
    with mpmath.workdps(60 + max(0, -round(math.log10(mu)))):
        size, root = mpmath.mpf(mu), mpmath.sqrt(2)
        one, two = size / 2 - mpmath.mpf(at) / size, -size / 2 - mpmath.mpf(at) / size
        found = mpmath.erfc(-one / root) - mpmath.exp(at) * mpmath.erfc(-two / root)
        return mpmath.log(found / 2)


def test_delta_is_never_below_the_true_one() -> None:
    """Nor above it by more than a tenth of the margin that `max_mu` leaves; of 60,000 others, none was."""
    rng = random.Random(5)
    for _ in range(80):
        low = rng.choice([rng.uniform(-7, 38), rng.uniform(0, 3), 10 ** rng.uniform(-8, 1.5)])
        mu = 10 ** rng.uniform(-12, 2.2) if rng.random() < 0.8 else 10 ** rng.uniform(-290, -12)
        at = (low + mu / 2) * mu
        if at > 0:
            over = log_delta(mu, at) - true_log_delta(mu, at)
            assert 0 <= over < 1e-10, (mu, at)


def test_mills_ratios_are_those_of_the_formula() -> None:
    for y in (-7.5, -1.0, 0.0, 1e-9, 0.3, 5.0, 38.0, 1e3):
        with mpmath.workdps(60):
            true = mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(mpmath.mpf(y) ** 2 / 2) * mpmath.erfc(y / mpmath.sqrt(2))
            assert abs(mills(y) / true - 1) < 3e-15 * (1 + min(0, y) ** 2)


@pytest.mark.parametrize("delta", DELTAS)
def test_no_budget_is_exceeded_at_the_extremes(delta: float) -> None:
    """Below 1e-300 a budget may come to nothing at all; elsewhere next to all of it can be spent."""
    with mpmath.workdps(60):
        for at in EPSILONS[:: 1 if delta > 1e-150 else 2]:
            mu = max_mu(Budget(epsilon=at, delta=delta))
            assert mu > 0 or min(at, delta) <= 1e-300
            if mu > 0:
                used = true_log_delta(mu, at) - mpmath.log(delta)
                assert -1e-3 < used <= 0, at


def test_reserved_parts_of_delta_are_not_spent_twice() -> None:
    budget = Budget(epsilon=1e-9, delta=1e-120)
    mu = max_mu(budget, reserved_delta=9e-121)
    assert true_log_delta(mu, budget.epsilon) <= mpmath.log(budget.delta - 9e-121)
    assert max_mu(budget, reserved_delta=1e-120) == 0


def test_no_price_is_too_low_at_the_extremes() -> None:
    """What is told of a mechanism is the least epsilon at which it has the delta, to nine digits."""
    for mu in (1e-200, 1e-40, 1e-12, 1e-9, 3e-7, 1e-3, 0.2, 4.0, 30.0):
        for delta in (1e-300, 1e-120, 1e-30, 1e-12, 1e-6, 0.3):
            told = epsilon_at(mu, delta)
            wanted = mpmath.log(delta)
            assert true_log_delta(mu, told * (1 + 1.1e-9)) <= wanted, (mu, delta)
            if told > 0:
                assert true_log_delta(mu, told * (1 - 1e-6)) > wanted - 1e-5, (mu, delta)


def test_a_budget_at_the_extremes_is_spent_or_refused_in_one_line() -> None:
    small = Budget(epsilon=1e-9, delta=1e-120)
    noise = multiplier_for(gaussian_mu(small) ** 2 / 7)
    assert epsilon([(GaussianEvent(noise_multiplier=noise), 7)], delta=small.delta) <= small.epsilon * (1 + 1e-8)
    with pytest.raises(PrivacyError, match="expected more than 0"):
        multiplier_for(gaussian_mu(Budget(epsilon=1e-250, delta=1e-250)) ** 2)
    assert math.isfinite(epsilon_at(1e-320, 1e-6))
