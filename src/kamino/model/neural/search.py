"""The parameters of a run, found from the budget and the schema: the paper's Algorithm 6 with a true accountant.

With wide ranges, which are the default, a share of the budget goes to histograms, and the rest to steps. What they say
of a gradient is the signal to noise of all of them, sqrt(T) b / sigma. At one price it hardly depends on T, and it
grows with b to a limit; a sample in which noise has the multiplier sigma is about 1 / (4 sigma^2) below it. So T is
fixed, and b is the smallest power of 2 whose noise multiplier reaches 3: larger samples cost time and add nothing.

With the paper's ranges, the search begins with the parameters that are best for accuracy and whatever they cost. In the
paper's order of priority it makes each a little cheaper in turn (fewer steps, more noise in a step, more noise on
histograms, smaller samples), and stops at the first configuration that the budget holds. Where all ranges end above the
budget, which the paper's loop would never leave, the noise in a step goes on growing past its range.

>>> from kamino.privacy import Neighbours
>>> budget = Budget(epsilon=1.0, delta=1e-6, neighbours=Neighbours.REPLACE)
>>> found = search_parameters(budget, num_rows=32_561, num_models=14, first_size=2)
>>> found.epsilon <= 1.0
True
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kamino.errors import BudgetError
from kamino.model.neural.least_noise import least_noise
from kamino.privacy import Budget, Events, GaussianEvent, Neighbours, PoissonGaussianEvent, epsilon, gaussian_mu
from kamino.privacy.sensitivity import Sensitivity

# How many changes lead from one end of a range to the other.
_NOTCHES = 100
_PAST = 200


@dataclass(frozen=True, kw_only=True)
class WideRanges:
    """What the search may choose from by the signal to noise of all steps.

    steps: of each sub-model. enough_noise: the least noise multiplier of a step, by which the size of samples is
    chosen. histogram_share: the part of the budget, in mu squared, that histograms take. weight_rows, weight_noise: of
    Algorithm 5, where weights are learned by it. clip_norm: the paper's.
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


def search_parameters(
    budget: Budget,
    *,
    num_rows: int,
    num_models: int,
    first_size: int,
    num_histograms: int = 1,
    learn_weights: bool = False,
    ranges: Ranges | WideRanges | None = None,
    other: Events = (),
) -> Parameters:
    """Return the configuration that the search over `ranges` finds within the budget, together with `other` events.

    With the paper's ranges it is the first along the path that fits.

    Guarantees:
        It costs at most the budget, by the accountant.  [test_search_ends_at_most_at_the_budget]
        Along the paper's path, the configuration before it costs more.  [test_search_stops_at_the_first_that_fits]
        Samples are no larger than their noise asks for.  [test_wide_search_takes_the_smallest_sample_with_enough_noise]
    """
    if ranges is None or isinstance(ranges, WideRanges):
        return _wide_search(budget, num_rows, num_models, num_histograms, learn_weights, ranges or WideRanges(), other)
    start, ends = _ends(budget, num_rows, num_models, first_size, num_histograms, learn_weights, ranges)
    if not budget.is_private:
        return replace(start, gradient_noise=0.0, histogram_noise=0.0, weight_noise=0.0, epsilon=math.inf)
    path = list(_path(start, ends))
    # Each configuration is cheaper than the one before, so the first that fits is found by bisection.
    low, high = -1, len(path) - 1
    if not _fits(path[high], budget, other):
        raise BudgetError(
            f"no parameters were found for {num_models} sub-models within epsilon={budget.epsilon:g}, "
            f"delta={budget.delta:g}; give a larger budget, or join or leave out attributes."
        )
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(path[middle], budget, other):
            high = middle
        else:
            low = middle
    return replace(path[high], epsilon=price(path[high], budget, other))


def _wide_search(
    budget: Budget,
    num_rows: int,
    num_models: int,
    num_histograms: int,
    learn_weights: bool,
    ranges: WideRanges,
    other: Events,
) -> Parameters:
    """Return the smallest sample whose noise is enough, with the least noise that the budget holds."""
    smallest, largest = ranges.batch_size
    start = Parameters(
        num_rows=num_rows,
        num_models=num_models,
        num_histograms=num_histograms,
        batch_size=smallest,
        steps=ranges.steps,
        gradient_noise=ranges.enough_noise,
        histogram_noise=1.0,
        weight_rows=ranges.weight_rows if learn_weights else 0,
        weight_noise=ranges.weight_noise if learn_weights else 0.0,
        clip_norm=ranges.clip_norm,
    )
    if not budget.is_private:
        size = min(largest, max(smallest, 256))
        return replace(start, batch_size=size, gradient_noise=0.0, histogram_noise=0.0, weight_noise=0.0)
    share = ranges.histogram_share if num_models else 1.0
    start = replace(start, histogram_noise=math.sqrt(max(num_histograms, 1) / share) / gaussian_mu(budget))
    if not num_models:
        found = _least_noise(start, "histogram_noise", start.histogram_noise, budget, other)
        return replace(found, epsilon=price(found, budget, other))
    found = _smallest_sample(start, budget, ranges, other)
    return replace(found, epsilon=price(found, budget, other))


def _smallest_sample(start: Parameters, budget: Budget, ranges: WideRanges, other: Events) -> Parameters:
    """Return the configuration with the smallest power of 2 as sample size whose noise multiplier is enough."""

    def enough(size: int) -> bool:
        """Whether samples of this size need more than the noise that is enough: with just that they are too dear."""
        return not _fits(replace(start, batch_size=size), budget, other)

    smallest, largest = ranges.batch_size
    most = max(smallest, min(largest, start.num_rows // 4))
    # Where sampled Gaussian steps are many, b / n sqrt(steps) / sigma is their mu; twice that, if a row is replaced.
    left = (
        (1 - ranges.histogram_share) * gaussian_mu(budget) ** 2 / (4 if budget.neighbours is Neighbours.REPLACE else 1)
    )
    about = ranges.enough_noise * start.num_rows * math.sqrt(left / (start.steps * start.num_models))
    size = min(most, max(smallest, 1 << max(0, math.ceil(math.log2(max(about, 1.0))))))
    while size < most and not enough(size):
        size = min(most, 2 * size)
    while size > smallest and enough(max(smallest, size // 2)):
        size = max(smallest, size // 2)
    return _least_noise(
        replace(start, batch_size=size), "gradient_noise", ranges.enough_noise * size / max(about, 1.0), budget, other
    )


def _least_noise(first: Parameters, name: str, guess: float, budget: Budget, other: Events) -> Parameters:
    """Return the configuration with the least noise of one kind that fits."""
    found = least_noise(lambda noise: _price(_with_noise(first, name, noise), budget, other), budget.epsilon, guess)
    if found is None:
        raise BudgetError(
            f"no parameters were found for {first.num_models} sub-models within epsilon={budget.epsilon:g}, "
            f"delta={budget.delta:g}; give a larger budget, or join or leave out attributes."
        )
    return _with_noise(first, name, found)


def _with_noise(parameters: Parameters, name: str, noise: float) -> Parameters:
    changed: dict[str, Any] = {name: noise}
    return replace(parameters, **changed)


def price(parameters: Parameters, budget: Budget, other: Events = ()) -> float:
    """Return the epsilon of a run with these parameters, after `other` events, under the budget's relation."""
    events = (*other, *parameters.events(budget.neighbours))
    return epsilon(events, delta=budget.delta, neighbours=budget.neighbours)


def _fits(parameters: Parameters, budget: Budget, other: Events) -> bool:
    """Whether it costs at most the budget."""
    return _price(parameters, budget, other) <= budget.epsilon


def _price(parameters: Parameters, budget: Budget, other: Events) -> float:
    """Return the price, infinite where the Gaussian part is too dear by itself, which is told without composing."""
    events = (*other, *parameters.events(budget.neighbours))
    gaussian = [(event, count) for event, count in events if isinstance(event, GaussianEvent)]
    if epsilon(gaussian, delta=budget.delta, neighbours=budget.neighbours) > budget.epsilon:
        return math.inf
    return price(parameters, budget, other)


def _ends(
    budget: Budget,
    num_rows: int,
    num_models: int,
    first_size: int,
    num_histograms: int,
    learn_weights: bool,
    ranges: Ranges,
) -> tuple[Parameters, Parameters]:
    """Return the most accurate and the most private configuration of the ranges."""
    smallest = ranges.batch_size[0]
    upper = 4 * math.sqrt(math.log(1.25 / budget.delta)) / budget.epsilon
    histogram = ranges.histogram or (0.1 / max(first_size, 1), max(upper, 0.2 / max(first_size, 1)))
    first = Parameters(
        num_rows=num_rows,
        num_models=num_models,
        num_histograms=num_histograms,
        batch_size=ranges.batch_size[1],
        steps=max(1, math.ceil(ranges.passes[1] * num_rows / smallest)),
        gradient_noise=ranges.gradient[0],
        histogram_noise=histogram[0],
        weight_rows=ranges.weight_rows[1] if learn_weights else 0,
        weight_noise=ranges.weights[0] if learn_weights else 0.0,
        clip_norm=ranges.clip_norm,
    )
    last = replace(
        first,
        batch_size=smallest,
        steps=max(1, math.ceil(ranges.passes[0] * num_rows / smallest)),
        gradient_noise=ranges.gradient[1],
        histogram_noise=histogram[1],
        weight_rows=ranges.weight_rows[0] if learn_weights else 0,
        weight_noise=ranges.weights[1] if learn_weights else 0.0,
    )
    return first, last


def _path(first: Parameters, last: Parameters) -> Iterator[Parameters]:
    """Yield configurations from the most accurate on, each with one parameter made cheaper than in the one before."""
    yield first
    current = first
    for notch in range(1, _NOTCHES + 1):
        part = notch / _NOTCHES
        changes: dict[str, Any] = {
            "steps": round(_between(first.steps, last.steps, part)),
            "gradient_noise": _between(first.gradient_noise, last.gradient_noise, part),
            "histogram_noise": _between(first.histogram_noise, last.histogram_noise, part),
            "batch_size": round(_between(first.batch_size, last.batch_size, part)),
        }
        if first.weight_rows:
            changes["weight_noise"] = _between(first.weight_noise, last.weight_noise, part)
            changes["weight_rows"] = round(_between(first.weight_rows, last.weight_rows, part))
        for name, value in changes.items():
            if getattr(current, name) != value:
                current = replace(current, **{name: value})
                yield current
    for _ in range(_PAST):
        current = replace(
            current,
            gradient_noise=current.gradient_noise * 1.05,
            histogram_noise=current.histogram_noise * 1.05,
            weight_noise=current.weight_noise * 1.05,
        )
        yield current


def _between(start: float, end: float, part: float) -> float:
    """Return a point between two numbers, in equal differences."""
    return start + (end - start) * part
