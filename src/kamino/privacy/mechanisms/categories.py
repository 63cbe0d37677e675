"""The private sets of categories of attributes that nobody declared, all in one release.

The mechanism: count each category that occurs in each of m attributes, add discrete Gaussian noise to each count,
publish the categories whose noisy count reaches a threshold T, sorted, with their noisy counts.

Why it is private. Let D and D' be neighbours that differ in one unit u (for replace: u in D, u' in D'), with at most k
rows a unit. A category is one value of one attribute: a row has at most m of them, one of each attribute. Call a
category common if other units have it too, so that it occurs in both. Let M* be the mechanism that looks at common
categories only. On these, the counts of D and D' are two vectors over the same keys, at most the sensitivity of m
histograms apart; thresholding and sorting are post-processing. So M* costs a Gaussian event. On D, M gives the same as
M* unless a category that only u has passes; the noises are independent, so given that none passes (an event E) M's
output is distributed as M*'s. If u has j such categories of one attribute then none of them has more than k - j + 1
rows, and the probability that one of them passes is at most
    j * P(X >= T - (k - j + 1)) <= delta / m   for each j = 1..k, by the choice of T.
There are m attributes, so P(not E) <= delta. The same holds on D' with an event E'. Shrink E and E' by independent
coins to one probability p >= 1 - delta. For any set S,
    P(M(D) in S) <= p P(M*(D) in S) + (1 - p) <= p (e^epsilon P(M*(D') in S) + delta*) + delta
                 <= e^epsilon P(M(D') in S) + delta* + delta.
So M costs what a Gaussian event and a `DeltaEvent(delta)` cost, under both relations. (This is the Gaussian
sparse histogram; see Wilkins, Kifer, Zhang, Karrer 2024 for a tighter analysis.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from kamino.errors import PrivacyError
from kamino.privacy.accounting.events import DeltaEvent, Events
from kamino.privacy.discrete_gaussian import scale_for, threshold_for
from kamino.privacy.ledger import Entry
from kamino.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from kamino.privacy.gate import Gate

Category: TypeAlias = str | int
Place: TypeAlias = tuple[str, Category]
"""An attribute and one of its categories."""


@dataclass(frozen=True, kw_only=True)
class NoisyCategories:
    """The published categories, sorted, and the noisy count of each."""

    values: tuple[Category, ...]
    counts: tuple[int, ...]
    threshold: int


def release_categories(
    gate: Gate,
    columns: Mapping[str, Iterable[Any]],
    *,
    noise_multiplier: float,
    delta: float,
    set_aside: bool = False,
) -> dict[str, NoisyCategories]:
    """Publish the categories that enough rows have; see `Gate.release_categories`."""
    if not 0 < delta < 1:
        raise PrivacyError(
            f"the categories of {', '.join(map(repr, columns))} may spend {delta} of delta; expected a number in "
            "(0, 1), below the budget's delta."
        )
    unit = gate.sensitivity(Sensitivity.of_histogram(len(columns)))
    deviation = gate.deviation(noise_multiplier, unit)
    scale = scale_for(deviation) if deviation else 0.0
    threshold = least_count(scale, delta / len(columns), gate.unit.max_rows) if deviation else 1
    noise: Events = ((unit.event(deviation), 1),)
    rare: Events = ((DeltaEvent(delta=delta if deviation else 0.0), 1),)
    entry = Entry(
        kind="categories",
        what="sets of categories" if len(columns) > 1 else "set of categories",
        attributes=tuple(columns),
        events=noise if set_aside else (*noise, *rare),
        from_aside=delta if set_aside and deviation else 0.0,
        sigma=scale,
        sensitivity=unit.under(gate.budget.neighbours),
        parameters=(("delta", delta), ("threshold", threshold)),
    )

    def answer(truth: Mapping[Place, int]) -> dict[str, NoisyCategories]:
        # Sorted first: neither the noise nor the output follows the order of the rows.
        keys = sorted(truth, key=public_order)
        noise = gate.noise.discrete_gaussian(scale, (len(keys),))
        noisy = np.asarray([truth[key] for key in keys], dtype=np.int64) + noise
        passing: dict[str, list[tuple[Category, int]]] = {name: [] for name in columns}
        for place in np.flatnonzero(noisy >= threshold).tolist():
            name, value = keys[place]
            passing[name].append((value, int(noisy[place])))
        return {
            name: NoisyCategories(
                values=tuple(value for value, _ in found),
                counts=tuple(count for _, count in found),
                threshold=threshold,
            )
            for name, found in passing.items()
        }

    return gate.publish(entry, truth=lambda: _count_all(columns), answer=answer)


def public_order(key: Place) -> tuple[str, str, Category]:
    """The order in which categories get their noise: it follows from them alone."""
    return key[0], type(key[1]).__name__, key[1]


def _count_all(columns: Mapping[str, Iterable[Any]]) -> dict[Place, int]:
    """The count of each category of each attribute."""
    return {(name, key): count for name, values in columns.items() for key, count in count_categories(values).items()}


def count_categories(values: Iterable[Any]) -> Mapping[Category, int]:
    """Count the strings and whole numbers in `values`; anything else (null, NaN) is no category."""
    if hasattr(values, "value_counts") and hasattr(values, "to_pylist"):  # a pyarrow array: count there, it is fast
        pairs = ((pair["values"], pair["counts"]) for pair in values.value_counts().to_pylist())
    elif isinstance(values, Mapping):
        pairs = ((key, count) for key, count in values.items())
    else:
        plain = values.tolist() if isinstance(values, np.ndarray) else values
        pairs = ((key, 1) for key in plain)
    counts: Counter[Category] = Counter()
    for key, count in pairs:
        if isinstance(key, str | int):
            counts[key] += int(count)
    return counts


def least_count(scale: float, delta: float, max_rows: int) -> int:
    """Return the T of the proof: for each number j of own categories, all stay below T but for delta."""
    return max(max_rows - own + 1 + threshold_for(scale, delta / own) for own in range(1, max_rows + 1))
