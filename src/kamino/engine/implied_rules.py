"""Which of the constraints that were found say nothing beside the others. Public: all of it was released.

A list to be read by a person is better short. What seems to hold exactly and follows from other such constraints is
left out: `zip -> state` beside `zip -> city` and `city -> state`, and an order within equal `area` beside the same
within equal `state` where `area -> state`. Of several that follow from each other, the coarsest left sides stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Dependency: TypeAlias = tuple[tuple[str, ...], str]


def determined_by(names: Iterable[str], dependencies: Iterable[Dependency]) -> frozenset[str]:
    """Return what `names` determine by dependencies, themselves included."""
    reached, every = frozenset(names), list(dependencies)
    while more := {right for left, right in every if reached.issuperset(left)} - reached:
        reached |= more
    return reached


def without_implied(found: Sequence[Dependency], repeats: Mapping[tuple[str, ...], float]) -> list[Dependency]:
    """Return the dependencies that are left when those that follow from others are taken away, finest left side first.

    Guarantees:
        What is left implies all that was there, and none of it follows from the rest.
        [test_what_is_left_implies_the_rest]
    """
    kept = list(found)
    for each in sorted(found, key=lambda one: (repeats[one[0]], -len(one[0]))):
        others = [one for one in kept if one != each]
        if each[1] in determined_by(each[0], others):
            kept = others
    return kept


def without_chance_of_amounts(found: Sequence[Dependency], amounts: frozenset[str]) -> list[Dependency]:
    """Return the dependencies but those on an amount that something else, which is no amount, determines.

    The balance of an account seems to determine its owner, because no two owners have the same: that is chance, as it
    is where nobody shares an amount and it seems to be a key.

    Guarantees:
        Amounts of an owner determine nothing.  [test_what_an_owner_determines_does_not_determine_the_owner]
    """
    owned = {right for left, right in found if right in amounts and not amounts.issuperset(left)}
    return [each for each in found if not owned.issuperset(each[0])]
