"""The frame of a fit: the attributes in bins, and what has been measured of them. Everything here is public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.model.marginal.budget import Purse
from kamino.model.marginal.inference import Measurement
from kamino.model.marginal.junction import Clique
from kamino.model.protocol import Candidate, Cells, FloatArray, Measurer, ModelAttribute


@dataclass(frozen=True, kw_only=True, eq=False)
class Frame:
    """The attributes as the graphical model sees them."""

    attributes: tuple[ModelAttribute, ...]
    cells: tuple[Cells, ...]
    num_rows: float
    sequence: tuple[int, ...] | None
    allowed: Mapping[Clique, FloatArray]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of bins of each attribute."""
        return tuple(cells.map.bins for cells in self.cells)

    def candidate(self, clique: Clique) -> Candidate:
        """Name the marginal over `clique` for the private side."""
        names = tuple(self.attributes[a].name for a in clique)
        maps = {self.attributes[a].name: self.cells[a].map for a in clique}
        return Candidate(attributes=names, binning=maps)

    def measure(self, measurer: Measurer, purse: Purse, clique: Clique, share: float) -> Measurement:
        """Measure the marginal over `clique` with `share` of the budget."""
        asked = self.candidate(clique)
        multiplier = purse.take(" x ".join(asked.attributes), share)
        counts = measurer.marginal(asked.attributes, asked.binning, noise_multiplier=multiplier)
        shape = tuple(self.sizes[a] for a in clique)
        table = np.asarray(counts, dtype=float).reshape(shape)
        return Measurement(attributes=clique, counts=table, sigma=np.full(shape, multiplier))


def positions(attributes: Sequence[ModelAttribute]) -> dict[str, int]:
    """Map the names of attributes to their positions."""
    return {attribute.name: i for i, attribute in enumerate(attributes)}
