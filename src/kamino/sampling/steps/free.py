"""Free and mask: each row by itself, from what is allowed for it."""

from __future__ import annotations

import numpy as np

from kamino.arrays import IntArray
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.feasible.row_search import tried_codes
from kamino.sampling.partners import DEAD
from kamino.sampling.steps.task import Task

_ROUNDS = 30
_PIECE = 20_000


def draw_free(task: Task) -> IntArray:
    """Draw each row from its choices; rows of one context share out the values evenly."""
    codes = task.choices.draw(task.rng)
    if not task.choices.residual:
        return codes
    bad = np.flatnonzero(breaks_checks(task, codes))
    for _ in range(_ROUNDS):
        if len(bad) == 0:
            return codes
        codes[bad] = task.choices.draw(task.rng, bad)
        bad = bad[breaks_checks(task, codes[bad], bad)]
    for start in range(0, len(bad), _PIECE):
        rows = bad[start : start + _PIECE]
        codes[rows] = _best_of_few(task, rows)
    return codes


def breaks_checks(task: Task, codes: IntArray, rows: IntArray | None = None) -> Mask:
    """Tell which rows break a residual check with these codes; dead ones do not."""
    everyone = np.arange(task.num_rows) if rows is None else rows
    broken = np.zeros(np.shape(codes), dtype=np.bool_)
    shape = (slice(None),) + (None,) * (np.ndim(codes) - 1)
    for constraint in task.choices.residual:
        columns = {n: task.columns[n][everyone][shape] for n in constraint.attributes if n != task.step.attribute}
        columns[task.step.attribute] = np.maximum(codes, 0)
        broken |= task.judge.violates(constraint, columns, columns)
    alive: Mask = codes != DEAD
    return broken & alive


def _best_of_few(task: Task, rows: IntArray) -> IntArray:
    """Take the likeliest allowed code among a few."""
    return likeliest(task, rows, few_codes(task, rows))


def few_codes(task: Task, rows: IntArray) -> IntArray:
    """Return a few codes worth a try: ends, neighbours of constants and of the row's other values; a line each."""
    name = task.step.attribute
    fixed, _ = tried_codes(task.judge, name, task.choices.residual)
    others = {n for c in task.choices.residual for n in c.attributes if n != name}
    near = [task.judge.near(name, other, task.columns[other][rows]) for other in sorted(others)]
    return np.concatenate([np.broadcast_to(fixed, (len(rows), len(fixed))), *near], axis=1)


def likeliest(task: Task, rows: IntArray, tried: IntArray) -> IntArray:
    """Return the likeliest code of each line that breaks no check; `DEAD` where there is none, and is none."""
    weight = task.choices.log_of(np.maximum(tried, 0), rows[:, None])
    weight = np.where((tried == DEAD) | breaks_checks(task, tried, rows), -np.inf, weight)
    best = np.argmax(weight, axis=1)
    line = np.arange(len(rows))
    return np.where(np.isfinite(weight[line, best]), tried[line, best], DEAD)
