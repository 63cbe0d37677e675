"""Rules in words: what each is, which are said twice, follow from others, or clash; of sums by exact elimination."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from kamino.constraints import ConstraintClass, Constraints, DenialConstraint, FindingKind, analyse, classify
from kamino.constraints.language.printer import print_constraint, print_derivation, print_rule
from kamino.constraints.tree import Kind
from kamino.sampling.intervals.linear_forms import forms_of
from kamino.sampling.intervals.projecting import System

_WORDS = {
    ConstraintClass.UNARY: "holds in each row",
    ConstraintClass.FD: "equal left sides have equal right sides",
    ConstraintClass.KEY: "no two rows have the same values",
    ConstraintClass.ORDER: "two attributes rise or fall together",
    ConstraintClass.GENERAL: "holds for each pair of rows",
}
_FINDINGS = {
    FindingKind.TRIVIAL: "says nothing",
    FindingKind.DUPLICATE: "is said twice",
    FindingKind.IMPLIED: "follows from others",
    FindingKind.CONTRADICTORY: "clashes",
}


def explained(rules: Constraints) -> tuple[list[str], bool]:
    """Lines about the rules, and whether some of them clash.

    Guarantees:
        A clash that is named allows no row.  [test_rules_are_explained]
    """
    lines = [f"{print_derivation(each)}: computed, never drawn" for each in rules.derivations]
    lines += [f"{print_constraint(each)}: {_strength(each)}{_WORDS[classify(each)]}" for each in rules]
    lines += [f"{print_rule(each)}: holds for each group of rows" for each in rules.group_rules]
    clash = False
    for finding in analyse(rules):
        by = "".join(f"\n    {print_constraint(other)}" for other in finding.by)
        said = f"{_FINDINGS[finding.kind]}: {finding.reason}{':' if by else ''}{by}"
        lines.append(f"note: {print_constraint(finding.constraint)} {said}")
        clash |= finding.kind is FindingKind.CONTRADICTORY
    sums = () if clash else clashing_sums(rules.items)
    if sums:
        listed = "".join(f"\n    {print_constraint(each)}" for each in sums)
        lines.append(f"note: no row without nulls keeps these sums together:{listed}")
    return lines, clash or bool(sums)


_FAR = Fraction(10) ** 60
"""Further than any number that a rule names: without a schema no attribute has an end."""


def clashing_sums(constraints: Sequence[DenialConstraint]) -> tuple[DenialConstraint, ...]:
    """A smallest set of hard linear rules that no numbers keep; none where all go together."""
    known = [each for each in constraints if each.is_hard and each.is_unary and forms_of(each)]

    def is_impossible(some: Sequence[DenialConstraint]) -> bool:
        names = {name for each in some for name in each.attributes}
        ends = dict.fromkeys(names, (-_FAR, _FAR))
        return System.of(some, ends, frozenset(names)).is_impossible()

    if not is_impossible(known):
        return ()
    for each in list(known):
        fewer = [other for other in known if other is not each]
        if is_impossible(fewer):
            known = fewer
    return tuple(known)


def _strength(constraint: DenialConstraint) -> str:
    return {Kind.HARD: "", Kind.SOFT: "as often as in the table, ", Kind.WEIGHTED: "weighted, "}[
        constraint.strength.kind
    ]
