"""Which row is copied into a row for which no value was found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kamino.arrays import IntArray
from kamino.sampling.codes.grouping import join_keys, match_at_random
from kamino.sampling.steps.task import Task


def find_donors(task: Task, dead: IntArray, alive: IntArray) -> IntArray:
    """Return a random living row for each dead one, one that differs in one attribute of the constraints if there is.

    A row is dead because its values do not go together. Changing one of them is enough then, and the others keep their
    distribution.

    Guarantees:
        Every donor is alive, and is as near as it can be.  [test_donors_are_near]
    """
    names = sorted({n for c in task.step.constraints for n in c.attributes} & task.columns.keys())
    donors = np.full(len(dead), -1, dtype=np.int64)
    for left_out in names if len(names) > 1 else ():
        kept = [name for name in names if name != left_out]
        missing = np.flatnonzero(donors < 0)
        donors[missing] = _matching(task, kept, dead[missing], alive)
    missing = np.flatnonzero(donors < 0)
    donors[missing] = task.rng.choice(alive, len(missing))
    return donors


def _matching(task: Task, names: Sequence[str], dead: IntArray, alive: IntArray) -> IntArray:
    """Return a random living row with the same values of `names` for each dead one; -1 where there is none."""
    both = np.concatenate([alive, dead])
    key = join_keys([task.columns[name][both] for name in names])
    found = match_at_random(key[: len(alive)], key[len(alive) :], task.rng)
    return np.where(found >= 0, alive[found], -1)
