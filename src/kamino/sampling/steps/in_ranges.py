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
        drawn = drawing.draw(mine, found.first, found.last, _DRAWN if others else 1)
        if others:
            drawn = np.where(task.breaks(others, drawn, mine), DEAD, drawn)
        best = np.argmax(drawn != DEAD, axis=1)
        codes[mine] = drawn[np.arange(len(mine)), best]
    return task.with_nulls(codes, nulls)
