"""The closure of attributes under dependencies."""

from __future__ import annotations

from collections.abc import Iterable

from kamino.constraints.analysis.classify import dependency_of
from kamino.constraints.tree import DenialConstraint


def determined(names: frozenset[str], constraints: Iterable[DenialConstraint]) -> frozenset[str]:
    """Return what equal `names` make equal by the dependencies among the constraints."""
    dependencies = [d for c in constraints if c.is_hard and (d := dependency_of(c)) is not None]
    reached = names
    while True:
        more = {d.right for d in dependencies if d.left <= reached} - reached
        if not more:
            return reached
        reached |= more
