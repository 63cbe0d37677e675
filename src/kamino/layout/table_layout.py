"""A layout: the recodings between the tables that people see and the one table that a model sees, in their order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from kamino.constraints import Constraints, DenialConstraint
from kamino.constraints.derivation import Derivation
from kamino.constraints.types import ValueTypes
from kamino.errors import ModelError
from kamino.layout.derived_columns import DerivedColumns
from kamino.layout.made_up_keys import MadeUpKeys
from kamino.layout.offsets import Offsets
from kamino.layout.recoding import Recoding, Rule, SplitRules, Wanted, joined
from kamino.layout.repeating_ids import RepeatingIds
from kamino.layout.rule_types import schema_types
from kamino.schema import Codec, CodedTable, Schema
from kamino.schema.coding.differences import Difference

_NONE: Mapping[str, Difference] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True)
class Layout:
    r"""The tables that people see, and the steps to the one table that a model sees. Holds public facts only.

    Whether a rule is kept by how a table is represented is decided here, and nowhere else.

    >>> from kamino.schema import Integer, Key
    >>> layout = Layout.of(Schema(attributes={"id": Key(), "age": Integer(min=0, max=99)}))
    >>> rules = layout.rules(Constraints.parse("key (id)\ncheck (age > 17)"))
    >>> print(rules.drawn, rules.kept, layout.inner.names)
    check (age > 17) key (id) ('age',)

    Guarantees:
        Every step keeps its laws.  [test_what_comes_back_keeps_what_is_kept]
        Written as JSON and read again, it is the same.  [test_layouts_are_read_as_they_were_written]
    """

    schema: Schema
    """The schema of the tables, without columns that steps at their beginning leave out."""
    recodings: tuple[Recoding, ...]

    @staticmethod
    def of(schema: Schema, *, differences: Mapping[str, Difference] = _NONE, outer: Sequence[Recoding] = ()) -> Layout:
        """The layout of tables of a schema, with some dates told by their distance from others.

        `outer` are the steps that rules ask for, which come first: see `outer_steps`.
        """
        found: list[Recoding] = [each.bound(schema) for each in outer]
        found += [MadeUpKeys(whole=schema), RepeatingIds(names=schema.group_names)]
        if differences:
            found.append(Offsets(whole=schema, differences=dict(differences)))
        return Layout(schema=schema, recodings=tuple(found))

    def with_differences(self, differences: Mapping[str, Difference]) -> Layout:
        """The same with other dates told by their distance from others."""
        others = tuple(each for each in self.recodings if not isinstance(each, Offsets))
        offsets = (Offsets(whole=self.schema, differences=dict(differences)),) if differences else ()
        return replace(self, recodings=(*others, *offsets))

    @property
    def differences(self) -> Mapping[str, Difference]:
        """The dates that are told by their distance from others."""
        found = (each.differences for each in self.recodings if isinstance(each, Offsets))
        return next(found, _NONE)

    @cached_property
    def inner(self) -> Schema:
        """The schema of the table that a model sees."""
        schema = self.schema
        for each in self.recodings:
            schema = each.schema(schema)
        return schema

    @cached_property
    def codec(self) -> Codec:
        """Values of the table to codes and back, in one go with the steps that codecs do by themselves."""
        schema = self.schema
        for each in self.by_values:
            schema = each.schema(schema)
        return Codec(schema, self.differences)

    @property
    def by_values(self) -> tuple[Recoding, ...]:
        """The steps that codecs do not do by themselves: what a schema alone does not tell of tables."""
        return tuple(each for each in self.recodings if not each.by_codec)

    @property
    def seen(self) -> Schema:
        """The schema of all columns that people see; those that are computed have no domain."""
        schema = self.schema
        for each in reversed(self.by_values):
            schema = each.seen(schema)
        return schema

    @property
    def types(self) -> ValueTypes:
        """How values of all columns that people see compare."""
        types: ValueTypes = schema_types(self.schema)
        for each in reversed(self.recodings):
            types = each.types(types)
        return types

    @property
    def asking(self) -> Constraints:
        """The rules that ask for steps of this layout."""
        return joined(*(each.asking() for each in self.recodings))

    def rules(self, rules: Constraints) -> SplitRules:
        """Split rules into those that rows must be drawn for, as they are after all steps, and those that are kept.

        Raises:
            SamplingError: a rule asks for what a step cannot give.
        """
        promised = [rule for each in self.recodings for rule in each.promised()]
        kept = [rule for rule in rules if _after(rule, self.recodings) is None]
        return SplitRules(
            drawn=left_by(rules, self.recodings), kept=Constraints(tuple(dict.fromkeys([*kept, *promised])))
        )

    def forward(self, part: pa.Table) -> pa.Table:
        """Bring rows to the table that a model sees."""
        for each in self.recodings:
            part = each.forward(part)
        return part

    def backward(self, part: pa.Table, rng: np.random.Generator, *, first: int = 0) -> pa.Table:
        """Bring rows back; `first` of them came before this part."""
        for each in reversed(self.recodings):
            part = each.backward(part, rng, first=first)
        return part

    def columns_for(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns that people see which some columns of the model follow from."""
        wanted = tuple(names)
        for each in reversed(self.recodings):
            wanted = each.columns_for(wanted)
        return wanted

    def condition(self, wanted: Wanted) -> Wanted:
        """A condition as it is after all steps that change values."""
        for each in self.by_values:
            wanted = each.condition(wanted)
        return wanted

    def decode(self, coded: CodedTable, rng: np.random.Generator, *, first: int = 0) -> pa.Table:
        """The table that people see of codes; `first` rows came before."""
        part = self.codec.decode(coded, first_key=first + 1)
        for each in reversed(self.by_values):
            part = each.backward(part, rng, first=first)
        return part

    def to_json(self) -> list[dict[str, Any]]:
        """The steps as plain data; the schema is written elsewhere."""
        return [each.to_json() for each in self.recodings]

    @staticmethod
    def from_json(document: Sequence[Mapping[str, Any]], schema: Schema) -> Layout:
        """Read what `to_json` wrote, for the schema that it was written beside.

        Raises:
            ModelError: a kind is not known.
        """
        recodings: list[Recoding] = []
        for each in document:
            if not isinstance(each, Mapping) or each.get("kind") not in KINDS:
                raise ModelError(f"layout: found a step of no known kind; expected one of {', '.join(KINDS)}")
            recodings.append(KINDS[each["kind"]].from_json(each, schema))
        return Layout(schema=schema, recodings=tuple(each.bound(schema) for each in recodings))


def left_by(rules: Constraints, steps: Sequence[Recoding]) -> Constraints:
    """The rules that steps do not keep, as they are after them."""
    constraints = (_after(rule, steps) for rule in rules)
    derivations = (_after(rule, steps) for rule in rules.derivations)
    return Constraints(
        tuple(each for each in constraints if isinstance(each, DenialConstraint)),
        tuple(each for each in derivations if isinstance(each, Derivation)),
        rules.group_rules,
    )


def _after(rule: Rule, steps: Sequence[Recoding]) -> Rule | None:
    current: Rule | None = rule
    for each in steps:
        if current is not None:
            current = each.rule(current)
    return current


def outer_steps(rules: Constraints, columns: pa.Schema, declared: Collection[str] = ()) -> tuple[Recoding, ...]:
    """The steps that rules on a table of these columns ask for; a schema declares domains of those `declared`."""
    found = (kind.of_rules(rules, columns, declared) for kind in KINDS.values())
    return tuple(each for each in found if each is not None)


#: The kinds of steps, by the name that they have in JSON: a new one is entered here.
KINDS: Mapping[str, type[Recoding]] = MappingProxyType(
    {each.kind: each for each in (DerivedColumns, MadeUpKeys, RepeatingIds, Offsets)}
)
