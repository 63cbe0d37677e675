"""Unique: a key that ends with A, or dependencies both ways. No value twice among the rows that share the rest.

The law is the product of the rows' distributions, given that all values differ. Small problems are drawn exactly;
large ones start from draws without clashes and are then mixed: rows swap values or draw anew, in steps that leave the
law as it is.
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
from kamino.sampling.steps.unique.distinct import draw_distinct


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
    """Draw one value for each group, none for two groups; rows without a value on the other side are free."""
    (out_of,) = (d for c in task.step.constraints if (d := dependency_of(c)) and d.right != task.step.attribute)
    bound = task.present(frozenset({out_of.right}))
    codes = np.full(task.num_rows, DEAD, dtype=np.int64)
    free, rows = np.flatnonzero(~bound), np.flatnonzero(bound)
    codes[free] = task.choices.draw(task.rng, free)
    if len(rows) == 0:
        return codes
    groups = np.unique(dependency_groups(task)[rows], return_inverse=True)[1].astype(np.int64)
    num_groups = int(groups.max()) + 1
    runs = np.arange(len(task.choices.starts), dtype=np.int64)
    weight = group_weights(task.choices, rows, groups, num_groups)
    if task.choices.null_bin is not None:
        weight[:, task.choices.label == task.choices.null_bin] -= 1e6
    shared = replace(
        task.choices,
        context=np.arange(num_groups, dtype=np.int64),
        log_weight=weight,
        label=runs,
        share=np.ones(len(runs)),
        model_bin=None,
        spread=None,
        null_bin=None
        if task.choices.null_bin is None
        else int(np.flatnonzero(task.choices.label == task.choices.null_bin)[0]),
    )
    codes[rows] = draw_distinct(shared, np.zeros(num_groups, np.int64), task.rng)[groups]
    return codes
