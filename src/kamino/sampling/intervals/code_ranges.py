"""The codes of an attribute that rules on terms leave each row: from a first to a last code, found by solving.

A rule forbids what makes all its predicates true. Where those that do not read the attribute are true, the one that
does must be false: of a straight line in the attribute that is a range. Where they are not, the row is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint
from kamino.constraints.terms import exact
from kamino.constraints.terms.evaluation import from_arrow
from kamino.constraints.terms.exact import Numbers
from kamino.constraints.tree import Comparison, NullTest, Operator, Predicate, TermTest
from kamino.sampling.codes.comparing import Columns, Judge, Mask
from kamino.sampling.codes.terms_on_codes import decoded
from kamino.sampling.intervals.affine import Affine, as_numbers, root, solved
from kamino.schema import GridCodec


@dataclass(frozen=True, kw_only=True, eq=False)
class CodeRanges:
    """The first and the last code that each row may take; where the last is smaller, there is none."""

    first: IntArray
    last: IntArray


@dataclass(frozen=True)
class _Rule:
    """A rule solved for the attribute: predicates without it, and the lines that are all true where it is broken."""

    constraint: DenialConstraint
    others: tuple[Predicate, ...]
    lines: tuple[Affine, ...]


def solvable(judge: Judge, name: str, constraint: DenialConstraint) -> bool:
    """Whether a rule leaves each row a range of codes of the attribute."""
    return isinstance(judge.codec[name], GridCodec) and _solved(constraint, name) is not None


def _solved(constraint: DenialConstraint, name: str) -> _Rule | None:
    mine = [p for p in constraint.predicates if any(column.name == name for column in p.columns)]
    others = tuple(p for p in constraint.predicates if p not in mine)
    plain = [p for p in mine if isinstance(p, NullTest) and p.negated]
    tests = [p for p in mine if p not in plain]
    if len(tests) != 1:
        return None
    (test,) = tests
    match test:
        case TermTest():
            lines = _denied(test, name)
        case Comparison(left=left, op=op, right=right):
            lines = _denied(TermTest(left, op, right), name)
        case _:
            return None
    return None if lines is None else _Rule(constraint, others, lines)


def _denied(test: TermTest, name: str) -> tuple[Affine, ...] | None:
    """The lines that must all hold for the test to be false where it is known: its negation, if that is a range."""
    return solved(TermTest(test.left, test.op.negated, test.right), name)


def ranges_of(
    judge: Judge, name: str, constraints: Sequence[DenialConstraint], columns: Columns, rows: IntArray
) -> CodeRanges:
    """The codes that solvable rules leave these rows.

    Guarantees:
        Codes in the range keep the rules, and all others break one.  [test_ranges_are_those_of_the_rules]
    """
    codec = judge.codec[name]
    assert isinstance(codec, GridCodec), "only grids have ranges"
    first = np.zeros(len(rows), dtype=np.int64)
    last = np.full(len(rows), codec.num_values - 1, dtype=np.int64)
    start, step = _grid(codec)
    for constraint in constraints:
        rule = _solved(constraint, name)
        assert rule is not None, "a rule that is not solved is not asked"
        names = {column.name for column in constraint.columns()} - {name}
        here = {each: columns[each][rows] for each in names}
        asked = judge.holds(rule.others, here, here) if rule.others else np.ones(len(rows), dtype=np.bool_)
        values = {each: decoded(judge.codec[each], codes) for each, codes in here.items()}
        for line in rule.lines:
            _narrow(line, values, len(rows), np.broadcast_to(asked, (len(rows),)), start, step, first, last)
    return CodeRanges(first=first, last=last)


def _grid(codec: GridCodec) -> tuple[Fraction, Fraction]:
    """The value of code 0 and the step from one code to the next, as numbers of terms have them."""
    one = decoded(codec, np.array([0, min(1, codec.num_values - 1)], dtype=np.int64))
    values = from_arrow(one)
    assert isinstance(values, Numbers), "a grid is of numbers or moments"
    start, second = values.fraction(0), values.fraction(1)
    assert start is not None
    assert second is not None
    return start, (second - start) or Fraction(1)


def _narrow(
    line: Affine,
    values: dict[str, object],
    rows: int,
    asked: Mask,
    start: Fraction,
    step: Fraction,
    first: IntArray,
    last: IntArray,
) -> None:
    """Cut ranges down to where `slope * x + rest op 0` holds, in the rows where it is asked and known."""
    at, slope = root(line, values, rows)
    flat = asked & slope.valid & (slope.numerator == 0)
    if flat.any():
        _narrow_flat(line, values, rows, flat, first, last)
    live = asked & at.valid
    place = exact.multiply(exact.add(at, exact.constant(start, rows), -1), exact.constant(1 / step, rows))
    floor = _clipped(exact.floor(place), last)
    ceil = _clipped(exact.ceil(place), last)
    rising = slope.numerator > 0
    whole = floor == ceil
    below = np.where(whole, floor - 1, floor)
    above = np.where(whole, ceil + 1, ceil)
    op = line.op
    upper = np.where(rising, op in (Operator.LT, Operator.LE), op in (Operator.GT, Operator.GE))
    lower = np.where(rising, op in (Operator.GT, Operator.GE), op in (Operator.LT, Operator.LE))
    strict = op in (Operator.LT, Operator.GT)
    if op is Operator.EQ:
        _cut(first, last, live, np.where(whole, ceil, 1), np.where(whole, floor, 0))
        return
    cut_high = live & upper
    last[cut_high] = np.minimum(last[cut_high], (below if strict else floor)[cut_high])
    cut_low = live & lower
    first[cut_low] = np.maximum(first[cut_low], (above if strict else ceil)[cut_low])


def _cut(first: IntArray, last: IntArray, rows: Mask, low: IntArray, high: IntArray) -> None:
    first[rows] = np.maximum(first[rows], low[rows])
    last[rows] = np.minimum(last[rows], high[rows])


def _clipped(numbers: Numbers, last: IntArray) -> IntArray:
    """Whole numbers as 64-bit ones, those far outside the domain just outside it."""
    most = int(last.max(initial=0)) + 2
    return np.asarray(np.clip(numbers.numerator, -2, max(most, 2)), dtype=np.int64)


def _narrow_flat(
    line: Affine, values: dict[str, object], rows: int, flat: Mask, first: IntArray, last: IntArray
) -> None:
    """Where the attribute has no weight, the rule holds for every value or for none."""
    rest = as_numbers(line.rest, values, rows)
    holds = exact.compare(rest, line.op, exact.constant(0, rows))
    none = flat & rest.valid & ~holds
    last[none] = -1
    first[none] = 0
