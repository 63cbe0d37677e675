"""Taking noise out of histograms: two estimators, one for ordered domains and one for any domain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import distinct
from kamino.model.protocol import FloatArray, IntArray

#: A split of an ordered histogram is believed if it is this many standard deviations away from an even one.
BELIEVE = 2.0
#: Halving begins at so many places.
SHIFTS = 16
#: A cell this many standard deviations above zero needs no smoothing.
SPIKE = 6.0


def even_out(
    noisy: FloatArray,
    width: IntArray | FloatArray,
    sigma: float | FloatArray,
    alone: NDArray[np.bool_],
    rows: tuple[float, float] | None = None,
) -> FloatArray:
    """Smooth an ordered histogram: halve it again and again, and split evenly wherever noise could explain the rest.

    This is hard thresholding of Haar wavelets with mass kept non-negative on the way down, and the mean over `SHIFTS`
    places at which halving may begin (cycle spinning: Coifman and Donoho, 1995): where a histogram happens to be cut
    in two matters little then. Cells that stand far above their noise keep their counts and are left out of the
    halving, which would wear them down level by level; so do cells marked `alone` (null). An even split is one in
    proportion to `width`, in codes or in weights of codes. The sum of all cells, `rows`, may be known from elsewhere,
    with its standard deviation: few rows beside spikes that no cell shows are what these leave of it.

    Guarantees:
        A spike keeps its rows, however many cells lie beside it.  [test_noise_beside_a_spike_takes_none_of_it]
        Thin tails beside spikes stay where all rows are known.  [test_tails_beside_spikes_are_kept]
        Counts are nearer to the truth than those of one halving.  [test_shifts_bring_counts_nearer]
    """
    counts = np.where(alone, np.maximum(noisy, 0.0), 0.0)
    cells = np.flatnonzero(~alone)
    if len(cells):
        noise = np.zeros(len(noisy)) + sigma
        known = None
        if rows is not None:
            around = np.sqrt(rows[1] ** 2 + (noise[alone] ** 2).sum())
            known = np.array([rows[0] - counts.sum()]), np.array([around])
        counts[cells] = even_out_lines(noisy[None, cells], width[None, cells], noise[None, cells], known)[0]
    return counts


def even_out_lines(
    noisy: FloatArray,
    width: IntArray | FloatArray,
    sigma: float | FloatArray,
    known: tuple[FloatArray, FloatArray] | None = None,
    *,
    believed: float = BELIEVE,
) -> FloatArray:
    """Smooth histograms of equally many cells side by side, each a line, as `even_out` does.

    The sum of each may be `known` from elsewhere, with its standard deviation: what is left beside spikes is then known
    better than by the sum of its noisy cells.

    Guarantees:
        No line matters to another.  [test_histograms_are_evened_out_side_by_side]
    """
    spike = noisy > SPIKE * sigma
    counts = np.where(spike, np.maximum(noisy, 0.0), 0.0)
    squares = np.zeros(noisy.shape) + sigma**2
    beside = np.where(spike[:, None], 0, np.stack([noisy, width, squares], axis=1))
    total, variance = beside[:, 0].sum(axis=1), beside[:, 2].sum(axis=1)
    if known is not None:
        rest, around = known[0] - counts.sum(axis=1), known[1] ** 2 + (spike * squares).sum(axis=1)
        both = np.where(variance > 0, variance + around, 1.0)
        total = np.where(variance > 0, (total * around + rest * variance) / both, total)
        variance = np.where(variance > 0, variance * around / both, variance)
    settled = spike.all(axis=1) | ((total < np.sqrt(variance)) & spike.any(axis=1))
    mass = _spread_down(beside, np.maximum(total, 0.0), believed)
    result: FloatArray = counts + np.where(settled[:, None], 0.0, mass)
    return result


def _spread_down(cells: FloatArray, total: FloatArray, believed: float) -> FloatArray:
    """Spread the `total` of each line over its cells, whose counts, widths and variances are `cells`.

    The mean over `SHIFTS` halvings, each of which begins at another place.
    """
    lines, kinds, count = cells.shape
    size = 1 << int(np.ceil(np.log2(count)))
    shifts = np.arange(min(SHIFTS, size)) * size // min(SHIFTS, size)
    depth = int(np.ceil(np.log2(count + shifts[-1])))
    padded = np.zeros((lines, len(shifts), kinds, 1 << depth))
    for i, shift in enumerate(shifts):
        padded[:, i, :, shift : shift + count] = cells
    found = _halve(padded.reshape(-1, kinds, 1 << depth), np.repeat(total, len(shifts)), believed)
    found = found.reshape(lines, len(shifts), -1)
    return np.asarray(np.mean([found[:, i, shift : shift + count] for i, shift in enumerate(shifts)], axis=0))


def _halve(cells: FloatArray, total: FloatArray, believed: float) -> FloatArray:
    """Split the total of each line between its halves, theirs between their halves, and so on down to its cells."""
    lines, kinds, size = cells.shape
    mass = total[:, None]
    for level in range(1, size.bit_length()):
        half = cells.reshape(lines, kinds, 1 << level, -1).sum(axis=3)
        left, right = np.moveaxis(half[:, :, 0::2], 1, 0), np.moveaxis(half[:, :, 1::2], 1, 0)
        both_width = left[1] + right[1]
        even = np.divide(left[1], both_width, out=np.ones_like(both_width), where=both_width > 0)
        surprise = np.abs((1 - even) * left[0] - even * right[0])
        spread = np.sqrt((1 - even) ** 2 * left[2] + even**2 * right[2])
        kept = np.maximum(left[0], 0.0), np.maximum(right[0], 0.0)
        seen = np.divide(kept[0], kept[0] + kept[1], out=even.copy(), where=kept[0] + kept[1] > 0)
        share = np.where(surprise > believed * spread, seen, even)
        split = np.empty((lines, 1 << level))
        split[:, 0::2], split[:, 1::2] = mass * share, mass * (1 - share)
        mass = split
    return mass


def shrink(noisy: FloatArray, sigma: float, iterations: int = 200) -> FloatArray:
    """Return the posterior mean of each count under the prior that best explains all of them together.

    The prior is found by expectation-maximisation over a grid of counts (Kiefer and Wolfowitz's estimator): in a
    wide histogram, where single counts drown in noise, how the counts are spread is still visible.
    """
    if sigma <= 0.5 or len(noisy) < 8:
        return np.maximum(noisy, 0.0)
    # Noisy counts are whole numbers, so equal ones need to be looked at once only.
    seen, where, times = np.unique(noisy, return_inverse=True, return_counts=True)
    top = max(float(seen[-1]), sigma)
    near, far = np.linspace(0, min(top, 6 * sigma), 40), np.geomspace(sigma, top + 1, 60)
    grid = distinct(near, far)
    log = -0.5 * ((seen[:, None] - grid[None, :]) / sigma) ** 2
    like = np.exp(log - log.max(axis=1, keepdims=True))
    prior = np.full(len(grid), 1.0 / len(grid))
    for _ in range(iterations):
        prior = prior * (like.T @ (times / (like @ prior))) / len(noisy)
    weight = like * prior
    result: FloatArray = (weight @ grid) / weight.sum(axis=1)
    return result[where]
