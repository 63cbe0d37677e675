"""Chain: a hard order of A against an earlier attribute x, within equal groups. The column is monotone in each group.

In small groups, exact where each value has a bin of its own. Where bins are wider, bins are drawn exactly, and values
inside are then put in order. Putting each group's values in order at the end changes nothing in the first case, and
makes the order certain in both. Nulls come first, for each row as often as the model has them, and take no part.

In large groups, values are drawn freely and then change places: see `rearranged`. Where rows of equal x must have equal
values, too, all of them take the middle one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kamino.arrays import IntArray, stable_order
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.codes.grouping import first_success, join_keys
from kamino.sampling.partners import DEAD
from kamino.sampling.plan.shapes import Order, joint_order
from kamino.sampling.steps.chain.chain_cells import ChainCells, make_cells
from kamino.sampling.steps.chain.chain_filter import Blocks, State, sample_states
from kamino.sampling.steps.chain.rearranged import rearrange
from kamino.sampling.steps.task import Task

_MAX_LEVELS = 4096
_WORK = 1.5e9
_TABLE = 2e7
# Numbers of a table of rows by cells that are at hand at a time: they stay in the second-level cache.
_PIECE = 1 << 16
# Beyond this many rows in a group, the exact conditional drifts from the model's marginals: measured 0.092 in total
# variation where rearranging gives 0.011, on a column whose free draws have 0.005.
_EXACT_ROWS = 64


def draw_chain(task: Task) -> IntArray:
    """Draw the column jointly; rows with a null in the group or in x are free, and any row may be null.

    Guarantees:
        The order holds on values.  [test_chain_holds]
        With a bin for each value and groups of at most 64 rows, the column follows the product of the rows'
        distributions, given the nulls and that it breaks no order.  [test_chain_is_exact,
        test_chain_with_nulls_is_exact]
        Nulls are as frequent as in the model.  [test_chain_keeps_the_share_of_nulls]
    """
    order = joint_order(task.step.constraints, task.step.attribute)
    assert order is not None, "the planner gives this step to orders only"
    nulls = task.choices.draw_nulls(task.rng)
    bound = task.present(order.groups | {order.earlier}) & ~nulls
    codes = np.full(task.num_rows, DEAD, dtype=np.int64)
    values = replace(task, choices=task.choices.without_null())
    free = np.flatnonzero(~bound & ~nulls)
    codes[free] = values.choices.draw(task.rng, free)
    rows = np.flatnonzero(bound)
    if len(rows):
        group = task.keys(order.groups)[rows]
        height = task.judge.codec[order.earlier].order_keys(task.columns[order.earlier][rows])
        large = int(np.bincount(join_keys([group])).max()) > _EXACT_ROWS
        draw = _draw_rearranged if large and not task.step.checks else _draw_bound
        codes[rows] = draw(values, order, rows, group, height)
    return task.with_nulls(codes, nulls)


def _draw_rearranged(task: Task, order: Order, rows: IntArray, group: IntArray, height: IntArray) -> IntArray:
    """Draw each row by itself, then let values change places within their group."""
    codec = task.judge.codec[task.step.attribute]
    codes = task.choices.draw(task.rng, rows)
    held = np.flatnonzero(codes != DEAD)
    if len(held):
        key = codec.order_keys(codes[held])
        rank = -key if order.falling else key
        source = rearrange(rank, group[held], height[held])
        codes[held] = codes[held][source]
        if order.ties_equal:
            codes[held] = codes[held][_middle_rows(rank[source], group[held], height[held])]
    return codes


def _middle_rows(rank: IntArray, group: IntArray, height: IntArray) -> IntArray:
    """Return, for each row, the row with the middle rank among those of its group and height.

    The middle of a height never lies below the middle of a lower one, and a value keeps about the rows it has.
    """
    order = stable_order(group, height, rank)
    change = (np.diff(group[order]) != 0) | (np.diff(height[order]) != 0)
    begin = np.concatenate([[0], np.flatnonzero(change) + 1])
    size = np.diff(np.append(begin, len(order)))
    middle = np.empty(len(order), dtype=np.int64)
    middle[order] = np.repeat(order[begin + size // 2], size)
    return middle


def _draw_bound(task: Task, order: Order, rows: IntArray, group: IntArray, height: IntArray) -> IntArray:
    codec = task.judge.codec[task.step.attribute]
    context = task.choices.context[rows]
    pairs = int(join_keys([group, height, context]).max()) + 1
    num_contexts = len(task.choices.log_weight)
    limit = int(np.clip(min(np.sqrt(_WORK / pairs), np.sqrt(_TABLE / num_contexts)), 8, 96))
    cells = make_cells(task.choices, codec, falling=order.falling, max_cells=limit)
    if cells.num_cells == 0:
        return task.choices.draw(task.rng, rows)
    block, chain = _blocks(group, height, coarse=not order.ties_equal)
    blocks = Blocks(block=block, context=context, chain=chain)
    prior, after = sample_states(cells, blocks, ties_equal=order.ties_equal, rng=task.rng)
    cell = _draw_cells(cells, blocks, prior, after, ties_equal=order.ties_equal, rng=task.rng)
    result = np.full(len(rows), DEAD, dtype=np.int64)
    held = np.flatnonzero(cell >= 0)
    if order.ties_equal:
        _, leader, member = np.unique(block[held], return_index=True, return_inverse=True)
        drawn = cells.draw_codes(context[held][leader], cell[held][leader], task.rng)
        drawn = _in_order(drawn, group[held][leader], height[held][leader], codec.order_keys(drawn), order)
        result[held] = drawn[member]
    elif len(held):
        drawn = cells.draw_codes(context[held], cell[held], task.rng)
        result[held] = _in_order(drawn, group[held], height[held], codec.order_keys(drawn), order)
    return result


def _blocks(group: IntArray, height: IntArray, *, coarse: bool) -> tuple[IntArray, IntArray]:
    """Number the blocks along their chains; where a chain is very long and it may be, neighbours share a block."""
    order = stable_order(group, height)
    g, h = group[order], height[order]
    new_chain = np.concatenate([[True], g[1:] != g[:-1]])
    new_block = new_chain | np.concatenate([[True], h[1:] != h[:-1]])
    chain = np.cumsum(new_chain) - 1
    block = np.cumsum(new_block) - 1
    begin = np.flatnonzero(new_chain)
    level = block - block[begin][chain]
    if coarse and int(level.max()) >= _MAX_LEVELS:
        lengths = np.diff(np.append(begin, len(g)))
        share = (np.arange(len(g)) - begin[chain]) / lengths[chain]
        long = (np.maximum.reduceat(level, begin) >= _MAX_LEVELS)[chain]
        level = np.where(long, (share * _MAX_LEVELS).astype(np.int64), level)
        new_block = new_chain | np.concatenate([[True], level[1:] != level[:-1]])
        block = np.cumsum(new_block) - 1
    numbered = np.empty(len(g), dtype=np.int64)
    numbered[order] = block
    return numbered, chain[np.flatnonzero(new_block)]


def _draw_cells(
    cells: ChainCells,
    blocks: Blocks,
    prior: IntArray,
    after: IntArray,
    *,
    ties_equal: bool,
    rng: np.random.Generator,
) -> IntArray:
    """Draw each row's cell given the states around its block; -1 where there is none."""
    low, high = np.maximum(prior, 0)[blocks.block], after[blocks.block]
    low = np.where(ties_equal | (high < low), high, low)
    risen = (after > prior)[blocks.block]
    p = cells.probability
    cumulative = np.concatenate([np.zeros((len(p), 1)), np.cumsum(p, axis=1)], axis=1)
    top = p[blocks.context, np.maximum(high, 0)]
    inside = cumulative[blocks.context, high + 1] - cumulative[blocks.context, np.maximum(low, 0)]
    every = np.maximum(inside, top)
    rows = np.flatnonzero(risen & (high >= 0))
    chance = np.divide(top[rows], every[rows], out=np.ones(len(rows)), where=every[rows] > 0)
    first = np.zeros(len(blocks.block), dtype=np.bool_)
    first[rows] = first_success(blocks.block[rows], chance, rng)
    place = np.full(len(after), -1, dtype=np.int64)
    place[blocks.block[first]] = np.flatnonzero(first)
    before = risen & (np.arange(len(first)) < place[blocks.block])
    high = np.where(before, high - 1, high)
    result = np.empty(len(first), dtype=np.int64)
    lines = max(1, _PIECE // cells.num_cells)
    for start in range(0, len(first), lines):
        piece = slice(start, start + lines)
        result[piece] = _draw_between(cells, blocks.context[piece], low[piece], high[piece], rng)
    result[first] = after[blocks.block[first]]
    result[after[blocks.block] == State.NO_SOLUTION] = DEAD
    return result


def _draw_between(
    cells: ChainCells, context: IntArray, low: IntArray, high: IntArray, rng: np.random.Generator
) -> IntArray:
    """Draw a cell from `low` to `high` for each row; -1 where none has weight."""
    places = np.arange(cells.num_cells)[None, :]
    inside: Mask = (places >= low[:, None]) & (places <= high[:, None])
    ends = np.cumsum(np.where(inside, cells.probability[context], 0.0), axis=1)
    target = rng.random(len(context)) * ends[:, -1]
    found = np.minimum((ends <= target[:, None]).sum(axis=1), high)
    return np.where(ends[:, -1] > 0, found, -1)


def _in_order(codes: IntArray, group: IntArray, height: IntArray, key: IntArray, order: Order) -> IntArray:
    """Hand out each group's codes so that they follow `height`; rows of equal height keep their own order."""
    rank = -key if order.falling else key
    rows = stable_order(group, height, rank)
    values = stable_order(group, rank)
    result = np.empty(len(codes), dtype=np.int64)
    result[rows] = codes[values]
    return result
