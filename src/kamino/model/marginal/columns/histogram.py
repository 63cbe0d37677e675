"""The fine 1-way histograms: what is measured first, and how their noise is taken out.

A domain of up to `FINE_CELLS` codes is counted code by code. A wider ordered one is counted in equal-width cells, and
the cells that turn out heavy are cut again, level by level, down to single codes: a spike such as zero is found
wherever it is, and no table of the size of the domain is ever made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import distinct
from kamino.model.marginal.columns.denoise import SPIKE, even_out, even_out_lines, shrink
from kamino.model.marginal.columns.periods import PHASE_SHARE, Runs, measure_phase
from kamino.model.marginal.columns.roundings import measure_rounding, most_endings, num_counts
from kamino.model.marginal.graph.factor import sum_groups
from kamino.model.marginal.graph.measurement import LEAST_SIGMA
from kamino.model.phase import Phase, PhaseWeights
from kamino.model.protocol import CodeMap, FloatArray, IntArray, ModelAttribute
from kamino.schema.coding.joint_codes import even_starts

FINE_CELLS = 256
COARSE_CELLS = 128
WIDEST = 1 << 18
HEAVY_CELLS = 16
CUT = 64

#: An end of a wide range with so many standard deviations of rows stands alone.
CLEAR_END = 4.0
#: The first level's share of an attribute's budget, where others follow.
FIRST_SHARE = 0.6

#: The level, in a sense, at which the digits of a phase are counted: after all others.
PHASES = -1
#: Asks for noisy counts through a code map, at a level (0 is the first); says the noise they came with.
Count = Callable[[CodeMap, int], tuple[FloatArray, float]]


class Rows(NamedTuple):
    """How many rows there are, and the standard deviation of that."""

    number: float
    deviation: float

    @staticmethod
    def by_all(found: Sequence[Rows]) -> Rows:
        """Join several counts of the same rows by inverse variance; at least one row."""
        weights = np.array([max(each.deviation**2, 1e-9) ** -1 for each in found])
        mean = float(weights @ np.array([each.number for each in found]) / weights.sum())
        return Rows(number=max(mean, 1.0), deviation=float(weights.sum() ** -0.5))


@dataclass(frozen=True, kw_only=True, eq=False)
class Histogram:
    """Runs of codes that cover a domain: noisy counts, their standard deviation, and the counts after denoising.

    `family` names the run that a run was cut out of, by its first code. With `weights`, codes of a run follow them.
    """

    size: int
    starts: IntArray
    noisy: FloatArray
    sigma: FloatArray
    counts: FloatArray
    family: IntArray
    weights: PhaseWeights | None = None

    @property
    def width(self) -> IntArray:
        """The number of codes in each run."""
        return np.diff(self.starts, append=self.size)

    def joined(self, noisy: FloatArray, sigma: float) -> Histogram:
        """Return the histogram of categories with a second count of its runs, weighed by inverse variance."""
        first, second = np.maximum(self.sigma, LEAST_SIGMA) ** -2.0, max(sigma, LEAST_SIGMA) ** -2.0
        both = (self.noisy * first + noisy * second) / (first + second)
        deviation = (first + second) ** -0.5
        return replace(self, noisy=both, sigma=deviation, counts=shrink(both, float(deviation.max())))


def levels(attribute: ModelAttribute) -> int:
    """Return how many times the histogram of an attribute may be refined; depends on the schema only."""
    if not attribute.ordered or attribute.size <= FINE_CELLS:
        return 1
    width, count = -(-attribute.size // COARSE_CELLS), 1
    while width > 1:
        width, count = -(-width // CUT), count + 1
    return count


def level_shares(attribute: ModelAttribute) -> tuple[float, ...]:
    """Return the share of an attribute's budget that each level of its histogram has; phases have the rest."""
    finer = levels(attribute) - 1
    kept = 1.0 if measured_phase(attribute) is None else 1.0 - PHASE_SHARE
    return (kept * FIRST_SHARE, *(kept * (1 - FIRST_SHARE) / finer for _ in range(finer))) if finer else (1.0,)


def most_finer_cells(attribute: ModelAttribute) -> int:
    """Return how many cells a level after the first has at most: those of heavy cells, and one for the rest."""
    return min(HEAVY_CELLS * CUT, attribute.size) + 1


def most_runs(attribute: ModelAttribute) -> int:
    """Return how many runs a histogram has at most, after all levels."""
    more = HEAVY_CELLS * CUT * (levels(attribute) - 1)
    return min(attribute.size, len(first_cells(attribute)) + more)


def first_cells(attribute: ModelAttribute) -> IntArray:
    """Return where the cells of the first level start; a null code is a cell of its own.

    So are the ends of a wide range: zero is often one of them, or a cap, and many rows may lie there. Later levels,
    which find spikes anywhere, have more noise.

    Guarantees:
        Cells cover the domain, whatever its size.  [test_cells_of_a_wide_domain_hold_every_row_once]
        A spike at an end of the range is kept.  [test_spikes_at_the_ends_are_kept]
    """
    limit = FINE_CELLS if attribute.ordered else WIDEST
    if attribute.size <= limit:
        return np.arange(attribute.size, dtype=np.int64)
    cells = COARSE_CELLS if attribute.ordered else WIDEST
    starts = even_starts(attribute.size, cells)
    alone = {attribute.null_code} if attribute.null_code is not None else set[int]()
    if attribute.ordered:
        values = (code for code in (0, 1, attribute.size - 2, attribute.size - 1) if code not in alone)
        alone |= {next(values), max(values)}
    edges = {edge for code in alone for edge in (code, code + 1) if edge < attribute.size}
    return distinct(starts, np.array(sorted(edges), dtype=np.int64))


def first_map(attribute: ModelAttribute) -> CodeMap:
    """Return the map through which the first level is counted."""
    starts = first_cells(attribute)
    runs = np.arange(len(starts), dtype=np.int64)
    return CodeMap(size=attribute.size, bins=len(runs), starts=starts, labels=runs)


def measured_phase(attribute: ModelAttribute) -> Phase | None:
    """Return the phase that is measured beside the histogram; depends on the schema only.

    Only digits that change inside a cell of the first level: the cells know the others.
    """
    if attribute.phase is None or levels(attribute) == 1:
        return None
    return attribute.phase.within(attribute.size // COARSE_CELLS)


def phase_counts(phase: Phase) -> tuple[int, int]:
    """Return how often a phase is counted at most, and in how many cells at most."""
    if phase.rounds:
        return num_counts(phase), most_endings(phase)
    return len(phase.factors), max(phase.factors)


def measure_first(attribute: ModelAttribute, count: Count) -> FirstCounts:
    """Measure the first level of an attribute's histogram."""
    code_map = first_map(attribute)
    return _join_ends(attribute, code_map.starts, *count(code_map, 0))


def measure_histogram(
    attribute: ModelAttribute, count: Count, first: FirstCounts | None = None, rows: Rows | None = None
) -> Histogram:
    """Measure and denoise the 1-way histogram of one attribute, and its phases where runs are wider than a code.

    Its `first` level may have been measured already, and the number of `rows` be known from elsewhere.

    Guarantees:
        What it asks for, and with which share, depends on the schema and on what was released.
        [test_replay_passes_for_dates, test_fit_with_phases_spends_exactly_the_budget]
    """
    depth = levels(attribute)
    phase = measured_phase(attribute)
    first = measure_first(attribute, count) if first is None else first
    found = _settle_first(attribute, first, None, rows)
    cuts = []
    for level in range(1, depth):
        cut = _measure_cut(found, count, level)
        if cut is not None:
            cuts.append(cut)
            found = _settle_cut(found, cut)
    if phase is None:
        return found
    measure = measure_rounding if phase.rounds else measure_phase
    weights = measure(phase, _runs(attribute, found), lambda digit: count(digit, PHASES))
    if weights is None:
        return found
    found = _settle_first(attribute, first, weights, rows)
    for cut in cuts:
        found = _settle_cut(found, cut)
    return found


def _runs(attribute: ModelAttribute, found: Histogram) -> Runs:
    """Describe a histogram as phases see it: null, and codes far above their noise, speak for themselves."""
    spike = (found.width == 1) & ((found.noisy > SPIKE * found.sigma) | (found.starts == attribute.null_code))
    return Runs(
        starts=found.starts,
        width=found.width,
        counts=found.counts,
        noisy=found.noisy,
        sigma=found.sigma,
        family=found.family,
        spike=spike,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class FirstCounts:
    """The cells of the first level with their noisy counts; those marked `alone` say nothing of their neighbours."""

    starts: IntArray
    noisy: FloatArray
    sigma: FloatArray
    alone: NDArray[np.bool_]

    @property
    def rows(self) -> Rows:
        """The number of rows by these counts."""
        return Rows(number=float(self.noisy.sum()), deviation=float(np.sqrt((self.sigma**2).sum())))


def _join_ends(attribute: ModelAttribute, starts: IntArray, noisy: FloatArray, sigma: float) -> FirstCounts:
    """Join the ends of a wide range with the cells beside them, but those that stand out of the noise."""
    is_null = starts == attribute.null_code if attribute.null_code is not None else np.zeros(len(starts), bool)
    alone, group = is_null.copy(), np.arange(len(starts))
    if levels(attribute) > 1:
        first, *_, last = np.flatnonzero(~is_null)
        for end, beside in ((first, first + 1), (last, last - 1)):
            if noisy[end] > CLEAR_END * sigma:
                alone[end] = True
            else:
                group[max(end, beside)] = group[min(end, beside)]
    kept = distinct(group)
    place = np.searchsorted(kept, group)
    sums, variance = sum_groups(place, noisy, len(kept)), np.bincount(place) * sigma**2
    return FirstCounts(starts=starts[kept], noisy=sums, sigma=np.sqrt(variance), alone=alone[kept])


def _settle_first(
    attribute: ModelAttribute, first: FirstCounts, weights: PhaseWeights | None, rows: Rows | None
) -> Histogram:
    """Denoise the counts of the first cells."""
    starts, noisy, sigma = first.starts, first.noisy, first.sigma
    if attribute.ordered:
        counts = even_out(noisy, _mass(starts, attribute.size, weights), sigma, first.alone, rows)
    else:
        counts = shrink(noisy, float(sigma.max()))
    return Histogram(
        size=attribute.size,
        starts=starts,
        noisy=noisy,
        sigma=sigma,
        counts=counts,
        family=starts,
        weights=weights,
    )


def _mass(starts: IntArray, size: int, weights: PhaseWeights | None) -> IntArray | FloatArray:
    """Return how much runs of codes hold if nothing but the phase matters."""
    width = np.diff(starts, append=size)
    return width if weights is None else weights.mass(starts, width)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Cut:
    """The heavy cells of a histogram cut into smaller ones: the new cells, and the noisy counts of those inside."""

    heavy: IntArray
    starts: IntArray
    inside: NDArray[np.bool_]
    noisy: FloatArray
    sigma: float


def _measure_cut(coarse: Histogram, count: Count, level: int) -> _Cut | None:
    """Cut the heavy cells of a histogram into smaller ones and count those; None if no cell is heavy."""
    width = coarse.width
    total = coarse.counts.sum()
    heavy = np.flatnonzero((width > 1) & (coarse.counts > np.maximum(0.005 * total, 4 * coarse.sigma)))
    heavy = np.sort(heavy[np.argsort(-coarse.counts[heavy], kind="stable")][:HEAVY_CELLS])
    if len(heavy) == 0:
        return None
    pieces = [coarse.starts[i] + even_starts(int(width[i]), min(CUT, int(width[i]))) for i in heavy]
    starts = distinct(coarse.starts, *pieces)
    inside = np.isin(np.searchsorted(coarse.starts, starts, side="right") - 1, heavy)
    # Bin 0 takes everything outside the heavy cells: a row moves one cell of the release, wherever it is.
    labels = np.where(inside, np.cumsum(inside), 0)
    answer, sigma = count(CodeMap(size=coarse.size, bins=int(labels.max()) + 1, starts=starts, labels=labels), level)
    return _Cut(heavy=heavy, starts=starts, inside=inside, noisy=answer[labels], sigma=sigma)


def _settle_cut(coarse: Histogram, cut: _Cut) -> Histogram:
    """Denoise the counts of the cells that were cut, and keep the counts of the heavy cells they lie in."""
    old = np.searchsorted(coarse.starts, cut.starts, side="right") - 1
    noisy = np.where(cut.inside, cut.noisy, coarse.noisy[old])
    noise = np.where(cut.inside, cut.sigma, coarse.sigma[old])
    counts = coarse.counts[old]
    mass = _mass(cut.starts, coarse.size, coarse.weights)
    first = np.searchsorted(old, cut.heavy)
    pieces = np.searchsorted(old, cut.heavy, side="right") - first
    for length in distinct(pieces):
        heavy = cut.heavy[pieces == length]
        mine = first[pieces == length][:, None] + np.arange(length)
        known = coarse.counts[heavy], coarse.sigma[heavy]
        part = even_out_lines(noisy[mine], mass[mine], cut.sigma, known)
        whole = coarse.counts[heavy][:, None]
        found = part.sum(axis=1, keepdims=True)
        scale = np.divide(whole, found, out=np.zeros(found.shape), where=found > 0)
        even, held = whole * mass[mine], mass[mine].sum(axis=1, keepdims=True)
        evenly = np.divide(even, held, out=np.zeros(even.shape), where=held > 0)
        counts[mine] = np.where(scale > 0, part * scale, evenly)
    family = np.where(cut.inside, coarse.starts[old], coarse.family[old])
    return replace(coarse, starts=cut.starts, noisy=noisy, sigma=noise, counts=counts, family=family)
