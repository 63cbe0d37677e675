"""What a database declares of a table: types, keys, not-null, enums, checks, comments, references. Never a row of it.

A catalogue is as public as names and types are: the same for every content of the table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from kamino.io.databases.sql import declared_enums, is_table_name, is_url, split_table
from kamino.schema import Attribute, Categorical, Integer, Key, Real, draft_schema
from kamino.schema.dtypes import is_text
from kamino.schema.files.names import key_pattern

_RULES = ("primary", "unique", "checks")
_DECIMAL = re.compile(r"(?:numeric|decimal)\((\d+),\s*(\d+)\)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class DeclaredColumn:
    """A column as the database declares it."""

    name: str
    kind: str
    not_null: bool = False
    comment: str | None = None
    references: str | None = None


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """A table as the database declares it. `primary` is the primary key, `unique` are other keys.

    `checks` are the expressions of its CHECKs, in the words of the dialect.
    """

    dialect: str
    columns: tuple[DeclaredColumn, ...] = ()
    primary: tuple[str, ...] = ()
    unique: tuple[tuple[str, ...], ...] = ()
    enums: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    checks: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> DeclaredColumn:
        return next(each for each in self.columns if each.name == name)

    def __contains__(self, name: str) -> bool:
        return any(each.name == name for each in self.columns)

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """All keys, the primary one first."""
        return tuple(dict.fromkeys(((self.primary,) if self.primary else ()) + self.unique))

    @property
    def not_made_up(self) -> tuple[tuple[str, ...], ...]:
        """The keys of several columns, whose values are not made up: they hold only if a constraint asks for them."""
        return tuple(key for key in self.keys if len(key) > 1)

    def select(self, names: list[str]) -> Catalogue:
        """The same for some of the columns: a key of which one is left out is none."""
        return Catalogue(
            dialect=self.dialect,
            columns=tuple(self[name] for name in names if name in self),
            primary=self.primary if set(self.primary) <= set(names) else (),
            unique=tuple(key for key in self.unique if set(key) <= set(names)),
            enums={name: values for name, values in self.enums.items() if name in names},
            checks=self.checks,
        )


def read_catalogue(source: object, query: str | None) -> Catalogue | None:
    """What a database declares of a table; None for what is no table of a database, such as a SELECT.

    Guarantees:
        What rows there are makes no difference.  [test_a_catalogue_is_read_without_rows]
    """
    if not isinstance(source, str) or not is_url(source):
        return None
    if query is None:
        source, query = split_table(source)
    from kamino.io.registry import database_kind

    kind = database_kind(source)
    if query is None or not is_table_name(query) or kind is None or kind.catalogue is None:
        return None
    enums, found = declared_enums(source, query), kind.catalogue(source, query)
    columns = tuple(DeclaredColumn(**each) for each in found["columns"])
    if not columns:
        return None
    return Catalogue(dialect=kind.name, columns=columns, enums=enums, **{key: found[key] for key in _RULES})


def declared_attributes(catalogue: Catalogue, columns: pa.Schema) -> dict[str, Attribute]:
    """Attributes that a catalogue says more of than the types of columns: keys, references, decimals, comments.

    A column that is a key by itself is made up, of whole numbers where those were whole numbers. So is a uuid. A
    number that refers to another table is a code.

    Guarantees:
        Keys, not-null, enums, comments and references are taken over.  [test_init_takes_over_the_catalogue]
    """
    alone = {key[0] for key in catalogue.keys if len(key) == 1}
    drafted = draft_schema(pa.Table.from_batches([], schema=columns))
    found: dict[str, Attribute] = {}
    for declared in catalogue.columns:
        if declared.name not in columns.names:
            continue
        plain = drafted[declared.name]
        made = _declared(declared, plain, columns.field(declared.name).type, is_key=declared.name in alone)
        values = catalogue.enums.get(declared.name)
        if values is not None and not isinstance(made, Key):
            made = Categorical(values=values, nullable=made.nullable)
        said = _description(declared)
        if said is not None or made != plain:
            found[declared.name] = type(made)(**{**made.fields(), **({"description": said} if said else {})})
    return found


def _declared(declared: DeclaredColumn, plain: Attribute, kind: pa.DataType, *, is_key: bool) -> Attribute:
    holds_keys = bool(pa.types.is_integer(kind) or is_text(kind))
    if declared.kind.lower() == "uuid" or (is_key and holds_keys):
        return Key(dtype=str(kind), pattern=_pattern(declared, kind))
    if declared.references is not None and isinstance(plain, Integer):
        return Categorical(nullable=plain.nullable, dtype=plain.dtype or "int64")
    decimal = _DECIMAL.fullmatch(declared.kind)
    if decimal and isinstance(plain, Real):
        digits, places = (int(part) for part in decimal.groups())
        if 1 <= digits <= 38:
            return Real(nullable=plain.nullable, dtype=f"decimal128({digits}, {places})", decimals=places)
    return plain


def _pattern(declared: DeclaredColumn, kind: pa.DataType) -> str | None:
    if not is_text(kind):
        return None
    return "uuid" if declared.kind.lower() == "uuid" else key_pattern(declared.name)


def _description(declared: DeclaredColumn) -> str | None:
    said = [declared.comment] if declared.comment else []
    if declared.references is not None:
        said.append(f"refers to {declared.references}")
    return "; ".join(said) or None


def with_nulls_as_declared(table: pa.Table, catalogue: Catalogue | None) -> pa.Table:
    """The table with the columns that the database declares NOT NULL declared so: it lets no null in."""
    if catalogue is None:
        return table
    strict = {each.name for each in catalogue.columns if each.not_null}
    fields = [each.with_nullable(each.nullable and each.name not in strict) for each in table.schema]
    # A cell that no column can hold may have been made null: that it is there must not show in a type.
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields))
