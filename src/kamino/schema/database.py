"""A database: several tables, the keys between them, and whose privacy is promised.

One row of the root with everything that hangs on it is a *family*. Tables that are owned form a tree below the root;
public tables may be named by any of them.

>>> from kamino.schema import Integer, Key
>>> people = Table(name="people", role=Role.ROOT, key=("id",), schema=Schema(attributes={"id": Key(), "n": Integer()}))
>>> Database(tables={"people": people}).root
'people'
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from kamino.errors import SchemaError
from kamino.schema.files.messages import did_you_mean
from kamino.schema.keys import Key
from kamino.schema.schema import Schema


class Role(enum.StrEnum):
    """Whose rows a table holds: those of the unit of privacy, what hangs on them, or nobody's."""

    ROOT = "root"
    OWNED = "owned"
    PUBLIC = "public"


@dataclass(frozen=True, kw_only=True)
class ForeignKey:
    """Columns of a table that name a row of another by the columns `to`."""

    table: str
    columns: tuple[str, ...]
    references: str
    to: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.table}({', '.join(self.columns)}) -> {self.references}({', '.join(self.to)})"


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """One table of a database, as far as it may be publicly known.

    A public table has a schema only where somebody wrote one: its rows say the rest. `owner` is the foreign key by
    which an owned table hangs on another; `order` are the columns by which the rows of one owner follow each other.
    """

    name: str
    role: Role
    schema: Schema | None = None
    key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    owner: ForeignKey | None = None
    order: tuple[str, ...] = ()

    @property
    def known(self) -> Schema:
        """The schema, which every private table has."""
        if self.schema is None:
            raise SchemaError(f"tables.{self.name}: found no attributes, expected them, for the table is private")
        return self.schema


@dataclass(frozen=True, kw_only=True, eq=False)
class Database:
    """The tables of a database by name. Every field may be published.

    Guarantees:
        A private table hangs on the root by exactly one path.  [test_bad_databases_are_refused_in_one_line]
        Nothing about roles is guessed.  [test_bad_databases_are_refused_in_one_line]
    """

    tables: Mapping[str, Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))
        problems = list(_problems(self.tables))
        if problems:
            raise SchemaError("\n".join(problems))

    def __getitem__(self, name: str) -> Table:
        if name not in self.tables:
            raise SchemaError(
                f"found no table {name!r}.{did_you_mean(name, self.tables)} Tables: {', '.join(self.tables)}"
            )
        return self.tables[name]

    @cached_property
    def root(self) -> str:
        """The table of which one row, with everything that hangs on it, is a unit of privacy."""
        return next(name for name, each in self.tables.items() if each.role is Role.ROOT)

    def children(self, name: str) -> tuple[str, ...]:
        """The tables that hang on one directly, in the order of the schema."""
        return tuple(t.name for t in self.tables.values() if t.owner is not None and t.owner.references == name)

    @cached_property
    def private(self) -> tuple[str, ...]:
        """The root and what hangs on it, each after its owner and, of those of one owner, depth first."""

        def below(name: str) -> Iterator[str]:
            yield name
            for child in self.children(name):
                yield from below(child)

        return tuple(below(self.root))

    @property
    def public(self) -> tuple[str, ...]:
        """The public tables."""
        return tuple(name for name, each in self.tables.items() if each.role is Role.PUBLIC)

    def path(self, name: str) -> tuple[str, ...]:
        """The tables from the root to one, both included."""
        owner = self[name].owner
        return (name,) if owner is None else (*self.path(owner.references), name)

    def named_keys(self, name: str) -> tuple[ForeignKey, ...]:
        """The foreign keys of a private table to public ones."""
        return tuple(k for k in self[name].foreign_keys if self[k.references].role is Role.PUBLIC)


def _problems(tables: Mapping[str, Table]) -> Iterator[str]:
    roots = [name for name, each in tables.items() if each.role is Role.ROOT]
    if len(roots) != 1:
        found = f"the roots {', '.join(roots)}" if roots else "no table of role root"
        yield f"tables: found {found}; expected one: the table of which a row, with all that hangs on it, is protected"
        return
    for name, table in tables.items():
        at = f"tables.{name}"
        if table.role is not Role.PUBLIC and table.schema is None:
            yield f"{at}: found no attributes, expected them, for the table is private"
            continue
        yield from _key_problems(at, table)
        for key in table.foreign_keys:
            yield from _reference_problems(at, key, table, tables)
        if table.role is not Role.PUBLIC:
            yield from _owner_problems(at, table, tables)
    yield from _tree_problems(roots[0], tables)


def _key_problems(at: str, table: Table) -> Iterator[str]:
    if table.schema is None:
        return
    for what, names in (("key", table.key), ("order", table.order)):
        for name in names:
            if name not in table.schema:
                yield f"{at}.{what}: {table.schema._unknown(name)}"
    if table.role is Role.PUBLIC:
        return
    used = {*table.key, *(name for key in table.foreign_keys for name in key.columns)}
    for name, attribute in table.schema.attributes.items():
        if isinstance(attribute, Key) and name not in used:
            yield f"{at}.attributes.{name}: found a key that neither `key` nor `foreign_keys` name; add it to one"


def _reference_problems(at: str, key: ForeignKey, table: Table, tables: Mapping[str, Table]) -> Iterator[str]:
    where = f"{at}.foreign_keys: {key}"
    if key.references not in tables:
        yield f"{where}: found no table {key.references!r}.{did_you_mean(key.references, tables)}"
        return
    if not key.columns or len(key.columns) != len(key.to):
        yield f"{where}: found {len(key.columns)} columns for {len(key.to)}; expected as many on both sides"
        return
    to = tables[key.references]
    for side, names in ((table, key.columns), (to, key.to)):
        for name in names:
            if side.schema is not None and name not in side.schema:
                yield f"{where}: {side.name}: {side.schema._unknown(name)}"
    if to.key and set(key.to) != set(to.key):
        yield f"{where}: found columns that are not the key of {to.name}, which is ({', '.join(to.key)})"
    if table.role is Role.PUBLIC and to.role is not Role.PUBLIC:
        yield f"{where}: found a public table that names rows of a private one; say role: owned by {to.name}"


def _owner_problems(at: str, table: Table, tables: Mapping[str, Table]) -> Iterator[str]:
    if table.role is Role.ROOT and table.owner is not None:
        yield f"{at}: found an owner of the root; expected none"
    if table.role is Role.OWNED and table.owner is None:
        yield f"{at}.role: found no foreign key to its owner; add one, or say `owned by TABLE via [columns]`"
    for key in table.foreign_keys:
        if key is table.owner or key.references not in tables or tables[key.references].role is Role.PUBLIC:
            continue
        if key.references == table.name:
            yield f"{at}.foreign_keys: {key}: found a table that names its own rows, which is not supported yet"
        else:
            yield (
                f"{at}.foreign_keys: {key}: found a second private parent; expected one: make {key.references} public, "
                f"or leave the key out of `foreign_keys` and its columns out of the attributes"
            )


def _tree_problems(root: str, tables: Mapping[str, Table]) -> Iterator[str]:
    for name, table in tables.items():
        seen, at = {name}, table
        while at.owner is not None and at.owner.references in tables:
            at = tables[at.owner.references]
            if at.name in seen:
                break
            seen.add(at.name)
        if table.role is Role.OWNED and table.owner is not None and at.name != root:
            yield f"tables.{name}.role: found owners that do not lead to the root {root!r}: {' of '.join(sorted(seen))}"
