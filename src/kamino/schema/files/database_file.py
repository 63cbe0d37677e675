"""The schema file of a database: `tables:` with attributes, keys and roles, in the YAML of one table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictStr, ValidationError

from kamino.errors import SchemaError
from kamino.schema.attributes import Attribute
from kamino.schema.database import Database, ForeignKey, Role, Table
from kamino.schema.files.messages import explain
from kamino.schema.files.schema_file import _check_names, _fields_by_kind, _plain_fields
from kamino.schema.files.yaml_text import dump_yaml, load_yaml, position_in
from kamino.schema.schema import Schema

_OWNED = re.compile(r"owned by (?P<owner>.+?)(?: via (?P<via>.+))?\Z")
_EXPECTED = "`root`, `public`, `owned by TABLE` or `owned by TABLE via COLUMN, COLUMN`"


def _listed(value: Any) -> Any:
    """A name alone stands for a list of one."""
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[StrictStr, ...], BeforeValidator(_listed)]


class _Reference(BaseModel):
    """Columns that name a row of another table; by its key, unless `to` says by what."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    columns: Names = Field(description="The columns of this table.")
    references: StrictStr = Field(description="The other table.")
    to: Names | None = Field(default=None, description="Its columns; by default its key.")


class _TableFile(BaseModel):
    """One table of a database."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    role: StrictStr = Field(description=f"Whose rows it holds: {_EXPECTED}.")
    key: Names = Field(default=(), description="The columns of which no two rows have the same values.")
    order: Names = Field(default=(), description="The columns by which the rows of one owner follow each other.")
    foreign_keys: tuple[_Reference, ...] = Field(default=(), description="The columns that name rows of other tables.")
    attributes: dict[str, Attribute] | None = Field(
        default=None, description="The columns by name, in order; those of a public table may be left out."
    )


class _DatabaseFile(BaseModel):
    """Several tables and the keys between them."""

    model_config = ConfigDict(extra="forbid", title="Kamino database", defer_build=True)

    tables: dict[str, _TableFile] = Field(description="The tables by name.")


def is_database_text(text: str) -> bool:
    """Whether the text of a schema file is that of a database: it has `tables` at the left margin."""
    return re.search(r"^tables\s*:", text, re.MULTILINE) is not None


def read_database(text: str, *, source: str = "") -> Database:
    """Read the text of the schema file of a database.

    Raises:
        SchemaError: everything that is wrong, one line each.

    Guarantees:
        What it reads is what `write_database` wrote.  [test_databases_are_read_as_written]
    """
    name = source or "<schema>"
    content, node = load_yaml(text, source=name)
    if not isinstance(content, dict) or not isinstance(content.get("tables"), dict):
        raise SchemaError(f"{name}: found no mapping `tables:`, expected the tables of a database by name")
    for table in content["tables"].values():
        _check_names(table, name)
    try:
        file = _DatabaseFile.model_validate(content)
    except ValidationError as error:
        fields = {
            **_fields_by_kind(),
            "": [*_DatabaseFile.model_fields, *_TableFile.model_fields, *_Reference.model_fields],
        }
        lines = explain(error, place=name, position=lambda path: position_in(node, path), fields=fields)
        raise SchemaError(lines) from None
    problems: list[str] = []
    keys = {table: each.key for table, each in file.tables.items()}
    try:
        tables = {table: _table(table, each, keys, problems) for table, each in file.tables.items()}
        if problems:
            raise SchemaError("\n".join(problems))
        return Database(tables=tables)
    except SchemaError as error:
        raise SchemaError("\n".join(f"{name}: {line}" for line in str(error).splitlines())) from None


def _table(name: str, file: _TableFile, keys: Mapping[str, tuple[str, ...]], problems: list[str]) -> Table:
    schema = Schema(attributes=file.attributes) if file.attributes is not None else None
    found = tuple(
        ForeignKey(
            table=name, columns=each.columns, references=each.references, to=each.to or keys.get(each.references, ())
        )
        for each in file.foreign_keys
    )
    problems += [
        f"tables.{name}.foreign_keys: {each}: found no key of {each.references}; give it one, or say `to`"
        for each in found
        if not each.to and each.references in keys
    ]
    role, owner = _role(name, file.role, found, problems)
    return Table(name=name, role=role, schema=schema, key=file.key, foreign_keys=found, owner=owner, order=file.order)


def _role(name: str, text: str, found: tuple[ForeignKey, ...], problems: list[str]) -> tuple[Role, ForeignKey | None]:
    if text in (Role.ROOT, Role.PUBLIC):
        return Role(text), None
    said = _OWNED.match(text)
    if said is None:
        problems.append(f"tables.{name}.role: found {text!r}, expected {_EXPECTED}")
        return Role.PUBLIC, None
    via = tuple(each.strip() for each in said["via"].strip("[] ").split(",")) if said["via"] else None
    fit = [k for k in found if k.references == said["owner"] and (via is None or k.columns == via)]
    if len(fit) > 1:
        ways = " or ".join(f"`owned by {said['owner']} via {', '.join(k.columns)}`" for k in fit)
        problems.append(f"tables.{name}.role: found {len(fit)} foreign keys to {said['owner']}; say {ways}")
    if not fit:
        problems.append(f"tables.{name}.role: found no foreign key to {said['owner']}; add it to foreign_keys")
    return Role.OWNED, fit[0] if fit else None


def write_database(database: Database) -> str:
    """Return the text of the schema file of a database."""
    return dump_yaml({"tables": {name: dict(_fields(each)) for name, each in database.tables.items()}})


def _fields(table: Table) -> Iterator[tuple[str, Any]]:
    owner = table.owner
    yield "role", str(table.role) if owner is None else f"owned by {owner.references} via {', '.join(owner.columns)}"
    if table.key:
        yield "key", list(table.key)
    if table.order:
        yield "order", list(table.order)
    if table.foreign_keys:
        yield (
            "foreign_keys",
            [{"columns": list(k.columns), "references": k.references, "to": list(k.to)} for k in table.foreign_keys],
        )
    if table.schema is not None:
        yield "attributes", {name: _plain_fields(each) for name, each in table.schema.attributes.items()}
