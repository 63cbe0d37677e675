"""Whether noisy counts contradict a map that was read off them.

A dependency X -> Y that is true has no exceptions. A map of X to Y that was estimated becomes a structural zero of the
model, so it is believed only where nothing says otherwise: no cell, no line, no column and no sum of what it excludes
holds more rows than noise would put there, and no value of Y that occurs is without an X.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.graph.measurement import LEAST_SIGMA
from kamino.model.protocol import FloatArray, IntArray, ModelAttribute

#: A map that is true is taken to be contradicted once in so many tables, by noise alone.
CHANCE = 1e-3


def stands_out(rows: FloatArray, deviation: FloatArray | float) -> NDArray[np.bool_]:
    """Tell which of these noisy sums hold more than noise puts into any of them.

    Guarantees:
        Noise alone stands out in one table of a thousand.  [test_noise_alone_contradicts_hardly_any_map]
    """
    least = NormalDist().inv_cdf(1 - CHANCE / max(rows.size, 1))
    return np.asarray(rows > least * np.asarray(deviation))


def excluded_by(values: IntArray, size: int) -> NDArray[np.bool_]:
    """Tell which cells of a table a map leaves without rows: in each line with a known value, all but that one."""
    cells: NDArray[np.bool_] = (np.arange(size)[None, :] != values[:, None]) & (values >= 0)[:, None]
    return cells


def is_contradicted(table: FloatArray, excluded: NDArray[np.bool_], sigma: float) -> bool:
    """Tell whether some cell, line or column that is excluded, or all of them, hold rows.

    Guarantees:
        A few rows in one cell are seen.  [test_a_group_of_exceptions_contradicts_a_map]
        So are exceptions that no single cell shows.  [test_scattered_exceptions_contradict_a_map]
    """
    held = np.where(excluded, table, 0.0)
    whole = np.asarray(held.sum())
    sums = (held, excluded), (held.sum(axis=1), excluded.sum(axis=1)), (held.sum(axis=0), excluded.sum(axis=0))
    return any(
        bool(stands_out(rows, sigma * np.sqrt(cells))[np.asarray(cells) > 0].any())
        for rows, cells in (*sums, (whole, np.asarray(excluded.sum())))
    )


def lines_that_stand_out(table: FloatArray, excluded: NDArray[np.bool_], sigma: float) -> NDArray[np.bool_]:
    """Tell which lines hold rows where a map excludes them."""
    held, cells = np.where(excluded, table, 0.0).sum(axis=1), excluded.sum(axis=1)
    return np.asarray(stands_out(held, sigma * np.sqrt(cells)) & (cells > 0))


def lacks_rows(values: IntArray, right: Histogram, attribute: ModelAttribute, spare: float = 0.0) -> bool:
    """Tell whether values of Y occur that a map gives no X, in more rows than the `spare` ones that no map speaks of.

    Guarantees:
        A value that occurs and is not in the map contradicts it.  [test_a_value_without_a_left_side_contradicts_a_map]
    """
    apart = _runs_apart(values, right, attribute)
    rows, sigma = right.noisy[apart], np.maximum(right.sigma[apart], LEAST_SIGMA)
    together = stands_out(np.asarray(rows.sum() - spare), math.sqrt(float((sigma**2).sum())))
    return bool(apart.any() and together) or len(values_without_rows(values, right, attribute, spare)) > 0


def values_without_rows(values: IntArray, right: Histogram, attribute: ModelAttribute, spare: float = 0.0) -> IntArray:
    """Return the codes of Y that occur, each in more rows than the `spare` ones, though a map gives them no X."""
    apart = _runs_apart(values, right, attribute)
    shown = apart & stands_out(np.where(apart, right.noisy - spare, 0.0), np.maximum(right.sigma, LEAST_SIGMA))
    codes = [
        np.arange(start, start + width) for start, width in zip(right.starts[shown], right.width[shown], strict=True)
    ]
    return np.concatenate([np.zeros(0, dtype=np.int64), *codes])


def _runs_apart(values: IntArray, right: Histogram, attribute: ModelAttribute) -> NDArray[np.bool_]:
    """Tell which runs of Y's histogram hold none of these values; that of null does not count."""
    reached = np.sort(values[values >= 0])
    apart = np.searchsorted(reached, right.starts) == np.searchsorted(reached, right.starts + right.width)
    if attribute.null_code is not None:
        apart &= right.starts != attribute.null_code
    return np.asarray(apart)
