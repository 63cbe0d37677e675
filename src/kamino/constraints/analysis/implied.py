"""Constraints that follow from the others: from a single one, or by the closure of functional dependencies."""

from __future__ import annotations

from collections.abc import Sequence

from kamino.constraints.analysis.canonical import same_meaning
from kamino.constraints.analysis.classify import dependency_of
from kamino.constraints.analysis.findings import Finding, FindingKind, Question, stated_not_null
from kamino.constraints.analysis.reasoning import can_hold, entails
from kamino.constraints.tree import DenialConstraint, NullTest, Predicate, swapped


def find_implied(question: Question) -> list[Finding]:
    """A constraint that holds in every table in which the hard ones `by` hold.

    A dependency is only passed on through attributes that hold no null: `a -> b` and `b -> c` do not give `a -> c`
    where `b` is null.

    Guarantees:
        Dropping an implied constraint allows no new table.  [test_implied_constraints_add_nothing]
        Two constraints never imply each other away.  [test_implied_never_drops_both]
    """
    kept = [c for c in question.constraints if can_hold(c.predicates)]
    found = []
    for constraint in reversed(list(kept)):
        others = [c for c in kept if c is not constraint and c.is_hard]
        by, reason = _implied_by(constraint, others, question.not_null)
        if by and not any(same_meaning(constraint, other) for other in by):
            kept = [c for c in kept if c is not constraint]
            found.append(Finding(kind=FindingKind.IMPLIED, constraint=constraint, by=by, reason=reason))
    return found[::-1]


def _implied_by(
    constraint: DenialConstraint, others: Sequence[DenialConstraint], not_null: frozenset[str]
) -> tuple[tuple[DenialConstraint, ...], str]:
    stated = {name: other for other in others if (name := stated_not_null(other))}
    for known in (not_null, not_null | frozenset(stated)):
        by, reason = _direct(constraint, others, known)
        if by:
            names = {name for c in (constraint, *by) for name in c.attributes} - not_null
            relied = tuple(stated[name] for name in sorted(names & set(stated)) if known != not_null)
            return (*by, *(c for c in relied if c not in by)), reason
    return (), ""


def _direct(
    constraint: DenialConstraint, others: Sequence[DenialConstraint], not_null: frozenset[str]
) -> tuple[tuple[DenialConstraint, ...], str]:
    for other in others:
        if _follows(constraint, other, not_null):
            return (other,), "whatever violates it also violates a stronger constraint"
    chain = _closure_chain(constraint, others, not_null)
    return chain, "it follows from these functional dependencies" if chain else ""


def _follows(constraint: DenialConstraint, other: DenialConstraint, not_null: frozenset[str]) -> bool:
    """Whether every violation of `constraint` holds a violation of `other`, for some naming of its tuples."""
    known = [*constraint.predicates, *_never_null(constraint, not_null)]
    if (constraint.is_unary and not other.is_unary) or not can_hold(known):
        return False
    return any(
        all(entails(known, predicate) for predicate in renamed)
        for renamed in (other.predicates, tuple(swapped(p) for p in other.predicates))
    )


def _never_null(constraint: DenialConstraint, not_null: frozenset[str]) -> list[Predicate]:
    return [NullTest(c, negated=True) for c in constraint.columns() if c.name in not_null]


def _closure_chain(
    constraint: DenialConstraint, others: Sequence[DenialConstraint], not_null: frozenset[str]
) -> tuple[DenialConstraint, ...]:
    """The dependencies, in the order of use, that carry `constraint`'s equalities to its unequal attribute."""
    target = dependency_of(constraint)
    if target is None:
        return ()
    equal, goal = set(target.left), target.right
    used: list[DenialConstraint] = []
    usable = {other: dependency for other in others if (dependency := dependency_of(other))}
    progress = True
    while progress:
        progress = False
        for other, dependency in usable.items():
            if dependency.right in equal or not dependency.left <= equal:
                continue
            if dependency.right == goal:
                return (*_needed(used, dependency.left, frozenset(target.left)), other)
            if dependency.right in not_null:
                equal.add(dependency.right)
                used.append(other)
                progress = True
    return ()


def _needed(
    used: Sequence[DenialConstraint], wanted: frozenset[str], given: frozenset[str]
) -> tuple[DenialConstraint, ...]:
    """The part of `used` that `wanted` was really reached by."""
    needed: list[DenialConstraint] = []
    open_names = set(wanted - given)
    for constraint in reversed(used):
        dependency = dependency_of(constraint)
        assert dependency is not None, "only dependencies are ever used"
        if dependency.right in open_names:
            needed.append(constraint)
            open_names |= dependency.left - given
    return tuple(reversed(needed))
