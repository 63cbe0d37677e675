"""Which attributes are read relative to which other, and the measurements that this takes (see `relative`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from kamino.errors import ModelError
from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.factor import sum_groups
from kamino.model.marginal.graph.inference import LEAST_SIGMA, Measurement
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.maps.bases import choose_bases
from kamino.model.marginal.maps.fine_bins import GROUP, coarser_bin, cut_finely, fine_margin, read_relative
from kamino.model.marginal.maps.functions import SketchLimits, likely_functions, measure_functions
from kamino.model.marginal.maps.partners import distances, find_loose
from kamino.model.marginal.maps.relative import NoisyTable, Relative, estimate_joint
from kamino.model.marginal.purse import Purse
from kamino.model.protocol import (
    Candidate,
    Cells,
    CodeMap,
    FloatArray,
    Measurer,
    ModelAttribute,
)

#: An attribute with fewer codes is told apart well enough by its bins.
FEWEST_CODES = 64
#: Nor does one hide anything in its bins whose values are, in effect, fewer than so many times the bins.
HIDDEN = 1.5
#: An attribute with fewer fine bins than this, twice as many as its bins of equal width, is not worth reading relative
#: to another: relations show as well in the bins.
FEWEST_FINE = 32
#: Of a close relation about three cells of a line are filled: each is to hold six standard deviations of the noise.
CLEAR = 18.0


@dataclass(frozen=True, kw_only=True)
class RelationLimits:
    """When attributes are read relative to others, and what it may cost.

    `strong` is the total variation distance from independence that makes a relation close; `most_share` of the budget
    is divided among the relations, none of which gets more than `each`; a relation has at most `fine` fine bins of each
    attribute and `quantiles` quantile bins. `scores` is the share that finds the distances, `partners` that of the
    distances to other attributes where some are strong but not close (see `partners`; 0: all strong ones are read),
    `sketch` the most that one function of few rows may cost.
    """

    strong: float = 0.5
    most_share: float = 0.25
    each: float = 0.07
    scores: float = 0.01
    partners: float = 0.005
    sketch: float = 0.02
    fine: int = 64
    quantiles: int = 6

    def __post_init__(self) -> None:
        if self.most_share < 0 or self.most_share + self.scores + self.partners >= 1:
            raise ModelError(f"relations may cost {self.most_share} of the budget; expected a part of it.")

    def beside(self, others: float, room: float) -> RelationLimits:
        """The limits beside what `others` would take of the same room: both give way in proportion where it is short.

        Guarantees:
            Together they need no more than there is.  [test_every_schema_spends_the_whole_budget]
        """
        room -= self.scores + self.partners
        wanted = self.most_share + others
        return self if wanted <= room else replace(self, most_share=self.most_share * max(room, 0.0) / wanted)


@dataclass(frozen=True, kw_only=True, eq=False)
class Relations:
    """The frame once relations are read, the measurements they brought, and the share of the budget they took."""

    frame: Frame
    measured: tuple[Measurement, ...] = ()


def can_relate(attribute: ModelAttribute) -> bool:
    """Whether bins may hide a relation of an attribute, as far as the schema tells: it has more codes than bins."""
    return attribute.ordered and attribute.size >= FEWEST_CODES


def measure_relations(
    frame: Frame,
    histograms: Sequence[Histogram],
    ones: Sequence[Measurement],
    measurer: Measurer,
    purse: Purse,
    limits: RelationLimits,
    *,
    without: frozenset[int] = frozenset(),
    tied: frozenset[int] = frozenset(),
) -> Relations:
    """Find close relations between ordered attributes and read one attribute of each relative to the other.

    `ones` are what is measured of the 1-way marginals; attributes of `without` take no part, those of `tied` are not
    read relative to another. Where rows are too few for fine bins, functions are looked for (see `functions`).

    Guarantees:
        A base is read by itself, and comes before what is read relative to it.  [test_bases_come_first]
        What its bins tell apart is read in bins.  [test_few_values_are_read_in_bins]
    """
    usable = [i for i, a in enumerate(frame.attributes) if can_relate(a) and frame.sizes[i] > 2 and i not in without]
    if len(usable) < 2 or tied.issuperset(usable) or limits.most_share == 0:
        return Relations(frame=frame)
    shares = _shares(ones)
    strengths = distances(frame, list(combinations(usable, 2)), shares, measurer, purse, limits.scores)
    tied |= {i for i in usable if values_told(histograms[i]) < HIDDEN * frame.sizes[i]}
    loose: frozenset[tuple[int, int]] = frozenset()
    if limits.partners:
        loose = find_loose(frame, strengths, shares, limits.strong, tied, measurer, purse, limits.partners)
    bases = choose_bases(strengths, frame.sequence, limits.strong, tied, loose)
    share = min(limits.each, limits.most_share / max(len(bases), 1))
    fine = _fine_bins(frame.num_rows, purse.noise_multiplier / np.sqrt(share / 2), limits.fine)
    if not bases:
        return Relations(frame=frame)
    if fine < FEWEST_FINE:
        likely = likely_functions(frame.attributes, strengths, shares)
        functions = choose_bases(likely, frame.sequence, 0.0, tied)
        sketch = SketchLimits(each=limits.sketch, most_share=limits.most_share / 2, fine=limits.fine)
        return _read(frame, measure_functions(frame, histograms, ones, functions, measurer, purse, sketch))
    cells = cut_finely(frame, histograms, bases, fine)
    measurer.expect([_asked(frame, (base, own), cells, join) for own, base in bases.items() for join in (False, True)])
    tables = {own: _measure(frame, (base, own), cells, measurer, purse, share) for own, base in bases.items()}
    margins = {i: fine_margin(frame, i, cells[i], histograms[i], ones, bases, tables) for i in cells}
    relatives, measured = {}, []
    for own, base in bases.items():
        joint = estimate_joint(tables[own], margins[base], margins[own])
        relatives[own] = read_relative(frame, own, base, cells, joint, limits.quantiles)
        measured.append(_in_bins(frame, own, base, relatives[own], tables[own]))
    return _read(frame, relatives, measured)


def _read(frame: Frame, relatives: Mapping[int, Relative], measured: Sequence[Measurement] = ()) -> Relations:
    allowed = {clique: mask for clique, mask in frame.allowed.items() if not set(clique) & set(relatives)}
    return Relations(frame=replace(frame, relatives=relatives, allowed=allowed), measured=tuple(measured))


def _shares(ones: Sequence[Measurement]) -> dict[int, FloatArray]:
    shares: dict[int, FloatArray] = {}
    for one in ones:
        counts = np.maximum(one.counts, 0.0)
        shares[one.attributes[0]] = counts / max(float(counts.sum()), 1e-300)
    return shares


def values_told(histogram: Histogram) -> float:
    """Return how many values an attribute has, in effect: the exponential of its entropy; a run of codes is one."""
    share = np.maximum(histogram.counts, 0.0) / max(float(np.maximum(histogram.counts, 0.0).sum()), 1e-300)
    return float(np.exp(-(share * np.log(np.maximum(share, 1e-300))).sum()))


def _fine_bins(num_rows: float, sigma: float, most: int) -> int:
    """Return how many fine bins the noise can bear."""
    return int(min(num_rows / (CLEAR * max(sigma, LEAST_SIGMA)), most))


def _measure(
    frame: Frame, pair: Clique, cells: Mapping[int, Cells], measurer: Measurer, purse: Purse, share: float
) -> NoisyTable:
    """Measure the table of two attributes in fine bins and in groups of them, for half of the share each."""
    tables = []
    for join in (False, True):
        asked = _asked(frame, pair, cells, join)
        multiplier = purse.take(" x ".join(asked.attributes), share / 2)
        noisy = measurer.marginal(asked.attributes, asked.binning, noise_multiplier=multiplier)
        shape = tuple(asked.binning[name].bins for name in asked.attributes)
        tables.append((np.asarray(noisy, dtype=float).reshape(shape), max(multiplier, LEAST_SIGMA)))
    (fine, fine_sigma), (coarse, coarse_sigma) = tables
    return NoisyTable(fine=fine, fine_sigma=fine_sigma, coarse=coarse, coarse_sigma=coarse_sigma, group=GROUP)


def _asked(frame: Frame, pair: Clique, cells: Mapping[int, Cells], join: bool) -> Candidate:
    """The table of two attributes in fine bins, or in groups of them."""
    maps = {frame.attributes[a].name: cells[a].map for a in pair}
    return Candidate(
        attributes=tuple(maps), binning={name: _joined(each) if join else each for name, each in maps.items()}
    )


def _joined(fine: CodeMap) -> CodeMap:
    return fine.merged(np.arange(fine.bins, dtype=np.int64) // GROUP)


def _in_bins(frame: Frame, own: int, base: int, relative: Relative, table: NoisyTable) -> Measurement:
    """Read the fine table as a measurement of the base's bins with the quantile bins."""
    rows = coarser_bin(relative.view.over, frame.cells[base].map)
    shape = (frame.cells[base].map.bins, relative.view.bins)
    flat = (rows[:, None] * shape[1] + relative.view.labels).ravel()
    cells = shape[0] * shape[1]
    counts = sum_groups(flat, table.fine.ravel(), cells).reshape(shape)
    variance = np.bincount(flat, minlength=cells).reshape(shape) * table.fine_sigma**2
    # Where no fine bin lies in a cell nothing was measured of it.
    sigma = np.where(variance > 0, np.sqrt(variance), frame.num_rows + 1.0)
    if base < own:
        return Measurement(attributes=(base, own), counts=counts, sigma=sigma)
    return Measurement(attributes=(own, base), counts=counts.T.copy(), sigma=sigma.T.copy())
