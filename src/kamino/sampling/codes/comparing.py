"""Predicates read on codes: which rows, or pairs of rows, make them all true.

Arrays broadcast, so one function answers for single rows, for pairs row by row, and for all pairs at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import ceil, floor
from typing import Any, TypeAlias, assert_never

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.constraints.counting.ranks import RankedTable, compare
from kamino.constraints.tree import (
    Column,
    Comparison,
    Constant,
    DenialConstraint,
    NullTest,
    Operator,
    Predicate,
    TermTest,
)
from kamino.sampling.codes.terms_on_codes import true_of_codes
from kamino.schema import AttributeCodec, Codec, GridCodec

Codes: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Columns: TypeAlias = Mapping[str, Codes]

# Domains up to this size are compared through a table with one entry for each code.
TABLE_SIZE = 1 << 16


class Judge:
    """Compares the values that codes stand for. Holds public facts only.

    Guarantees:
        A predicate is true for codes exactly where it is true for their values.  [test_judge_agrees_with_brute_force]
    """

    def __init__(self, codec: Codec) -> None:
        self.codec = codec
        self._pairs: dict[tuple[str, str], tuple[Codes, Codes]] = {}
        self._constants: dict[tuple[str, Operator, Constant], Mask] = {}

    def violates(self, constraint: DenialConstraint, t1: Columns, t2: Columns) -> Mask:
        """Tell where every predicate is true with `t1` and `t2` as given (not the other way round)."""
        return self.holds(constraint.predicates, t1, t2)

    def clashes(self, constraint: DenialConstraint, t1: Columns, t2: Columns) -> Mask:
        """Tell where the constraint is violated in either direction."""
        return self.violates(constraint, t1, t2) | self.violates(constraint, t2, t1)

    def holds(self, predicates: Iterable[Predicate], t1: Columns, t2: Columns) -> Mask:
        """Tell where all predicates are true."""
        result: Mask = np.ones((), dtype=np.bool_)
        for predicate in predicates:
            result = result & self._true(predicate, t1, t2)
            if not result.any():
                break
        wanted = np.broadcast_shapes(*(np.shape(column) for column in (*t1.values(), *t2.values())))
        return np.broadcast_to(result, wanted)

    def _true(self, predicate: Predicate, t1: Columns, t2: Columns) -> Mask:
        match predicate:
            case NullTest(column=column, negated=negated):
                found: Mask = self.is_null(column.name, _pick(column, t1, t2)) != negated
                return found
            case Comparison(left=left, op=op, right=Constant() as constant):
                return self.compare_constant(left.name, _pick(left, t1, t2), op, constant)
            case Comparison(left=left, op=op, right=Column() as right):
                a, b = _pick(left, t1, t2), _pick(right, t1, t2)
                here = ~self.is_null(left.name, a) & ~self.is_null(right.name, b)
                x, y = self.numbers(left.name, a, right.name, b, op)
                return here & compare(x, op, y)
            case TermTest():
                (number,) = {column.tuple for column in predicate.columns}
                return true_of_codes(predicate, self.codec.__getitem__, t1 if number == 1 else t2)
        raise AssertionError(predicate)

    def is_null(self, name: str, codes: Codes) -> Mask:
        """Tell which codes are null."""
        null = self.codec[name].null_code
        return np.zeros(np.shape(codes), np.bool_) if null is None else codes == null

    def compare_constant(self, name: str, codes: Codes, op: Operator, constant: Constant) -> Mask:
        """Tell which codes stand for values that compare so with a constant; null never does."""
        codec = self.codec[name]
        if is_tabled(codec):
            key = (name, op, constant)
            if key not in self._constants:
                every = RankedTable(pa.table({name: _plain(codec, np.arange(codec.size, dtype=np.int64))}))
                self._constants[key] = every.compare_constant(name, op, constant)
            return self._constants[key][codes]
        place = codec.position(constant.value)
        if place is None:
            return np.full(np.shape(codes), op is Operator.NE) & ~self.is_null(name, codes)
        return _against(codes, op, place) & ~self.is_null(name, codes)

    def near(self, name: str, other: str, codes: Codes) -> Codes:
        """Return, for values of `other`, codes of `name` at and beside them: one line for each value."""
        one, known = self.codec[name], self.codec[other]
        if one.position(known.value_of(0)) is None or known.num_values == 0:
            return np.zeros((len(codes), 1), dtype=np.int64)
        centre = _on_axis(one, known, np.minimum(codes, known.num_values - 1)) // 2
        beside: Codes = centre[:, None] + np.arange(-1, 3)[None, :]
        return np.clip(beside, 0, one.num_values - 1)

    def numbers(self, left: str, a: Codes, right: str, b: Codes, op: Operator) -> tuple[Codes, Codes]:
        """Return numbers for the codes of two attributes that compare as the values do."""
        if left == right:
            codec = self.codec[left]
            return (a, b) if not op.is_order or codec.ordered else (codec.order_keys(a), codec.order_keys(b))
        one, other = self.codec[left], self.codec[right]
        if one.size <= TABLE_SIZE and other.size <= TABLE_SIZE:
            if (left, right) not in self._pairs:
                self._pairs[left, right] = _shared_numbers(one, other)
            x, y = self._pairs[left, right]
            return x[a], y[b]
        return 2 * a, _on_axis(one, other, b)


def is_tabled(codec: AttributeCodec) -> bool:
    """Whether constants are compared through a table: of small domains, and of those without a grid."""
    return codec.size <= TABLE_SIZE or not isinstance(codec, GridCodec)


def _pick(column: Column, t1: Columns, t2: Columns) -> Codes:
    return (t1 if column.tuple == 1 else t2)[column.name]


def _plain(codec: AttributeCodec, codes: Codes) -> Any:
    values = codec.decode(codes)
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _shared_numbers(one: AttributeCodec, other: AttributeCodec) -> tuple[Codes, Codes]:
    """Rank all values of two attributes on one scale."""
    length = max(one.size, other.size)
    padded = []
    for codec in (one, other):
        values = _plain(codec, np.arange(codec.size, dtype=np.int64))
        padded.append(pa.concat_arrays([values, pa.nulls(length - codec.size, values.type)]))
    x, y, _ = RankedTable(pa.table(padded, names=["one", "other"])).ranks("one", "other")
    return x[: one.size], y[: other.size]


def _on_axis(one: AttributeCodec, other: AttributeCodec, codes: Codes) -> Codes:
    """Place values of `other` on the doubled axis of codes of `one`: even on a code, odd between two.

    Both lie on grids, so the place is a straight line in the code; it is computed in whole numbers.
    """
    start = one.position(other.value_of(0))
    assert start is not None, "only attributes on grids are this wide"
    second = one.position(other.value_of(1)) if other.num_values > 1 else start
    assert second is not None
    scale = start.denominator * (second - start).denominator
    offset, slope = int(start * scale), int((second - start) * scale)
    wide = codes.astype(object) * slope + offset
    whole = wide // scale
    between = (wide - whole * scale) != 0
    # Just past the last value, which is even: as far as it goes in 64 bits for the widest domain.
    limit = 2 * one.num_values - 1
    return np.asarray(np.clip(2 * whole + between, -2, limit), dtype=np.int64)


def _against(codes: Codes, op: Operator, place: Fraction) -> Mask:
    low, high = ceil(place), floor(place)
    whole = low == high
    result: Mask
    match op:
        case Operator.EQ:
            result = (codes == low) if whole else np.zeros(np.shape(codes), np.bool_)
        case Operator.NE:
            result = (codes != low) if whole else np.ones(np.shape(codes), np.bool_)
        case Operator.LT:
            result = codes < low
        case Operator.LE:
            result = codes <= high
        case Operator.GT:
            result = codes > high
        case Operator.GE:
            result = codes >= low
        case _:
            assert_never(op)
    return result
