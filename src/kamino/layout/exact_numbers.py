"""Which numbers a term may give, from the public domains of what it is computed from: how many decimals, how large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.tree import Column, Constant
from kamino.constraints.types import ValueType, ValueTypes
from kamino.schema import Attribute, Integer, Real

# Decimal digits that a double holds, whatever they are; those of Arrow's decimals.
_OF_DOUBLES, _OF_DECIMALS = 15, 38
# Whole numbers that functions give: none is beyond this.
_PARTS, _LENGTHS = 10_000_000, 1 << 31
_OF_MOMENTS = frozenset(("year", "quarter", "month", "week", "day", "weekday", "yearday", "hour", "minute"))


@dataclass(frozen=True, kw_only=True)
class NumberForm:
    """Numbers with so many decimals, None for any fraction, of which none is farther from 0 than `most`."""

    decimals: int | None
    most: int


Forms = Mapping[str, NumberForm | None]


def form_of_attribute(attribute: Attribute) -> NumberForm | None:
    """The numbers of an attribute; those without a domain yet as large as they may become."""
    if not isinstance(attribute, Integer | Real):
        return None
    decimals = max(0, attribute.decimals) if isinstance(attribute, Real) else 0
    if attribute.min is None or attribute.max is None:
        return NumberForm(decimals=decimals, most=1)
    return NumberForm(decimals=decimals, most=max(abs(int(attribute.min)), abs(int(attribute.max))) + 1)


def form_of_term(term: Term, forms: Forms, types: ValueTypes) -> NumberForm | None:
    """The numbers that a term may have; None where they are not known."""
    match term:
        case Column(name=name):
            return forms.get(name)
        case Constant(value=bool() | str()):
            return None
        case Constant(value=int() | Decimal() as value):
            exponent = Decimal(value).as_tuple().exponent
            return NumberForm(
                decimals=max(0, -exponent) if isinstance(exponent, int) else None, most=abs(int(value)) + 1
            )
        case Apply(function=name) if name in _OF_MOMENTS or name in ("days", "months", "years"):
            return NumberForm(decimals=0, most=_PARTS)
        case Apply(function="length" | "bytes" | "items"):
            return NumberForm(decimals=0, most=_LENGTHS)
        case Apply(function="subtract", arguments=arguments) if all(_is_day(each, types) for each in arguments):
            return NumberForm(decimals=0, most=_PARTS)
        case Apply(function="choose", arguments=(_, *arguments)):
            return _together(arguments, forms, types)
        case Apply(function="min" | "max" | "coalesce", arguments=arguments):
            return _together(arguments, forms, types)
        case Apply(function=name, arguments=arguments):
            found = [form_of_term(each, forms, types) for each in arguments]
            return _applied(name, found, arguments)
    return None


def _is_day(term: Term, types: ValueTypes) -> bool:
    return isinstance(term, Column) and types.get(term.name) is ValueType.DATE


def _together(arguments: Sequence[Term], forms: Forms, types: ValueTypes) -> NumberForm | None:
    found = [form_of_term(each, forms, types) for each in arguments]
    known = [each for each in found if each is not None]
    if len(known) < len(found) or any(each.decimals is None for each in known):
        return None
    return NumberForm(decimals=max(each.decimals or 0 for each in known), most=max(each.most for each in known))


def _applied(name: str, forms: Sequence[NumberForm | None], arguments: Sequence[Term]) -> NumberForm | None:
    first = forms[0]
    second = forms[1] if len(forms) > 1 else None
    if first is None:
        return None
    match name:
        case "negate" | "abs" | "nullif":
            return first
        case "sign":
            return NumberForm(decimals=0, most=1)
        case "floor" | "ceil":
            return NumberForm(decimals=0, most=first.most + 1)
        case "round":
            digits = arguments[1] if len(arguments) > 1 else Constant(0)
            if not isinstance(digits, Constant) or not isinstance(digits.value, int):
                return None
            return NumberForm(decimals=max(0, digits.value), most=first.most + 10 ** max(0, -digits.value))
    if second is None:
        return None
    if name == "divide" and second.decimals is not None:
        # The least that is no 0 is one unit of the last decimal.
        return NumberForm(decimals=None, most=first.most * 10**second.decimals)
    decimals = None if first.decimals is None or second.decimals is None else (first.decimals, second.decimals)
    match name:
        case "add" | "subtract":
            return NumberForm(decimals=None if decimals is None else max(decimals), most=first.most + second.most)
        case "multiply":
            return NumberForm(decimals=None if decimals is None else sum(decimals), most=first.most * second.most)
        case "mod":
            return NumberForm(decimals=None if decimals is None else max(decimals), most=second.most)
    return None


def exact_type(form: NumberForm | None, came_as: str) -> pa.DataType:
    """The Arrow type that holds all these numbers exactly: that of the column where it does.

    Raises:
        ValueError: there is none; with what to do.
    """
    if form is None or form.decimals is None:
        raise ValueError(
            "gives numbers of no known number of decimals, which no column holds exactly; round it: round(…, 2)"
        )
    digits = form.decimals + len(str(form.most))
    if came_as in ("double", "float", "halffloat") and digits <= _OF_DOUBLES:
        return pa.float64()
    if form.decimals == 0 and came_as in _SMALL and form.most < 1 << (int(came_as[3:]) - 1):
        return _SMALL[came_as]
    if form.decimals == 0 and form.most < 1 << 63:
        return pa.int64()
    if digits <= _OF_DECIMALS:
        return pa.decimal128(_OF_DECIMALS, form.decimals)
    raise ValueError(
        f"may have {digits} digits, expected {_OF_DECIMALS} at most; round it, or narrow the domains of what it is "
        "computed from"
    )


_SMALL = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32()}
