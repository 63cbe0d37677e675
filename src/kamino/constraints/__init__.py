"""The constraint language, its analysis, and exact counting of violations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports

if TYPE_CHECKING:
    from kamino.constraints.analysis.classify import ConstraintClass, classify
    from kamino.constraints.analysis.findings import Finding, FindingKind
    from kamino.constraints.analysis.passes import analyse
    from kamino.constraints.collection import Constraints
    from kamino.constraints.counting.count import count_violations, find_violations, violations_per_row
    from kamino.constraints.language.printer import print_constraint
    from kamino.constraints.tree import DenialConstraint
    from kamino.constraints.types import ValueType, value_types

__all__ = [
    "ConstraintClass",
    "Constraints",
    "DenialConstraint",
    "Finding",
    "FindingKind",
    "ValueType",
    "analyse",
    "classify",
    "count_violations",
    "find_violations",
    "print_constraint",
    "value_types",
    "violations_per_row",
]

_HOMES = {
    "ConstraintClass": "analysis.classify",
    "Constraints": "collection",
    "DenialConstraint": "tree",
    "Finding": "analysis.findings",
    "FindingKind": "analysis.findings",
    "ValueType": "types",
    "analyse": "analysis.passes",
    "classify": "analysis.classify",
    "count_violations": "counting.count",
    "find_violations": "counting.count",
    "print_constraint": "language.printer",
    "value_types": "types",
    "violations_per_row": "counting.count",
}

__getattr__ = late_imports(__name__, _HOMES)
