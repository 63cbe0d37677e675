from __future__ import annotations

import datetime as dt
import json
from types import SimpleNamespace

import pytest
import yaml

from kamino.errors import SchemaError
from kamino.schema import Boolean, Categorical, Date, Datetime, Integer, Key, Real, schema_from_pandera

# As written by pandera 0.35.
FLAT = r"""
schema_type: dataframe
api: pandas
columns:
  age:
    dtype: int64
    in_range:
      min_value: 0
      max_value: 120
      include_min: true
      include_max: false
  state:
    dtype: string[python]
    nullable: true
    isin:
    - AL
    - 'NO'
  level: {dtype: int64, isin: [1, 2]}
  rate:
    dtype: float64
    greater_than_or_equal_to: 0
    less_than_or_equal_to: 10.5
  code:
    dtype: string[python]
    unique: true
    str_matches: ^C\d{4}$
  number: {dtype: int32, unique: true}
  when:
    dtype: datetime64[ns]
    in_range:
      min_value: '2020-01-01 00:00:00'
      max_value: '2021-01-01 00:00:00'
  zoned: {dtype: 'datetime64[ns, UTC]'}
  ok: {dtype: bool}
  kind: {dtype: category}
  small: {dtype: Int8, nullable: true, greater_than: 0, less_than: 5}
  half: {dtype: int64, greater_than_or_equal_to: 3}
  only: {dtype: 'string[python]', equal_to: x}
  day: {dtype: date, in_range: {min_value: 2020-01-01, max_value: 2020-02-01}}
  any: {}
unique:
- code
"""
EXPECTED = {
    "age": Integer(min=0, max=119),
    "state": Categorical(values=["AL", "NO"], nullable=True),
    "level": Categorical(values=[1, 2]),
    "rate": Real(min=0, max=10.5),
    "code": Key(pattern="C{:04d}"),
    "number": Key(dtype="int32"),
    "when": Datetime(min=dt.datetime(2020, 1, 1), max=dt.datetime(2021, 1, 1)),
    "zoned": Datetime(timezone="UTC"),
    "ok": Boolean(),
    "kind": Categorical(),
    "small": Integer(min=1, max=4, nullable=True, dtype="int8"),
    "half": Integer(),
    "only": Categorical(values=["x"]),
    "day": Date(min=dt.date(2020, 1, 1), max=dt.date(2020, 2, 1)),
    "any": Categorical(),
}


def _older(columns: dict, *, listed: bool) -> dict:
    """Put the checks of each column under `checks`, as older versions of pandera did."""
    result = {}
    for name, column in columns.items():
        facts = {key: value for key, value in column.items() if key in ("dtype", "nullable", "unique")}
        checks = {key: value for key, value in column.items() if key not in facts}
        if listed:
            given = {key: value if isinstance(value, dict) else {"value": value} for key, value in checks.items()}
            result[name] = facts | {"checks": [{**each, "options": {"check_name": key}} for key, each in given.items()]}
        else:
            result[name] = facts | {"checks": checks or None, "title": None, "coerce": False, "required": True}
    return result


def test_yaml_json_and_mappings():
    mapping = yaml.safe_load(FLAT)
    for form in (FLAT, mapping, json.dumps(mapping, default=str)):
        assert dict(schema_from_pandera(form).attributes) == EXPECTED


@pytest.mark.parametrize("listed", [True, False])
def test_older_layouts(listed):
    columns = _older(yaml.safe_load(FLAT)["columns"], listed=listed)
    assert dict(schema_from_pandera({"columns": columns}).attributes) == EXPECTED


def test_objects_are_asked_for_what_they_have():
    """Objects of pandera's shape: it need not be installed."""

    def column(dtype, *checks, nullable=False, unique=False):
        named = [SimpleNamespace(name=name, statistics=statistics) for name, statistics in checks]
        return SimpleNamespace(dtype=dtype, checks=named, nullable=nullable, unique=unique)

    schema = SimpleNamespace(
        columns={
            "age": column("int64", ("in_range", {"min_value": 0, "max_value": 9, "include_max": False})),
            "state": column("str", ("isin", {"allowed_values": ["a", "b"]}), nullable=True),
            "rate": column("float64", ("greater_than_or_equal_to", {"min_value": 0}), ("less_than", {"max_value": 1})),
            "code": column("str", ("str_matches", {"pattern": r"\d{3}"}), unique=True),
        }
    )
    assert dict(schema_from_pandera(schema).attributes) == {
        "age": Integer(min=0, max=8),
        "state": Categorical(values=["a", "b"], nullable=True),
        "rate": Real(min=0, max=0.999999),
        "code": Key(pattern="{:03d}"),
    }


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("columns: 3", "expected a mapping `columns`"),
        ("", "found NoneType, expected a DataFrameSchema"),
        ({"columns": {}}, "found no columns"),
        (7, "found int, expected a DataFrameSchema"),
        ({"columns": {"a": {"dtype": "int64", "in_range": {"min_value": 5, "max_value": 1}}}}, "columns.a: .*exchange"),
        ({"columns": {"a": {"dtype": "int64", "ge": "x", "le": 3}}}, "columns.a: invalid literal"),
    ],
)
def test_other_forms_are_refused(form, message):
    with pytest.raises(SchemaError, match=message):
        schema_from_pandera(form)
