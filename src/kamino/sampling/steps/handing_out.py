"""Values are handed out to many groups of rows so that the column keeps its frequencies.

A model that is not sure which value a group has gives all groups a good deal of the frequent values. Taken by itself,
each group would get one of these, and the rare ones would be lost. So values are handed out by transport: of all ways
to give each value as many rows as the model expects it to have, one that the rows' distributions like best. How much a
group likes a value is the mean of log p(v | c_i) over its rows; each value has a price, found by scaling (Sinkhorn's
algorithm), at which as many rows want it as there are. Where the model is sure, prices change nothing.
"""

from __future__ import annotations

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
    taken, runs = _Taking(choices, rows, rng), np.empty(num_groups, dtype=np.int64)
    lines = max(1, _PIECE // max(1, choices.log_weight.shape[1]))
    for start in range(0, num_groups, lines):
        stop = min(start + lines, num_groups)
        low, high = np.searchsorted(ranked, [start, stop], sorter=order)
        mine = order[low:high]
        likes = _likes(choices, rows[mine], ranked[mine] - start, stop - start)
        sizes = np.bincount(ranked[mine] - start, minlength=stop - start)
        runs[start:stop] = taken.take(likes + prices[None, :], sizes)
    return runs[rank]


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


class _Taking:
    """Gives groups their runs, the largest groups first: of a few draws, the run that most rows are still wanting."""

    def __init__(self, choices: Choices, rows: IntArray, rng: np.random.Generator) -> None:
        self._choices, self._rng = choices, rng
        self._wanting = expected_runs(choices.of_rows(rows))

    def take(self, weight: FloatArray, sizes: IntArray) -> IntArray:
        """Return the run of each group, whose bins have these log weights; -1 where it can have none."""
        rng, num_groups = self._rng, len(sizes)
        lines = np.repeat(np.arange(num_groups), _DRAWN)
        runs = self._choices.draw_runs(draw_places(lines, weight, rng), rng)
        drawn = rng.permuted(runs.reshape(num_groups, _DRAWN), axis=1).tolist()
        wanting, taken = self._wanting.tolist(), [-1] * num_groups
        for group, size in enumerate(sizes.tolist()):
            run = max(drawn[group], key=wanting.__getitem__)
            if run >= 0:
                taken[group] = run
                wanting[run] -= float(size)
        self._wanting = np.array(wanting)
        return np.array(taken, dtype=np.int64)
