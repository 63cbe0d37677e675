"""Constraints meet a schema: names are looked up, types compared, constants given the attribute's type."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime

from kamino.constraints.derivation import Derivation
from kamino.constraints.group_rules import GroupRule, Measure, RowsRule
from kamino.constraints.terms.term import Term
from kamino.constraints.terms.term_types import as_type, bound_term, type_of
from kamino.constraints.terms.term_types import constant_type as constant_type
from kamino.constraints.tree import (
    Column,
    Comparison,
    Constant,
    DenialConstraint,
    NullTest,
    Place,
    Predicate,
    TermTest,
)
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


def bind_derivation(derivation: Derivation, types: ValueTypes) -> tuple[Derivation, ValueType, list[ConstraintError]]:
    """The derivation with typed constants, the type of what it makes, and what does not fit."""
    term, errors = _bound_term(derivation.term, types, derivation.place)
    found = ValueType.UNKNOWN if errors else type_of(term, types)
    declared = types.get(derivation.target, ValueType.UNKNOWN)
    if not errors and not found.comparable(declared):
        at = derivation.place
        errors.append(
            ConstraintError(
                f"'{derivation.target}' is {declared.value} and what it is computed as is {found.value}; "
                "expected one type",
                source=at.source,
                line=at.line,
                column=at.column,
            )
        )
    return replace(derivation, term=term), found, errors


def bind_group_rule(
    rule: GroupRule | RowsRule, types: ValueTypes
) -> tuple[GroupRule | RowsRule, list[ConstraintError]]:
    """The rule with typed constants, and everything about it that does not fit."""
    if isinstance(rule, RowsRule):
        plain = DenialConstraint(predicates=(NullTest(Column("x")),), place=rule.place)
        errors = [_unknown(column, types, plain) for column in rule.columns() if column.name not in types]
        if errors:
            return rule, _distinct(errors)
        try:
            return replace(rule, predicates=tuple(_typed(each, types, plain) for each in rule.predicates)), []
        except ConstraintError as problem:
            return rule, [problem]
    errors = [_unknown_at(Column(name), types, rule.place) for name in rule.per if name not in types]
    made: dict[str, Term | None] = {"term": rule.term, "where": rule.where}
    for part, term in made.items():
        if term is not None:
            made[part], wrong = _bound_term(term, types, rule.place)
            errors += wrong
    needs_number = rule.measure not in (Measure.ROWS, Measure.DISTINCT)
    if not errors and made["term"] is not None and needs_number:
        found = type_of(made["term"], types)
        if not found.comparable(ValueType.NUMBER):
            at = rule.place
            errors.append(
                ConstraintError(
                    f"found {found.value} in '{rule.measure.value}', expected a number",
                    source=at.source,
                    line=at.line,
                    column=at.column,
                )
            )
    return replace(rule, term=made["term"], where=made["where"]), _distinct(errors)


def _bound_term(term: Term, types: ValueTypes, place: Place) -> tuple[Term, list[ConstraintError]]:
    unknown = [_unknown_at(column, types, place) for column in term.columns if column.name not in types]
    if unknown:
        return term, unknown
    try:
        return bound_term(term, types, place), []
    except ConstraintError as problem:
        return term, [problem]


def suggestion(name: str, names: Iterable[str]) -> str:
    """A sentence proposing the nearest of `names`, or an empty string."""
    known = list(names)
    folded = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" Did you mean '{folded[near[0]]}'?" if near else ""


def _distinct(errors: list[ConstraintError]) -> list[ConstraintError]:
    return list({str(error): error for error in errors}.values())


def _unknown(column: Column, types: ValueTypes, constraint: DenialConstraint) -> ConstraintError:
    # What compares two rows, such as a dependency, has no constants.
    alone = all(each.tuple == 1 for each in constraint.columns())
    return _unknown_at(column, types, constraint.place, may_be_text=alone)


def _unknown_at(column: Column, types: ValueTypes, place: Place, *, may_be_text: bool = True) -> ConstraintError:
    at = column.place if column.place.line else place
    names = list(types)
    near = suggestion(column.name, names)
    hint = near or (f" Is it a text? Texts have single quotes: '{column.name}'." if may_be_text else "")
    shown = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    return UnknownAttributeError(
        f"attribute '{column.name}' is not in the schema.{hint} Attributes: {shown}.",
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
        case TermTest():
            return _typed_test(predicate, types, constraint.place)
    raise AssertionError(predicate)


def _typed_test(test: TermTest, types: ValueTypes, place: Place) -> TermTest:
    left, right = (bound_term(side, types, place) for side in (test.left, test.right))
    found = type_of(left, types), type_of(right, types)
    left, right = as_type(left, found[1], place), as_type(right, found[0], place)
    a, b = type_of(left, types), type_of(right, types)
    if not a.comparable(b):
        at = next((each.place for each in (test.left, test.right) if each.place.line), place)
        raise ConstraintError(
            f"found {a.value} compared with {b.value}, expected one type; number(x), date(x) and text(x) change it",
            source=at.source,
            line=at.line,
            column=at.column,
        )
    return TermTest(left, test.op, right)


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


def moment(text: str, expected: ValueType) -> date | datetime | None:
    """The moment that a text stands for where one of a type is expected; None where it stands for none."""
    try:
        if expected is ValueType.DATE and len(text) <= 10:
            return date.fromisoformat(text)
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if (found.tzinfo is not None) == (expected is ValueType.ZONED) else None
