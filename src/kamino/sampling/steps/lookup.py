"""Lookup: hard dependencies X -> A with X there already. One value for each group of rows.

Null clashes with nothing, so nulls come first, for each row as often as the model has them. Drawn together with the
values they would get out of hand: a row's null would only have to beat the one value of its group.

For a few groups, the column follows the law of the model given the nulls and that the dependency holds: of a group
g of the other rows, P(v) is proportional to the product of p(v | c_i) over its rows i, contexts c_i. Where there are
many, values are handed out (`handing_out.py`): what a group's rows agree on decides, as far as the column keeps its
frequencies.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints.analysis.classify import dependency_of
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.codes.grouping import join_groups
from kamino.sampling.partners import DEAD
from kamino.sampling.steps.handing_out import hand_out
from kamino.sampling.steps.shared_values import share_out
from kamino.sampling.steps.task import Task
from kamino.schema.coding.joint_codes import distinct_values, number_values

# So few groups are drawn by the model's law alone: frequencies cannot be kept with them.
_FEW = 24


def draw_lookup(task: Task) -> IntArray:
    """Draw one value for each group of rows that the left sides tie together.

    Guarantees:
        With few groups, the column follows the product of the rows' distributions, given the nulls and that it breaks
        no dependency.  [test_lookup_is_exact, test_lookup_with_nulls_is_exact]
        With many, it keeps its distribution, whatever the model knows.  [test_blind_lookup_keeps_the_marginal,
        test_unsure_lookup_keeps_the_marginal]
        Nulls are as frequent as in the model.  [test_lookup_keeps_the_share_of_nulls]
    """
    nulls = task.choices.draw_nulls(task.rng)
    values = replace(task, choices=task.choices.without_null())
    groups, fixed = dependency_groups(task, ~nulls), _fixed_codes(task)
    alone = np.bincount(groups)[groups] == 1
    codes = np.full(task.num_rows, DEAD, dtype=np.int64)
    shared = np.flatnonzero(~alone)
    many = task.hands_out and len(distinct_values(groups[shared])[0]) > _FEW
    single = np.flatnonzero(~nulls & alone & (fixed < 0))
    codes[single] = values.choices.draw(task.rng, single, independent=not many)
    rest = np.flatnonzero(~nulls & (~alone | (fixed >= 0)))
    if len(rest):
        mine, _ = number_values(groups[rest])
        codes[rest] = _choose(values, rest, mine, fixed[rest])[mine]
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


def _fixed_codes(task: Task) -> IntArray:
    """Return the code that a public map gives each row, or -1."""
    fixed = np.full(task.num_rows, -1, dtype=np.int64)
    for (left, right), reference in task.references.items():
        if right == task.step.attribute and set(left) <= task.columns.keys():
            found = reference.find(task.columns)
            usable = task.choices.bins_of(np.maximum(found, 0))[0] >= 0
            fixed = np.where((fixed < 0) & (found >= 0) & usable, found, fixed)
    return fixed


def _choose(task: Task, rows: IntArray, groups: IntArray, fixed: IntArray) -> IntArray:
    """Return the code of each group: the one a public map gives, else a draw."""
    num_groups = int(groups.max()) + 1
    chosen = np.full(num_groups, DEAD, dtype=np.int64)
    known = fixed >= 0
    chosen[groups[known]] = fixed[known]
    many = task.hands_out and num_groups > _FEW
    run = (hand_out if many else share_out)(task.choices, rows, groups, task.rng)
    return np.where(chosen >= 0, chosen, _inside(task, run))


def _inside(task: Task, run: IntArray) -> IntArray:
    """Draw a code in each run; -1 stays dead."""
    return np.where(run < 0, DEAD, task.choices.codes_at(run, task.rng.random(len(run)), task.rng))
