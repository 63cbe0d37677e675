"""Accept-reject, to compare with: draw a cell until it breaks nothing, at most 300 times."""

from __future__ import annotations

import numpy as np

from kamino.arrays import IntArray
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.partners import DEAD, Block, Partners, make_partners
from kamino.sampling.steps.task import Task

MAX_TRIES = 300
_BATCH = 20


def draw_rejecting(task: Task) -> IntArray:
    """Draw rows one by one; a draw that clashes with the rows before is drawn again, the last one is kept as it is."""
    name, pairs = task.step.attribute, task.step.constraints
    counters = [make_partners(c, task.judge, name, task.columns, task.num_rows) for c in pairs]
    batch = np.stack([task.choices.draw(task.rng, independent=True) for _ in range(_BATCH)], axis=1)
    codes = np.full(task.num_rows, DEAD, dtype=np.int64)
    for row in range(task.num_rows):
        tried = 0
        candidates = batch[row]
        while True:
            clean = _clean(task, row, candidates, codes, counters)
            tried += len(candidates)
            if clean.any() or tried >= MAX_TRIES:
                break
            candidates = task.choices.of_rows(np.full(MAX_TRIES - _BATCH, row)).draw(task.rng, independent=True)
        codes[row] = candidates[int(np.argmax(clean)) if clean.any() else -1]
        for partners in counters:
            partners.change(0, int(codes[row]), 1)
    return codes


def _clean(task: Task, row: int, candidates: IntArray, codes: IntArray, counters: list[Partners]) -> Mask:
    """Tell which candidates of a row break nothing; equal ones are tried once."""
    tried, place = np.unique(candidates, return_inverse=True)
    block = Block(rows=np.array([row]), candidates=tried[None, :], listed=False, outside=codes, inside=np.array([DEAD]))
    columns = {n: known[row : row + 1] for n, known in task.columns.items()} | {task.step.attribute: tried}
    good: Mask = np.ones(len(tried), dtype=np.bool_)
    for constraint in task.step.checks:
        mine = {n: np.broadcast_to(columns[n], len(tried)) for n in constraint.attributes}
        good &= ~task.judge.violates(constraint, mine, mine)
    for partners in counters:
        partners.begin(block)
        good &= partners.count(0) == 0
    kept: Mask = good[place]
    return kept
