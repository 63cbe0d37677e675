"""Violations of each constraint in both tables, or the reason why one cannot be counted.

A constraint is counted by itself: a column of the wrong type keeps only those from being counted that need its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from kamino.constraints import Constraints, DenialConstraint, print_constraint, value_types
from kamino.constraints.binding import bind
from kamino.constraints.tree import Column, Comparison, Predicate
from kamino.constraints.types import ValueTypes
from kamino.evaluate.checking import ConstraintCheck, check_table

Progress = Callable[[str], Callable[[Iterable[Any]], Iterable[Any]]]


def count_both(true: pa.Table, synthetic: pa.Table, constraints: Constraints, track: Progress) -> list[dict[str, Any]]:
    """A row for each constraint; constraints that do not fit the true table are an error of who wrote them."""
    types = value_types(true)
    bound = constraints.bind(types)
    one = check_table(true, bound, progress=track("Counting violations, true"))
    rows = count_synthetic(synthetic, bound, types, track)
    return [{**row, "true": _violations(check)} for row, check in zip(rows, one.checks, strict=True)]


def count_synthetic(
    synthetic: pa.Table, constraints: Constraints, expected: ValueTypes, track: Progress
) -> list[dict[str, Any]]:
    """A row for each constraint, about the synthetic table alone; `expected` is what its columns should hold.

    Guarantees:
        One constraint that cannot be counted leaves the others as they are.
        [test_each_constraint_is_counted_by_itself]
    """
    found = value_types(synthetic)
    fitting: list[DenialConstraint] = []
    reasons: list[str | None] = []
    for constraint in constraints:
        bound, errors = bind(constraint, found)
        reason = why_not(constraint, found, expected) or "; ".join(error.message for error in errors) or None
        reasons.append(reason)
        if reason is None:
            fitting.append(bound)
    checks = iter(
        check_table(synthetic, Constraints(tuple(fitting)), progress=track("Counting violations, synthetic")).checks
    )
    return [
        {
            "text": print_constraint(constraint),
            "hard": constraint.is_hard,
            "unit": "rows" if constraint.is_unary else "pairs",
            "true": None,
            "synthetic": _violations(next(checks)) if reason is None else None,
            "not_counted": reason,
        }
        for constraint, reason in zip(constraints, reasons, strict=True)
    ]


def why_not(constraint: DenialConstraint, found: ValueTypes, expected: ValueTypes) -> str:
    """Which columns are missing, or hold something else than they should where their values matter; else nothing.

    Comparing a column with itself for equality needs no certain type; an order does: as text, 9 is above 10.
    """
    wrong = dict.fromkeys(
        name
        for predicate in constraint.predicates
        if _needs_types(predicate)
        for name in (column.name for column in predicate.columns)
        if name in found and name in expected and not found[name].comparable(expected[name])
    )
    missing = [f"{name} is not in the synthetic table" for name in constraint.attributes if name not in found]
    return "; ".join(
        [*missing, *(f"{n} is {found[n].value} in the synthetic table, expected {expected[n].value}" for n in wrong)]
    )


def _needs_types(predicate: Predicate) -> bool:
    if not isinstance(predicate, Comparison):
        return False
    itself = isinstance(predicate.right, Column) and predicate.right.name == predicate.left.name
    return predicate.op.is_order or not itself


def _violations(check: ConstraintCheck) -> dict[str, Any]:
    """One table's violations of one constraint."""
    return {"violations": check.violations, "of": check.pairs, "percent": check.percent}
