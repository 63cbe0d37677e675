"""How the budget is split: one place, printable.

A release with noise multiplier z costs 1 / z^2; a whole run costs the sum, so parts of the budget are fractions of 1.
The standard deviation of a noisy count is z times the distance by which one privacy unit moves a histogram: 1 for a row
that is added or removed, more for one that is replaced or for a unit of several rows. A fit reckons with standard
deviations, and `InDeviations` asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kamino.errors import ModelError
from kamino.model.protocol import Candidate, FloatArray, Measurer, View

#: The budget is used up to this factor, so that rounding in a long sum of costs cannot carry it over the limit.
KEPT_BACK = 1 - 1e-6


@dataclass(frozen=True, kw_only=True)
class BudgetShares:
    """The fraction of the budget that each part of the fit may use.

    `scores` and `links` are taken off the rounds: scores as much as it takes to tell pairs apart, at most what is said
    here, links only if a wide attribute is worth linking, and then up to half. A value with few rows is near the noise,
    where its right side is found about twice as often if the noise halves; that of pairs grows by two fifths. What any
    part leaves goes to the last round, so that the whole budget is always used.
    """

    histograms: float = 0.25
    scores: tuple[float, ...] = (0.05, 0.04, 0.03, 0.02)
    triples: float = 0.01
    rounds: tuple[float, ...] = (0.11, 0.19, 0.24, 0.20)
    links: float = 0.50

    def __post_init__(self) -> None:
        if not self.rounds or len(self.scores) != len(self.rounds):
            raise ModelError("every round needs a share for its scores and one for its marginals.")
        total = self.histograms + self.triples + sum(self.rounds)
        if abs(total - 1) > 1e-9:
            raise ModelError(f"the shares of the budget add up to {total:.6f}; they must add up to 1.")
        if not 0 < self.links < 1:
            raise ModelError(f"the share of links is {self.links}; it must lie between 0 and 1.")

    def describe(self) -> str:
        """Say how the budget is split, one part a line."""
        lines = [f"histograms       {self.histograms:6.1%}"]
        for i, (scores, marginals) in enumerate(zip(self.scores, self.rounds, strict=True), start=1):
            lines.append(f"round {i} scores   {scores:6.1%} at most, taken off the rounds")
            lines.append(f"round {i} marginals{marginals:6.1%}")
        lines.append(f"wide links       {self.links:6.1%} taken off the rounds, if a wide attribute is worth it")
        return "\n".join(lines)


def multiplier_of_share(noise_multiplier: float, share: float) -> float:
    """Return the noise multiplier of a release that costs `share` of what one with `noise_multiplier` costs."""
    return noise_multiplier / float(np.sqrt(share * KEPT_BACK))


@dataclass(frozen=True, kw_only=True)
class InDeviations:
    """A measurer that is told standard deviations of counts in place of noise multipliers.

    Guarantees:
        What is asked for costs the same, whatever the unit.  [test_units_cost_the_same]
    """

    measurer: Measurer
    distance: float

    def expect(self, candidates: Sequence[Candidate]) -> None:
        """Hand on what will be asked for next."""
        self.measurer.expect(candidates)

    def marginal(
        self, attributes: tuple[str, ...], binning: Mapping[str, View] | None, *, noise_multiplier: float
    ) -> NDArray[Any]:
        """Return noisy counts of this standard deviation."""
        return self.measurer.marginal(attributes, binning, noise_multiplier=noise_multiplier / self.distance)

    def interaction(
        self, attributes: tuple[str, ...], binning: Mapping[str, View], *, noise_multiplier: float
    ) -> NDArray[Any]:
        """Return noisy interactions for what counts of this standard deviation cost."""
        return self.measurer.interaction(attributes, binning, noise_multiplier=noise_multiplier / self.distance)

    def scores(
        self,
        candidates: Sequence[Candidate],
        model_answers: Sequence[FloatArray],
        *,
        noise_multiplier: float,
        against: str = "the model",
    ) -> FloatArray:
        """Return noisy distances for what counts of this standard deviation cost."""
        multiplier = noise_multiplier / self.distance
        return self.measurer.scores(candidates, model_answers, noise_multiplier=multiplier, against=against)

    def settle(self, what: str, choice: list[Any]) -> list[Any]:
        """Hand on a choice."""
        return self.measurer.settle(what, choice)


@dataclass(kw_only=True)
class Purse:
    """What is left of the budget: hands out the noise of releases and writes down what each was for."""

    noise_multiplier: float
    spent: float = 0.0
    entries: list[tuple[str, float]] = field(default_factory=list)

    def take(self, purpose: str, share: float) -> float:
        """Return the noise multiplier that uses up `share` of the whole budget.

        Guarantees:
            No more than the whole budget is ever handed out.  [test_purse_refuses_to_overspend]
        """
        if share <= 0 or self.spent + share > 1 + 1e-9:
            raise ModelError(f"{purpose} asks for {share:.3f} of the budget, and {self.left:.3f} is left.")
        self.spent += share
        self.entries.append((purpose, float(share)))
        return multiplier_of_share(self.noise_multiplier, share)

    @property
    def left(self) -> float:
        """The share that nothing has used yet."""
        return max(1.0 - self.spent, 0.0)
