"""Lookup: hard dependencies X -> A with X there already. One value for each group of rows.

Null clashes with nothing, so nulls come first, for each row as often as the model has them. Drawn together with the
values they would get out of hand: a row's null would only have to beat the one value of its group.

For a group g of the other rows, P(v) is proportional to the product of p(v | c_i) over its rows i. That is the law of
the model given the nulls and that the dependency holds, and right where the contexts c_i hold X: the model then has
seen which value goes with it. Where they do not, rows of a group say the same thing over and over, and the product
would give every group the most frequent values. There, what the rows agree on counts once: P(v) is proportional to the
product of p(v | c_i) over the (k-1)th power of their mean, k rows. With equal contexts that is p(v | c) itself, and a
value that some row cannot have is ruled out.

Where a bin of the model holds several values, the product is over bins, and groups share out the values of a bin
(`shared_values.py`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kamino.arrays import FloatArray, IntArray, stable_order
from kamino.constraints.analysis.classify import dependency_of
from kamino.sampling.codes.choices import Choices
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.codes.count_matrix import count_matrix
from kamino.sampling.codes.grouping import join_groups
from kamino.sampling.codes.stratified import draw_places, normalised
from kamino.sampling.partners import DEAD
from kamino.sampling.steps.shared_values import expected_runs, largest_first, share_out
from kamino.sampling.steps.task import Task
from kamino.schema.coding.joint_codes import distinct_values, number_values

_PIECE = 1 << 23
# Draws for a group of which one is taken, where the model cannot tell groups apart.
_DRAWN = 8
# A context that holds the left side belongs to one group; if this part of the rows have another kind, it does not.
_MOST_SHARED = 0.5


def draw_lookup(task: Task) -> IntArray:
    """Draw one value for each group of rows that the left sides tie together.

    Guarantees:
        Where the model depends on the left side, the column follows the product of the rows' distributions, given the
        nulls and that it breaks no dependency.  [test_lookup_is_exact, test_lookup_with_nulls_is_exact]
        Where it does not, the column keeps its distribution.  [test_blind_lookup_keeps_the_marginal]
        Nulls are as frequent as in the model.  [test_lookup_keeps_the_share_of_nulls]
    """
    nulls = task.choices.draw_nulls(task.rng)
    values = replace(task, choices=task.choices.without_null())
    groups, fixed = dependency_groups(task, ~nulls), _fixed_codes(task)
    alone = np.bincount(groups)[groups] == 1
    codes = np.full(task.num_rows, DEAD, dtype=np.int64)
    shared = np.flatnonzero(~alone)
    blind = _is_blind(task, shared, groups[shared])
    single = np.flatnonzero(~nulls & alone & (fixed < 0))
    codes[single] = values.choices.draw(task.rng, single, independent=not blind)
    rest = np.flatnonzero(~nulls & (~alone | (fixed >= 0)))
    if len(rest):
        mine, _ = number_values(groups[rest])
        codes[rest] = _choose(values, rest, mine, fixed[rest], blind=blind)[mine]
    return task.with_nulls(codes, nulls)


def draw_known(task: Task) -> IntArray:
    """Take the values that maps give; `DEAD` for a left side that no map has. Rows without a left side are free.

    Guarantees:
        Nulls are as frequent as in the model, and what is drawn follows the maps.  [test_known_values_are_taken]
    """
    nulls, fixed = task.choices.draw_nulls(task.rng), _fixed_codes(task)
    bound = np.logical_or.reduce([task.present(left) for left in _lefts(task)])
    codes = np.where(bound, np.maximum(fixed, DEAD), DEAD)
    free = np.flatnonzero(~bound & ~nulls)
    codes[free] = task.choices.without_null().draw(task.rng, free)
    return task.with_nulls(codes, nulls)


def dependency_groups(task: Task, among: Mask | None = None) -> IntArray:
    """Number the groups of rows that must share a value; a row with a null on the left, or not among them, is alone."""
    here = np.ones(task.num_rows, dtype=np.bool_) if among is None else among
    keys = [(task.keys(left), task.present(left) & here) for left in sorted(_lefts(task), key=sorted)]
    return join_groups(task.num_rows, keys)


def _lefts(task: Task) -> set[frozenset[str]]:
    dependencies = [dependency_of(c) for c in task.step.constraints]
    return {d.left for d in dependencies if d is not None and d.right == task.step.attribute}


def _is_blind(task: Task, rows: IntArray, groups: IntArray) -> bool:
    """Whether the model's distribution cannot tell the groups of these rows apart.

    It depends on no whole left side, or on one in bins so wide that most rows share their context with other groups.
    """
    if task.parents is None or len(rows) == 0:
        return False
    if not any(left <= task.parents for left in _lefts(task)):
        return True
    context = task.choices.context[rows]
    groups_of = count_matrix(context, groups, int(context.max()) + 1, int(groups.max()) + 1).cells_of_lines()
    return bool(np.mean(groups_of[context] > 1) > _MOST_SHARED)


def _fixed_codes(task: Task) -> IntArray:
    """Return the code that a public map gives each row, or -1."""
    fixed = np.full(task.num_rows, -1, dtype=np.int64)
    for (left, right), reference in task.references.items():
        if right == task.step.attribute and set(left) <= task.columns.keys():
            found = reference.find(task.columns)
            usable = task.choices.bins_of(np.maximum(found, 0))[0] >= 0
            fixed = np.where((fixed < 0) & (found >= 0) & usable, found, fixed)
    return fixed


def _choose(task: Task, rows: IntArray, groups: IntArray, fixed: IntArray, *, blind: bool) -> IntArray:
    """Return the code of each group: the one a public map gives, else a draw."""
    num_groups = int(groups.max()) + 1
    chosen = np.full(num_groups, DEAD, dtype=np.int64)
    known = fixed >= 0
    chosen[groups[known]] = fixed[known]
    run = _draw_evenly(task, rows, groups) if blind else share_out(task.choices, rows, groups, task.rng)
    return np.where(chosen >= 0, chosen, _inside(task, run))


def _inside(task: Task, run: IntArray) -> IntArray:
    """Draw a code in each run; -1 stays dead."""
    return np.where(run < 0, DEAD, task.choices.codes_at(run, task.rng.random(len(run)), task.rng))


def _draw_evenly(task: Task, rows: IntArray, groups: IntArray) -> IntArray:
    """Draw runs for groups that the model cannot tell apart, so many groups at a time as take little memory."""
    rank = np.empty(int(groups.max()) + 1, dtype=np.int64)
    rank[largest_first(np.bincount(groups), task.rng)] = np.arange(len(rank))
    ranked = rank[groups]
    draw, run = _Evenly(task), np.empty(len(rank), dtype=np.int64)
    lines = max(1, _PIECE // max(1, task.choices.log_weight.shape[1]))
    order = stable_order(ranked)
    for start in range(0, len(rank), lines):
        stop = min(start + lines, len(rank))
        low, high = np.searchsorted(ranked, [start, stop], sorter=order)
        mine = order[low:high]
        run[start:stop] = draw(rows[mine], ranked[mine] - start, stop - start)
    return run[rank]


class _Evenly:
    """Draws runs for groups that the model cannot tell apart, so that all groups together keep the distribution.

    Of a few draws for a group, the run that most rows are still wanting is taken, by the largest groups first.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._wanting = np.zeros(len(task.choices.starts))

    def __call__(self, rows: IntArray, groups: IntArray, num_groups: int) -> IntArray:
        rng = self._task.rng
        choices = self._task.choices
        weight = _blind_weights(choices, rows, groups, num_groups)
        sizes = np.bincount(groups, minlength=num_groups)
        self._wanting += expected_runs(choices.of_rows(rows))
        lines = np.repeat(np.arange(num_groups), _DRAWN)
        runs = choices.draw_runs(draw_places(lines, weight, rng), rng)
        drawn = rng.permuted(runs.reshape(num_groups, _DRAWN), axis=1).tolist()
        wanting, taken = self._wanting.tolist(), [-1] * num_groups
        for group in range(num_groups):
            run = max(drawn[group], key=wanting.__getitem__)
            if run >= 0:
                taken[group] = run
                wanting[run] -= float(sizes[group])
        self._wanting = np.array(wanting)
        return np.array(taken, dtype=np.int64)


def _blind_weights(choices: Choices, rows: IntArray, groups: IntArray, num_groups: int) -> FloatArray:
    """Return log weights of the bins where what a group's rows agree on counts once."""
    used, context = distinct_values(choices.context[rows])
    chance = normalised(choices.log_weight[used])
    counts = count_matrix(groups, context, num_groups, len(used))
    size = counts.sums_of_lines()[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        # In place: these are the largest tables of a draw.
        by_bin = counts @ chance
        by_bin /= size
        np.log(by_bin, out=by_bin)
        by_bin *= size - 1
        np.subtract(counts @ np.log(chance), by_bin, out=by_bin)
    by_bin[np.isnan(by_bin)] = -np.inf
    return by_bin
