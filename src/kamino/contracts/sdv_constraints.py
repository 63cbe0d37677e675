"""Constraints of SDV, of its versions 1 and 2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kamino.constraints.language.expressions import And
from kamino.constraints.language.parser import Statement
from kamino.constraints.terms.canonical_terms import applied, compared
from kamino.constraints.terms.term import Term
from kamino.constraints.tree import Column, Constant, Operator
from kamino.contracts.contract import Contract, Draft
from kamino.contracts.rule_forms import holds, in_values, unique, value_of
from kamino.errors import ConstraintError

SDV_CLASSES = (
    "Inequality",
    "ScalarInequality",
    "Range",
    "ScalarRange",
    "Positive",
    "Negative",
    "OneHotEncoding",
    "FixedIncrements",
    "FixedCombinations",
    "Unique",
)
_RELATIONS = {">": Operator.GT, ">=": Operator.GE, "<": Operator.LT, "<=": Operator.LE}


def contract_from_sdv_constraints(document: Any, *, source: str = "<sdv>", table: str = "data") -> Contract:
    """Read the constraints in SDV's metadata or in a list of them, each a class with parameters.

    Guarantees:
        A constraint that is not carried over is listed.  [test_sdv_constraints_are_read]
    """
    draft = Draft(source)
    listed = document.get("constraints") if isinstance(document, Mapping) else document
    for place, each in enumerate(listed if isinstance(listed, list) else [], start=1):
        if not isinstance(each, Mapping):
            continue
        name = str(each.get("constraint_class") or each.get("constraint_name") or "")
        parameters = each.get("constraint_parameters") or each.get("parameters") or {}
        where = str(each.get("table_name") or parameters.get("table_name") or table)
        draft.add(where, partial(sdv_statements, name, [], parameters), f"{name} {dict(parameters)}", place)
    return draft.contract()


def sdv_statements(name: str, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[Statement, ...]:
    """What a constraint says of rows.

    Raises:
        ConstraintError: it is not known here, or says something else.
    """

    def column(key: str) -> Column:
        found = named.get(key)
        if not isinstance(found, str):
            raise ConstraintError(f"it has no '{key}'")
        return Column(found)

    def columns() -> list[Column]:
        found = named.get("column_names", given[0] if given else None)
        if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found) or not found:
            raise ConstraintError("its columns are code")
        return [Column(each) for each in found]

    strict = named.get("strict_boundaries")
    match name:
        case "Inequality":
            op = Operator.LT if strict is True else Operator.LE
            return holds(compared(column("low_column_name"), op, column("high_column_name")))
        case "Range":
            op = Operator.LE if strict is False else Operator.LT
            low, middle, high = (column(f"{which}_column_name") for which in ("low", "middle", "high"))
            return holds(And((compared(low, op, middle), compared(middle, op, high))))
        case "ScalarInequality":
            relation = _RELATIONS.get(str(named.get("relation")))
            if relation is None:
                raise ConstraintError("it has no relation")
            return holds(compared(column("column_name"), relation, value_of(named.get("value"))))
        case "ScalarRange":
            op = Operator.LE if strict is False else Operator.LT
            subject = column("column_name")
            least, most = value_of(named.get("low_value")), value_of(named.get("high_value"))
            return holds(And((compared(subject, op.mirrored, least), compared(subject, op, most))))
        case "Positive" | "Negative":
            side = {"Positive": (Operator.GT, Operator.GE), "Negative": (Operator.LT, Operator.LE)}[name]
            zero = Constant(0)
            return holds(compared(column("column_name"), side[0] if strict is True else side[1], zero))
        case "FixedIncrements":
            step = value_of(named.get("increment_value"))
            return holds(compared(applied("mod", column("column_name"), step), Operator.EQ, Constant(0)))
        case "OneHotEncoding":
            found: Term = columns()[0]
            for each in columns()[1:]:
                found = applied("add", found, each)
            return (
                *(s for each in columns() for s in holds(in_values(each, [0, 1]))),
                *holds(compared(found, Operator.EQ, Constant(1))),
            )
        case "Unique":
            return unique(columns())
        case "FixedCombinations":
            raise ConstraintError("it keeps the combinations that the table has, which are private")
    raise ConstraintError(f"the constraint '{name}' is not known here")
