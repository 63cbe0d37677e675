"""Taking noise out of measured pairs: what a pair adds to what was known of it is shrunk towards nothing.

A pair is measured because some of its cells are not as the model expects; most of the others are, and there a noisy
count is worse than the expectation. How far the cells of one pair lie from what was expected is described by normal
distributions of mean 0 whose variances are multiples of the expected counts (see `adaptive_shrinkage`); each cell then
keeps the part that such a prior lets one believe.

The prior comes from the same cells, so that it takes off too much where these are few: of k free numbers, the noise is
taken for (k - 2) / k of what it is, as James and Stein's estimator does, and for half of it at least.
The posterior mean is nearest to the truth cell by cell, but flattens what many cells say together. Whether two ordered
attributes rise together is said by all cells at once, and clearer than by any of them: that part (a linear-by-linear
association of ranks) is kept as it was measured, and the rest is shrunk.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kamino.model.marginal.adaptive_shrinkage import believed
from kamino.model.marginal.graph.factor import FloatArray
from kamino.model.marginal.graph.measurement import LEAST_SIGMA, Measurement

#: The part of the variance of the noise that the prior is set against, at least.
LEAST_BELIEVED = 0.5
#: Rounds of proportional fitting, and what stands for a count of zero in it.
_FITTINGS, _ZERO = 20, 1e-9


def shrink_pair(
    measured: Measurement, before: FloatArray, now: FloatArray, ranked: Sequence[int] | None = None
) -> Measurement:
    """Shrink what a measured pair adds to `before`, the model's counts of it without the measurement.

    `now` are the model's counts with all measurements: `before` gets its margins first, so that what is shrunk is the
    dependence. Where both attributes are ordered, `ranked` says how many of the values of each, the first ones, have a
    rank; null has none. Only public numbers come in.

    Guarantees:
        The margins of the measured counts stay.  [test_margins_stay]
        What is far above the noise stays, noise alone goes.  [test_signals_stay_and_noise_goes]
        On sparse tables the counts come nearer to the truth.  [test_shrunk_counts_are_nearer]
        Weak correlations of ordered attributes are not flattened.  [test_correlations_stay]
    """
    free = math.prod(size - 1 for size in measured.counts.shape)
    if measured.counts.ndim != 2 or free < 1:
        return measured
    table = with_margins(before, now).ravel()
    expected = measured.answer(table).reshape(measured.counts.shape)
    counts = measured.grouped(table).reshape(measured.counts.shape)
    added = _interactions(measured.counts - expected)
    rest = added if ranked is None else added - _rising(added, counts, ranked)
    part = free / measured.counts.size * max((free - 2) / free, LEAST_BELIEVED)
    noise = part * np.broadcast_to(np.maximum(measured.sigma, LEAST_SIGMA) ** 2, rest.shape)
    kept = believed(rest.ravel(), noise.ravel(), np.maximum(counts, 1.0).ravel()).reshape(rest.shape)
    # Parts of an interaction that each cell keeps are none: what they say of the margins goes again.
    return replace(measured, counts=measured.counts - rest + _interactions(kept * rest))


def _rising(added: FloatArray, expected: FloatArray, ranked: Sequence[int]) -> FloatArray:
    """The part of `added` that lets both attributes rise together: one number times a product of their ranks."""
    rows, columns = expected.sum(axis=1), expected.sum(axis=0)
    pattern = np.outer(_weighed_ranks(rows, ranked[0]), _weighed_ranks(columns, ranked[1]))
    square = float((pattern**2).sum())
    result: FloatArray = pattern * (float((pattern * added).sum()) / square if square > 0 else 0.0)
    return result


def _weighed_ranks(mass: FloatArray, ranked: int) -> FloatArray:
    """The middle ranks of values, from their mean, times their mass: a vector of sum 0. What has no rank has 0."""
    held = np.where(np.arange(len(mass)) < ranked, mass, 0.0)
    middle = np.cumsum(held) - held / 2
    result: FloatArray = held * (middle - float(middle @ held) / max(float(held.sum()), _ZERO))
    return result


def with_margins(table: FloatArray, like: FloatArray) -> FloatArray:
    """Return a table with its own dependence and the margins of another, by iterative proportional fitting."""
    table = np.maximum(table, _ZERO)
    for _ in range(_FITTINGS):
        for axis in (1, 0):
            wanted, there = like.sum(axis=axis, keepdims=True), table.sum(axis=axis, keepdims=True)
            table = table * (np.maximum(wanted, _ZERO) / there)
    return table


def _interactions(table: FloatArray) -> FloatArray:
    rest = table - table.mean(axis=0, keepdims=True)
    centred: FloatArray = rest - rest.mean(axis=1, keepdims=True)
    return centred
