"""From schema and constraints to a sampling plan. Reads no table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from kamino.constraints import DenialConstraint
from kamino.constraints.analysis.classify import dependency_of
from kamino.constraints.tree import Kind
from kamino.errors import SamplingError
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.feasible.refusal import refuse_unsatisfiable
from kamino.sampling.intervals.projecting import NO_SUMS, System
from kamino.sampling.intervals.systems import refuse_impossible_sums, system_of
from kamino.sampling.plan.deciding import Rules, decide_step
from kamino.sampling.plan.ordering import order_attributes, order_groups
from kamino.sampling.plan.reference_maps import ReferenceMap, read_reference
from kamino.sampling.plan.sampling_plan import SamplingPlan, Step, StepKind
from kamino.sampling.plan.shapes import order_of, split_implied, without_made_up_keys
from kamino.schema import Codec

References = Mapping[tuple[tuple[str, ...], str], pa.Table]


def build_plan(
    codec: Codec,
    constraints: Iterable[DenialConstraint],
    *,
    num_rows: int | None = None,
    references: References | None = None,
    sequence: Sequence[str] | None = None,
) -> SamplingPlan:
    """Choose the order of attributes and the step of each.

    Args:
        codec: the public domains.
        constraints: bound to the schema; names it does not have are refused.
        num_rows: how many rows will be asked for, if known; what no such table can satisfy is refused.
        references: public maps, by left side and right side of a functional dependency among the constraints.
        sequence: use this order instead of choosing one.

    Raises:
        SamplingError: no table satisfies the constraints (a smallest set that clashes is named), or a reference does
            not fit.

    Guarantees:
        Depends on its arguments only; no table is read.  [test_plan_reads_no_table]
        Equal arguments give equal plans.  [test_plans_are_deterministic]

    >>> from kamino.constraints import Constraints
    >>> from kamino.schema import Boolean, Integer, Schema
    >>> schema = Schema(attributes={"zip": Integer(min=0, max=999), "coast": Boolean()})
    >>> plan = build_plan(Codec(schema), Constraints.parse("zip -> coast"))
    >>> [(step.attribute, step.kind.value) for step in plan.steps]
    [('coast', 'free'), ('zip', 'ownership')]
    """
    return require(codec, constraints, num_rows=num_rows, references=references).arrange(sequence)


@dataclass(frozen=True, kw_only=True, eq=False)
class Requirements:
    """What every plan for some constraints must keep, whatever the order of attributes: not impossible, and bound.

    `checked_rows` is how many rows a table may have without being known to be impossible. `sums` are the linear rules:
    once the order is known, what they ask of its last attributes is carried to the first.
    """

    names: tuple[str, ...]
    rules: Rules
    implied: tuple[DenialConstraint, ...]
    soft: tuple[DenialConstraint, ...]
    references: Mapping[tuple[tuple[str, ...], str], ReferenceMap]
    checked_rows: float
    sums: System

    @property
    def asks_for_an_order(self) -> bool:
        """Whether a hard constraint on pairs makes one order of attributes better than another."""
        return bool(self.rules.pairs)

    @property
    def depend_on_groups(self) -> bool:
        """Whether rows of a group must agree: what they have in common is then better drawn first."""
        return any(self.rules.ids & set(c.attributes) for c in self.rules.pairs)

    @cached_property
    def chains(self) -> tuple[tuple[str, ...], ...]:
        """Attributes that hard constraints on pairs tie together, in the order in which they cost least.

        Whatever comes between them, the steps that keep those constraints are the same. None where a soft constraint
        may end at any of them, and where every attribute is in one chain the order is known.

        Guarantees:
            Any sequence that keeps them has the steps that are planned.  [test_open_steps_are_those_of_every_order]
        """
        return () if self.rules.soft else order_groups(self.names, self.rules)

    def arrange(self, sequence: Sequence[str] | None = None) -> SamplingPlan:
        """Return the plan along `sequence`, or along the order that costs least."""
        order = tuple(sequence) if sequence is not None else order_attributes(self.names, self.rules)
        if sorted(order) != sorted(self.names):
            raise SamplingError("the sequence given must hold each attribute of the schema once, keys left out.")
        rules = self.rules
        guards = self.sums.guards(order)
        if guards:
            rules = replace(rules, checks=tuple(dict.fromkeys((*rules.checks, *guards))))
        steps = tuple(decide_step(name, frozenset(order[:i]), rules)[0] for i, name in enumerate(order))
        return SamplingPlan(
            sequence=order,
            steps=steps,
            implied=self.implied,
            soft=self.soft,
            references=self.references,
            checked_rows=self.checked_rows,
        )

    def open_steps(self) -> tuple[OpenStep, ...]:
        """The steps as far as they are known before the order is: a constraint is kept by the last of its attributes.

        Guarantees:
            Whatever the order, each step keeps what is said here.  [test_open_steps_are_those_of_every_order]
        """
        spoken = (*self.rules.checks, *self.rules.soft)
        among: dict[tuple[str, ...], None] = dict.fromkeys((name,) for name in self.names)
        among |= dict.fromkeys(tuple(n for n in self.names if n in c.attributes) for c in spoken)
        paired = dict(self._chain_steps())
        found = []
        for names in among:
            kept = tuple(c for c in spoken if set(c.attributes) == set(names))
            step = paired.get(names[0]) if len(names) == 1 else None
            own = () if step is None else step.constraints
            kind = _kind_of(kept) if step is None or step.kind is StepKind.FREE else step.kind
            found.append(OpenStep(among=names, constraints=(*own, *kept), kind=kind))
        return tuple(found)

    def _chain_steps(self) -> Iterator[tuple[str, Step]]:
        """The steps of attributes in chains, as far as constraints on pairs go."""
        for chain in self.chains:
            for i, name in enumerate(chain):
                yield name, decide_step(name, frozenset(chain[:i]), self.rules)[0]


@dataclass(frozen=True, kw_only=True)
class OpenStep:
    """Constraints on some attributes, kept where the last of these is drawn, and how."""

    among: tuple[str, ...]
    constraints: tuple[DenialConstraint, ...]
    kind: StepKind


def _kind_of(constraints: Sequence[DenialConstraint]) -> StepKind:
    """How values are drawn as far as checks and soft constraints go."""
    if not constraints:
        return StepKind.FREE
    return StepKind.MASK if all(c.is_hard for c in constraints) else StepKind.INDEXED


def require(
    codec: Codec,
    constraints: Iterable[DenialConstraint],
    *,
    num_rows: int | None = None,
    references: References | None = None,
) -> Requirements:
    """Check what constraints ask for, before any order is chosen; arguments and errors as in `build_plan`."""
    hard, weighted, soft = _by_strength(constraints, codec)
    refuse_impossible_sums(codec, hard)
    checked = refuse_unsatisfiable(Judge(codec), hard, 2 if num_rows is None else num_rows)
    kept, implied = split_implied(hard)
    maps = _read_references(codec, hard, references or {})
    told = tuple(c for c in kept if any(_follows_from(each, c, codec) for each in maps.values()))
    kept, implied = tuple(c for c in kept if c not in told), (*implied, *told)
    rules = Rules(
        pairs=tuple(c for c in kept if not c.is_unary),
        checks=tuple(c for c in kept if c.is_unary),
        soft=(*weighted, *soft),
        sizes={name: codec[name].num_values for name in (*codec.attributes, *codec.groups)},
        fixed=frozenset((frozenset(left), right) for left, right in maps),
        ids=frozenset(codec.groups),
    )
    return Requirements(
        names=tuple(codec.attributes),
        rules=rules,
        implied=implied,
        soft=soft,
        references=maps,
        checked_rows=checked,
        sums=system_of(codec, rules.checks) if any(c.has_terms for c in rules.checks) else NO_SUMS,
    )


def _follows_from(reference: ReferenceMap, constraint: DenialConstraint, codec: Codec) -> bool:
    """Whether a public map of all values of x gives values of y in the order that a constraint asks of x and y.

    Guarantees:
        An order that is not the map's stays to be enforced.  [test_a_map_may_keep_an_order]
    """
    order = order_of(constraint, reference.right)
    if order is None or reference.left != (order.earlier,):
        return False
    left, right = codec[order.earlier], codec[reference.right]
    codes = reference.left_codes[order.earlier]
    if reference.num_entries < left.num_values or not (left.ordered and right.ordered):
        return False
    heights = right.order_keys(reference.right_codes)[np.argsort(left.order_keys(codes), kind="stable")]
    steps = np.diff(heights)
    return bool((steps <= 0).all() if order.falling else (steps >= 0).all())


def plan_for_rows(
    plan: SamplingPlan, codec: Codec, constraints: Iterable[DenialConstraint], num_rows: int
) -> SamplingPlan:
    """Return the plan, made for `constraints`, for a table of `num_rows` rows: the same, if so many are possible.

    Any part of a table that satisfies denial constraints satisfies them, so only more rows than before are checked.

    Raises:
        SamplingError: no table of so many rows satisfies the constraints.
    """
    if num_rows <= plan.checked_rows:
        return plan
    hard, _, _ = _by_strength(constraints, codec)
    return replace(plan, checked_rows=refuse_unsatisfiable(Judge(codec), hard, num_rows))


def _by_strength(
    constraints: Iterable[DenialConstraint], codec: Codec
) -> tuple[list[DenialConstraint], list[DenialConstraint], tuple[DenialConstraint, ...]]:
    hard: list[DenialConstraint] = []
    weighted: list[DenialConstraint] = []
    soft: list[DenialConstraint] = []
    for constraint in constraints:
        for name in constraint.attributes:
            codec.schema[name]
        plain = without_made_up_keys(constraint, codec)
        if plain is None:
            continue
        if plain.is_hard:
            hard.append(plain)
        elif plain.strength.kind is Kind.WEIGHTED:
            weighted.append(plain)
        else:
            soft.append(plain)
    return hard, weighted, tuple(soft)


def _read_references(
    codec: Codec, hard: Sequence[DenialConstraint], references: References
) -> dict[tuple[tuple[str, ...], str], ReferenceMap]:
    known = {(d.left, d.right) for c in hard if (d := dependency_of(c)) is not None}
    maps = {}
    for (left, right), table in references.items():
        if (frozenset(left), right) not in known:
            raise SamplingError(
                f"a reference table was given for {', '.join(left)} -> {right}, which is no hard constraint here; "
                "add the dependency to the constraints, or leave the table out."
            )
        maps[tuple(left), right] = read_reference(codec, tuple(left), right, table)
    return maps
