"""At which resolution a marginal is measured: in all bins, in groups of bins, or only null against the rest.

A weak dependence drowns in the noise of many cells and shows in few; a strong one needs many. So every pair is a
candidate at several resolutions, and its expected gain decides (see `selection`).
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np

from kamino.model.protocol import FloatArray, IntArray


class Resolution(enum.IntEnum):
    """How the bins of ordered attributes are read in one marginal; with `GAPS`, two of them by their difference."""

    BINS = 0
    GROUPS = 1
    NULLS = 2
    GAPS = 3


def group_bins(mass: FloatArray, null: int | None, groups: int) -> IntArray | None:
    """Join the bins of an ordered attribute into groups of about equal mass, null alone; None if none are, or all.

    Guarantees:
        Groups are runs of neighbouring bins.  [test_groups_are_runs_of_bins]
    """
    if len(mass) <= groups + 1:
        return None
    held = np.maximum(mass, 0.0)
    if null is not None:
        held = np.where(np.arange(len(held)) == null, 0.0, held)
    total = float(held.sum())
    held = held if total > 0 else np.ones(len(held))
    middle = (np.cumsum(held) - held / 2) / held.sum()
    group = np.minimum(np.floor(middle * groups), groups - 1).astype(np.int64)
    if null is not None:
        group[null] = groups
    found = np.asarray(np.unique(group, return_inverse=True)[1], dtype=np.int64)
    return found if found.max() > 0 else None


def grouped_shape(groups: Sequence[IntArray | None], sizes: Sequence[int]) -> tuple[int, ...]:
    """Return how many values of each attribute are measured."""
    return tuple(size if group is None else int(group.max()) + 1 for group, size in zip(groups, sizes, strict=True))


def group_cells(groups: Sequence[IntArray | None], sizes: Sequence[int]) -> tuple[IntArray | None, tuple[int, ...]]:
    """Return the measured cell of each cell of a marginal (None if all are alone), and the shape that is measured."""
    shape = grouped_shape(groups, sizes)
    if all(group is None for group in groups):
        return None, shape
    index = np.zeros(1, dtype=np.int64)
    for group, size, count in zip(groups, sizes, shape, strict=True):
        own = np.arange(size, dtype=np.int64) if group is None else group
        index = (index[:, None] * count + own[None, :]).ravel()
    return index, shape
