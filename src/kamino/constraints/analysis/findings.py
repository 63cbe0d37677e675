"""What a pass has to say of a constraint."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from kamino.constraints.tree import Column, DenialConstraint, NullTest


class FindingKind(enum.Enum):
    """Why a constraint deserves a look."""

    TRIVIAL = "trivial"
    CONTRADICTORY = "contradictory"
    DUPLICATE = "duplicate"
    IMPLIED = "implied"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`constraint` is of `kind`, because of the constraints `by` (none where it is so by itself)."""

    kind: FindingKind
    constraint: DenialConstraint
    by: tuple[DenialConstraint, ...] = ()
    reason: str


@dataclass(frozen=True, kw_only=True)
class Question:
    """What every pass is given: the constraints, and the attributes known to hold no null."""

    constraints: tuple[DenialConstraint, ...]
    not_null: frozenset[str] = frozenset()


Pass = Callable[[Question], list[Finding]]


def stated_not_null(constraint: DenialConstraint) -> str | None:
    """The attribute of a hard `check (a is not null)`, or None for any other constraint."""
    match constraint.predicates:
        case (NullTest(column=Column(name=name), negated=False),) if constraint.is_hard:
            return name
        case _:
            return None
