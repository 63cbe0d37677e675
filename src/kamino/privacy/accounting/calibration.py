"""How much noise a budget allows: what is calibrated costs within 0.1% below the budget, and never more.

In a run of Gaussian releases the currency is mu²: a release with noise multiplier z costs 1 / z², the budget
holds `gaussian_mu(budget) ** 2`, and shares add up.

    >>> budget = Budget(epsilon=1.0, delta=1e-6)
    >>> round(1 / gaussian_mu(budget), 4)
    4.2247
    >>> share = gaussian_mu(budget) ** 2 / 50
    >>> round(multiplier_for(share), 2)
    29.87
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from kamino.errors import BudgetError, PrivacyError
from kamino.privacy.accounting.accountant import epsilon, tally
from kamino.privacy.accounting.budget import Budget
from kamino.privacy.accounting.closed_forms import get_sigma_gaussian
from kamino.privacy.accounting.events import DeltaEvent, Event, Events, PoissonGaussianEvent
from kamino.privacy.accounting.gaussian_delta import epsilon_at, sound_mu

# Shares of mu² are added and divided in floating point by the caller. What is promised to him is below the
# limit that the ledger enforces by more than such rounding can amount to.
_ROUNDING = 1e-9
_BELOW = 1e-3
# What `max_mu` stays below the exact limit, for roundings of those who add up what was spent.
_MARGIN = 1e-10
_MUCH_NOISE = 2.0


def gaussian_mu(budget: Budget, *, reserved_delta: float = 0.0) -> float:
    """Return mu = 1 / z of the one Gaussian mechanism that spends the whole budget; inf if epsilon is inf.

    `reserved_delta` is what delta events (a private set of categories) will spend of delta.

    Guarantees:
        Spending mu² in any shares costs at most epsilon. [test_shares_of_mu_fit_the_budget]
    """
    return max_mu(budget, reserved_delta=reserved_delta) * (1 - _ROUNDING)


@lru_cache(maxsize=1024)
def max_mu(budget: Budget, *, reserved_delta: float = 0.0) -> float:
    """Return the limit that the ledger enforces: close below the exact one, and never above.

    Guarantees:
        Its delta is at most the budget's, however small that or epsilon is.
        [test_no_budget_is_exceeded_at_the_extremes]
    """
    left = budget.delta - reserved_delta
    if left <= 0:
        return 0.0
    if not budget.is_private:
        return math.inf
    # The root finder stops within 1e-12 of the answer, on either side. Where epsilon is tiny, its two terms agree in
    # nearly all digits: it stops anywhere, or not at all.
    try:
        with np.errstate(divide="ignore"):
            guess = (1 - _MARGIN) / get_sigma_gaussian(budget.epsilon, left)
    except (RuntimeError, ValueError, ArithmeticError):
        guess = math.nan
    sound = sound_mu(budget.epsilon, left, guess)
    return guess if sound == guess else (1 - _MARGIN) * sound


@lru_cache(maxsize=1024)
def most_under_replace(budget: Budget) -> float:
    """Return the most that Gaussian releases planned for add or remove cost under replace: mu is at most doubled.

    Delta events only lower it, and prices of parts add up to less. (Both are computed, not proved: see the test.)

    Guarantees:
        No way to spend the budget costs more.  [test_no_path_costs_more_than_is_promised]
    """
    if not budget.is_private:
        return math.inf
    price = epsilon_at(2 * max_mu(budget), budget.delta)
    return price * (1 + _BELOW)


def multiplier_for(share: float) -> float:
    """Return the noise multiplier of one Gaussian release that costs `share` of mu²; 0 if share is inf."""
    if not share > 0:
        raise PrivacyError(f"a Gaussian release was planned with a share of {share} of mu²; expected more than 0.")
    return 1 / math.sqrt(share)


def calibrate(planned: Iterable[tuple[Event, int]], budget: Budget) -> Events:
    """Scale all noise multipliers of a plan by one factor, so that the plan costs the budget.

    The multipliers in `planned` are relative. Delta events stay as they are. With epsilon=inf every
    multiplier becomes 0.

    Guarantees:
        The price is at most epsilon and at least 0.999 epsilon. [test_calibrated_plan_costs_the_budget]
    """
    events = tuple(planned)
    total = tally(events, budget.neighbours)
    if total.delta >= budget.delta:
        raise BudgetError(
            f"the planned delta events spend {total.delta:g} of delta {budget.delta:g}, which leaves nothing for "
            "noise; plan smaller ones, or give a larger delta."
        )
    if not budget.is_private:
        return _scaled(events, 0.0)
    if total.gaussian == 0 and not total.sampled:
        return events
    if not math.isfinite(total.gaussian):
        raise PrivacyError("a planned event has noise multiplier 0: no scale can give it a finite price.")
    if not total.sampled:
        mu = gaussian_mu(budget, reserved_delta=total.delta)
        return _scaled(events, math.sqrt(total.gaussian) / mu)
    return _calibrate_by_price(events, budget)


def _calibrate_by_price(events: Events, budget: Budget) -> Events:
    """Search the factor by pricing: epsilon falls as the factor grows.

    Little noise is slow to price (its losses spread far), so the search comes from much noise.
    """
    target = budget.epsilon * (1 - _BELOW / 4)
    smallest = min(event.noise_multiplier for event, _ in events if isinstance(event, PoissonGaussianEvent))
    factor = max(1.0, _MUCH_NOISE / smallest) if smallest > 0 else 1.0
    too_little, enough, slope = 0.0, math.inf, -1.0
    last: tuple[float, float] | None = None
    for _ in range(100):
        plan = _scaled(events, factor)
        price = epsilon(plan, delta=budget.delta, neighbours=budget.neighbours)
        if budget.epsilon * (1 - _BELOW / 2) <= price <= budget.epsilon:
            return plan
        if price > target:
            too_little = factor
        else:
            enough = factor
        if last is not None and 0 < price < math.inf:
            slope = min(-0.5, math.log(price / last[1]) / math.log(factor / last[0]))
        last = (factor, price) if 0 < price < math.inf else None
        factor = _next_factor(factor, price / target, slope, too_little, enough)
    raise PrivacyError(
        f"no noise was found for which the plan costs epsilon={budget.epsilon:g} at delta={budget.delta:g}; "
        "plan fewer sampled events, or give a larger epsilon or delta."
    )


def _next_factor(factor: float, ratio: float, slope: float, too_little: float, enough: float) -> float:
    """Guess that epsilon is a power of the factor; halve the bracket where the guess leaves it."""
    step = ratio ** (-1 / slope) if 0 < ratio < math.inf else ratio
    guess = factor * min(max(step, 0.8), 4.0)
    if too_little < guess < enough:
        return guess
    return factor * 2 if math.isinf(enough) else (too_little + enough) / 2


def _scaled(events: Events, factor: float) -> Events:
    return tuple((_scale_one(event, factor), count) for event, count in events)


def _scale_one(event: Event, factor: float) -> Event:
    if isinstance(event, DeltaEvent):
        return event
    if isinstance(event, PoissonGaussianEvent):
        return replace(event, noise_multiplier=event.noise_multiplier * factor)
    return replace(
        event,
        noise_multiplier=event.noise_multiplier * factor,
        replace_multiplier=event.replace_multiplier * factor,
    )
