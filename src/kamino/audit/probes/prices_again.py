"""What lists of events cost, and how much noise a budget allows, by numerics of our own and at more budgets than one.

The price of a recorded run is computed again by a check; a made-up run has few kinds of events. Here lists of all kinds
are priced, and everything that is derived from a budget: the most mu, the most under replace, calibrated noise, and
what an attacker can guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

import numpy as np

from kamino.audit.loss_distribution import Releases, compose, gaussian_delta, gaussian_epsilon
from kamino.audit.probes.probe import Probe
from kamino.privacy import (
    Budget,
    DeltaEvent,
    Event,
    GaussianEvent,
    Neighbours,
    PoissonGaussianEvent,
    calibrate,
    epsilon,
    gaussian_mu,
)
from kamino.privacy.accounting.calibration import max_mu, most_under_replace
from kamino.privacy.accounting.meaning import meaning_of_budget

Listed = Sequence[tuple[Event, int]]

_DELTA = 1e-6
# Prices of sampled events are numerical, twice; closed forms agree far better.
_ALIKE, _CLOSE = 3e-3, 1e-5
_BUDGETS = tuple(Budget(epsilon=eps, delta=delta) for eps in (0.1, 1.0, 8.0) for delta in (1e-9, 1e-5))
_PLAN: Listed = ((GaussianEvent(noise_multiplier=3.0), 2), (DeltaEvent(delta=2e-7), 1))
_SAMPLED = (
    PoissonGaussianEvent(noise_multiplier=1.1, sampling_rate=0.05),
    PoissonGaussianEvent(noise_multiplier=6.0, sampling_rate=0.3),
)


def price_problems_of_lists() -> Iterator[str]:
    """Tell which lists of events, and which budgets, have a price that is not ours."""
    gaussians = list(_gaussian_lists())
    yield from _of_lists(gaussians, _CLOSE)
    yield from _of_budgets()
    yield from _calibrated(_PLAN)
    # Sampled events take longer.
    yield from _of_lists([[(_SAMPLED[0], 10), *gaussians[1], (_SAMPLED[0], 20), (_SAMPLED[1], 3)]], _ALIKE)
    yield from _calibrated([*_PLAN, (_SAMPLED[1], 5)])


def own_price(events: Listed, delta: float, relation: Neighbours) -> float:
    """Return the epsilon at delta of events under a relation, by our own numerics."""
    left = delta - sum(event.delta * count for event, count in events if isinstance(event, DeltaEvent))
    squares, sampled = 0.0, []
    for event, count in events:
        if isinstance(event, GaussianEvent):
            squares += count / event.multiplier(relation) ** 2
        elif isinstance(event, PoissonGaussianEvent):
            sampled.append(
                Releases(noise_multiplier=event.noise_multiplier, sampling_rate=event.sampling_rate, count=count)
            )
    if left < 0 or (left == 0 and (squares or sampled)):
        return math.inf
    if not sampled:
        return gaussian_epsilon(math.sqrt(squares), left) if squares else 0.0
    full = [Releases(noise_multiplier=1 / math.sqrt(squares))] if squares else []
    return compose([*full, *sampled], relation).epsilon(left)


def _gaussian_lists() -> Iterator[Listed]:
    """Lists of Gaussian events, of every other one with delta events, each once or several times."""
    rng = np.random.default_rng(3)
    for number in range(8):
        noises = [(float(rng.uniform(4, 40)), float(rng.uniform(0.5, 1.2))) for _ in range(rng.integers(1, 5))]
        gaussians: list[tuple[Event, int]] = [
            (GaussianEvent(noise_multiplier=z, replace_multiplier=z * part), int(rng.integers(1, 6)))
            for z, part in noises
        ]
        yield [*gaussians, (DeltaEvent(delta=1.5e-7), int(rng.integers(1, 4)))] if number % 2 else gaussians


def _of_lists(lists: Sequence[Listed], alike: float) -> Iterator[str]:
    for events in lists:
        kind = "sampled" if any(isinstance(event, PoissonGaussianEvent) for event, _ in events) else "Gaussian"
        for relation in Neighbours:
            stated, own = epsilon(events, delta=_DELTA, neighbours=relation), own_price(events, _DELTA, relation)
            if not abs(stated - own) <= alike * own:
                yield f"{kind} events cost epsilon {stated:.4g} under {relation.value}, by our own numerics {own:.4g}"


def _of_budgets() -> Iterator[str]:
    normal = NormalDist()
    for budget in _BUDGETS:
        name = f"epsilon {budget.epsilon:g} at delta {budget.delta:g}"
        for reserved in (0.0, budget.delta / 3):
            for most in (max_mu(budget, reserved_delta=reserved), gaussian_mu(budget, reserved_delta=reserved)):
                cost = gaussian_epsilon(most, budget.delta - reserved)
                if not (1 - _ALIKE) * budget.epsilon <= cost <= budget.epsilon * (1 + _CLOSE):
                    yield f"a budget of {name} allows Gaussian releases of epsilon {cost:.4g}"
        mu, most = max_mu(budget), most_under_replace(budget)
        if gaussian_delta(2 * mu, most) > budget.delta * (1 + _CLOSE):
            yield f"what is promised under replace for {name} is less than releases may cost"
        meaning = meaning_of_budget(budget)
        if abs(meaning.guess - normal.cdf(mu / 2)) > _CLOSE:
            yield f"a guess is said to be right less often than it may be, or more often, for {name}"
        if abs(meaning.true_positives - normal.cdf(normal.inv_cdf(0.01) + mu)) > _CLOSE:
            yield f"a test is said to find less than it may, or more, for {name}"


def _calibrated(plan: Listed) -> Iterator[str]:
    for relation in Neighbours:
        budget = Budget(epsilon=2.0, delta=_DELTA, neighbours=relation)
        cost = own_price(calibrate(plan, budget), _DELTA, relation)
        if not (1 - _ALIKE) * budget.epsilon <= cost <= budget.epsilon * (1 + _ALIKE):
            yield f"a plan that was calibrated to epsilon {budget.epsilon:g} costs {cost:.4g} ({relation.value})"


PRICES = Probe(
    name="prices of lists",
    does="Lists of events of all kinds are priced, and all that follows from budgets, by numerics of our own.",
    cannot="Prices at the extremes of epsilon and delta, which tests compare with exact ones.",
    search=price_problems_of_lists,
)
