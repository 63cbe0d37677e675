"""The search over wide ranges: by the signal to noise of all steps.

A share of the budget goes to histograms, and the rest to steps. What they say of a gradient is the signal to noise of
all of them, sqrt(T) b / sigma. At one price it hardly depends on T, and it grows with b to a limit; a sample in which
noise has the multiplier sigma is about 1 / (4 sigma^2) below it. So T is fixed, and b is the smallest power of 2 whose
noise multiplier reaches 3: larger samples cost time and add nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from kamino.errors import BudgetError
from kamino.model.neural.least_noise import least_noise
from kamino.model.neural.neural_parameters import Parameters, WideRanges, fits, price, price_or_infinite
from kamino.privacy import Budget, Events, Neighbours, gaussian_mu


def wide_search(
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
        return not fits(replace(start, batch_size=size), budget, other)

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
    # The largest power of 2 below a size, which may be none itself where the table ends.
    while size > smallest and enough(smaller := max(smallest, 1 << ((size - 1).bit_length() - 1))):
        size = smaller
    return _least_noise(
        replace(start, batch_size=size), "gradient_noise", ranges.enough_noise * size / max(about, 1.0), budget, other
    )


def _least_noise(first: Parameters, name: str, guess: float, budget: Budget, other: Events) -> Parameters:
    """Return the configuration with the least noise of one kind that fits."""
    found = least_noise(
        lambda noise: price_or_infinite(_with_noise(first, name, noise), budget, other), budget.epsilon, guess
    )
    if found is None:
        raise BudgetError(
            f"no parameters were found for {first.num_models} sub-models within epsilon={budget.epsilon:g}, "
            f"delta={budget.delta:g}; give a larger budget, or join or leave out attributes."
        )
    return _with_noise(first, name, found)


def _with_noise(parameters: Parameters, name: str, noise: float) -> Parameters:
    changed: dict[str, Any] = {name: noise}
    return replace(parameters, **changed)
