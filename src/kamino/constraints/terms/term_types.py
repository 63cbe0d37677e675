"""The type of a term, and what of it does not fit the types of the columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.terms.term_functions import COMPARING, FUNCTIONS, MOMENTS, NUMBERS, UNITS
from kamino.constraints.terms.texts import pattern_problem
from kamino.constraints.tree import Column, Constant, Place
from kamino.constraints.types import ValueType
from kamino.errors import ConstraintError
from kamino.limits import cut

Types = Mapping[str, ValueType]
_MOST_EXPONENT = 8
_MOST_DIGITS = 30


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


def type_of(term: Term, types: Types) -> ValueType:
    """The type of a term whose columns are known."""
    match term:
        case Column(name=name):
            return types.get(name, ValueType.UNKNOWN)
        case Constant():
            return constant_type(term)
        case Apply(function="choose", arguments=(_, chosen, other)):
            return _common(type_of(chosen, types), type_of(other, types))
        case Apply(function="coalesce" | "min" | "max", arguments=arguments):
            found = type_of(arguments[0], types)
            for each in arguments[1:]:
                found = _common(found, type_of(each, types))
            return found
        case Apply(function="add" | "subtract" as name, arguments=(first, second)):
            return _sum_type(name, type_of(first, types), type_of(second, types), first, second)
        case Apply(function="start_of", arguments=(unit, moment)):
            is_hour = isinstance(unit, Constant) and unit.value == "hour"
            return type_of(moment, types) if is_hour else ValueType.DATE
        case Apply(function=name, arguments=arguments):
            return FUNCTIONS[name].gives or type_of(arguments[0], types)


def _common(first: ValueType, second: ValueType) -> ValueType:
    if first is ValueType.UNKNOWN:
        return second
    return ValueType.TIMESTAMP if {first, second} == {ValueType.DATE, ValueType.TIMESTAMP} else first


def _sum_type(name: str, first: ValueType, second: ValueType, a: Term, b: Term) -> ValueType:
    if name == "subtract" and first in MOMENTS and second in MOMENTS:
        return ValueType.NUMBER
    if first is ValueType.DATE and not (isinstance(b, Constant) and isinstance(b.value, int)):
        return ValueType.TIMESTAMP if isinstance(b, Constant) else ValueType.DATE
    return ValueType.NUMBER if first is ValueType.UNKNOWN else first


def bound_term(term: Term, types: Types, at: Place) -> Term:
    """The term with constants of the types that they meet.

    Raises:
        ConstraintError: a function is given what it does not take; with its place and what it takes.
    """
    if not isinstance(term, Apply):
        return term
    place = term.place if term.place.line else at
    arguments = tuple(bound_term(each, types, at) for each in term.arguments)
    if term.function in COMPARING or term.function in ("in", "nullif", "coalesce", "min", "max"):
        arguments = _compared(term.function, arguments, types, place)
    term = replace(term, arguments=arguments)
    _check_arguments(term, types, place)
    _check_constants(term, place)
    return term


def _compared(name: str, arguments: tuple[Term, ...], types: Types, place: Place) -> tuple[Term, ...]:
    """Arguments that are compared with the first, as constants of its type."""
    known = next((type_of(a, types) for a in arguments if not isinstance(a, Constant)), type_of(arguments[0], types))
    made = tuple(as_type(each, known, place) for each in arguments)
    for each in made:
        if not type_of(each, types).comparable(known):
            raise _error(place, f"found {type_of(each, types).value} and {known.value} in '{name}', expected one type")
    return made


def as_type(term: Term, wanted: ValueType, at: Place) -> Term:
    """A constant text as the moment that it is compared with; anything else as it is."""
    from kamino.constraints.binding import moment

    if not (isinstance(term, Constant) and isinstance(term.value, str) and wanted in MOMENTS):
        return term
    value = moment(term.value, wanted)
    if value is None:
        where = term.place if term.place.line else at
        raise _error(where, f"found '{cut(term.value)}', expected {wanted.value} such as '2024-02-29'")
    return replace(term, value=value)


def _check_arguments(term: Apply, types: Types, place: Place) -> None:
    function = FUNCTIONS[term.function]
    for position, argument in enumerate(term.arguments):
        found = type_of(argument, types)
        takes = function.takes[min(position, len(function.takes) - 1)]
        if term.function == "subtract" and position == 1:
            takes = NUMBERS | MOMENTS if type_of(term.arguments[0], types) in MOMENTS else NUMBERS
        if found is not ValueType.UNKNOWN and found not in takes:
            hint = _hint(term, found, takes)
            raise _error(
                place,
                f"found {found.value} as argument {position + 1} of '{function.symbol or term.function}', "
                f"expected {' or '.join(sorted(each.value for each in takes))}{hint}",
            )


def _hint(term: Apply, found: ValueType, takes: frozenset[ValueType]) -> str:
    if found is ValueType.TEXT and ValueType.NUMBER in takes:
        return "; number(x) reads a text as a number, a || b joins texts"
    if found is ValueType.TEXT and takes & MOMENTS:
        return "; date(x) reads a text as a date"
    if ValueType.TEXT in takes:
        return "; text(x) writes a value as text"
    return ""


_CONSTANT = {
    **dict.fromkeys(("like", "ilike", "matches", "imatches", "starts_with", "ends_with", "contains"), (1,)),
    "replace": (1, 2),
    "round": (1,),
    "power": (1,),
    "start_of": (0,),
    **dict.fromkeys(("items", "items_differ"), (1,)),
    **dict.fromkeys(("item", "has_item"), (1, 2)),
}


def _check_constants(term: Apply, place: Place) -> None:
    """Patterns, digits, separators and units are written in the rule, where they can be checked once."""
    fixed = range(1, len(term.arguments)) if term.function == "each_in" else _CONSTANT.get(term.function, ())
    for position in fixed:
        argument = term.arguments[position] if position < len(term.arguments) else Constant(0)
        if not isinstance(argument, Constant):
            raise _error(place, f"found a column as argument {position + 1} of '{term.function}', expected a constant")
        problem = _problem(term.function, position, argument)
        if problem:
            raise _error(argument.place if argument.place.line else place, problem)


def _problem(name: str, position: int, argument: Constant) -> str:
    value = argument.value
    if name in ("matches", "imatches"):
        fault = pattern_problem(str(value))
        return (
            f"found a pattern that cannot be read ({cut(fault)}); expected one without look-around and back-references"
            * bool(fault)
        )
    if name == "start_of" and value not in UNITS:
        return f"found '{cut(str(value))}', expected one of {', '.join(UNITS)}"
    if name == "round" and not (isinstance(value, int) and abs(value) <= _MOST_DIGITS):
        return f"found {value}, expected a whole number of digits, at most {_MOST_DIGITS}"
    if name == "power" and not (isinstance(value, int) and 0 <= value <= _MOST_EXPONENT):
        return f"found the exponent {value}, expected a whole number from 0 to {_MOST_EXPONENT}"
    if name in ("items", "items_differ", "item", "each_in", "has_item") and position == 1 and value == "":
        return "found an empty separator, expected a text such as ';'"
    if name == "item" and position == 2 and not (isinstance(value, int) and value > 0):
        return f"found {value}, expected the number of an item, from 1"
    return ""


def _error(place: Place, message: str) -> ConstraintError:
    return ConstraintError(message, source=place.source, line=place.line, column=place.column)
