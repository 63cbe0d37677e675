"""Random attributes of every kind, schemas made of them, and codes and columns for them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from kamino.schema import Boolean, Categorical, Date, Datetime, Integer, Key, Real, Schema

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
INT64 = st.integers(-(2**63), 2**63 - 1)


@st.composite
def categoricals(draw) -> Categorical:
    items = draw(st.sampled_from([TEXT, INT64]))
    values = draw(st.lists(items, min_size=1, max_size=8, unique=True))
    return Categorical(
        values=values,
        other=draw(st.none() | items),
        nullable=draw(st.booleans()),
        dtype=draw(st.sampled_from([None, "dictionary"])),
    )


@st.composite
def integers(draw) -> Integer:
    low = draw(INT64)
    high = draw(st.integers(low, min(low + 2**62 - 2, 2**63 - 1)))
    return Integer(min=low, max=high, nullable=draw(st.booleans()))


@st.composite
def reals(draw) -> Real:
    dtype, decimals, limit = draw(
        st.sampled_from(
            [
                (None, 0, 2**51),
                (None, 1, 2**51),
                (None, 2, 10**6),
                (None, 6, 2**51),
                (None, 18, 2**51),
                (None, -3, 2**51),
                (None, -290, 2**51),
                ("float32", 2, 2**22),
                ("decimal128(38, 9)", 9, 10**18),
                ("decimal128(10, 2)", 2, 10**10 - 1),
                ("decimal256(50, 4)", 2, 10**18),
                ("decimal128(20, 0)", -3, 10**17 - 1),
            ]
        )
    )
    ends = sorted(draw(st.tuples(st.integers(-limit, limit), st.integers(-limit, limit))))
    low, high = (Decimal(end).scaleb(-decimals) for end in ends)
    return Real(min=low, max=high, decimals=decimals, dtype=dtype, nullable=draw(st.booleans()))


@st.composite
def dates(draw) -> Date:
    resolution = draw(st.sampled_from([1, 1, 7, 30]))
    low = draw(st.dates())
    steps = draw(st.integers(0, (dt.date.max - low).days // resolution))
    return Date(
        min=low,
        max=low + dt.timedelta(days=resolution * steps),
        resolution=resolution,
        nullable=draw(st.booleans()),
        dtype=draw(st.sampled_from([None, "date64", "timestamp[s]", "timestamp[us]"])),
    )


@st.composite
def datetimes(draw) -> Datetime:
    resolution = draw(
        st.sampled_from([Decimal(86_400), Decimal(60), Decimal(1), Decimal("0.001"), Decimal("0.000001")])
    )
    dtype = draw(st.sampled_from([None, "timestamp[ns]"] + (["timestamp[s]"] if resolution >= 1 else [])))
    first, last = (dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))
    if dtype == "timestamp[ns]":
        first, last = dt.datetime(1677, 9, 22), dt.datetime(2262, 4, 10)
    low = draw(st.datetimes(first, last))
    if dtype == "timestamp[s]":
        low = low.replace(microsecond=0)
    step = dt.timedelta(microseconds=int(resolution * 1_000_000))
    high = low + step * draw(st.integers(0, (last - low) // step))
    zone = draw(st.sampled_from([None, "UTC", "Europe/Paris", "+05:30"]))
    return Datetime(min=low, max=high, resolution=resolution, dtype=dtype, timezone=zone, nullable=draw(st.booleans()))


def booleans() -> st.SearchStrategy[Boolean]:
    return st.builds(Boolean, nullable=st.booleans(), dtype=st.sampled_from([None, "int8"]))


def data_attributes():
    """Attributes that carry data and have a domain."""
    return st.one_of(categoricals(), integers(), reals(), dates(), datetimes(), booleans())


def attributes():
    """Attributes of any kind, with or without a domain."""
    bare = st.sampled_from(
        [Categorical(), Integer(dtype="int8"), Real(decimals=3, nullable=True), Date(), Datetime(timezone="UTC")]
    )
    keys = st.sampled_from([Key(), Key(pattern="C{:06d}"), Key(dtype="int32"), Key(pattern="uuid", description="x: y")])
    return st.one_of(data_attributes(), bare, keys)


def schemas():
    return st.dictionaries(NAMES, attributes(), min_size=1, max_size=5).map(lambda found: Schema(attributes=found))


def codes_for(size: int) -> st.SearchStrategy[list[int]]:
    """Lists of codes in which both ends are likely."""
    ends = st.sampled_from([0, size - 1, max(0, size - 2), min(1, size - 1), size // 2])
    return st.lists(st.one_of(ends, st.integers(0, size - 1)), max_size=12)


def columns() -> st.SearchStrategy[pa.Array]:
    """Columns of many types with any values, extreme ones among them."""
    extreme = st.sampled_from([float("nan"), float("inf"), -float("inf"), 1e308, -0.0, 5e-324])
    floats = st.one_of(st.floats(), extreme)
    typed = [
        (pa.int64(), INT64),
        (pa.uint64(), st.integers(0, 2**64 - 1)),
        (pa.int8(), st.integers(-128, 127)),
        (pa.float64(), floats),
        (pa.float32(), st.floats(width=32)),
        (pa.float16(), st.floats(width=16).map(np.float16)),
        (pa.bool_(), st.booleans()),
        (pa.string(), st.one_of(TEXT, floats.map(str), INT64.map(str), st.datetimes().map(str), st.dates().map(str))),
        (
            pa.string(),
            st.sampled_from(["1e999999", "-1e-999999", "1e99999999999999999999", "nan", "-inf", "sNaN", " 7 "]),
        ),
        (pa.large_string(), TEXT),
        (pa.date32(), st.dates()),
        (pa.date64(), st.dates()),
        (pa.decimal128(38, 5), st.decimals(-(10**32), 10**32, places=5)),
        (pa.decimal128(12, 2), st.decimals(-(10**9), 10**9, places=2)),
        (pa.null(), st.none()),
        *((pa.timestamp(unit), INT64) for unit in ("s", "ms", "us", "ns")),
        (pa.timestamp("ns", tz="Europe/Paris"), INT64),
        (pa.binary(), st.binary(max_size=3)),
        (pa.list_(pa.int64()), st.lists(INT64, max_size=2)),
    ]
    plain = st.sampled_from(typed).flatmap(
        lambda pair: st.lists(st.none() | pair[1], max_size=10).map(lambda values: _array(values, pair[0]))
    )
    coded = plain.filter(lambda array: not pa.types.is_nested(array.type)).map(_coded)
    return st.one_of(plain, plain, coded)


def _coded(array: pa.Array) -> pa.Array:
    try:
        return array.dictionary_encode()
    except pa.ArrowNotImplementedError:  # half floats, in older versions of pyarrow
        return array


def _array(values: list, kind: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).view(kind)
    return pa.array(values, kind)
