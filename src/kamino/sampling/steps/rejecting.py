"""Accept-reject, to compare with: draw a cell until it breaks nothing, at most 300 times."""

from __future__ import annotations

import numpy as np

from kamino.arrays import IntArray
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.partners import DEAD, Block, make_partners
from kamino.sampling.partners.kernel import clashes_between
from kamino.sampling.steps.task import Task

MAX_TRIES = 300
_BATCH = 20
# Rows are announced in blocks, for speed alone.
_BLOCK = 256


def draw_rejecting(task: Task) -> IntArray:
    """Draw rows one by one; a draw that clashes with the rows before is drawn again, the last one is kept as it is."""
    name, pairs = task.step.attribute, task.step.constraints
    counters = [make_partners(c, task.judge, name, task.columns, task.num_rows) for c in pairs]
    batch = np.stack([task.choices.draw(task.rng, independent=True) for _ in range(_BATCH)], axis=1)
    codes = np.full(task.num_rows, DEAD, dtype=np.int64)
    for start in range(0, task.num_rows, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, task.num_rows), dtype=np.int64)
        passing = _passes_checks(task, rows, batch[rows])
        block = Block(rows=rows, candidates=batch[rows], listed=False, outside=codes.copy(), inside=codes[rows])
        for partners in counters:
            partners.begin(block)
        for place, row in enumerate(rows.tolist()):
            clean = passing[place].copy()
            for partners in counters:
                clean &= partners.count(place) == 0
            codes[row] = batch[row][np.argmax(clean)] if clean.any() else _try_again(task, row, codes)
            for partners in counters:
                partners.change(place, int(codes[row]), 1)
    return codes


def _try_again(task: Task, row: int, codes: IntArray) -> int:
    """Draw until the tries are used up; return the first draw that breaks nothing, or the last."""
    candidates = task.choices.of_rows(np.full(MAX_TRIES - _BATCH, row)).draw(task.rng, independent=True)
    tried, place = np.unique(candidates, return_inverse=True)
    clean = _passes_checks(task, np.array([row]), tried[None, :])[0]
    for constraint in task.step.constraints:
        others = [n for n in constraint.attributes if n != task.step.attribute]
        left = {n: np.repeat(task.columns[n][row], len(tried)) for n in others} | {task.step.attribute: tried}
        right = {n: task.columns[n][:row] for n in others} | {task.step.attribute: codes[:row]}
        clean &= clashes_between(constraint, task.judge, left, right) == 0
    found: Mask = clean[place]
    return int(candidates[np.argmax(found) if found.any() else -1])


def _passes_checks(task: Task, rows: IntArray, candidates: IntArray) -> Mask:
    """Tell which candidates of which rows satisfy the checks on single rows."""
    passes: Mask = np.ones(candidates.shape, dtype=np.bool_)
    for constraint in task.step.checks:
        columns = {n: task.columns[n][rows][:, None] for n in constraint.attributes if n != task.step.attribute}
        columns[task.step.attribute] = candidates
        passes &= ~task.judge.violates(constraint, columns, columns)
    return passes
