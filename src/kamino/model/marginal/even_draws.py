"""Drawing rows so that together they follow the model more closely than independent draws would.

Every row gets a point u in [0, 1) and takes the value whose stretch of the cumulative distribution holds u. The
points of the rows, taken context by context, are a golden-ratio sequence with one random shift: any run of m
neighbours is spread almost evenly over [0, 1), so each value's count is within about a row of its expectation in
each context and in any range of contexts, while a single row still follows its own distribution exactly.
"""

from __future__ import annotations

import numpy as np

from kamino.arrays import stable_order
from kamino.model.phase import codes_inside
from kamino.model.protocol import Cells, FloatArray, IntArray

GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0


def spread_points(num_rows: int, rng: np.random.Generator) -> FloatArray:
    """Return evenly spread points in [0, 1), each uniform on its own."""
    points: FloatArray = rng.random() + np.arange(num_rows) * GOLDEN
    # What `% 1.0` gives, exactly, in a fraction of its time: the numbers are positive.
    points -= np.floor(points)
    return points


def draw_bins(
    context: IntArray, probability: FloatArray, rng: np.random.Generator, *, scattered: bool = False
) -> IntArray:
    """Draw one bin for each row from the row of `probability` that its context names.

    Where nearly every row has a context of its own, every attribute sorts the rows in nearly the same way, and a row's
    points for two attributes would go together. `scattered` takes contexts in random order, and they do not.

    Guarantees:
        Attributes that are drawn one after the other stay independent.  [test_long_contexts_make_no_dependence]
        Each row follows its distribution.  [test_drawing_is_unbiased]
        Counts within a context stay close to their expectation.  [test_drawing_is_stratified]
    """
    num_rows = len(context)
    shuffled = rng.permutation(num_rows)
    ranked = rng.permutation(len(probability))[context] if scattered else context
    order = shuffled[stable_order(ranked[shuffled])]
    points = spread_points(num_rows, rng)
    cumulative = np.cumsum(probability, axis=1)
    cumulative /= cumulative[:, -1:]
    # One ascending array for all contexts: context c occupies [c, c + 1].
    edges = (cumulative + np.arange(len(probability))[:, None]).ravel()
    mine = context[order]
    bins = np.searchsorted(edges, mine + points, side="right") - mine * probability.shape[1]
    # Rounding at the seam of two contexts must not leave the context, nor hit a value without mass.
    last = probability.shape[1] - 1 - np.argmax(probability[:, ::-1] > 0, axis=1)
    result = np.empty(num_rows, dtype=np.int64)
    result[order] = np.clip(bins, 0, last[mine])
    return result


def draw_codes(bins: IntArray, cells: Cells, rng: np.random.Generator) -> IntArray:
    """Draw a code inside each row's bin.

    Guarantees:
        Codes are as likely as `Cells.log_share` says.  [test_draws_follow_the_weights]
    """
    runs = cells.map
    if len(runs.starts) == runs.bins and np.all(cells.width == 1):
        inverse = np.empty(runs.bins, dtype=np.int64)
        inverse[runs.labels] = runs.starts
        return inverse[bins]
    by_bin = np.argsort(runs.labels, kind="stable")
    label = runs.labels[by_bin]
    share = cells.share[by_bin]
    ends = np.cumsum(share)
    begin = np.searchsorted(label, np.arange(runs.bins), side="left")
    base = np.concatenate([[0.0], ends])[begin]
    stop = np.searchsorted(label, np.arange(runs.bins), side="right")
    mass = ends[stop - 1] - base
    shuffled = rng.permutation(len(bins))
    order = shuffled[stable_order(bins[shuffled])]
    mine = bins[order]
    target = base[mine] + spread_points(len(bins), rng) * mass[mine]
    run = np.clip(np.searchsorted(ends, target, side="right"), begin[mine], stop[mine] - 1)
    low = ends[run] - share[run]
    inside = np.clip((target - low) / np.where(share[run] > 0, share[run], 1.0), 0.0, 1.0 - 1e-12)
    where = by_bin[run]
    result = np.empty(len(bins), dtype=np.int64)
    result[order] = codes_inside(cells.weights, runs.starts[where], cells.width[where], inside, rng)
    return result
