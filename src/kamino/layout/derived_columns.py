"""Columns that are computed from others: never read, never measured, never drawn, and never wrong.

`total := price * quantity` is such a rule, and so is `check (total = price * quantity)` where no other rule names the
column and no schema declares a domain of it. Numbers are exact: a term that is no decimal of known digits, such as a
quotient, is to be rounded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from kamino.constraints import Constraints, DenialConstraint, print_constraint
from kamino.constraints.binding import bind_derivation
from kamino.constraints.derivation import Derivation, in_order
from kamino.constraints.language.printer import print_derivation
from kamino.constraints.terms.evaluation import evaluate
from kamino.constraints.terms.term import Apply
from kamino.constraints.tree import Column, Operator, TermTest
from kamino.constraints.types import ValueType, ValueTypes
from kamino.errors import ConstraintErrors, InputError, ModelError, SamplingError
from kamino.layout.exact_numbers import exact_type, form_of_attribute, form_of_term
from kamino.layout.recoding import KeepsColumns, Rule, Wanted, facts_of
from kamino.layout.rule_types import schema_types
from kamino.schema import Boolean, Schema


@dataclass(frozen=True, kw_only=True)
class DerivedColumns(KeepsColumns):
    """The columns that are computed, each after those that it is computed from.

    Guarantees:
        They are what they are computed as, to the last digit, in the bytes that are written.
        [test_derived_columns_are_right_in_what_is_written]
        They are not read.  [test_columns_that_are_computed_are_not_read]
    """

    kind: ClassVar[str] = "derived"

    derivations: tuple[Derivation, ...]
    places: Mapping[str, int]
    """Where each stands among the columns that people see."""
    kinds: Mapping[str, str]
    """The Arrow types that the columns came with."""
    inner: Schema | None = field(default=None, compare=False)
    """The schema of what they are computed from, once it is known."""

    @classmethod
    def of_rules(cls, rules: Constraints, columns: pa.Schema, declared: Collection[str]) -> Self | None:
        """What is said to be computed, and checks that say the same of a column of which nothing else is said.

        A column with a declared domain is drawn within it, so that a check on it stays a check.
        """
        told = {each.target: each for each in rules.derivations}
        for rule in rules:
            said = _said_by(rule)
            if said is None or said.target in told or said.target not in columns.names:
                continue
            if said.target in declared:
                continue
            if not any(said.target in each.attributes for each in rules if each is not rule):
                told[said.target] = said
        unknown = [name for name in told if name not in columns.names]
        if unknown:
            raise InputError(f"found no column {unknown[0]!r} to compute; columns: {', '.join(columns.names)}")
        if not told:
            return None
        return cls(
            derivations=in_order(tuple(told.values())),
            places={name: columns.names.index(name) for name in told},
            kinds={name: str(columns.field(name).type) for name in told},
        )

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns that are computed."""
        return tuple(each.target for each in self.derivations)

    def bound(self, schema: Schema) -> Self:
        """The same with typed constants; refuse what is no decimal of known digits."""
        schema = self.schema(schema)
        types, found, errors = dict(schema_types(schema)), [], []
        for each in self.derivations:
            made, kind, wrong = bind_derivation(each, types)
            types[each.target] = kind
            found.append(made)
            errors += wrong
        if errors:
            raise ConstraintErrors(errors)
        step = replace(self, derivations=tuple(found), inner=schema)
        for each in step.derivations:
            step._type_of(each)
        return step

    def schema(self, schema: Schema) -> Schema:
        """The schema without them."""
        kept = {name: each for name, each in schema.attributes.items() if name not in self.targets}
        return Schema(attributes=kept, unit=schema.unit, max_rows=schema.max_rows)

    def seen(self, schema: Schema) -> Schema:
        """The schema with them: whoever asks learns that they may be null and list no values."""
        return Schema(attributes={**schema.attributes, **dict.fromkeys(self.targets, Boolean(nullable=True))})

    def types(self, types: ValueTypes) -> ValueTypes:
        """Those of what they are computed as."""
        found = dict(types)
        for each in self.derivations:
            found[each.target] = bind_derivation(each, found)[1]
        return found

    def rule(self, rule: Rule) -> Rule | None:
        """None for what says how they are computed."""
        said = rule if isinstance(rule, Derivation) else _said_by(rule)
        if said in self.derivations:
            return None
        named = [name for name in _named_by(rule) if name in self.targets]
        if named:
            wanted = next(each for each in self.derivations if each.target == named[0])
            text = print_constraint(rule) if isinstance(rule, DenialConstraint) else print_derivation(rule)
            raise SamplingError(
                f"{rule.place}: {text} names '{named[0]}', which is computed: {print_derivation(wanted)}. "
                "Say it of what it is computed from"
            )
        return rule

    def asking(self) -> Constraints:
        """How each is computed."""
        return Constraints(derivations=self.derivations)

    def promised(self) -> Constraints:
        """A check for each, counted in what is written."""
        checks = (TermTest(each.column, Operator.NE, each.term) for each in self.derivations)
        return Constraints(tuple(DenialConstraint(predicates=(check,)) for check in checks))

    def forward(self, part: pa.Table) -> pa.Table:
        """The rows without them."""
        return part.select([name for name in part.column_names if name not in self.targets])

    def backward(self, part: pa.Table, rng: np.random.Generator, *, first: int = 0) -> pa.Table:
        """The rows with them, where they stood."""
        del rng, first
        columns = {name: part.column(name) for name in part.column_names}
        for each in self.derivations:
            columns[each.target] = _cast(evaluate(each.term, columns), self._type_of(each))
        order = list(part.column_names)
        for name in sorted(self.targets, key=lambda name: self.places[name]):
            order.insert(self.places[name], name)
        return pa.table({name: columns[name] for name in order})

    def condition(self, wanted: Wanted) -> Wanted:
        """The same, but on what is computed there is none."""
        for each in self.derivations:
            if each.target in wanted:
                raise InputError(
                    f"found a condition on {each.target!r}, which is computed: {print_derivation(each)}; "
                    f"expected one on {' or '.join(map(repr, each.reads))}"
                )
        return wanted

    def to_json(self) -> dict[str, Any]:
        """How each is computed, in the language of rules."""
        columns = [
            {"rule": print_derivation(each), "place": self.places[each.target], "type": self.kinds[each.target]}
            for each in self.derivations
        ]
        return {"kind": self.kind, "columns": columns}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], schema: Schema) -> Self:
        """Read what `to_json` wrote."""
        rules: list[Derivation] = []
        places: dict[str, int] = {}
        kinds: dict[str, str] = {}
        for each in facts_of(document, "columns")["columns"]:
            place, kind, read = each["place"], each["type"], Constraints.parse(each["rule"]).derivations
            fits = isinstance(place, int) and place >= 0 and isinstance(kind, str) and len(read) == 1
            if set(each) != {"rule", "place", "type"} or not fits:
                raise ModelError("layout: found a derived column that is none; expected a rule, a place and a type")
            if not set(read[0].reads) <= {*schema.names, *places}:
                raise ModelError("layout: found a derived column that is not computed from others")
            rules += read
            places[read[0].target], kinds[read[0].target] = place, kind
        return cls(derivations=in_order(tuple(rules)), places=places, kinds=kinds)

    def _type_of(self, derivation: Derivation) -> pa.DataType | None:
        """The Arrow type of a computed column, the same for all rows; None for what is no number.

        Raises:
            SamplingError: no type holds it exactly.
        """
        assert self.inner is not None, "types of computed columns follow from a schema"
        forms = {name: form_of_attribute(each) for name, each in self.inner.attributes.items()}
        types = dict(schema_types(self.inner))
        for each in self.derivations:
            forms[each.target] = form_of_term(each.term, forms, types)
            types[each.target] = bind_derivation(each, types)[1]
        if types[derivation.target] is not ValueType.NUMBER:
            return None
        try:
            return exact_type(forms[derivation.target], self.kinds[derivation.target])
        except ValueError as problem:
            raise SamplingError(f"{derivation.place}: {print_derivation(derivation)} {problem}") from None


def _said_by(rule: Rule) -> Derivation | None:
    """What a check says of how a column is computed: `check (total = price * quantity)`."""
    if not isinstance(rule, DenialConstraint) or not rule.is_hard or not rule.is_unary or len(rule.predicates) != 1:
        return None
    (test,) = rule.predicates
    if not isinstance(test, TermTest) or test.op is not Operator.NE:
        return None
    for target, term in ((test.left, test.right), (test.right, test.left)):
        if not isinstance(target, Column) or not isinstance(term, Apply) or not term.columns:
            continue
        if target.name not in {column.name for column in term.columns}:
            return Derivation(target.name, term, place=rule.place)
    return None


def _named_by(rule: Rule) -> Sequence[str]:
    return rule.attributes if isinstance(rule, DenialConstraint) else (rule.target, *rule.reads)


def _cast(values: pa.Array, wanted: pa.DataType | None) -> pa.Array:
    """Numbers as they are written; a double is the nearest to the decimal, which Arrow finds when it reads the text."""
    if wanted is None or values.type == wanted:
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), wanted)
    if pa.types.is_floating(wanted):
        return values.cast(pa.string()).cast(wanted)
    return values.cast(wanted)
