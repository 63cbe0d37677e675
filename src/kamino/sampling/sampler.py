"""Drawing a table by its plan: column after column, then the guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

import numpy as np

from kamino.arrays import IntArray
from kamino.errors import SamplingError
from kamino.sampling.codes.balancing import MOST_ROWS, group_values
from kamino.sampling.codes.calibrating import frequencies_of, rake
from kamino.sampling.codes.choices import make_choices
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.draw_options import DrawOptions
from kamino.sampling.modes import Sampling
from kamino.sampling.partners import DEAD
from kamino.sampling.plan.sampling_plan import OF_GROUPS, SamplingPlan, Step, StepKind
from kamino.sampling.repair.donors import find_donors
from kamino.sampling.repair.repairing import repair
from kamino.sampling.soft.prices import price_of
from kamino.sampling.steps.algorithm3 import draw_indexed, draw_row_by_row
from kamino.sampling.steps.blocks import draw_blocks
from kamino.sampling.steps.chain.chain import draw_chain
from kamino.sampling.steps.exchange import Movable, read_by_code
from kamino.sampling.steps.free import draw_free
from kamino.sampling.steps.lookup import draw_known, draw_lookup
from kamino.sampling.steps.ownership.ownership import draw_ownership, lines_of
from kamino.sampling.steps.rejecting import draw_rejecting
from kamino.sampling.steps.task import DrawColumn, Task
from kamino.sampling.steps.unique.unique import draw_unique
from kamino.schema import Codec

if TYPE_CHECKING:
    from kamino.model.protocol import Conditional, TupleModel

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
    options: DrawOptions = DrawOptions(),
) -> dict[str, IntArray]:
    """Draw `num_rows` rows as codes, one int64 array for each attribute of the plan.

    Args:
        plan: the sequence and steps; the model must be fitted along the same sequence.
        model: gives the distribution of each attribute given earlier ones.
        codec: the public domains.
        num_rows: how many rows.
        rng: the source of randomness.
        options: how constraints are treated, and which columns are there already.

    Raises:
        SamplingError: no table that satisfies the hard constraints exists, or none was found.

    Guarantees:
        With the default, no hard constraint is violated, and there are as many rows as asked.
        [test_random_constraints_hold]
        The same holds row by row.  [test_row_by_row_breaks_no_hard_constraint]
        Without weights, soft constraints change nothing.  [test_weight_zero_changes_nothing]
        A column keeps its distribution where constraints moved earlier ones.  [test_columns_keep_their_distribution]
        Columns of the prefix come back as they are, and the rest fits them.  [test_a_prefix_is_completed]
    """
    if num_rows < 0:
        raise SamplingError(f"found {num_rows} rows to draw; expected zero or more.")
    first = dict(options.ids(num_rows, rng)) if options.ids is not None else {}
    if num_rows == 0:
        return {name: np.zeros(0, dtype=np.int64) for name in (*first, *plan.sequence)}
    drawing = _Drawing(plan, model, codec, num_rows, rng, options, first)
    for place, step in enumerate(plan.steps):
        if step.attribute in options.prefix:
            continue
        if options.progress is not None:
            options.progress(step, place, len(plan.steps))
        drawing.draw(step)
    if not (options.sampling.keeps_hard_constraints and options.check):
        return drawing.table
    return repair(drawing.judge, drawing.table, plan.hard, num_rows, rng, fixed=options.prefix)


class _Drawing:
    """The table as far as it is drawn, and the means to draw more of it; `first` are columns of ids."""

    def __init__(
        self,
        plan: SamplingPlan,
        model: TupleModel,
        codec: Codec,
        num_rows: int,
        rng: np.random.Generator,
        options: DrawOptions,
        first: Mapping[str, IntArray],
    ) -> None:
        self.judge = Judge(codec)
        self.table = {**first, **_checked_prefix(options.prefix, plan, codec, num_rows)}
        self._model, self._num_rows, self._options = model, num_rows, options
        self._frequencies = frequencies_of(model, options)
        self._balances = options.sampling.is_usual and num_rows <= MOST_ROWS
        self._grouped: dict[str, IntArray] = {}
        self._rules, self._kept = (*plan.hard, *plan.soft), frozenset((*first, *options.prefix))
        # A world has bounds of its own for each row of its columns; other ways of drawing are there to compare with.
        fixed = read_by_code(plan) | model.reads_codes | first.keys() | options.prefix.keys()
        fixed = fixed if options.world is None else set(plan.sequence)
        self._movable = Movable(fixed=fixed if options.sampling is Sampling.CONSTRAINT_AWARE else None)
        self._task_of = partial(
            Task,
            judge=self.judge,
            columns=self.table,
            num_rows=num_rows,
            rng=rng,
            references=plan.references,
            targets=options.targets,
            sweeps=options.sweeps,
            candidates=options.candidates,
            on_sweep=options.on_sweep,
            hands_out=options.sampling is Sampling.CONSTRAINT_AWARE,
        )

    def draw(self, step: Step) -> None:
        """Draw the column of a step, after those of all steps before it."""
        task = self._with_lines(self._task(step))
        codes = _draw_column(task, self.table, self._options)
        self.table[step.attribute] = codes
        self._movable.drawn(step, task.choices, codes)

    def _with_lines(self, task: Task) -> Task:
        """Deal lines where the step draws some: rows take right sides that go together, and the model sees those."""
        options = self._options
        joint = options.world is None and options.sampling is Sampling.CONSTRAINT_AWARE
        if task.step.kind is not StepKind.OWNERSHIP or not joint:
            return task
        lines = lines_of(task, self._rules, self._kept)
        if lines is None:
            return task
        for name in lines.columns:
            self.table[name] = self.table[name][lines.source]
            self._grouped.pop(name, None)
        self._movable.moved(lines.columns, lines.source)
        return replace(self._task(task.step), lines=lines)

    def _task(self, step: Step) -> Task:
        options, moving = self._options, self._movable.before(step)
        keeps_hard = options.sampling.keeps_hard_constraints
        checks = tuple(c for c in step.checks if keeps_hard or c in options.given)
        return self._task_of(
            step=step,
            choices=make_choices(self._conditional(step), self.judge, checks, self.table, movable=moving),
            penalties={c: price_of(c, options.weights, self._num_rows) for c in (*step.soft, *step.unweighed)},
            parents=frozenset(self._model.parents(step.attribute)),
            movable=moving,
            settled=self._movable.settled,
            grouped=self._groups() if self._balances else None,
        )

    def _groups(self) -> dict[str, IntArray]:
        """The columns so far in groups; later copies and exchanges of single rows are not followed."""
        for name in self.table.keys() - self._grouped.keys():
            self._grouped[name] = group_values(self.table[name])
        return self._grouped

    def _conditional(self, step: Step) -> Conditional:
        """The model's distribution of each row, held to the frequencies of the column unless a rate steers it."""
        found = self._model.conditional(step.attribute, self.table, self._num_rows)
        return found if self._frequencies is None or step.soft else rake(found, self._frequencies(step.attribute))


def _checked_prefix(
    prefix: Mapping[str, IntArray], plan: SamplingPlan, codec: Codec, num_rows: int
) -> dict[str, IntArray]:
    """Return the columns that are there already, in the order of the plan."""
    first = plan.sequence[: len(prefix)]
    if set(first) != prefix.keys():
        raise SamplingError(
            f"found columns {', '.join(prefix)} to start from; expected the first attributes of the plan: "
            f"{', '.join(first)}. Plan with a sequence that begins with them."
        )
    for name, codes in prefix.items():
        if len(codes) != num_rows or np.any((codes < 0) | (codes >= codec[name].size)):
            raise SamplingError(
                f"found a column {name!r} to start from with {len(codes)} codes; expected {num_rows} codes from 0 to "
                f"{codec[name].size - 1}."
            )
    return {name: np.asarray(prefix[name], dtype=np.int64) for name in first}


def _draw_column(task: Task, table: dict[str, IntArray], options: DrawOptions) -> IntArray:
    """Draw one column; where the hard constraints are promised, rows without a value become copies of others.

    Guarantees:
        Whatever a step does, no row breaks a check.  [test_columns_break_no_check_before_repair]
    """
    nothing = np.full(task.num_rows, DEAD, dtype=np.int64)
    codes = _drawer(task, options)(task) if len(task.choices.starts) else nothing
    if not options.sampling.keeps_hard_constraints:
        return codes
    if options.world is not None:
        codes = options.world.settle(task.judge, task.step, table, codes, task.rng)
    here = {**table, task.step.attribute: np.maximum(codes, 0)}
    for check in task.step.checks:
        codes = np.where(task.judge.violates(check, here, here), DEAD, codes)
    return _revive(task, table, codes, options)


def _drawer(task: Task, options: DrawOptions) -> DrawColumn:
    step, sampling = task.step, options.sampling
    if options.world is not None and step.kind in (StepKind.CHAIN, StepKind.INDEXED) and not _has_prices(task):
        return draw_free  # the world has bounds for each row, and says which values go together
    if options.world is not None and step.kind is StepKind.LOOKUP:
        return draw_known
    match sampling:
        case Sampling.INDEPENDENT:
            return draw_free
        case Sampling.ACCEPT_REJECT:
            return draw_rejecting if step.enforced else draw_free
        case Sampling.CONSTRAINT_AWARE if step.soft:
            return draw_blocks if _has_prices(task) else draw_free
        case Sampling.CONSTRAINT_AWARE:
            return DRAWERS[step.kind]
        case Sampling.ROW_BY_ROW | Sampling.PRINTED if _is_mapped(task):
            return DRAWERS[step.kind]
        case Sampling.ROW_BY_ROW if step.kind in OF_GROUPS and not _has_prices(task):
            return DRAWERS[step.kind]
        case Sampling.ROW_BY_ROW | Sampling.PRINTED:
            return draw_row_by_row if step.constraints or _has_prices(task) else draw_free
        case _:
            assert_never(sampling)


def _has_prices(task: Task) -> bool:
    """Whether a soft constraint is weighed in this column."""
    return any(price > 0 for price in task.penalties.values())


def _is_mapped(task: Task) -> bool:
    """Whether a public map speaks of the column: it is to be followed, not weighed."""
    here = {*task.columns, task.step.attribute}
    return any(task.step.attribute in (*left, right) and here >= {*left, right} for left, right in task.references)


def _revive(task: Task, table: dict[str, IntArray], codes: IntArray, options: DrawOptions) -> IntArray:
    """Turn rows for which no value was found into copies of rows for which one was, of similar ones if there are.

    Columns of the prefix are not copied; what then does not fit together is left to the repair at the end. A block in
    which no row has a value takes rows of the first block.
    """
    dead = np.flatnonzero(codes == DEAD)
    if len(dead) == 0:
        return codes
    revived: IntArray = codes.copy()
    if len(dead) < len(codes):
        source = {**table, task.step.attribute: codes}
        donors = find_donors(task, dead, np.flatnonzero(codes != DEAD))
    elif options.world is not None:
        source = dict(options.world.whole)
        donors = task.rng.integers(0, len(source[task.step.attribute]), len(dead))
    else:
        # No row has a clean value; any will do until the repair at the end.
        return np.zeros_like(codes)
    for name in table.keys() - set(options.prefix):
        table[name] = table[name].copy()
        table[name][dead] = source[name][donors]
    revived[dead] = source[task.step.attribute][donors]
    return revived
