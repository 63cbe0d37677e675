from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from kamino.errors import InputError
from kamino.io.normalise import normalise_table

DAY = dt.date(2024, 1, 2)
MOMENT = dt.datetime(2024, 1, 2, 3, 4, 5)
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
KEPT = [
    *[(pa.array([1, None, 100], kind), kind) for kind in INTEGERS],
    (pa.array([1.5, None], pa.float32()), pa.float32()),
    (pa.array([1.5, None], pa.float64()), pa.float64()),
    (pa.array([Decimal("1.50"), None], pa.decimal128(9, 2)), pa.decimal128(9, 2)),
    (pa.array([Decimal("1.50"), None], pa.decimal256(50, 2)), pa.decimal256(50, 2)),
    (pa.array([True, None]), pa.bool_()),
    (pa.array(["x", None, ""]), pa.string()),
    (pa.array([DAY, None]), pa.date32()),
    *[(pa.array([MOMENT, None], pa.timestamp(unit)), pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")],
    (pa.array([MOMENT, None], pa.timestamp("us", "Europe/Berlin")), pa.timestamp("us", "Europe/Berlin")),
]
IDS = [uuid.UUID(int=7), uuid.UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")]
CHANGED = [
    (pa.array([np.float16(1.5), None], pa.float16()), pa.float32()),
    (pa.array(["x", None], pa.large_string()), pa.string()),
    (pa.array(["x", None], pa.string_view()), pa.string()),
    (pa.array(["x", None, "x"]).dictionary_encode(), pa.string()),
    (pa.array(["x", None], pa.large_string()).dictionary_encode(), pa.string()),
    (pa.array([3, None, 3]).dictionary_encode(), pa.int64()),
    (pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["x", None])), pa.string()),
    (pa.nulls(2), pa.string()),
    (pa.array([DAY, None], pa.date64()), pa.date32()),
]  # fmt: skip


def one_column(array: pa.Array) -> pa.Table:
    return pa.table({"a": array})


@pytest.mark.parametrize(("array", "kind"), KEPT + CHANGED, ids=[str(case[0].type) for case in KEPT + CHANGED])
def test_types_that_come_out(array: pa.Array, kind: pa.DataType) -> None:
    assert normalise_table(one_column(array), where="t").schema == pa.schema({"a": kind})


@pytest.mark.parametrize(
    "array", [case[0] for case in KEPT + CHANGED], ids=[str(case[0].type) for case in KEPT + CHANGED]
)
def test_normalising_keeps_values(array: pa.Array) -> None:
    # Cut in two chunks, the second one with an offset into its buffers.
    table = pa.table({"a": pa.chunked_array([array.slice(0, 1), array.slice(1)])})
    assert normalise_table(table, where="t").column("a").to_pylist() == array.to_pylist()


@pytest.mark.parametrize(
    "array", [case[0] for case in KEPT + CHANGED], ids=[str(case[0].type) for case in KEPT + CHANGED]
)
def test_normalising_twice_changes_nothing(array: pa.Array) -> None:
    once = normalise_table(one_column(array), where="t")
    assert normalise_table(once, where="t").equals(once)


def test_uuid_becomes_its_text() -> None:
    storage = pa.array([IDS[0].bytes, None, IDS[1].bytes], pa.binary(16))
    column = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    table = normalise_table(pa.table({"a": pa.chunked_array([column.slice(1), column.slice(0, 0)])}), where="t")
    assert table.column("a").to_pylist() == [None, str(IDS[1])]
    assert normalise_table(one_column(column), where="t").column("a").to_pylist()[0] == str(IDS[0])


def test_metadata_is_dropped_and_not_null_marks_stay() -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False, metadata={"k": "v"})], metadata={"k": "v"})
    found = normalise_table(pa.table({"a": [1]}, schema=schema), where="t").schema
    assert found.equals(pa.schema([pa.field("a", pa.int64(), nullable=False)]), check_metadata=True)


def test_no_chunks() -> None:
    for kind in (pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.date32(), pa.null(), pa.uuid()):
        empty = pa.table({"a": pa.chunked_array([], type=kind)})
        assert normalise_table(empty, where="t").num_rows == 0


@pytest.mark.parametrize(
    "kind",
    [
        pa.time32("s"), pa.time64("us"), pa.duration("s"), pa.binary(), pa.large_binary(), pa.binary(3),
        pa.list_(pa.int64()), pa.struct({"x": pa.int64()}), pa.map_(pa.string(), pa.int64()),
        pa.month_day_nano_interval(), pa.dictionary(pa.int8(), pa.binary()),
    ],
    ids=str,
)  # fmt: skip
def test_refused_types_are_named(kind: pa.DataType) -> None:
    named = kind.value_type if pa.types.is_dictionary(kind) else kind
    with pytest.raises(InputError) as caught:
        normalise_table(pa.table({"a b": pa.nulls(1, kind)}), where="file.parquet")
    message = str(caught.value)
    assert message.startswith(f"file.parquet: column 'a b' has type {named}, ")
    assert "Cast it" in message


def test_dates_outside_the_calendar_are_refused() -> None:
    first = (dt.date(1, 1, 1) - dt.date(1970, 1, 1)).days
    last = (dt.date(9999, 12, 31) - dt.date(1970, 1, 1)).days
    assert normalise_table(one_column(pa.array([first, last], pa.date32())), where="t").num_rows == 2
    edges = pa.array([dt.datetime.min, dt.datetime.max, None], pa.timestamp("us"))
    for kind in (edges.type, pa.timestamp("us", "UTC")):
        assert normalise_table(one_column(edges.cast(pa.int64()).cast(kind)), where="t").num_rows == 3
    for zone in ("Europe/Berlin", "+01:00", "-12:00"):
        local = edges.cast(pa.int64()).cast(pa.timestamp("us", zone))
        with pytest.raises(InputError, match="outside the years"):
            normalise_table(one_column(local), where="t")
        read = normalise_table(one_column(local), where="t", private=True)["a"]
        assert read.to_pylist() == [None, None, None], "at home these moments lie in the year 0 or 10000"
    for bad in (
        pa.array([first - 1], pa.date32()),
        pa.array([last + 1], pa.date32()),
        pa.array([first * 86_400_000_000 - 1], pa.int64()).cast(pa.timestamp("us")),
        pa.array([(last + 1) * 86_400_000], pa.int64()).cast(pa.timestamp("ms")),
        pa.array([2**63 - 1], pa.int64()).cast(pa.timestamp("us")),
        pa.array([-(2**62)], pa.int64()).cast(pa.timestamp("ms")),
    ):
        with pytest.raises(InputError, match="column 'a' has a date outside the years 1 to 9999"):
            normalise_table(one_column(bad), where="t")
