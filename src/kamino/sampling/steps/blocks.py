"""Blocks: constraints that may be violated, each at a price. Rows are drawn block by block, then drawn again in sweeps.

A candidate v of row i has the weight p(v | c_i) * exp(-sum of penalty * partners), where partners are the other rows
that violate a constraint together with row i if it takes v. In the first pass a block sees the rows of the blocks
before it, as in the paper's Algorithm 3, but each stands for as many as are still to come: otherwise most rows would be
drawn as if there were no constraint. In a sweep a block sees all other rows. Rows of one block do not see what the
others of the block are about to take: with many blocks that matters little, and a block costs a few array operations.

Where the codes are few, a row weighs all of them. Elsewhere it weighs a few draws from the model, beside the value it
has: draws stand for p, so the penalty alone decides among them, and the law that the sweeps keep is the same.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint
from kamino.constraints.tree import Comparison
from kamino.sampling.codes.stratified import draw_one_each, normalised, spread_points
from kamino.sampling.partners import DEAD, Block, Partners, make_partners
from kamino.sampling.partners.violation_rates import rate_among
from kamino.sampling.steps.free import breaks_checks, draw_free
from kamino.sampling.steps.task import Task

_BLOCKS = 64
# Draws from the model are counted by kernels, which take time for all rows in each block: fewer blocks.
_LARGE_BLOCKS = 24
# Up to this many codes are weighed one by one; where no constraint asks for an order, counting them is cheap.
_LISTED = 64
LISTED_UNORDERED = 256
_DRAWN = 12
# A price moves by this power of how far its rate is off, and by no more than this factor, after each sweep.
_GAIN = 0.25
_MOST_STEP = 1.3
_NEAR = 0.05
_STEERED = 12


def draw_blocks(task: Task) -> IntArray:
    """Draw a column whose soft constraints have their price in `task.penalties`; `task.sweeps` sweeps follow.

    Where `task.targets` names the rate to reach, up to twelve more sweeps move the price towards it.

    Guarantees:
        Sweeps keep the law p * exp(-penalty * violations), up to what rows of a block do not see of each other.
        [test_blocks_follow_their_law]
    """
    drawing = _Drawing(task)
    most = task.sweeps + (_STEERED if task.sweeps else 0)
    for number in range(most + 1):
        if number > task.sweeps and not drawing.steer():
            break
        drawing.sweep()
        if task.on_sweep is not None:
            task.on_sweep(task.step.attribute, number, drawing.rates())
    return drawing.codes


class _Drawing:
    """The column as far as it is drawn, and the means to draw more of it."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._price = {c: price for c, price in task.penalties.items() if price > 0}
        ordered = any(isinstance(p, Comparison) and p.op.is_order for c in self._price for p in c.predicates)
        few = int(task.choices.width.sum()) <= (_LISTED if ordered else LISTED_UNORDERED)
        self._choices = task.choices.by_code() if few else task.choices
        listed = np.sort(self._choices.starts) if few else None
        self._listed = listed
        self._partners: dict[DenialConstraint, Partners] = {
            c: make_partners(c, task.judge, task.step.attribute, task.columns, task.num_rows, listed)
            for c in self._price
        }
        self._first = True
        self.codes: IntArray = np.full(task.num_rows, DEAD, dtype=np.int64)
        # What is found for rows without any candidate that passes the checks.
        self._fallback = draw_free(task) if task.choices.residual else self.codes.copy()

    def rates(self) -> dict[DenialConstraint, float]:
        """The violation rate of each constraint so far."""
        return self._rates(self._price)

    def _rates(self, constraints: Iterable[DenialConstraint]) -> dict[DenialConstraint, float]:
        return {c: rate_among(self._partners[c], self.codes, c.is_unary) for c in constraints}

    def sweep(self) -> None:
        """Draw every row once, in random blocks."""
        order = self._task.rng.permutation(self._task.num_rows)
        blocks = _BLOCKS if self._listed is not None else _LARGE_BLOCKS
        for rows in np.array_split(order, min(blocks, len(order))):
            self._draw(rows)
        self._first = False

    def steer(self) -> bool:
        """Move prices towards the rates asked for; False if all are near: which way a group of rows falls is chance."""
        targets = {c: rate for c, rate in self._task.targets.items() if c in self._price and rate > 0}
        rates = self._rates(targets)
        off = {c: max(rates[c], 1e-12) / target for c, target in targets.items()}
        for constraint, ratio in off.items():
            self._price[constraint] *= min(max(ratio**_GAIN, 1 / _MOST_STEP), _MOST_STEP)
        return any(abs(np.log(ratio)) > _NEAR for ratio in off.values())

    def _draw(self, rows: IntArray) -> None:
        candidates, weight = self._candidates(rows)
        seen = max(1, int((self.codes >= 0).sum())) if self._first else self._task.num_rows
        outside, inside = self.codes.copy(), self.codes[rows]
        outside[rows] = DEAD
        block = Block(rows=rows, candidates=candidates, listed=False, outside=outside, inside=inside)
        for constraint, partners in self._partners.items():
            scale = 1.0 if constraint.is_unary else self._task.num_rows / seen
            weight = weight - self._price[constraint] * scale * partners.of_block(block)
        place = self._spread(rows, weight) if self._listed is not None else draw_one_each(weight, self._task.rng)
        chosen = candidates[np.arange(len(rows)), np.maximum(place, 0)]
        kept = np.where(self.codes[rows] >= 0, self.codes[rows], self._fallback[rows])
        self.codes[rows] = np.where(place < 0, kept, chosen)

    def _candidates(self, rows: IntArray) -> tuple[IntArray, FloatArray]:
        """Codes to weigh, a line for each row, and the logarithm of what the model gives them."""
        task = self._task
        if self._listed is not None:
            candidates = np.broadcast_to(self._listed, (len(rows), len(self._listed)))
            weight = self._choices.log_of(candidates, rows[:, None])
        else:
            drawn = [self._choices.draw(task.rng, rows, independent=True) for _ in range(_DRAWN)]
            candidates = np.stack([*drawn, self.codes[rows]], axis=1)
            weight = np.where(candidates < 0, -np.inf, 0.0)
        if task.choices.residual:
            weight = np.where(breaks_checks(task, candidates, rows), -np.inf, weight)
        return candidates, weight

    def _spread(self, rows: IntArray, weight: FloatArray) -> IntArray:
        """Draw a place for each row; rows of one context share out the places evenly, as free draws do."""
        top = weight.max(axis=1, initial=-np.inf)
        cumulative = np.cumsum(normalised(weight), axis=1)
        _, groups = np.unique(self._choices.context[rows], return_inverse=True)
        points = spread_points(groups.astype(np.int64), self._task.rng) * cumulative[:, -1]
        place = np.minimum((cumulative <= points[:, None]).sum(axis=1), weight.shape[1] - 1)
        return np.where(np.isfinite(top), place, -1)
