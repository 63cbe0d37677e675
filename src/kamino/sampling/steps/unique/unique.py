"""Unique: a key that ends with A, or dependencies both ways. No value twice among the rows that share the rest.

The law is the product of the rows' distributions, given that all values differ. Small problems are drawn exactly;
large ones start from draws without clashes and are then mixed: rows swap values or draw anew, in steps that leave the
law as it is. Values of dependencies both ways are matched to their groups (`matching.py`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import ConstraintClass, classify
from kamino.constraints.analysis.classify import dependency_of
from kamino.sampling.codes.choices import Choices
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.partners import DEAD
from kamino.sampling.steps.lookup import dependency_groups
from kamino.sampling.steps.shared_values import group_weights
from kamino.sampling.steps.task import Task
from kamino.sampling.steps.unique.distinct import EXACT_ITEMS, EXACT_VALUES, draw_distinct
from kamino.sampling.steps.unique.matching import match_groups

#: So many weights of values, one for each context, are laid out to match groups to values.
_MOST_LISTED = 1 << 24


def draw_unique(task: Task) -> IntArray:
    """Draw values of which no two rows with equal other key attributes have the same; nulls clash with nothing.

    Guarantees:
        No value twice.  [test_unique_holds]
        Exact on small domains.  [test_unique_is_exact]
    """
    keys = [c for c in task.step.constraints if classify(c) is ConstraintClass.KEY]
    if not keys:
        return _draw_one_to_one(task)
    rest = frozenset(keys[0].attributes) - {task.step.attribute}
    bound = task.present(rest)
    return _draw_bound(task, task.choices, bound, task.keys(rest))


def _draw_bound(task: Task, choices: Choices, bound: Mask, parts: IntArray) -> IntArray:
    codes = np.full(task.num_rows, DEAD, dtype=np.int64)
    free, rows = np.flatnonzero(~bound), np.flatnonzero(bound)
    codes[free] = choices.draw(task.rng, free)
    if len(rows):
        mine = replace(choices, context=choices.context[rows])
        codes[rows] = draw_distinct(mine, parts[rows], task.rng)
    return codes


def _draw_one_to_one(task: Task) -> IntArray:
    """Give one value to each group, none to two groups; rows without a value on the other side are free.

    Null clashes with nothing, so nulls come first, for each row as often as the model has them.

    Guarantees:
        Nulls are as frequent as in the model.  [test_one_to_one_keeps_the_share_of_nulls]
    """
    (out_of,) = (d for c in task.step.constraints if (d := dependency_of(c)) and d.right != task.step.attribute)
    bound = task.present(frozenset({out_of.right}))
    nulls = task.choices.draw_nulls(task.rng)
    values = task.choices.without_null()
    codes = np.full(task.num_rows, DEAD, dtype=np.int64)
    free, rows = np.flatnonzero(~bound & ~nulls), np.flatnonzero(bound & ~nulls)
    codes[free] = values.draw(task.rng, free)
    if len(rows) and len(values.starts):
        groups = np.unique(dependency_groups(task)[rows], return_inverse=True)[1].astype(np.int64)
        num_groups = int(groups.max()) + 1
        size = int(values.width.sum())
        few = size <= EXACT_VALUES and num_groups <= EXACT_ITEMS
        # Of very many values none is frequent, and not all can be listed.
        many = size * len(values.log_weight) > _MOST_LISTED
        codes[rows] = (_draw_apart if few or many else match_groups)(values, rows, groups, task.rng)[groups]
    return task.with_nulls(codes, nulls)


def _draw_apart(choices: Choices, rows: IntArray, groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw the groups' values by the product of their rows' distributions, given that all differ; exactly, if few."""
    num_groups, runs = int(groups.max()) + 1, np.arange(len(choices.starts), dtype=np.int64)
    shared = replace(
        choices,
        context=np.arange(num_groups, dtype=np.int64),
        log_weight=group_weights(choices, rows, groups, num_groups),
        label=runs,
        share=np.ones(len(runs)),
        model_bin=None,
        spread=None,
    )
    return draw_distinct(shared, np.zeros(num_groups, np.int64), rng)
