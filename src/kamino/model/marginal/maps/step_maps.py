"""Dependencies X -> Y of an ordered X as step functions: Y changes at few places of X (an age and its group).

Such a map is found as boundaries, from the evidence of whole stretches, instead of value by value: the table of X in
the runs of its histogram and Y is measured once, and the likeliest step function is found by dynamic programming
(Viterbi's algorithm), every step paying for its place and its value. X is then cut where Y changes, and combinations
that the map excludes are structural zeros.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kamino.model.marginal.columns.binning import BinLimits, choose_bins
from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.graph.inference import LEAST_SIGMA
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.purse import Purse
from kamino.model.protocol import Cells, CodeMap, FloatArray, IntArray, Measurer, ModelAttribute

#: A right side with more values than this is no group of an ordered left side.
MOST_VALUES = 64
#: A map with more steps than this is none: X would need as many bins.
MOST_STEPS = 48
#: Runs of X with fewer rows than this many deviations of the noise are joined before they are counted with Y.
LEAST_DEVIATIONS = 2.0
#: A map that explains less of X's rows than this is not believed: a true one explains all, less what noise takes.
LEAST_EXPLAINED = 0.8
#: A map that leaves more of Y's rows than this without any X is not believed.
MOST_LOST = 0.03


@dataclass(frozen=True, kw_only=True, eq=False)
class StepMap:
    """What Y is for each run of X's histogram."""

    left: int
    right: int
    values: IntArray

    @property
    def steps(self) -> int:
        """How often Y changes."""
        return int(np.sum(np.diff(self.values) != 0))


def can_step(left: ModelAttribute, right: ModelAttribute) -> bool:
    """Whether a dependency may be a step function, as far as the schema tells."""
    return left.ordered and 1 < right.size <= MOST_VALUES and right.size < left.size


def measure_step_maps(
    attributes: Sequence[ModelAttribute],
    histograms: Sequence[Histogram],
    dependencies: Sequence[tuple[int, int]],
    measurer: Measurer,
    purse: Purse,
    share: float,
) -> list[StepMap]:
    """Measure the tables of these dependencies X -> Y, each with `share` of the budget; return the maps believed."""
    found = []
    for x, y in dependencies:
        multiplier = purse.take(f"{attributes[x].name} -> {attributes[y].name}", share)
        sigma, counts = max(multiplier, LEAST_SIGMA), np.maximum(histograms[x].counts, 0.0)
        runs = join_light(counts, LEAST_DEVIATIONS * sigma)
        left = CodeMap(size=attributes[x].size, bins=int(runs[-1]) + 1, starts=histograms[x].starts, labels=runs)
        views = {attributes[x].name: left, attributes[y].name: CodeMap.identity(attributes[y].size)}
        noisy = measurer.marginal(tuple(views), views, noise_multiplier=multiplier)
        table = np.asarray(noisy, dtype=float).reshape(left.bins, attributes[y].size)
        held = np.bincount(runs, weights=counts).astype(np.float64)
        values = likeliest_steps(table, held, sigma)
        step_map = StepMap(left=x, right=y, values=values[runs])
        is_believed = explained(table, values, held) >= LEAST_EXPLAINED and _lost(step_map, histograms[y]) <= MOST_LOST
        if 0 < step_map.steps <= MOST_STEPS and is_believed:
            found.append(step_map)
    return found


def explained(table: FloatArray, values: IntArray, counts: FloatArray) -> float:
    """Return the share of rows that have the value a map gives them: 1 but for noise, if the map is true.

    The likeliest step function of a dependency that is none (a day has every hour) follows the noise, and explains
    little. It would forbid most of what occurs.

    Guarantees:
        A right side that repeats along the left one is not taken for steps.  [test_what_repeats_is_no_step_function]
    """
    return float(table[np.arange(len(values)), values].sum() / max(float(counts.sum()), 1e-300))


def join_light(counts: FloatArray, least: float) -> IntArray:
    """Join neighbouring runs until each holds `least` rows, and return the new run of each; heavy ones stay alone.

    A stretch of n rows is worth n² / 2 sigma² in one cell, and less in pieces: light runs hide a map.

    Guarantees:
        All but the last, and those before a heavy run, hold enough.  [test_light_runs_are_joined]
    """
    labels = np.zeros(len(counts), dtype=np.int64)
    label, held = 0, 0.0
    for i, count in enumerate(counts.tolist()):
        if i and (held >= least or count >= least):
            label, held = label + 1, 0.0
        labels[i] = label
        held += count
    return labels


def likeliest_steps(table: FloatArray, counts: FloatArray, sigma: float) -> IntArray:
    """Return the likeliest value of Y for each run of X, from noisy counts and the number of rows of each run.

    Guarantees:
        No other step function has a higher likelihood less its steps.  [test_steps_match_brute_force]
    """
    # log of the ratio of N(cell; count, sigma) to N(cell; 0, sigma)
    gain = (table - counts[:, None] / 2) * counts[:, None] / sigma**2
    price = math.log(max(table.shape[0], 2)) + math.log(max(table.shape[1], 2))
    best, came = gain[0].copy(), np.zeros(table.shape, dtype=np.int64)
    for i in range(1, len(table)):
        top = int(np.argmax(best))
        stays = best >= best[top] - price
        came[i] = np.where(stays, np.arange(len(best)), top)
        best = np.where(stays, best, best[top] - price) + gain[i]
    values = np.zeros(len(table), dtype=np.int64)
    values[-1] = int(np.argmax(best))
    for i in range(len(table) - 1, 0, -1):
        values[i - 1] = came[i, values[i]]
    return values


def _lost(step_map: StepMap, histogram: Histogram) -> float:
    """Return the share of Y's rows whose value no X has."""
    counts = np.maximum(histogram.counts, 0.0)
    reached = np.isin(histogram.starts, step_map.values)
    return float(counts[~reached].sum() / max(float(counts.sum()), 1e-300))


def cut_at_steps(
    attributes: Sequence[ModelAttribute],
    cells: Sequence[Cells],
    histograms: Sequence[Histogram],
    maps: Sequence[StepMap],
    limits: BinLimits,
) -> tuple[Cells, ...]:
    """Return the bins with those of left sides cut wherever a right side changes, and those of right sides everywhere.

    A map tells each value of a right side; inside a bin of several it would be forgotten.
    """
    found = list(cells)
    for y in {each.right for each in maps if attributes[each.right].ordered}:
        found[y] = choose_bins(attributes[y], histograms[y], limits, CodeMap.identity(attributes[y].size))
    for x in {each.left for each in maps}:
        change = np.zeros(len(histograms[x].starts), dtype=np.int64)
        for each in maps:
            if each.left == x:
                change[1:] |= np.diff(each.values) != 0
        pieces = np.cumsum(change)
        within = CodeMap(size=attributes[x].size, bins=int(pieces[-1]) + 1, starts=histograms[x].starts, labels=pieces)
        found[x] = choose_bins(attributes[x], histograms[x], limits, within)
    return tuple(found)


def step_masks(cells: Sequence[Cells], maps: Sequence[StepMap]) -> dict[Clique, FloatArray]:
    """Return which combinations of bins the maps allow; bins of a left side must lie within its steps."""
    masks: dict[Clique, FloatArray] = {}
    for each in maps:
        left, right = cells[each.left].map, cells[each.right].map
        mask = np.zeros((left.bins, right.bins))
        mask[left.labels, right(each.values)] = 1.0
        clique = (each.left, each.right) if each.left < each.right else (each.right, each.left)
        masks[clique] = mask if each.left < each.right else mask.T
    return masks
