"""Constraints stated twice."""

from __future__ import annotations

from kamino.constraints.analysis.canonical import canonical_predicates
from kamino.constraints.analysis.findings import Finding, FindingKind, Question
from kamino.constraints.tree import DenialConstraint, Predicate


def find_duplicates(question: Question) -> list[Finding]:
    """A constraint that an earlier one states already, perhaps in other words.

    Guarantees:
        Both have the same violations in every table.  [test_duplicates_have_equal_counts]
    """
    first: dict[tuple[Predicate, ...], DenialConstraint] = {}
    found = []
    for constraint in question.constraints:
        form = canonical_predicates(constraint.predicates)
        earlier = first.setdefault(form, constraint)
        if earlier is not constraint:
            found.append(
                Finding(
                    kind=FindingKind.DUPLICATE,
                    constraint=constraint,
                    by=(earlier,),
                    reason="says the same as an earlier constraint"
                    + ("" if earlier.strength == constraint.strength else ", with another strength"),
                )
            )
    return found
