"""Noisy counts of one marginal, and what would be measured of a model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from kamino.model.marginal.graph.factor import FloatArray, sum_groups
from kamino.model.marginal.graph.junction import Clique
from kamino.model.protocol import IntArray

#: Standard deviations below this (exact counts) are treated as this: half a row.
LEAST_SIGMA = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """Noisy counts of one marginal, with a standard deviation for each cell; axes follow `attributes`, sorted.

    `group` names the measured cell of each cell of the marginal, where it was measured at a lower resolution.
    `is_interaction`: the counts are the table's interactions, see `interactions_of`.
    """

    attributes: Clique
    counts: FloatArray
    sigma: FloatArray
    group: IntArray | None = None
    is_interaction: bool = False

    @property
    def key(self) -> Key:
        """Equal for two measurements of the same."""
        group = None if self.group is None else self.group.tobytes()
        return self.attributes, self.counts.shape, self.is_interaction, group

    def answer(self, table: FloatArray) -> FloatArray:
        """Return what would be measured, without noise, of a marginal with these (flattened) counts."""
        return self.centred(self.grouped(table))

    def spread(self, multipliers: FloatArray) -> FloatArray:
        """Return the transpose of `answer`: a number for each cell of the marginal."""
        multipliers = self.centred(multipliers)
        return multipliers if self.group is None else multipliers[self.group]

    def grouped(self, table: FloatArray) -> FloatArray:
        """Return the counts of the measured cells of a (flattened) marginal."""
        return table if self.group is None else sum_groups(self.group, table, self.counts.size)

    def centred(self, table: FloatArray) -> FloatArray:
        """Return the interactions of a (flattened) table of measured cells, if they were measured; else itself."""
        return interactions_of(table.reshape(self.counts.shape)).ravel() if self.is_interaction else table


#: What tells measurements of different things apart.
Key: TypeAlias = tuple[Clique, tuple[int, ...], bool, bytes | None]


def interactions_of(table: FloatArray) -> FloatArray:
    """Return a table minus the means along each of its axes: what its lower marginals do not say."""
    for axis in range(table.ndim):
        table = table - np.add.reduce(table, axis=axis, keepdims=True) / table.shape[axis]
    return table


def combine(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Merge repeated measurements of one marginal by inverse variance."""
    merged: dict[Key, Measurement] = {}
    for new in measurements:
        old = merged.get(new.key)
        sigma = np.maximum(new.sigma, LEAST_SIGMA)
        if old is None:
            merged[new.key] = replace(new, sigma=sigma)
            continue
        weight = old.sigma**-2 + sigma**-2
        counts = (old.counts / old.sigma**2 + new.counts / sigma**2) / weight
        merged[new.key] = replace(new, counts=counts, sigma=weight**-0.5)
    return list(merged.values())
