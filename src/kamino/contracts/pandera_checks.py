"""The checks that pandera has by name, with their arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from kamino.constraints.language.expressions import Expression, Not
from kamino.constraints.terms.canonical_terms import applied, compared, is_true
from kamino.constraints.tree import Column, Constant, DenialConstraint, Operator
from kamino.contracts.contract import Contract, Draft
from kamino.contracts.gx_expectations import type_of_name
from kamino.contracts.rule_forms import between, holds, in_values, length_between, matches, not_null, unique, value_of
from kamino.errors import ConstraintError

_OPERATORS = {
    "gt": Operator.GT,
    "greater_than": Operator.GT,
    "ge": Operator.GE,
    "greater_than_or_equal_to": Operator.GE,
    "lt": Operator.LT,
    "less_than": Operator.LT,
    "le": Operator.LE,
    "less_than_or_equal_to": Operator.LE,
    "eq": Operator.EQ,
    "equal_to": Operator.EQ,
    "ne": Operator.NE,
    "not_equal_to": Operator.NE,
}
_FIRST = ("min_value", "max_value", "value", "allowed_values", "forbidden_values", "pattern", "string")


def check_statements(
    column: str, check: str, values: Sequence[Any], named: Mapping[str, Any]
) -> tuple[DenialConstraint, ...]:
    """The constraints of one check.

    Raises:
        ConstraintError: it is not known here, or its arguments are code.
    """
    return holds(_test(Column(column), check, list(values), dict(named)))


def _test(column: Column, check: str, values: list[Any], named: dict[str, Any]) -> Expression:
    def argument(*names: str) -> Any:
        found = next((named[name] for name in names if name in named), values[0] if values else None)
        if found is None or isinstance(found, ast.AST):
            raise ConstraintError("its argument is code")
        return found

    if check in _OPERATORS:
        return compared(column, _OPERATORS[check], value_of(argument(*_FIRST)))
    match check:
        case "isin":
            return in_values(column, _listed(argument("allowed_values")))
        case "notin":
            return Not(in_values(column, _listed(argument("forbidden_values"))))
        case "in_range" | "between":
            low, high = named.get("min_value", values[0] if values else None), named.get("max_value", _second(values))
            return between(
                column,
                low,
                high,
                strict_low=named.get("include_min") is False,
                strict_high=named.get("include_max") is False,
            )
        case "str_matches":
            return matches(column, "^(?:" + str(argument("pattern")) + ")")
        case "str_contains":
            return matches(column, str(argument("pattern")))
        case "str_startswith":
            return is_true(applied("starts_with", column, Constant(str(argument("string")))))
        case "str_endswith":
            return is_true(applied("ends_with", column, Constant(str(argument("string")))))
        case "str_length":
            low, high = named.get("min_value", values[0] if values else None), named.get("max_value", _second(values))
            exact = named.get("exact_value")
            return length_between(column, exact if exact is not None else low, exact if exact is not None else high)
    raise ConstraintError(f"the check '{check}' is not known here")


def _second(values: list[Any]) -> Any:
    return values[1] if len(values) > 1 else None


def _listed(value: Any) -> list[Any]:
    if isinstance(value, str):
        return list(value)
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    raise ConstraintError("its values are no list")


def contract_from_pandera(document: Mapping[str, Any], *, source: str = "<pandera>", table: str = "data") -> Contract:
    """Read pandera's YAML or JSON form: checks with one end or two, joint uniqueness, nullability.

    Guarantees:
        A check that is not carried over is listed.  [test_pandera_files_are_read]
    """
    draft = Draft(source)
    for place, (name, facts) in enumerate((document.get("columns") or {}).items(), start=1):
        facts = facts or {}
        column = Column(str(name))
        draft.column(table, str(name), type_of_name([str(facts.get("dtype") or "")]))
        if facts.get("nullable") is False or "nullable" not in facts:
            draft.add(table, partial(not_null, column), f"{name}: nullable: false", place)
        if facts.get("unique") is True:
            draft.add(table, partial(unique, [column]), f"{name}: unique: true", place)
        for check, arguments in _checks(facts):
            text = f"{name}: {check}: {arguments}"
            draft.add(table, partial(_of_file, str(name), check, arguments), text, place)
    joint = document.get("unique")
    if joint:
        columns = [Column(str(each)) for each in ([joint] if isinstance(joint, str) else joint)]
        draft.add(table, lambda: unique(columns), f"unique: {joint}")
    for check, arguments in _checks(document):
        draft.leave(table, f"{check}: {arguments}", "a check of the whole frame is code")
    return draft.contract()


def _checks(facts: Mapping[str, Any]) -> list[tuple[str, Any]]:
    checks = facts.get("checks") or {}
    if isinstance(checks, Mapping):
        return [(str(name), value) for name, value in checks.items()]
    found = []
    for each in checks:
        name = str((each.get("options") or {}).get("check_name"))
        found.append((name, {key: value for key, value in each.items() if key != "options"}))
    return found


def _of_file(column: str, check: str, arguments: Any) -> tuple[DenialConstraint, ...]:
    if isinstance(arguments, Mapping):
        given = {key: value for key, value in arguments.items() if key != "options"}
        return check_statements(column, check, list(given.values())[:1] if len(given) == 1 else [], given)
    return check_statements(column, check, [arguments], {})
