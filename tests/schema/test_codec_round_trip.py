from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schema.strategies import codes_for, data_attributes, schemas
from tests.trying import examples

from kamino.errors import SchemaError
from kamino.schema import (
    Boolean,
    Categorical,
    Codec,
    CodedTable,
    Date,
    Datetime,
    Integer,
    Key,
    Real,
    Schema,
    attribute_codec,
)
from kamino.schema.coding.attribute_codec import with_nulls


@examples(400)
@given(st.data(), data_attributes())
def test_every_value_survives(data, attribute):
    codec = attribute_codec("a", attribute)
    codes = np.array(data.draw(codes_for(codec.size)), np.int64)
    values = codec.decode(codes)
    assert values.type == attribute.arrow_type
    assert codec.encode(values).tolist() == codes.tolist()
    assert values.null_count == np.count_nonzero(codes == codec.null_code)
    # The single values agree with the column, however they come.
    singles = [codec.value_of(code) for code in codes]
    kind = attribute.arrow_type.value_type if pa.types.is_dictionary(attribute.arrow_type) else attribute.arrow_type
    plain = {"date": pa.date32(), "boolean": pa.bool_()}.get(attribute.type, kind)
    assert codec.encode(pa.array(singles, plain)).tolist() == codes.tolist()
    assert [codec.code_of(value) for value in singles] == codes.tolist()


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float64])
@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1000])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_numbers_with_nulls_are_those_of_arrow(kind, size, share):
    rng = np.random.default_rng(size)
    numbers, null = rng.integers(-9, 9, 2 * size).astype(kind)[::2], rng.random(size) < share
    found = with_nulls(numbers, null)
    found.validate(full=True)
    assert found.equals(pa.array(numbers, mask=null))
    assert found.null_count == np.count_nonzero(null)


@examples(200)
@given(st.data(), data_attributes())
def test_code_order_is_value_order(data, attribute):
    codec = attribute_codec("a", attribute)
    if codec.num_values == 0:
        return
    codes = st.integers(0, codec.num_values - 1)
    first, second = data.draw(codes), data.draw(codes)
    one, other = codec.value_of(first), codec.value_of(second)
    keys = codec.order_keys(np.array([first, second]))
    assert (one < other) == (keys[0] < keys[1])
    assert (one == other) == (keys[0] == keys[1])
    if codec.ordered:
        assert (one < other) == (first < second)
        assert codec.position(one) == first


@examples(100)
@given(st.data(), schemas())
def test_tables_survive(data, schema):
    if schema.missing_domains:
        with pytest.raises(SchemaError, match="found no domain for"):
            Codec(schema)
        return
    codec = Codec(schema)
    num_rows = data.draw(st.sampled_from([0, 1, 3]))
    columns = {}
    for name, size in codec.sizes.items():
        drawn = data.draw(st.lists(st.integers(0, size - 1), min_size=num_rows, max_size=num_rows))
        columns[name] = np.array(drawn, np.int64)
    coded = CodedTable(columns=columns, num_rows=num_rows)
    table = codec.decode(coded)
    assert tuple(table.column_names) == schema.names
    assert table.num_rows == num_rows
    assert codec.encode(table).equals(coded)


@given(st.lists(st.integers(-(10**7), 10**7), min_size=1), st.integers(0, 4))
def test_reals_print_short(ticks, decimals):
    """A decoded real is the double that its decimal text means."""
    codec = attribute_codec("a", Real(min=-(10**7), max=10**7, decimals=decimals))
    texts = [str(Decimal(tick).scaleb(-decimals)) for tick in ticks]
    decoded = codec.decode(codec.encode(pa.array([float(text) for text in texts]))).to_pylist()
    assert decoded == [float(text) for text in texts]


def test_known_codes():
    real = attribute_codec("r", Real(min=0.1, max=2.5, decimals=2, nullable=True))
    assert real.size == 242
    assert real.encode(pa.array([0.1, 2.1, 2.5, None, 0.29, 1.005])).tolist() == [0, 200, 240, 241, 19, 90]
    assert real.decode([200]).to_pylist() == [2.1]
    week = attribute_codec("w", Date(min=dt.date(2024, 1, 1), max=dt.date(2024, 1, 29), resolution=7))
    assert week.encode(pa.array([dt.date(2024, 1, 4), dt.date(2024, 1, 5)])).tolist() == [0, 1]
    paris = Datetime(min=dt.datetime(2024, 1, 1), max=dt.datetime(2024, 1, 2), resolution=3600, timezone="Europe/Paris")
    hours = attribute_codec("h", paris)
    assert hours.value_of(1) == dt.datetime(2024, 1, 1, 1, tzinfo=dt.UTC)
    assert hours.decode([1]).type == pa.timestamp("us", tz="Europe/Paris")
    texts = attribute_codec("c", Categorical(values=["b", "a"], other="rest", nullable=True))
    assert texts.encode(pa.array(["a", "b", "zzz", None])).tolist() == [1, 0, 2, 3]
    assert not texts.ordered
    assert texts.order_keys(np.array([0, 1, 2, 3])).tolist() == [1, 0, 2, -1]
    flags = attribute_codec("b", Boolean(nullable=True))
    assert flags.encode(pa.array(["Yes", " f ", "maybe", None])).tolist() == [1, 0, 2, 2]


def test_position_places_constants():
    codec = attribute_codec("a", Integer(min=10, max=20))
    assert codec.position(17) == 7
    assert codec.position(Decimal("16.5")) == Decimal("6.5")
    assert codec.position(100) == 90
    assert codec.code_of(100) is None
    assert codec.position("17") is None
    day = attribute_codec("d", Date(min=dt.date(2020, 1, 1), max=dt.date(2020, 2, 1)))
    assert day.position(dt.date(2020, 1, 3)) == 2
    assert day.position(dt.datetime(2020, 1, 3, 12)) == 2.5


def test_wide_domains_need_no_room():
    codec = attribute_codec("a", Integer(min=-(2**61), max=2**61 - 2, nullable=True))
    assert codec.size == 2**62
    assert codec.encode(pa.array([-(2**61), 2**61 - 2, None])).tolist() == [0, 2**62 - 2, 2**62 - 1]


def test_codec_follows_the_schema():
    schema = Schema(attributes={"id": Key(pattern="C{:02d}"), "age": Integer(min=0, max=9), "ok": Boolean()})
    codec = Codec(schema)
    coded = codec.encode(pa.table({"ok": [True, False], "age": pa.chunked_array([[3], [4]])}))
    assert list(coded.columns) == ["age", "ok"]
    assert codec.decode(coded, first_key=5).to_pydict() == {"id": ["C05", "C06"], "age": [3, 4], "ok": [True, False]}
    with pytest.raises(SchemaError, match="attribute 'id' is a key"):
        codec["id"]
    with pytest.raises(SchemaError, match="Did you mean 'age'"):
        codec["agee"]


def test_empty_and_all_null_columns():
    schema = Schema(
        attributes={
            "c": Categorical(values=[], nullable=True),
            "i": Integer(min=0, max=0, nullable=True),
            "s": Categorical(values=["x"]),
        }
    )
    codec = Codec(schema)
    kinds = {"c": pa.string(), "i": pa.int64(), "s": pa.null()}
    nulls = pa.table({name: pa.nulls(2, kind) for name, kind in kinds.items()})
    assert {name: codes.tolist() for name, codes in codec.encode(nulls).columns.items()} == {
        "c": [0, 0],
        "i": [1, 1],
        "s": [0, 0],
    }
    empty = codec.encode(nulls.slice(0, 0))
    assert empty.num_rows == 0
    assert codec.decode(empty).num_rows == 0


def test_coded_table_is_read_only():
    coded = CodedTable(columns={"a": np.array([1, 2])}, num_rows=2)
    with pytest.raises(ValueError, match="read-only"):
        coded["a"][0] = 5
    with pytest.raises(SchemaError, match="one code for each row"):
        CodedTable(columns={"a": np.array([1, 2])}, num_rows=3)


def test_decode_refuses_what_is_no_code():
    codec = attribute_codec("a", Integer(min=0, max=9))
    for codes in ([10], [-1], [0.5]):
        with pytest.raises(SchemaError, match="no integers from 0 to 9"):
            codec.decode(codes)
    with pytest.raises(SchemaError, match="found no codes for a"):
        Codec(Schema(attributes={"a": Boolean()})).decode(CodedTable(columns={}, num_rows=0))
