"""Which owner has which value: each value of a wide attribute goes to one of its possible owners.

An owner needs values in proportion to its rows. Values whose owner the model is sure of go first, to that owner. The
others follow, the most frequent first, each to the owner that needs most among those that are likely to have it: where
the model knows little, frequent values go to large owners and small owners are not left out.
"""

from __future__ import annotations

import enum

import numpy as np

from kamino.arrays import FloatArray, IntArray

_SURE = 0.5


class Owner(enum.IntEnum):
    """What stands in place of an owner: nobody yet, or nobody ever."""

    NOBODY = -1
    FORBIDDEN = -2


def assign_owners(expected: FloatArray, wanted: FloatArray, fixed: IntArray | None = None) -> IntArray:
    """Return the owner (a line of `expected`) of each value (a column), or `Owner.NOBODY`.

    Args:
        expected: how many rows of each owner the model expects to hold each value.
        wanted: how many rows each owner has.
        fixed: owners that are given; `NOBODY` where none is, `FORBIDDEN` where nobody may own the value.

    Guarantees:
        Every owner with rows has a value, if there are enough.  [test_every_owner_has_a_value]
        Where the model is sure, it is followed.  [test_sure_owners_are_followed]
    """
    num_values = expected.shape[1]
    owner = np.full(num_values, Owner.NOBODY, dtype=np.int64)
    if fixed is not None:
        owner = np.where(fixed >= 0, fixed, Owner.NOBODY)
    open_values = np.flatnonzero(np.ones(num_values, np.bool_) if fixed is None else fixed == Owner.NOBODY)
    mass = expected.sum(axis=0)
    best = np.argmax(expected, axis=0)
    sure = np.divide(expected[best, np.arange(num_values)], mass, out=np.zeros(num_values), where=mass > 0)
    needed = wanted.astype(np.float64).copy()
    by_value = np.ascontiguousarray(expected.T)
    likely = by_value / np.maximum(wanted, 1e-300)[None, :]
    first = open_values[sure[open_values] >= _SURE]
    others = open_values[sure[open_values] < _SURE]
    for value in (*first[np.argsort(-sure[first], kind="stable")], *others[np.argsort(-mass[others], kind="stable")]):
        chosen = best[value]
        if sure[value] < _SURE and needed.max(initial=0.0) > 0:
            chosen = int(np.argmax(likely[value] * needed))
        owner[value] = chosen
        needed[chosen] -= mass[value]
    _give_every_owner_a_value(owner, by_value, wanted, frozenset(open_values.tolist()))
    return owner


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
