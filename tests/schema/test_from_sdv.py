from __future__ import annotations

import pytest

from kamino.errors import SchemaError
from kamino.schema import Boolean, Categorical, Date, Datetime, Integer, Key, Real, schema_from_sdv
from kamino.schema.files.from_sdv import pattern_from_regex

TABLE = {
    "primary_key": "guest_email",
    "columns": {
        "guest_email": {"sdtype": "email", "pii": True},
        "guest": {"sdtype": "id", "regex_format": "G-[0-9]{6}"},
        "ref": {"sdtype": "id", "regex_format": "[A-Za-z]{5}"},
        "room": {"sdtype": "categorical"},
        "rewards": {"sdtype": "boolean"},
        "amount": {"sdtype": "numerical"},
        "rate": {"sdtype": "numerical", "computer_representation": "Float"},
        "nights": {"sdtype": "numerical", "computer_representation": "Int64"},
        "floor": {"sdtype": "numerical", "computer_representation": "UInt8"},
        "checkin": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
        "paid": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S"},
        "address": {"sdtype": "address", "pii": True},
        "ssn": {"sdtype": "ssn"},
        "odd": {"sdtype": "unknown", "pii": False},
    },
}
EXPECTED = {
    "guest_email": Key(pattern="user{:08d}@example.com"),
    "guest": Key(pattern="G-{:06d}"),
    "ref": Key(),
    "room": Categorical(nullable=True),
    "rewards": Boolean(nullable=True),
    "amount": Real(nullable=True),
    "rate": Real(nullable=True),
    "nights": Integer(nullable=True),
    "floor": Integer(nullable=True, dtype="uint8"),
    "checkin": Date(nullable=True),
    "paid": Datetime(nullable=True),
    "address": Key(),
    "ssn": Key(pattern="{:03d}-{:02d}-{:04d}"),
    "odd": Categorical(nullable=True),
}


@pytest.mark.parametrize(
    "metadata",
    [
        {"METADATA_SPEC_VERSION": "SINGLE_TABLE_V1", **TABLE},
        {"METADATA_SPEC_VERSION": "V1", "tables": {"guests": TABLE}, "relationships": []},
        {"METADATA_SPEC_VERSION": "MULTI_TABLE_V1", "tables": {"guests": TABLE}, "relationships": []},
    ],
)
def test_sdv_metadata(metadata):
    schema = schema_from_sdv(metadata)
    assert list(schema) == list(EXPECTED)
    assert dict(schema.attributes) == EXPECTED


@pytest.mark.parametrize(
    ("column", "key"),
    [
        ({"sdtype": "numerical", "computer_representation": "Int32"}, Key(dtype="int32")),
        ({"sdtype": "numerical"}, Key(dtype="int64")),
        ({"sdtype": "categorical"}, Key()),
    ],
)
def test_primary_keys(column, key):
    schema = schema_from_sdv({"primary_key": "a", "columns": {"a": column, "b": {"sdtype": "boolean"}}})
    assert schema["a"] == key


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"tables": {"a": TABLE, "b": TABLE}}, "found 2 tables \\(a, b\\), expected one"),
        ({"tables": {}}, "found 0 tables"),
        ({"tables": [1]}, "expected a mapping"),
        ([1], "expected a mapping"),
        ({"columns": {}}, "found no columns"),
        ({"columns": {"a": {"sdtype": "id"}, "b": {}, "c": 3}}, "columns.b: found no sdtype.*\n.*columns.c: found no"),
    ],
)
def test_other_forms_are_refused(metadata, message):
    with pytest.raises(SchemaError, match=message):
        schema_from_sdv(metadata)


@pytest.mark.parametrize(
    ("regex", "pattern"),
    [
        (r"^C-\d{6}$", "C-{:06d}"),
        (r"\d{3}-\d{2}", "{:03d}-{:02d}"),
        (r"[0-9]", "{:01d}"),
        (r"ID\.\d{4}", "ID.{:04d}"),
        (r"[A-Z]\d", None),
        (r"\d+", None),
        (r"abc", None),
        (r"\d{30}", None),
        ("", None),
    ],
)
def test_patterns_from_regular_expressions(regex, pattern):
    assert pattern_from_regex(regex) == pattern
