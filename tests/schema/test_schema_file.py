from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.schema.strategies import NAMES, TEXT, schemas
from tests.trying import examples

from kamino.errors import SchemaError
from kamino.schema import Boolean, Categorical, Integer, Key, Real, Schema, Source
from kamino.schema.files import yaml_text

EXAMPLE = """\
unit: customer_id
max_rows: 3
attributes:
  customer_id: {type: key, pattern: 'C{:06d}'}
  age: {type: integer, min: 0, max: 120}
  state:
    type: categorical
    values: [AL, 'NO', WY]
    other: elsewhere
    nullable: true
  rate: {type: real, min: 0, max: 10.5, decimals: 2}
  paid: {type: boolean, nullable: true}
  born: {type: date, min: 1900-01-01, max: 2020-12-31}
  seen: {type: datetime, min: '2020-01-01T00:00:00+00:00', max: '2021-01-01T00:00:00+00:00', resolution: 0.5,
    timezone: UTC}
  income: {type: integer, dtype: int32}
"""


def test_example_is_written_as_read():
    schema = Schema.from_yaml(EXAMPLE, source="schema.yaml")
    assert schema.to_yaml() == EXAMPLE
    assert schema.unit == "customer_id"
    assert schema.max_rows == 3
    assert schema.missing_domains == ("income",)
    assert schema.data_names == schema.names[1:]


@examples(150)
@given(schemas())
def test_yaml_round_trip(schema):
    assert Schema.from_yaml(schema.to_yaml()) == schema


@examples(200)
@given(st.lists(TEXT, unique=True, min_size=1), NAMES)
def test_any_text_can_be_a_value_or_a_name(values, name):
    schema = Schema(attributes={name: Categorical(values=values)})
    assert Schema.from_yaml(schema.to_yaml()) == schema


def test_yaml_reads_what_people_mean():
    text = (
        "attributes:\n  no: {type: categorical, values: [no, yes, 12:30, 010, 2020-01-01, 0x1f]}\n  1: {type: boolean}"
    )
    schema = Schema.from_yaml(text + "\n  r: {type: real, min: -1e1, max: +1.50, decimals: 2}")
    assert schema.names == ("no", "1", "r")
    assert schema["no"].values == ("no", "yes", "12:30", "010", "2020-01-01", "0x1f")
    assert str(schema["r"].max) == "1.50"
    tricky = Categorical(values=["1e3", ".5", "1.", "null", "~", "", "true", "0", "+1", ".inf", "NO", "=", "<<"])
    schema = Schema(attributes={"a": tricky})
    assert Schema.from_yaml(schema.to_yaml()) == schema


def test_every_mistake_is_named_at_once():
    text = """\
unit: 5
attributes:
  age: {type: integer, min: abc, maxx: 120}
  state: {type: catgorical}
  x: {min: 1}
  r: {type: real, min: 0.125, max: 1, decimals: 2}
  d:
    type: date
    min: hello
    max: 2020-01-01
    source: guessed
  i: 5
"""
    with pytest.raises(SchemaError) as caught:
        Schema.from_yaml(text, source="schema.yaml")
    kinds = "categorical, integer, real, boolean, date, datetime, key"
    assert str(caught.value).splitlines() == [
        "schema.yaml:1:7: unit: found 5, expected text (in quotes, if it looks like a number)",
        "schema.yaml:3:29: attributes.age.min: found 'abc', expected an integer",
        "schema.yaml:3:40: attributes.age.maxx: is no known field. Did you mean 'max'? "
        "Fields: type, description, dtype, max, min, nullable, nulls, source, step, written.",
        f"schema.yaml:4:10: attributes.state: type: found 'catgorical', expected one of {kinds}. "
        "Did you mean 'categorical'?",
        f"schema.yaml:5:6: attributes.x: type is missing, expected one of {kinds}",
        "schema.yaml:6:6: attributes.r: found min 0.125, expected a number with at most 2 decimals: use 0.12, "
        "or more decimals",
        "schema.yaml:11:13: attributes.d.source: found 'guessed', expected 'declared', 'asserted' or 'private'",
        "schema.yaml:9:10: attributes.d.min: found 'hello', expected a date such as 2020-12-31",
        "schema.yaml:12:6: attributes.i: found 5, expected a mapping",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "s.yaml: found no content, expected `attributes:` and a list of columns"),
        ("attributes: [1", "s.yaml:1:15: expected ',' or ']', but got '<stream end>': expected YAML"),
        ("attributes:\n  a: {type: key}\n  a: {type: key}", "s.yaml:3:3: found 'a' for the second time: expected YAML"),
        ("attributes: {}", "s.yaml: attributes: found none, expected at least one"),
        ("- 3", "s.yaml:1:1: found [3], expected a mapping"),
        ("attribute: {}", "s.yaml:1:1: attributes: is missing"),
        ("attributes: {a: {type: key}}\nunit: b\nmax_rows: 2", "s.yaml: unit: attribute 'b' is not in the schema."),
        ("attributes: {a: {type: key}}\nunit: a", "s.yaml: unit: found without max_rows: say how many rows"),
        ("attributes: {a: {type: key}}\nmax_rows: 2", "s.yaml: max_rows: found without unit"),
        (
            "attributes: {a: {type: key}}\nunit: a\nmax_rows: 0",
            "s.yaml:3:11: max_rows: found 0, expected input should be",
        ),
        (
            "attributes: {a: {type: real, min: .nan, max: 1}}",
            "s.yaml:1:35: attributes.a.min: found NaN, expected a finite",
        ),
        ("attributes: {a: \x07}", "s.yaml: unacceptable character #x0007"),
    ],
)
def test_broken_files(text, message):
    with pytest.raises(SchemaError) as caught:
        Schema.from_yaml(text, source="s.yaml")
    assert str(caught.value).startswith(message)


def test_lookup_suggests():
    schema = Schema(attributes={"age": Integer(), "zip": Categorical()})
    with pytest.raises(SchemaError) as caught:
        schema["Zpi"]
    assert str(caught.value) == "attribute 'Zpi' is not in the schema. Did you mean 'zip'? Attributes: age, zip."
    assert "age" in schema
    assert list(schema) == ["age", "zip"]
    assert len(schema) == 2


def test_equality_heeds_order():
    one, other = Integer(), Boolean()
    schema = Schema(attributes={"a": one, "b": other})
    assert schema == Schema(attributes={"a": one, "b": other})
    assert hash(schema) == hash(Schema(attributes={"a": one, "b": other}))
    assert schema != Schema(attributes={"b": other, "a": one})
    assert schema != Schema(attributes={"a": one, "b": other}, unit="a", max_rows=1)
    with pytest.raises(TypeError):
        schema.attributes["c"] = one


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"attributes": {"a": 3}}, "attributes.a: found int, expected an attribute"),
        ({"attributes": {"": Integer()}}, "found the name ''"),
        ({"attributes": {}}, "found none"),
        ({"attributes": {"a": Key()}, "unit": "a", "max_rows": 0}, "max_rows: found 0"),
    ],
)
def test_schema_invariants(fields, message):
    with pytest.raises(SchemaError, match=message):
        Schema(**fields)


def test_private_and_found_are_told_apart():
    schema = Schema(attributes={"a": Integer(nullable=True), "b": Categorical(), "c": Boolean(), "k": Key()})
    assert schema.missing_domains == ("a", "b")
    found = schema.with_domain("a", min=0, max=7).with_domain("b", values=["x"], other="rest")
    assert found.missing_domains == ()
    assert found.sources == {"a": Source.PRIVATE, "b": Source.PRIVATE, "c": Source.DECLARED}
    assert found["a"].nullable
    assert schema.missing_domains == ("a", "b")
    assert Schema.from_yaml(found.to_yaml()) == found
    with pytest.raises(SchemaError, match="Did you mean 'b'"):
        schema.with_domain("B", values=["x"])
    assert schema.with_attribute("c", Real())["c"] == Real()


def test_json_schema_is_complete():
    document = Schema.json_schema()
    json.dumps(document)
    kinds = {"Categorical", "Integer", "Real", "Boolean", "Date", "Datetime", "Key"}
    assert kinds < set(document["$defs"])
    for name in kinds:
        definition = document["$defs"][name]
        assert definition["additionalProperties"] is False
        assert definition["required"] == ["type"]
        assert definition["description"]
        for field, described in definition["properties"].items():
            assert described.get("description"), f"{name}.{field}"
    assert all(described.get("description") for described in document["properties"].values())
    references = json.dumps(document).split('"#/$defs/')[1:]
    assert {reference.split('"')[0] for reference in references} <= set(document["$defs"])


_PLAIN = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=140)


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")
@examples(300)
@given(st.dictionaries(_PLAIN | TEXT, st.lists(_PLAIN | TEXT, max_size=40) | st.integers() | _PLAIN, max_size=4))
def test_both_emitters_write_the_same(fields):
    content = {"unit": "row", "attributes": fields}
    fast = yaml_text.dump_yaml(content)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(yaml_text, "_FAST", None)
        assert yaml_text.dump_yaml(content) == fast


def _read(text: str) -> object:
    """The content and the places of all nodes, or the error."""
    try:
        content, node = yaml_text.load_yaml(text, source="a file")
    except SchemaError as error:
        return str(error)
    return repr(content), [] if node is None else list(_places(node))


def _places(node: yaml.Node) -> Iterator[tuple[str, int, int]]:
    yield node.tag, node.start_mark.line, node.start_mark.column
    for part in node.value if isinstance(node.value, list) else ():
        for each in part if isinstance(part, tuple) else (part,):
            yield from _places(each)


_VALUES = st.lists(_PLAIN | st.booleans() | st.none() | st.decimals(-9, 9, places=3) | st.integers(), max_size=40)


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")
@examples(300)
@given(
    st.dictionaries(_PLAIN | TEXT, _VALUES | st.dictionaries(_PLAIN, _VALUES, max_size=3) | _PLAIN, max_size=4),
    st.integers(0, 400),
    st.sampled_from(
        ["", "[", "]", "{", ": ", "- ", "? ", "'", '"', "#", "&a ", "*a", "!!int ", "\t", "\n", "%", "|", ","]
    ),
)
def test_both_parsers_read_the_same(fields, place, strange):
    text = yaml_text.dump_yaml({"unit": "row", "attributes": fields})
    for each in (text, text[:place] + strange + text[place:]):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(yaml_text, "_LONG", 0)
            fast = _read(each)
            patched.setattr(yaml_text, "_FAST_LOADER", None)
            assert _read(each) == fast


@pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")
def test_what_was_written_is_read_by_the_fast_parser():
    values = [f"v{number}" for number in range(3_000)] + ["yes", "1.5", "a: b", "it's", "]", "#"]
    content = {"attributes": {"x": {"type": "categorical", "values": values}, "y": {"type": "integer", "min": -3}}}
    text = yaml_text.dump_yaml(content)
    found = yaml_text._load_written(text)
    assert found is not None
    assert found[0] == content
    for other in (
        text.replace("v17,", "v17 ,"),
        text.replace("min: -3", "min: -03"),
        text + "# a remark\n",
        "é" + text,
    ):
        assert yaml_text._load_written(other) is None
    deep = "a: " + "[" * 30_000 + "]" * 30_000
    assert yaml_text._load_written(deep) is None
