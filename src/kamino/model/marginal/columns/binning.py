"""The bins of the model: few enough that pairs can be measured, fine enough that little is lost inside them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.protocol import Cells, CodeMap, FloatArray, IntArray, ModelAttribute


@dataclass(frozen=True, kw_only=True)
class BinLimits:
    """How the bins of an attribute are chosen: the rows a bin should hold, and how many bins at most.

    An ordered domain is cut into `parts` of equal width, and a part into as many of equal mass as it has of the
    `masses` that the whole is worth.
    """

    least_rows: float
    parts: int = 16
    masses: int = 12
    most_bins: int = 512


def most_bins(attribute: ModelAttribute, limits: BinLimits) -> int:
    """Return how many bins `choose_bins` makes at most, whatever the counts.

    An ordered domain is cut at `parts - 1` and `masses - 1` places, and on both sides of fewer than `masses` spikes;
    null is a bin.
    """
    return min(attribute.size, limits.parts + 3 * limits.masses if attribute.ordered else limits.most_bins + 1)


def choose_bins(
    attribute: ModelAttribute, histogram: Histogram, limits: BinLimits, within: CodeMap | None = None
) -> Cells:
    """Merge the runs of a histogram into bins, and keep how the codes are spread inside each.

    With `within`, the bins of an ordered attribute are cut wherever those of `within` are.
    """
    merge = _merge_neighbours if attribute.ordered else _merge_rare
    labels = merge(attribute, histogram, limits)
    if within is not None and attribute.ordered:
        outer = within(histogram.starts)
        labels = np.cumsum(np.append(0, (np.diff(labels) != 0) | (np.diff(outer) != 0)))
    bins = int(labels.max()) + 1
    code_map = CodeMap(size=attribute.size, bins=bins, starts=histogram.starts, labels=labels)
    return Cells(map=code_map, width=histogram.width, share=_shares(histogram, code_map))


def _shares(histogram: Histogram, code_map: CodeMap) -> FloatArray:
    """Return each run's share of its bin; by width in a bin without counts."""
    labels, bins, width = code_map.labels, code_map.bins, histogram.width
    counts = np.maximum(histogram.counts, 0.0)
    total = np.bincount(labels, weights=counts, minlength=bins)
    span = np.bincount(labels, weights=width, minlength=bins)
    empty = total <= 0
    share: FloatArray = np.where(empty[labels], width / span[labels], counts / np.where(empty, 1.0, total)[labels])
    return share


def spread_anew(cells: Cells, histogram: Histogram) -> Cells:
    """Return the cells with their runs' shares by a later histogram of the same runs; what is closed stays closed.

    Guarantees:
        A value that a check forbids gets no share.  [test_what_is_closed_stays_closed]
    """
    labels, bins = cells.map.labels, cells.map.bins
    share = np.where(cells.share > 0, _shares(histogram, cells.map), 0.0)
    total = np.bincount(labels, weights=share, minlength=bins)[labels]
    return replace(cells, share=np.where(total > 0, share / np.where(total > 0, total, 1.0), cells.share))


def _merge_neighbours(attribute: ModelAttribute, histogram: Histogram, limits: BinLimits) -> IntArray:
    """Cut an ordered domain at equal widths and at quantiles, keep spikes and null alone, join what holds few rows."""
    counts, starts = histogram.counts, histogram.starts
    null = starts == attribute.null_code if attribute.null_code is not None else np.zeros(len(starts), bool)
    top = max(attribute.size - 1 - int(attribute.null_code is not None), 1)
    # min(starts * parts // top, parts - 1), by looking up where each part begins: the product would leave 64 bits.
    part = np.searchsorted([-(-i * top // limits.parts) for i in range(1, limits.parts)], starts, side="right")
    part = part * (limits.masses + 1) + _cut_heavy(part, np.where(null, 0.0, counts), limits.masses)
    spike = counts > max(counts.sum() / limits.masses, limits.least_rows)
    labels = np.zeros(len(starts), dtype=np.int64)
    label, held, last = 0, 0.0, -1
    for i in np.flatnonzero(~null).tolist():
        full = last >= 0 and part[i] != part[last] and held >= limits.least_rows
        if last >= 0 and (full or spike[i] or spike[last]):
            label, held = label + 1, 0.0
        labels[i] = label
        held += counts[i]
        last = i
    if last >= 0 and held < limits.least_rows and not spike[last]:
        label = _join_last(labels, spike, label)
    labels[null] = label + (last >= 0)
    return labels


def _join_last(labels: IntArray, spike: NDArray[np.bool_], label: int) -> int:
    """Join the last bin, which holds few rows, with the one before unless that is a spike; return the last label."""
    before = np.flatnonzero(labels == label - 1)
    if len(before) == 0 or spike[before].any():
        return label
    labels[labels == label] = label - 1
    return label - 1


def _cut_heavy(part: IntArray, counts: FloatArray, masses: int) -> IntArray:
    """Return the piece of its part that each run belongs to: a part with m of `masses` equal masses has m pieces."""
    mass = np.bincount(part, weights=counts)
    pieces = np.maximum(np.rint(masses * mass / max(float(mass.sum()), 1e-300)), 1)
    below = np.cumsum(counts) - counts / 2 - (np.cumsum(mass) - mass)[part]
    piece = np.floor(pieces[part] * below / np.maximum(mass, 1e-300)[part])
    return np.clip(piece, 0, pieces[part] - 1).astype(np.int64)


def _merge_rare(attribute: ModelAttribute, histogram: Histogram, limits: BinLimits) -> IntArray:
    """Keep frequent values alone and put the rest into one bin."""
    counts = histogram.counts
    order = np.argsort(-counts, kind="stable")
    frequent = order[: limits.most_bins]
    frequent = frequent[counts[frequent] >= limits.least_rows]
    alone = np.zeros(len(counts), bool)
    alone[frequent] = True
    if len(counts) - alone.sum() <= 1:
        return np.arange(len(counts), dtype=np.int64)
    labels = np.where(alone, np.cumsum(alone) - 1, alone.sum())
    return labels.astype(np.int64)


def bin_counts(histogram: Histogram, cells: Cells) -> tuple[FloatArray, FloatArray]:
    """Add the noisy counts of the runs of each bin; return the sums and their standard deviations."""
    labels, bins = cells.map.labels, cells.map.bins
    counts: FloatArray = np.bincount(labels, weights=histogram.noisy, minlength=bins).astype(float)
    variance = np.bincount(labels, weights=histogram.sigma**2, minlength=bins)
    return counts, np.sqrt(variance)
