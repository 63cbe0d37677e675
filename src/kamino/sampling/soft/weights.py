"""Weights of soft constraints, found by matching: what sampling violates should be what was measured.

Everything here reads a model and released rates, so it is post-processing and costs no privacy. A few thousand rows are
drawn with the weights at hand, their violation rates are compared with the measured ones, and each weight is moved:
heavier where there are too many violations, lighter where there are too few. A weight is for violating pairs over rows
(see `price_of`), so that what was found on few rows holds for many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kamino.constraints import DenialConstraint, print_constraint
from kamino.engine.rates import RateEstimate, RateEstimates
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.draw_options import SWEEPS, DrawIds, DrawOptions
from kamino.sampling.feasible.existence import most_rows
from kamino.sampling.modes import Sampling
from kamino.sampling.partners import rates_of
from kamino.sampling.plan.sampling_plan import SamplingPlan
from kamino.sampling.sampler import draw_table
from kamino.sampling.soft.prices import Per, Weight
from kamino.schema import Codec

if TYPE_CHECKING:
    from kamino.model.protocol import TupleModel

# The weight of a constraint that nothing should violate: one pair among a million rows still costs a factor e.
HEAVIEST = 1e6
_ROUNDS = 14
# A rate is close if it is off by less than this part, or by less than half the error of what was measured. One sample
# tells a rate to some percent only, and the final draw steers to it: after some rounds, so many times that is enough.
_CLOSE = 0.04
_PATIENT, _ROUGH = 5, 3.0
# The model keeps a rate by itself if it is no more than this many deviations above, or this part. With k constraints,
# the largest of their errors is about sqrt(2 log k) deviations: noise alone should give nobody a weight.
_DEVIATIONS = 2.0
_PART = 0.05

_Sample: TypeAlias = Callable[[Mapping[DenialConstraint, float]], dict[DenialConstraint, float]]


@dataclass(frozen=True, kw_only=True)
class FoundWeight:
    """One soft constraint: what was measured, what the model does by itself, its weight, and what that delivers.

    `target` is the rate to draw at: what was measured, moved one deviation towards what the model does by itself, or
    that itself where it is nearer. With `per_violation`, the weight is for each violation, as in the paper, and
    otherwise for violations over rows. The paper's way measures no rate and tries nothing: the other fields are None.
    """

    constraint: DenialConstraint
    weight: float
    measured: float | None = None
    deviation: float | None = None
    target: float | None = None
    unweighted: float | None = None
    delivered: float | None = None
    per_violation: bool = False


@dataclass(frozen=True, kw_only=True)
class FoundWeights:
    """The weights of all soft constraints of a plan. Every field may be published."""

    items: tuple[FoundWeight, ...] = ()

    @property
    def weights(self) -> dict[DenialConstraint, Weight]:
        """The weight of each constraint, for `draw_table`."""
        return {
            e.constraint: Weight(e.weight, Per.VIOLATION if e.per_violation else Per.VIOLATIONS_OVER_ROWS)
            for e in self.items
        }

    def to_json(self) -> list[dict[str, Any]]:
        """Return plain data that `json.dumps` takes."""
        return [
            {name: value for name, value in vars(each).items() if name != "constraint"}
            | {"constraint": print_constraint(each.constraint)}
            for each in self.items
        ]

    @staticmethod
    def from_json(document: Iterable[Mapping[str, Any]], constraints: Iterable[DenialConstraint]) -> FoundWeights:
        """Read what `to_json` wrote, for the same constraints."""
        known = {print_constraint(c): c for c in constraints}
        items = [FoundWeight(**{**each, "constraint": known[each["constraint"]]}) for each in document]
        return FoundWeights(items=tuple(items))

    @property
    def targets(self) -> dict[DenialConstraint, float]:
        """The rate of each constraint, for `draw_table` to steer to: chance in a single draw is made up for."""
        return {e.constraint: e.target for e in self.items if e.target is not None and e.target > 0}


def find_weights(
    plan: SamplingPlan,
    model: TupleModel,
    codec: Codec,
    rates: RateEstimates,
    rng: np.random.Generator,
    *,
    num_rows: int = 6_000,
    sweeps: int = SWEEPS,
    draw_ids: DrawIds | None = None,
    sampling: Sampling = Sampling.CONSTRAINT_AWARE,
) -> FoundWeights:
    """Find a weight for each soft constraint with a measured rate, on samples of `num_rows` rows if keys allow these.

    `sampling` and `sweeps` are how the table itself will be drawn: a weight that fits one way does not fit another.

    A rate that noise made negative is zero, and its weight the heaviest. A constraint that the model keeps by itself,
    as far as the error bar can tell, gets weight zero, and so does one that no step of the plan weighs.

    A sample need not be a table that keeps all hard constraints: rows that break one when all columns are drawn stay.

    Guarantees:
        Draws with the weights violate about as often as measured.  [test_planted_rates_are_delivered]
        Weights are found for any constraints, however few rows keys allow.  [test_keys_may_allow_few_rows]
        A constraint that the model keeps gets weight zero.  [test_kept_rates_get_weight_zero]
    """
    if not rates.items:
        return FoundWeights()
    judged = [each.constraint for each in rates.items]
    part = _up_to(plan, judged)
    num_rows = min(num_rows, most_rows(Judge(codec), part.hard))

    def sample(weights: Mapping[DenialConstraint, float]) -> dict[DenialConstraint, float]:
        found = {c: Weight(value) for c, value in weights.items()}
        options = DrawOptions(weights=found, sweeps=sweeps, ids=draw_ids, sampling=sampling, check=False)
        table = draw_table(part, model, codec, num_rows, rng, options)
        return rates_of(codec, table, judged)

    by_itself = sample({})
    weighed = {c for step in plan.steps for c in step.soft}
    searches = {
        each.constraint: _Search(each, start=by_itself[each.constraint])
        for each in rates.items
        if each.constraint in weighed and not _is_kept(each, by_itself[each.constraint], len(judged))
    }
    weights, delivered = _match(searches, sample) if searches else ({}, by_itself)
    return FoundWeights(items=tuple(_found(each, by_itself, weights, delivered) for each in rates.items))


def target_of(estimate: RateEstimate, by_itself: float) -> float:
    """Return the rate to draw at. A measured rate of 0 or less is 0, which asks for the heaviest weight.

    The model errs as well, often by less than the noise: so much of the difference as noise may be is left alone.
    """
    if estimate.rate <= 0:
        return 0.0
    low, high = estimate.rate - estimate.deviation, estimate.rate + estimate.deviation
    return min(max(by_itself, low), high) if low > 0 else min(by_itself, high)


def _is_kept(estimate: RateEstimate, rate: float, num_constraints: int) -> bool:
    target = max(estimate.rate, 0.0)
    deviations = max(_DEVIATIONS, math.sqrt(2 * math.log(num_constraints)))
    return rate <= max(target + deviations * estimate.deviation, (1 + _PART) * target)


def _up_to(plan: SamplingPlan, constraints: Sequence[DenialConstraint]) -> SamplingPlan:
    """The plan as far as the constraints need it."""
    wanted = {name for c in constraints for name in c.attributes}
    return plan.first(max(place for place, name in enumerate(plan.sequence) if name in wanted) + 1)


class _Search:
    """The search for one weight, on logarithmic scales: a bracket where there is one, steps towards it before."""

    def __init__(self, estimate: RateEstimate, *, start: float) -> None:
        self._target = target = target_of(estimate, start)
        self._enough = max(_CLOSE, estimate.deviation / target / 2) if target > 0 else _CLOSE
        # A row's partners are about the rate: so much weight makes violations rarer by about the factor asked for.
        self.weight = HEAVIEST if target <= 0 else min(HEAVIEST, math.log(start / target) / start)
        self._light: tuple[float, float] | None = None
        self._heavy: tuple[float, float] | None = None

    def miss(self, rate: float) -> float:
        """Return the logarithm of the rate over what it should be, in units of what is close enough."""
        if self._target <= 0 or (self.weight >= HEAVIEST and rate >= self._target):
            return 0.0
        return math.log(max(rate, self._target / 100) / self._target) / self._enough

    def learn(self, rate: float) -> None:
        """Move the weight, given the rate that it led to."""
        if self._target <= 0:
            return
        miss = self.miss(rate) * self._enough
        if miss > 0:
            self._light = (self.weight, miss)
        else:
            self._heavy = (self.weight, miss)
        if self._light and self._heavy and self._light[0] >= self._heavy[0] / 1.02:
            # Noise or another weight has moved the answer: open the bracket on the older side.
            self._light, self._heavy = (self._light, None) if miss > 0 else (None, self._heavy)
        self.weight = min(HEAVIEST, self._next(miss))

    def _next(self, miss: float) -> float:
        if self._light is None or self._heavy is None:
            return self.weight * math.exp(math.copysign(min(max(abs(miss), 0.1), 2.0), miss))
        (low, above), (high, below) = self._light, self._heavy
        share = min(max(above / (above - below), 0.15), 0.85) if above > below else 0.5
        return math.exp(math.log(low) + share * (math.log(high) - math.log(low)))


def _match(
    searches: Mapping[DenialConstraint, _Search], sample: _Sample
) -> tuple[dict[DenialConstraint, float], dict[DenialConstraint, float]]:
    """Move all weights until each rate was close once; keep the best that was seen of each, and its rate.

    One sample is never close in all rates if there are many. A weight that was close once stays, so that the others
    find theirs beside it.
    """
    best: dict[DenialConstraint, tuple[float, float]] = {}
    delivered: dict[DenialConstraint, float] = {}
    for number in range(_ROUNDS):
        rates = sample({c: search.weight for c, search in searches.items()})
        enough = 1.0 if number < _PATIENT else _ROUGH
        delivered = rates | {c: delivered[c] for c in best}
        for c, search in searches.items():
            miss = abs(search.miss(rates[c]))
            if c not in best or miss < best[c][0]:
                best[c], delivered[c] = (miss, search.weight), rates[c]
            if best[c][0] <= enough:
                search.weight = best[c][1]
            else:
                search.learn(rates[c])
        if all(miss <= enough for miss, _ in best.values()):
            break
    return {c: weight for c, (_, weight) in best.items()}, delivered


def _found(
    estimate: RateEstimate,
    by_itself: Mapping[DenialConstraint, float],
    weights: Mapping[DenialConstraint, float],
    delivered: Mapping[DenialConstraint, float],
) -> FoundWeight:
    constraint = estimate.constraint
    return FoundWeight(
        constraint=constraint,
        measured=max(0.0, estimate.rate),
        deviation=estimate.deviation,
        unweighted=by_itself[constraint],
        weight=weights.get(constraint, 0.0),
        delivered=delivered[constraint],
        target=target_of(estimate, by_itself[constraint]),
    )
