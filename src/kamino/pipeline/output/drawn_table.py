"""From a fitted model to a table: rows drawn, conditions met."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint
from kamino.errors import InputError, SamplingError
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.output.block_workers import ALONE, Workers
from kamino.pipeline.output.conditions import Condition, Given, condition_text, read_condition
from kamino.pipeline.output.given_dates import draw_with_dates
from kamino.pipeline.stages import Progress, Stage, silent
from kamino.sampling import DrawOptions, OnSweep, Sampling, SamplingPlan, build_plan, draw_table
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.conditioned import checks_of, draw_given, range_checks
from kamino.sampling.drawn_groups import GroupDrawer
from kamino.sampling.repair.repairing import repair
from kamino.schema import Codec, CodedTable


@dataclass(frozen=True, kw_only=True)
class Ways:
    """How a table is drawn from a fitted model; by default as the fit was asked to.

    `progress` is told how many attributes are drawn; `on_sweep` how the rates of soft constraints move. Without `check`
    violations are not counted while drawing: whoever draws counts them, and mends, also for a condition.
    `spreadsheet_safe` is how a file is written: no cell that a spreadsheet would run as a formula. `workers` draw the
    blocks of a long table.
    """

    mode: Sampling | None = None
    sweeps: int | None = None
    progress: Progress = silent
    on_sweep: OnSweep | None = None
    check: bool = True
    spreadsheet_safe: bool = False
    workers: Workers = ALONE


def draw(
    fitted: Fitted, num_rows: int, rng: np.random.Generator, *, given: Given | None = None, ways: Ways = Ways()
) -> pa.Table:
    """Draw a table of exactly `num_rows` rows, all of which meet `given`.

    Guarantees:
        Exactly as many rows as asked for.  [test_sample_has_the_asked_rows]
        Every row meets the condition, and no hard constraint is violated.  [test_conditions_hold_with_rules]
        A condition is refused only if no table meets it.  [test_conditions_hold_with_rules] One on a date that is told
        by its distance from another may also be refused if hardly any row can meet it.
    """
    columns = draw_columns(fitted, num_rows, rng, given=given, ways=ways)
    return fitted.layout.decode(CodedTable(columns=columns, num_rows=num_rows), rng)


def draw_columns(
    fitted: Fitted, num_rows: int, rng: np.random.Generator, *, given: Given | None = None, ways: Ways = Ways()
) -> dict[str, IntArray]:
    """Draw the codes of a table of exactly `num_rows` rows, all of which meet `given`."""
    if num_rows < 0:
        raise InputError(f"found {num_rows} rows asked for; expected none or more")
    codec, plain = fitted.codec, Codec(fitted.schema)
    condition = read_condition(plain, given if given is None else fitted.layout.condition(given))
    direct, dates = condition.split(codec.differences)
    try:
        if not dates:
            return draw_codes(fitted, num_rows, rng, ways, direct)
        return draw_with_dates(lambda rows: draw_codes(fitted, rows, rng, ways, direct), codec, num_rows, dates.codes)
    except SamplingError as error:
        if not condition:
            raise
        raise SamplingError(f"found the condition {condition_text(plain, condition)}, but {error}") from error


def draw_codes(
    fitted: Fitted, num_rows: int, rng: np.random.Generator, ways: Ways = Ways(), condition: Condition = Condition()
) -> dict[str, IntArray]:
    """Draw the codes of a table by the plan of its constraints, along the model's sequence.

    Under a condition, soft constraints keep their weights but are not steered to the rates of the whole table.
    """
    asked, codec = fitted.settings, fitted.codec
    checks = _checks(codec, condition)
    plan = _plan(fitted, num_rows, checks)
    options = DrawOptions(
        sampling=asked.sampling if ways.mode is None else ways.mode,
        weights=fitted.soft.weights,
        targets={} if condition else fitted.soft.targets,
        sweeps=asked.sweeps if ways.sweeps is None else ways.sweeps,
        candidates=asked.candidates,
        given=checks,
        progress=lambda step, place, total: ways.progress(Stage.SAMPLE, place, total),
        on_sweep=ways.on_sweep,
        check=ways.check,
        ids=GroupDrawer.of(fitted.groups, codec, fitted.promised),
    )
    if condition:
        return draw_given(plan, fitted.model, codec, num_rows, rng, options, condition.codes)
    return draw_table(plan, fitted.model, codec, num_rows, rng, options)


def mend_columns(
    fitted: Fitted,
    columns: Mapping[str, npt.NDArray[np.integer[Any]]],
    num_rows: int,
    rng: np.random.Generator,
    condition: Condition = Condition(),
) -> dict[str, IntArray]:
    """Replace the rows of a drawn table that break hard constraints, or do not meet a condition.

    Raises:
        SamplingError: no table of so many rows that keeps them was found.
    """
    wide = {name: codes.astype(np.int64) for name, codes in columns.items()}
    plan = _plan(fitted, num_rows, _checks(fitted.codec, condition))
    return repair(Judge(fitted.codec), wide, plan.hard, num_rows, rng)


def _checks(codec: Codec, condition: Condition) -> tuple[DenialConstraint, ...]:
    """A condition as checks on single rows."""
    listed = {name: codes for name, codes in condition.codes.items() if name not in condition.ranges}
    return (*checks_of(codec, listed), *range_checks(codec, condition.ranges))


def _plan(fitted: Fitted, num_rows: int, checks: Sequence[DenialConstraint] = ()) -> SamplingPlan:
    """The plan that was kept, or one that also keeps a condition."""
    if not checks:
        return fitted.plan_for(num_rows)
    plan = build_plan(
        fitted.codec,
        (*fitted.constraints, *checks),
        num_rows=num_rows,
        references=fitted.references,
        sequence=fitted.model.sequence,
    )
    return fitted.with_learned_maps(plan)
