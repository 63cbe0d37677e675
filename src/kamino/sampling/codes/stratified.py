"""Stratified sampling: many rows together follow their distributions more closely than independent draws would.

Rows of one context take evenly spread points of [0, 1), with a shift that is random for each context: each value's
count is within one row of what is expected, and a single row still follows its own distribution.
"""

from __future__ import annotations

import numpy as np

from kamino.arrays import FloatArray, IntArray, stable_order

# Tables of weights are turned into probabilities in pieces of about this many numbers.
_PIECE = 1 << 23
_ROWS_AT_ONCE = 1 << 17


def spread_points(groups: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return one point in [0, 1) for each row, evenly spread within each group in random order.

    Guarantees:
        Any interval holds within two points of its share of a group.  [test_points_are_spread]
    """
    num_rows = len(groups)
    shuffled = rng.permutation(num_rows)
    sizes = np.bincount(groups, minlength=1) if num_rows else np.zeros(1, np.int64)
    order = shuffled[stable_order(groups[shuffled])] if len(sizes) > 1 else shuffled
    begin = np.cumsum(sizes) - sizes
    # In the order of groups: the first place of a group is at its shift, and each further one a step on.
    shift = rng.random(len(sizes))
    ascending = np.arange(num_rows, dtype=np.float64)
    ascending -= np.repeat(begin - shift, sizes)
    ascending /= np.repeat(np.maximum(sizes, 1), sizes)
    np.minimum(ascending, np.nextafter(1.0, 0.0), out=ascending)
    points = np.empty(num_rows)
    points[order] = ascending
    return points


def draw_places(
    context: IntArray,
    log_weight: FloatArray,
    rng: np.random.Generator,
    *,
    independent: bool = False,
    among: IntArray | None = None,
) -> IntArray:
    """Draw a column of `log_weight` for each row, from the line its context names; -1 where that has no weight.

    With `independent`, rows are drawn one without regard to another. Points are spread within each context, or within
    the groups `among`: for contexts of few rows that are much alike.
    """
    result = np.empty(len(context), dtype=np.int64)
    points = rng.random(len(context)) if independent else spread_points(context if among is None else among, rng)
    lines = max(1, _PIECE // max(1, log_weight.shape[1]))
    if len(log_weight) <= lines:
        result[:] = _draw_piece(context, log_weight, points)
        return result
    order = stable_order(context)
    for start in range(0, len(log_weight), lines):
        low, high = np.searchsorted(context, [start, start + lines], sorter=order)
        rows = order[low:high]
        if len(rows):
            result[rows] = _draw_piece(context[rows] - start, log_weight[start : start + lines], points[rows])
    return result


def _draw_piece(context: IntArray, log_weight: FloatArray, points: FloatArray) -> IntArray:
    probability = normalised(log_weight)
    cumulative = np.cumsum(probability, axis=1)
    width = log_weight.shape[1]
    total = cumulative[:, -1].copy()
    last = width - 1 - np.argmax(probability[:, ::-1] > 0, axis=1)
    first = np.argmax(probability > 0, axis=1)
    # One ascending array for all contexts: context c holds the stretch from 2c to 2c + 1.
    cumulative += 2.0 * np.arange(len(log_weight))[:, None]
    edges = cumulative.ravel()
    result = np.empty(len(context), dtype=np.int64)
    for begin in range(0, len(context), _ROWS_AT_ONCE):
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        mine = context[rows]
        found = np.searchsorted(edges, 2.0 * mine + points[rows] * total[mine], side="right") - mine * width
        found = np.clip(found, first[mine], last[mine])
        # Rounding may land on a value without weight; the next one with weight is as near.
        for row in np.flatnonzero((probability[mine, found] <= 0) & (total[mine] > 0)):
            line = probability[mine[row]]
            found[row] = int(np.flatnonzero(line[found[row] :] > 0)[0] + found[row])
        result[rows] = np.where(total[mine] > 0, found, -1)
    return result


def normalised(log_weight: FloatArray) -> FloatArray:
    """Return each line's probabilities; a line without any weight is all zero."""
    top = log_weight.max(axis=1, keepdims=True, initial=-np.inf)
    weight: FloatArray = log_weight - np.where(np.isfinite(top), top, 0.0)
    np.exp(weight, out=weight)
    total = weight.sum(axis=1, keepdims=True)
    some = total > 0
    weight[~some[:, 0]] = 0.0
    np.divide(weight, total, out=weight, where=some)
    return weight


def draw_one_each(log_weight: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw a column for each line, independently, by one point of its running sums; -1 where it has no weight.

    Guarantees:
        Columns are as likely as their weights say, and none without weight is drawn.  [test_one_each_has_its_law]
    """
    top = log_weight.max(axis=1, keepdims=True)
    sums: FloatArray = log_weight - np.where(np.isfinite(top), top, 0.0)
    np.cumsum(np.exp(sums, out=sums), axis=1, out=sums)
    total = sums[:, -1]
    place = (sums <= (rng.random(len(sums)) * total)[:, None]).sum(axis=1)
    return np.where(total > 0, place, -1)
