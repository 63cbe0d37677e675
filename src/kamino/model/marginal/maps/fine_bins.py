"""The fine bins in which close relations are seen: how they are cut, what they hold, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kamino.model.marginal.columns.binning import BinLimits, choose_bins
from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.factor import sum_groups
from kamino.model.marginal.graph.inference import LEAST_SIGMA, Measurement
from kamino.model.marginal.maps.relative import NoisyTable, Relative, quantile_bins
from kamino.model.protocol import Cells, CodeMap, ConditionalMap, FloatArray, IntArray

#: Fine bins are joined by so many for the coarser of the two tables that are measured of a pair.
GROUP = 4
#: A margin keeps at least this part of its mean in each fine bin: no estimated zero is certain.
LEAST_PART = 0.02


def cut_finely(frame: Frame, histograms: Sequence[Histogram], bases: Mapping[int, int], fine: int) -> dict[int, Cells]:
    """Cut the attributes of relations {attribute: its base} into about so many fine bins, and where their bins are."""
    cuts = BinLimits(least_rows=frame.num_rows / fine / 4, parts=fine // 2, masses=fine)
    used = sorted({*bases, *bases.values()})
    return {i: choose_bins(frame.attributes[i], histograms[i], cuts, frame.cells[i].map) for i in used}


def fine_margin(
    frame: Frame,
    a: int,
    cells: Cells,
    histogram: Histogram,
    ones: Sequence[Measurement],
    bases: Mapping[int, int],
    tables: Mapping[int, NoisyTable],
) -> FloatArray:
    """Estimate the counts of an attribute's fine bins from all that was measured: histogram, bins and tables."""
    labels, bins = cells.map.labels, cells.map.bins
    counts = sum_groups(labels, np.maximum(histogram.counts, 0.0), bins)
    counts = counts * frame.num_rows / max(float(counts.sum()), 1e-300)
    variance = np.maximum(sum_groups(labels, histogram.sigma**2, bins), LEAST_SIGMA**2)
    inside = coarser_bin(cells.map, frame.cells[a].map)
    again = [m for m in ones if m.attributes == (a,)][1:]
    seen = [(inside, m.counts, m.sigma**2) for m in again]
    groups = np.arange(bins, dtype=np.int64) // GROUP
    for own, base in bases.items():
        if a in (own, base):
            table = tables[own]
            axis = 1 if a == base else 0
            sums = table.coarse.sum(axis=axis)
            seen.append((groups, sums, np.full(len(sums), table.coarse_sigma**2 * table.coarse.shape[axis])))
    for group, sums, spread in seen:
        counts, variance = _update(counts, variance, group, sums, spread)
    counts = np.maximum(counts, LEAST_PART * frame.num_rows / bins)
    result: FloatArray = counts * frame.num_rows / counts.sum()
    return result


def _update(
    counts: FloatArray, variance: FloatArray, group: IntArray, sums: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Take in measured sums of groups of counts (a Kalman update that forgets covariances)."""
    total = sum_groups(group, counts, len(sums))
    both = sum_groups(group, variance, len(sums)) + spread
    gain = variance / both[group]
    return counts + gain * (sums - total)[group], variance * (1 - gain)


def coarser_bin(fine: CodeMap, coarse: CodeMap) -> IntArray:
    """Return the bin that each fine bin lies in; fine bins must not straddle."""
    found = np.zeros(fine.bins, dtype=np.int64)
    found[fine.labels] = coarse(fine.starts)
    return found


def read_relative(
    frame: Frame, own: int, base: int, cells: Mapping[int, Cells], joint: FloatArray, most: int
) -> Relative:
    """Read an attribute by its quantile bins, at most so many, given the fine bin of its base."""
    null = frame.attributes[own].null_code
    column = None if null is None else int(cells[own].map(np.array([null], dtype=np.int64))[0])
    labels, bins = quantile_bins(joint, most, column)
    view = ConditionalMap(
        base=frame.attributes[base].name, over=cells[base].map, own=cells[own].map, labels=labels, bins=bins
    )
    return Relative(view=view, cells=cells[own], joint=joint)
