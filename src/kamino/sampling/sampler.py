"""Drawing a table by its plan: column after column, then the guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

import numpy as np

from kamino.constraints import DenialConstraint
from kamino.constraints.tree import Kind
from kamino.errors import SamplingError
from kamino.model.protocol import IntArray, TupleModel
from kamino.sampling.choices import make_choices
from kamino.sampling.comparing import Judge
from kamino.sampling.donors import find_donors
from kamino.sampling.modes import Sampling
from kamino.sampling.plan import SamplingPlan, Step, StepKind
from kamino.sampling.repair import repair
from kamino.sampling.steps.blocks import draw_blocks
from kamino.sampling.steps.chain import draw_chain
from kamino.sampling.steps.free import breaks_checks, draw_free
from kamino.sampling.steps.indexed import draw_indexed
from kamino.sampling.steps.lookup import draw_lookup
from kamino.sampling.steps.ownership import draw_ownership
from kamino.sampling.steps.rejecting import draw_rejecting
from kamino.sampling.steps.task import DEAD, DrawColumn, OnSweep, Task
from kamino.sampling.steps.unique import draw_unique
from kamino.schema import Codec

Progress: TypeAlias = Callable[[Step, int, int], None]
Weights: TypeAlias = Mapping[DenialConstraint, float]

# How often each row is drawn again where soft constraints have a weight.
SWEEPS = 4

DRAWERS: Mapping[StepKind, DrawColumn] = {
    StepKind.FREE: draw_free,
    StepKind.MASK: draw_free,
    StepKind.LOOKUP: draw_lookup,
    StepKind.OWNERSHIP: draw_ownership,
    StepKind.CHAIN: draw_chain,
    StepKind.UNIQUE: draw_unique,
    StepKind.INDEXED: draw_indexed,
}


def draw_table(
    plan: SamplingPlan,
    model: TupleModel,
    codec: Codec,
    num_rows: int,
    rng: np.random.Generator,
    *,
    sampling: Sampling = Sampling.CONSTRAINT_AWARE,
    weights: Weights | None = None,
    targets: Weights | None = None,
    sweeps: int = SWEEPS,
    progress: Progress | None = None,
    on_sweep: OnSweep | None = None,
) -> dict[str, IntArray]:
    """Draw `num_rows` rows as codes, one int64 array for each attribute of the plan.

    Args:
        plan: the sequence and steps; the model must be fitted along the same sequence.
        model: gives the distribution of each attribute given earlier ones.
        codec: the public domains.
        num_rows: how many rows.
        rng: the source of randomness.
        sampling: other ways to treat constraints, to compare with; only the default promises anything.
        weights: of the soft constraints (see `price_of`); one without a weight is not heeded.
        targets: violation rates to steer the weights to while drawing, where they are known.
        sweeps: how often each row is drawn again where a soft constraint has a weight.
        progress: called before each step with the step, its place and the number of steps.
        on_sweep: called after each sweep with the attribute, the number of sweeps done, and the violation rates then.

    Raises:
        SamplingError: no table that satisfies the hard constraints exists, or none was found.

    Guarantees:
        With the default, no hard constraint is violated, and there are as many rows as asked.
        [test_random_constraints_hold]
        Without weights, soft constraints change nothing.  [test_weight_zero_changes_nothing]
    """
    if num_rows < 0:
        raise SamplingError(f"found {num_rows} rows to draw; expected zero or more.")
    if num_rows == 0:
        return {name: np.zeros(0, dtype=np.int64) for name in plan.sequence}
    judge = Judge(codec)
    table: dict[str, IntArray] = {}
    for place, step in enumerate(plan.steps):
        if progress is not None:
            progress(step, place, len(plan.steps))
        conditional = model.conditional(step.attribute, table, num_rows)
        checks = step.checks if sampling is Sampling.CONSTRAINT_AWARE else ()
        task = Task(
            step=step,
            choices=make_choices(conditional, judge, checks, table),
            judge=judge,
            columns=table,
            num_rows=num_rows,
            rng=rng,
            references=plan.references,
            penalties={c: price_of(c, weights or {}, num_rows) for c in step.soft},
            targets=targets or {},
            sweeps=sweeps,
            on_sweep=on_sweep,
        )
        nothing = np.full(num_rows, DEAD, dtype=np.int64)
        codes = _drawer(task, sampling)(task) if len(task.choices.starts) else nothing
        if sampling is Sampling.CONSTRAINT_AWARE:
            codes = np.where(breaks_checks(task, codes), DEAD, codes)
            codes = _revive(task, table, codes)
        table[step.attribute] = codes
    if sampling is not Sampling.CONSTRAINT_AWARE:
        return table
    return repair(judge, table, plan.hard, num_rows, rng)


def price_of(constraint: DenialConstraint, weights: Weights, num_rows: int) -> float:
    """Return what one violation costs in a table of `num_rows` rows.

    A weight that stands in the constraint is that price, as in the paper: exp(-w |V|). A weight that was found is for
    the number of violating pairs over the number of rows: exp(-w |V| / n). A row's partners among n rows grow with n,
    so their share of the rows does not: the same weight gives the same rate at any size.

    Guarantees:
        A weight found on a few rows holds for many.  [test_weights_do_not_depend_on_size]
    """
    if constraint.strength.kind is Kind.WEIGHTED:
        return constraint.strength.weight or 0.0
    weight = weights.get(constraint, 0.0)
    return weight if constraint.is_unary else weight / num_rows


def _drawer(task: Task, sampling: Sampling) -> DrawColumn:
    step = task.step
    match sampling:
        case Sampling.INDEPENDENT:
            return draw_free
        case Sampling.ACCEPT_REJECT:
            return draw_rejecting if step.enforced else draw_free
        case Sampling.CONSTRAINT_AWARE if step.soft:
            return draw_blocks if any(price > 0 for price in task.penalties.values()) else draw_free
        case Sampling.CONSTRAINT_AWARE:
            return DRAWERS[step.kind]
        case _:
            assert_never(sampling)


def _revive(task: Task, table: dict[str, IntArray], codes: IntArray) -> IntArray:
    """Turn rows for which no value was found into copies of rows for which one was, of similar ones if there are."""
    dead = np.flatnonzero(codes == DEAD)
    if len(dead) == 0:
        return codes
    if len(dead) == len(codes):
        # No row has a clean value; any will do until the repair at the end.
        return np.zeros_like(codes)
    donors = find_donors(task, dead, np.flatnonzero(codes != DEAD))
    for name in table:
        table[name] = table[name].copy()
        table[name][dead] = table[name][donors]
    revived: IntArray = codes.copy()
    revived[dead] = codes[donors]
    return revived
