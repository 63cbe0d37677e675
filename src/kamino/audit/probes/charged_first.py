"""Whether a gate charges before it draws, and refuses what goes over its budget, by prices of our own.

Made-up releases of every cheap kind are asked for, in any order, until several were refused. What the entries cost is
computed from their events; a release that was refused may not have drawn noise, and one that was made must be entered.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kamino.audit.probes.prices_again import own_price
from kamino.audit.probes.probe import Probe
from kamino.errors import BudgetError
from kamino.privacy import (
    Budget,
    DeltaEvent,
    Event,
    Gate,
    GaussianEvent,
    Ledger,
    Neighbours,
    PoissonGaussianEvent,
    SeededNoise,
)
from kamino.privacy.ledger import Entry
from kamino.privacy.published_price import Priced, reprice

_BUDGET = {"epsilon": 1.5, "delta": 1e-6}
_MOST_RELEASES = 60
_MOST_REFUSED = 6
_NEAR = 1e-5
_ASIDE = 2e-7


class _Watched(SeededNoise):
    """Noise that counts how often it is asked for."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.draws = 0

    def discrete_gaussian(self, sigma: float, shape: tuple[int, ...]) -> Any:
        self.draws += 1
        return super().discrete_gaussian(sigma, shape)


def charging_problems() -> Iterator[str]:
    """Tell what gates charged, drew or refused wrongly."""
    for relation in Neighbours:
        budget = Budget(**_BUDGET, neighbours=relation)
        for seed in range(4):
            yield from _of_a_gate(budget, np.random.default_rng(seed))
        yield from _of_sampled(budget)
        yield from _of_parts(budget)


def _of_a_gate(budget: Budget, rng: np.random.Generator) -> Iterator[str]:
    noise = _Watched(1)
    gate = Gate(budget, noise=noise)
    gate.ledger.set_aside(_ASIDE, what="for categories")
    refused, taken = 0, 0.0
    for _ in range(_MOST_RELEASES):
        before, draws, delta = len(gate.ledger.entries), noise.draws, float(rng.uniform(0.5, 3.0)) * _ASIDE
        multiplier, kind = float(rng.uniform(6, 30)), int(rng.integers(4))
        try:
            _release(gate, kind, multiplier, delta)
        except BudgetError:
            refused += 1
            if noise.draws > draws or len(gate.ledger.entries) > before:
                yield "a release that was refused drew noise, or was entered"
            if _fits(gate.ledger, multiplier, delta / 8 if kind == 3 else 0.0) and not (
                kind == 2 and taken + delta / 8 > _ASIDE
            ):
                yield "a release was refused that the budget has room for"
            if refused == _MOST_REFUSED:
                break
            continue
        taken += delta / 8 if kind == 2 else 0.0
        if len(gate.ledger.entries) != before + 1 or noise.draws != draws + 1:
            yield "a release was made and not entered, or its noise not drawn"
    aside = [pair for entry in gate.ledger.entries if entry.kind == "aside" for pair in entry.events]
    charged = sum(event.delta * count for event, count in aside if isinstance(event, DeltaEvent))
    if taken > charged * (1 + _NEAR):
        yield "releases took more of delta than was set aside and charged"
    yield from _totals(gate.ledger)


def _release(gate: Gate, kind: int, multiplier: float, delta: float) -> None:
    counts = np.arange(5)
    if kind == 0:
        gate.release_counts(counts, what="counts", attributes=("a",), noise_multiplier=multiplier)
    elif kind == 1:
        gate.release_vector(
            counts / 5,
            what="vector",
            attributes=("a",),
            noise_multiplier=multiplier,
            sensitivity=1.0,
            lower=0.0,
            upper=1.0,
        )
    else:
        gate.release_categories({"a": ["x", "y"]}, noise_multiplier=multiplier, delta=delta / 8, set_aside=kind == 2)


def _cost(ledger: Ledger, more: Sequence[tuple[Event, int]] = ()) -> float:
    events = [*(pair for entry in ledger.entries for pair in entry.events), *more]
    return own_price(events, ledger.budget.delta, ledger.budget.neighbours)


def _fits(ledger: Ledger, multiplier: float, delta: float) -> bool:
    """Whether one more release of this noise and delta would cost clearly less than the budget."""
    more: list[tuple[Event, int]] = [(GaussianEvent(noise_multiplier=multiplier, replace_multiplier=multiplier), 1)]
    more += [(DeltaEvent(delta=delta), 1)] if delta else []
    return _cost(ledger, more) < ledger.budget.epsilon * (1 - _NEAR)


def _totals(ledger: Ledger) -> Iterator[str]:
    """Compare what a ledger says of itself, and what is derived from what it publishes, with our price."""
    own = _cost(ledger)
    if own > ledger.budget.epsilon * (1 + _NEAR):
        yield f"a ledger of epsilon {ledger.budget.epsilon:g} holds releases that cost {own:.4g}"
    if abs(ledger.spent() - own) > _NEAR * own:
        yield f"a ledger says that epsilon {ledger.spent():.4g} is spent; its releases cost {own:.4g}"
    aside = {"aside": _ASIDE}
    published = [
        Priced(events=entry.events, sets_aside=aside.get(entry.kind, 0.0), from_aside=entry.from_aside)
        for entry in ledger.entries
    ]
    price = reprice(ledger.budget, published, [])
    if price.problems or abs(price.spent - own) > _NEAR * own:
        yield f"what a ledger publishes is priced as epsilon {price.spent:.4g}; its releases cost {own:.4g}"


def _entry(count: int, noise: float) -> Entry:
    event = PoissonGaussianEvent(noise_multiplier=noise, sampling_rate=0.1)
    return Entry(kind="gradients", what="steps", attributes=(), events=((event, count),))


def _of_sampled(budget: Budget) -> Iterator[str]:
    """Sampled events are admitted up to the budget, whether they come at once or one by one."""
    ledger = Ledger(budget)
    for count in (20, 20, 900, 20):
        with contextlib.suppress(BudgetError):
            ledger.charge(_entry(count, 8.0 if budget.neighbours is Neighbours.REPLACE else 4.0))
    own = _cost(ledger)
    if own > budget.epsilon * 1.003 or len(ledger.entries) != 3:
        yield f"a ledger of epsilon {budget.epsilon:g} holds sampled releases that cost {own:.4g}"


def _of_parts(budget: Budget) -> Iterator[str]:
    """A sealed part and what follows it cost the sum of both, each at its own part of delta."""
    gate = Gate(budget, noise=_Watched(2))
    _release(gate, 0, 9.0, 0.0)
    gate.ledger.seal(delta_part=0.25)
    for _ in range(_MOST_RELEASES):
        try:
            _release(gate, 0, 12.0, 0.0)
        except BudgetError:
            break
    events = [list(entry.events) for entry in gate.ledger.entries]
    first = own_price(events[0], 0.25 * budget.delta, budget.neighbours)
    rest = [pair for each in events[1:] for pair in each]
    total = first + own_price(rest, 0.75 * budget.delta, budget.neighbours)
    if total > budget.epsilon * (1 + _NEAR) or abs(gate.ledger.spent() - total) > _NEAR * total:
        yield f"two parts of a ledger cost epsilon {total:.4g}; it says {gate.ledger.spent():.4g}"


CHARGING = Probe(
    name="charging",
    does="Releases of several kinds are asked of gates until they are refused; entries are priced by our own numerics.",
    cannot="Every order of releases: some made-up ones are tried.",
    search=charging_problems,
)
