"""What a neural run does to spend its budget: sizes, steps, noise; the ranges to choose them from; what they cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kamino.errors import BudgetError
from kamino.privacy import Budget, Events, GaussianEvent, Neighbours, PoissonGaussianEvent, epsilon
from kamino.privacy.sensitivity import Sensitivity


@dataclass(frozen=True, kw_only=True)
class WideRanges:
    """What the search may choose from by the signal to noise of all steps.

    steps: of each sub-model. enough_noise: the noise multiplier of a step at which samples are large enough; they are
    never larger than a quarter of the table. histogram_share: the part of the budget, in mu squared, that histograms
    take. weight_rows, weight_noise: of Algorithm 5, where weights are learned by it. clip_norm: the paper's.
    """

    batch_size: tuple[int, int] = (16, 4_096)
    steps: int = 300
    enough_noise: float = 3.0
    histogram_share: float = 0.3
    weight_rows: int = 64
    weight_noise: float = 8.0
    clip_norm: float = 1.0

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size[0] <= self.batch_size[1] or self.steps < 1 or not 0 < self.histogram_share < 1:
            raise BudgetError(
                f"found samples of {self.batch_size[0]} to {self.batch_size[1]} rows, {self.steps} steps and a share "
                f"of {self.histogram_share:g} for histograms; expected rising sizes, a step or more, and a share "
                "between 0 and 1."
            )


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """What the paper's own search may choose from; the defaults are the paper's.

    passes: how often a sub-model sees the table, for samples of the smallest size. histogram: the noise multiplier of
    histograms; by default the paper's formulas. weights: the noise multiplier of the violation matrix of constraints
    with unknown weights (the paper fixes it at a value that no budget near 1 holds). clip_norm: 8, not the paper's 1:
    most gradients are longer than 1, and clipping them all to one length draws a distribution towards its mode. It
    costs no privacy, for the noise grows with it. On adult at epsilon 1 the 1-way marginals are 0.09 away in the mean
    and 0.42 at most with 1, and 0.05 and 0.13 with 8.
    """

    batch_size: tuple[int, int] = (16, 32)
    passes: tuple[float, float] = (1.0, 5.0)
    gradient: tuple[float, float] = (1.0, 1.5)
    histogram: tuple[float, float] | None = None
    weight_rows: tuple[int, int] = (50, 100)
    weights: tuple[float, float] = (1.0, 10.0)
    clip_norm: float = 8.0


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """One configuration: what Algorithm 2 (and 5) is run with.

    Names of the paper: gradient_noise is sigma_d, histogram_noise sigma_g, batch_size b, steps T (for each sub-model),
    weight_rows L_w, weight_noise sigma_w. num_rows is public: given, or noisy.
    """

    num_rows: int
    num_models: int
    num_histograms: int
    batch_size: int
    steps: int
    gradient_noise: float
    histogram_noise: float
    weight_rows: int = 0
    weight_noise: float = 0.0
    clip_norm: float = 8.0
    epsilon: float = math.inf

    @property
    def signal_to_noise(self) -> float:
        """What all steps of a sub-model say of a gradient of the clip norm, against their noise in one coordinate."""
        return math.sqrt(self.steps) * self.batch_size / self.gradient_noise if self.gradient_noise else math.inf

    @property
    def sampling_rate(self) -> float:
        """The probability with which a row is in a sample."""
        return min(1.0, self.batch_size / max(self.num_rows, 1))

    def events(self, neighbours: Neighbours) -> Events:
        """Everything a run under one relation releases with these parameters, to be priced under either relation."""
        found: list[tuple[GaussianEvent | PoissonGaussianEvent, int]] = []
        if self.num_histograms:
            row = Sensitivity.of_histogram()
            found.append((row.event(self.histogram_noise * row.under(neighbours)), self.num_histograms))
        if self.num_models:
            step = PoissonGaussianEvent(noise_multiplier=self.gradient_noise, sampling_rate=self.sampling_rate)
            found.append((step, self.steps * self.num_models))
        return (*found, *self.weight_events())

    def weight_events(self) -> Events:
        """What Algorithm 5 releases: a matrix of violations over one sample of rows, if weights are learned."""
        if not self.weight_rows:
            return ()
        rate = min(1.0, self.weight_rows / max(self.num_rows, 1))
        return ((PoissonGaussianEvent(noise_multiplier=self.weight_noise, sampling_rate=rate), 1),)

    def describe(self) -> str:
        """Say the configuration, one parameter a line."""
        lines = [
            f"rows (public or noisy)        {self.num_rows}",
            f"histograms                    {self.num_histograms}, noise multiplier {self.histogram_noise:.4g}",
            f"sub-models                    {self.num_models}",
            f"steps of each                 {self.steps}",
            f"expected rows in a sample     {self.batch_size} (rate {self.sampling_rate:.3g})",
            f"noise multiplier of a step    {self.gradient_noise:.4g}, gradients clipped to {self.clip_norm:g}",
            f"signal to noise of all steps  {self.signal_to_noise:.4g}",
        ]
        if self.weight_rows:
            lines.append(f"rows sampled for weights      {self.weight_rows}, noise multiplier {self.weight_noise:.4g}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as plain data; numbers that JSON has not are null."""
        return {name: value if math.isfinite(value) else None for name, value in vars(self).items()}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Parameters:
        """Read what `to_json` made."""
        epsilon = document["epsilon"]
        return Parameters(**{**document, "epsilon": math.inf if epsilon is None else epsilon})


def price(parameters: Parameters, budget: Budget, other: Events = ()) -> float:
    """Return the epsilon of a run with these parameters, after `other` events, under the budget's relation."""
    events = (*other, *parameters.events(budget.neighbours))
    return epsilon(events, delta=budget.delta, neighbours=budget.neighbours)


def fits(parameters: Parameters, budget: Budget, other: Events) -> bool:
    """Whether it costs at most the budget."""
    return price_or_infinite(parameters, budget, other) <= budget.epsilon


def price_or_infinite(parameters: Parameters, budget: Budget, other: Events) -> float:
    """Return the price, infinite where the Gaussian part is too dear by itself, which is told without composing."""
    events = (*other, *parameters.events(budget.neighbours))
    gaussian = [(event, count) for event, count in events if isinstance(event, GaussianEvent)]
    if epsilon(gaussian, delta=budget.delta, neighbours=budget.neighbours) > budget.epsilon:
        return math.inf
    return price(parameters, budget, other)
