"""Dates that are told by their distance from another date: an end by how long after its start it comes.

A hard check `start <= end` names a start and an end, and is then kept by construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa

from kamino.constraints import Constraints, DenialConstraint
from kamino.constraints.tree import Column, Comparison, Operator
from kamino.errors import ModelError
from kamino.layout.recoding import KeepsColumns, Rule, facts_of
from kamino.schema import Codec, Schema
from kamino.schema.coding.differences import Difference, Distance, is_date

# Domains of a start and an end overlap: by this part of what either reaches, at least.
_OVERLAP = 0.5
_BEFORE = {Operator.LE: 0, Operator.LT: 1}


@dataclass(frozen=True, kw_only=True)
class Offsets(KeepsColumns):
    """Dates as their distances from others. Codecs do what `forward` and `backward` do, without values in between.

    Guarantees:
        Codecs and this step give the same codes.  [test_codecs_do_what_recodings_do]
        A table whose distances keep `least` satisfies what is kept.  [test_distances_keep_the_order]
    """

    kind: ClassVar[str] = "offsets"
    by_codec: ClassVar[bool] = True

    whole: Schema
    """The schema with the dates as they are."""
    differences: Mapping[str, Difference]

    @cached_property
    def _plain(self) -> Codec:
        return Codec(self.whole)

    @cached_property
    def _codec(self) -> Codec:
        named = {*self.differences, *(each.base for each in self.differences.values())}
        attributes = {name: each for name, each in self.whole.attributes.items() if name in named}
        return Codec(Schema(attributes=attributes), self.differences)

    def schema(self, schema: Schema) -> Schema:
        """The schema with distances, whole numbers, in the place of the dates."""
        for name in self.differences:
            schema = schema.with_attribute(name, self._codec[name].attribute)
        return schema

    def rule(self, rule: Rule) -> Rule | None:
        """None for an order that distances keep."""
        is_kept = isinstance(rule, DenialConstraint) and kept_by(self.differences, rule, self._plain)
        return None if is_kept else rule

    def columns_for(self, names: Sequence[str]) -> tuple[str, ...]:
        """A date follows from its base as well."""
        bases = [self.differences[name].base for name in names if name in self.differences]
        return tuple(dict.fromkeys([*names, *bases]))

    def forward(self, part: pa.Table) -> pa.Table:
        """The rows with distances; those that their domain does not reach are at its ends."""
        there = set(part.column_names)
        names = tuple(name for name, each in self.differences.items() if {name, each.base} <= there)
        codes = self._codec.encode_some(part, names)
        return _with(part, {name: self._codec[name].decode(codes[name]) for name in names})

    def backward(self, part: pa.Table, rng: np.random.Generator, *, first: int = 0) -> pa.Table:
        """The rows with dates, which keep their order."""
        del rng, first
        codes = {name: self._codec[name].encode(part.column(name)) for name in self._codec.attributes}
        values = self._codec.as_values(codes)
        return _with(part, {name: self._codec.plain[name].decode(values[name]) for name in self.differences})

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": self.kind, "differences": {name: vars(each) for name, each in self.differences.items()}}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], schema: Schema) -> Self:
        """Read what `to_json` wrote."""
        found = {}
        for name, each in facts_of(document, "differences")["differences"].items():
            base, least = each["base"], each["least"]
            if set(each) != {"base", "least"} or not isinstance(base, str) or least not in (None, 0, 1):
                raise ModelError("layout: found an offset that is none; expected a base, and null, 0 or 1 as the least")
            found[name] = Difference(base=base, least=least)
        made = cls(whole=schema, differences=found)
        _ = made._codec  # refuses attributes that are no dates, and circles
        return made


def _with(part: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    for name, column in columns.items():
        part = part.set_column(part.schema.get_field_index(name), name, column)
    return part


def ordered_dates(constraints: Constraints, codec: Codec) -> dict[str, Difference]:
    """Return the dates that hard checks put after others and of which no constraint asks more than distances keep.

    Where a check orders two dates whose domains hardly overlap (a birth and a visit), the distance tells no more than
    the later one does, and both are modelled as they are.

    Guarantees:
        A table whose distances keep `least` satisfies the checks.  [test_distances_keep_the_order]
        Constraints that distances do not keep name no date that is a distance.  [test_distances_keep_what_names_them]
    """
    orders = dict.fromkeys(order for c in constraints if (order := _order_of(c, codec)) is not None)
    # Of several starts, that which comes last tells most, and its own starts come before the end by themselves.
    ranked = sorted(orders, key=lambda order: -len(_before(order[1].base, orders)))
    found: dict[str, Difference] = {}
    for name, difference in ranked:
        if name not in found and not leads_to(name, difference.base, found) and _reaches(codec, name, difference):
            found[name] = difference
    return _without_the_others(found, constraints, codec)


def _without_the_others(
    found: Mapping[str, Difference], constraints: Constraints, codec: Codec
) -> dict[str, Difference]:
    """The dates of which all constraints that name them are kept; those of dates that are left out are not."""
    kept = dict(found)
    while True:
        open_names = {n for c in constraints if not kept_by(kept, c, codec) for n in c.attributes} & set(kept)
        if not open_names:
            return kept
        kept = {name: each for name, each in kept.items() if name not in open_names}


def _before(name: str, orders: Iterable[tuple[str, Difference]]) -> set[str]:
    """The dates that come before one, directly or through others."""
    found: set[str] = set()
    left = [name]
    while left:
        later = left.pop()
        new = {each.base for own, each in orders if own == later} - found
        found |= new
        left += new
    return found


def kept_by(differences: Mapping[str, Difference], constraint: DenialConstraint, codec: Codec) -> bool:
    """Whether distances keep a constraint by themselves: that from one date to the other, or those in between.

    A date in between that may be null keeps nothing, for then what follows is told as if nothing came before.
    """
    pair = _order_of(constraint, codec)
    if pair is None:
        return False
    name, wanted = pair
    last, least = name, 0
    for _ in range(len(differences)):
        step = differences.get(last)
        if step is None or step.least is None:
            return False
        last, least = step.base, max(least, step.least)
        if last == wanted.base:
            return wanted.least is not None and least >= wanted.least
        if last not in codec.plain or codec.plain[last].null_code is not None:
            return False
    return False


def _order_of(constraint: DenialConstraint, codec: Codec) -> tuple[str, Difference] | None:
    """Read `check (a <= b)` or `check (a < b)` on two dates: b, and its difference from a."""
    if not constraint.is_hard or not constraint.is_unary or len(constraint.predicates) != 1:
        return None
    (predicate,) = constraint.predicates
    if not isinstance(predicate, Comparison) or not isinstance(predicate.right, Column):
        return None
    left, right = predicate.left.name, predicate.right.name
    # The denial of `a <= b` is `a > b`.
    allowed = predicate.op.negated
    if allowed in (Operator.GE, Operator.GT):
        left, right, allowed = right, left, allowed.mirrored
    if left == right or allowed not in _BEFORE or not all(is_date(codec[name]) for name in (left, right)):
        return None
    return right, Difference(base=left, least=_BEFORE[allowed])


def _reaches(codec: Codec, name: str, difference: Difference) -> bool:
    """Whether the domains of start and end overlap well, and no start lies after all ends unless these may be null."""
    distance: Distance = codec.distance(name, difference)
    own = codec.plain[name]
    last = own.num_values - 1
    first, end = distance.first_place, distance.last_place
    both = min(end, last) - max(first, 0)
    either = max(end, last) - min(first, 0)
    return both >= _OVERLAP * either and (end <= last or own.null_code is not None)


def leads_to(name: str, base: str, found: Mapping[str, Difference]) -> bool:
    """Whether following bases from `base` comes to `name`."""
    while base in found:
        base = found[base].base
        if base == name:
            return True
    return base == name
