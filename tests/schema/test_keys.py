from __future__ import annotations

import re
import uuid
from itertools import combinations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kamino.errors import SchemaError
from kamino.schema import Codec, CodedTable, Key, Schema, make_keys
from kamino.schema.keys import _mix, check_keys, pattern_widths


@given(
    st.sampled_from(["C{:06d}", "{}", "{:d}x", "{:03d}-{:02d}-{:04d}", "uuid", None]),
    st.integers(0, 50),
    st.integers(1, 10**5),
)
def test_keys_differ_and_continue(pattern, num_keys, start):
    attribute = Key(pattern=pattern)
    keys = make_keys(attribute, num_keys, start=start).to_pylist()
    assert len(set(keys)) == num_keys
    longer = make_keys(attribute, num_keys + 5, start=start).to_pylist()
    assert longer[:num_keys] == keys
    assert longer[num_keys:] == make_keys(attribute, 5, start=start + num_keys).to_pylist()


def test_keys_look_as_asked():
    assert make_keys(Key(pattern="C{:06d}"), 2).to_pylist() == ["C000001", "C000002"]
    assert make_keys(Key(pattern="{:03d}-{:02d}"), 2, start=99).to_pylist() == ["000-99", "001-00"]
    assert make_keys(Key(pattern="<{}>"), 1, start=12345).to_pylist() == ["<12345>"]
    assert make_keys(Key(dtype="int16"), 2).equals(pa.array([1, 2], pa.int16()))
    for text in make_keys(Key(dtype="large_string"), 100).to_pylist():
        assert uuid.UUID(text).version == 8
        assert uuid.UUID(text).variant == uuid.RFC_4122


@pytest.mark.parametrize(
    ("attribute", "capacity"), [(Key(pattern="{:02d}"), 99), (Key(dtype="int8"), 127), (Key(dtype="uint8"), 255)]
)
def test_too_few_keys(attribute, capacity):
    assert len(make_keys(attribute, capacity)) == capacity
    with pytest.raises(SchemaError, match=re.escape(f"found a key with {capacity} different values")):
        make_keys(attribute, capacity + 1)


@pytest.mark.parametrize("pattern", ["abc", "{:06d", "{:06d}{}", "{x}", "{:6d}", "{:019d}", "}{}"])
def test_bad_patterns(pattern):
    with pytest.raises(ValueError, match="expected text with one"):
        pattern_widths(pattern)


def test_mixing_is_one_to_one():
    for bits in (8, 9):
        assert {_mix(number, bits) for number in range(2**bits)} == set(range(2**bits))


def test_two_keys_never_get_the_same_values() -> None:
    attributes = {
        "id": Key(dtype="int64"),
        "account": Key(dtype="int32"),
        "one": Key(),
        "two": Key(pattern="uuid"),
        "code": Key(pattern="C{:04d}"),
        "alone": Key(pattern="P{:04d}"),
    }
    codec = Codec(Schema(attributes=attributes))
    parts = [codec.decode(CodedTable(columns={}, num_rows=3), first_key=first) for first in (1, 4)]
    columns = {name: [v for part in parts for v in part.column(name).to_pylist()] for name in attributes}
    assert columns["id"] == [1, 3, 5, 7, 9, 11]
    assert columns["code"][:2] == ["C0001", "C0002"]
    for one, other in combinations(columns, 2):
        assert not set(columns[one]) & set(columns[other]), (one, other)
    assert all(len(set(values)) == 6 for values in columns.values())
    check_keys({"a": Key(pattern="{:01d}")}, 9)
    with pytest.raises(SchemaError, match="expected at least 10"):
        check_keys({"a": Key(pattern="{:01d}"), "b": Key(pattern="{:01d}")}, 5)
