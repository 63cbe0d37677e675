"""Rules that are sums of weighted attributes against a number: read from constraints, and written as constraints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import gcd, lcm

from kamino.constraints import DenialConstraint
from kamino.constraints.terms.canonical_terms import applied, compared
from kamino.constraints.terms.exact import decimal_digits
from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.tree import Column, Comparison, Constant, NullTest, Operator, TermTest

Weights = Mapping[str, Fraction]


@dataclass(frozen=True)
class Form:
    """`sum of weight * attribute + constant <= 0`, or `< 0` where `strict`; weights by name, in order, none zero."""

    weights: tuple[tuple[str, Fraction], ...]
    constant: Fraction
    strict: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes it reads."""
        return tuple(name for name, _ in self.weights)

    def weight(self, name: str) -> Fraction:
        """The weight of an attribute; zero where it is not read."""
        return dict(self.weights).get(name, Fraction(0))


def form(weights: Weights, constant: Fraction, strict: bool) -> Form:
    """The form with whole weights that have no factor in common, so that equal ones are equal."""
    kept = {name: weight for name, weight in sorted(weights.items()) if weight}
    if not kept:
        return Form((), constant, strict)
    below = lcm(*(weight.denominator for weight in kept.values()))
    shared = gcd(*(int(weight * below) for weight in kept.values()))
    scale = Fraction(below, shared)
    return Form(tuple((name, weight * scale) for name, weight in kept.items()), constant * scale, strict)


def forms_of(constraint: DenialConstraint) -> tuple[Form, ...] | None:
    """The forms that hold in a row without nulls where a rule holds; None where the rule says something else.

    Guarantees:
        A row that keeps the rule keeps the forms, and the other way round.  [test_forms_are_the_rules]
    """
    tests = [p for p in constraint.predicates if not (isinstance(p, NullTest) and p.negated)]
    if len(tests) != 1 or not constraint.is_unary:
        return None
    match tests[0]:
        case Comparison(left=left, op=op, right=right) | TermTest(left=left, op=op, right=right):
            return _holding(left, op.negated, right)
        case _:
            return None


def _holding(left: Term, op: Operator, right: Term) -> tuple[Form, ...] | None:
    if isinstance(left, Apply) and left.function == "abs" and op in (Operator.LT, Operator.LE):
        inner = left.arguments[0]
        one, other = _holding(inner, op, right), _holding(applied("negate", inner), op, right)
        return None if one is None or other is None else (*one, *other)
    a, b = linear(left), linear(right)
    if a is None or b is None or op is Operator.NE:
        return None
    weights = {name: a[0].get(name, Fraction(0)) - b[0].get(name, Fraction(0)) for name in {*a[0], *b[0]}}
    constant = a[1] - b[1]
    turned = {name: -weight for name, weight in weights.items()}
    match op:
        case Operator.LT | Operator.LE:
            return (form(weights, constant, op is Operator.LT),)
        case Operator.GT | Operator.GE:
            return (form(turned, -constant, op is Operator.GT),)
    return (form(weights, constant, False), form(turned, -constant, False))


def linear(term: Term) -> tuple[dict[str, Fraction], Fraction] | None:
    """The weights of attributes in a term, and its constant; None where it is no such sum."""
    match term:
        case Column(name=name):
            return {name: Fraction(1)}, Fraction(0)
        case Constant(value=bool()):
            return None
        case Constant(value=int() | Decimal() as value):
            return {}, Fraction(value)
        case Apply(function="negate", arguments=(inner,)):
            return _scaled(linear(inner), Fraction(-1))
        case Apply(function="add" | "subtract" as function, arguments=(a, b)):
            one, other = linear(a), _scaled(linear(b), Fraction(1 if function == "add" else -1))
            if one is None or other is None:
                return None
            names = {*one[0], *other[0]}
            weights = {name: one[0].get(name, Fraction(0)) + other[0].get(name, Fraction(0)) for name in names}
            return weights, one[1] + other[1]
        case Apply(function="multiply", arguments=(a, b)):
            one, other = linear(a), linear(b)
            if one is None or other is None or (one[0] and other[0]):
                return None
            return _scaled(other, one[1]) if not one[0] else _scaled(one, other[1])
        case Apply(function="divide", arguments=(a, b)):
            one, other = linear(a), linear(b)
            return None if other is None or other[0] or not other[1] else _scaled(one, 1 / other[1])
    return None


def _scaled(
    found: tuple[dict[str, Fraction], Fraction] | None, factor: Fraction
) -> tuple[dict[str, Fraction], Fraction] | None:
    if found is None:
        return None
    return {name: weight * factor for name, weight in found[0].items()}, found[1] * factor


def constraint_of(found: Form) -> DenialConstraint | None:
    """The rule that a form is, its positive weights on one side; None where a number of it has no end."""
    left = [(name, weight) for name, weight in found.weights if weight > 0]
    right = [(name, -weight) for name, weight in found.weights if weight < 0]
    digits = decimal_digits(found.constant.denominator)
    if digits is None or digits > 30:
        return None
    constant = Constant(_decimal(-found.constant, digits))
    op = Operator.GE if found.strict else Operator.GT
    if not left:
        denied = compared(_sum(right), op.mirrored, Constant(_decimal(found.constant, digits)))
    else:
        bound: Term = constant
        if right:
            bound = _sum(right)
            bound = applied("add", bound, constant) if constant.value else bound
        denied = compared(_sum(left), op, bound)
    return DenialConstraint(predicates=(denied,))


def _decimal(value: Fraction, digits: int) -> Decimal | int:
    if value.denominator == 1:
        return int(value)
    return Decimal(int(value * 10**digits)).scaleb(-digits)


def _sum(parts: Iterable[tuple[str, Fraction]]) -> Term:
    found: Term | None = None
    for name, weight in parts:
        part: Term = Column(name) if weight == 1 else applied("multiply", Constant(int(weight)), Column(name))
        found = part if found is None else applied("add", found, part)
    assert found is not None, "a form reads an attribute"
    return found
