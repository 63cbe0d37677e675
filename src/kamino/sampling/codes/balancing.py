"""Columns that the model holds independent come out so: rows of one context change places until chance is small.

Rows of one context are alike to the model, so which of them gets which value is open, and left to chance it puts rows
out of place in every pair of attributes that the model does not join. Exchanges of two rows of a context keep all that
the model knows, to the row; those are made that bring the counts with each earlier column nearer to their expectation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import IntArray, stable_order
from kamino.schema.coding.joint_codes import distinct_values

#: Of more rows than this chance puts few out of place, and nothing is exchanged.
MOST_ROWS = 100_000
# A column of more values than the first is looked at in so many groups of neighbours, of about as many rows each. One
# of no more than the second is looked at value by value nevertheless if its values have so many rows on average, since
# exchanges that look at values of few rows lose sight of their neighbours ...
_GROUPS, _VALUES, _ROWS_OF_VALUE = 128, 512, 64
# ... and if counts of contexts by values have at most so many numbers.
_WITHIN = 1 << 23
# Every row is tried so often; further rounds gain little.
_ROUNDS = 2
# Of more other columns than this so many are taken at random: the cost of a wide table grows with its columns, not with
# its pairs of columns.
_OTHERS = 32
# Exchanges are tried this many parts of a round at a time, each by what the parts before it left.
_PARTS = 8
# Counts of contexts by groups are not made beyond so many numbers.
_MOST_CELLS = 1 << 25


def group_values(column: IntArray, contexts: int = 1) -> IntArray:
    """Number the values of a column from 0, neighbours together where there are too many for the rows and contexts.

    >>> group_values(np.array([7, 3, 7])).tolist()
    [1, 0, 1]
    """
    values, number = distinct_values(column)
    most = min(_VALUES, len(column) // _ROWS_OF_VALUE, _WITHIN // contexts)
    if len(values) <= max(most, _GROUPS):
        return number
    counts = np.bincount(number)
    middle = np.cumsum(counts) - counts / 2
    group = np.minimum((middle / len(column) * _GROUPS).astype(np.int64), _GROUPS - 1)
    return distinct_values(group)[1][number]


def balance(column: IntArray, context: IntArray, others: Sequence[IntArray], rng: np.random.Generator) -> IntArray:
    """Return a column whose codes have changed places within contexts, so that it hangs together less with `others`.

    `others` are numbered from 0, as `group_values` does.

    Guarantees:
        Every context keeps its codes, and how often each occurs.  [test_balancing_keeps_the_codes_of_a_context]
        Counts with other columns come nearer to their expectation.  [test_balancing_takes_chance_away]
        What the contexts know of two columns stays.  [test_balancing_keeps_dependence]
    """
    contexts, context = distinct_values(context)
    if len(column) < 2 or len(contexts) == len(column):
        return column
    groups = group_values(column, len(contexts))
    within = _counts(context, groups).astype(np.float32)
    within /= within.sum(axis=1, keepdims=True)
    fits = [z for z in others if len(contexts) * (int(z.max()) + 1) <= _MOST_CELLS and z.any()]
    taken = range(len(fits)) if len(fits) <= _OTHERS else rng.choice(len(fits), _OTHERS, replace=False)
    result = column.copy()
    if len(fits) == 0:
        return result
    tables = _Tables.of([fits[i] for i in taken], groups, context, within)
    for _ in range(_ROUNDS):
        shuffled = rng.permutation(len(column))
        order = shuffled[stable_order(context[shuffled])]
        first, second = order[:-1:2], order[1::2]
        open_pairs = np.flatnonzero((context[first] == context[second]) & (groups[first] != groups[second]))
        for part in np.array_split(rng.permutation(open_pairs), _PARTS):
            here, there = _gaining(tables, groups, first[part], second[part])
            for each in (result, groups):
                each[here], each[there] = each[there], each[here]
    return result


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tables:
    """The counts of the column's groups by those of other columns, as excess over what is expected.

    `start` is where each row's line begins, a row of it for each other column; `excess` and `weight` hold all lines of
    all tables one after the other: pairs of rows are looked up in all of them at once.
    """

    start: NDArray[np.int32]
    excess: NDArray[np.float32]
    weight: NDArray[np.float32]

    @classmethod
    def of(
        cls, others: Sequence[IntArray], groups: IntArray, context: IntArray, within: NDArray[np.float32]
    ) -> _Tables:
        width, size = within.shape[1], 0
        starts, tables = [], []
        for other in others:
            expected = _counts(other, context, columns=len(within)).astype(np.float32) @ within
            excess = _counts(other, groups, columns=width) - expected
            starts.append((size + other * width).astype(np.int32))
            tables.append((excess.ravel(), expected.ravel()))
            size += expected.size
        return cls(
            start=np.stack(starts),
            excess=np.concatenate([excess for excess, _ in tables]).astype(np.float32),
            weight=np.reciprocal(np.concatenate([expected for _, expected in tables]) + 1, dtype=np.float32),
        )


def _counts(rows: IntArray, columns_of: IntArray, *, columns: int | None = None) -> IntArray:
    lines = int(rows.max()) + 1
    width = int(columns_of.max()) + 1 if columns is None else columns
    return np.bincount(rows * width + columns_of, minlength=lines * width).reshape(lines, width)


def _gaining(tables: _Tables, groups: IntArray, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pairs of rows whose exchange lowers the squared excess in parts of what is expected; count them in."""
    ours, theirs = groups[first].astype(np.int32), groups[second].astype(np.int32)
    mine, other = tables.start.take(first, axis=1), tables.start.take(second, axis=1)
    lose, gain = tables.weight * (1 - 2 * tables.excess), tables.weight * (1 + 2 * tables.excess)
    moved = lose[mine + ours] + lose[other + theirs] + gain[mine + theirs] + gain[other + ours]
    moved[mine == other] = 0
    change = np.zeros(len(first), dtype=np.float32)
    for each in moved:
        change += each
    taken = np.flatnonzero(change < 0)
    mine, other, ours, theirs = mine[:, taken], other[:, taken], ours[taken], theirs[taken]
    size = len(tables.excess)
    tables.excess[:] += np.bincount(np.concatenate([mine + theirs, other + ours], axis=None), minlength=size)
    tables.excess[:] -= np.bincount(np.concatenate([mine + ours, other + theirs], axis=None), minlength=size)
    return first[taken], second[taken]
