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
from kamino.sampling.codes.grouping import join_keys
from kamino.sampling.codes.stratified import draw_one_each, spread_points
from kamino.sampling.partners import DEAD, Block, Partners, make_partners
from kamino.sampling.partners.tabled import Tabled
from kamino.sampling.partners.violation_rates import rate_among
from kamino.sampling.steps.free import breaks_checks, draw_free
from kamino.sampling.steps.task import Task
from kamino.schema.coding.joint_codes import MOST_NUMBERS, number_values

_BLOCKS = 64
# Draws from the model are counted by kernels, which take time for all rows in each block: fewer blocks.
_LARGE_BLOCKS = 24
# Up to this many codes are weighed one by one; where no constraint asks for an order, counting them is cheap.
_LISTED = 64
LISTED_UNORDERED = 256
_DRAWN = 12
# In a block of fewer rows, looking for rows that are alike takes longer than weighing each.
_FEW = 256
# A price moves by this power of how far its rate is off, and by no more than this factor, after each sweep. Where a
# rate hardly follows, the power doubles, up to the largest; where it went too far, the power is halved.
_GAIN, _MOST_GAIN = 0.25, 8.0
_MOST_STEP, _LARGE_STEP = 1.3, 2.0
_HARDLY = 0.8
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
        self._log_listed: FloatArray | None = None
        if listed is not None:
            bins, density = self._choices.spots(listed)
            self._log_listed = self._choices.log_weight[:, bins] + density
        self._points: FloatArray = np.zeros(task.num_rows)
        self._partners: dict[DenialConstraint, Partners] = {
            c: make_partners(c, task.judge, task.step.attribute, task.columns, task.num_rows, listed)
            for c in self._price
        }
        self._kind = self._kinds()
        self._gain: dict[DenialConstraint, float] = {}
        self._off: dict[DenialConstraint, float] = {}
        self._first = True
        self._settled = 0
        self.codes: IntArray = np.full(task.num_rows, DEAD, dtype=np.int64)
        # What is found for rows without any candidate that passes the checks.
        self._fallback = draw_free(task) if task.choices.residual else self.codes.copy()

    def rates(self) -> dict[DenialConstraint, float]:
        """The violation rate of each constraint so far."""
        return self._rates(self._price)

    def _rates(self, constraints: Iterable[DenialConstraint]) -> dict[DenialConstraint, float]:
        return {c: self._rate(self._partners[c], is_unary=c.is_unary) for c in constraints}

    def _rate(self, partners: Partners, *, is_unary: bool) -> float:
        return partners.rate(self.codes) if isinstance(partners, Tabled) else rate_among(partners, self.codes, is_unary)

    def sweep(self) -> None:
        """Draw every row once, in random blocks."""
        order = self._task.rng.permutation(self._task.num_rows)
        number = _BLOCKS if self._listed is not None else _LARGE_BLOCKS
        blocks = np.array_split(order, min(number, len(order)))
        if self._listed is not None:
            # Rows of one context share out the codes of their block evenly, as free draws do. Blocks are drawn given
            # the others, so their points must not depend on each other.
            block = np.empty(len(order), dtype=np.int64)
            block[order] = np.repeat(np.arange(len(blocks)), [len(rows) for rows in blocks])
            self._points = spread_points(join_keys([block, self._choices.context]), self._task.rng)
        for rows in blocks:
            self._draw(rows)
        self._first = False

    def steer(self) -> bool:
        """Move prices towards the rates asked for; False if all are near: which way a group of rows falls is chance."""
        targets = {c: rate for c, rate in self._task.targets.items() if c in self._price and rate > 0}
        rates = self._rates(targets)
        off = {c: float(np.log(max(rates[c], 1e-12) / target)) for c, target in targets.items()}
        for constraint, miss in off.items():
            gain = self._gain[constraint] = self._next_gain(constraint, miss)
            most = _MOST_STEP if gain <= _GAIN else _LARGE_STEP
            self._price[constraint] *= min(max(np.exp(gain * miss), 1 / most), most)
        self._off = off
        return any(abs(miss) > _NEAR for miss in off.values())

    def _next_gain(self, constraint: DenialConstraint, miss: float) -> float:
        gain, last = self._gain.get(constraint, _GAIN), self._off.get(constraint)
        if last is None or abs(miss) <= _NEAR:
            return gain
        if miss * last < 0:
            return max(gain / 2, _GAIN)
        return min(2 * gain, _MOST_GAIN) if abs(miss) > _HARDLY * abs(last) else gain

    def _draw(self, rows: IntArray) -> None:
        old = self.codes[rows]
        first, alike = self._alike(rows, old)
        weight, candidates = self._weigh(rows[first], old[first])
        if self._listed is not None:
            place = self._spread(rows, weight, alike)
            chosen = self._listed[np.maximum(place, 0)]
        else:
            place = draw_one_each(weight, self._task.rng)
            chosen = candidates[np.arange(len(rows)), np.maximum(place, 0)]
        kept = np.where(old >= 0, old, self._fallback[rows])
        new = np.where(place < 0, kept, chosen)
        self.codes[rows] = new
        self._settled += int((new >= 0).sum()) - int((old >= 0).sum())
        for partners in self._partners.values():
            if isinstance(partners, Tabled):
                partners.move(rows, old, new)

    def _alike(self, rows: IntArray, old: IntArray) -> tuple[IntArray, IntArray]:
        """Number the rows that weigh codes alike, and name one of each: equal contexts, and equal codes so far."""
        if self._kind is None or len(rows) < _FEW:
            everyone = np.arange(len(rows), dtype=np.int64)
            return everyone, everyone
        kind, size = self._kind
        alike, number = number_values(kind[rows] * (size + 1) + old + 1)
        first = np.empty(number, dtype=np.int64)
        first[alike] = np.arange(len(rows))
        return first, alike

    def _weigh(self, rows: IntArray, old: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the logarithms of the weights of candidates, and these: a line for each row."""
        candidates, weight = self._candidates(rows)
        seen = max(1, self._settled) if self._first else self._task.num_rows
        block = self._block(rows, candidates)
        for constraint, partners in self._partners.items():
            scale = self._price[constraint] * (1.0 if constraint.is_unary else self._task.num_rows / seen)
            if isinstance(partners, Tabled):
                weight -= scale * partners.of_listed(rows, old)
            else:
                assert block is not None, "all partners but those in tables need it"
                weight -= scale * partners.of_block(block)
        return weight, candidates

    def _kinds(self) -> tuple[IntArray, int] | None:
        """Number the rows by their contexts, in the model and for each constraint, where nothing else tells them apart.

        With the number of codes. None where partners are counted row by row, or checks differ from row to row.
        """
        tabled = [partners.contexts for partners in self._partners.values() if isinstance(partners, Tabled)]
        if self._listed is None or len(tabled) < len(self._partners) or self._task.choices.residual:
            return None
        size = self._task.judge.codec[self._task.step.attribute].size
        kinds, number = number_values(join_keys([self._choices.context, *tabled]))
        return (kinds, size) if number * (size + 1) <= MOST_NUMBERS else None

    def _block(self, rows: IntArray, candidates: IntArray) -> Block | None:
        """What partners that count anew for each block are told; None if there are none."""
        if all(isinstance(partners, Tabled) for partners in self._partners.values()):
            return None
        outside = self.codes.copy()
        outside[rows] = DEAD
        return Block(rows=rows, candidates=candidates, listed=False, outside=outside, inside=self.codes[rows])

    def _candidates(self, rows: IntArray) -> tuple[IntArray, FloatArray]:
        """Codes to weigh, a line for each row, and the logarithm of what the model gives them."""
        task = self._task
        if self._listed is not None:
            candidates = np.broadcast_to(self._listed, (len(rows), len(self._listed)))
            assert self._log_listed is not None
            weight = self._log_listed[self._choices.context[rows]]
        else:
            drawn = [self._choices.draw(task.rng, rows, independent=True) for _ in range(_DRAWN)]
            candidates = np.stack([*drawn, self.codes[rows]], axis=1)
            weight = np.where(candidates < 0, -np.inf, 0.0)
        if task.choices.residual:
            weight = np.where(breaks_checks(task, candidates, rows), -np.inf, weight)
        return candidates, weight

    def _spread(self, rows: IntArray, weight: FloatArray, alike: IntArray) -> IntArray:
        """Draw a place for each row from the line that `alike` names, at the row's point of this sweep."""
        top = weight.max(axis=1, initial=-np.inf)
        weight -= np.where(np.isfinite(top), top, 0.0)[:, None]
        cumulative = np.cumsum(np.exp(weight, out=weight), axis=1, out=weight)
        cumulative /= np.maximum(cumulative[:, -1:], 1e-300)
        # One ascending array for all lines: line k holds the stretch from 2k to 2k + 1.
        cumulative += 2.0 * np.arange(len(weight))[:, None]
        size = weight.shape[1]
        place = np.searchsorted(cumulative.ravel(), 2.0 * alike + self._points[rows], side="right") - alike * size
        return np.where(np.isfinite(top)[alike], np.minimum(place, size - 1), -1)
