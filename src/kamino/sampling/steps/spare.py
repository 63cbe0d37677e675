"""Values to fall back on where none of a row's candidates is clean: those of its neighbours, and some that are new."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint
from kamino.constraints.counting.conjunction import conjunction_of, equal_attributes
from kamino.sampling.codes.grouping import join_keys
from kamino.sampling.feasible.row_search import tried_codes
from kamino.sampling.partners import DEAD
from kamino.sampling.plan.shapes import shape_of
from kamino.sampling.steps.task import Task
from kamino.schema.coding.joint_codes import number_combinations

_PICKED = 8
# Domains up to this size are searched for values that no row has.
_SEARCHED = 1 << 20


def neighbouring_codes(task: Task, hard: Iterable[DenialConstraint], rows: IntArray, codes: IntArray) -> IntArray:
    """Return codes of settled rows near each row, a line for each; `DEAD` fills the line.

    Near are, for a constraint on pairs, the rows that have equal values where these must be equal, and among them those
    next to the row in the attribute that is compared for order, if there is one. For a dependency that is the value
    it asks for; for an order, both ends of what is allowed.
    """
    there = np.flatnonzero(codes != DEAD)
    if len(there) == 0:
        return np.full((len(rows), 1), DEAD, dtype=np.int64)
    found = [_beside(task, constraint, rows, there, codes[there]) for constraint in hard]
    return np.concatenate([*found, task.rng.choice(codes[there], (len(rows), _PICKED))], axis=1)


def new_codes(task: Task, hard: Iterable[DenialConstraint], rows: IntArray, codes: IntArray) -> IntArray:
    """Return codes worth a try, a line for each row: some that no row has, ends, null, and constants' neighbours."""
    tried, _ = tried_codes(task.judge, task.step.attribute, list(hard))
    lines = [np.broadcast_to(tried, (len(rows), len(tried)))]
    if int(task.choices.width.sum()) <= _SEARCHED:
        unused = np.setdiff1d(task.choices.codes(), codes)
        if len(unused):
            # Column after column, so that rows of a block do not try the same one first.
            lines.append(np.resize(task.rng.permutation(unused), (_PICKED, len(rows))).T)
    return np.concatenate(lines, axis=1)


def _beside(task: Task, constraint: DenialConstraint, rows: IntArray, there: IntArray, settled: IntArray) -> IntArray:
    name = task.step.attribute
    dependency = shape_of(constraint)[1]
    equal = equal_attributes(constraint) if dependency is None else dependency.left | {dependency.right}
    both = np.concatenate([there, rows])
    keys = [task.columns[other][both] for other in sorted(equal - {name})]
    key = join_keys(keys) if keys else np.zeros(len(both), dtype=np.int64)
    along = _numbers_along(task, constraint, both)
    place, _ = number_combinations([key, along])
    mine, wanted = place[: len(there)], place[len(there) :]
    columns = []
    for direction in (settled, -settled):
        order = np.lexsort((direction, mine))
        left = np.searchsorted(mine[order], wanted, side="left")
        right = np.searchsorted(mine[order], wanted, side="right")
        for at in (left - 1, left, right - 1, right):
            inside = np.clip(at, 0, len(there) - 1)
            near = (at == inside) & (key[order[inside]] == key[len(there) :])
            columns.append(np.where(near, settled[order[inside]], DEAD))
    return np.stack(columns, axis=1)


def _numbers_along(task: Task, constraint: DenialConstraint, rows: IntArray) -> IntArray:
    """Number the rows by the values of another attribute that the constraint compares for order; 0 if there is none."""
    for cross in conjunction_of(constraint).cross:
        if cross.op is not None and cross.op.is_order and cross.left == cross.right != task.step.attribute:
            codes = task.columns[cross.left][rows]
            numbers, _ = task.judge.numbers(cross.left, codes, cross.left, codes, cross.op)
            return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    return np.zeros(len(rows), dtype=np.int64)
