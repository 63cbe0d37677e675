"""The constraint language, its analysis, and exact counting of violations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: all of them together are slow to import."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
