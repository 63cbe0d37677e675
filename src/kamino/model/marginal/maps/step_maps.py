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
from numpy.typing import NDArray

from kamino.model.marginal.columns.binning import BinLimits, choose_bins
from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.graph.inference import LEAST_SIGMA
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.maps.contradiction import (
    excluded_by,
    is_contradicted,
    lines_that_stand_out,
    stands_out,
    values_without_rows,
)
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


@dataclass(frozen=True, kw_only=True, eq=False)
class StepMap:
    """What Y is for each run of X's histogram; -1 where X is null, which goes with everything.

    `opened` are further combinations of a run and a value of Y that the counts show, at a step inside a run, or that
    nothing is known of: where Y is null, or a value that no run has. The map `is_whole` if the counts show no other.
    """

    left: int
    right: int
    values: IntArray
    opened: NDArray[np.bool_] | None = None
    is_whole: bool = True

    @property
    def steps(self) -> int:
        """How often Y changes."""
        return int(np.sum(np.diff(self.values[self.values >= 0]) != 0))


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
        sigma = max(multiplier, LEAST_SIGMA)
        left = _runs_to_count(attributes[x], histograms[x], sigma)
        views = {attributes[x].name: left, attributes[y].name: CodeMap.identity(attributes[y].size)}
        noisy = measurer.marginal(tuple(views), views, noise_multiplier=multiplier)
        table = np.asarray(noisy, dtype=float).reshape(left.bins, attributes[y].size)
        step_map = find_steps(attributes, histograms, (x, y), left.labels, table, sigma)
        if step_map is not None and 0 < step_map.steps <= MOST_STEPS:
            found.append(step_map)
    return found


def _runs_to_count(attribute: ModelAttribute, histogram: Histogram, sigma: float) -> CodeMap:
    """Return X in the runs in which it is counted with Y; null stands alone, as the last of them."""
    null = histogram.starts == (-1 if attribute.null_code is None else attribute.null_code)
    runs = np.zeros(len(null), dtype=np.int64)
    runs[~null] = join_light(np.maximum(histogram.counts[~null], 0.0), LEAST_DEVIATIONS * sigma)
    runs[null] = runs.max(initial=0) + 1
    return CodeMap(size=attribute.size, bins=int(runs.max()) + 1, starts=histogram.starts, labels=runs)


def find_steps(
    attributes: Sequence[ModelAttribute],
    histograms: Sequence[Histogram],
    pair: tuple[int, int],
    runs: IntArray,
    counted: FloatArray,
    sigma: float,
) -> StepMap | None:
    """Return the likeliest step function in noisy counts of the runs of X and Y; None if it is not believed.

    Guarantees:
        What the noise cannot excuse is not excluded.  [test_no_map_excludes_what_the_counts_show]
        Nulls on either side are no exceptions.  [test_nulls_are_no_exceptions_to_steps]
    """
    (x, y), (left, right) = pair, (attributes[pair[0]], attributes[pair[1]])
    null_run = np.zeros(len(counted), dtype=np.bool_)
    null_run[runs[histograms[x].starts == (-1 if left.null_code is None else left.null_code)]] = True
    null_code = -1 if right.null_code is None else right.null_code
    kept = np.arange(right.size) != null_code
    held = np.bincount(runs, weights=np.maximum(histograms[x].counts, 0.0), minlength=len(counted))
    table, held = counted[~null_run][:, kept], (held - counted[:, ~kept].sum(axis=1))[~null_run]
    if table.size == 0:
        return None
    codes = likeliest_steps(table, np.maximum(held, 0.0), sigma)
    excluded = excluded_by(codes, table.shape[1])
    opened = excluded & stands_out(np.where(excluded, table, 0.0), sigma)
    opened |= excluded & lines_that_stand_out(table, excluded & ~opened, sigma)[:, None]
    if explained(table, codes, held) < LEAST_EXPLAINED or is_contradicted(table, excluded & ~opened, sigma):
        return None
    values, cells = np.full(len(null_run), -1, dtype=np.int64), np.ones((len(null_run), right.size), dtype=np.bool_)
    values[~null_run] = np.flatnonzero(kept)[codes]
    cells[np.ix_(~null_run, kept)] = opened
    # Values that occur and are nowhere the likeliest, such as rare ones, may go with everything.
    spare = float(counted[null_run].sum())
    reached = np.append(values, np.flatnonzero(cells[~null_run].any(axis=0)))
    cells[:, values_without_rows(reached, histograms[y], right, spare)] = True
    return StepMap(left=x, right=y, values=values[runs], opened=cells[runs], is_whole=not opened.any())


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
    """Return which combinations of bins the maps allow; bins of a left side must lie within its steps.

    Guarantees:
        What was opened is allowed, and nulls are.  [test_nulls_are_no_exceptions_to_steps]
    """
    masks: dict[Clique, FloatArray] = {}
    for each in maps:
        left, right = cells[each.left].map, cells[each.right].map
        mask = np.zeros((left.bins, right.bins))
        known = each.values >= 0
        mask[left.labels[known], right(each.values[known])] = 1.0
        mask[left.labels[~known]] = 1.0
        if each.opened is not None:
            run, code = np.nonzero(each.opened)
            mask[left.labels[run], right(code)] = 1.0
        clique = (each.left, each.right) if each.left < each.right else (each.right, each.left)
        masks[clique] = mask if each.left < each.right else mask.T
    return masks
