"""Forward filtering and backward sampling of monotone chains.

A chain is a row of blocks; a block is a set of rows of equal x. Every value of a block is at least every value of the
blocks before it; rows of one block are free among themselves (or all equal, with `ties_equal`). The state after a
block is the greatest cell so far, or nothing yet. For a block that moves the state from m to u,

    W(m, u) = product over its rows of P(cells m..u),    E(m, u) = W(m, u) - W(m, u - 1),

since the state becomes u exactly if all rows lie in m..u and one is u. Where a block takes one value (a single row, or
all rows equal) that is P(u) for every m up to u, and a running sum over the states takes the place of the matrix. All
chains are filtered side by side.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import FloatArray, IntArray, distinct
from kamino.sampling.codes.count_matrix import count_matrix
from kamino.sampling.codes.stratified import draw_one_each
from kamino.sampling.steps.chain.chain_cells import ChainCells

# Numbers of states, and of matrices, that are at hand at a time: these stay in the second-level cache.
_PIECE = 1 << 18
_MATRICES = 1 << 17
_TINY = 1e-290
# Probabilities are multiplied as they are, not as logarithms, where no product of so many rows can vanish.
_FEW_ROWS = 8
_LEAST = 1e-30
_RANGE = 600.0


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
    moves = _Moves(cells, blocks, ties_equal=ties_equal)
    level = blocks.level
    by_level = np.argsort(level, kind="stable")
    ends = np.searchsorted(level, np.arange(int(level.max(initial=-1)) + 2), sorter=by_level)
    # State 0 is "nothing yet", state s + 1 is cell s.
    forward = np.empty((num_blocks, size + 1))
    lines = max(1, _PIECE // (size + 1))
    for step in range(len(ends) - 1):
        for start in range(ends[step], ends[step + 1], lines):
            here = by_level[start : min(start + lines, ends[step + 1])]
            before = _start_state(len(here), size) if step == 0 else forward[here - 1]
            forward[here] = moves.advance(here, before)
    after = np.full(num_blocks, State.NO_SOLUTION, dtype=np.int64)
    prior = np.full(num_blocks, State.NO_SOLUTION, dtype=np.int64)
    is_last = np.append(blocks.chain[1:] != blocks.chain[:-1], True) if num_blocks else np.zeros(0, np.bool_)
    for step in range(len(ends) - 2, -1, -1):
        here = by_level[ends[step] : ends[step + 1]]
        final = here[is_last[here]]
        after[final] = draw_one_each(forward[final], rng)
        live = here[after[here] >= 0]
        for start in range(0, len(live), lines):
            piece = live[start : start + lines]
            before = _start_state(len(piece), size) if step == 0 else forward[piece - 1]
            prior[piece] = draw_one_each(before + moves.into(piece, after[piece]), rng)
            if step > 0:
                after[piece - 1] = prior[piece]
    unsolved = after < 0
    return np.where(unsolved, State.NO_SOLUTION, prior - 1), np.where(unsolved, State.NO_SOLUTION, after - 1)


def _start_state(lines: int, size: int) -> FloatArray:
    state = np.full((lines, size + 1), -np.inf)
    state[:, 0] = 0.0
    return state


class _Moves:
    """What blocks do to the state, as logarithms of weights. A cell that cannot be has the weight `_TINY`.

    Guarantees:
        Blocks of one value, of a few rows and of many give the weights of the formula.  [test_moves_agree]
    """

    def __init__(self, cells: ChainCells, blocks: Blocks, *, ties_equal: bool) -> None:
        self._size, num_blocks = cells.num_cells, len(blocks.chain)
        self._p = cells.probability
        self._log_p = _log(self._p)
        self._logs: FloatArray = np.zeros((len(self._p), self._size, self._size + 1))
        self._has_logs = np.zeros(len(self._p), np.bool_)
        self._rows = np.bincount(blocks.block, minlength=num_blocks)
        self._counts = count_matrix(blocks.block, blocks.context, num_blocks, len(self._p))
        self._takes_one = np.ones(num_blocks, np.bool_) if ties_equal else self._rows == 1
        self._by_block = blocks.context[np.argsort(blocks.block, kind="stable")]
        self._begin = np.cumsum(self._rows) - self._rows
        # Products of a few rows are exact enough where no cell is nearly impossible.
        unlikely = np.flatnonzero(self._p.min(axis=1, initial=1.0) < _LEAST)
        doubtful = np.zeros(num_blocks, np.bool_)
        doubtful[blocks.block[np.isin(blocks.context, unlikely)]] = True
        self._is_short = ~doubtful & (self._rows <= _FEW_ROWS)

    def advance(self, here: IntArray, before: FloatArray) -> FloatArray:
        """Return the log weights of the states after blocks, given those of the states before."""
        result = np.empty_like(before)
        one = self._takes_one[here]
        result[one] = self._advance_one(here[one], before[one])
        many = np.flatnonzero(~one)
        short = self._is_short[here[many]] & _is_narrow(before[many])
        rows = self._rows[here[many]]
        for each in distinct(rows[short]).tolist():
            self._in_pieces(many[short & (rows == each)], here, before, result, self._short)
        self._in_pieces(many[~short], here, before, result, self._long)
        return result

    def into(self, here: IntArray, after: IntArray) -> FloatArray:
        """Return, for each block, the log weight of moving to its state `after` from every state."""
        column = np.full((len(here), self._size + 1), -np.inf)
        one = np.flatnonzero(self._takes_one[here])
        counts = self._counts.take(here[one])
        line = counts.line
        value = np.bincount(
            line, counts.count * self._log_p[counts.column, np.maximum(after[one][line] - 1, 0)], len(one)
        )
        reached = np.arange(self._size + 1)[None, :] <= after[one][:, None]
        column[one] = np.where(reached, value[:, None], -np.inf)
        column[one[after[one] == 0], 0] = self._nothing(here[one[after[one] == 0]])
        many = np.flatnonzero(~self._takes_one[here])
        if len(many):
            column[many] = self._into_many(here[many], after[many])
        return column

    def _advance_one(self, here: IntArray, before: FloatArray) -> FloatArray:
        """All rows of a block take one value, at or above the state."""
        result = _running_logsumexp(before)
        if (self._rows[here] == 1).all():
            result[:, 1:] += self._log_p.take(self._by_block[self._begin[here]], axis=0)
        else:
            result[:, 1:] += self._counts.take(here) @ self._log_p
        result[:, 0] = before[:, 0] + self._nothing(here)
        return result

    def _nothing(self, here: IntArray) -> FloatArray:
        """The log weight of a block without a value."""
        return np.asarray(self._rows[here] * np.log(_TINY))

    def _in_pieces(
        self,
        chosen: IntArray,
        here: IntArray,
        before: FloatArray,
        result: FloatArray,
        advance: Callable[[IntArray, FloatArray], FloatArray],
    ) -> None:
        """Advance the chosen lines so many at a time that their matrices stay small."""
        lines = max(1, _MATRICES // (self._size + 1) ** 2)
        for start in range(0, len(chosen), lines):
            piece = chosen[start : start + lines]
            result[piece] = advance(here[piece], before[piece])

    def _short(self, here: IntArray, before: FloatArray) -> FloatArray:
        """Blocks of the same small number of rows: products of probabilities as they are.

        With W(m, u) = 0 for u < m, the weight of u is what sum over m of before(m) * W(m, u) gains there.
        """
        stretch = self._stretches
        weight = stretch[self._by_block[self._begin[here]]]
        for place in range(1, int(self._rows[here[0]])):
            weight *= stretch[self._by_block[self._begin[here] + place]]
        top = before.max(axis=1, keepdims=True)
        share = np.exp(before - top)
        share[:, 1] += share[:, 0]
        reach = np.matmul(share[:, None, 1:], weight)[:, 0, :]
        with np.errstate(divide="ignore"):
            moved = np.log(np.maximum(np.diff(reach, axis=1), 0.0)) + top
        return np.concatenate([before[:, :1] + self._nothing(here)[:, None], moved], axis=1)

    def _long(self, here: IntArray, before: FloatArray) -> FloatArray:
        """Blocks of any rows: sums of logarithms."""
        size, counts = self._size, self._counts.take(here)
        table = self._log_stretches(counts.column)
        weight = (counts @ table.reshape(len(table), -1)).reshape(len(here), size, size + 1)
        move = np.full((len(here), size + 1, size + 1), -np.inf)
        move[:, 0, 0] = weight[:, 0, 0]
        exactly = _log_minus(weight[:, :, 1:], weight[:, :, :-1])
        move[:, 0, 1:] = exactly[:, 0]
        upper = np.triu(np.ones((size, size), dtype=np.bool_), 1)
        move[:, 1:, 1:] = np.where(upper[None], exactly, -np.inf)
        diagonal = np.arange(size)
        move[:, diagonal + 1, diagonal + 1] = weight[:, diagonal, diagonal + 1]
        return np.asarray(_logsumexp(before[:, :, None] + move))

    def _into_many(self, here: IntArray, after: IntArray) -> FloatArray:
        """As `into`, for blocks whose rows are free among themselves."""
        matrix, lines = self._counts.take(here), len(here)
        stretch, line = self._stretches, matrix.line
        u = after[line]
        within, below = np.zeros((lines, self._size)), np.zeros((lines, self._size))
        np.add.at(within, line, matrix.count[:, None] * _log(stretch[matrix.column, :, u]))
        np.add.at(below, line, matrix.count[:, None] * _log(stretch[matrix.column, :, np.maximum(u - 1, 0)]))
        exactly = _log_minus(within, below)
        column = np.full((lines, self._size + 1), -np.inf)
        column[:, 0] = np.where(after == 0, within[:, 0], exactly[:, 0])
        states = np.arange(1, self._size + 1)[None, :]
        column[:, 1:] = np.where(states < after[:, None], exactly, -np.inf)
        stay = np.flatnonzero(after > 0)
        column[stay, after[stay]] = within[stay, after[stay] - 1]
        return column

    @cached_property
    def _stretches(self) -> FloatArray:
        """P(cells m..u) by context, m along axis 1; the last axis is u + 1, and zero where u < m."""
        num_contexts, size = self._p.shape
        sums = np.zeros((num_contexts, size, size + 1))
        upper = np.triu(np.ones((size, size)))
        for of_context, p in zip(sums, self._p, strict=True):
            np.cumsum(p * upper, axis=1, out=of_context[:, 1:])
        return sums

    def _log_stretches(self, contexts: IntArray) -> FloatArray:
        """Logarithms of the stretches, of these contexts at least: few blocks need them where most are short."""
        new = distinct(contexts[~self._has_logs[contexts]])
        if len(new):
            self._logs[new] = _log(self._stretches[new])
            self._has_logs[new] = True
        return self._logs


def _log(p: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(p, _TINY)))


def _is_narrow(before: FloatArray) -> NDArray[np.bool_]:
    """Whether the weights of all states that can be are so near each other that none vanishes beside the largest."""
    states = before[:, 1:]
    lowest = np.where(np.isneginf(states), np.inf, states).min(axis=1, initial=np.inf)
    return np.asarray(~(before.max(axis=1) - lowest > _RANGE))


def _running_logsumexp(values: FloatArray) -> FloatArray:
    """Return log(sum(exp(values))) up to each place of a line: by weights as they are where none vanishes.

    Guarantees:
        Equal to adding logarithms, up to rounding.  [test_running_sums_are_those_of_logarithms]
    """
    narrow = _is_narrow(values)
    if not narrow.all():
        result = np.logaddexp.accumulate(values, axis=1)
        result[narrow] = _running_logsumexp(values[narrow])
        return result
    top = values.max(axis=1, keepdims=True)
    top = np.where(np.isneginf(top), 0.0, top)
    sums: FloatArray = values - top
    np.cumsum(np.exp(sums, out=sums), axis=1, out=sums)
    with np.errstate(divide="ignore"):
        np.log(sums, out=sums)
    sums += top
    # The first may vanish beside the others.
    sums[:, 0] = values[:, 0]
    return sums


def _log_minus(larger: FloatArray, smaller: FloatArray) -> FloatArray:
    """Return log(exp(larger) - exp(smaller)), -inf where nothing is left."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.log(-np.expm1(np.minimum(smaller - larger, 0.0)))
        return np.asarray(np.where(np.isneginf(larger), -np.inf, larger + rest))


def _logsumexp(values: FloatArray) -> FloatArray:
    """Return log(sum(exp(values))) along the second axis; -inf where all are."""
    top = values.max(axis=1, keepdims=True)
    top = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        return np.asarray((np.log(np.exp(values - top).sum(axis=1, keepdims=True)) + top).squeeze(axis=1))
