"""What the releases of a recorded run cost, from the noise they were made with, by numbers of our own.

The ledger says what was charged; here the price follows from what was released. Each release has a scale of noise, a
sensitivity and, of a sample, a rate; a set of categories has a threshold that a category of one unit may pass. Their
price is computed without `dp_accounting` and compared with the claim.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.audit.loss_distribution import Releases, compose, gaussian_epsilon
from kamino.privacy import GaussianEvent, Neighbours, PoissonGaussianEvent
from kamino.privacy.ledger import Entry, Ledger
from kamino.testing.replay import Record

# Both prices are numerical: two thousandths apart is agreement.
_ALIKE = 2e-3
_ROUNDING = 1e-6
# Whole-number noise of this much more variance is as private as continuous noise (see `kamino.privacy`).
_EXTRA_VARIANCE = 1 / 8
_STEP = "gradient step"


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a run costs: epsilon at delta, of which a part goes to categories."""

    epsilon: float
    delta: float
    categories_delta: float


def price_problems(records: Sequence[Record], ledger: Ledger) -> tuple[str, ...]:
    """Return what is wrong with the charges of a recorded run; nothing if they cover what was released.

    Guarantees:
        Half of a delta, less noise than charged, a release without charge, another relation: all are seen.
        [test_every_planted_fault_is_caught]
    """
    if not ledger.budget.is_private:
        return ()
    problems = [*_uncharged(records, ledger), *_unlike(ledger)]
    charged = sum(e.delta * n for entry in ledger.entries for e, n in entry.events if hasattr(e, "delta"))
    price = reprice(records, ledger)
    if price.categories_delta > charged * (1 + _ROUNDING):
        problems.append(
            f"categories may show one unit with probability {price.categories_delta:.3g}, but delta {charged:.3g} was "
            "charged for it"
        )
    claimed = ledger.spent()
    for name, most in (("the ledger says", claimed), ("the budget is", ledger.budget.epsilon)):
        if price.epsilon > most * (1 + _ALIKE):
            problems.append(f"the releases cost epsilon {price.epsilon:.4g}, but {name} {most:.4g}")
    return tuple(dict.fromkeys(problems))


def reprice(records: Sequence[Record], ledger: Ledger) -> Price:
    """Return what the releases of a recorded run cost at the budget's delta."""
    relation, delta = ledger.budget.neighbours, ledger.budget.delta
    rare = sum(_rare(entry, ledger.unit.max_rows) for entry, _, _ in records if entry.kind == "categories")
    charged = sum(e.delta * n for entry in ledger.entries for e, n in entry.events if hasattr(e, "delta"))
    sealed = list(ledger.entries[: ledger.sealed[-1].num_entries]) if ledger.sealed else []
    first = [releases for entry, _, _ in records if entry in sealed for releases in _releases(entry, relation)]
    rest = [releases for entry, _, _ in records if entry not in sealed for releases in _releases(entry, relation)]
    total, left = 0.0, delta - max(rare, charged)
    if first:
        part = sum(each.delta for each in ledger.sealed)
        total, left = price_of(first, relation, part), left - part
    return Price(epsilon=total + price_of(rest, relation, left), delta=delta, categories_delta=rare)


def price_of(releases: Sequence[Releases], relation: Neighbours, delta: float) -> float:
    """Return the epsilon of some releases at a delta."""
    if not releases:
        return 0.0
    if delta <= 0 or any(each.noise_multiplier <= 0 for each in releases):
        return math.inf
    return compose(joined(releases), relation).epsilon(delta) if _sampled(releases) else _gaussian(releases, delta)


def joined(releases: Sequence[Releases]) -> list[Releases]:
    """Return the same releases with equal ones counted, and all that are not sampled as one."""
    full = [each for each in releases if each.sampling_rate >= 1]
    counts: dict[tuple[float, float], int] = {}
    for each in releases:
        if each.sampling_rate < 1:
            key = each.noise_multiplier, each.sampling_rate
            counts[key] = counts.get(key, 0) + each.count
    found = [Releases(noise_multiplier=z, sampling_rate=q, count=n) for (z, q), n in counts.items()]
    return [*([Releases(noise_multiplier=1 / _mu(full))] if full else []), *found]


def charged_releases(ledger: Ledger) -> list[Releases]:
    """Return what a ledger was charged for, as releases."""
    found = []
    for entry in ledger.entries:
        for event, count in entry.events:
            if isinstance(event, GaussianEvent):
                multiplier = event.multiplier(ledger.budget.neighbours)
                found.append(Releases(noise_multiplier=multiplier, count=count))
            elif isinstance(event, PoissonGaussianEvent):
                found.append(
                    Releases(noise_multiplier=event.noise_multiplier, sampling_rate=event.sampling_rate, count=count)
                )
    return found


def _mu(releases: Sequence[Releases]) -> float:
    return math.sqrt(sum(each.count / each.noise_multiplier**2 for each in releases))


def _sampled(releases: Sequence[Releases]) -> bool:
    return any(each.sampling_rate < 1 for each in releases)


def _gaussian(releases: Sequence[Releases], delta: float) -> float:
    return gaussian_epsilon(_mu(releases), delta)


def _releases(entry: Entry, relation: Neighbours) -> Iterator[Releases]:
    """What one played release costs, from its noise; coins cost nothing."""
    if entry.kind == "coins":
        return
    rate = dict(entry.parameters).get("sampling_rate")
    if rate is not None:
        yield Releases(noise_multiplier=entry.sigma / _added(entry, relation), sampling_rate=rate)
    else:
        yield Releases(noise_multiplier=noise_multiplier(entry))


def _added(entry: Entry, relation: Neighbours) -> float:
    """What a row adds to a sum over a sample: to replace it moves the sum twice as far."""
    return entry.sensitivity / (2 if relation is Neighbours.REPLACE else 1)


def noise_multiplier(entry: Entry) -> float:
    """Return the noise of whole numbers as that of continuous noise that is as private, by the sensitivity."""
    variance = (entry.sigma / entry.grid) ** 2 - _EXTRA_VARIANCE
    return math.sqrt(max(variance, 0.0)) * entry.grid / entry.sensitivity if entry.sensitivity else 0.0


def _uncharged(records: Sequence[Record], ledger: Ledger) -> Iterator[str]:
    """Releases that were made and not charged, or charged more seldom than made."""
    left = list(ledger.entries)
    steps: dict[str, int] = {}
    for entry, _, _ in records:
        if entry.kind == _STEP:
            steps[entry.what] = steps.get(entry.what, 0) + 1
        elif entry.kind != "coins":
            if entry in left:
                left.remove(entry)
            else:
                yield f"{entry.what} was released and not charged"
    for what, count in steps.items():
        paid = sum(n for entry in ledger.entries if entry.what == what for _, n in entry.events)
        if paid < count:
            yield f"{what}: {count} steps were made and {paid} charged"


def _unlike(ledger: Ledger) -> Iterator[str]:
    """Entries whose charge is for more noise than they have."""
    for entry in ledger.entries:
        for event, _ in entry.events:
            if isinstance(event, GaussianEvent):
                charged, has = event.multiplier(ledger.budget.neighbours), noise_multiplier(entry)
            elif isinstance(event, PoissonGaussianEvent):
                charged, has = event.noise_multiplier, entry.sigma / _added(entry, ledger.budget.neighbours)
            else:
                continue
            if charged > has * (1 + _ROUNDING):
                yield f"{entry.what} is charged for more noise than it has"


def _rare(entry: Entry, max_rows: int) -> float:
    """The largest probability that categories of one unit alone pass the threshold, in any attribute of the release.

    See the mechanism's proof: a unit may have its own categories in each attribute.
    """
    threshold = int(dict(entry.parameters)["threshold"])
    half = math.ceil(12 * entry.sigma) + threshold + 1
    support = np.arange(-half, half + 1)
    weights = np.exp(-(support.astype(float) ** 2) / (2 * entry.sigma**2))
    weights /= weights.sum()
    tails = [own * float(weights[support >= threshold - (max_rows - own + 1)].sum()) for own in range(1, max_rows + 1)]
    return len(entry.attributes) * max(tails)
