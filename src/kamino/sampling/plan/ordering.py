"""The order of attributes: the one whose steps cost least."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log2

import numpy as np

from kamino.sampling.plan.deciding import Rules, decide_step

# Up to this many sets of attributes are followed at once; below 11 attributes that is all of them.
_BEAM = 1024
_TIE_BREAK = 1e-3


def order_attributes(names: Sequence[str], rules: Rules) -> tuple[str, ...]:
    """Return the attributes in the order in which they are drawn.

    Attributes that constraints on pairs tie together come first, each such set in its cheapest order; then all others,
    small domains first.
    """
    place = {name: i for i, name in enumerate(names)}
    tied = _components([c.attributes for c in rules.pairs])
    ordered = [_cheapest(sorted(group, key=place.__getitem__), rules) for group in tied]
    ordered.sort(key=lambda group: (min(rules.sizes[name] for name in group), place[group[0]]))
    first = [name for group in ordered for name in group]
    rest = sorted(set(names) - set(first), key=lambda name: (rules.sizes[name], place[name]))
    return (*first, *rest)


def random_order(names: Sequence[str], rng: np.random.Generator) -> tuple[str, ...]:
    """Return the attributes in random order, to compare with."""
    return tuple(names[i] for i in rng.permutation(len(names)))


def _components(groups: Iterable[Sequence[str]]) -> list[set[str]]:
    found: list[set[str]] = []
    for group in groups:
        touching = [other for other in found if other & set(group)]
        found = [other for other in found if other not in touching]
        found.append(set(group).union(*touching))
    return found


def _cheapest(names: Sequence[str], rules: Rules) -> tuple[str, ...]:
    """Follow the cheapest order of each set of attributes; a step's cost depends on the set before it only."""
    best: dict[frozenset[str], tuple[float, tuple[str, ...]]] = {frozenset(): (0.0, ())}
    for position in range(len(names)):
        grown: dict[frozenset[str], tuple[float, tuple[str, ...]]] = {}
        for done, (cost, order) in best.items():
            for name in names:
                if name in done:
                    continue
                _, step_cost = decide_step(name, done, rules)
                late = _TIE_BREAK * log2(1 + rules.sizes[name]) * (len(names) - position)
                total = cost + step_cost + late
                key = done | {name}
                if key not in grown or total < grown[key][0] - 1e-12:
                    grown[key] = (total, (*order, name))
        best = dict(sorted(grown.items(), key=lambda item: item[1][0])[:_BEAM])
    ((_, order),) = best.values()
    return order
