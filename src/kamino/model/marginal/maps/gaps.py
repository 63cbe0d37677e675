"""How far one attribute lies above another, where a check says that it is never below it.

Of a total and a part of it (`regular <= gross`), or of a start and an end, what other attributes depend on is often the
difference, and neither of the two: overtime is what is left of gross pay. Bins of both show the difference only if all
three attributes are measured together, which takes too many cells. So the bins of the pair are grouped by how many bins
of the higher attribute lie between what the lower one allows at least and what it is, and these few groups are measured
with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kamino.model.marginal.columns.resolution import group_bins
from kamino.model.protocol import FloatArray, IntArray

#: Pairs in which an attribute has fewer bins are left to triples of all bins.
LEAST_BINS = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Gap:
    """Two attributes, the lower and the higher one, and the group of each pair of their bins (lower on rows)."""

    low: int
    high: int
    labels: IntArray

    @property
    def size(self) -> int:
        """The number of groups."""
        return int(self.labels.max()) + 1


def find_gap(
    pair: tuple[int, int],
    mask: FloatArray,
    counts: FloatArray,
    ranked: Sequence[int],
    groups: int,
) -> Gap | None:
    """Return how two ordered attributes are read by their difference; None if the mask does not compare them.

    `mask` says which pairs of bins a check leaves, `counts` what the model expects in them, and `ranked` how many bins
    of each attribute, the first ones, have an order; null has none, and is a group of its own.

    Guarantees:
        A mask that leaves what is not below is read, either way round, others are not.  [test_comparisons_are_read]
        Groups follow the difference, and null is alone.  [test_groups_follow_the_difference]
    """
    for turned in (False, True):
        table, expected = (mask.T, counts.T) if turned else (mask, counts)
        rows, columns = reversed(ranked) if turned else ranked
        least = _least(table[:rows, :columns] > 0)
        if least is None:
            continue
        far = np.maximum(np.arange(columns)[None, :] - least[:, None], 0)
        mass = np.bincount(far.ravel(), weights=np.maximum(expected[:rows, :columns], 0.0).ravel()).astype(float)
        group = group_bins(mass, None, groups)
        group = np.arange(len(mass)) if group is None else group
        labels = np.full(table.shape, int(group.max()) + 1, dtype=np.int64)
        labels[:rows, :columns] = group[far]
        low, high = reversed(pair) if turned else pair
        return Gap(low=low, high=high, labels=labels)
    return None


def _least(allowed: NDArray[np.bool_]) -> IntArray | None:
    """The first bin of the columns that each line leaves; None unless it rises, and leaves all bins after it."""
    if min(allowed.shape, default=0) < LEAST_BINS or not allowed.any():
        return None
    least = np.where(allowed.any(axis=1), allowed.argmax(axis=1), allowed.shape[1])
    whole = np.array_equal(allowed, np.arange(allowed.shape[1])[None, :] >= least[:, None])
    return least if whole and np.all(np.diff(least) >= 0) and least[-1] > 0 else None
