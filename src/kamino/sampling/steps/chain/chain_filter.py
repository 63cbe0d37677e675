"""Forward filtering and backward sampling of monotone chains.

A chain is a row of blocks; a block is a set of rows of equal x. Every value of a block is at least every value of the
blocks before it; rows of one block are free among themselves (or all equal, with `ties_equal`). The state after a
block is the greatest cell so far, or nothing yet. For a block that moves the state from m to u,

    W(m, u) = product over its rows of P(cells m..u),    E(m, u) = W(m, u) - W(m, u - 1),

since the state becomes u exactly if all rows lie in m..u and one is u. All chains are filtered side by side.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.sampling.codes.grouping import count_matrix
from kamino.sampling.codes.stratified import draw_one_each
from kamino.sampling.steps.chain.chain_cells import ChainCells

_PIECE = 1 << 22
_TINY = 1e-290


class State(enum.IntEnum):
    """What stands in place of a cell: before the first value of a chain, and in a chain without a solution."""

    NOTHING_YET = -1
    NO_SOLUTION = -2


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """Rows in blocks, blocks in chains. Blocks are numbered along their chains, chain after chain.

    `block` is the block of each row and `context` its context; `chain` is the chain of each block.
    """

    block: IntArray
    context: IntArray
    chain: IntArray

    @property
    def level(self) -> IntArray:
        """The place of each block in its chain."""
        begin = np.searchsorted(self.chain, np.arange(int(self.chain.max(initial=-1)) + 1))
        return np.asarray(np.arange(len(self.chain)) - begin[self.chain])


def sample_states(
    cells: ChainCells, blocks: Blocks, *, ties_equal: bool, rng: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw the state before and after each block: a cell, or a `State`.

    Guarantees:
        States have their exact joint law.  [test_chain_is_exact]
    """
    size, num_blocks = cells.num_cells, len(blocks.chain)
    counts = count_matrix(blocks.block, blocks.context, num_blocks, len(cells.probability))
    table = _tables(cells, ties_equal=ties_equal)
    level = blocks.level
    by_level = np.argsort(level, kind="stable")
    ends = np.searchsorted(level, np.arange(int(level.max(initial=-1)) + 2), sorter=by_level)
    # State 0 is "nothing yet", state s + 1 is cell s.
    forward = np.full((num_blocks, size + 1), -np.inf)
    for step in range(len(ends) - 1):
        here = by_level[ends[step] : ends[step + 1]]
        lines = max(1, _PIECE // (size + 1) ** 2)
        for start in range(0, len(here), lines):
            piece = here[start : start + lines]
            before = _start_state(len(piece), size) if step == 0 else forward[piece - 1]
            forward[piece] = _advance(before, counts[piece], table, size, ties_equal=ties_equal)
    after = np.full(num_blocks, State.NO_SOLUTION, dtype=np.int64)
    prior = np.full(num_blocks, State.NO_SOLUTION, dtype=np.int64)
    for step in range(len(ends) - 2, -1, -1):
        here = by_level[ends[step] : ends[step + 1]]
        is_last = np.append(blocks.chain[1:] != blocks.chain[:-1], True)[here] if num_blocks else np.zeros(0, np.bool_)
        final = here[is_last]
        after[final] = draw_one_each(forward[final], rng)
        live = here[after[here] >= 0]
        lines = max(1, _PIECE // (size + 1))
        for start in range(0, len(live), lines):
            piece = live[start : start + lines]
            before = _start_state(len(piece), size) if step == 0 else forward[piece - 1]
            column = _column(counts[piece], table, after[piece], size, ties_equal=ties_equal)
            prior[piece] = draw_one_each(before + column, rng)
            if step > 0:
                after[piece - 1] = prior[piece]
    unsolved = after < 0
    return np.where(unsolved, State.NO_SOLUTION, prior - 1), np.where(unsolved, State.NO_SOLUTION, after - 1)


def _start_state(lines: int, size: int) -> FloatArray:
    state = np.full((lines, size + 1), -np.inf)
    state[:, 0] = 0.0
    return state


def _tables(cells: ChainCells, *, ties_equal: bool) -> FloatArray:
    """Return log P(cells m..u) by context for u from m - 1 on, m along axis 1; with ties, log P(u).

    Shape (contexts, size, size + 1); the last axis is u + 1, so that place 0 stands for "no cell".
    """
    p = cells.probability
    num_contexts, size = p.shape
    if ties_equal:
        sums = np.concatenate([np.zeros((num_contexts, 1)), p], axis=1)[:, None, :]
    else:
        upper = np.triu(np.ones((size, size)))
        sums = np.zeros((num_contexts, size, size + 1))
        np.cumsum(p[:, None, :] * upper[None, :, :], axis=2, out=sums[:, :, 1:])
    logs: FloatArray = np.log(np.maximum(sums, _TINY))
    return logs


def _advance(before: FloatArray, counts: object, table: FloatArray, size: int, *, ties_equal: bool) -> FloatArray:
    """Return the log weights of the states after a block for each chain."""
    lines = len(before)
    weight = np.asarray(counts @ table.reshape(len(table), -1)).reshape(lines, -1, size + 1)  # type: ignore[operator]
    move = np.full((lines, size + 1, size + 1), -np.inf)
    none = weight[:, 0, 0]
    move[:, 0, 0] = none
    if ties_equal:
        value = weight[:, 0, 1:]
        risen = _log_minus(value, none[:, None])
        move[:, 0, 1:] = risen
        upper = np.triu(np.ones((size, size), dtype=np.bool_), 1)
        move[:, 1:, 1:] = np.where(upper[None], risen[:, None, :], -np.inf)
        diagonal = np.arange(size)
        move[:, diagonal + 1, diagonal + 1] = value
    else:
        exactly = _log_minus(weight[:, :, 1:], weight[:, :, :-1])
        move[:, 0, 1:] = exactly[:, 0]
        upper = np.triu(np.ones((size, size), dtype=np.bool_), 1)
        move[:, 1:, 1:] = np.where(upper[None], exactly, -np.inf)
        diagonal = np.arange(size)
        move[:, diagonal + 1, diagonal + 1] = weight[:, diagonal, diagonal + 1]
    return np.asarray(_logsumexp(before[:, :, None] + move))


def _column(counts: object, table: FloatArray, after: IntArray, size: int, *, ties_equal: bool) -> FloatArray:
    """Return, for each block, the log weight of moving to its state `after` from every state."""
    matrix = counts.tocoo()  # type: ignore[attr-defined]
    lines = len(after)
    u = after[matrix.row]
    here = np.zeros((lines, table.shape[1]))
    below = np.zeros((lines, table.shape[1]))
    np.add.at(here, matrix.row, matrix.data[:, None] * table[matrix.col, :, u])
    lower = np.zeros_like(u) if ties_equal else np.maximum(u - 1, 0)
    np.add.at(below, matrix.row, matrix.data[:, None] * table[matrix.col, :, lower])
    exactly = _log_minus(here, below)
    column = np.full((lines, size + 1), -np.inf)
    line = np.arange(lines)
    column[:, 0] = np.where(after == 0, here[:, 0], exactly[:, 0])
    states = np.arange(1, size + 1)[None, :]
    column[:, 1:] = np.where(states < after[:, None], np.broadcast_to(exactly, (lines, size)), -np.inf)
    stay = np.flatnonzero(after > 0)
    column[stay, after[stay]] = here[line[stay], 0 if ties_equal else after[stay] - 1]
    return column


def _log_minus(larger: FloatArray, smaller: FloatArray) -> FloatArray:
    """Return log(exp(larger) - exp(smaller)), -inf where nothing is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.log(-np.expm1(np.minimum(smaller - larger, 0.0)))
        return np.asarray(np.where(np.isneginf(larger), -np.inf, larger + rest))


def _logsumexp(values: FloatArray) -> FloatArray:
    from scipy.special import logsumexp  # slow to import: only when an order is drawn

    return np.asarray(logsumexp(values, axis=1))
