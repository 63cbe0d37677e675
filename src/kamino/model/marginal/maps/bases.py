"""Which attributes are read relative to which: bases, and what is read by them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kamino.model.marginal.graph.junction import Clique

#: No relation is told from a function beyond this: strengths are noisy.
LEAST_REST = 0.02


def choose_bases(
    strength: Mapping[Clique, float],
    sequence: Sequence[int] | None,
    strong: float,
    tied: frozenset[int] = frozenset(),
    closed: frozenset[tuple[int, int]] = frozenset(),
) -> dict[int, int]:
    """Return what is read relative to what: {attribute: its base}, so that the relations together tell most.

    A relation of strength s tells -log(1 - s * s): one that is nearly a function is worth several loose ones. Bases are
    added one by one, the best first, and exchanged for better ones; an attribute has the closest of them. A base is no
    key of the result. With a sequence, a base comes before what is read relative to it. Attributes of `tied` are bases
    only; no relation (attribute, base) of `closed` is read.

    Guarantees:
        A function is read by what it is a function of, not by a base of many.  [test_the_closest_base_is_chosen]
    """
    place = {a: i for i, a in enumerate(sequence)} if sequence is not None else {}
    worth: dict[int, dict[int, float]] = {}
    for (a, b), value in strength.items():
        for base, own in ((a, b), (b, a)) if value >= strong else ():
            if own not in tied and (own, base) not in closed and (not place or place[base] < place[own]):
                worth.setdefault(base, {})[own] = -math.log(max(1 - value * value, LEAST_REST))
    bases: frozenset[int] = frozenset()
    while True:
        grown = (bases | {a} for a in worth.keys() - bases)
        moved = (bases - {b} | {a} for b in bases for a in worth.keys() - bases)
        best = max(
            (*grown, *moved), key=lambda each: (round(_told(worth, each), 9), [-a for a in sorted(each)]), default=bases
        )
        if _told(worth, best) <= _told(worth, bases) + 1e-9:
            return {own: base for own, (_, base) in sorted(_closest(worth, bases).items())}
        bases = best


def _closest(worth: Mapping[int, Mapping[int, float]], bases: frozenset[int]) -> dict[int, tuple[float, int]]:
    """Return the closest base of each attribute that has one, with what it tells."""
    found: dict[int, tuple[float, int]] = {}
    for base in sorted(bases):
        for own, told in worth[base].items():
            if own not in bases and told > found.get(own, (0.0, base))[0]:
                found[own] = told, base
    return found


def _told(worth: Mapping[int, Mapping[int, float]], bases: frozenset[int]) -> float:
    """Return what all relations to these bases tell."""
    return sum(told for told, _ in _closest(worth, bases).values())
