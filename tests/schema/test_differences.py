"""Dates as distances from another date, and back."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kamino.errors import SchemaError
from kamino.schema import Attribute, Codec, Date, Datetime, GridCodec, Integer, Schema
from kamino.schema.coding.differences import Difference, Distance

DAY = dt.date(2020, 1, 1)


def day(number: int) -> dt.date:
    return DAY + dt.timedelta(days=number)


@st.composite
def dates(draw: st.DrawFn) -> Attribute:
    first, length = draw(st.integers(-400, 400)), draw(st.integers(0, 400))
    nullable = draw(st.booleans())
    if draw(st.booleans()):
        return Date(min=day(first), max=day(first + length), nullable=nullable)
    start = dt.datetime.combine(day(first), dt.time(draw(st.integers(0, 23))))
    return Datetime(
        min=start,
        max=start + dt.timedelta(days=length),
        resolution=draw(st.sampled_from([3600, 86_400])),
        nullable=nullable,
    )


def distance_of(own: Attribute, base: Attribute, least: int | None) -> tuple[GridCodec, GridCodec, Distance]:
    codec = Codec(Schema(attributes={"own": own, "base": base}))
    one, other = codec.plain["own"], codec.plain["base"]
    assert isinstance(one, GridCodec)
    assert isinstance(other, GridCodec)
    return one, other, codec.distance("own", Difference(base="base", least=least))


def values(codec: GridCodec, codes: np.ndarray) -> list[dt.datetime | None]:
    found = []
    for code in codes:
        value = codec.value_of(int(code))
        plain = isinstance(value, dt.date) and not isinstance(value, dt.datetime)
        found.append(dt.datetime.combine(value, dt.time()) if plain else value)
    return found


@given(own=dates(), base=dates(), least=st.sampled_from([None, 0, 1]), seed=st.integers(0, 2**32 - 1))
def test_distances_come_back(own: Attribute, base: Attribute, least: int | None, seed: int) -> None:
    one, other, distance = distance_of(own, base, least)
    rng = np.random.default_rng(seed)
    codes, bases = rng.integers(0, one.size, 200), rng.integers(0, other.size, 200)
    below = codes < distance.lowest(bases)
    far = distance.encode(codes, bases)
    at_an_end = (far == 0) | (far == distance.codec.num_values - 1)
    back = distance.decode(far, bases)
    null = codes == one.null_code if one.null_code is not None else np.zeros(200, bool)
    assert (back == codes)[(~below & ~at_an_end) | null].all()
    if least is not None:
        assert (back == codes)[~below].all()


@given(own=dates(), base=dates(), least=st.sampled_from([0, 1]), seed=st.integers(0, 2**32 - 1))
def test_distances_keep_the_order(own: Attribute, base: Attribute, least: int, seed: int) -> None:
    one, other, distance = distance_of(own, base, least)
    rng = np.random.default_rng(seed)
    bases = rng.integers(0, other.size, 200)
    codes = distance.decode(rng.integers(0, distance.codec.size, 200), bases)
    assert codes.min() >= 0
    assert codes.max() < one.size
    for end, start in zip(values(one, codes), values(other, bases), strict=True):
        fits = start is None or end is None or (start <= end if least == 0 else start < end)
        # A start after every end has no end; where an end must be there, such domains are not told by distances.
        assert fits or (one.null_code is None and distance.last_place >= one.num_values)


def test_a_table_comes_back() -> None:
    schema = Schema(
        attributes={
            "out": Datetime(min="2020-01-01T00:00", max="2020-12-31T00:00", nullable=True),
            "booked": Date(min="2020-01-01", max="2020-12-31"),
            "in": Datetime(min="2020-01-01T00:00", max="2020-12-31T00:00"),
        }
    )
    codec = Codec(schema, {"out": Difference(base="in", least=0), "in": Difference(base="booked")})
    start = [dt.datetime(2020, 3, 1, 10), dt.datetime(2020, 12, 30), dt.datetime(2020, 1, 1)]
    table = pa.table(
        {
            "out": pa.array([start[0] + dt.timedelta(minutes=5), None, start[2]], pa.timestamp("us")),
            "booked": pa.array([dt.date(2020, 3, 1), dt.date(2020, 12, 31), dt.date(2020, 1, 5)]),
            "in": pa.array(start, pa.timestamp("us")),
        }
    )
    coded = codec.encode(table)
    assert coded["out"].tolist()[:2] == [300, codec["out"].null_code]
    assert codec.decode(coded).to_pylist() == codec.decode(codec.encode(codec.decode(coded))).to_pylist()
    assert codec.decode(coded).column("out").to_pylist() == table.column("out").to_pylist()


@pytest.mark.parametrize(
    "differences",
    [
        {"a": Difference(base="b"), "b": Difference(base="a")},
        {"a": Difference(base="a")},
        {"a": Difference(base="n")},
        {"n": Difference(base="a")},
        {"a": Difference(base="x")},
    ],
)
def test_distances_need_two_dates_and_a_first(differences: dict[str, Difference]) -> None:
    date = Date(min="2020-01-01", max="2020-12-31")
    schema = Schema(attributes={"a": date, "b": date, "n": Integer(min=0, max=9)})
    with pytest.raises(SchemaError):
        Codec(schema, differences)
