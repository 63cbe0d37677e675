"""What was released, and what it cost: charged before any draw, refused where the budget would not hold.

A ledger holds public facts only: it may be printed, stored and published.

    >>> ledger = Ledger(Budget(epsilon=1.0, delta=1e-6))
    >>> from kamino.privacy.accounting.events import GaussianEvent
    >>> event = GaussianEvent(noise_multiplier=6.0, replace_multiplier=6.0 / 2**0.5)
    >>> ledger.charge(Entry(kind="counts", what="ages", attributes=("age",), events=((event, 1),)))
    >>> round(ledger.spent(), 3), round(ledger.spent(Neighbours.REPLACE), 3)
    (0.686, 0.995)
    >>> round(ledger.promised(Neighbours.REPLACE), 3)
    2.125
    >>> round(ledger.gaussian_left(), 5)
    0.02825
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TypeAlias

from kamino.errors import BudgetError, PrivacyError
from kamino.privacy.accounting.accountant import Tally, epsilon_of
from kamino.privacy.accounting.budget import Budget, Neighbours
from kamino.privacy.accounting.calibration import gaussian_mu, max_mu, most_under_replace
from kamino.privacy.accounting.events import DeltaEvent, Event, Events, GaussianEvent
from kamino.privacy.noise import NOT_PRIVATE
from kamino.privacy.unit import PrivacyUnit

# What is set aside is divided by the caller in floating point.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One release. Every field may be published: private data reaches none but through other releases."""

    kind: str
    """Which mechanism: counts, vector, categories, bounds."""
    what: str
    """What was released, in words."""
    attributes: tuple[str, ...]
    events: Events
    sigma: float = 0.0
    """The scale of the noise, in the units of the released values; 0 for none."""
    sensitivity: float = 0.0
    """The L2 sensitivity of the released values to one privacy unit, under the run's relation."""
    grid: float = 1.0
    """The released values are whole multiples of it, noise included."""
    shape: tuple[int, ...] = ()
    parameters: tuple[tuple[str, float], ...] = ()
    """What else the mechanism was told."""
    from_aside: float = 0.0
    """The part of delta that it takes from what was set aside, and so paid for, before."""


@dataclass(frozen=True, kw_only=True)
class Sealed:
    """The first entries of a run, priced by themselves: their epsilon under each relation, at a delta of their own.

    Under the relation that the run is not planned for, the epsilon is the most that it can be (see `Ledger.promised`).
    """

    epsilon: Mapping[Neighbours, float]
    delta: float
    num_entries: int

    def to_dict(self) -> dict[str, object]:
        """Return plain data; infinite numbers are None."""
        prices = {relation.value: _finite(price) for relation, price in self.epsilon.items()}
        return {"entries": self.num_entries, "epsilon": prices, "delta": self.delta}


# Sees a release before or after it is charged: what it is about and what it costs, and no value.
Watch: TypeAlias = "Callable[[Entry], None]"


class Ledger:
    """The entries of one run, never above its budget.

    Which Gaussian release comes next, and with how much noise, may depend on earlier releases: mu² adds up all the same
    (Smith, Thakurta 2022). Sampled events have no such rule: their number and parameters must not depend on releases
    that they are priced together with. Whoever plans them from earlier releases calls `seal` first.

    Guarantees:
        A charge over the budget raises and changes nothing.  [test_charge_over_budget_raises_and_draws_nothing]
        n events in one charge cost what n charges cost.  [test_charging_n_at_once_equals_n_charges]
        What it spent is never above epsilon.  [test_ledger_never_goes_over]
        What it promises is never exceeded, under either relation.  [test_no_path_costs_more_than_is_promised]
        What takes from the delta that was set aside costs no more delta.  [test_delta_is_set_aside_once]
        Parts that are sealed apart cost the sum of their prices.  [test_sealed_parts_add_up]
    """

    def __init__(self, budget: Budget, *, unit: PrivacyUnit | None = None, mark: str = "") -> None:
        self.budget = budget
        self.unit = unit or PrivacyUnit()
        self.mark = mark if budget.is_private else NOT_PRIVATE
        """Why the run must not be released: "", "not for release" or "not private"."""
        self.on_charge: Callable[[Entry], None] | None = None
        """Told of each charge that fits, before it counts and so before any draw; if it raises, nothing is charged."""
        self._watches: list[tuple[Watch, Watch | None]] = []
        self._entries: list[Entry] = []
        self._tallies = {relation: Tally() for relation in Neighbours}
        self._sealed: list[Sealed] = []
        self._aside = 0.0
        self._unbounded = False

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All entries, in the order they were charged."""
        return tuple(self._entries)

    def watch(self, before: Watch, *, after: Watch | None = None) -> Callable[[], None]:
        """Let `before` see every entry before it is charged, and `after` once it is; returns what ends that.

        What `before` raises keeps the release from being charged and made. Neither sees a private value.

        Guarantees:
            What is refused is neither charged nor drawn.  [test_a_watched_gate_charges_nothing_that_is_refused]
        """
        pair = (before, after)
        self._watches.append(pair)
        return lambda: self._watches.remove(pair)

    def charge(self, entry: Entry) -> None:
        """Enter one release, or raise `BudgetError` and enter nothing."""
        for before, _ in tuple(self._watches):
            before(entry)
        tallies = {}
        for relation, total in self._tallies.items():
            for event, count in entry.events:
                total = total.plus(event, count, relation)
            tallies[relation] = total
        if entry.from_aside > self._aside * (1 + _ROUNDING):
            raise BudgetError(
                f"releasing {entry.what!r} would take {entry.from_aside:g} of the delta that was set aside, of which "
                f"{self._aside:g} is left. Nothing was drawn. Set more aside first, or plan fewer releases."
            )
        if self.budget.is_private and not _fits(tallies[self.budget.neighbours], self.open_budget):
            raise BudgetError(
                f"releasing {entry.what!r} on {', '.join(entry.attributes) or 'no attribute'} would go over the "
                f"budget of epsilon={self.budget.epsilon:g}, delta={self.budget.delta:g}; {self.spent():.6g} of "
                "epsilon is spent. Nothing was drawn. Plan fewer releases, more noise, or a larger budget."
            )
        if self.budget.is_private and not self._keeps_promise(tallies):
            raise BudgetError(
                f"releasing {entry.what!r} could cost more than the epsilon={self.promised(Neighbours.REPLACE):g} that "
                "the run promises under replace. Nothing was drawn. Plan fewer or noisier sampled releases, or plan "
                "the run for replace."
            )
        if self.on_charge is not None:
            self.on_charge(entry)
        self._unbounded |= any(_is_unbounded(event, self.budget.neighbours) for event, _ in entry.events)
        self._aside = max(0.0, self._aside - entry.from_aside)
        self._tallies = tallies
        self._entries.append(entry)
        for _, after in tuple(self._watches):
            if after is not None:
                after(entry)

    def set_aside(self, delta: float, *, what: str) -> None:
        """Charge `delta` now, for releases that later take parts of it: what is spent then follows from no release.

        How many releases will take from it may follow from releases. What none takes is spent all the same.
        """
        spent = delta if self.budget.is_private else 0.0
        self.charge(Entry(kind="aside", what=what, attributes=(), events=((DeltaEvent(delta=spent), 1),)))
        self._aside += delta

    def seal(self, *, delta_part: float = 0.1) -> None:
        """Price what was charged so far by itself, so that what follows may be planned from it in any way.

        The sealed part takes `delta_part` of the delta that is left, besides what its delta events take, and costs the
        epsilon of its events at that delta. Whatever was released, all that follows is (epsilon, delta)-private with
        what is left of both, so the two add up (basic composition, which holds for parameters chosen on the way).
        """
        if all(total == Tally() for total in self._tallies.values()):
            return
        if not 0 < delta_part < 1:
            raise PrivacyError(f"a part is sealed with {delta_part} of delta; expected a number between 0 and 1.")
        used = self._tallies[self.budget.neighbours].delta
        delta = used + delta_part * (self.open_budget.delta - used)
        prices = {r: epsilon_of(self._most(self._tallies, r), delta=delta, neighbours=r) for r in Neighbours}
        if self.budget.is_private and prices[self.budget.neighbours] >= self.open_budget.epsilon:
            raise BudgetError(
                f"what was released so far costs epsilon={prices[self.budget.neighbours]:.6g} by itself, which leaves "
                f"nothing of {self.open_budget.epsilon:g} for what follows; declare domains in the schema instead of "
                "having them found, or give a larger budget."
            )
        self._sealed.append(Sealed(epsilon=prices, delta=delta, num_entries=len(self._entries)))
        self._tallies = {relation: Tally() for relation in Neighbours}

    @property
    def sealed(self) -> tuple[Sealed, ...]:
        """The parts that were sealed, in their order."""
        return tuple(self._sealed)

    @property
    def open_budget(self) -> Budget:
        """What is left for the part that is not sealed: all of the budget, if nothing is."""
        if not self._sealed or not self.budget.is_private:
            return self.budget
        own = self.budget.neighbours
        return Budget(
            epsilon=self.budget.epsilon - sum(part.epsilon[own] for part in self._sealed),
            delta=self.budget.delta - sum(part.delta for part in self._sealed),
            neighbours=own,
        )

    def spent(self, neighbours: Neighbours | None = None) -> float:
        """Return the epsilon of the releases so far at the budget's delta, by default under the run's relation.

        Under the other relation it is the price of the releases that happened to be made, and no promise: see
        `promised`.
        """
        relation = neighbours or self.budget.neighbours
        sealed = sum(part.epsilon[relation] for part in self._sealed)
        return sealed + epsilon_of(self._tallies[relation], delta=self.open_budget.delta, neighbours=relation)

    def promised(self, neighbours: Neighbours) -> float:
        """Return the most that a run with this budget can cost under a relation, whichever releases it comes to.

        Which releases a run makes follows from earlier ones, and so does what they cost under the relation that was not
        asked for: the price of those that were made bounds nothing. Under the run's own relation this is the budget.
        Under replace, a run that is planned for add or remove moves at most twice as far in every release, for a
        replacement is a removal and an addition: mu is at most doubled. The ledger checks that sampled releases keep to
        the same epsilon. Under add or remove, a run that is planned for replace costs no more than that: a row that
        moves a sum not at all is a row to replace by. Only a query whose sensitivity is declared under replace alone
        (see `Sensitivity`) promises nothing there; no run of Kamino has one.
        """
        if neighbours is self.budget.neighbours or not self.budget.is_private:
            return self.budget.epsilon
        if neighbours is Neighbours.REPLACE:
            return most_under_replace(self.budget)
        return math.inf if self._unbounded else self.budget.epsilon

    def holds(self, events: Events) -> bool:
        """Whether all of these events could be charged now, under every relation that something is promised for.

        Guarantees:
            What it holds is charged in any order and in any parts.  [test_what_a_ledger_holds_can_be_charged]
        """
        tallies = dict(self._tallies)
        for event, count in events:
            tallies = {relation: total.plus(event, count, relation) for relation, total in tallies.items()}
        own = tallies[self.budget.neighbours]
        return not self.budget.is_private or (_fits(own, self.open_budget) and self._keeps_promise(tallies))

    def _keeps_promise(self, tallies: Mapping[Neighbours, Tally]) -> bool:
        """Whether releases stay within what is promised under replace, if each moves as far as it may there."""
        own = tallies[self.budget.neighbours]
        if self.budget.neighbours is Neighbours.REPLACE or not (own.sampled or self._sealed):
            return True  # Gaussian releases within mu cost at most what they do at twice mu
        most = self._most(tallies, Neighbours.REPLACE)
        price = epsilon_of(most, delta=self.open_budget.delta, neighbours=Neighbours.REPLACE)
        sealed = sum(part.epsilon[Neighbours.REPLACE] for part in self._sealed)
        return sealed + price <= self.promised(Neighbours.REPLACE)

    def _most(self, tallies: Mapping[Neighbours, Tally], neighbours: Neighbours) -> Tally:
        """A tally with all Gaussian releases as dear as they may be under a relation the run is not planned for."""
        if neighbours is self.budget.neighbours or neighbours is Neighbours.ADD_REMOVE:
            return tallies[neighbours]
        return replace(tallies[neighbours], gaussian=4 * tallies[self.budget.neighbours].gaussian)

    def gaussian_left(self) -> float:
        """Return how much mu² is left for Gaussian releases; inf if epsilon is inf.

        Raises:
            PrivacyError: if a sampled event was charged: mu² then does not add up.
        """
        total = self._tallies[self.budget.neighbours]
        if total.sampled:
            raise PrivacyError(
                "sampled events were charged, so what is left is not a number of mu²; plan with calibrate() instead."
            )
        if not self.budget.is_private:
            return math.inf
        return max(0.0, gaussian_mu(self.open_budget, reserved_delta=total.delta) ** 2 - total.gaussian)

    def delta_left(self) -> float:
        """Return how much of delta the delta events have not spent."""
        return self.open_budget.delta - self._tallies[self.budget.neighbours].delta

    def to_rows(self) -> list[dict[str, object]]:
        """Return one flat row for each entry, for a table or a file."""
        return [_row(number, entry) for number, entry in enumerate(self._entries, start=1)]

    def to_dict(self) -> dict[str, object]:
        """Return all of the ledger as plain data; infinite numbers are None."""
        return {
            "epsilon": _finite(self.budget.epsilon),
            "delta": self.budget.delta,
            "neighbours": self.budget.neighbours.value,
            "unit": {
                "column": self.unit.column,
                "max_rows": self.unit.max_rows,
                "text": self.unit.describe(),
                **({} if self.unit.family is None else {"family": self.unit.family}),
            },
            "mark": self.mark,
            "spent_epsilon": {relation.value: _finite(self._stated(relation)) for relation in Neighbours},
            "sealed": [part.to_dict() for part in self._sealed],
            "entries": self.to_rows(),
        }

    def _stated(self, neighbours: Neighbours) -> float:
        """What a reader is told: what was spent, and under the other relation the most that it can be."""
        if neighbours is self.budget.neighbours or not self._entries:
            return self.spent(neighbours)
        return self.promised(neighbours)

    def to_json(self) -> str:
        """Return `to_dict` as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def __repr__(self) -> str:
        return f"Ledger({self.budget!r}, entries={len(self._entries)}, mark={self.mark!r})"


def _fits(total: Tally, budget: Budget) -> bool:
    if total.delta > budget.delta:
        return False
    if total.sampled:
        return epsilon_of(total, delta=budget.delta, neighbours=budget.neighbours) <= budget.epsilon
    return total.gaussian <= max_mu(budget, reserved_delta=total.delta) ** 2


def _is_unbounded(event: Event, neighbours: Neighbours) -> bool:
    """Whether an event may cost more under add or remove than under replace, for which it was planned."""
    if neighbours is Neighbours.ADD_REMOVE or not isinstance(event, GaussianEvent):
        return False
    return event.noise_multiplier < event.replace_multiplier * (1 - _ROUNDING)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _row(number: int, entry: Entry) -> dict[str, object]:
    events = [{"type": type(event).__name__, "count": count, **asdict(event)} for event, count in entry.events]
    return {
        "number": number,
        "kind": entry.kind,
        "what": entry.what,
        "attributes": list(entry.attributes),
        "sigma": entry.sigma,
        "sensitivity": _finite(entry.sensitivity),
        "noise_multiplier": _finite(entry.sigma / entry.sensitivity) if entry.sensitivity else None,
        "grid": entry.grid,
        "shape": list(entry.shape),
        "parameters": {name: _finite(value) for name, value in entry.parameters},
        "from_aside": entry.from_aside,
        "events": events,
    }
