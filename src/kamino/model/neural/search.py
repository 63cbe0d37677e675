"""The parameters of a run, found from the budget and the schema: the paper's Algorithm 6 with a true accountant.

With wide ranges, which are the default, `wide_search` finds them.

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
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from kamino.errors import BudgetError
from kamino.model.neural.neural_parameters import Parameters, Ranges, WideRanges, fits, price
from kamino.model.neural.wide_search import wide_search
from kamino.privacy import Budget, Events

# How many changes lead from one end of a range to the other.
_NOTCHES = 100
_PAST = 200
# The budgets that are tried where the whole one would not be held, each so much smaller than the one before.
_SMALLER, _LESS = 40, 0.8
# Noise that costs more is next to none, and takes long to price.
_MOST_EPSILON = 300.0

# Whether a ledger would take all of some events.
Holds: TypeAlias = Callable[[Events], bool]


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
    holds: Holds | None = None,
) -> Parameters:
    """Return the configuration that the search over `ranges` finds within the budget, together with `other` events.

    With the paper's ranges it is the first along the path that fits. `holds` has the last word: whether a ledger takes
    all that the run will release. It also keeps what it promises under the other relation, and no accountant prices
    epsilons of thousands: parameters are then those of a smaller budget.

    Guarantees:
        It costs at most the budget, by the accountant.  [test_search_ends_at_most_at_the_budget]
        Along the paper's path, the configuration before it costs more.  [test_search_stops_at_the_first_that_fits]
        Samples are no larger than their noise asks for.  [test_wide_search_takes_the_smallest_sample_with_enough_noise]
        The ledger takes every release of it.  [test_no_planned_release_of_a_neural_run_is_refused]
    """
    # Infinity is no private budget, and needs no price.
    smaller = replace(budget, epsilon=min(budget.epsilon, _MOST_EPSILON)) if budget.is_private else budget
    for _ in range(_SMALLER):
        found = _search(smaller, num_rows, num_models, first_size, num_histograms, learn_weights, ranges, other)
        if holds is None or not budget.is_private or holds((*other, *found.events(budget.neighbours))):
            return found
        smaller = replace(smaller, epsilon=_LESS * smaller.epsilon)
    raise _none_found(budget, num_models)


def _search(
    budget: Budget,
    num_rows: int,
    num_models: int,
    first_size: int,
    num_histograms: int,
    learn_weights: bool,
    ranges: Ranges | WideRanges | None,
    other: Events,
) -> Parameters:
    if ranges is None or isinstance(ranges, WideRanges):
        return wide_search(budget, num_rows, num_models, num_histograms, learn_weights, ranges or WideRanges(), other)
    start, ends = _ends(budget, num_rows, num_models, first_size, num_histograms, learn_weights, ranges)
    if not budget.is_private:
        return replace(start, gradient_noise=0.0, histogram_noise=0.0, weight_noise=0.0, epsilon=math.inf)
    path = list(_path(start, ends))
    # Each configuration is cheaper than the one before, so the first that fits is found by bisection.
    low, high = -1, len(path) - 1
    if not fits(path[high], budget, other):
        raise _none_found(budget, num_models)
    while high - low > 1:
        middle = (low + high) // 2
        if fits(path[middle], budget, other):
            high = middle
        else:
            low = middle
    return replace(path[high], epsilon=price(path[high], budget, other))


def _none_found(budget: Budget, num_models: int) -> BudgetError:
    return BudgetError(
        f"no parameters were found for {num_models} sub-models within epsilon={budget.epsilon:g}, "
        f"delta={budget.delta:g}; give a larger budget, or join or leave out attributes."
    )


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
