"""Keys: values that carry no data are left out of the model and made up anew, all different."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from kamino.constraints import Constraints, DenialConstraint
from kamino.constraints.language.printer import print_name
from kamino.constraints.tree import Comparison, NullTest, Operator, is_cross
from kamino.errors import InputError, SamplingError
from kamino.layout.recoding import KeepsColumns, Rule, Wanted, facts_of
from kamino.layout.rule_types import schema_types
from kamino.schema import Key, Schema, make_keys
from kamino.schema.keys import places_of


@dataclass(frozen=True, kw_only=True)
class MadeUpKeys(KeepsColumns):
    """The keys of a schema that are different in all rows, and those that repeat, which are never null either.

    Guarantees:
        Two key columns never get the same values.  [test_two_keys_never_get_the_same_values]
    """

    kind: ClassVar[str] = "keys"
    by_codec: ClassVar[bool] = True

    whole: Schema
    """The schema with its keys."""

    @property
    def names(self) -> tuple[str, ...]:
        """The keys that are different in all rows."""
        return tuple(name for name, each in self._keys.items() if not each.repeats)

    @property
    def _keys(self) -> Mapping[str, Key]:
        return {name: each for name, each in self.whole.attributes.items() if isinstance(each, Key)}

    def schema(self, schema: Schema) -> Schema:
        """The schema without the keys."""
        attributes = {name: each for name, each in schema.attributes.items() if name not in self.names}
        unit = schema.unit if schema.unit in attributes or schema.unit == "row" else None
        return Schema(attributes=attributes, unit=unit, max_rows=schema.max_rows if unit is not None else None)

    def rule(self, rule: Rule) -> Rule | None:
        """None where rows cannot violate it, because it asks for two equal keys, or a null one."""
        if not isinstance(rule, DenialConstraint):
            return rule
        if self.keeps(rule):
            return None
        for name in rule.attributes:
            if name in self.names:
                raise SamplingError(
                    f"{rule.place}: '{name}' is a key, whose values are made up; expected it only in a "
                    "constraint that asks for equal keys. Declare it as another type to compare its values."
                )
        return rule

    def keeps(self, rule: DenialConstraint) -> bool:
        """Whether rows cannot violate a rule, because it asks for two equal keys, or a null one."""
        return any(
            isinstance(p, NullTest) and not p.negated and p.column.name in self._keys for p in rule.predicates
        ) or any(
            isinstance(p, Comparison)
            and is_cross(p)
            and p.op is Operator.EQ
            and {column.name for column in p.columns} == {p.left.name}
            and p.left.name in self.names
            for p in rule.predicates
        )

    def promised(self) -> Constraints:
        """A key for each of them."""
        text = "\n".join(f"key ({print_name(name)})" for name in self.names)
        return Constraints.parse(text, types=schema_types(self.whole))

    def columns_for(self, names: Sequence[str]) -> tuple[str, ...]:
        """The same: nothing follows from a key."""
        return tuple(names)

    def forward(self, part: pa.Table) -> pa.Table:
        """The rows without the keys."""
        return part.select([name for name in part.column_names if name not in self.names])

    def backward(self, part: pa.Table, rng: np.random.Generator, *, first: int = 0) -> pa.Table:
        """The rows with keys, numbered after those of the rows before."""
        del rng
        places, made = places_of(self.whole.attributes), {}
        for name in self.names:
            place, among = places[name]
            made[name] = make_keys(self._keys[name], part.num_rows, start=first + 1, place=place, among=among)
        columns = {name: part.column(name) for name in part.column_names}
        ordered = [name for name in self.whole if name in made or name in columns]
        return pa.table({name: made[name] if name in made else columns[name] for name in ordered})

    def condition(self, wanted: Wanted) -> Wanted:
        """The same, but on keys there is none."""
        for name in wanted:
            if name in self._keys:
                raise InputError(
                    f"found a condition on {name!r}, whose values are made up; expected one on another column"
                )
        return wanted

    def to_json(self) -> dict[str, Any]:
        """The schema tells everything."""
        return {"kind": self.kind}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], schema: Schema) -> Self:
        """Read what `to_json` wrote."""
        facts_of(document)
        return cls(whole=schema)
