"""The schema file: YAML in and out, and the JSON Schema that lets editors complete it."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError

from kamino.errors import SchemaError
from kamino.limits import MAX_ATTRIBUTES, MAX_NAME_CHARS, MAX_UNIT_ROWS
from kamino.schema.attribute import BaseAttribute, Source
from kamino.schema.attributes import Attribute
from kamino.schema.files.messages import explain
from kamino.schema.files.yaml_text import dump_yaml, load_yaml, position_in
from kamino.schema.schema import Schema


class _SchemaFile(BaseModel):
    """A table's attributes, each with its type and domain, and the unit whose privacy is protected."""

    model_config = ConfigDict(extra="forbid", title="Kamino schema", defer_build=True)

    unit: StrictStr | None = Field(
        default=None,
        description="The attribute that tells whose row it is, or row to say that each row is its own unit.",
    )
    max_rows: Annotated[StrictInt, Field(ge=1, le=MAX_UNIT_ROWS)] | None = Field(
        default=None, description="How many rows of one unit are kept."
    )
    attributes: dict[str, Attribute] = Field(description="The columns of the table by name, in order.")


def read_schema(text: str, *, source: str = "") -> Schema:
    """Read the text of a schema file.

    Raises:
        SchemaError: everything that is wrong, one line each, with its place.

    Guarantees:
        A text beyond a limit is refused within seconds.  [test_hostile_schemas_are_refused_at_once]
    """
    name = source or "<schema>"
    content, node = load_yaml(text, source=name)
    if content is None:
        raise SchemaError(f"{name}: found no content, expected `attributes:` and a list of columns")
    _check_names(content, name)
    try:
        file = _SchemaFile.model_validate(content)
    except ValidationError as error:
        lines = explain(error, place=name, position=lambda path: position_in(node, path), fields=_fields_by_kind())
        raise SchemaError(lines) from None
    try:
        return Schema(attributes=file.attributes, unit=file.unit, max_rows=file.max_rows)
    except SchemaError as error:
        raise SchemaError("\n".join(f"{name}: {line}" for line in str(error).splitlines())) from None


def schema_from_mapping(content: Mapping[str, Any]) -> Schema:
    """The schema that a mapping says, as a file has it: attributes by name, or these under `attributes`.

    >>> schema_from_mapping({"age": {"type": "integer", "min": 0, "max": 120}})["age"].max
    120

    Raises:
        SchemaError: everything that is wrong, one line each.
    """
    known = set(_SchemaFile.model_fields)
    whole = dict(content) if "attributes" in content and set(content) <= known else {"attributes": dict(content)}
    try:
        file = _SchemaFile.model_validate(whole)
    except ValidationError as error:
        raise SchemaError(explain(error, place="schema", fields=_fields_by_kind())) from None
    return Schema(attributes=file.attributes, unit=file.unit, max_rows=file.max_rows)


def _check_names(content: Any, name: str) -> None:
    """Refuse more attributes, or longer names, than can be told apart in good time."""
    attributes = content.get("attributes") if isinstance(content, dict) else None
    if not isinstance(attributes, dict):
        return
    if len(attributes) > MAX_ATTRIBUTES:
        raise SchemaError(f"{name}: found {len(attributes)} attributes, expected at most {MAX_ATTRIBUTES}")
    longest = max(map(len, attributes), default=0)
    if longest > MAX_NAME_CHARS:
        raise SchemaError(f"{name}: found a name of {longest} characters, expected at most {MAX_NAME_CHARS}")


def write_schema(schema: Schema) -> str:
    """Return the text of a schema file; fields that are at their defaults are left out."""
    content: dict[str, Any] = {}
    if schema.unit is not None:
        content |= {"unit": schema.unit, **({} if schema.max_rows is None else {"max_rows": schema.max_rows})}
    content["attributes"] = {name: _plain_fields(attribute) for name, attribute in schema.attributes.items()}
    return dump_yaml(content)


def _plain_fields(attribute: BaseAttribute) -> dict[str, Any]:
    fields = attribute.fields()
    implied = Source.DECLARED if attribute.has_domain else Source.PRIVATE
    if fields["source"] is implied:
        del fields["source"]
    # The domain before what all kinds have.
    ordered = sorted(fields, key=lambda name: name in BaseAttribute.model_fields)
    return {"type": getattr(attribute, "type"), **{name: _plain(fields[name]) for name in ordered}}  # noqa: B009


def _plain(value: Any) -> Any:
    match value:
        case tuple():
            return list(value)
        case dt.datetime():
            return value.isoformat()
        case enum.Enum():
            return value.value
        case _:
            return value


def _fields_by_kind() -> dict[str, list[str]]:
    from kamino.schema.attributes import Boolean, Categorical, Date, Datetime, Integer, Key, Real

    kinds: list[type[BaseAttribute]] = [Categorical, Integer, Real, Boolean, Date, Datetime, Key]
    return {
        "": list(_SchemaFile.model_fields),
        **{kind.model_fields["type"].default: ["type", *sorted(set(kind.model_fields) - {"type"})] for kind in kinds},
    }


def schema_of_files() -> dict[str, Any]:
    """Return the JSON Schema of schema files, in which every field is described."""
    result = _SchemaFile.model_json_schema()
    for definition in result["$defs"].values():
        if "type" in definition.get("properties", {}):
            # A default in Python; in a file nothing else tells the kinds apart.
            definition["required"] = ["type", *definition.get("required", [])]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **result}
