"""Values are handed out to many groups of rows so that the column keeps its frequencies.

A model that is not sure which value a group has gives all groups a good deal of the frequent values. Taken by itself,
each group would get one of these, and the rare ones would be lost. So values are handed out by transport: of all ways
to give each value as many rows as the model expects it to have, one that the rows' distributions like best. How much a
group likes a value is the mean of log p(v | c_i) over its rows; each value has a price, found by scaling (Sinkhorn's
algorithm), at which as many rows want it as there are. Where the model is sure, prices change nothing.
"""

from __future__ import annotations

import math

import numpy as np

from kamino.arrays import FloatArray, IntArray, stable_order
from kamino.sampling.codes.choices import FLOOR, Choices
from kamino.sampling.codes.count_matrix import count_matrix
from kamino.sampling.codes.stratified import draw_places, normalised
from kamino.sampling.steps.shared_values import expected_runs, largest_first
from kamino.schema.coding.joint_codes import distinct_values

#: What rows like is raised to this power: a group has one value, not a distribution.
_SHARPEN = 8.0
#: A bin this much less likely than the likeliest, in logarithms, is a zero of the model.
_NEVER = FLOOR - 1.0
#: Prices are found on groups with so many cells in all, in so many steps.
_PRICED_CELLS, _STEPS = 1_000_000, 60
#: Of so many draws for a group, the one is taken that most rows are still wanting.
_DRAWN = 16
_PIECE = 1 << 23
#: All groups choose so often, the later times knowing what all others have; of many groups, the largest ones only.
_SWEEPS, _CHOOSE_AGAIN = 3, 20_000


def hand_out(choices: Choices, rows: IntArray, groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a run of codes for each group of rows; -1 where there is none that all rows may have.

    Guarantees:
        All groups together have about as many rows of each value as the model expects.
        [test_unsure_lookup_keeps_the_marginal, test_blind_lookup_keeps_the_marginal]
        Where the model is sure of a group's value, the group has it.  [test_lookup_learns_the_map]
        A value that some row cannot have is ruled out.  [test_blind_lookup_rules_out_what_a_row_cannot_have]
    """
    num_groups = int(groups.max()) + 1
    rank = np.empty(num_groups, dtype=np.int64)
    rank[largest_first(np.bincount(groups, minlength=num_groups), rng)] = np.arange(num_groups)
    ranked = rank[groups]
    order = stable_order(ranked)
    prices = _prices(choices, rows[order], ranked[order], rng)
    offered = np.empty((num_groups, _DRAWN), dtype=np.int64)
    lines = max(1, _PIECE // max(1, choices.log_weight.shape[1]))
    for start in range(0, num_groups, lines):
        stop = min(start + lines, num_groups)
        low, high = np.searchsorted(ranked, [start, stop], sorter=order)
        mine = order[low:high]
        likes = _likes(choices, rows[mine], ranked[mine] - start, stop - start)
        offered[start:stop] = _offers(choices, likes + prices[None, :], rng)
    wanted = expected_runs(choices.of_rows(rows))
    return _take(offered, np.bincount(ranked, minlength=num_groups), wanted, choices.label)[rank]


def _likes(choices: Choices, rows: IntArray, groups: IntArray, num_groups: int) -> FloatArray:
    """Return, for each group and bin, the mean of the rows' log probabilities, sharpened.

    A bin that some row has as good as no weight for is ruled out, unless every bin would be.
    """
    used, context = distinct_values(choices.context[rows])
    counts = count_matrix(groups, context, num_groups, len(used))
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.log(normalised(choices.log_weight[used]))
        likes = counts @ log
        likes *= _SHARPEN / np.maximum(counts.sums_of_lines(), 1.0)[:, None]
    likes[np.isnan(likes)] = -np.inf
    never = log <= log.max(axis=1, keepdims=True) - _NEVER
    if never.any():
        out = (counts @ never.astype(np.float64)) > 0
        likes[out & ~out.all(axis=1, keepdims=True)] = -np.inf
    return likes


def _prices(choices: Choices, rows: IntArray, groups: IntArray, rng: np.random.Generator) -> FloatArray:
    """Return what is added to the likes of each bin so that rows want it as often as the model expects it.

    Prices are found on as many groups, chosen at random, as take little time; `groups` ascend.
    """
    num_groups, num_bins = int(groups[-1]) + 1, choices.log_weight.shape[1]
    most = max(_PRICED_CELLS // max(num_bins, 1), 200)
    if num_groups > most:
        chosen = np.zeros(num_groups, dtype=np.bool_)
        chosen[rng.choice(num_groups, most, replace=False)] = True
        rows, groups = rows[chosen[groups]], np.cumsum(chosen)[groups[chosen[groups]]] - 1
        num_groups = most
    likes = _likes(choices, rows, groups, num_groups)
    sizes = np.bincount(groups, minlength=num_groups).astype(np.float64)
    counts = np.bincount(choices.context[rows], minlength=len(choices.log_weight))
    wanted = counts @ normalised(choices.log_weight)
    prices = np.zeros(num_bins)
    some = wanted > 0
    for _ in range(_STEPS):
        had = sizes @ normalised(likes + prices[None, :])
        step = np.zeros(num_bins)
        np.log(np.divide(wanted, had, out=np.ones(num_bins), where=some & (had > 0)), out=step)
        prices += np.clip(step, -_SHARPEN, _SHARPEN)
    return prices


def _offers(choices: Choices, weight: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return a few runs drawn for each group, whose bins have these log weights; -1 where it can have none."""
    lines = np.repeat(np.arange(len(weight)), _DRAWN)
    runs = choices.draw_runs(draw_places(lines, weight, rng), rng)
    return rng.permuted(runs.reshape(len(weight), _DRAWN), axis=1)


def _take(offered: IntArray, sizes: IntArray, wanted: FloatArray, bins: IntArray) -> IntArray:
    """Return the run that each group takes of those it is offered, the largest groups, which come first, first.

    It takes that which makes the sum of (rows given - rows wanted)² / rows wanted, over runs and over their `bins`,
    smallest. A run that is wanted less than the group is large counts as wanted as much. Some groups choose again,
    knowing what all others have.

    Guarantees:
        Groups of any sizes leave columns their frequencies.  [test_lumps_leave_a_column_its_frequencies]
    """
    full, full_bins, label = wanted.tolist(), np.bincount(bins, weights=wanted).tolist(), bins.tolist()
    short, short_bins = list(full), list(full_bins)
    taken = [-1] * len(sizes)
    lines, rows = offered.tolist(), sizes.tolist()
    for sweep in range(_SWEEPS):
        for group in range(len(sizes) if sweep == 0 else min(len(sizes), _CHOOSE_AGAIN)):
            size, old, best, most = rows[group], taken[group], -1, -math.inf
            if old >= 0:
                short[old] += size
                short_bins[label[old]] += size
            for run in dict.fromkeys(lines[group]):
                if run < 0:
                    continue
                own = label[run]
                gain = _gain(short[run], full[run], size) + _gain(short_bins[own], full_bins[own], size)
                if gain > most:
                    best, most = run, gain
            taken[group] = best
            if best >= 0:
                short[best] -= size
                short_bins[label[best]] -= size
    return np.array(taken, dtype=np.int64)


def _gain(short: float, full: float, size: int) -> float:
    """Return by how much rows of a group bring what is given nearer to what is wanted: in rows, then in squares."""
    beyond = 2 * short - size
    return min(max(beyond / size, -1.0), 1.0) + beyond / max(full, size)
