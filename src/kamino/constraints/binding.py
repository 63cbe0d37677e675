"""Constraints meet a schema: names are looked up, types compared, constants given the attribute's type."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from kamino.constraints.tree import Column, Comparison, Constant, DenialConstraint, NullTest, Predicate
from kamino.constraints.types import ValueType, ValueTypes
from kamino.errors import ConstraintError, UnknownAttributeError


def bind(constraint: DenialConstraint, types: ValueTypes) -> tuple[DenialConstraint, list[ConstraintError]]:
    """The constraint with typed constants, and everything about it that does not fit `types`.

    Guarantees:
        All errors are found, not only the first.  [test_all_errors_at_once]
    """
    errors: list[ConstraintError] = []
    predicates: list[Predicate] = []
    for predicate in constraint.predicates:
        unknown = [_unknown(column, types, constraint) for column in predicate.columns if column.name not in types]
        errors += unknown
        if unknown:
            continue
        try:
            predicates.append(_typed(predicate, types, constraint))
        except ConstraintError as problem:
            errors.append(problem)
    bound = constraint if errors else constraint.with_predicates(tuple(predicates))
    return bound, _distinct(errors)


def suggestion(name: str, names: Iterable[str]) -> str:
    """A sentence proposing the nearest of `names`, or an empty string."""
    known = list(names)
    folded = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" Did you mean '{folded[near[0]]}'?" if near else ""


def _distinct(errors: list[ConstraintError]) -> list[ConstraintError]:
    return list({str(error): error for error in errors}.values())


def _unknown(column: Column, types: ValueTypes, constraint: DenialConstraint) -> ConstraintError:
    at = column.place if column.place.line else constraint.place
    names = list(types)
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return UnknownAttributeError(
        f"attribute '{column.name}' is not in the schema.{suggestion(column.name, names)} Attributes: {shown}.",
        source=at.source,
        line=at.line,
        column=at.column,
    )


def _typed(predicate: Predicate, types: ValueTypes, constraint: DenialConstraint) -> Predicate:
    match predicate:
        case NullTest():
            return predicate
        case Comparison(left=left, right=Column() as right):
            _require_comparable(left, right, types, constraint)
            return predicate
        case Comparison(left=left, right=Constant() as right):
            return replace(predicate, right=_typed_constant(left, right, types[left.name], constraint))
    raise AssertionError(predicate)


def _require_comparable(left: Column, right: Column, types: ValueTypes, constraint: DenialConstraint) -> None:
    a, b = types[left.name], types[right.name]
    if not a.comparable(b):
        at = right.place if right.place.line else constraint.place
        raise ConstraintError(
            f"'{left.name}' is {a.value} and '{right.name}' is {b.value}, which cannot be compared; "
            "compare attributes of one type, or change the type of a column",
            source=at.source,
            line=at.line,
            column=at.column,
        )


def _typed_constant(column: Column, constant: Constant, expected: ValueType, constraint: DenialConstraint) -> Constant:
    found = constant_type(constant)
    if found is ValueType.TEXT and expected in (ValueType.DATE, ValueType.TIMESTAMP, ValueType.ZONED):
        value = moment(str(constant.value), expected)
        if value is not None:
            return replace(constant, value=value)
    elif found.comparable(expected):
        return constant
    at = constant.place if constant.place.line else constraint.place
    raise ConstraintError(
        f"found {_shown(constant)}, but '{column.name}' is {expected.value}; "
        f"expected {_EXAMPLES.get(expected, 'a value of that type')}",
        source=at.source,
        line=at.line,
        column=at.column,
    )


_EXAMPLES = {
    ValueType.NUMBER: "a number without quotes, such as 17 or 2.5",
    ValueType.TEXT: "a text in single quotes, such as 'abc'",
    ValueType.BOOLEAN: "true or false",
    ValueType.DATE: "a date such as '2024-02-29'",
    ValueType.TIMESTAMP: "a timestamp such as '2024-02-29 12:30:00'",
    ValueType.ZONED: "a timestamp with its offset, such as '2024-02-29 12:30:00+00:00'",
}


def _shown(constant: Constant) -> str:
    return f"'{constant.value}'" if isinstance(constant.value, str) else f"{constant.value}"


def constant_type(constant: Constant) -> ValueType:
    """The type of a constant as it is written."""
    match constant.value:
        case bool():
            return ValueType.BOOLEAN
        case int() | Decimal():
            return ValueType.NUMBER
        case datetime():
            return ValueType.TIMESTAMP if constant.value.tzinfo is None else ValueType.ZONED
        case date():
            return ValueType.DATE
        case _:
            return ValueType.TEXT


def moment(text: str, expected: ValueType) -> date | datetime | None:
    """The moment that a text stands for where one of a type is expected; None where it stands for none."""
    try:
        if expected is ValueType.DATE and len(text) <= 10:
            return date.fromisoformat(text)
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if (found.tzinfo is not None) == (expected is ValueType.ZONED) else None
