"""Schema and constraints of a run, fitted to each other and to the columns of a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from kamino.constraints import Constraints, ValueType
from kamino.engine import trusted_attribute, trusted_schema
from kamino.errors import InputError, SchemaError
from kamino.layout.rule_types import schema_types as schema_types
from kamino.layout.table_layout import Layout
from kamino.pipeline.settings import Settings
from kamino.privacy.private import PrivateTable
from kamino.sampling.feasible.undrawable import refuse_undrawable
from kamino.schema import Attribute, Categorical, Integer, Key, Real, Schema, Source, check_columns, draft_schema

NOTHING: Mapping[str, Sequence[Any]] = MappingProxyType({})


def check_has_columns(private: PrivateTable) -> None:
    """Refuse a table that nothing can be made of. How many rows it has is private and never a reason."""
    if not private.names:
        raise InputError("found a table without columns; expected at least one")


def schema_for(
    private: PrivateTable,
    schema: Schema | None,
    settings: Settings,
    listed: Mapping[str, Sequence[Any]] = NOTHING,
    declared: Mapping[str, Attribute] = MappingProxyType({}),
    *,
    of_cells: Collection[str] = (),
    dated: bool = False,
) -> Schema:
    """The schema of the run: the given one, or one drafted from names and types (and domains, if these are trusted).

    `listed` are domains that the types of columns list themselves, such as that of an ordered category; those
    `of_cells` may have been made from cells, and are taken over because the user calls these public. `declared` are
    attributes of which a database declares more than a type, such as keys. A given schema has the last word, but that
    keys for which it names no type stay whole numbers where the column is one. With `dated`, texts of a trusted table
    may be dates as people write them.

    Guarantees:
        Without `trust_domain`, no value of the table is looked at.  [test_replay_passes_for_synth]
    """
    columns = private.without_rows()
    if schema is None:
        schema = trusted_schema(private, dated=dated) if settings.trust_domain else draft_schema(columns)
        schema = _with_declared(
            _with_listed(schema, listed, of_cells), declared, private, trusted=settings.trust_domain
        )
    elif settings.trust_domain and schema.missing_domains:
        drafted = trusted_schema(private)
        for name in schema.missing_domains:
            if name in drafted and type(drafted[name]) is type(schema[name]):
                schema = schema.with_attribute(name, drafted[name])
            elif name in drafted:  # the schema says otherwise than the name, or than the type of the column
                schema = schema.with_attribute(name, trusted_attribute(private, name, schema[name]))
    else:
        open_ones = [name for name in schema.missing_domains if isinstance(schema[name], Categorical)]
        schema = _with_listed(schema, {name: listed[name] for name in open_ones if name in listed})
    schema = _with_whole_keys(schema, columns.schema)
    check_columns(schema, columns)
    if settings.trust_domain:
        _refuse_too_many_values(schema, columns.schema)
    return schema


def _refuse_too_many_values(schema: Schema, columns: pa.Schema) -> None:
    """Refuse columns of numbers that no trusted range keeps as they are.

    Guarantees:
        Nothing is spent before that is said.  [test_numbers_that_cannot_be_kept_are_refused_before_spending]
    """
    wide = [name for name in schema.missing_domains if _is_number(schema[name], columns.field(name).type)]
    if wide:
        listed = ", ".join(f"'{name}'" for name in wide)
        raise SchemaError(
            f"found {listed} with numbers of which 2^62 or more lie between the smallest and the largest: codes cannot "
            "keep them as they are. Declare in a schema {type: key} (values are made up), {type: categorical} (values "
            "that many rows share), or a range with fewer of them: min and max with a step, or with fewer decimals. "
            "Nothing was spent"
        )


def _is_number(attribute: Attribute, kind: pa.DataType) -> bool:
    return isinstance(attribute, Integer | Real) and bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _with_declared(
    schema: Schema, declared: Mapping[str, Attribute], private: PrivateTable, *, trusted: bool
) -> Schema:
    for name, attribute in declared.items():
        if trusted and not attribute.has_domain:
            attribute = trusted_attribute(private, name, attribute)
        if attribute.has_domain or not trusted:
            schema = schema.with_attribute(name, attribute)
    return schema


def _with_whole_keys(schema: Schema, columns: pa.Schema) -> Schema:
    """The schema with keys as whole numbers where those of the table are, unless it says how they look.

    Guarantees:
        Integer keys stay integers.  [test_integer_keys_stay_integers]
    """
    for name, attribute in schema.attributes.items():
        open_key = isinstance(attribute, Key) and attribute.dtype is None and attribute.pattern is None
        if open_key and name in columns.names and pa.types.is_integer(columns.field(name).type):
            made = Key(**{**attribute.fields(), "dtype": str(columns.field(name).type)})
            schema = schema.with_attribute(name, made)
    return schema


def _with_listed(schema: Schema, listed: Mapping[str, Sequence[Any]], of_cells: Collection[str] = ()) -> Schema:
    """The schema with the domains that types list; they are as public as the types are, or as the cells are called."""
    for name, values in listed.items():
        # Whether there are nulls is known already where the domain was taken from the table.
        nullable = schema[name].nullable
        source = Source.ASSERTED if name in of_cells else Source.DECLARED
        made = Categorical(values=tuple(values), nullable=nullable, source=source)
        schema = schema.with_attribute(name, made)
    return schema


def check_names(constraints: Constraints, names: list[str]) -> None:
    """Refuse constraints on attributes that are not there, whatever the types turn out to be."""
    refuse_undrawable(constraints)
    constraints.bind(dict.fromkeys(names, ValueType.UNKNOWN))


def bind_constraints(constraints: Constraints, schema: Schema) -> Constraints:
    """The constraints, checked against the schema, without those that the layout of the schema keeps by itself."""
    refuse_undrawable(constraints)
    return Layout.of(schema).rules(constraints.bind(schema_types(schema))).drawn


def held_by_keys(constraints: Constraints, schema: Schema) -> Constraints:
    """The constraints that made-up keys satisfy by themselves, and one for each key that the schema declares."""
    return Layout.of(schema).rules(constraints.bind(schema_types(schema))).kept
