"""Fenced: hard constraints that leave each row a range of values. Rows in random order, each given those before it.

As in Algorithm 3, a row sees the rows that are settled, and takes a value from the model's conditional cut down to what
they leave. Here that is a range, so all values are weighed, and none is tried in vain. Ranges are found by divide and
conquer. The first half of the rows is settled, then tightens the ranges of the second half all at once, and so on down
to a few rows, which are settled one by one: n rows take n (log n)^2 operations for two other orders.

Nulls come first, for each row as often as the model has them, and take no part.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kamino.arrays import IntArray
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.partners.block import DEAD
from kamino.sampling.partners.fences import Bounds, Fence, is_fenced
from kamino.sampling.steps.free import breaks_checks, few_codes, likeliest
from kamino.sampling.steps.ranges import Ranges
from kamino.sampling.steps.task import Task

# So many rows are settled one by one.
_FEW = 32
# Draws for a row from its range: those after it in the few may narrow it, and checks may forbid some.
_DRAWN = 4
_DRAWN_WITH_CHECKS = 24
# After the first pass, at most so many rows are drawn once more, seeing all others.
_MOST_SWEPT = 20_000
# Domains without an order are listed value by value, up to this size.
_LISTED = 4096


def can_fence(task: Task) -> bool:
    """Whether all constraints of the step leave ranges, of a domain in which ranges are runs of codes."""
    ordered = task.judge.codec[task.step.attribute].ordered
    short = int(task.choices.width.sum()) <= _LISTED
    return (ordered or short) and all(is_fenced(c, task.step.attribute) for c in task.step.constraints)


def draw_fenced(task: Task) -> IntArray:
    """Draw rows in random order, each from what those before it leave; then some of them once more.

    Guarantees:
        Rows that are not dead break no constraint of the step.  [test_fenced_columns_hold]
        Rows follow p given that they break nothing with those before.  [test_fenced_rows_follow_algorithm_3]
    """
    nulls = task.choices.draw_nulls(task.rng)
    drawing = _Drawing(replace(task, choices=task.choices.without_null()))
    rows = task.rng.permutation(np.flatnonzero(~nulls))
    drawing.settle(rows)
    drawing.settle_again(task.rng.permutation(rows)[:_MOST_SWEPT])
    return task.with_nulls(drawing.codes, nulls)


class _Drawing:
    """The column as far as it is drawn, and the range of each row that is being drawn."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._codec = task.judge.codec[task.step.attribute]
        self._ranges = Ranges(task.choices, self._codec, task.rng)
        self._fences = [
            Fence(c, task.judge, task.step.attribute, task.columns, task.num_rows) for c in task.step.constraints
        ]
        self._bounds = Bounds.of(task.num_rows)
        self.codes: IntArray = np.full(task.num_rows, DEAD, dtype=np.int64)
        self._keys: IntArray = np.full(task.num_rows, DEAD, dtype=np.int64)

    def settle(self, rows: IntArray) -> None:
        """Draw rows, each given those that are settled, in this order."""
        if len(rows) <= _FEW:
            self._settle_few(rows)
            return
        first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        self._tighten(first, second)
        self.settle(first)
        self._tighten(second, first)
        self.settle(second)

    def settle_again(self, rows: IntArray) -> None:
        """Draw rows once more, each given all others."""
        self._bounds.reset(rows)
        others = np.ones(self._task.num_rows, dtype=np.bool_)
        others[rows] = False
        self._tighten(rows, np.flatnonzero(others))
        self.settle(rows)

    def _tighten(self, rows: IntArray, by: IntArray) -> None:
        settled = by[self.codes[by] != DEAD]
        if len(settled):
            for fence in self._fences:
                fence.tighten(self._bounds, rows, settled, self._keys[settled])

    def _settle_few(self, rows: IntArray) -> None:
        if len(rows) == 0:
            return
        ties = [fence.among(rows) for fence in self._fences]
        low, high = self._bounds.low[rows], self._bounds.high[rows]
        drawn = self._draw(rows, low, high)
        keys, there = self._keys[rows], self.codes[rows] != DEAD
        drawn_keys = self._codec.order_keys(np.maximum(drawn, 0)).tolist()
        for place, row in enumerate(rows.tolist()):
            least, most = int(low[place]), int(high[place])
            for each in ties:
                least, most = each.tighten(least, most, place, keys, there)
            code = _first_inside(drawn[place].tolist(), drawn_keys[place], least, most)
            if code == DEAD and least <= most:
                more = self._draw(rows[place : place + 1], np.array([least]), np.array([most]))[0]
                code = int(more[np.argmax(more != DEAD)])
            if code != DEAD:
                key = int(self._codec.order_keys(np.array([code]))[0])
                self.codes[row], self._keys[row] = code, key
                keys[place], there[place] = key, True

    def _draw(self, rows: IntArray, low: IntArray, high: IntArray) -> IntArray:
        """Draw a line of codes inside each row's range; `DEAD` where checks forbid one, or nothing is left."""
        task = self._task
        codes = self._ranges.draw(rows, low, high, _DRAWN_WITH_CHECKS if task.choices.residual else _DRAWN)
        if not task.choices.residual:
            return codes
        codes = np.where(breaks_checks(task, codes, rows), DEAD, codes)
        missed = np.flatnonzero((codes == DEAD).all(axis=1))
        if len(missed):
            codes[missed, 0] = self._try_few(rows[missed], low[missed], high[missed])
        return codes

    def _try_few(self, rows: IntArray, low: IntArray, high: IntArray) -> IntArray:
        """Where checks leave so little of a range that no draw hits it: a code beside what they compare with."""
        codes = few_codes(self._task, rows)
        keys = self._codec.order_keys(codes)
        inside: Mask = (keys >= low[:, None]) & (keys <= high[:, None])
        return likeliest(self._task, rows, np.where(inside, codes, DEAD))


def _first_inside(codes: list[int], keys: list[int], least: int, most: int) -> int:
    return next((c for c, key in zip(codes, keys, strict=True) if c != DEAD and least <= key <= most), DEAD)
