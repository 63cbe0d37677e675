"""Distances of all marginals of one order: total variation, and the largest difference of one cell.

The paper's third metric calls the second of them total variation; both are given here under their own names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from kamino.arrays import distinct
from kamino.evaluate.measure.metrics import BinnedPair
from kamino.schema.coding.joint_codes import number_combinations, number_values

Names = tuple[str, ...]
Progress: TypeAlias = Callable[[Iterable[Names]], Iterable[Names]]
Integers = npt.NDArray[np.int64]
# Up to this many cells a count is an array over all of them; above, over those that occur.
DENSE_CELLS = 1 << 18


@dataclass(frozen=True, kw_only=True)
class Distance:
    """How far two marginals are apart: 0 where they agree, 1 where they have nothing in common."""

    total_variation: float
    max_cell: float


@dataclass(frozen=True, kw_only=True)
class MarginalDistances:
    """The distances of the marginals of one order that were measured, and how many there are."""

    order: int
    total: int
    by_attributes: Mapping[Names, Distance]

    @property
    def mean(self) -> float:
        """The mean total variation; 0 where nothing was measured."""
        found = [d.total_variation for d in self.by_attributes.values()]
        return float(np.mean(found)) if found else 0.0

    @property
    def maximum(self) -> float:
        """The largest total variation."""
        return max((d.total_variation for d in self.by_attributes.values()), default=0.0)

    @property
    def max_cell(self) -> float:
        """The largest difference of any cell."""
        return max((d.max_cell for d in self.by_attributes.values()), default=0.0)

    @property
    def mean_max_cell(self) -> float:
        """The mean over marginals of the largest difference of a cell: the paper's figure."""
        found = [d.max_cell for d in self.by_attributes.values()]
        return float(np.mean(found)) if found else 0.0

    @property
    def worst(self) -> Names:
        """The attributes of the marginal that is furthest off."""
        return max(self.by_attributes, key=lambda names: self.by_attributes[names].total_variation, default=())


def compare_marginals(
    pair: BinnedPair, *, order: int, limit: int | None = None, progress: Progress = iter
) -> MarginalDistances:
    """Compare every marginal of `order` attributes; above `limit`, that many evenly chosen ones.

    Guarantees:
        Agrees with the plain distances.  [test_compare_marginals_agrees_with_plain_distances]
    """
    total = math.comb(len(pair.sizes), order)
    chosen = _evenly(list(combinations(pair.sizes, order)), limit)
    return MarginalDistances(
        order=order, total=total, by_attributes={names: _distance(pair, names) for names in progress(chosen)}
    )


def split_halves(pair: BinnedPair, *, seed: int = 0) -> BinnedPair:
    """Two random halves of the true table as a pair of their own: how far apart chance alone drives tables."""
    one, two = halve_rows(len(next(iter(pair.true.values()), ())), seed=seed)
    return BinnedPair(
        true={name: bins[one] for name, bins in pair.true.items()},
        synthetic={name: bins[two] for name, bins in pair.true.items()},
        sizes=pair.sizes,
    )


def halve_rows(num_rows: int, *, seed: int = 0) -> tuple[Integers, Integers]:
    """The numbers of the rows of two random halves of a table."""
    order = np.random.default_rng(seed).permutation(num_rows)
    return order[: num_rows // 2], order[num_rows // 2 :]


def distance(one: npt.NDArray[np.float64], two: npt.NDArray[np.float64]) -> Distance:
    """The distance of two arrays of probabilities.

    >>> distance(np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.25, 0.25]))
    Distance(total_variation=0.25, max_cell=0.25)
    """
    gap = np.abs(one - two)
    return Distance(total_variation=float(gap.sum() / 2), max_cell=float(gap.max(initial=0.0)))


def _evenly(items: list[Names], limit: int | None) -> list[Names]:
    """At most `limit` of the items: always the same ones, and without a bias to the first attributes."""
    if limit is None or len(items) <= limit:
        return items
    chosen = np.random.default_rng(0).choice(len(items), size=limit, replace=False)
    return [items[i] for i in np.sort(chosen)]


def _distance(pair: BinnedPair, names: Names) -> Distance:
    rows = len(pair.true[names[0]]), len(pair.synthetic[names[0]])
    if not all(rows):
        far = float(any(rows))
        return Distance(total_variation=far, max_cell=far)
    columns = [np.concatenate([pair.true[n], pair.synthetic[n]]) for n in names]
    cells, size = number_combinations(columns, _sizes(pair, names))
    one, two = cells[: rows[0]], cells[rows[0] :]
    if size > DENSE_CELLS:
        counted = _counts_of_both(one, two)
    else:
        counted = np.bincount(one, minlength=size), np.bincount(two, minlength=size)
    return distance(counted[0] / rows[0], counted[1] / rows[1])


def _counts_of_both(one: Integers, two: Integers) -> tuple[Integers, Integers]:
    """How often each number that occurs does so on either side: by sorting each side, which numbers nothing anew."""
    sides = [np.unique(side, return_counts=True) for side in (one, two)]
    every = distinct(*(values for values, _ in sides))
    found = []
    for values, counts in sides:
        held = np.zeros(len(every), dtype=np.int64)
        held[np.searchsorted(every, values)] = counts
        found.append(held)
    return found[0], found[1]


def _sizes(pair: BinnedPair, names: Names) -> list[int]:
    return [pair.sizes[name] for name in names]


def joint_cells(columns: Sequence[Integers], sizes: Sequence[int]) -> tuple[Integers, int]:
    """Number the cells of a joint table: the cell of each row, and how many cells there are."""
    cells, size = number_combinations(columns, sizes)
    return number_values(cells) if size > DENSE_CELLS else (cells, size)
