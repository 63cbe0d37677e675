"""Drawing a table by its plan: column after column, then the guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias, assert_never

import numpy as np

from kamino.errors import SamplingError
from kamino.model.protocol import IntArray, TupleModel
from kamino.sampling.choices import make_choices
from kamino.sampling.comparing import Judge
from kamino.sampling.donors import find_donors
from kamino.sampling.modes import Sampling
from kamino.sampling.partners import DEAD
from kamino.sampling.plan import SamplingPlan, Step, StepKind
from kamino.sampling.prices import Weights, price_of
from kamino.sampling.repair import repair
from kamino.sampling.steps.algorithm3 import draw_indexed, draw_row_by_row
from kamino.sampling.steps.blocks import draw_blocks
from kamino.sampling.steps.chain import draw_chain
from kamino.sampling.steps.free import breaks_checks, draw_free
from kamino.sampling.steps.lookup import draw_lookup
from kamino.sampling.steps.ownership import draw_ownership
from kamino.sampling.steps.rejecting import draw_rejecting
from kamino.sampling.steps.task import DrawColumn, OnSweep, Task
from kamino.sampling.steps.unique import draw_unique
from kamino.schema import Codec

Progress: TypeAlias = Callable[[Step, int, int], None]

# How often each row is drawn again where soft constraints have a weight.
SWEEPS = 4
# How many values of a wide domain are weighed for a row, where rows are drawn one by one; the paper names no number.
CANDIDATES = 10

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
    candidates: int = CANDIDATES,
    progress: Progress | None = None,
    on_sweep: OnSweep | None = None,
    check: bool = True,
) -> dict[str, IntArray]:
    """Draw `num_rows` rows as codes, one int64 array for each attribute of the plan.

    Args:
        plan: the sequence and steps; the model must be fitted along the same sequence.
        model: gives the distribution of each attribute given earlier ones.
        codec: the public domains.
        num_rows: how many rows.
        rng: the source of randomness.
        sampling: other ways to treat constraints; see `Sampling` for what they promise.
        weights: of the soft constraints (see `price_of`); one without a weight is not heeded.
        targets: violation rates to steer the weights to while drawing, where they are known.
        sweeps: how often each row is drawn again where a soft constraint has a weight; row by row, where any
            constraint on pairs ends (the paper's m is `sweeps * num_rows`, and 0 in its experiments).
        candidates: how many values of a wide ordered domain are weighed for a row (the paper's d), row by row.
        progress: called before each step with the step, its place and the number of steps.
        on_sweep: called after each sweep with the attribute, the number of sweeps done, and the violation rates then.
        check: count violations at the end and repair the rows that break hard constraints. Without it nothing is
            promised: whoever draws counts, and calls `repair`.

    Raises:
        SamplingError: no table that satisfies the hard constraints exists, or none was found.

    Guarantees:
        With the default, no hard constraint is violated, and there are as many rows as asked.
        [test_random_constraints_hold]
        The same holds row by row.  [test_row_by_row_breaks_no_hard_constraint]
        Without weights, soft constraints change nothing.  [test_weight_zero_changes_nothing]
    """
    _refuse_senseless(num_rows=num_rows, candidates=candidates, sweeps=sweeps)
    if num_rows == 0:
        return {name: np.zeros(0, dtype=np.int64) for name in plan.sequence}
    judge = Judge(codec)
    table: dict[str, IntArray] = {}
    task_of = partial(
        Task,
        judge=judge,
        columns=table,
        num_rows=num_rows,
        rng=rng,
        references=plan.references,
        targets=targets or {},
        sweeps=sweeps,
        candidates=candidates,
        on_sweep=on_sweep,
    )
    for place, step in enumerate(plan.steps):
        if progress is not None:
            progress(step, place, len(plan.steps))
        conditional = model.conditional(step.attribute, table, num_rows)
        checks = step.checks if sampling.keeps_hard_constraints else ()
        choices = make_choices(conditional, judge, checks, table)
        prices = {c: price_of(c, weights or {}, num_rows) for c in (*step.soft, *step.unweighed)}
        parents = frozenset(model.parents(step.attribute))
        task = task_of(step=step, choices=choices, penalties=prices, parents=parents)
        table[step.attribute] = _draw_column(task, table, sampling)
    wanted = check and sampling.keeps_hard_constraints
    return repair(judge, table, plan.hard, num_rows, rng) if wanted else table


def _refuse_senseless(*, num_rows: int, candidates: int, sweeps: int) -> None:
    if num_rows < 0:
        raise SamplingError(f"found {num_rows} rows to draw; expected zero or more.")
    if candidates < 1:
        raise SamplingError(f"found {candidates} candidates for a row; expected one or more.")
    if sweeps < 0:
        raise SamplingError(f"found {sweeps} sweeps; expected zero or more.")


def _draw_column(task: Task, table: dict[str, IntArray], sampling: Sampling) -> IntArray:
    """Draw one column; where the hard constraints are promised, rows without a value become copies of others."""
    nothing = np.full(task.num_rows, DEAD, dtype=np.int64)
    codes = _drawer(task, sampling)(task) if len(task.choices.starts) else nothing
    if not sampling.keeps_hard_constraints:
        return codes
    codes = np.where(breaks_checks(task, codes), DEAD, codes)
    return _revive(task, table, codes)


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
        case Sampling.ROW_BY_ROW if _is_mapped(task):
            return DRAWERS[step.kind]
        case Sampling.ROW_BY_ROW:
            active = step.constraints or any(price > 0 for price in task.penalties.values())
            return draw_row_by_row if active else draw_free
        case _:
            assert_never(sampling)


def _is_mapped(task: Task) -> bool:
    """Whether a public map speaks of the column: it is to be followed, not weighed."""
    here = {*task.columns, task.step.attribute}
    return any(task.step.attribute in (*left, right) and here >= {*left, right} for left, right in task.references)


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
