"""The paper's Algorithm 3: each row in turn sees the rows before it; then cells are drawn again.

A candidate v of row i has the weight p(v | c_i) * exp(-sum of w * violations), where violations are counted with the
rows before row i, in either direction, and a hard constraint's w is infinite. Where the codes are few or have no order,
a row weighs all of them. Elsewhere it weighs d draws from p: draws stand for p, so the violations alone decide among
them. Where a row draws again, it sees all other rows, and its present value is one of the candidates, so that drawing
again keeps the law.

Where no draw is clean, values that are already there are tried, weighed by p; a row for which these fail, too, tries
again once the others are settled.

Two samplers use it. Row by row it is the paper's own. Constraint-aware sampling takes it for what no joint draw fits:
rows in random order, more candidates, and one sweep.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.partners import DEAD, Block, Partners, is_hashed, make_partners, rates_of
from kamino.sampling.steps.fenced import can_fence, draw_fenced
from kamino.sampling.steps.free import breaks_checks
from kamino.sampling.steps.spare import neighbouring_codes, new_codes
from kamino.sampling.steps.task import Task

# Up to this many codes are weighed one by one: of an ordered domain; of others; of those with quick counts.
_MOST_ORDERED = 256
_MOST_UNORDERED = 512
_MOST_HASHED = 1 << 16
# Rows are settled in blocks, for speed alone: what a row sees does not depend on them. Values to fall back on are found
# once for a block, so blocks that may need them are smaller.
_BLOCK = 256
_LISTED_BLOCK = 1024
_BLOCK_CELLS = 1 << 22
_RETRIES = 8
# Constraint-aware: how many values of a wide domain are weighed for a row, and how many rows are drawn again.
_CANDIDATES = 48
_MOST_SWEPT = 20_000


def draw_row_by_row(task: Task) -> IntArray:
    """Draw rows in the order in which they stand, then `task.sweeps` times as many cells again, in random order.

    Guarantees:
        Without sweeps, rows follow p * exp(-sum of w * violations with those before).  [test_rows_follow_algorithm_3]
        Sweeps keep the law p * exp(-sum of w * violations).  [test_sweeps_keep_the_law]
        Rows that are not dead break no hard constraint of the step.  [test_row_by_row_breaks_no_hard_constraint]
    """
    drawing = _Drawing(task)
    drawing.settle_all(np.arange(task.num_rows, dtype=np.int64))
    drawing.try_again()
    for number in range(task.sweeps + 1):
        if number:
            drawing.settle_all(task.rng.permutation(task.num_rows))
        if task.on_sweep is not None:
            task.on_sweep(task.step.attribute, number, drawing.rates())
    return drawing.codes


def draw_indexed(task: Task) -> IntArray:
    """Draw rows in random order, then one sweep over at most 20,000 of them. Soft constraints are not weighed.

    Where the constraints leave each row a range of values, no candidates have to be tried: see `fenced`.

    Guarantees:
        Rows that are not dead break no hard constraint of the step.  [test_indexed_holds]
    """
    if can_fence(task):
        return draw_fenced(task)
    drawing = _Drawing(replace(task, candidates=_CANDIDATES, penalties={}))
    order = task.rng.permutation(task.num_rows)
    drawing.settle_all(order)
    drawing.try_again()
    drawing.settle_all(task.rng.permutation(order)[:_MOST_SWEPT])
    return drawing.codes


class _Drawing:
    """The column as far as it is drawn, with the partners of each constraint over it."""

    def __init__(self, task: Task) -> None:
        self._task = task
        step = task.step
        self._hard = [c for c in step.constraints if c.is_hard]
        weighted = {c: c.strength.weight or 0.0 for c in step.constraints if not c.is_hard}
        self._prices = {c: price for c, price in (weighted | dict(task.penalties)).items() if price > 0}
        self.codes: IntArray = np.full(task.num_rows, DEAD, dtype=np.int64)
        self._listed = self._list_codes()
        self._spots = None if self._listed is None else task.choices.spots(self._listed)
        self._partners: list[tuple[Partners, float | None]] = [(self._make_partners(c), None) for c in self._hard]
        self._partners += [(self._make_partners(c), price) for c, price in self._prices.items()]

    def settle_all(self, rows: IntArray, *, last_resort: bool = False) -> None:
        """Draw each of these rows given all others that are settled, one after the other."""
        size = _BLOCK if self._listed is None else min(_LISTED_BLOCK, max(16, _BLOCK_CELLS // len(self._listed)))
        for start in range(0, len(rows), size):
            self._settle_block(rows[start : start + size], last_resort)

    def try_again(self) -> None:
        """Draw rows without a value again as long as that helps; where all codes were weighed, it cannot."""
        dead = np.flatnonzero(self.codes == DEAD)
        for _ in range(_RETRIES if self._listed is None else 0):
            if len(dead) == 0:
                return
            self.settle_all(dead, last_resort=True)
            left = np.flatnonzero(self.codes == DEAD)
            if len(left) == len(dead):
                return
            dead = left

    def rates(self) -> dict[DenialConstraint, float]:
        """The violation rate of each constraint with a price so far."""
        task = self._task
        return rates_of(task.judge.codec, {**task.columns, task.step.attribute: self.codes}, self._prices)

    def _make_partners(self, constraint: DenialConstraint) -> Partners:
        task = self._task
        return make_partners(constraint, task.judge, task.step.attribute, task.columns, task.num_rows, self._listed)

    def _list_codes(self) -> IntArray | None:
        task = self._task
        most = _MOST_HASHED if all(map(is_hashed, (*self._hard, *self._prices))) else _MOST_UNORDERED
        if task.judge.codec[task.step.attribute].ordered:
            most = _MOST_ORDERED
        return task.choices.codes() if int(task.choices.width.sum()) <= most else None

    def _settle_block(self, rows: IntArray, last_resort: bool) -> None:
        old = self.codes[rows]
        self.codes[rows] = DEAD
        candidates, parts = self._candidates(rows, old, last_resort)
        block = Block(rows=rows, candidates=candidates, listed=self._listed is not None, outside=self.codes, inside=old)
        for partners, _ in self._partners:
            partners.begin(block)
        points = self._task.rng.random(len(rows))
        new = old.copy()
        for place, before in enumerate(old.tolist()):
            if before != DEAD:
                self._change(place, before, -1)
            chosen = self._choose(place, candidates[place], parts, float(points[place]))
            new[place] = before if chosen == DEAD else chosen
            if new[place] != DEAD:
                self._change(place, int(new[place]), 1)
        self.codes[rows] = new

    def _change(self, place: int, code: int, count: int) -> None:
        for partners, _ in self._partners:
            partners.change(place, code, count)

    def _choose(self, place: int, candidates: IntArray, parts: list[FloatArray], point: float) -> int:
        """Draw a clean candidate of the first part that has one."""
        clean: Mask | None = None
        penalty: FloatArray | None = None
        for partners, price in self._partners:
            found = partners.count(place)
            if price is None:
                clean = found == 0 if clean is None else clean & (found == 0)
            else:
                penalty = np.asarray(price * found + (0.0 if penalty is None else penalty))
        start = 0
        for part in parts:
            weight = part[place]
            mine = slice(start, start + len(weight))
            start += len(weight)
            if penalty is not None:
                weight = _exponential(weight - penalty[mine], None if clean is None else clean[mine])
            elif clean is not None:
                weight = weight * clean[mine]
            total = np.cumsum(weight)
            if len(total) and total[-1] > 0:
                chosen = int(np.searchsorted(total, point * total[-1], side="right"))
                chosen = chosen if chosen < len(total) else int(np.flatnonzero(weight)[-1])
                return int(candidates[mine][chosen])
        return DEAD

    def _candidates(self, rows: IntArray, old: IntArray, last_resort: bool) -> tuple[IntArray, list[FloatArray]]:
        """Return the codes to weigh, a line for each row, and their weights in one part or in two.

        The second part is for rows that find no clean code in the first. A part holds the weights of its codes, or
        their logarithms where there are prices.
        """
        task = self._task
        if self._listed is not None:
            assert self._spots is not None
            bins, density = self._spots
            candidates = np.broadcast_to(self._listed, (len(rows), len(self._listed)))
            lines = task.choices.of_rows(rows)
            return candidates, [self._part(rows, candidates, (lines.log_weight[:, bins] + density)[lines.context])]
        drawn = task.choices.of_rows(np.repeat(rows, task.candidates)).draw(task.rng, independent=True)
        first = np.concatenate([drawn.reshape(len(rows), task.candidates), old[:, None]], axis=1)
        parts = [self._part(rows, first, np.where(first == DEAD, -np.inf, 0.0))]
        if np.all(old != DEAD):
            return first, parts
        spare = [neighbouring_codes(task, self._hard, rows, self.codes)]
        spare += [new_codes(task, self._hard, rows, self.codes)] if last_resort else []
        second = np.concatenate(spare, axis=1)
        log = np.where(second == DEAD, -np.inf, task.choices.log_of(np.maximum(second, 0), rows[:, None]))
        return np.concatenate([first, second], axis=1), [*parts, self._part(rows, second, log)]

    def _part(self, rows: IntArray, codes: IntArray, log: FloatArray) -> FloatArray:
        if self._task.choices.residual:
            log = np.where(breaks_checks(self._task, codes, rows), -np.inf, log)
        if self._prices:
            return log
        top = log.max(axis=1, keepdims=True, initial=-np.inf)
        return np.asarray(np.exp(log - np.where(np.isfinite(top), top, 0.0)))


def _exponential(log: FloatArray, clean: Mask | None) -> FloatArray:
    """Return weights from their logarithms, those that are not clean being zero, scaled so that none overflows."""
    if clean is not None:
        log = np.where(clean, log, -np.inf)
    top = log.max(initial=-np.inf)
    return np.asarray(np.exp(log - top)) if np.isfinite(top) else np.zeros(len(log))
