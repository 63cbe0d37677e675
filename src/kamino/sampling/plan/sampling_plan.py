"""How rows are drawn, as data: the sequence of attributes and one step for each."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kamino.constraints import DenialConstraint, print_constraint
from kamino.constraints.analysis.classify import dependency_of
from kamino.errors import SamplingError
from kamino.sampling.plan.reference_maps import ReferenceMap


class StepKind(enum.StrEnum):
    """The ways in which a column is drawn."""

    FREE = "free"
    MASK = "mask"
    LOOKUP = "lookup"
    OWNERSHIP = "ownership"
    CHAIN = "chain"
    UNIQUE = "unique"
    INDEXED = "indexed"


# Steps in which hard constraints tie the rows of a group to each other: what the first row takes decides for all.
OF_GROUPS = frozenset({StepKind.LOOKUP, StepKind.OWNERSHIP, StepKind.CHAIN})


@dataclass(frozen=True, kw_only=True)
class Step:
    """One column: how it is drawn, which constraints that enforces, and why so. Every field may be published.

    `constraints` holds those on pairs of rows and `checks` those on single rows. `soft` are those that are weighed here
    once they have a weight, and that may be violated. `unweighed` are others that end here: the joint draw for the hard
    constraints cannot weigh them, but drawing row by row can.
    """

    attribute: str
    kind: StepKind
    constraints: tuple[DenialConstraint, ...] = ()
    checks: tuple[DenialConstraint, ...] = ()
    soft: tuple[DenialConstraint, ...] = ()
    unweighed: tuple[DenialConstraint, ...] = ()
    reason: str = ""

    @property
    def named(self) -> tuple[DenialConstraint, ...]:
        """All constraints that bear on the step."""
        return (*self.enforced, *self.soft)

    @property
    def enforced(self) -> tuple[DenialConstraint, ...]:
        """All constraints that hold once the step is done."""
        return (*self.constraints, *self.checks)


@dataclass(frozen=True, kw_only=True)
class SamplingPlan:
    """How rows are drawn. Every field may be published.

    `implied` are hard constraints that the others already enforce; `soft` are those whose weight is to be
    found; a step names those that it weighs, and `untreated` are the others: a hard constraint decides their column.
    Tables of up to `checked_rows` rows are not known to be impossible.

    Guarantees:
        The steps follow the sequence, one for each attribute.  [test_plan_invariants]
        Every hard constraint is enforced by a step or implied by others.  [test_every_constraint_has_its_place]
    """

    sequence: tuple[str, ...]
    steps: tuple[Step, ...]
    implied: tuple[DenialConstraint, ...] = ()
    soft: tuple[DenialConstraint, ...] = ()
    references: Mapping[tuple[tuple[str, ...], str], ReferenceMap] = field(default_factory=dict, repr=False)
    checked_rows: float = 0.0

    def __post_init__(self) -> None:
        if tuple(step.attribute for step in self.steps) != self.sequence:
            raise SamplingError("the steps of a plan must follow its sequence, one step for each attribute.")
        if len(set(self.sequence)) != len(self.sequence):
            raise SamplingError("a plan holds an attribute more than once; each is drawn once.")

    @property
    def untreated(self) -> tuple[DenialConstraint, ...]:
        """The soft constraints that no step weighs."""
        weighed = {c for step in self.steps for c in step.soft}
        return tuple(c for c in self.soft if c not in weighed)

    def first(self, num_attributes: int) -> SamplingPlan:
        """Return the plan of the first attributes alone, with the constraints that speak of no others."""
        names = self.sequence[:num_attributes]
        implied = tuple(c for c in self.implied if set(c.attributes) <= set(names))
        steps = self.steps[:num_attributes]
        return SamplingPlan(sequence=names, steps=steps, implied=implied, references=self.references)

    def with_maps(self, maps: Iterable[ReferenceMap]) -> SamplingPlan:
        """Return the plan with maps that were learned of its hard dependencies; those that were given go first."""
        known = {(d.left, d.right) for c in self.hard if (d := dependency_of(c)) is not None}
        found = {(each.left, each.right): each for each in maps if (frozenset(each.left), each.right) in known}
        return replace(self, references={**found, **self.references}) if found else self

    @property
    def hard(self) -> tuple[DenialConstraint, ...]:
        """All hard constraints, those that others imply included."""
        enforced = [c for step in self.steps for c in step.enforced if c.is_hard]
        return (*enforced, *self.implied)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return the plan as rows of a table: attribute, step, constraints, reason."""
        return [
            (step.attribute, step.kind.value, "; ".join(map(print_constraint, step.named)), step.reason)
            for step in self.steps
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data that `json.dumps` takes."""
        return {
            "sequence": list(self.sequence),
            "steps": [
                {
                    "attribute": step.attribute,
                    "kind": step.kind.value,
                    "constraints": [print_constraint(c) for c in step.named],
                    "reason": step.reason,
                }
                for step in self.steps
            ],
            "implied": [print_constraint(c) for c in self.implied],
            "soft": [print_constraint(c) for c in self.soft],
            "untreated": [print_constraint(c) for c in self.untreated],
            "references": [
                {"left": list(left), "right": right, "entries": reference.num_entries}
                for (left, right), reference in self.references.items()
                if not reference.learned  # not known when a run is planned
            ],
        }

    def __str__(self) -> str:
        rows = [("attribute", "step", "constraints", "why"), *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = ["  ".join((*(row[i].ljust(widths[i]) for i in range(3)), row[3])).rstrip() for row in rows]
        return "\n".join(lines)
