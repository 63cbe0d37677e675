"""What a plan cannot promise of its soft constraints, said in lines for the user before anything is spent."""

from __future__ import annotations

from kamino.constraints import DenialConstraint, print_constraint
from kamino.constraints.language.printer import print_name
from kamino.constraints.tree import Comparison, Operator
from kamino.sampling.plan.sampling_plan import SamplingPlan
from kamino.sampling.steps.blocks import LISTED_UNORDERED
from kamino.schema import Codec


def soft_notes(plan: SamplingPlan, codec: Codec) -> tuple[str, ...]:
    """Return a line for each soft constraint whose rate may come out other than measured, and why.

    Depends on the plan and the public domains only.

    Guarantees:
        Every soft constraint that no step weighs has a line.  [test_notes_name_what_is_not_weighed]
    """
    notes = [
        f"{print_constraint(c)}: not weighed, for hard constraints decide {print_name(_last(plan, c))}; "
        "it is violated as often as the model and these make it"
        for c in plan.untreated
    ]
    for step in plan.steps:
        size = codec[step.attribute].size
        for constraint in step.soft:
            if size > LISTED_UNORDERED and _asks_for_one_value(constraint, step.attribute):
                notes.append(
                    f"{print_constraint(constraint)}: {print_name(step.attribute)} has {size} values, of which a row "
                    "tries a few; a rate far below the model's own may not be reached"
                )
    return tuple(notes)


def _last(plan: SamplingPlan, constraint: DenialConstraint) -> str:
    return max(constraint.attributes, key=plan.sequence.index)


def _asks_for_one_value(constraint: DenialConstraint, attribute: str) -> bool:
    """Whether a row keeps the constraint with one value only, as in a dependency: a few draws rarely have it."""
    return any(
        isinstance(p, Comparison) and p.op is Operator.NE and attribute in (p.left.name, getattr(p.right, "name", ""))
        for p in constraint.predicates
    )
