"""Types that constraints ask for: a column that is compared with a number is one, whatever noisy counts say.

Where types are found within the budget, they are in doubt, and constraints are not. A rule is public, so taking a type
from it costs nothing; and no run ends, its budget spent, because a type was found that a rule cannot be read with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kamino.advice import Advice, drafting
from kamino.constraints import Constraints, DenialConstraint, ValueType
from kamino.constraints.binding import constant_type, moment
from kamino.constraints.tree import Column, Comparison, Constant
from kamino.errors import ConstraintError, ConstraintErrors
from kamino.pipeline.plan.bound_schema import schema_types
from kamino.schema import Attribute, Boolean, Categorical, Date, Datetime, Integer, Real, Schema

_MOMENTS = (ValueType.DATE, ValueType.TIMESTAMP, ValueType.ZONED)


def refuse_clashing_types(constraints: Constraints) -> None:
    """Refuse constraints that need one column to be of two types, before any type is found.

    Raises:
        ConstraintErrors: a column is compared with constants of several types, itself or by way of other columns.

    Guarantees:
        No type that is found later is the reason of a refusal.  [test_rules_decide_types_that_are_in_doubt]
    """
    faults = []
    for group in _compared(constraints):
        constants = [(c, constant) for c in constraints for name, constant in _constants(c) if name in group]
        needed = {kind: (c, constant) for c, constant in constants for kind in (_family(constant),)}
        firm = [kind for kind in needed if kind is not ValueType.UNKNOWN]
        if len(firm) > 1:
            constraint, constant = needed[firm[-1]]
            at = constant.place if constant.place.line else constraint.place
            names = ", ".join(sorted(group))
            faults.append(
                Advice.of(
                    "types-contradict",
                    f"found {names} compared with {firm[-1].value} here and with {firm[0].value} elsewhere; expected "
                    "one type. Declare types in a schema (",
                    *(drafting(), ") to see which constraint is wrong"),
                    about=sorted(group),
                ).error(ConstraintError, source=at.source, line=at.line, column=at.column)
            )
    if faults:
        raise ConstraintErrors(faults)


def with_required_types(schema: Schema, constraints: Constraints) -> Schema:
    """A schema whose types were found, with those that the constraints ask for in their place where they differ."""
    types = schema_types(schema)
    for group in _compared(constraints):
        here = sorted(group & set(schema))
        constants = [constant for c in constraints for name, constant in _constants(c) if name in group]
        wanted = _wanted(constants, [types[name] for name in here])
        if wanted is None:
            continue
        for name in here:
            if not _holds(types[name], wanted):
                schema = schema.with_attribute(name, _attribute(wanted, constants))
    return schema


def _compared(constraints: Iterable[DenialConstraint]) -> list[frozenset[str]]:
    """The columns that constraints compare with constants or with each other, in groups of one type each."""
    groups: list[frozenset[str]] = []
    for constraint in constraints:
        for predicate in constraint.predicates:
            if isinstance(predicate, Comparison):
                together = frozenset(column.name for column in predicate.columns)
                touched = [group for group in groups if group & together]
                groups = [group for group in groups if not group & together]
                groups.append(together.union(*touched))
    return groups


def _constants(constraint: DenialConstraint) -> Iterator[tuple[str, Constant]]:
    for predicate in constraint.predicates:
        match predicate:
            case Comparison(left=Column(name=name), right=Constant() as constant):
                yield name, constant
            case _:
                continue


def _family(constant: Constant) -> ValueType:
    """The type that a constant asks for; unknown for a text that may stand for a moment."""
    kind = constant_type(constant)
    if kind is ValueType.TEXT and any(moment(str(constant.value), each) is not None for each in _MOMENTS):
        return ValueType.UNKNOWN
    return ValueType.DATE if kind in _MOMENTS else kind


def _wanted(constants: list[Constant], found: list[ValueType]) -> ValueType | None:
    """The type that columns of a group must have; None where what was found will do."""
    firm = {_family(each) for each in constants} - {ValueType.UNKNOWN}
    if firm:
        kind = firm.pop()
        exact = {constant_type(each) for each in constants if constant_type(each) in _MOMENTS}
        return (exact or {kind}).pop() if kind is ValueType.DATE else kind
    if constants and not all(kind in (*_MOMENTS[:2], ValueType.TEXT) for kind in found):
        return ValueType.TEXT
    if (
        constants
        and ValueType.TEXT not in found
        and not all(_reads(each, kind) for each in constants for kind in found)
    ):
        return ValueType.TEXT
    return None if all(a.comparable(b) for a in found for b in found) else ValueType.TEXT


def _reads(constant: Constant, kind: ValueType) -> bool:
    return moment(str(constant.value), kind) is not None


def _holds(found: ValueType, wanted: ValueType) -> bool:
    return found is wanted or (wanted is ValueType.DATE and found is ValueType.TIMESTAMP)


def _attribute(wanted: ValueType, constants: list[Constant]) -> Attribute:
    """An attribute without a domain, of the type that is wanted."""
    match wanted:
        case ValueType.NUMBER:
            whole = all(isinstance(each.value, int) for each in constants)
            return Integer(nullable=True) if whole else Real(nullable=True)
        case ValueType.BOOLEAN:
            return Boolean(nullable=True)
        case ValueType.DATE:
            return Date(nullable=True)
        case ValueType.TIMESTAMP:
            return Datetime(nullable=True)
        case ValueType.ZONED:
            return Datetime(nullable=True, timezone="UTC")
        case _:
            return Categorical(nullable=True)
