"""A test of terms, solved for one attribute: a * x + b against zero, with a and b known in every row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from kamino.constraints.terms import exact
from kamino.constraints.terms.canonical_terms import applied
from kamino.constraints.terms.evaluation import values_of
from kamino.constraints.terms.exact import Numbers
from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.tree import Column, Constant, Operator, TermTest

ONE, ZERO = Constant(1), Constant(0)


@dataclass(frozen=True)
class Affine:
    """`slope * x + rest op 0`, where neither slope nor rest reads x."""

    slope: Term
    rest: Term
    op: Operator


def solved(test: TermTest, name: str) -> tuple[Affine, ...] | None:
    """The tests that are all true where a test is, each a straight line in attribute `name`; None if it is not one.

    `|t| <= c` is two of them; `|t| >= c` is none, for it leaves two ranges. Rounding is one of two ends.
    """
    left, op, right = test.left, test.op, test.right
    if not _reads(left, name):
        left, op, right = right, op.mirrored, left
    if isinstance(left, Apply) and not _reads(right, name):
        if left.function == "abs" and op in (Operator.LT, Operator.LE):
            inner = left.arguments[0]
            ends = (TermTest(inner, op, right), TermTest(applied("negate", inner), op, right))
            return _both(ends, name)
        if left.function == "abs" and op is Operator.EQ:
            return None
        if left.function == "round":
            return _rounded(left, op, right, name)
    if _unsigned(test) or op is Operator.NE:
        return None  # all values but one are two ranges
    line = _line(applied("subtract", left, right), name)
    return None if line is None else (Affine(*line, op),)


def _both(ends: tuple[TermTest, TermTest], name: str) -> tuple[Affine, ...] | None:
    found = [solved(each, name) for each in ends]
    return None if None in found else tuple(line for each in found for line in each or ())


def _unsigned(test: TermTest) -> bool:
    """Whether it compares anything but numbers and moments, by how it is written."""
    return any(isinstance(side, Constant) and isinstance(side.value, bool | str) for side in (test.left, test.right))


def _rounded(left: Apply, op: Operator, right: Term, name: str) -> tuple[Affine, ...] | None:
    """`round(t, n) = r` as t from r - half a unit up to r + half a unit, where halves go away from zero.

    Which of the two halves belongs to r depends on its sign, so both are left out: the range is open at both ends.
    """
    digits = left.arguments[1] if len(left.arguments) > 1 else ZERO
    assert isinstance(digits, Constant), "digits are a constant, which binding sees to"
    if op is not Operator.EQ:
        return None
    half = Constant(Decimal(5).scaleb(-int(digits.value) - 1))  # type: ignore[arg-type]
    inner = left.arguments[0]
    low = TermTest(inner, Operator.GT, applied("subtract", right, half))
    high = TermTest(inner, Operator.LT, applied("add", right, half))
    return _both((low, high), name)


def _reads(term: Term, name: str) -> bool:
    return any(column.name == name for column in term.columns)


def _line(term: Term, name: str) -> tuple[Term, Term] | None:
    """Slope and rest of a term that is a straight line in an attribute."""
    if not _reads(term, name):
        return ZERO, term
    match term:
        case Column():
            return ONE, ZERO
        case Apply(function="negate", arguments=(inner,)):
            found = _line(inner, name)
            return None if found is None else (_simple("negate", found[0]), _simple("negate", found[1]))
        case Apply(function="add" | "subtract" as function, arguments=(a, b)):
            one, other = _line(a, name), _line(b, name)
            if one is None or other is None:
                return None
            return _simple(function, one[0], other[0]), _simple(function, one[1], other[1])
        case Apply(function="days", arguments=(start, end)):
            return _line(applied("subtract", end, start), name)
        case Apply(function="multiply", arguments=(a, b)):
            if _reads(a, name) and _reads(b, name):
                return None
            inside, factor = (a, b) if _reads(a, name) else (b, a)
            found = _line(inside, name)
            return (
                None
                if found is None
                else (_simple("multiply", found[0], factor), _simple("multiply", found[1], factor))
            )
        case Apply(function="divide", arguments=(a, b)) if not _reads(b, name):
            found = _line(a, name)
            return None if found is None else (_simple("divide", found[0], b), _simple("divide", found[1], b))
    return None


def _simple(function: str, *terms: Term) -> Term:
    """The function, without what changes nothing."""
    if function in ("add", "subtract") and terms[1] == ZERO:
        return terms[0]
    if function == "add" and terms[0] == ZERO:
        return terms[1]
    if function == "subtract" and terms[0] == ZERO:
        return applied("negate", terms[1])
    if function == "multiply" and ZERO in terms:
        return ZERO
    if function == "multiply" and ONE in terms:
        return terms[0] if terms[1] == ONE else terms[1]
    if function == "divide" and terms[0] == ZERO:
        return ZERO
    return applied(function, *terms)


def root(line: Affine, columns: Mapping[str, Any], rows: int) -> tuple[Numbers, Numbers]:
    """Where the line is zero in each row, and its slope; not valid where the slope is zero or anything null."""
    rest = as_numbers(line.rest, columns, rows)
    slope = as_numbers(line.slope, columns, rows)
    return exact.negate(exact.divide(rest, slope)), slope


def as_numbers(term: Term, columns: Mapping[str, Any], rows: int) -> Numbers:
    """The values of a term without x."""
    if isinstance(term, Constant) and isinstance(term.value, int | Decimal):
        return exact.constant(Fraction(term.value), rows)
    found = values_of(term, columns)
    if not isinstance(found, Numbers):
        return Numbers(np.zeros(rows, dtype=np.int64), 1, np.zeros(rows, dtype=np.bool_))
    return found
