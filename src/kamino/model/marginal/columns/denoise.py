"""Taking noise out of histograms: two estimators, one for ordered domains and one for any domain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import distinct
from kamino.model.marginal.adaptive_shrinkage import believed
from kamino.model.protocol import FloatArray, IntArray

#: Halving begins at so many places.
SHIFTS = 16
#: Variances of the prior of splits, and steps that mix them: of many splits these are enough.
_VARIANCES, _STEPS = 12, 20
#: Where densities change evenly from cell to cell, halves of one differ by this part of what its neighbours differ by,
#: and this is the most of its own density that a half is expected to gain or lose.
_SLOPE, _STEEPEST = 1 / 8, 1 / 2
#: What holds less than this part of a row is split smoothly, whatever its noise.
_LEAST_ROWS = 1e-6
#: A count this many standard deviations above zero stays as it is: its noise is less than a part in forty of it.
KEPT = 40.0
#: A cell this many standard deviations above zero needs no smoothing.
SPIKE = 6.0


def even_out(
    noisy: FloatArray,
    width: IntArray | FloatArray,
    sigma: float | FloatArray,
    alone: NDArray[np.bool_],
    rows: tuple[float, float] | None = None,
) -> FloatArray:
    """Smooth an ordered histogram: halve it again and again, and shrink each split towards that of a smooth histogram.

    A smooth one continues what the cells beside say (average interpolation: Donoho, 1993). How much of a split is
    believed follows from all splits of its level (see `adaptive_shrinkage`); mass is kept non-negative on the way
    down. The result is the mean over `SHIFTS` places at which halving may begin (cycle spinning: Coifman and Donoho,
    1995): where a histogram happens to be cut in two matters little then. Cells that stand far above their noise keep
    their counts and are left out of the halving, which would wear them down level by level; so do cells marked `alone`
    (null). Widths are in codes or in weights of codes. The sum of all cells, `rows`, may be known from elsewhere,
    with its standard deviation: few rows beside spikes that no cell shows are what these leave of it.

    Guarantees:
        A spike keeps its rows, however many cells lie beside it.  [test_noise_beside_a_spike_takes_none_of_it]
        Thin tails beside spikes stay where all rows are known.  [test_tails_beside_spikes_are_kept]
        Humps and slopes come out nearer to the truth than by thresholds, steps a bit farther.  [test_counts_are_nearer]
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
) -> FloatArray:
    """Smooth histograms of equally many cells side by side, each a line, as `even_out` does. They share their prior.

    The sum of each may be `known` from elsewhere, with its standard deviation: what is left beside spikes is then known
    better than by the sum of its noisy cells.

    Guarantees:
        Spikes of each line stay, and counts are not negative.  [test_histograms_are_evened_out_side_by_side]
        Where most lines are even, noise makes none of them uneven.  [test_even_lines_stay_even]
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
    mass = _spread_down(beside, np.maximum(total, 0.0))
    result: FloatArray = counts + np.where(settled[:, None], 0.0, mass)
    return result


def _spread_down(cells: FloatArray, total: FloatArray) -> FloatArray:
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
    found = _halve(np.moveaxis(padded, 2, 0), total)
    return np.asarray(np.mean([found[:, i, shift : shift + count] for i, shift in enumerate(shifts)], axis=0))


def _halve(cells: FloatArray, total: FloatArray) -> FloatArray:
    """Split the total of each line between its halves, theirs between their halves, and so on down to its cells.

    `cells` are counts, widths and variances, each by line, shift and cell.
    """
    _, lines, shifts, size = cells.shape
    mass = np.repeat(total[:, None, None], shifts, axis=1)
    for level in range(1, size.bit_length()):
        half = cells.reshape(3, lines, shifts, 1 << level, -1).sum(axis=4)
        left, right = half[..., 0::2], half[..., 1::2]
        smooth = _smooth_share(mass, left[1], right[1])
        apart = (1 - smooth) * left[0] - smooth * right[0]
        noise = (1 - smooth) ** 2 * left[2] + smooth**2 * right[2]
        open_ = (left[1] > 0) & (right[1] > 0) & (mass > _LEAST_ROWS)
        moved = np.where(open_, _believed(apart, noise, mass**2 * smooth * (1 - smooth), open_) * apart, 0.0)
        share = np.clip(smooth + np.divide(moved, mass, out=np.zeros_like(mass), where=open_), 0.0, 1.0)
        mass = np.stack([mass * share, mass * (1 - share)], axis=-1).reshape(lines, shifts, -1)
    return mass


def _smooth_share(mass: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """Return the share of each cell's mass that its left half has if densities change evenly from cell to cell.

    `left` and `right` are the widths of the halves. A cell without width says nothing of its neighbours.
    """
    width = left + right
    density = np.divide(mass, width, out=np.zeros_like(width), where=width > 0)
    before, after = density.copy(), density.copy()
    before[..., 1:] = np.where(width[..., :-1] > 0, density[..., :-1], density[..., 1:])
    after[..., :-1] = np.where(width[..., 1:] > 0, density[..., 1:], density[..., :-1])
    slope = np.clip(_SLOPE * (before - after), -_STEEPEST * density, _STEEPEST * density)
    halves = left * (density + slope), right * (density - slope)
    even = np.divide(left, width, out=np.ones_like(width), where=width > 0)
    return np.divide(halves[0], halves[0] + halves[1], out=even, where=halves[0] + halves[1] > 0)


def _believed(apart: FloatArray, noise: FloatArray, scale: FloatArray, open_: NDArray[np.bool_]) -> FloatArray:
    """Return how much of each split is believed, by all splits of its level; all of one without noise.

    `scale` is the largest variance that a share with such a mean can have.
    """
    share: FloatArray = np.ones(apart.shape)
    noisy = open_ & (noise > 0)
    if noisy.any():
        values = (each[noisy] for each in (apart, noise, scale))
        share[noisy] = believed(*values, most=1.0, variances=_VARIANCES, steps=_STEPS)
    return share


def shrink(noisy: FloatArray, sigma: float, iterations: int = 200) -> FloatArray:
    """Return the posterior mean of each count under the prior that best explains all of them together.

    The prior is found by expectation-maximisation over a grid of counts (Kiefer and Wolfowitz's estimator): in a
    wide histogram, where single counts drown in noise, how the counts are spread is still visible. Counts that stand
    far out of the noise stay as they are.

    Guarantees:
        A clear count is not rounded to the grid.  [test_clear_counts_stay]
    """
    if sigma <= 0.5 or len(noisy) < 8:
        return np.maximum(noisy, 0.0)
    # Noisy counts are whole numbers, so equal ones need to be looked at once only.
    seen, where, times = np.unique(noisy, return_inverse=True, return_counts=True)
    grid = _grid(float(seen[-1]), sigma)
    weight = _posterior(seen, times, grid, sigma, iterations)
    result: FloatArray = (weight @ grid) / weight.sum(axis=1)
    return np.where(seen > KEPT * sigma, seen, result)[where]


def spread_of_counts(noisy: FloatArray, sigma: float, iterations: int = 200) -> tuple[FloatArray, FloatArray]:
    """Return a grid of counts, and the weight of each of its points for each count, under the prior of `shrink`."""
    seen, where, times = np.unique(noisy, return_inverse=True, return_counts=True)
    grid = _grid(float(seen[-1]), sigma)
    return grid, _posterior(seen, times, grid, sigma, iterations)[where]


def _grid(top: float, sigma: float) -> FloatArray:
    """Return the counts that the prior knows: none to the largest one, nearer to each other than noise tells apart."""
    top = max(top, sigma)
    near = np.linspace(0, min(top, 6 * sigma), 40)
    middle = np.arange(6 * sigma, min(top, KEPT * sigma), sigma / 2)
    return distinct(near, middle, np.geomspace(sigma, top + 1, 60))


def _posterior(seen: FloatArray, times: IntArray, grid: FloatArray, sigma: float, iterations: int) -> FloatArray:
    """Return how likely each distinct count (a line, found so many `times`) is to be each point of the grid."""
    log = -0.5 * ((seen[:, None] - grid[None, :]) / sigma) ** 2
    like = np.exp(log - log.max(axis=1, keepdims=True))
    prior = np.full(len(grid), 1.0 / len(grid))
    for _ in range(iterations):
        prior = prior * (like.T @ (times / (like @ prior))) / times.sum()
    weight = like * prior
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
