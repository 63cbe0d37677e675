"""Which owner has which value: each value of a wide attribute goes to one of its possible owners.

An owner needs values in proportion to its rows, in each bin in which the model expects them. Values whose owner the
model is sure of go first, to that owner. The others follow, the most frequent first, each to the owner that needs most
in its bin: where the model knows little, frequent values go to large owners, small owners are not left out, and rows of
an owner need not leave the bins in which they are expected.
"""

from __future__ import annotations

import enum

import numpy as np

from kamino.arrays import FloatArray, IntArray

#: A value is its likeliest owner's if that has this part of its rows; one of a bin of many, if it has all but a few.
_SURE, _WHOLLY = 0.5, 0.999
#: Values whose owner is not sure choose again so often, knowing what all others have, if there are no more than this.
_AGAIN, _CHOOSE_AGAIN = 2, 20_000


class Owner(enum.IntEnum):
    """What stands in place of an owner: nobody yet, or nobody ever."""

    NOBODY = -1
    FORBIDDEN = -2


def assign_owners(
    expected: FloatArray, wanted: FloatArray, fixed: IntArray | None = None, bins: IntArray | None = None
) -> IntArray:
    """Return the owner (a line of `expected`) of each value (a column), or `Owner.NOBODY`.

    Args:
        expected: how many rows of each owner the model expects to hold each value.
        wanted: how many rows each owner has.
        fixed: owners that are given; `NOBODY` where none is, `FORBIDDEN` where nobody may own the value.
        bins: the bin of each value; one for all without it.

    Guarantees:
        Every owner with rows has a value, if there are enough.  [test_every_owner_has_a_value]
        Where the model is sure, it is followed.  [test_sure_owners_are_followed]
        Values of one bin are shared out among its owners.  [test_values_of_a_bin_are_shared_out]
        Frequent values go to large owners.  [test_frequent_values_go_to_large_owners]
        Owners have values where their rows are expected.  [test_owners_have_values_in_their_bins]
        Values of an owner have as many rows as it has, as nearly as can be.  [test_values_add_up_to_their_owners]
    """
    num_values = expected.shape[1]
    owner = np.full(num_values, Owner.NOBODY, dtype=np.int64)
    if fixed is not None:
        owner = np.where(fixed >= 0, fixed, Owner.NOBODY)
    open_values = np.flatnonzero(np.ones(num_values, np.bool_) if fixed is None else fixed == Owner.NOBODY)
    mass = expected.sum(axis=0)
    best = np.argmax(expected, axis=0)
    sure = np.divide(expected[best, np.arange(num_values)], mass, out=np.zeros(num_values), where=mass > 0)
    by_value = np.ascontiguousarray(expected.T)
    needs = _Needs(by_value, wanted, np.zeros(num_values, dtype=np.int64) if bins is None else bins)
    # What the model knows of a bin of many values is how they are shared out, not whose each of them is.
    own = np.ones(num_values, np.bool_) if bins is None else np.bincount(bins)[bins] == 1
    is_sure = ((sure >= _SURE) & own | (sure >= _WHOLLY))[open_values]
    first, others = open_values[is_sure], open_values[~is_sure]
    for value in first[np.argsort(-sure[first], kind="stable")].tolist():
        owner[value] = best[value]
        needs.give(value, int(best[value]))
    for value in others[np.argsort(-mass[others], kind="stable")].tolist():
        owner[value] = needs.neediest(value)
        needs.give(value, int(owner[value]))
    if len(others) <= _CHOOSE_AGAIN:
        for value in others[np.argsort(-mass[others], kind="stable")].tolist() * _AGAIN:
            needs.take_back(value, int(owner[value]))
            owner[value] = needs.best_filled(value, int(owner[value]))
            needs.give(value, int(owner[value]))
    _give_every_owner_a_value(owner, by_value, wanted, frozenset(open_values.tolist()))
    return owner


class _Needs:
    """How many rows of each owner are still without a value, in all and bin by bin."""

    def __init__(self, by_value: FloatArray, wanted: FloatArray, bins: IntArray) -> None:
        self._bins, self._mass = bins, by_value.sum(axis=1)
        self._likely = by_value / np.maximum(wanted, 1e-300)[None, :]
        self._left = wanted.astype(np.float64)
        self._open = np.maximum(self._left, 0.0)
        order = np.argsort(bins, kind="stable")
        held, begin = np.unique(bins[order], return_index=True)
        self._left_here = np.zeros((int(bins.max(initial=-1)) + 1, len(wanted)))
        if len(held):
            self._left_here[held] = np.add.reduceat(by_value[order], begin, axis=0)
        self._is_open_here = self._left_here > 0
        self._wanted, self._wanted_here = self._left.copy(), self._left_here.copy()

    def give(self, value: int, owner: int) -> None:
        """Take note that a value has an owner."""
        own_bin = self._bins[value]
        self._left[owner] -= self._mass[value]
        self._open[owner] = max(self._left[owner], 0.0)
        self._left_here[own_bin, owner] -= self._mass[value]
        self._is_open_here[own_bin, owner] = self._left_here[own_bin, owner] > 0

    def take_back(self, value: int, owner: int) -> None:
        """Take note that a value has no owner any more."""
        own_bin = self._bins[value]
        self._left[owner] += self._mass[value]
        self._left_here[own_bin, owner] += self._mass[value]

    def best_filled(self, value: int, before: int) -> int:
        """Return the owner whose rows, in the value's bin and in all, come nearest to its values by this one.

        It is one that needs some in the bin and may have the value, or the one that had it `before`.
        """
        mass, own_bin = self._mass[value], self._bins[value]
        if mass <= 0:
            return before
        gain = nearer_by(self._left_here[own_bin], self._wanted_here[own_bin], mass)
        gain += nearer_by(self._left, self._wanted, mass)
        gain[(self._left_here[own_bin] <= 0) | (self._likely[value] <= 0)] = -np.inf
        best = int(np.argmax(gain))
        return best if np.isfinite(gain[best]) else before

    def neediest(self, value: int) -> int:
        """Return the owner that needs most, of those likely to have a value: one that needs some in its bin, if any."""
        needed = self._likely[value] * self._open
        for each in (needed * self._is_open_here[self._bins[value]], needed):
            owner = int(each.argmax())
            if each[owner] > 0:
                return owner
        return int(self._likely[value].argmax())


def nearer_by(left: FloatArray, wanted: FloatArray, mass: float) -> FloatArray:
    """Return how much nearer to what owners want rows of one value bring them: in rows, then in squares."""
    beyond = 2 * left - mass
    return np.asarray(np.clip(beyond / mass, -1.0, 1.0) + beyond / np.maximum(wanted, mass))


def _give_every_owner_a_value(
    owner: IntArray, by_value: FloatArray, wanted: FloatArray, open_values: frozenset[int]
) -> None:
    """Give each owner with rows but without values the likeliest value that its owner can spare."""
    held = np.bincount(owner[owner >= 0], minlength=by_value.shape[1])
    movable = np.zeros(len(owner), dtype=np.bool_)
    movable[list(open_values)] = True
    total = np.maximum(by_value.sum(axis=1), 1e-300)
    for owner_without in sorted(np.flatnonzero((held == 0) & (wanted > 0)), key=lambda each: -wanted[each]):
        spare = movable & ((owner < 0) | (held[owner] > 1))
        if not spare.any():
            return
        value = int(np.argmax(np.where(spare, by_value[:, owner_without] / total, -1.0)))
        if owner[value] >= 0:
            held[owner[value]] -= 1
        owner[value] = owner_without
        held[owner_without] = 1
