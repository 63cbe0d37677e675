"""Drawing a table by its plan: column after column, then the guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

import numpy as np

from kamino.errors import SamplingError
from kamino.model.protocol import IntArray, TupleModel
from kamino.sampling.choices import make_choices
from kamino.sampling.comparing import Judge
from kamino.sampling.modes import Sampling
from kamino.sampling.plan import SamplingPlan, Step, StepKind
from kamino.sampling.repair import repair
from kamino.sampling.steps.chain import draw_chain
from kamino.sampling.steps.free import breaks_checks, draw_free
from kamino.sampling.steps.indexed import draw_indexed
from kamino.sampling.steps.lookup import draw_lookup
from kamino.sampling.steps.ownership import draw_ownership
from kamino.sampling.steps.rejecting import draw_rejecting
from kamino.sampling.steps.task import DEAD, DrawColumn, Task
from kamino.sampling.steps.unique import draw_unique
from kamino.schema import Codec

Progress: TypeAlias = Callable[[Step, int, int], None]

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
    progress: Progress | None = None,
) -> dict[str, IntArray]:
    """Draw `num_rows` rows as codes, one int64 array for each attribute of the plan.

    Args:
        plan: the sequence and steps; the model must be fitted along the same sequence.
        model: gives the distribution of each attribute given earlier ones.
        codec: the public domains.
        num_rows: how many rows.
        rng: the source of randomness.
        sampling: other ways to treat constraints, to compare with; only the default promises anything.
        progress: called before each step with the step, its place and the number of steps.

    Raises:
        SamplingError: no table that satisfies the hard constraints exists, or none was found.

    Guarantees:
        With the default, no hard constraint is violated, and there are as many rows as asked.
        [test_random_constraints_hold]
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
        )
        nothing = np.full(num_rows, DEAD, dtype=np.int64)
        codes = _drawer(step, sampling)(task) if len(task.choices.starts) else nothing
        if sampling is Sampling.CONSTRAINT_AWARE:
            codes = np.where(breaks_checks(task, codes), DEAD, codes)
            codes = _revive(task, table, codes)
        table[step.attribute] = codes
    if sampling is not Sampling.CONSTRAINT_AWARE:
        return table
    return repair(judge, table, plan.hard, num_rows, rng)


def _drawer(step: Step, sampling: Sampling) -> DrawColumn:
    match sampling:
        case Sampling.INDEPENDENT:
            return draw_free
        case Sampling.ACCEPT_REJECT:
            return draw_rejecting if step.enforced else draw_free
        case Sampling.CONSTRAINT_AWARE:
            return DRAWERS[step.kind]
        case _:
            assert_never(sampling)


def _revive(task: Task, table: dict[str, IntArray], codes: IntArray) -> IntArray:
    """Turn rows for which no value was found into copies of random rows for which one was."""
    dead = np.flatnonzero(codes == DEAD)
    if len(dead) == 0:
        return codes
    if len(dead) == len(codes):
        # No row has a clean value; any will do until the repair at the end.
        return np.zeros_like(codes)
    alive = np.flatnonzero(codes != DEAD)
    donors = task.rng.choice(alive, len(dead))
    for name in table:
        table[name] = table[name].copy()
        table[name][dead] = table[name][donors]
    revived: IntArray = codes.copy()
    revived[dead] = codes[donors]
    return revived
