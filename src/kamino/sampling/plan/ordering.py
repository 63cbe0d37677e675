"""The order of attributes: the one whose steps cost least."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log2

import numpy as np

from kamino.constraints.analysis.classify import dependency_of
from kamino.sampling.plan.deciding import Rules, decide_step

# Up to this many sets of attributes are followed at once; below 11 attributes that is all of them.
_BEAM = 1024
# With more attributes than this that hang together, fewer sets are followed, so that the time stays about the same.
_WIDE, _NARROW_BEAM = 16, 64
_TIE_BREAK = 1e-3


def order_attributes(names: Sequence[str], rules: Rules) -> tuple[str, ...]:
    """Return the attributes in the order in which they are drawn.

    Attributes that constraints on pairs tie together come first, each such set in its cheapest order; then all others,
    small domains first.
    """
    place = {name: i for i, name in enumerate(names)}
    first = [name for group in order_groups(names, rules) for name in group]
    rest = sorted(set(names) - set(first), key=lambda name: (rules.sizes[name], place[name]))
    return (*first, *rest)


def order_groups(names: Sequence[str], rules: Rules) -> tuple[tuple[str, ...], ...]:
    """Return the sets of attributes that constraints on pairs tie together, each in its cheapest order.

    What a check compares with the right side of a dependency comes after it. Each row's value is then cut down by the
    check. The other way round one value would have to suit all rows of a group, and the oddest of them would decide.
    """
    place = {name: i for i, name in enumerate(names)}
    tied = _components([[name for name in c.attributes if name not in rules.ids] for c in rules.pairs])
    checked = _checked_with_right_sides(tied, rules)
    ordered = [
        (*_cheapest(sorted(group, key=place.__getitem__), rules), *sorted(late, key=place.__getitem__))
        for group, late in zip(tied, checked, strict=True)
    ]
    return tuple(sorted(ordered, key=lambda group: (min(rules.sizes[name] for name in group), place[group[0]])))


def _checked_with_right_sides(tied: Sequence[set[str]], rules: Rules) -> list[set[str]]:
    """Return, for each set, the attributes outside all sets that a check compares with a right side in this one."""
    rights = {d.right for c in rules.pairs if (d := dependency_of(c)) is not None}
    outside = set(rules.sizes) - set().union(*tied) - rules.ids
    found: list[set[str]] = []
    for group in tied:
        touching = [c for c in rules.checks if rights & group & set(c.attributes)]
        mine = {name for c in touching for name in c.attributes} & outside
        outside -= mine
        found.append(mine)
    return found


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
    """Follow the cheapest order of each set of attributes; a step's cost depends on the set before it only.

    A set is a number with one bit for each attribute. Where not all sets are followed, those that begin an order along
    the dependencies are: what is cheap at first, attributes with no rule between them, is dear in the end.

    Guarantees:
        Chains and trees of dependencies of any length need no row-by-row step.  [test_long_chains_are_drawn_in_order]
    """
    costs = _StepCosts(names, rules)
    guides = [{sum(1 << place for place in order[:end]) for end in range(len(names))} for order in _along(names, rules)]
    beam = _BEAM if len(names) <= _WIDE else max(_NARROW_BEAM, _BEAM * _WIDE**2 // len(names) ** 2)
    best: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for position in range(len(names)):
        grown: dict[int, tuple[float, tuple[int, ...]]] = {}
        lates = [_TIE_BREAK * log2(1 + rules.sizes[name]) * (len(names) - position) for name in names]
        for done, (cost, order) in best.items():
            for place, late in enumerate(lates):
                if done >> place & 1:
                    continue
                total = cost + costs.of(place, done) + late
                key = done | 1 << place
                if key not in grown or total < grown[key][0] - 1e-12:
                    grown[key] = (total, (*order, place))
        best = dict(sorted(grown.items(), key=lambda item: item[1][0])[:beam])
        best |= {key: grown[key] for guide in guides for key in guide & grown.keys()}
    ((_, order),) = best.values()
    return tuple(names[place] for place in order)


def _along(names: Sequence[str], rules: Rules) -> list[list[int]]:
    """Return two orders along the dependencies: right sides before left sides, and left sides before right sides."""
    place = {name: i for i, name in enumerate(names)}
    links = {(place[x], place[d.right]) for d in rules.dependencies if d.right in place for x in d.left if x in place}
    sizes = [rules.sizes[name] for name in names]
    return [_topological(sizes, links), _topological(sizes, {(right, left) for left, right in links})]


def _topological(sizes: Sequence[int], links: set[tuple[int, int]]) -> list[int]:
    """Order places so that the second of each link comes before the first, small ones first; cycles are cut there."""
    waits: dict[int, set[int]] = {place: set() for place in range(len(sizes))}
    for after, before in links - {(place, place) for place in waits}:
        waits[after].add(before)
    order: list[int] = []
    while waits:
        place = min(waits, key=lambda each: (bool(waits[each]), sizes[each], each))
        del waits[place]
        order.append(place)
        for others in waits.values():
            others.discard(place)
    return order


class _StepCosts:
    """What it costs to draw an attribute after others: it depends on which constraints are then complete only."""

    def __init__(self, names: Sequence[str], rules: Rules) -> None:
        self._names = names
        self._rules = rules
        bit = {name: 1 << place for place, name in enumerate(names)}
        spoken = [set(c.attributes) - rules.ids for c in (*rules.pairs, *rules.checks, *rules.soft)]
        needed = [sum(bit[name] for name in set(each)) for each in spoken if bit.keys() >= set(each)]
        self._needed = [
            sorted({mask ^ 1 << place for mask in needed if mask >> place & 1}) for place in range(len(names))
        ]
        self._known: dict[tuple[int, tuple[bool, ...]], float] = {}

    def of(self, place: int, done: int) -> float:
        """The cost of the attribute at `place` once those in `done` are drawn."""
        key = (place, tuple([mask & done == mask for mask in self._needed[place]]))
        if key not in self._known:
            earlier = frozenset(name for i, name in enumerate(self._names) if done >> i & 1)
            self._known[key] = decide_step(self._names[place], earlier, self._rules)[1]
        return self._known[key]
