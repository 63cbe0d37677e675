"""A recoding: one reversible public step from the tables that people see towards the one table that a model sees.

A kind of column that a model does not take as it is, such as a key, is one recoding in one file: what is left of it for
the model, which rules it keeps by itself, and how its values come back. A layout is a tuple of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import pyarrow as pa

from kamino.constraints import Constraints, DenialConstraint
from kamino.constraints.derivation import Derivation
from kamino.constraints.types import ValueTypes
from kamino.errors import ModelError
from kamino.schema import Schema

Rule = DenialConstraint | Derivation

Wanted = Mapping[str, Any]
"""A condition on the rows to draw: what attributes are to be."""


@dataclass(frozen=True, kw_only=True)
class SplitRules:
    """Rules, split into those that rows must be drawn for and those that the layout keeps by itself."""

    drawn: Constraints = field(default_factory=Constraints)
    kept: Constraints = field(default_factory=Constraints)


def joined(*rules: Constraints) -> Constraints:
    """All rules, each once."""
    return Constraints(
        tuple(dict.fromkeys(rule for each in rules for rule in each)),
        tuple(dict.fromkeys(rule for each in rules for rule in each.derivations)),
        tuple(dict.fromkeys(rule for each in rules for rule in each.group_rules)),
    )


class Recoding(Protocol):
    """One step of a layout. It holds public facts only.

    Guarantees:
        What `backward` gives satisfies what is kept.  [test_what_comes_back_keeps_what_is_kept]
        Rows that satisfy it come back from `forward` unchanged.  [test_rows_that_keep_it_come_back]
        `schema` is what `forward` gives.  [test_the_schema_is_what_forward_gives]
        It can be written as JSON and read again.  [test_recodings_are_read_as_they_were_written]
        Parts are recoded one by one, in memory that they bound.  [test_parts_are_recoded_one_by_one]
    """

    kind: ClassVar[str]
    """Its name in a model file."""
    by_codec: ClassVar[bool]
    """Whether codecs do this step in one go with coding; they give the same."""

    @classmethod
    def of_rules(cls, rules: Constraints, columns: pa.Schema, declared: Collection[str]) -> Self | None:
        """The step that rules on a table of these columns ask for, before anything else is known of it; None if none.

        `declared` are the columns of which a schema declares a domain. Such a step comes before all others: what it
        leaves out is never read.
        """
        ...

    def bound(self, schema: Schema) -> Self:
        """The step, made from rules, once the schema of what `forward` gives is known.

        Raises:
            KaminoError: it cannot be done with these attributes.
        """
        ...

    def schema(self, schema: Schema) -> Schema:
        """The schema of what `forward` gives, for tables of a schema."""
        ...

    def seen(self, schema: Schema) -> Schema:
        """The schema of columns before this step, from that of columns after it; what it computes has no domain."""
        ...

    def types(self, types: ValueTypes) -> ValueTypes:
        """How values of columns before this step compare, from those after it."""
        ...

    def rule(self, rule: Rule) -> Rule | None:
        """The rule as it is after this step; None if it is kept by construction.

        Raises:
            SamplingError: it asks for what this step cannot give.
        """
        ...

    def asking(self) -> Constraints:
        """The rules that ask for this step, where rules do."""
        ...

    def promised(self) -> Constraints:
        """The rules that hold by construction, whether somebody asked for them or not."""
        ...

    def columns_for(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns before this step that some columns after it follow from."""
        ...

    def forward(self, part: pa.Table) -> pa.Table:
        """Bring rows of a part of the table one step towards the model. They are as private as they were."""
        ...

    def backward(self, part: pa.Table, rng: np.random.Generator, *, first: int = 0) -> pa.Table:
        """Bring rows back; `first` of them came before this part."""
        ...

    def condition(self, wanted: Wanted) -> Wanted:
        """A condition as it is after this step.

        Raises:
            InputError: it asks for values that are made up or computed.
        """
        ...

    def to_json(self) -> dict[str, Any]:
        """All facts of the step that the schema does not tell, with its kind, as plain data."""
        ...

    @classmethod
    def from_json(cls, document: Mapping[str, Any], schema: Schema) -> Self:
        """Read what `to_json` wrote, beside the schema; what comes from anybody is checked here.

        Raises:
            ModelError: it is not what this step writes.
        """
        ...


def facts_of(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """The facts of a step in JSON, all of them and no others.

    Raises:
        ModelError: there are others, or one is missing.
    """
    if set(document) != {"kind", *names}:
        raise ModelError(f"layout: found a step with other facts; expected {', '.join(('kind', *names))}")
    return document


class KeepsColumns:
    """What most recodings have in common: they change neither rules, nor columns, nor conditions."""

    by_codec: ClassVar[bool] = False

    @classmethod
    def of_rules(cls, rules: Constraints, columns: pa.Schema, declared: Collection[str]) -> Self | None:
        """None: rules ask for no such step."""
        del rules, columns, declared
        return None

    def bound(self, schema: Schema) -> Self:
        """The same."""
        del schema
        return self

    def schema(self, schema: Schema) -> Schema:
        """The same."""
        return schema

    def seen(self, schema: Schema) -> Schema:
        """The same."""
        return schema

    def types(self, types: ValueTypes) -> ValueTypes:
        """The same."""
        return types

    def rule(self, rule: Rule) -> Rule | None:
        """The same."""
        return rule

    def asking(self) -> Constraints:
        """None."""
        return Constraints()

    def promised(self) -> Constraints:
        """None."""
        return Constraints()

    def columns_for(self, names: Sequence[str]) -> tuple[str, ...]:
        """The same."""
        return tuple(names)

    def forward(self, part: pa.Table) -> pa.Table:
        """The same."""
        return part

    def backward(self, part: pa.Table, rng: np.random.Generator, *, first: int = 0) -> pa.Table:
        """The same."""
        del rng, first
        return part

    def condition(self, wanted: Wanted) -> Wanted:
        """The same."""
        return wanted
