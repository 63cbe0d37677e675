from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from kamino.errors import SchemaError
from kamino.schema import Boolean, Categorical, Date, Datetime, Integer, Key, Real, Source
from kamino.schema.dtypes import dtype_name, parse_dtype

DAY = dt.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Integer(min=4), "Integer: found min without max: give both or neither"),
        (lambda: Real(max=4), "Real: found max without min: give both or neither"),
        (lambda: Date(source="declared"), "Date: found source declared without min and max: give the domain"),
    ],
)
def test_half_a_domain_is_refused(build, message):
    with pytest.raises(SchemaError) as caught:
        build()
    assert str(caught.value).startswith(message)


def test_constructor_raises_schema_error():
    with pytest.raises(SchemaError) as caught:
        Integer(min="abc", maxx=3, nullable="perhaps")
    assert str(caught.value).splitlines() == [
        "Integer: nullable: found 'perhaps', expected true or false",
        "Integer: min: found 'abc', expected an integer",
        "Integer: maxx: is no known field.",
    ]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Integer(min=3, max=2), "found max 2 below min 3"),
        (lambda: Integer(min=0, max=True), "found True, expected an integer"),
        (lambda: Integer(min=0, max=2**64), "expected 64-bit integers"),
        (lambda: Integer(min=-1, max=2**63), "expected 64-bit integers"),
        (lambda: Integer(min=2**63, max=2**63), "use uint64"),
        (lambda: Integer(min=0, max=2**62), "set step to 2"),
        (lambda: Integer(min=0, max=5, step=2), "expected min and a multiple of step 2: use 4"),
        (lambda: Real(min=0, max=2 * 10**308, decimals=-300), "which is infinite there"),
        (lambda: Integer(min=-(2**62), max=2**62), "expected fewer than 2^62"),
        (lambda: Integer(min=0, max=300, dtype="int8"), "dtype int8 cannot hold 300"),
        (lambda: Integer(min=-1, max=3, dtype="uint64"), "dtype uint64 cannot hold -1"),
        (lambda: Integer(min=0, max=2**60, dtype="float64"), "dtype float64 cannot hold"),
        (lambda: Integer(min=0, max=2, dtype="string"), "does not fit an integer attribute"),
        (lambda: Integer(min=0, max=2, dtype="int65"), "found 'int65', expected one of bool, string"),
        (lambda: Real(min=0.125, max=1, decimals=2), "use 0.12, or more decimals"),
        (lambda: Real(min=0, max=float("inf")), "max: found inf, expected a finite number"),
        (lambda: Real(min=0, max="3"), "max: found '3', expected a number"),
        (lambda: Real(min=0, max=10**12), "dtype float64 cannot tell apart values near 1000000000000"),
        (lambda: Real(min=0, max=10**6, decimals=2, dtype="float32"), "dtype float32 cannot tell apart"),
        (lambda: Real(decimals=4, dtype="decimal128(10, 2)"), "keeps 2 decimals, the attribute has 4"),
        (lambda: Real(min=0, max=1000, decimals=2, dtype="decimal128(4, 2)"), "cannot tell apart"),
        (lambda: Real(min=0, max=2**62, decimals=0, dtype="decimal128(38, 0)"), "fewer than 2^62"),
        (lambda: Categorical(values=["a", "a"]), "values: found 'a' more than once"),
        (lambda: Categorical(values=["a", 1]), "values: found text and integers"),
        (lambda: Categorical(values=[True, False]), "values: found true or false among the values"),
        (lambda: Categorical(values=[1.5]), "values: expected all values to be text or all to be integers"),
        (lambda: Categorical(values="abc"), "values: expected a list"),
        (lambda: Categorical(values=[]), "found no values, expected at least one"),
        (lambda: Categorical(values=["a"], other=1), "found other 1 of another kind"),
        (lambda: Categorical(values=["a"], dtype="int64"), "does not fit values that are text"),
        (lambda: Categorical(values=[1], dtype="string"), "does not fit values that are integers"),
        (lambda: Categorical(values=[1000], dtype="int8"), "cannot hold all values"),
        (lambda: Categorical(values=[2**64]), "fit 64 bits"),
        (lambda: Boolean(dtype="float64"), "does not fit a boolean"),
        (lambda: Date(min=DAY, max=dt.date(2020, 1, 10), resolution=7), "use 2020-01-08, or another resolution"),
        (lambda: Date(min="x", max=DAY), "min: found 'x', expected a date"),
        (lambda: Date(min=DAY, max=DAY, resolution=0), "greater than or equal to 1"),
        (lambda: Date(min=dt.date(1000, 1, 1), max=DAY, dtype="timestamp[ns]"), "use timestamp[us]"),
        (lambda: Datetime(min="2020-01-02", max="2020-01-01"), "exchange them"),
        (lambda: Datetime(min="2020-01-01T00:00Z", max="2020-01-02T00:00Z"), "found min with an offset"),
        (lambda: Datetime(resolution=0.0000001), "expected a multiple of 0.000001 seconds"),
        (lambda: Datetime(resolution=0), "expected a multiple of 0.000001 seconds"),
        (lambda: Datetime(resolution=0.5, dtype="timestamp[s]"), "too coarse"),
        (lambda: Datetime(timezone="Mars/Olympus"), "timezone: found 'Mars/Olympus'"),
        (lambda: Key(pattern="C{:06d"), "found pattern 'C{:06d'"),
        (lambda: Key(pattern="C{:06d}", dtype="int64"), "holds numbers, which have no pattern"),
    ],
)
def test_nonsense_is_refused(build, message):
    with pytest.raises(SchemaError) as caught:
        build()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_source_follows_domain():
    assert Integer().source is Source.PRIVATE
    assert Integer(min=0, max=1).source is Source.DECLARED
    assert Boolean().source is Source.DECLARED
    found = Integer(min=0, max=1, source="private")
    assert found.source is Source.PRIVATE
    assert found.has_domain
    assert not Integer().has_domain
    with pytest.raises(SchemaError, match="without domain"):
        _ = Integer().grid


def test_attributes_are_frozen_and_compare():
    assert Real(min=0.1, max=1, decimals=1) == Real(min=Decimal("0.10"), max=1.0, decimals=1)
    assert hash(Categorical(values=["a"])) == hash(Categorical(values=("a",)))
    with pytest.raises(ValueError, match="frozen"):
        Integer(min=0, max=1).min = 5


def test_bounds_with_offsets_become_utc():
    zoned = Datetime(min="2020-01-01T01:00+01:00", max="2020-01-02T00:00", timezone="Europe/Paris")
    assert zoned.min == dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    assert zoned.max == dt.datetime(2020, 1, 2, tzinfo=dt.UTC)
    assert zoned.arrow_type == pa.timestamp("us", tz="Europe/Paris")


def test_found_domains_are_widened_to_the_grid():
    real = Real(decimals=2).with_domain(min=0.001, max=9.999)
    assert (real.min, real.max, real.source) == (0, 10, Source.PRIVATE)
    wide = Real().with_domain(min=-1e20, max=1e20)
    assert wide.decimals < 0
    assert wide.min <= Decimal(-(10**20))
    narrow = Real(dtype="float32").with_domain(min=0, max=1000)
    assert narrow.decimals == 3
    week = Date(resolution=7).with_domain(min=DAY, max=dt.date(2020, 1, 10))
    assert week.max == dt.date(2020, 1, 15)
    hour = Datetime(resolution=3600).with_domain(min=dt.datetime(2020, 1, 1), max=dt.datetime(2020, 1, 1, 0, 1))
    assert hour.max == dt.datetime(2020, 1, 1, 1)
    last = Date(resolution=7).with_domain(min=dt.date(9999, 12, 30), max=dt.date.max)
    assert last.max == dt.date(9999, 12, 30)


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.uint64(), pa.float64(), pa.string(), pa.large_string(), pa.date64(), pa.timestamp("ms"), pa.bool_()],
)
def test_type_names_are_read_back(kind):
    assert parse_dtype(dtype_name(kind)) == kind
    for decimal in (pa.decimal128(10, 2), pa.decimal256(60, -3)):
        assert parse_dtype(dtype_name(decimal)) == decimal
