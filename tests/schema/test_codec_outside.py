"""Values outside the domain: a code inside it, and silence."""

from __future__ import annotations

import datetime as dt
import logging
import traceback
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schema.strategies import columns, data_attributes
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
    can_read,
    draft_schema,
    make_keys,
)


@examples(1000)
@given(data_attributes(), columns())
def test_anything_encodes(attribute, column):
    codec = attribute_codec("a", attribute)
    if not can_read(attribute, column.type):
        with pytest.raises(SchemaError, match="column 'a' has t"):
            codec.encode(column)
        return
    codes = codec.encode(column)
    assert codes.dtype == np.int64
    assert len(codes) == len(column)
    assert np.all((codes >= 0) & (codes < codec.size))
    # A value's code does not depend on the values beside it.
    assert codes.tolist() == [codec.encode(column.slice(place, 1))[0] for place in range(len(column))]
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    expected = codec.fallback_code if codec.null_code is None else codec.null_code
    assert np.all(codes[nulls] == expected)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-1000, 1000), st.integers(0, 1000))
def test_integers_are_clamped(value, low, width):
    codec = attribute_codec("a", Integer(min=low, max=low + width))
    expected = min(max(value, low), low + width) - low
    for column in (pa.array([value]), pa.array([str(value)]), pa.array([Decimal(value)])):
        assert codec.encode(column).tolist() == [expected]


@given(st.floats(allow_nan=False), st.integers(0, 4))
def test_reals_go_to_the_nearest_place(value, decimals):
    codec = attribute_codec("a", Real(min=-1000, max=1000, decimals=decimals))
    if abs(value) > 1000:
        assert codec.encode(pa.array([value])).tolist() == [0 if value < 0 else codec.size - 1]
        return
    distance = (Fraction(value) + 1000) * 10**decimals - int(codec.encode(pa.array([value]))[0])
    assert abs(distance) <= Fraction(1, 2) + Fraction(1, 10**6)
    exact = (Fraction(Decimal(repr(value))) + 1000) * 10**decimals - int(codec.encode(pa.array([repr(value)]))[0])
    assert abs(exact) <= Fraction(1, 2)


NOT_NUMBERS = pa.array([float("nan"), float("inf"), -float("inf"), None, 1e300])


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        (Real(min=0, max=1, decimals=1), [0, 10, 0, 0, 10]),
        (Real(min=0, max=1, decimals=1, nullable=True), [11, 10, 0, 11, 10]),
        (Integer(min=5, max=7), [0, 2, 0, 0, 2]),
        (Integer(min=5, max=7, nullable=True), [3, 2, 0, 3, 2]),
        (Boolean(), [0, 0, 0, 0, 0]),
        (Boolean(nullable=True), [2, 2, 2, 2, 2]),
        (Categorical(values=["x", "y"]), [0, 0, 0, 0, 0]),
        (Categorical(values=["x", "y"], nullable=True), [2, 2, 2, 2, 2]),
        (Categorical(values=["x"], other="z", nullable=True), [1, 1, 1, 2, 1]),
        (Categorical(values=[1, 2], other=2), [1, 1, 1, 1, 1]),
    ],
)
def test_infinity_and_nan(attribute, expected):
    assert attribute_codec("a", attribute).encode(NOT_NUMBERS).tolist() == expected


def test_unsigned_integers_are_clamped():
    codec = attribute_codec("a", Integer(min=-5, max=2**61))
    assert codec.encode(pa.array([2**64 - 1, 0], pa.uint64())).tolist() == [2**61 + 5, 5]


def test_times_are_clamped():
    day = attribute_codec("d", Date(min=dt.date(2020, 1, 1), max=dt.date(2020, 1, 10)))
    assert day.encode(pa.array([dt.date(1, 1, 1), dt.date(9999, 1, 1)])).tolist() == [0, 9]
    assert day.encode(pa.array(["2020-01-03", "03/01/2020", "9999-12-31"])).tolist() == [2, 0, 9]
    late = pa.array([dt.datetime(2020, 1, 2, 23, 30)], pa.timestamp("s", tz="UTC")).cast(
        pa.timestamp("s", "Europe/Paris")
    )
    assert day.encode(late).tolist() == [2]
    extremes = pa.array([-(2**63), 2**63 - 1])
    for unit in ("s", "ms", "us", "ns"):
        assert day.encode(extremes.view(pa.timestamp(unit, tz="Europe/Paris"))).tolist() == [0, 9]
    # Offsets are no zones of the database that older versions of pyarrow look them up in.
    for zone, code in (("+00:45", 2), ("-03:30", 1), ("+00:15", 1)):
        assert day.encode(late.cast(pa.timestamp("s", zone))).tolist() == [code]
        assert day.encode(extremes.view(pa.timestamp("us", tz=zone))).tolist() == [0, 9]


def test_lenient_casts():
    assert attribute_codec("a", Integer(min=0, max=99)).encode(pa.array([" 7", "7.4", "x", "1e1"])).tolist() == [
        7,
        7,
        0,
        10,
    ]
    codes = attribute_codec("a", Categorical(values=["1", "2.5"], nullable=True))
    assert codes.encode(pa.array([1, 3])).tolist() == [0, 2]
    assert codes.encode(pa.array([1.0, 2.5, 2.0])).tolist() == [0, 1, 2]
    numbers = attribute_codec("a", Categorical(values=[1, 2], nullable=True))
    assert numbers.encode(pa.array(["1", "02", "2.0", "2.5", "two"])).tolist() == [0, 1, 1, 2, 2]
    assert numbers.encode(pa.array([2**64 - 1, 2], pa.uint64())).tolist() == [2, 1]
    view = pa.array(["1"]).cast(pa.string_view())
    assert numbers.encode(view).tolist() == [0]


MARKER, NUMBER = "ZEBRA-7c1f", 918_273_645
SCHEMA = Schema(
    attributes={
        "id": Key(pattern="{:01d}"),
        "text": Categorical(values=["a"]),
        "number": Integer(min=0, max=9),
        "real": Real(min=0, max=9, decimals=1),
        "day": Date(min=dt.date(2020, 1, 1), max=dt.date(2020, 1, 10)),
        "when": Datetime(min=dt.datetime(2020, 1, 1), max=dt.datetime(2020, 1, 2)),
        "flag": Boolean(),
    }
)
MARKED = pa.table(
    {
        "id": [MARKER],
        "text": [MARKER],
        "number": [NUMBER],
        "real": [float(NUMBER)],
        "day": [MARKER],
        "when": [MARKER],
        "flag": [MARKER],
    }
)


def _replaced(name: str, column: pa.Array) -> pa.Table:
    return MARKED.set_column(MARKED.column_names.index(name), name, column)


FAILING = {
    "missing column": lambda: Codec(SCHEMA).encode(MARKED.drop(["text"])),
    "unknown column": lambda: Codec(SCHEMA).encode(MARKED.append_column("texts", pa.array([MARKER]))),
    "column twice": lambda: Codec(SCHEMA).encode(MARKED.append_column("text", pa.array([MARKER]))),
    "binary": lambda: Codec(SCHEMA).encode(_replaced("number", pa.array([MARKER.encode()]))),
    "list": lambda: Codec(SCHEMA).encode(_replaced("text", pa.array([[MARKER]]))),
    "number for a day": lambda: Codec(SCHEMA).encode(_replaced("day", pa.array([NUMBER]))),
    "timezone": lambda: Codec(SCHEMA).encode(_replaced("when", pa.array([NUMBER]).view(pa.timestamp("s", tz="UTC")))),
    "one attribute": lambda: attribute_codec("flag", Boolean()).encode(pa.array([[NUMBER]])),
    "code outside": lambda: attribute_codec("flag", Boolean()).decode([NUMBER]),
    "codes of another length": lambda: CodedTable(columns={"a": np.array([NUMBER])}, num_rows=NUMBER),
    "codes missing": lambda: Codec(SCHEMA).decode(CodedTable(columns={"text": np.array([NUMBER])}, num_rows=1)),
    "no domain": lambda: Codec(draft_schema(MARKED)),
    "type without attribute": lambda: draft_schema(_replaced("text", pa.array([{"x": MARKER}])), trust_domain=True),
    "same name": lambda: draft_schema(MARKED.append_column("text", pa.array([MARKER])), trust_domain=True),
    "unknown key": lambda: draft_schema(MARKED, keys=["texd"]),
    "too few keys": lambda: make_keys(Key(pattern="{:01d}"), 10),
}


@pytest.mark.parametrize("path", FAILING)
def test_marker_never_shows(path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    with pytest.raises(SchemaError) as caught:
        FAILING[path]()
    error = caught.value
    # A traceback shows source lines of this file, which name the constants; the values are what must not show.
    seen = [str(error), repr(error), repr(error.args), *traceback.format_exception(error)]
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
        seen += [str(error), repr(error)]
    output = "".join([*seen, caplog.text, *capfd.readouterr()])
    assert MARKER not in output
    assert str(NUMBER) not in output.replace(",", "").replace("_", "")


def test_repr_shows_no_data(caplog, capfd):
    caplog.set_level(logging.DEBUG)
    codec = Codec(SCHEMA)
    coded = codec.encode(MARKED)
    wide = CodedTable(columns={"a": np.full(37, NUMBER)}, num_rows=37)
    assert repr(wide) == str(wide) == "CodedTable(columns=('a',))"
    texts = "".join([repr(coded), str(coded), f"{coded}", repr(codec), repr(codec["text"]), *capfd.readouterr()])
    assert MARKER not in texts + caplog.text
    assert str(NUMBER) not in texts + caplog.text
    assert MARKER not in repr(draft_schema(MARKED)) + draft_schema(MARKED).to_yaml()
    assert codec.decode(CodedTable(columns=coded.columns, num_rows=1)).column("text").to_pylist() == ["a"]
