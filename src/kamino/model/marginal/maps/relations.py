"""Which attributes are read relative to which other, and the measurements that this takes (see `relative`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from kamino.errors import ModelError
from kamino.model.marginal.columns.binning import BinLimits, choose_bins
from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.factor import sum_groups
from kamino.model.marginal.graph.inference import LEAST_SIGMA, Measurement
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.maps.relative import NoisyTable, Relative, estimate_joint, quantile_bins
from kamino.model.marginal.purse import Purse
from kamino.model.protocol import (
    Candidate,
    Cells,
    CodeMap,
    ConditionalMap,
    FloatArray,
    IntArray,
    Measurer,
    ModelAttribute,
)

#: What the ledger says that distances are measured from.
INDEPENDENCE = "independence"
#: Fine bins are joined by so many for the coarser of the two tables that are measured of a pair.
GROUP = 4
#: An attribute with fewer codes is told apart well enough by its bins.
FEWEST_CODES = 64
#: An attribute with fewer fine bins than this is not worth reading relative to another.
FEWEST_FINE = 16
#: Of a close relation about three cells of a line are filled: each is to hold six standard deviations of the noise.
CLEAR = 18.0
#: A margin keeps at least this part of its mean in each fine bin: no estimated zero is certain.
LEAST_PART = 0.02


@dataclass(frozen=True, kw_only=True)
class RelationLimits:
    """When attributes are read relative to others, and what it may cost.

    `strong` is the total variation distance from independence that makes a relation close; `most_share` of the budget
    is divided among the relations, none of which gets more than `each`; a relation has at most `fine` fine bins of each
    attribute and `quantiles` quantile bins. `scores` is the share that finds the distances.
    """

    strong: float = 0.5
    most_share: float = 0.25
    each: float = 0.07
    scores: float = 0.01
    fine: int = 64
    quantiles: int = 6

    def __post_init__(self) -> None:
        if self.most_share < 0 or self.most_share + self.scores >= 1:
            raise ModelError(f"relations may cost {self.most_share} of the budget; expected a part of it.")


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
) -> Relations:
    """Find close relations between ordered attributes and read one attribute of each relative to the other.

    `ones` are what is measured of the 1-way marginals; attributes of `without` take no part.

    Guarantees:
        A base is read by itself, and comes before what is read relative to it.  [test_bases_come_first]
    """
    usable = [i for i, a in enumerate(frame.attributes) if can_relate(a) and frame.sizes[i] > 2 and i not in without]
    if len(usable) < 2 or limits.most_share == 0:
        return Relations(frame=frame)
    bases = choose_bases(_strengths(frame, ones, usable, measurer, purse, limits), frame.sequence, limits.strong)
    share = min(limits.each, limits.most_share / max(len(bases), 1))
    fine = _fine_bins(frame.num_rows, purse.noise_multiplier / np.sqrt(share / 2), limits.fine)
    if not bases or fine < FEWEST_FINE:
        return Relations(frame=frame)
    cuts = BinLimits(least_rows=frame.num_rows / fine / 4, parts=fine // 2, masses=fine)
    used = sorted({*bases, *bases.values()})
    cells = {i: choose_bins(frame.attributes[i], histograms[i], cuts, frame.cells[i].map) for i in used}
    measurer.expect([_asked(frame, (base, own), cells, join) for own, base in bases.items() for join in (False, True)])
    tables = {own: _measure(frame, (base, own), cells, measurer, purse, share) for own, base in bases.items()}
    margins = {i: _margin(frame, i, cells[i], histograms[i], ones, bases, tables) for i in used}
    relatives, measured = {}, []
    for own, base in bases.items():
        joint = estimate_joint(tables[own], margins[base], margins[own])
        relatives[own] = _relative(frame, own, base, cells, joint, limits.quantiles)
        measured.append(_in_bins(frame, own, base, relatives[own], tables[own]))
    allowed = {clique: mask for clique, mask in frame.allowed.items() if not set(clique) & set(relatives)}
    return Relations(frame=replace(frame, relatives=relatives, allowed=allowed), measured=tuple(measured))


def _strengths(
    frame: Frame,
    ones: Sequence[Measurement],
    usable: Sequence[int],
    measurer: Measurer,
    purse: Purse,
    limits: RelationLimits,
) -> dict[Clique, float]:
    """Return the noisy total variation distance of each pair from independence."""
    shares: dict[int, FloatArray] = {}
    for one in ones:
        counts = np.maximum(one.counts, 0.0)
        shares[one.attributes[0]] = counts / max(float(counts.sum()), 1e-300)
    pairs = list(combinations(usable, 2))
    expected = [np.outer(shares[a], shares[b]).ravel() * frame.num_rows for a, b in pairs]
    noisy = measurer.scores(
        [frame.candidate(pair) for pair in pairs],
        expected,
        noise_multiplier=purse.take("relations", limits.scores),
        against=INDEPENDENCE,
    )
    return {pair: float(error) / (2 * frame.num_rows) for pair, error in zip(pairs, noisy, strict=True)}


def choose_bases(strength: Mapping[Clique, float], sequence: Sequence[int] | None, strong: float) -> dict[int, int]:
    """Return what is read relative to what: {attribute: its base}, the base with the strongest relations first.

    A base is no key of the result. With a sequence, a base comes before what is read relative to it.
    """
    place = {a: i for i, a in enumerate(sequence)} if sequence is not None else {}
    near: dict[int, dict[int, float]] = {}
    for (a, b), value in strength.items():
        if value >= strong:
            for base, own in ((a, b), (b, a)):
                if not place or place[base] < place[own]:
                    near.setdefault(base, {})[own] = value
    found: dict[int, int] = {}
    while near:
        base = max(near, key=lambda a: (sum(near[a].values()), -a))
        found |= dict.fromkeys(near[base], base)
        done = {base, *near[base]}
        near = {a: {b: s for b, s in own.items() if b not in done} for a, own in near.items() if a not in done}
        near = {a: own for a, own in near.items() if own}
    return found


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


def _margin(
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


def _relative(frame: Frame, own: int, base: int, cells: Mapping[int, Cells], joint: FloatArray, most: int) -> Relative:
    null = frame.attributes[own].null_code
    column = None if null is None else int(cells[own].map(np.array([null], dtype=np.int64))[0])
    labels, bins = quantile_bins(joint, most, column)
    view = ConditionalMap(
        base=frame.attributes[base].name, over=cells[base].map, own=cells[own].map, labels=labels, bins=bins
    )
    return Relative(view=view, cells=cells[own], joint=joint)


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
