"""Accept-reject, to compare with: draw a cell until it breaks nothing, at most 300 times."""

from __future__ import annotations

import numpy as np

from kamino.model.protocol import IntArray
from kamino.sampling.comparing import Mask
from kamino.sampling.index import ViolationIndex
from kamino.sampling.steps.task import Task

MAX_TRIES = 300
_BATCH = 20


def draw_rejecting(task: Task) -> IntArray:
    """Draw rows one by one; a draw that clashes with the rows before is drawn again, the last one is kept as it is."""
    name = task.step.attribute
    indexes = [ViolationIndex(c, task.judge) for c in task.step.constraints]
    batch = np.stack([task.choices.draw(task.rng, independent=True) for _ in range(_BATCH)], axis=1)
    codes = np.empty(task.num_rows, dtype=np.int64)
    for row in range(task.num_rows):
        tried = 0
        candidates = batch[row]
        while True:
            clean = _clean(task, row, candidates, indexes)
            tried += len(candidates)
            if clean.any() or tried >= MAX_TRIES:
                break
            candidates = task.choices.of_rows(np.full(MAX_TRIES - _BATCH, row)).draw(task.rng, independent=True)
        codes[row] = candidates[int(np.argmax(clean)) if clean.any() else -1]
        for index in indexes:
            index.add({n: int(codes[row] if n == name else task.columns[n][row]) for n in index.attributes})
    return codes


def _clean(task: Task, row: int, candidates: IntArray, indexes: list[ViolationIndex]) -> Mask:
    """Tell which candidates of a row break nothing; equal ones are tried once."""
    tried, place = np.unique(candidates, return_inverse=True)
    columns = {n: codes[row : row + 1] for n, codes in task.columns.items()} | {task.step.attribute: tried}
    good: Mask = np.ones(len(tried), dtype=np.bool_)
    for constraint in task.step.checks:
        mine = {n: np.broadcast_to(columns[n], len(tried)) for n in constraint.attributes}
        good &= ~task.judge.violates(constraint, mine, mine)
    for index in indexes:
        good &= index.count(columns) == 0
    kept: Mask = good[place]
    return kept
