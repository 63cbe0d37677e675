"""Numbers of many rows as exact fractions: a numerator for each row over a denominator, computed without rounding.

Numerators are 64-bit whole numbers as long as these hold them, and Python's whole numbers beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kamino.constraints.tree import Operator

Mask = npt.NDArray[np.bool_]
Whole = npt.NDArray[Any]

_MOST = 2**62
INFINITE = 10**400
"""What stands for an infinite double: larger than any that is finite."""


@dataclass(frozen=True)
class Numbers:
    """`numerator / denominator` in the rows that are `valid`; the denominator is positive, one for all or one a row."""

    numerator: Whole
    denominator: int | Whole
    valid: Mask

    def __len__(self) -> int:
        return len(self.numerator)

    def fraction(self, row: int) -> Fraction | None:
        """The number of one row."""
        if not self.valid[row]:
            return None
        below = self.denominator if isinstance(self.denominator, int) else self.denominator[row]
        return Fraction(int(self.numerator[row]), int(below))


def constant(value: int | Decimal | Fraction, rows: int) -> Numbers:
    """One number in all rows."""
    above, below = Fraction(value).as_integer_ratio()
    kind: Any = np.int64 if abs(above) < _MOST else object
    return Numbers(np.full(rows, above, dtype=kind), below, np.ones(rows, dtype=np.bool_))


def whole(values: Whole, valid: Mask, denominator: int = 1) -> Numbers:
    """Whole numbers over one denominator; what is not valid may be anything."""
    return Numbers(np.where(valid, values, 0).astype(values.dtype, copy=False), denominator, valid)


def times(first: Whole, second: Whole | int) -> Whole:
    """The product, in Python's numbers where 64 bits might not hold it."""
    if _largest(first) * _largest(second) < _MOST:
        return first * (np.int64(second) if isinstance(second, int) else second)
    return _large(first) * (second if isinstance(second, int) else _large(second))


def plus(first: Whole, second: Whole, sign: int = 1) -> Whole:
    """The sum, or the difference where `sign` is -1, likewise."""
    if _largest(first) + _largest(second) >= _MOST:
        first, second = _large(first), _large(second)
    return first + second if sign > 0 else first - second


def _largest(values: Whole | int) -> int:
    if isinstance(values, int):
        return abs(values)
    if not len(values):
        return 0
    return max(abs(int(values.max())), abs(int(values.min())))


def _large(values: Whole) -> Whole:
    return values.astype(object)


def on_one_scale(a: Numbers, b: Numbers) -> tuple[Whole, Whole, int | Whole]:
    """The two numerators over one denominator."""
    if isinstance(a.denominator, int) and isinstance(b.denominator, int):
        common = lcm(a.denominator, b.denominator)
        return (
            times(a.numerator, common // a.denominator),
            times(b.numerator, common // b.denominator),
            common,
        )
    return (
        times(a.numerator, b.denominator),
        times(b.numerator, a.denominator),
        _product(a.denominator, b.denominator),
    )


def _product(first: int | Whole, second: int | Whole) -> int | Whole:
    if isinstance(first, int):
        return first * second if isinstance(second, int) else times(second, first)
    return times(first, second)


def add(a: Numbers, b: Numbers, sign: int = 1) -> Numbers:
    """`a + b`, or `a - b` where `sign` is -1."""
    first, second, below = on_one_scale(a, b)
    return Numbers(plus(first, second, sign), below, a.valid & b.valid)


def multiply(a: Numbers, b: Numbers) -> Numbers:
    """`a * b`."""
    return Numbers(times(a.numerator, b.numerator), _product(a.denominator, b.denominator), a.valid & b.valid)


def divide(a: Numbers, b: Numbers) -> Numbers:
    """`a / b`; null where `b` is zero."""
    valid = a.valid & b.valid & (b.numerator != 0)
    turned = np.where(b.numerator < 0, -1, 1)
    above = times(times(a.numerator, turned), b.denominator)
    below = np.where(valid, times(b.numerator, turned), 1)
    if len(below) and (below == below[0]).all():
        return Numbers(above, _product(a.denominator, int(below[0])), valid)
    return Numbers(above, _product(below, a.denominator), valid)


def modulo(a: Numbers, b: Numbers) -> Numbers:
    """What is left of `a` after whole times `b`, with the sign of `a`; null where `b` is zero."""
    valid = a.valid & b.valid & (b.numerator != 0)
    first, second, below = on_one_scale(a, b)
    second = np.where(valid, abs(second), 1)
    rest = abs(first) % second
    return Numbers(np.where(first < 0, -rest, rest), below, valid)


def floor(a: Numbers) -> Numbers:
    """The largest whole number that is not above."""
    return Numbers(a.numerator // a.denominator, 1, a.valid)


def ceil(a: Numbers) -> Numbers:
    """The smallest whole number that is not below."""
    return Numbers(-((-a.numerator) // a.denominator), 1, a.valid)


def absolute(a: Numbers) -> Numbers:
    """`|a|`."""
    return Numbers(abs(a.numerator), a.denominator, a.valid)


def negate(a: Numbers) -> Numbers:
    """`-a`."""
    return Numbers(-a.numerator, a.denominator, a.valid)


def sign(a: Numbers) -> Numbers:
    """-1, 0 or 1."""
    return Numbers(np.sign(a.numerator.astype(object)).astype(np.int64), 1, a.valid)


def rounded(a: Numbers, digits: int) -> Numbers:
    """To so many digits after the point, halves away from zero."""
    scale = 10 ** abs(digits)
    above = times(a.numerator, 2 * scale) if digits >= 0 else times(a.numerator, 2)
    below = a.denominator if digits >= 0 else _product(a.denominator, scale)
    halves = (abs(plus(abs(above), np.asarray(below + np.zeros(len(a), dtype=np.int64))))) // _product(below, 2)
    found = np.where(above < 0, -halves, halves)
    return Numbers(found, scale, a.valid) if digits >= 0 else Numbers(times(found, scale), 1, a.valid)


def compare(a: Numbers, op: Operator, b: Numbers) -> Mask:
    """Where `a op b` is true; never where one is null."""
    first, second, _ = on_one_scale(a, b)
    found: Any
    match op:
        case Operator.EQ:
            found = first == second
        case Operator.NE:
            found = first != second
        case Operator.LT:
            found = first < second
        case Operator.LE:
            found = first <= second
        case Operator.GT:
            found = first > second
        case Operator.GE:
            found = first >= second
    return np.asarray(found).astype(np.bool_) & a.valid & b.valid


def where(chosen: Mask, a: Numbers, b: Numbers) -> Numbers:
    """`a` in the rows that are chosen, `b` in the others."""
    first, second, below = on_one_scale(a, b)
    return Numbers(np.where(chosen, first, second), below, np.where(chosen, a.valid, b.valid))


def from_arrow(column: pa.Array) -> Numbers:
    """An Arrow column of numbers; a double stands for the shortest decimal that is read as it, NaN for no value."""
    kind = column.type
    valid = _bools(column.is_valid())
    if pa.types.is_decimal(kind):
        return _from_decimals(column, valid)
    if pa.types.is_floating(kind):
        return _from_floats(column, valid)
    filled = pc.fill_null(column, 0)
    if kind == pa.uint64():
        values = np.asarray(filled, dtype=np.uint64)
        return whole(values.astype(np.int64) if _fits(values) else values.astype(object), valid)
    return whole(np.asarray(filled.cast(pa.int64()), dtype=np.int64), valid)


def _fits(values: npt.NDArray[np.uint64]) -> bool:
    return not len(values) or int(values.max()) < 2**63


def _bools(column: Any) -> Mask:
    return np.asarray(column.cast(pa.uint8())).astype(np.bool_)


def _from_decimals(column: pa.Array, valid: Mask) -> Numbers:
    scale = column.type.scale
    if column.type.precision - scale <= 18 and scale >= 0 and column.type.precision <= 18:
        moved = pc.multiply(column.cast(pa.decimal128(18, scale)), pa.scalar(10**scale, pa.decimal128(19, 0)))
        return whole(np.asarray(pc.fill_null(moved.cast(pa.int64()), 0), dtype=np.int64), valid, 10**scale)
    below = 10 ** max(scale, 0)
    return _from_distinct(column, valid, lambda value: int(value.scaleb(max(scale, 0))), below)


def _from_distinct(column: pa.Array, valid: Mask, number: Any, below: int) -> Numbers:
    encoded = column.dictionary_encode()
    known = [0 if value is None else number(value) for value in encoded.dictionary.to_pylist()]
    kind: Any = np.int64 if all(abs(each) < _MOST for each in known) else object
    values = np.array([*known, 0], dtype=kind)
    codes = np.asarray(pc.fill_null(encoded.indices, len(known)), dtype=np.int64)
    return whole(values[codes], valid, below)


def _from_floats(column: pa.Array, valid: Mask) -> Numbers:
    values = np.asarray(pc.fill_null(column, 0.0))
    valid = valid & ~np.isnan(values)
    values = np.where(valid, values, 0)
    if values.dtype == np.float64:
        for digits in range(7):
            moved = np.rint(values * 10.0**digits)
            if (abs(moved) < 2.0**52).all() and (moved / 10.0**digits == values).all():
                return whole(moved.astype(np.int64), valid, 10**digits)
    distinct, inverse = np.unique(values, return_inverse=True)
    known = [_shortest(value) for value in distinct]
    below = lcm(*(each.denominator for each in known)) if known else 1
    above = [int(each * below) for each in known]
    kind: Any = np.int64 if all(abs(each) < _MOST for each in above) else object
    return whole(np.array(above, dtype=kind)[inverse], valid, below)


def _shortest(value: Any) -> Fraction:
    if np.isinf(value):
        return Fraction(INFINITE if value > 0 else -INFINITE)
    return Fraction(np.format_float_positional(value, trim="-") if abs(value) < 1e15 else str(Decimal(str(value))))


def to_arrow(a: Numbers) -> pa.Array:
    """Whole numbers as 64-bit ones, decimals as decimals, and what is neither, or too long for them, as doubles."""
    above, below = _reduced(a)
    missing = ~a.valid
    if isinstance(below, int) and below == 1 and _largest(above) < 2**63:
        return pa.array(above.astype(np.int64), pa.int64(), mask=missing)
    digits = decimal_digits(below) if isinstance(below, int) else None
    if digits is not None and digits <= 38 and _largest(above) * (10**digits // int(below)) < 10**38:
        scaled = times(above, 10**digits // int(below)).tolist()
        made = [Decimal(each).scaleb(-digits) if ok else None for each, ok in zip(scaled, a.valid, strict=True)]
        return pa.array(made, pa.decimal128(38, digits))
    return pa.array([None if each is None else float(each) for each in map(a.fraction, range(len(a)))], pa.float64())


def _reduced(a: Numbers) -> tuple[Whole, int | Whole]:
    """The same numbers with no factor that all numerators share with the denominator."""
    above = np.where(a.valid, a.numerator, 0)
    if not isinstance(a.denominator, int):
        rest = np.where(a.valid, above % a.denominator, 0)
        return (above // a.denominator, 1) if not rest.any() else (above, a.denominator)
    shared = int(np.gcd.reduce(above)) if len(above) else a.denominator
    factor = int(np.gcd(shared, a.denominator)) if a.denominator < _MOST else 1
    return (above // factor, a.denominator // factor) if factor > 1 else (above, a.denominator)


def decimal_digits(below: int) -> int | None:
    """How many digits after the point its fractions have; None where they never end."""
    twos = fives = 0
    while below % 2 == 0:
        below, twos = below // 2, twos + 1
    while below % 5 == 0:
        below, fives = below // 5, fives + 1
    return max(twos, fives) if below == 1 else None
