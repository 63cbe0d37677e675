"""Constraints that together leave no table with rows."""

from __future__ import annotations

from itertools import combinations

from kamino.constraints.analysis.findings import Finding, FindingKind, Question
from kamino.constraints.analysis.opaque import opaque
from kamino.constraints.analysis.reasoning import can_hold
from kamino.constraints.tree import Column, Comparison, DenialConstraint, NullTest, Predicate

_MAX_CONSTRAINTS = 40
_MAX_TOGETHER = 4


def find_contradictory(question: Question) -> list[Finding]:
    """The smallest sets of hard unary constraints that no row can satisfy.

    A row satisfies `not (p and q)` if some predicate is false or unknown. All choices of one failing predicate for each
    constraint are tried; if none can hold, no row exists.

    Guarantees:
        No non-empty table satisfies a set found here.  [test_contradictory_sets_allow_no_row]
    """
    unary = [c for c in question.constraints if c.is_hard and c.is_unary and can_hold(c.predicates)]
    found: list[Finding] = []
    blamed: list[set[DenialConstraint]] = []
    for size in range(1, min(_MAX_TOGETHER, len(unary)) + 1):
        for group in combinations(unary[:_MAX_CONSTRAINTS], size):
            if not _connected(group) or any(smaller <= set(group) for smaller in blamed):
                continue
            if not _some_row(group, question.not_null):
                blamed.append(set(group))
                found.append(_finding(group))
    return found


def _finding(group: tuple[DenialConstraint, ...]) -> Finding:
    return Finding(
        kind=FindingKind.CONTRADICTORY,
        constraint=group[-1],
        by=group[:-1],
        reason="no row can satisfy it" if len(group) == 1 else "no row can satisfy these together",
    )


def _connected(group: tuple[DenialConstraint, ...]) -> bool:
    """Whether the attributes hang together; where they do not, a smaller set is to blame."""
    reached = set(group[0].attributes)
    rest = list(group[1:])
    while rest:
        touching = [c for c in rest if reached & set(c.attributes)]
        if not touching:
            return False
        reached.update(*(c.attributes for c in touching))
        rest = [c for c in rest if c not in touching]
    return True


def _some_row(group: tuple[DenialConstraint, ...], not_null: frozenset[str]) -> bool:
    known: list[Predicate] = [
        NullTest(Column(name), negated=True)
        for name in sorted({name for c in group for name in c.attributes} & not_null)
    ]
    return _search([_escapes(c) for c in group], known)


def _search(choices: list[list[Predicate]], chosen: list[Predicate]) -> bool:
    if not can_hold(chosen):
        return False
    if not choices:
        return True
    return any(_search(choices[1:], [*chosen, escape]) for escape in choices[0])


def _escapes(constraint: DenialConstraint) -> list[Predicate]:
    """The ways in which a row can fail to make every predicate true."""
    escapes: list[Predicate] = []
    for predicate in map(opaque, constraint.predicates):
        match predicate:
            case NullTest(column=column, negated=negated):
                escapes.append(NullTest(column, not negated))
            case Comparison(left=left, op=op, right=right):
                escapes.append(Comparison(left, op.negated, right))
                escapes += [NullTest(column) for column in predicate.columns]
    return list(dict.fromkeys(escapes))
