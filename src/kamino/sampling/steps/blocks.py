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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.arrays import FloatArray, IntArray, stable_order
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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """Rows that are drawn together. Those that weigh codes alike share a line.

    `first` is the place of one row of each line, and `line` is the line of each row.
    """

    rows: IntArray
    first: IntArray
    line: IntArray


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
            self._log_listed = np.ascontiguousarray(self._choices.log_weight[:, bins] + density)
        self._points: FloatArray = np.zeros(task.num_rows)
        self._partners: dict[DenialConstraint, Partners] = {
            c: make_partners(c, task.judge, task.step.attribute, task.columns, task.num_rows, listed)
            for c in self._price
        }
        self._kind = self._kinds()
        self._is_tabled = all(isinstance(partners, Tabled) for partners in self._partners.values())
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
        block = np.empty(len(order), dtype=np.int64)
        block[order] = np.repeat(np.arange(len(blocks)), [len(rows) for rows in blocks])
        if self._listed is not None:
            # Rows of one context share out the codes of their block evenly, as free draws do. Blocks are drawn given
            # the others, so their points must not depend on each other.
            self._points = spread_points(join_keys([block, self._choices.context]), self._task.rng)
        self._priced = [(self._price[c], c.is_unary, partners) for c, partners in self._partners.items()]
        is_shared = self._kind is not None and len(blocks[-1]) >= _FEW
        for part in self._shared_lines(block) if is_shared else _own_lines(blocks):
            self._draw(part)
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

    def _draw(self, part: _Part) -> None:
        rows = part.rows
        old = self.codes[rows]
        weight, candidates = self._weigh(rows[part.first], old[part.first])
        if self._listed is not None:
            place = self._spread(rows, weight, part.line)
            new = self._listed[np.maximum(place, 0)]
        else:
            place = draw_one_each(weight, self._task.rng)
            new = candidates[np.arange(len(rows)), np.maximum(place, 0)]
        none = np.flatnonzero(place < 0)
        new[none] = np.where(old[none] >= 0, old[none], self._fallback[rows[none]])
        self.codes[rows] = new
        if self._first:
            self._settled += int((new >= 0).sum()) - int((old >= 0).sum())
        for _, _, partners in self._priced:
            if isinstance(partners, Tabled):
                partners.move(rows, old, new)

    def _shared_lines(self, block: IntArray) -> Iterator[_Part]:
        """Sort the rows of each block by what they weigh: their contexts, and their codes so far.

        A row's code stays until its own block is drawn, so that the rows of all blocks are sorted at once.
        """
        assert self._kind is not None, "rows are told apart by their kinds"
        kind, size = self._kind
        weighed = kind * (size + 1) + self.codes + 1
        rows = stable_order(block, weighed)
        new = np.append(True, (np.diff(weighed[rows]) != 0) | (np.diff(block[rows]) != 0))
        line = np.cumsum(new)
        begin = np.append(0, np.cumsum(np.bincount(block)))
        for start, end in zip(begin[:-1].tolist(), begin[1:].tolist(), strict=True):
            first = np.flatnonzero(new[start:end])
            yield _Part(rows=rows[start:end], first=first, line=line[start:end] - line[start])

    def _weigh(self, rows: IntArray, old: IntArray) -> tuple[FloatArray, IntArray]:
        """Return the logarithms of the weights of candidates, and these: a line for each row, or one for all."""
        candidates, weight = self._candidates(rows)
        to_come = self._task.num_rows / max(1, self._settled) if self._first else 1.0
        block = None if self._is_tabled else self._block(rows, candidates)
        for price, is_unary, partners in self._priced:
            scale = price if is_unary else price * to_come
            if isinstance(partners, Tabled):
                found = partners.of_listed(rows, old)
                found *= scale
                weight -= found
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

    def _block(self, rows: IntArray, candidates: IntArray) -> Block:
        """What partners that count anew for each block are told."""
        outside = self.codes.copy()
        outside[rows] = DEAD
        return Block(rows=rows, candidates=candidates, listed=False, outside=outside, inside=self.codes[rows])

    def _candidates(self, rows: IntArray) -> tuple[IntArray, FloatArray]:
        """Codes to weigh, and the logarithm of what the model gives them: a line for each row.

        Codes that are the same for all rows stay one line where nothing but tables is asked.
        """
        task = self._task
        if self._listed is not None:
            candidates = self._listed[None, :]
            if task.choices.residual or not self._is_tabled:
                candidates = np.broadcast_to(candidates, (len(rows), len(self._listed)))
            assert self._log_listed is not None
            weight = self._log_listed.take(self._choices.context[rows], axis=0)
        else:
            drawn = self._choices.draw(task.rng, np.repeat(rows, _DRAWN), independent=True)
            candidates = np.column_stack([drawn.reshape(-1, _DRAWN), self.codes[rows]])
            weight = np.where(candidates < 0, -np.inf, 0.0)
        if task.choices.residual:
            weight = np.where(breaks_checks(task, candidates, rows), -np.inf, weight)
        return candidates, weight

    def _spread(self, rows: IntArray, weight: FloatArray, line: IntArray) -> IntArray:
        """Draw a place for each row from its line, at the row's point of this sweep."""
        top = weight.max(axis=1, initial=-np.inf)
        alive = np.isfinite(top)
        weight -= np.where(alive, top, 0.0)[:, None]
        cumulative = np.cumsum(np.exp(weight, out=weight), axis=1, out=weight)
        return np.where(alive[line], _places_at(cumulative, line, self._points[rows]), -1)


def _places_at(cumulative: FloatArray, line: IntArray, points: FloatArray) -> IntArray:
    """Return the place of each point of [0, 1) in its line of running sums: by halving, all rows side by side.

    Guarantees:
        Equal to searching line by line.  [test_points_find_their_places]
    """
    last = cumulative.shape[1] - 1
    sums, begin = cumulative.ravel(), line * (last + 1)
    target = points * cumulative[:, -1].take(line)
    place = np.zeros(len(line), dtype=np.int64)
    for bit in reversed(range(last.bit_length())):
        further = np.minimum(place + (1 << bit), last)
        place = np.where(sums.take(begin + further - 1) <= target, further, place)
    return place


def _own_lines(blocks: Sequence[IntArray]) -> Iterator[_Part]:
    """Let each row have a line of its own."""
    for rows in blocks:
        each = np.arange(len(rows), dtype=np.int64)
        yield _Part(rows=rows, first=each, line=each)
