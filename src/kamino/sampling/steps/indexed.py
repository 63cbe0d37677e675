"""Indexed: any constraints. Rows one by one, as the paper's Algorithm 3, then sweeps that draw cells again.

A candidate v of row i has the weight p(v | c_i) * exp(-sum of w * new violations); a hard constraint's w is infinite.
"""

from __future__ import annotations

import numpy as np

from kamino.model.protocol import FloatArray, IntArray
from kamino.sampling.comparing import Codes
from kamino.sampling.index import ViolationIndex
from kamino.sampling.steps.free import breaks_checks
from kamino.sampling.steps.task import DEAD, Task

_LISTED = 256
_DRAWN = 48
_REUSED = 16
_SWEEPS = 1
_MAX_SWEPT = 20_000


def draw_indexed(task: Task) -> IntArray:
    """Draw rows in random order, each with candidates weighed against the rows settled before; then sweep once.

    Guarantees:
        Rows that are not dead break no hard constraint of the step.  [test_indexed_holds]
    """
    drawing = _Drawing(task)
    order = task.rng.permutation(task.num_rows)
    for row in order:
        drawing.settle(int(row))
    for _ in range(_SWEEPS):
        for row in task.rng.permutation(order)[:_MAX_SWEPT]:
            drawing.settle_again(int(row))
    return drawing.codes


class _Drawing:
    """The column as far as it is drawn, and the index of each constraint over it."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._name = task.step.attribute
        self._indexes = [ViolationIndex(c, task.judge) for c in task.step.constraints]
        self._weights = [c.strength.weight if not c.is_hard else None for c in task.step.constraints]
        self.codes: Codes = np.full(task.num_rows, DEAD, dtype=np.int64)
        self._used: list[int] = []
        self._listed = self._list_codes()
        if self._listed is None:
            self._batch = np.stack([task.choices.draw(task.rng, independent=True) for _ in range(_DRAWN)], axis=1)

    def _list_codes(self) -> Codes | None:
        choices = self._task.choices
        return choices.by_code().starts if int(choices.width.sum()) <= _LISTED else None

    def settle(self, row: int) -> None:
        """Draw the cell of one row given the rows settled before; it stays dead if nothing is clean."""
        candidates = self._candidates(row)
        weight = self._weigh(row, candidates)
        top = weight.max(initial=-np.inf)
        if not np.isfinite(top):
            return
        total = np.cumsum(np.exp(weight - top))
        place = int(np.searchsorted(total, self._task.rng.random() * total[-1], side="right"))
        self.codes[row] = candidates[min(place, len(candidates) - 1)]
        self._change(row, 1)
        if len(self._used) < 4096:
            self._used.append(int(self.codes[row]))

    def settle_again(self, row: int) -> None:
        """Draw one cell again given all other rows."""
        if self.codes[row] != DEAD:
            old = self.codes[row]
            self._change(row, -1)
            self.codes[row] = DEAD
            self.settle(row)
            if self.codes[row] == DEAD:
                self.codes[row] = old
                self._change(row, 1)
        else:
            self.settle(row)

    def _candidates(self, row: int) -> Codes:
        if self._listed is not None:
            return self._listed
        drawn = self._batch[row]
        reused = self._task.rng.choice(self._used, _REUSED) if self._used else np.zeros(0, np.int64)
        found = np.unique(np.concatenate([drawn, reused]).astype(np.int64))
        return found[found >= 0]

    def _weigh(self, row: int, candidates: Codes) -> FloatArray:
        task = self._task
        if len(candidates) == 0:
            return np.zeros(0)
        weight = task.choices.log_of(candidates, np.array([row]))
        if task.choices.residual:
            broken = breaks_checks(task, candidates[None, :], np.array([row]))[0]
            weight = np.where(broken, -np.inf, weight)
        for index, strength in zip(self._indexes, self._weights, strict=True):
            rows = {n: candidates if n == self._name else task.columns[n][row : row + 1] for n in index.attributes}
            clashes = index.count(rows)
            weight = weight - strength * clashes if strength is not None else np.where(clashes > 0, -np.inf, weight)
        return np.asarray(weight)

    def _change(self, row: int, count: int) -> None:
        task = self._task
        for index in self._indexes:
            codes = {n: int((self.codes if n == self._name else task.columns[n])[row]) for n in index.attributes}
            index.add(codes, count)
