"""Bins of attributes that a check compares, cut at the same places.

Of a check such as `start <= end` the model sees bins only: a pair of bins is closed if the check forbids all of it, and
in a pair that it forbids in part the sampler decides, after one of both has its value. If a bin of one covers several
of the other, that value may leave the other nothing where the model expects it. So each is cut wherever the other is,
as far as the check tells the difference; then only pairs of equal bins are left to the sampler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kamino.model.marginal.columns.binning import BinLimits, choose_bins, most_bins
from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.protocol import Cells, CodeMap, IntArray, ModelAttribute

#: Grids of more combinations of a bin and a run than this are not looked at.
MOST_COMBINATIONS = 2_000_000


def align_bins(
    attributes: Sequence[ModelAttribute],
    cells: Sequence[Cells],
    histograms: Sequence[Histogram],
    allowed: Mapping[tuple[str, ...], Callable[[Mapping[str, IntArray]], NDArray[np.bool_]]],
    limits: BinLimits,
) -> tuple[Cells, ...]:
    """Return the bins with those of compared attributes cut at each other's; no attribute gets more than it may have.

    Guarantees:
        Of a comparison, only pairs of equal bins are open in part.  [test_compared_attributes_are_cut_alike]
    """
    place = {attribute.name: i for i, attribute in enumerate(attributes)}
    cuts: dict[int, NDArray[np.bool_]] = {}
    for names, test in allowed.items():
        if len(names) != 2 or not all(attributes[place[name]].ordered for name in names):
            continue
        for first, second in (names, names[::-1]):
            x, y = place[first], place[second]
            starts = cells[x].map.starts[_begins(cells[x].map.labels)]
            runs = histograms[y].starts
            if math.prod((len(starts), len(runs))) <= MOST_COMBINATIONS:
                grid = np.meshgrid(starts, runs, indexing="ij")
                open_cells = np.asarray(test({first: grid[0].ravel(), second: grid[1].ravel()}), dtype=bool)
                told_apart = np.diff(open_cells.reshape(len(starts), len(runs)), axis=1).any(axis=0)
                cuts[y] = cuts.get(y, np.zeros(len(runs) - 1, dtype=bool)) | told_apart
    found = list(cells)
    for y, cut in cuts.items():
        pieces = np.append(0, np.cumsum(cut))
        within = CodeMap(
            size=attributes[y].size, bins=int(pieces[-1]) + 1, starts=histograms[y].starts, labels=pieces
        )
        new = choose_bins(attributes[y], histograms[y], limits, within)
        if new.map.bins <= most_bins(attributes[y], limits):
            found[y] = new
    return tuple(found)


def _begins(labels: IntArray) -> IntArray:
    """The first run of each bin."""
    return np.flatnonzero(np.diff(labels, prepend=-1))
