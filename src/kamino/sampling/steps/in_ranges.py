"""Rows drawn from the exact ranges that rules on terms leave them: the model's conditional cut down, never by trying.

A range may be one code (`total = a + b`) or wide (`a + b <= c`). What the model says of the values in it is kept.
"""

from __future__ import annotations

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint
from kamino.sampling.intervals.code_ranges import ranges_of, solvable
from kamino.sampling.partners.block import DEAD
from kamino.sampling.steps.ranges import Ranges
from kamino.sampling.steps.task import Task

# Rows are drawn so many at a time: each weighs all runs of the model.
_ROWS_AT_ONCE = 1 << 14
# Draws for a row where other checks may forbid some.
_DRAWN = 24


def solved_checks(task: Task) -> tuple[DenialConstraint, ...]:
    """The residual checks that leave each row a range of codes, if any of them reads computed terms."""
    residual = task.choices.residual
    if not any(check.has_terms for check in residual):
        return ()
    return tuple(check for check in residual if solvable(task.judge, task.step.attribute, check))


def draw_in_ranges(task: Task, solved: tuple[DenialConstraint, ...]) -> IntArray:
    """Draw nulls as often as the model has them, and other rows from their ranges; `DEAD` where one is empty.

    Guarantees:
        Rows that are not dead break no check that was solved.  [test_rows_in_ranges_break_nothing]
    """
    nulls = task.choices.draw_nulls(task.rng)
    choices = task.choices.without_null()
    codes: IntArray = np.full(task.num_rows, DEAD, dtype=np.int64)
    drawing = Ranges(choices, task.judge.codec[task.step.attribute], task.rng)
    others = tuple(check for check in choices.residual if check not in solved)
    rows = np.flatnonzero(~nulls)
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        mine = rows[begin : begin + _ROWS_AT_ONCE]
        found = ranges_of(task.judge, task.step.attribute, solved, task.columns, mine)
        # A sum leaves one code, which needs no weighing: only whether the model and other checks have it at all.
        alone = found.first == found.last
        only = np.where(choices.bins_of(np.maximum(found.first, 0))[0] >= 0, found.first, DEAD)
        codes[mine] = np.where(alone, _without_broken(task, others, only[:, None], mine)[:, 0], DEAD)
        wide = np.flatnonzero(~alone)
        drawn = drawing.draw(mine[wide], found.first[wide], found.last[wide], _DRAWN if others else 1)
        drawn = _without_broken(task, others, drawn, mine[wide])
        best = np.argmax(drawn != DEAD, axis=1) if len(wide) else wide
        codes[mine[wide]] = drawn[np.arange(len(wide)), best]
    return task.with_nulls(codes, nulls)


def _without_broken(task: Task, others: tuple[DenialConstraint, ...], codes: IntArray, rows: IntArray) -> IntArray:
    """The codes, a line for each row, `DEAD` where they break a check that leaves no range."""
    return np.where(task.breaks(others, codes, rows), DEAD, codes) if others else codes
