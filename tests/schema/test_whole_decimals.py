"""Numbers of any size pass through codes as they are."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.schema import Integer, Real, attribute_codec, draft_schema
from kamino.schema.dtypes import parse_dtype
from kamino.schema.grid import Grid
from kamino.schema.numbers import coarsest_step, largest_number
from kamino.schema.whole_decimals import decimals_at, integers_at, offsets_from, sums_in_words

OFFSETS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5)
WHOLE = {
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.uint64(): (0, 2**64 - 1),
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.decimal128(38, 0): (-(10**38) + 1, 10**38 - 1),
    pa.decimal256(76, 0): (-(10**76) + 1, 10**76 - 1),
}


@given(st.integers(-(2**190), 2**190), OFFSETS)
def test_sums_in_words_are_sums(start: int, offsets: list[int]) -> None:
    words = sums_in_words(start, np.array(offsets, np.uint64), 4)
    found = [int.from_bytes(row.tobytes(), "little", signed=True) for row in words]
    assert found == [start + each for each in offsets]
    decimals = decimals_at(start, np.array(offsets, np.uint64), 3, np.zeros(len(offsets), np.bool_), 256)
    assert [int(each.scaleb(3, Context(prec=80))) for each in decimals.to_pylist()] == found


@given(st.data(), st.sampled_from([(-(2**63), 2**63 - 1), (0, 2**64 - 1)]))
def test_offsets_come_back(data: st.DataObject, ends: tuple[int, int]) -> None:
    numbers = data.draw(st.lists(st.integers(*ends), min_size=1))
    array: Any = np.array(numbers, np.int64 if ends[0] else np.uint64)
    back = integers_at(min(numbers), offsets_from(min(numbers), array))
    assert back.view(array.dtype).tolist() == numbers


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    """Numbers of some type near any place of it, its ends among them, less than 2^62 of its units apart."""
    kind = draw(st.sampled_from([*WHOLE, pa.decimal128(38, 20), pa.decimal128(20, 2), pa.decimal256(50, 30)]))
    low, high = WHOLE.get(kind) or (-(10**kind.precision) + 1, 10**kind.precision - 1)
    middle = draw(st.sampled_from([low, 0, high]) | st.integers(low, high))
    width = draw(st.sampled_from([5, 2**53, 2**61 - 2]))
    ticks = draw(st.lists(st.integers(max(low, middle - width), min(high, middle + width)), min_size=1, max_size=6))
    scale = kind.scale if pa.types.is_decimal(kind) else 0
    return pa.array([Decimal(f"{each}e-{scale}") if scale else each for each in ticks], kind)


@examples(300)
@given(columns())
def test_numbers_of_any_size_survive(column: pa.Array) -> None:
    """What a trusted range of a column gives back is the column, however its cells are written."""
    schema = draft_schema(pa.table({"a": column}), trust_domain=True)
    codec = attribute_codec("a", schema["a"])
    codes = codec.encode(column)
    assert codec.decode(codes).equals(column)
    assert [codec.value_of(code) for code in codes.tolist()] == column.to_pylist()
    assert [codec.code_of(value) for value in column.to_pylist()] == codes.tolist()
    texts = pa.array([format(value, "f") if isinstance(value, Decimal) else str(value) for value in column.to_pylist()])
    assert codec.encode(texts).tolist() == codes.tolist()
    assert type(schema).from_yaml(schema.to_yaml()) == schema


@examples(200)
@given(st.data(), st.sampled_from([pa.int64(), pa.uint64()]))
def test_wide_ranges_keep_the_nearest_value(data: st.DataObject, kind: pa.DataType) -> None:
    """A range of too many values keeps every so many-th; every value goes to the nearest of them."""
    low, high = sorted(data.draw(st.tuples(*[st.integers(*WHOLE[kind])] * 2)))
    made = Integer(dtype=str(kind)).with_domain(min=low, max=high)
    assert (made.min, high - made.max < made.step) == (low, True)
    assert made.step == coarsest_step(low, high)
    numbers = data.draw(st.lists(st.integers(*WHOLE[kind]) | st.sampled_from([low, high]), min_size=1, max_size=5))
    codec = attribute_codec("a", made)
    back = codec.decode(codec.encode(pa.array(numbers, kind))).to_pylist()
    for number, found in zip(numbers, back, strict=True):
        inside = min(max(number, low), made.max)
        assert abs(found - inside) <= made.step // 2
        assert (found - low) % made.step == 0


@pytest.mark.parametrize("kind", ["float64", "float32", "decimal128(38, 6)", "decimal128(7, 7)"])
def test_no_range_of_a_type_is_infinite(kind: str) -> None:
    most = largest_number(parse_dtype(kind))
    for low, high in ((-most, most), (0, most), (most, most), (-most, -most)):
        codec = attribute_codec("a", Real(dtype=kind).with_domain(min=Decimal(low), max=Decimal(high)))
        ends = codec.decode(np.array([0, codec.num_values - 1])).to_pylist()
        for end, true in zip(ends, (low, high), strict=True):
            assert abs(Fraction(end)) <= most
            assert abs(Fraction(end) - true) * 10**6 <= abs(true)


def test_a_grid_beyond_64_bits_is_told() -> None:
    assert Grid(start=-(2**63), step=4, size=2**62).is_narrow
    assert not Grid(start=2**63, step=1, size=1).is_narrow
