"""Does a table satisfy its constraints? Counts for each, as data.

Reads the table exactly and is for its owner only: nothing here is differentially private.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from kamino.constraints import (
    ConstraintClass,
    Constraints,
    Finding,
    analyse,
    classify,
    count_violations,
    find_violations,
    print_constraint,
)
from kamino.constraints.analysis.classify import dependency_of
from kamino.constraints.counting.count import explain_count
from kamino.constraints.counting.derived import count_underived
from kamino.constraints.counting.groups import count_groups, count_groups_in_parts, count_rows_rule
from kamino.constraints.counting.in_parts import count_in_parts
from kamino.constraints.counting.ranks import RankedTable
from kamino.constraints.derivation import Derivation
from kamino.constraints.group_rules import GroupRule, RowsRule
from kamino.constraints.language.printer import print_derivation, print_rule
from kamino.constraints.tree import DenialConstraint
from kamino.evaluate.following import Following, count_following
from kamino.schema.table_parts import Parts

Maps = Mapping[tuple[tuple[str, ...], str], pa.Table]
"""Public maps by the two sides of their dependency, with the types of the table that is checked."""


@dataclass(frozen=True, kw_only=True)
class ConstraintCheck:
    """One constraint's violations. `pairs` is how many there could be: rows for a unary constraint, else pairs.

    `following` says how many rows follow the reference table, where the constraint names one.
    """

    constraint: DenialConstraint
    shape: ConstraintClass
    violations: int
    pairs: int
    seconds: float
    method: str = ""
    examples: tuple[tuple[int, ...], ...] = ()
    following: Following | None = None

    @property
    def percent(self) -> float:
        """Violations in percent of what there could be; 0 where there is nothing."""
        return 100.0 * self.violations / self.pairs if self.pairs else 0.0

    @property
    def is_broken(self) -> bool:
        """Whether a hard constraint is violated, or rows contradict its reference table."""
        contradicting = self.following.contradicting if self.following is not None else 0
        return self.constraint.is_hard and (self.violations > 0 or contradicting > 0)


@dataclass(frozen=True, kw_only=True)
class GroupCheck:
    """How many groups of rows break a rule on groups; of a rule on several rows, how many sets of rows do."""

    rule: GroupRule | RowsRule
    violations: int
    groups: int

    @property
    def is_broken(self) -> bool:
        """Whether it is hard and broken."""
        return self.rule.is_hard and self.violations > 0


@dataclass(frozen=True, kw_only=True)
class DerivationCheck:
    """In how many rows a derived column differs from what it is computed as, a null where there is a value included."""

    derivation: Derivation
    violations: int


@dataclass(frozen=True, kw_only=True)
class TableCheck:
    """All constraints of a table, and what there is to say about the constraints themselves."""

    rows: int
    checks: tuple[ConstraintCheck, ...]
    findings: tuple[Finding, ...] = ()
    groups: tuple[GroupCheck, ...] = ()
    derivations: tuple[DerivationCheck, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether no hard constraint is violated."""
        broken = any(check.is_broken for check in self.checks) or any(check.is_broken for check in self.groups)
        return not broken and not any(check.violations for check in self.derivations)


def check_table(
    table: pa.Table,
    constraints: Constraints,
    *,
    examples: int = 0,
    explain: bool = False,
    references: Maps | None = None,
    progress: Callable[[Iterable[DenialConstraint]], Iterable[DenialConstraint]] = iter,
) -> TableCheck:
    """Count the violations of each constraint, with up to `examples` offending rows or pairs each.

    >>> rules = Constraints.parse("zip -> city")
    >>> result = check_table(pa.table({"zip": [1, 1, 2], "city": ["A", "B", "A"]}), rules)
    >>> result.checks[0].violations, result.is_clean
    (1, False)
    """
    ranked = RankedTable(table)
    checks = tuple(
        replace(
            _check_one(ranked, constraint, examples=examples, explain=explain),
            following=following_of(table, constraint, references or {}),
        )
        for constraint in progress(constraints)
    )
    without_null = frozenset(name for name in table.column_names if not table.column(name).null_count)
    return TableCheck(
        rows=table.num_rows,
        checks=checks,
        findings=analyse(constraints, not_null=without_null),
        groups=tuple(_check_groups(ranked, rule) for rule in constraints.group_rules),
        derivations=tuple(
            DerivationCheck(derivation=each, violations=count_underived(table, each))
            for each in constraints.derivations
        ),
    )


def _check_groups(ranked: RankedTable, rule: GroupRule | RowsRule) -> GroupCheck:
    if isinstance(rule, RowsRule):
        return GroupCheck(rule=rule, violations=count_rows_rule(ranked, rule), groups=0)
    found = count_groups(ranked, rule)
    return GroupCheck(rule=rule, violations=found.broken, groups=found.groups)


def check_parts(table: Parts, constraints: Constraints) -> TableCheck:
    """Count the violations of each constraint in a table that is read part by part, all of them together.

    Guarantees:
        The counts are those of `check_table`.  [test_a_table_in_parts_is_checked_alike]
    """
    begin = time.perf_counter()
    violations, rows = count_in_parts(table, constraints)
    seconds = (time.perf_counter() - begin) / max(1, len(violations))
    checks = tuple(
        ConstraintCheck(
            constraint=constraint,
            shape=classify(constraint),
            violations=violations[constraint],
            pairs=rows if constraint.is_unary else rows * (rows - 1) // 2,
            seconds=seconds,
            method="part by part, together with the others",
        )
        for constraint in constraints
    )
    groups = []
    for rule in constraints.group_rules:
        broken, found = count_groups_in_parts(table, rule, rows)
        groups.append(GroupCheck(rule=rule, violations=broken, groups=found))
    derived = [0] * len(constraints.derivations)
    for part in table.parts() if derived else ():
        for place, each in enumerate(constraints.derivations):
            derived[place] += count_underived(part, each)
    return TableCheck(
        rows=rows,
        checks=checks,
        findings=analyse(constraints, not_null=frozenset()),
        groups=tuple(groups),
        derivations=tuple(
            DerivationCheck(derivation=each, violations=count)
            for each, count in zip(constraints.derivations, derived, strict=True)
        ),
    )


def following_of(table: pa.Table, constraint: DenialConstraint, references: Maps) -> Following | None:
    """How the rows of a table follow the reference table of a constraint; None where it has none."""
    dependency = dependency_of(constraint) if constraint.reference is not None else None
    if dependency is None:
        return None
    left = tuple(sorted(dependency.left))
    reference = references.get((left, dependency.right))
    return None if reference is None else count_following(table, left, dependency.right, reference)


def _check_one(ranked: RankedTable, constraint: DenialConstraint, *, examples: int, explain: bool) -> ConstraintCheck:
    begin = time.perf_counter()
    violations = count_violations(ranked, constraint)
    seconds = time.perf_counter() - begin
    rows = ranked.num_rows
    return ConstraintCheck(
        constraint=constraint,
        shape=classify(constraint),
        violations=violations,
        pairs=rows if constraint.is_unary else rows * (rows - 1) // 2,
        seconds=seconds,
        method=_explained(ranked, constraint) if explain else "",
        examples=tuple(find_violations(ranked, constraint, limit=examples)) if examples and violations else (),
    )


def _explained(ranked: RankedTable, constraint: DenialConstraint) -> str:
    explanation = explain_count(ranked, constraint)
    both = "; both directions less those that count twice" if explanation.directions == 2 else ""
    return explanation.method + both


def as_json(result: TableCheck, *, explain: bool = False) -> dict[str, Any]:
    """The check as plain data for machines; `explain` adds the method and the findings."""
    document: dict[str, Any] = {"rows": result.rows, "constraints": [_row(c, explain) for c in result.checks]}
    if result.groups:
        document["groups"] = [
            {
                "text": print_rule(check.rule),
                "hard": check.rule.is_hard,
                "violations": check.violations,
                "of": check.groups,
            }
            for check in result.groups
        ]
    if result.derivations:
        document["derivations"] = [
            {"text": print_derivation(check.derivation), "violations": check.violations, "of": result.rows}
            for check in result.derivations
        ]
    if explain:
        document["findings"] = [
            {
                "kind": finding.kind.value,
                "constraint": print_constraint(finding.constraint),
                "by": [print_constraint(other) for other in finding.by],
                "reason": finding.reason,
            }
            for finding in result.findings
        ]
    return document


def _row(check: ConstraintCheck, explain: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "text": print_constraint(check.constraint),
        "class": check.shape.value,
        "hard": check.constraint.is_hard,
        "violations": check.violations,
        "pairs": check.pairs,
        "of": check.pairs,
        "unit": "rows" if check.constraint.is_unary else "pairs",
        "percent": check.percent,
        "seconds": round(check.seconds, 6),
    }
    if explain:
        row["method"] = check.method
    if check.following is not None:
        row["reference"] = {"file": check.constraint.reference, **check.following.to_json()}
    if check.examples:
        row["examples"] = [[index + 1 for index in example] for example in check.examples]
    return row
