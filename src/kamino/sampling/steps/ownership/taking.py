"""Ownership where values are too many to list: whoever draws a value first takes it."""

from __future__ import annotations

import numpy as np

from kamino.arrays import IntArray
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.codes.grouping import join_keys
from kamino.sampling.partners import DEAD
from kamino.sampling.steps.task import Task
from kamino.schema.coding.joint_codes import MOST_NUMBERS, flatten_codes

_ROUNDS = 12
_MORE_ROUNDS = 60
# Rows stop drawing, and take values of their owner, after a round in which fewer than this part of them found one.
_WORTH_IT = 0.1


class _Taken:
    """Which owner has taken which (group, value), as sorted arrays.

    Keys are numbered by what the schema says of the domain where that fits 64 bits. Where it does not, values get their
    numbers as they are first drawn, which are no more than there are draws.
    """

    def __init__(self, num_groups: int, size: int) -> None:
        self._sizes = (num_groups, size)
        self._is_small = num_groups * size <= MOST_NUMBERS
        self._values: IntArray = np.zeros(0, dtype=np.int64)
        self.keys: IntArray = np.zeros(0, dtype=np.int64)
        self.owners: IntArray = np.zeros(0, dtype=np.int64)

    def number(self, groups: IntArray, values: IntArray) -> IntArray:
        """Return the key of each (group, value): the same one in every round."""
        if self._is_small:
            return flatten_codes([groups, values], self._sizes)
        new = np.setdiff1d(values, self._values)
        self._values = np.concatenate([self._values, new])
        order = np.argsort(self._values)
        place = order[np.searchsorted(self._values, values, sorter=order)]
        return place * self._sizes[0] + groups

    def find(self, keys: IntArray) -> IntArray:
        """Return the owner of each key, or -1."""
        if len(self.keys) == 0:
            return np.full(len(keys), -1, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[place] == keys, self.owners[place], -1)

    def add(self, keys: IntArray, owners: IntArray) -> None:
        """Let the first owner of each key that is still free have it."""
        free = self.find(keys) < 0
        new, first = np.unique(keys[free], return_index=True)
        merged = np.concatenate([self.keys, new])
        order = np.argsort(merged, kind="stable")
        self.keys = merged[order]
        self.owners = np.concatenate([self.owners, owners[free][first]])[order]


def take_as_drawn(task: Task, rows: IntArray, groups: IntArray, owners: IntArray) -> IntArray:
    """Draw; a value belongs to a random one of its first drawers, and whoever holds another's draws again.

    First one row of each owner draws: owners of many rows would otherwise take all the values. Who is still without
    after some rounds, or when hardly any are free, takes a value of a row with the same owner. Within each of
    `groups`, values are owned anew. What maps say is followed.

    Guarantees:
        Owners of few rows have values, if there are enough.  [test_small_owners_have_values_of_a_wide_domain]
    """
    size = task.judge.codec[task.step.attribute].size
    null_code = task.judge.codec[task.step.attribute].null_code
    codes = np.full(len(rows), DEAD, dtype=np.int64)
    taken = _Taken(int(groups.max(initial=0)) + 1, size)
    same = join_keys([groups, owners])
    _draw_one_each(task, rows, groups, owners, same, taken, codes)
    waiting = task.rng.permutation(np.flatnonzero(codes == DEAD))
    is_worth_it, has_copied = True, False
    for turn in range(_ROUNDS + _MORE_ROUNDS):
        if not has_copied and (turn == _ROUNDS or not is_worth_it):
            _copy_settled(codes, waiting, same, task.rng)
            waiting, has_copied = waiting[codes[waiting] == DEAD], True
        if len(waiting) == 0:
            break
        drawn = task.choices.draw(task.rng, rows[waiting])
        alive = (drawn >= 0) & follows_maps(task, rows[waiting], np.maximum(drawn, 0))
        keys = taken.number(groups[waiting], np.maximum(drawn, 0))
        nothing = alive & (drawn == null_code) if null_code is not None else np.zeros(len(drawn), np.bool_)
        taken.add(keys[alive & ~nothing], owners[waiting][alive & ~nothing])
        settled = nothing | (alive & (taken.find(keys) == owners[waiting]))
        codes[waiting[settled]] = drawn[settled]
        waiting, is_worth_it = waiting[~settled], settled.mean() >= _WORTH_IT
    if len(waiting) and task.choices.null_bin is not None and null_code is not None:
        codes[waiting] = null_code
    return codes


def _draw_one_each(
    task: Task, rows: IntArray, groups: IntArray, owners: IntArray, same: IntArray, taken: _Taken, codes: IntArray
) -> None:
    """Let one row of each owner draw a value that nobody has, in place; after some rounds those without stay so."""
    choices = task.choices.without_null()
    without = np.ones(int(same.max(initial=-1)) + 1, dtype=np.bool_)
    for _ in range(_ROUNDS + _MORE_ROUNDS):
        shuffled = task.rng.permutation(np.flatnonzero(without[same]))
        _, first = np.unique(same[shuffled], return_index=True)
        trying = task.rng.permutation(shuffled[first])
        if len(trying) == 0:
            return
        drawn = choices.draw(task.rng, rows[trying])
        alive = (drawn >= 0) & follows_maps(task, rows[trying], np.maximum(drawn, 0))
        keys = taken.number(groups[trying], np.maximum(drawn, 0))
        taken.add(keys[alive], owners[trying][alive])
        settled = alive & (taken.find(keys) == owners[trying])
        codes[trying[settled]] = drawn[settled]
        without[same[trying[settled]]] = False


def follows_maps(task: Task, rows: IntArray, codes: IntArray) -> Mask:
    """Tell which codes have no other right side in a map than their rows have.

    Guarantees:
        Values of a wide domain keep the owners that maps give.  [test_wide_left_sides_follow_the_world]
    """
    name = task.step.attribute
    follows: Mask = np.ones(len(rows), dtype=np.bool_)
    for (left, right), reference in task.references.items():
        if name in left and right in task.columns and set(left) - {name} <= task.columns.keys():
            own = {each: codes if each == name else task.columns[each][rows] for each in left}
            found, here = reference.find(own), task.columns[right][rows]
            follows &= (found < 0) | (found == here) | task.judge.is_null(right, here)
    return follows


def _copy_settled(codes: IntArray, waiting: IntArray, same: IntArray, rng: np.random.Generator) -> None:
    """Give waiting rows the code of a random settled row with the same owner, where there is one."""
    settled = np.flatnonzero(codes != DEAD)
    if len(settled) == 0 or len(waiting) == 0:
        return
    order = settled[np.argsort(same[settled], kind="stable")]
    low = np.searchsorted(same[order], same[waiting], side="left")
    high = np.searchsorted(same[order], same[waiting], side="right")
    pick = low + np.floor(rng.random(len(waiting)) * (high - low)).astype(np.int64)
    found = high > low
    codes[waiting[found]] = codes[order[np.minimum(pick[found], high[found] - 1)]]
