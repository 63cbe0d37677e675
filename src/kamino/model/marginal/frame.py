"""The frame of a fit: the attributes in bins, and how marginals of them are asked for. Everything here is public."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from kamino.model.marginal.columns.resolution import Resolution, group_cells, grouped_shape
from kamino.model.marginal.graph.factor import first_of_runs
from kamino.model.marginal.graph.inference import LEAST_SIGMA, Measurement, interactions_of
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.graph.two_levels import Levels
from kamino.model.marginal.maps.gaps import Gap
from kamino.model.marginal.maps.relative import Relative
from kamino.model.marginal.purse import Purse
from kamino.model.protocol import (
    Candidate,
    Cells,
    ConditionalMap,
    FloatArray,
    IntArray,
    Measurer,
    ModelAttribute,
    View,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """The attributes as the graphical model sees them.

    Without a sequence, attributes of a chain come in its order. `relatives` are attributes that are read relative to
    another. `groups` and `nulls` say how bins are joined at lower resolutions. A pair is measured by its interactions
    where that takes the noise down to `interactions` times or less. `noise` is the standard deviation of a cell of a
    pair, if some thirty pairs share the budget. `gaps` are pairs that may be read by their difference. `replaced`: a
    neighbouring table has another row in the place of one, instead of one more or less.
    """

    attributes: tuple[ModelAttribute, ...]
    cells: tuple[Cells, ...]
    num_rows: float
    sequence: tuple[int, ...] | None
    chains: tuple[tuple[int, ...], ...]
    allowed: Mapping[Clique, FloatArray]
    relatives: Mapping[int, Relative] = field(default_factory=dict)
    groups: Mapping[int, IntArray] = field(default_factory=dict)
    nulls: Mapping[int, IntArray] = field(default_factory=dict)
    interactions: float = 0.0
    noise: float = LEAST_SIGMA
    gaps: Mapping[Clique, Gap] = field(default_factory=dict)
    replaced: bool = False
    sides: tuple[frozenset[int], frozenset[int]] | None = None
    """Where something is known already, a marginal is measured only if it has an attribute of each side."""

    def is_open(self, clique: Sequence[int]) -> bool:
        """Whether a marginal may be measured."""
        if self.sides is None:
            return True
        first, second = self.sides
        # An attribute of both sides needs another one.
        return any(a in first and b in second for a in clique for b in clique if a != b)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of bins of each attribute."""
        return tuple(self.view(a).bins for a in range(len(self.cells)))

    @cached_property
    def levels(self) -> Levels:
        """The variables of the graphical model: the bins of each attribute, and their groups where there are some."""
        return Levels(sizes=self.sizes, groups={a: g for a, g in self.groups.items() if a not in self.relatives})

    @property
    def after(self) -> dict[int, int]:
        """Which attribute has to come after which: the next of a chain; one that is read relative to another."""
        place = positions(self.attributes)
        links = {later: earlier for chain in self.chains for earlier, later in pairwise(chain)}
        return links | {a: place[relative.view.base] for a, relative in self.relatives.items()}

    @property
    def places(self) -> dict[int, int]:
        """The places of attributes in the sequence, or in their chains: two of one chain can be compared."""
        chains = self.chains if self.sequence is None else (self.sequence,)
        return {a: i for chain in chains for i, a in enumerate(chain)}

    def view(self, a: int) -> View:
        """How attribute `a` is read."""
        return self.relatives[a].view if a in self.relatives else self.cells[a].map

    def null_bin(self, a: int) -> int | None:
        """The bin of attribute `a` that holds null alone; None where there is none."""
        null = self.attributes[a].null_code
        if null is None:
            return None
        if a in self.relatives:
            return self.relatives[a].view.bins - 1
        cells = self.cells[a].map
        label = int(cells(np.array([null], dtype=np.int64))[0])
        return label if np.sum(cells.labels == label) == 1 else None

    def ranked(self, a: int) -> int:
        """The number of bins of an ordered attribute, the first ones, that have an order: all but null."""
        return self.sizes[a] - (self.null_bin(a) is not None)

    def gap_in(self, clique: Clique) -> tuple[Gap, int]:
        """Return the two of three attributes that are read by their difference, and the third one.

        Where there are several, that of the lower attribute with most bins.
        """
        inside = [gap for pair, gap in self.gaps.items() if set(pair) <= set(clique)]
        gap = max(inside, key=lambda each: self.sizes[each.low])
        return gap, next(a for a in clique if a not in (gap.low, gap.high))

    def grouped(self, clique: Clique, resolution: Resolution) -> tuple[IntArray | None, tuple[int, ...]]:
        """Return the measured cell of each cell of a marginal, and the shape of what is measured."""
        if resolution is Resolution.GAPS:
            return self._by_gap(clique, self._group(self.gap_in(clique)[1], Resolution.GROUPS))
        return group_cells([self._group(a, resolution) for a in clique], [self.sizes[a] for a in clique])

    def _shape(self, clique: Clique, resolution: Resolution) -> tuple[int, ...]:
        """The shape of what is measured of a marginal."""
        if resolution is Resolution.GAPS:
            return self.grouped(clique, resolution)[1]
        return grouped_shape([self._group(a, resolution) for a in clique], [self.sizes[a] for a in clique])

    def _by_gap(self, clique: Clique, group: IntArray | None) -> tuple[IntArray, tuple[int, ...]]:
        """The same of a triple of which two are read by their difference; `group` is that of the third's values."""
        gap, third = self.gap_in(clique)
        own = np.arange(self.sizes[third], dtype=np.int64) if group is None else group
        size = int(own.max()) + 1
        order = (gap.low, gap.high, third)
        cells = gap.labels[:, :, None] * size + own[None, None, :]
        return cells.transpose([order.index(a) for a in clique]).ravel(), (gap.size, size)

    def variables(self, clique: Clique, resolution: Resolution = Resolution.BINS) -> Clique:
        """Return the variables over which a marginal of attributes is measured at a resolution."""
        if resolution is Resolution.GAPS:
            third = self.gap_in(clique)[1]
            return self.levels.variables([(a, a == third) for a in clique])
        return self.levels.variables([(a, self._group(a, resolution) is not None) for a in clique])

    def _on_variable(self, a: int, resolution: Resolution) -> IntArray | None:
        """Return what is measured of each value of the variable that stands for attribute `a`; None if all are."""
        group = self._group(a, resolution)
        if group is None or a not in self.levels.coarse:
            return group
        own = self.groups[a]
        return None if resolution is Resolution.GROUPS else group[first_of_runs(own)]

    def _group(self, a: int, resolution: Resolution) -> IntArray | None:
        return {Resolution.GROUPS: self.groups, Resolution.NULLS: self.nulls}.get(resolution, {}).get(a)

    def candidate(self, clique: Clique, resolution: Resolution = Resolution.BINS) -> Candidate:
        """Name the marginal over `clique` for the private side."""
        if resolution is Resolution.GAPS:
            gap, third = self.gap_in(clique)
            high, other = self.attributes[gap.high].name, self.attributes[third].name
            read: dict[str, View] = {high: self._difference(gap), other: self._read(third, Resolution.GROUPS)}
            return Candidate(attributes=(high, other), binning=read)
        views = {self.attributes[a].name: self._read(a, resolution) for a in clique}
        return Candidate(attributes=tuple(views), binning=views)

    def _difference(self, gap: Gap) -> ConditionalMap:
        """How the higher attribute of a pair is read by its difference to the lower one: one and the same view, too."""
        if (gap.low, gap.high) not in self._differences:
            self._differences[gap.low, gap.high] = ConditionalMap(
                base=self.attributes[gap.low].name,
                over=self.cells[gap.low].map,
                own=self.cells[gap.high].map,
                labels=gap.labels,
                bins=gap.size,
            )
        return self._differences[gap.low, gap.high]

    def _read(self, a: int, resolution: Resolution) -> View:
        """How attribute `a` is read at a resolution: one and the same view each time, so that it is read once."""
        if (a, resolution) not in self._views:
            group = self._group(a, resolution)
            self._views[a, resolution] = self.view(a) if group is None else self.view(a).merged(group)
        return self._views[a, resolution]

    @cached_property
    def _differences(self) -> dict[tuple[int, int], ConditionalMap]:
        return {}

    @cached_property
    def _views(self) -> dict[tuple[int, Resolution], View]:
        return {}

    def _cells_on(
        self, clique: Clique, variables: Clique, resolution: Resolution
    ) -> tuple[IntArray | None, tuple[int, ...]]:
        """Return the measured cell of each cell of the variables, and the shape of what is measured."""
        sizes = [self.levels.all_sizes[v] for v in variables]
        if resolution is not Resolution.GAPS:
            return group_cells([self._on_variable(a, resolution) for a in clique], sizes)
        third = self.gap_in(clique)[1]
        values = np.arange(sizes[clique.index(third)], dtype=np.int64)
        group = self._on_variable(third, Resolution.GROUPS)
        return self._by_gap(clique, values if group is None else group)

    def score_noise(self, multiplier: float, num_scores: int) -> float:
        """Return the standard deviation of each of so many distances that cost what counts with `multiplier` cost.

        A replaced row moves a distance by 2, and counts by sqrt(2).
        """
        return multiplier * math.sqrt(2 * num_scores if self.replaced else num_scores)

    def noise_factor(self, clique: Clique, resolution: Resolution) -> float:
        """Return by how much less noise a marginal has for the same cost because its interactions are measured."""
        shape = self._shape(clique, resolution)
        factor = interaction_noise(shape, replaced=self.replaced)
        return factor if len(clique) == 2 and min(shape) > 1 and factor <= self.interactions else 1.0

    def measure(
        self,
        measurer: Measurer,
        purse: Purse,
        clique: Clique,
        share: float,
        resolution: Resolution = Resolution.BINS,
        *,
        by_interactions: bool = False,
    ) -> Measurement:
        """Measure the marginal over `clique` with `share` of the budget; by its interactions if that is told."""
        asked = self.candidate(clique, resolution)
        multiplier = purse.take(" x ".join(asked.attributes), share)
        variables = self.variables(clique, resolution)
        group, shape = self._cells_on(clique, variables, resolution)
        told = interaction_noise(shape, replaced=self.replaced)
        factor = told if by_interactions else self.noise_factor(clique, resolution)
        if by_interactions or factor < 1:
            noisy = measurer.interaction(asked.attributes, asked.binning, noise_multiplier=multiplier)
            table = interactions_of(np.asarray(noisy, dtype=float).reshape(shape) / math.prod(shape))
        else:
            noisy = measurer.marginal(asked.attributes, asked.binning, noise_multiplier=multiplier)
            table = np.asarray(noisy, dtype=float).reshape(shape)
        return Measurement(
            attributes=variables,
            counts=table,
            sigma=np.full(shape, multiplier * factor),
            group=group,
            is_interaction=by_interactions or factor < 1,
        )


def interaction_noise(shape: Sequence[int], *, replaced: bool = False) -> float:
    """Return the noise of a cell of a table's interactions, in that of a cell of the table for the same cost.

    A replaced row moves interactions most if it differs in the axis of fewest values alone: what that saves is lost.

    Guarantees:
        Is that of the sensitivities of both.  [test_the_noise_of_interactions_is_known]
    """
    saved = [1 - 1 / size for size in shape]
    if replaced:
        saved.remove(min(saved))
    return math.sqrt(math.prod(saved))


def positions(attributes: Sequence[ModelAttribute]) -> dict[str, int]:
    """Map the names of attributes to their positions."""
    return {attribute.name: i for i, attribute in enumerate(attributes)}
