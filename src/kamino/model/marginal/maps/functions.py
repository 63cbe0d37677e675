"""Attributes that are nearly functions of another one, such as its logarithm, found in tables of few rows.

Few rows do not show a close relation in fine bins, but they show that there is one: a function puts all rows on a line,
and its values follow from the two columns' own distributions (the comonotone copula). So a rough and cheap table is
enough to tell how narrow the line is, and the attribute then needs nothing else: it is read relative to the other one,
in one quantile bin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.inference import LEAST_SIGMA, Measurement
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.maps.fine_bins import cut_finely, fine_margin, read_relative
from kamino.model.marginal.maps.relative import NoisyTable, Relative, best_copula, misfit
from kamino.model.marginal.purse import Purse
from kamino.model.protocol import Candidate, Cells, FloatArray, Measurer, ModelAttribute

#: A pair is looked at if its distance from independence is this part of that of a function with the same shares.
NEARLY = 0.8
#: The rough table has groups of so many fine bins, about as many groups of each attribute, and each of those that a
#: function fills is to hold so many standard deviations of the noise.
SIDE, CLEAR_SKETCH = 8, 10.0
#: From this correlation of normal scores on, what is left of an attribute is a quarter of a deviation: less than a bin.
FUNCTION = 0.97
#: A line is believed if it explains this part of what the rough table shows: noise in the two columns' own counts takes
#: a tenth or two off a true line, and a wrong one explains next to nothing.
EXPLAINED = 0.5
#: The least share of the budget that a table is asked for with.
LEAST_SHARE = 1e-4


@dataclass(frozen=True, kw_only=True)
class SketchLimits:
    """What looking for functions may cost: `each` of the budget for one, `most_share` for all; and their fine bins."""

    each: float
    most_share: float
    fine: int


def measure_functions(
    frame: Frame,
    histograms: Sequence[Histogram],
    ones: Sequence[Measurement],
    bases: Mapping[int, int],
    measurer: Measurer,
    purse: Purse,
    limits: SketchLimits,
) -> dict[int, Relative]:
    """Look at what may be functions, {attribute: of which}, and return how those that are can be read.

    Guarantees:
        A function is kept where rows are few.  [test_functions_of_few_rows_are_kept]
        What is none is not read as one.  [test_what_is_no_function_is_not_read_as_one]
        Nor is what has the best line of all but does not lie on it.  [test_two_parts_of_a_table_are_no_line]
    """
    share = max((purse.noise_multiplier * CLEAR_SKETCH * SIDE / frame.num_rows) ** 2, LEAST_SHARE)
    if not bases or share > limits.each or share * len(bases) > limits.most_share:
        return {}
    cells = cut_finely(frame, histograms, bases, limits.fine)
    margins = {i: fine_margin(frame, i, cells[i], histograms[i], ones, {}, {}) for i in cells}
    measurer.expect([_asked(frame, (base, own), cells) for own, base in bases.items()])
    relatives: dict[int, Relative] = {}
    for own, base in bases.items():
        table = _sketch(frame, (base, own), cells, measurer, purse, share)
        joint, correlation = best_copula(table, margins[base], margins[own])
        if abs(correlation) >= FUNCTION and explained(table, joint) >= EXPLAINED:
            relatives[own] = read_relative(frame, own, base, cells, joint, 1)
    return relatives


def likely_functions(
    attributes: Sequence[ModelAttribute], strengths: Mapping[Clique, float], shares: Mapping[int, FloatArray]
) -> dict[Clique, float]:
    """Return the pairs that are about as far from independence as a function of one with these shares is.

    Attributes with null are left out: what null goes with may matter more, and is no part of a line.
    """
    open_pairs = [pair for pair in strengths if all(attributes[a].null_code is None for a in pair)]
    far = {pair: function_distance(shares[pair[0]], shares[pair[1]]) for pair in open_pairs}
    return {pair: strengths[pair] for pair in open_pairs if strengths[pair] >= NEARLY * far[pair]}


def _asked(frame: Frame, pair: Clique, cells: Mapping[int, Cells]) -> Candidate:
    """The table of two attributes in groups of fine bins."""
    maps = {frame.attributes[a].name: cells[a].map for a in pair}
    joined = {name: each.merged(np.arange(each.bins, dtype=np.int64) // SIDE) for name, each in maps.items()}
    return Candidate(attributes=tuple(maps), binning=joined)


def _sketch(
    frame: Frame, pair: Clique, cells: Mapping[int, Cells], measurer: Measurer, purse: Purse, share: float
) -> NoisyTable:
    """Measure the table of two attributes in groups of fine bins only."""
    asked = _asked(frame, pair, cells)
    multiplier = purse.take(" x ".join(asked.attributes), share)
    noisy = measurer.marginal(asked.attributes, asked.binning, noise_multiplier=multiplier)
    return NoisyTable(
        fine=np.zeros([cells[a].map.bins for a in pair]),
        fine_sigma=math.inf,
        coarse=np.asarray(noisy, dtype=float).reshape([each.bins for each in asked.binning.values()]),
        coarse_sigma=max(multiplier, LEAST_SIGMA),
        group=SIDE,
    )


def explained(table: NoisyTable, joint: FloatArray) -> float:
    """Return how much of what a rough table shows beyond independence and noise a joint distribution explains.

    1 is all of it. Some line is always the best one, also of a table that has none.
    """
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    total = float(table.coarse.sum())
    # Noise alone leaves 1 for each cell.
    left, whole = (misfit(table, total * each) - table.coarse.size for each in (joint, independent))
    return 1 - left / whole if whole > 0 else 0.0


def function_distance(first: FloatArray, second: FloatArray) -> float:
    """Return how far from independence two columns with these shares are if one rises with the other.

    >>> function_distance(np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    0.5
    """
    a, b = np.concatenate([[0.0], np.cumsum(first)]), np.concatenate([[0.0], np.cumsum(second)])
    both = np.minimum(a[1:, None], b[None, 1:]) - np.maximum(a[:-1, None], b[None, :-1])
    return float(np.abs(np.maximum(both, 0.0) - np.outer(first, second)).sum()) / 2
