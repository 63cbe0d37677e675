"""The private set of categories of an attribute that nobody declared.

The mechanism: count each category that occurs, add discrete Gaussian noise to each count, publish the
categories whose noisy count reaches a threshold T, sorted, with their noisy counts.

Why it is private. Let D and D' be neighbours that differ in one unit u (for replace: u in D, u' in D'), with
at most k rows a unit. Call a category common if other units have it too, so that it occurs in both. Let M* be
the mechanism that looks at common categories only. On these, the counts of D and D' are two vectors over the
same keys, at most the histogram's sensitivity apart; thresholding and sorting are post-processing. So M*
costs a Gaussian event. On D, M gives the same as M* unless a category that only u has passes; the noises are
independent, so given that none passes (an event E) M's output is distributed as M*'s. If u has j such
categories then none has more than k - j + 1 rows, and
    P(not E) <= j * P(X >= T - (k - j + 1)) <= delta   for each j = 1..k, by the choice of T.
The same holds on D' with an event E'. Shrink E and E' by independent coins to one probability p >= 1 - delta.
For any set S,
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


@dataclass(frozen=True, kw_only=True)
class NoisyCategories:
    """The published categories, sorted, and the noisy count of each."""

    values: tuple[Category, ...]
    counts: tuple[int, ...]
    threshold: int


def release_categories(
    gate: Gate,
    values: Iterable[Any],
    *,
    attribute: str,
    noise_multiplier: float,
    delta: float,
    set_aside: bool = False,
) -> NoisyCategories:
    """Publish the categories that enough rows have; see `Gate.release_categories`."""
    if not 0 < delta < 1:
        raise PrivacyError(
            f"the categories of {attribute!r} may spend {delta} of delta; expected a number in (0, 1), below the "
            "budget's delta."
        )
    unit = gate.sensitivity(Sensitivity.of_histogram())
    deviation = gate.deviation(noise_multiplier, unit)
    scale = scale_for(deviation) if deviation else 0.0
    threshold = _threshold(scale, delta, gate.unit.max_rows) if deviation else 1
    noise: Events = ((unit.event(deviation), 1),)
    rare: Events = ((DeltaEvent(delta=delta if deviation else 0.0), 1),)
    entry = Entry(
        kind="categories",
        what="set of categories",
        attributes=(attribute,),
        events=noise if set_aside else (*noise, *rare),
        from_aside=delta if set_aside and deviation else 0.0,
        sigma=scale,
        sensitivity=unit.under(gate.budget.neighbours),
        parameters=(("delta", delta), ("threshold", threshold)),
    )

    def answer(truth: Mapping[Category, int]) -> NoisyCategories:
        # Sorted first: neither the noise nor the output follows the order of the rows.
        keys = sorted(truth, key=lambda key: (type(key).__name__, key))
        noise = gate.noise.discrete_gaussian(scale, (len(keys),))
        noisy = np.asarray([truth[key] for key in keys], dtype=np.int64) + noise
        passing = np.flatnonzero(noisy >= threshold)
        return NoisyCategories(
            values=tuple(keys[place] for place in passing),
            counts=tuple(int(noisy[place]) for place in passing),
            threshold=threshold,
        )

    return gate.publish(entry, truth=lambda: count_categories(values), answer=answer)


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


def _threshold(scale: float, delta: float, max_rows: int) -> int:
    """Return the T of the proof: for each number j of own categories, all stay below T but for delta."""
    return max(max_rows - own + 1 + threshold_for(scale, delta / own) for own in range(1, max_rows + 1))
