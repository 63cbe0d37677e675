"""What a budget means: how often a guess about one row can be right, from the trade-off curve of what was released.

Somebody who knows all other rows tests whether a given row was in the table. Of a test with false-positive rate `a`,
the true-positive rate is at most `1 - f(a)`, where `f` is the trade-off curve. All Gaussian releases together are one
Gaussian mechanism, whose curve is `f(a) = Phi(Phi^-1(1 - a) - mu)` (Dong, Roth, Su 2019, equation 6). Where row and no
row are equally likely, a guess is right at most `(1 + TV) / 2` of the time, and `TV = 2 Phi(mu / 2) - 1`.

    >>> from kamino.privacy.accounting.budget import Budget
    >>> meaning_of_budget(Budget(epsilon=1.0, delta=1e-6)).describe("one row")
    'someone who knows all other rows and guesses whether a given row was in the table is right at most 54.7 times in \
100, where chance is 50; a test with 1 false alarm in 100 finds it at most 1.83 times in 100'
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np

from kamino.privacy.accounting.accountant import Tally, compose
from kamino.privacy.accounting.budget import Budget, Neighbours
from kamino.privacy.accounting.calibration import max_mu
from kamino.privacy.accounting.events import DeltaEvent, Event, GaussianEvent, PoissonGaussianEvent

FALSE_POSITIVES = 0.01
_NORMAL = NormalDist()
# Where a curve is known by epsilon and delta only, it is bounded by the tangents of these epsilons.
_TANGENTS: tuple[float, ...] = tuple(np.concatenate([np.linspace(0, 4, 161), np.linspace(4.25, 20, 64)]).tolist())


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """The most that a guess about one privacy unit can be worth. May be published.

    `guess` is how often a guess is right at most, where 0.5 is chance; `true_positives` how often a test with
    `FALSE_POSITIVES` finds the unit at most. `exact` if an optimal test reaches both, else no test does better.
    """

    guess: float
    true_positives: float
    exact: bool = True

    def describe(self, unit: str, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> str:
        """Say it in words, of a privacy unit as `PrivacyUnit.describe` names it."""
        others, one = ("rows", "a given row was") if unit == "one row" else ("rows", f"{unit}, were")
        replaced = " or another in its place" if neighbours is Neighbours.REPLACE else ""
        return (
            f"someone who knows all other {others} and guesses whether {one} in the table{replaced} is right at most "
            f"{times(self.guess)} times in 100, where chance is 50; a test with 1 false alarm in 100 finds it at most "
            f"{times(self.true_positives)} times in 100"
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data for certificates."""
        return {
            "guess_right_at_most": self.guess,
            "true_positive_rate_at_most": self.true_positives,
            "false_positive_rate": FALSE_POSITIVES,
            "exact": self.exact,
        }


NOTHING_IS_HIDDEN = Meaning(guess=1.0, true_positives=1.0)


def times(share: float) -> str:
    """How many times in 100, to three digits."""
    return f"{100 * share:.3g}"


def meaning_of_budget(budget: Budget) -> Meaning:
    """What a run means that spends a whole budget on Gaussian releases."""
    if not budget.is_private:
        return NOTHING_IS_HIDDEN
    return of_gaussian(max_mu(budget))


def of_gaussian(mu: float, *, delta: float = 0.0) -> Meaning:
    """What one Gaussian mechanism means, beside events that tell everything with probability `delta`.

    Guarantees:
        Agrees with the trade-off curve of dp_accounting.  [test_odds_agree_with_the_trade_off_curve]
    """
    if not math.isfinite(mu):
        return NOTHING_IS_HIDDEN
    distance = 2 * _NORMAL.cdf(mu / 2) - 1
    level = min(1.0, FALSE_POSITIVES / (1 - delta))
    missed = _NORMAL.cdf(_NORMAL.inv_cdf(1 - level) - mu) if level < 1 else 0.0
    return Meaning(guess=(1 + 1 - (1 - delta) * (1 - distance)) / 2, true_positives=1 - (1 - delta) * missed)


def of_epsilon(epsilon: float, delta: float) -> Meaning:
    """What any mechanism means that is (epsilon, delta)-private, and of which nothing else is known."""
    if not math.isfinite(epsilon) or epsilon > 500:
        return NOTHING_IS_HIDDEN
    distance = (math.expm1(epsilon) + 2 * delta) / (math.exp(epsilon) + 1)
    return Meaning(guess=(1 + min(1.0, distance)) / 2, true_positives=_found([epsilon], [delta]), exact=False)


@lru_cache(maxsize=64)
def of_tally(total: Tally, neighbours: Neighbours) -> Meaning:
    """What a list of events means, under the relation it was tallied for. A curve of sampled events takes a second."""
    if not total.sampled:
        return of_gaussian(math.sqrt(total.gaussian), delta=total.delta)
    curve = compose(total, neighbours).get_delta(list(_TANGENTS)) + total.delta
    deltas = [float(each) for each in np.broadcast_to(np.minimum(1.0, curve), len(_TANGENTS))]
    return Meaning(guess=(1 + deltas[0]) / 2, true_positives=_found(_TANGENTS, deltas), exact=False)


def _found(epsilons: Sequence[float], deltas: Sequence[float]) -> float:
    """The largest true-positive rate that no tangent of the curve excludes."""
    above = [math.exp(e) * FALSE_POSITIVES + d for e, d in zip(epsilons, deltas, strict=True)]
    below = [1 - math.exp(-e) * (1 - d - FALSE_POSITIVES) for e, d in zip(epsilons, deltas, strict=True)]
    return min(1.0, *above, *below)


def meaning_of_ledger(ledger: Mapping[str, Any]) -> dict[Neighbours, Meaning]:
    """What a ledger, as plain data, means under each relation: for the other than its own, the most it can mean.

    Under replace, a run that is planned for add or remove moves at most twice as far (see `Ledger.promised`); under add
    or remove, one that is planned for replace moves no further than there.
    """
    own = Neighbours(ledger["neighbours"])
    if ledger["epsilon"] is None:
        return dict.fromkeys(Neighbours, NOTHING_IS_HIDDEN)
    if ledger.get("sealed"):
        # Parts are priced apart and their prices added up: no curve of all of it is known.
        spent, delta = ledger["spent_epsilon"], ledger["delta"]
        return {r: of_epsilon(math.inf if spent[r.value] is None else spent[r.value], delta) for r in Neighbours}
    total = _tally(ledger["entries"], own)
    found = {own: of_tally(total, own)}
    for other in (each for each in Neighbours if each is not own):
        if own is Neighbours.REPLACE:
            found[other] = found[own]
        elif total.sampled:
            promised = ledger["spent_epsilon"][other.value]
            found[other] = of_epsilon(math.inf if promised is None else promised, ledger["delta"])
        else:
            found[other] = of_gaussian(2 * math.sqrt(total.gaussian), delta=total.delta)
    return {relation: found[relation] for relation in Neighbours}


def _tally(entries: list[dict[str, Any]], neighbours: Neighbours) -> Tally:
    total = Tally()
    for entry in entries:
        for event in entry["events"]:
            total = total.plus(_event(event), event["count"], neighbours)
    return total


def _event(document: Mapping[str, Any]) -> Event:
    """An event of a ledger as data; `ledger_of` refuses others when a model file is read."""
    if document["type"] == "DeltaEvent":
        return DeltaEvent(delta=document["delta"])
    if document["type"] == "PoissonGaussianEvent":
        return PoissonGaussianEvent(
            noise_multiplier=document["noise_multiplier"], sampling_rate=document["sampling_rate"]
        )
    return GaussianEvent(
        noise_multiplier=document["noise_multiplier"],
        replace_multiplier=document.get("replace_multiplier", math.nan),
    )
