"""The fine 1-way histograms: what is measured first, and how their noise is taken out.

A domain of up to `FINE_CELLS` codes is counted code by code. A wider ordered one is counted in equal-width cells, and
the cells that turn out heavy are cut again, level by level, down to single codes: a spike such as zero is found
wherever it is, and no table of the size of the domain is ever made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kamino.model.marginal.denoise import even_out, shrink
from kamino.model.protocol import CodeMap, FloatArray, IntArray, ModelAttribute
from kamino.schema.joint_codes import even_starts

FINE_CELLS = 256
COARSE_CELLS = 128
WIDEST = 1 << 18
HEAVY_CELLS = 16
CUT = 64

#: The first level's share of an attribute's budget, where others follow.
FIRST_SHARE = 0.6

#: Asks for noisy counts through a code map, at a level (0 is the first); says the noise they came with.
Count = Callable[[CodeMap, int], tuple[FloatArray, float]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Histogram:
    """Runs of codes that cover a domain: noisy counts, their standard deviation, and the counts after denoising."""

    size: int
    starts: IntArray
    noisy: FloatArray
    sigma: FloatArray
    counts: FloatArray
    total: float
    total_sigma: float

    @property
    def width(self) -> IntArray:
        """The number of codes in each run."""
        return np.diff(self.starts, append=self.size)


def levels(attribute: ModelAttribute) -> int:
    """Return how many times the histogram of an attribute may be refined; depends on the schema only."""
    if not attribute.ordered or attribute.size <= FINE_CELLS:
        return 1
    width, count = -(-attribute.size // COARSE_CELLS), 1
    while width > 1:
        width, count = -(-width // CUT), count + 1
    return count


def level_shares(attribute: ModelAttribute) -> tuple[float, ...]:
    """Return the share of an attribute's budget that each level of its histogram has."""
    finer = levels(attribute) - 1
    return (FIRST_SHARE, *((1 - FIRST_SHARE) / finer for _ in range(finer))) if finer else (1.0,)


def most_finer_cells(attribute: ModelAttribute) -> int:
    """Return how many cells a level after the first has at most: those of heavy cells, and one for the rest."""
    return min(HEAVY_CELLS * CUT, attribute.size) + 1


def first_cells(attribute: ModelAttribute) -> IntArray:
    """Return where the cells of the first level start; a null code is a cell of its own.

    Guarantees:
        Cells cover the domain, whatever its size.  [test_cells_of_a_wide_domain_hold_every_row_once]
    """
    limit = FINE_CELLS if attribute.ordered else WIDEST
    if attribute.size <= limit:
        return np.arange(attribute.size, dtype=np.int64)
    cells = COARSE_CELLS if attribute.ordered else WIDEST
    starts = even_starts(attribute.size, cells)
    if attribute.null_code is not None:
        alone = [attribute.null_code, attribute.null_code + 1]
        starts = np.union1d(starts, [code for code in alone if code < attribute.size])
    return starts


def measure_histogram(attribute: ModelAttribute, count: Count) -> Histogram:
    """Measure and denoise the 1-way histogram of one attribute."""
    depth = levels(attribute)
    starts = first_cells(attribute)
    runs = np.arange(len(starts), dtype=np.int64)
    noisy, sigma = count(CodeMap(size=attribute.size, bins=len(runs), starts=starts, labels=runs), 0)
    null = starts == attribute.null_code if attribute.null_code is not None else np.zeros(len(starts), bool)
    width = np.diff(starts, append=attribute.size)
    smooth = even_out(noisy, width, sigma, null) if attribute.ordered else shrink(noisy, sigma)
    found = Histogram(
        size=attribute.size,
        starts=starts,
        noisy=noisy,
        sigma=np.full(len(starts), sigma),
        counts=smooth,
        total=float(noisy.sum()),
        total_sigma=sigma * float(np.sqrt(len(starts))),
    )
    for level in range(1, depth):
        found = _refine(found, count, level)
    return found


def _refine(coarse: Histogram, count: Count, level: int) -> Histogram:
    """Cut the heavy cells of a histogram into smaller ones and count those."""
    width = coarse.width
    total = coarse.counts.sum()
    heavy = np.flatnonzero((width > 1) & (coarse.counts > np.maximum(0.005 * total, 4 * coarse.sigma)))
    heavy = np.sort(heavy[np.argsort(-coarse.counts[heavy], kind="stable")][:HEAVY_CELLS])
    if len(heavy) == 0:
        return coarse
    pieces = [coarse.starts[i] + even_starts(int(width[i]), min(CUT, int(width[i]))) for i in heavy]
    starts = np.union1d(coarse.starts, np.concatenate(pieces))
    inside = np.isin(np.searchsorted(coarse.starts, starts, side="right") - 1, heavy)
    # Bin 0 takes everything outside the heavy cells: a row moves one cell of the release, wherever it is.
    labels = np.where(inside, np.cumsum(inside), 0)
    answer, sigma = count(CodeMap(size=coarse.size, bins=int(labels.max()) + 1, starts=starts, labels=labels), level)
    old = np.searchsorted(coarse.starts, starts, side="right") - 1
    noisy = np.where(inside, answer[labels], coarse.noisy[old])
    noise = np.where(inside, sigma, coarse.sigma[old])
    counts = coarse.counts[old]
    new_width = np.diff(starts, append=coarse.size)
    for cell in heavy:
        mine = old == cell
        part = even_out(noisy[mine], new_width[mine], sigma, np.zeros(mine.sum(), bool))
        scale = coarse.counts[cell] / part.sum() if part.sum() > 0 else 0.0
        counts[mine] = part * scale if scale else coarse.counts[cell] * new_width[mine] / width[cell]
    return replace(coarse, starts=starts, noisy=noisy, sigma=noise, counts=counts)
