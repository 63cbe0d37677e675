"""What the events of a published ledger cost, computed once more from the events alone.

A ledger prices as it is charged, with the private table behind it. Here the same numbers are derived another way, from
what it published: events are added up part by part, and each part is priced once. Whoever has the events needs neither
the table nor the run.

    >>> event = GaussianEvent(noise_multiplier=6.0, replace_multiplier=6.0 / 2**0.5)
    >>> budget = Budget(epsilon=1.0, delta=1e-6)
    >>> found = reprice(budget, [Priced(events=((event, 1),))], [])
    >>> round(found.spent, 3), round(found.stated[Neighbours.REPLACE], 3), found.problems
    (0.686, 2.125, ())
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kamino.errors import PrivacyError
from kamino.privacy.accounting.accountant import Tally, epsilon_of, tally
from kamino.privacy.accounting.budget import Budget, Neighbours
from kamino.privacy.accounting.calibration import most_under_replace
from kamino.privacy.accounting.events import Event, Events, GaussianEvent, PoissonGaussianEvent
from kamino.privacy.ledger import Sealed

MAX_SAMPLED_KINDS = 20
"""Different sampled events in one part: each is composed by itself."""

MAX_LOSS = 100.0
"""Of one sampled release, nearly: losses are laid out in steps of 1e-4, and each step takes a search."""

MAX_SPREAD = 1_000.0
"""Of the losses of all sampled releases of a part together: memory grows with it."""

_ROUNDING = 1e-9
# Deviations of the composed loss that are laid out, and of the noise of one release.
_TAILS = 12.0


@dataclass(frozen=True, kw_only=True)
class Priced:
    """One release as a ledger lists it: its events, and its part in delta that was set aside before."""

    events: Events
    sets_aside: float = 0.0
    from_aside: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a list of releases costs: what was `spent` under the run's relation, and what is `stated` under each.

    Under the relation that the run was not planned for, that is the most that any course of it can cost. `sealed` are
    the prices of the parts that were priced by themselves. `problems` say why the releases do not fit the budget.
    """

    spent: float
    stated: Mapping[Neighbours, float]
    sealed: tuple[Mapping[Neighbours, float], ...]
    problems: tuple[str, ...]


def reprice(budget: Budget, entries: Sequence[Priced], sealed: Sequence[Sealed]) -> Price:
    """Price all entries; `sealed` says where parts end that are priced by themselves, and at which delta.

    Raises:
        PrivacyError: parts that do not follow each other, or events that would take too long to price.

    Guarantees:
        It is what the ledger of the run says.  [test_repricing_agrees_with_the_ledger]
        Events that would take long to price are refused.  [test_events_that_take_long_to_price_are_refused]
    """
    own = budget.neighbours
    parts = list(_parts(entries, sealed))
    tallies = [{relation: tally(_events(part), relation) for relation in Neighbours} for part in parts]
    for each in tallies:
        _refuse_long_work(each, own)
    deltas = [part.delta for part in sealed]
    deltas.append(budget.delta - sum(deltas) if budget.is_private else budget.delta)
    if min(deltas) <= 0:
        raise PrivacyError(f"the parts of the ledger spend more than delta {budget.delta:g}; expected less.")
    prices = [
        {r: epsilon_of(_most(each, r, own), delta=delta, neighbours=r) for r in Neighbours}
        for each, delta in zip(tallies, deltas, strict=True)
    ]
    spent = sum(price[own] for price in prices)
    stated = {relation: _stated(budget, relation, spent, entries) for relation in Neighbours}
    return Price(
        spent=spent,
        stated=stated,
        sealed=tuple(prices[:-1]),
        problems=tuple(_problems(budget, spent, sum(p[Neighbours.REPLACE] for p in prices), stated, entries)),
    )


def _parts(entries: Sequence[Priced], sealed: Sequence[Sealed]) -> Iterator[Sequence[Priced]]:
    """The sealed parts, and what follows them."""
    begin = 0
    for part in sealed:
        if not begin <= part.num_entries <= len(entries):
            raise PrivacyError(
                f"a sealed part ends at entry {part.num_entries} of {len(entries)}; expected later ones."
            )
        yield entries[begin : part.num_entries]
        begin = part.num_entries
    yield entries[begin:]


def _events(part: Sequence[Priced]) -> Iterator[tuple[Event, int]]:
    for entry in part:
        yield from entry.events


def _most(tallies: Mapping[Neighbours, Tally], relation: Neighbours, own: Neighbours) -> Tally:
    """A tally with all Gaussian releases as dear as they may be under a relation the run is not planned for.

    To replace is to remove and to add: mu is at most doubled.
    """
    if relation is own or relation is Neighbours.ADD_REMOVE:
        return tallies[relation]
    return replace(tallies[relation], gaussian=4 * tallies[own].gaussian)


def _stated(budget: Budget, relation: Neighbours, spent: float, entries: Sequence[Priced]) -> float:
    """What a reader is told of one relation: see `Ledger.promised`."""
    if relation is budget.neighbours or not entries:
        return spent
    if not budget.is_private:
        return budget.epsilon
    if relation is Neighbours.REPLACE:
        return most_under_replace(budget)
    dearer = any(
        isinstance(event, GaussianEvent) and event.noise_multiplier < event.replace_multiplier * (1 - _ROUNDING)
        for event, _ in _events(entries)
    )
    return math.inf if dearer else budget.epsilon


def _problems(
    budget: Budget,
    spent: float,
    under_replace: float,
    stated: Mapping[Neighbours, float],
    entries: Sequence[Priced],
) -> Iterator[str]:
    """Why releases are not ones that a run with this budget can have made."""
    if not budget.is_private:
        return
    if spent > budget.epsilon * (1 + _ROUNDING):
        yield f"the releases cost epsilon {spent:.6g}, above the budget of {budget.epsilon:g}"
    if budget.neighbours is Neighbours.ADD_REMOVE and under_replace > stated[Neighbours.REPLACE] * (1 + _ROUNDING):
        yield f"the releases can cost epsilon {under_replace:.6g} under replace, above {stated[Neighbours.REPLACE]:.6g}"
    aside = 0.0
    for entry in entries:
        if entry.from_aside > aside * (1 + _ROUNDING):
            yield f"a release takes {entry.from_aside:g} of delta that was set aside, of which {aside:g} is left"
            return
        aside += entry.sets_aside - entry.from_aside


def _refuse_long_work(tallies: Mapping[Neighbours, Tally], own: Neighbours) -> None:
    """Refuse sampled events whose losses spread too far: little noise, or very many of them."""
    for relation in Neighbours:
        total = _most(tallies, relation, own)
        if not total.sampled:
            continue
        if len(total.sampled) > MAX_SAMPLED_KINDS:
            raise PrivacyError(
                f"found {len(total.sampled)} kinds of sampled events, expected at most {MAX_SAMPLED_KINDS}: they would "
                "take too long to price."
            )
        distance = 1.0 if relation is Neighbours.ADD_REMOVE else 2.0
        if not _spread(total, distance) <= MAX_SPREAD:
            raise PrivacyError(
                "found sampled events with so little noise, or so many of them, that they would take too long to price."
            )


def _spread(total: Tally, distance: float) -> float:
    """How far the losses of a tally reach, nearly: mean and deviations of the sum, and the tail of one release."""
    mean, variance, widest = total.gaussian / 2, total.gaussian, 0.0
    for event, count in total.sampled:
        if event.noise_multiplier < 1e-3:
            return math.inf
        one, two, tail = _loss(event, distance)
        if tail > MAX_LOSS:
            return math.inf
        mean, variance, widest = mean + count * one, variance + count * two, max(widest, tail)
    return mean + _TAILS * math.sqrt(variance) + widest


def _loss(event: PoissonGaussianEvent, distance: float) -> tuple[float, float, float]:
    """Mean, second moment and reach of the loss of one sampled release, summed over its noise."""
    z, rate = event.noise_multiplier / distance, event.sampling_rate
    noise = np.linspace(-_TAILS, _TAILS, 2001)
    weights = np.exp(-(noise**2) / 2)
    weights /= weights.sum()
    without = np.log1p(-rate) if rate < 1 else -np.inf
    # The loss where the unit is in the sample, and where it is not: log(1 - q + q exp((2x - 1) / (2 z²))).
    inside = np.logaddexp(np.log(rate) + noise / z + 1 / (2 * z**2), without)
    outside = np.logaddexp(np.log(rate) + noise / z - 1 / (2 * z**2), without)
    mean = rate * (weights @ inside) + (1 - rate) * (weights @ outside)
    square = rate * (weights @ inside**2) + (1 - rate) * (weights @ outside**2)
    return max(0.0, float(mean)), float(square), max(0.0, float(inside.max()))
