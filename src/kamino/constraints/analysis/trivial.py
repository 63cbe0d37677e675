"""Constraints that no table can violate."""

from __future__ import annotations

from kamino.constraints.analysis.findings import Finding, FindingKind, Question
from kamino.constraints.analysis.reasoning import can_hold


def find_trivial(question: Question) -> list[Finding]:
    """A constraint whose predicates can never all hold.

    Guarantees:
        Nothing found here is ever violated.  [test_trivial_constraints_are_never_violated]
    """
    return [
        Finding(
            kind=FindingKind.TRIVIAL,
            constraint=constraint,
            reason="its predicates can never all be true, so no table violates it",
        )
        for constraint in question.constraints
        if not can_hold(constraint.predicates)
    ]
