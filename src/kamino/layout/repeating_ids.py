"""Ids of groups of rows, such as the rows of a patient: made up, and equal within a group.

What a group has in common is drawn with the groups, so that an id that depends on another is kept by construction. The
codec numbers groups, and gives each number its id.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from kamino.constraints import ConstraintClass, DenialConstraint, classify, print_constraint
from kamino.constraints.analysis.classify import dependency_of
from kamino.constraints.language.printer import print_name
from kamino.constraints.tree import Comparison, NullTest, Operator, is_cross
from kamino.errors import SamplingError
from kamino.layout.recoding import KeepsColumns, Rule, facts_of
from kamino.schema import Schema


@dataclass(frozen=True, kw_only=True)
class RepeatingIds(KeepsColumns):
    """The ids of groups of a schema.

    Guarantees:
        Nothing is spent on constraints that are refused.  [test_constraints_on_values_of_ids_are_refused]
    """

    kind: ClassVar[str] = "ids"
    by_codec: ClassVar[bool] = True

    names: tuple[str, ...]

    def rule(self, rule: Rule) -> Rule | None:
        """None for a dependency of one id on another; refuse what asks more of ids than that rows of a group agree."""
        if not isinstance(rule, DenialConstraint):
            return rule
        if ids_of_dependency(rule, self.names) is not None:
            return None
        problem = problem_with_ids(rule, self.names) if set(self.names) & set(rule.attributes) else ""
        if problem:
            raise SamplingError(
                f"{rule.place}: {print_constraint(rule)} {problem}; expected ids that repeat only on the "
                "left of a hard dependency, in a hard key with other attributes, or as the group of a hard constraint. "
                "Declare the column as another type to compare its values"
            )
        return rule

    def to_json(self) -> dict[str, Any]:
        """The schema tells everything."""
        return {"kind": self.kind}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], schema: Schema) -> Self:
        """Read what `to_json` wrote."""
        facts_of(document)
        return cls(names=schema.group_names)


def ids_of_dependency(constraint: DenialConstraint, ids: Collection[str]) -> tuple[str, str] | None:
    """The two ids of a dependency of one on another, which is kept by how groups are drawn; None for any other."""
    dependency = dependency_of(constraint) if constraint.is_hard else None
    if dependency is None or len(dependency.left) != 1 or dependency.right not in ids:
        return None
    (left,) = dependency.left
    return (left, dependency.right) if left in ids else None


def problem_with_ids(constraint: DenialConstraint, ids: Collection[str]) -> str:
    """Why a constraint cannot be kept with these ids; nothing where it can."""
    named = [name for name in constraint.attributes if name in ids]
    if not constraint.is_hard:
        return "is not hard"
    if constraint.reference is not None:
        return "has a reference table, which knows the values of ids"
    if classify(constraint) is ConstraintClass.KEY and len(named) > 1:
        return f"is a key over {' and '.join(map(print_name, named))}"
    if ids_of_dependency(constraint, ids) is not None:
        return ""
    return "" if all(_asks_for_equal(p, ids) for p in constraint.predicates) else "compares values of ids"


def _asks_for_equal(predicate: object, ids: Collection[str]) -> bool:
    """Whether a predicate says nothing of ids but that two rows have the same, or that one is null."""
    if isinstance(predicate, NullTest):
        return predicate.column.name not in ids or not predicate.negated
    assert isinstance(predicate, Comparison), "a predicate compares or asks for null"
    if not {column.name for column in predicate.columns} & set(ids):
        return True
    return (
        is_cross(predicate)
        and predicate.op is Operator.EQ
        and {column.name for column in predicate.columns} == {predicate.left.name}
    )
