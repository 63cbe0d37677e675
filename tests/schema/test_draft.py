from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schema.strategies import columns
from tests.trying import examples

from kamino.errors import SchemaError
from kamino.schema import Boolean, Categorical, Codec, Date, Datetime, Integer, Key, Real, Schema, Source, draft_schema

TABLE = pa.table(
    {
        "text": ["b", "a", None],
        "int": pa.array([3, 1, 2], pa.int32()),
        "float": [0.25, 1.5, float("nan")],
        "third": [1 / 3, 2 / 3, 1.0],
        "money": pa.array([Decimal("1.10"), Decimal("2.25"), None], pa.decimal128(10, 2)),
        "flag": [True, False, True],
        "day": [dt.date(2020, 1, 1), dt.date(2021, 1, 1), None],
        "hour": [dt.datetime(2020, 1, 1, 8), dt.datetime(2020, 1, 1, 9), dt.datetime(2020, 1, 2, 8)],
        "zoned": pa.array([0, 1500, 3000], pa.int64()).view(pa.timestamp("ms", tz="Europe/Paris")),
        "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
    }
)


def test_types_only():
    schema = draft_schema(TABLE)
    assert dict(schema.attributes) == {
        "text": Categorical(nullable=True),
        "int": Integer(nullable=True, dtype="int32"),
        "float": Real(nullable=True),
        "third": Real(nullable=True),
        "money": Real(nullable=True, decimals=2, dtype="decimal128(10, 2)"),
        "flag": Boolean(nullable=True),
        "day": Date(nullable=True),
        "hour": Datetime(nullable=True),
        "zoned": Datetime(nullable=True, timezone="Europe/Paris", dtype="timestamp[ms]"),
        "kind": Categorical(nullable=True, dtype="dictionary"),
    }
    assert schema.missing_domains == tuple(name for name in TABLE.column_names if name != "flag")


def test_trusted_domains():
    schema = draft_schema(TABLE, trust_domain=True)
    asserted = {"source": Source.ASSERTED}
    assert dict(schema.attributes) == {
        "text": Categorical(values=["a", "b"], nullable=True, **asserted),
        "int": Integer(min=1, max=3, dtype="int32", **asserted),
        "float": Real(min=0.25, max=1.5, decimals=2, nullable=True, **asserted),
        "third": Real(min=0.333333, max=1, decimals=6, **asserted),
        "money": Real(min=1.1, max=2.25, decimals=2, dtype="decimal128(10, 2)", nullable=True, **asserted),
        "flag": Boolean(**asserted),
        "day": Date(min=dt.date(2020, 1, 1), max=dt.date(2021, 1, 1), nullable=True, **asserted),
        "hour": Datetime(min=dt.datetime(2020, 1, 1, 8), max=dt.datetime(2020, 1, 2, 8), resolution=3600, **asserted),
        "zoned": Datetime(
            min=dt.datetime(1970, 1, 1),
            max=dt.datetime(1970, 1, 1, 0, 0, 3),
            resolution=0.001,
            timezone="Europe/Paris",
            dtype="timestamp[ms]",
            **asserted,
        ),
        "kind": Categorical(values=["x", "y"], dtype="dictionary", **asserted),
    }
    assert Schema.from_yaml(schema.to_yaml()) == schema


def test_trusted_tables_survive():
    exact = TABLE.drop(["float", "third"])
    schema = draft_schema(exact, trust_domain=True)
    assert Codec(schema).decode(Codec(schema).encode(exact)).combine_chunks().to_pydict() == exact.to_pydict()
    assert Codec(schema).decode(Codec(schema).encode(exact)).schema.types == exact.schema.types


def _draft_or_message(table: pa.Table) -> Schema | str:
    try:
        return draft_schema(table)
    except SchemaError as error:
        return str(error)


@examples(200)
@given(columns())
def test_draft_reads_no_values(column):
    table = pa.table({"a": column})
    assert _draft_or_message(table) == _draft_or_message(table.slice(0, 0))


@examples(300)
@given(columns())
def test_trusted_draft_takes_anything(column):
    table = pa.table({"a": column})
    try:
        drafted = draft_schema(table)
    except SchemaError:
        return
    trusted = draft_schema(table, trust_domain=True)
    assert Schema.from_yaml(trusted.to_yaml()) == trusted
    if trusted.missing_domains:
        assert trusted == drafted
    else:
        codec = Codec(trusted)
        coded = codec.encode(table)
        again = codec.encode(codec.decode(coded))
        assert coded.equals(again)
        if pa.types.is_integer(column.type) or pa.types.is_string(column.type):
            assert codec.decode(coded).column("a").to_pylist() == column.to_pylist()


@given(st.lists(st.floats(-1e9, 1e9).map(lambda number: round(number, 3)), min_size=1))
def test_short_decimals_survive(numbers):
    table = pa.table({"a": numbers})
    schema = draft_schema(table, trust_domain=True)
    assert schema["a"].decimals <= 3
    assert Codec(schema).decode(Codec(schema).encode(table)).column("a").to_pylist() == numbers


def test_all_null_and_empty_columns():
    kinds = [
        pa.string(),
        pa.int64(),
        pa.float64(),
        pa.bool_(),
        pa.date32(),
        pa.timestamp("ns"),
        pa.null(),
        pa.decimal128(5, 1),
    ]
    for rows in (0, 2):
        table = pa.table({f"c{place}": pa.nulls(rows, kind) for place, kind in enumerate(kinds)})
        schema = draft_schema(table, trust_domain=True)
        assert schema.missing_domains == ()
        assert all(attribute.nullable for attribute in schema.attributes.values())
        decoded = Codec(schema).decode(Codec(schema).encode(table))
        assert decoded.num_rows == rows
        assert all(column.null_count == rows for column in decoded.columns)


def test_extreme_reals():
    tiny = draft_schema(pa.table({"a": [1e-12, 3.3e-12]}), trust_domain=True)["a"]
    assert tiny.decimals >= 15
    huge = draft_schema(pa.table({"a": [-1e300, 1e300, float("inf")]}), trust_domain=True)["a"]
    assert huge.decimals < -280
    assert huge.min <= Decimal("-1e300")
    single = draft_schema(pa.table({"a": pa.array([2.1, 2.2], pa.float32())}), trust_domain=True)["a"]
    assert (single.min, single.max, single.decimals) == (Decimal("2.1"), Decimal("2.2"), 1)


def test_too_wide_integers_stay_private():
    table = pa.table({"a": [-(2**63), 2**63 - 1], "b": pa.array([0, 2**64 - 1], pa.uint64())})
    assert draft_schema(table, trust_domain=True).missing_domains == ("a", "b")


def test_keys_are_named_by_the_user():
    table = pa.table({"id": ["u1", "u2"], "number": [7, 8]})
    assert isinstance(draft_schema(table)["id"], Categorical)
    schema = draft_schema(table, trust_domain=True, keys=["id", "number"])
    assert dict(schema.attributes) == {"id": Key(dtype="string"), "number": Key(dtype="int64")}
    with pytest.raises(SchemaError, match=r"key 'idd' is not in the table\. Did you mean 'id'"):
        draft_schema(table, keys=["idd"])


def test_what_cannot_be_drafted():
    strange = pa.table({"a": pa.array([[1]]), "b": pa.array([b"x"]), "c": pa.array([1], pa.time32("s"))})
    with pytest.raises(SchemaError) as caught:
        draft_schema(strange)
    assert [line.split(",")[0] for line in str(caught.value).splitlines()] == [
        "column 'a' has type list<item: int64>",
        "column 'b' has type binary",
        "column 'c' has type time32[s]",
    ]
    with pytest.raises(SchemaError, match="same name: a"):
        draft_schema(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(SchemaError, match="without columns"):
        draft_schema(pa.table({}))


def test_numpy_integers_of_any_width():
    for kind in (np.int8, np.uint16, np.uint32):
        table = pa.table({"a": np.array([0, 5], kind)})
        schema = draft_schema(table, trust_domain=True)
        assert Codec(schema).decode(Codec(schema).encode(table)).equals(table)


def test_too_many_columns_are_refused_at_once():
    """Before names are compared with each other, which took minutes for as many."""
    wide = pa.schema([pa.field(f"c{i}", pa.int64()) for i in range(50_000)]).empty_table()
    with pytest.raises(SchemaError, match=r"found a table of 50,000 columns; expected at most 10,000\. Choose some"):
        draft_schema(wide)
