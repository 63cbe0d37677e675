"""Attributes read relative to another: y by its place in the distribution of y given x.

Where y follows x closely (the measures of a stone, a start and an end), bins of y say little beside bins of x, and the
relation inside the bins is lost. Such a y is read as a conditional quantile (Rosenblatt's transform): the table of x
and y in fine bins is measured, and y becomes the quantile bin of its fine bin given that of x. Few quantile bins are
enough, they depend little on x, and P(y | x, rest) is the fine table tilted by what the rest says of the quantile bin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kamino.model.protocol import Cells, ConditionalMap, FloatArray, IntArray

#: Correlations of Gaussian copulas that are tried: normal scores so dependent explain all but the strangest relations.
CORRELATIONS = (0.5, 0.7, 0.8, 0.87, 0.92, 0.95, 0.97, 0.98, 0.987, 0.992, 0.995, 0.997, 0.9985, 0.9995, 0.9999)
#: Points of a fine bin at which a copula is looked at.
POINTS = 5
#: Quarters of a table are believed if they are so many standard deviations further from what was expected than noise.
BELIEVE = 3.0
#: A table is quartered from so many corners.
SHIFTS = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Relative:
    """How an attribute is read relative to its base, and the joint probabilities of their fine bins (base on rows)."""

    view: ConditionalMap
    cells: Cells
    joint: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyTable:
    """Noisy counts of two attributes in fine bins, and in groups of `group` neighbouring fine bins of each."""

    fine: FloatArray
    fine_sigma: float
    coarse: FloatArray
    coarse_sigma: float
    group: int


def estimate_joint(noisy: NoisyTable, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Return the joint probabilities behind a noisy table with these margins (counts, all positive).

    The best Gaussian copula is what is expected; the table is then quartered again and again, and what noise cannot
    explain is believed (hard thresholding of Haar wavelets in two dimensions). Where the quarters lie decides which
    noise is believed: they are laid in several ways, and each cell has the median of what these say of it.

    Guarantees:
        Has the columns' margin, nearly the rows', and no negative cell.  [test_joint_has_its_margins]
        Without noise it is the table.  [test_joint_without_noise_is_the_table]
        Noise makes few strays of a close relation.  [test_noise_makes_few_strays]
    """
    expected, _ = best_copula(noisy, rows, columns)
    side = _side(expected.shape, noisy.group)
    found = [_threshold(noisy, expected, float(rows.sum()), side, at) for at in _corners(expected.shape, side, noisy)]
    return fit_margins(np.median(found, axis=0), rows / rows.sum(), columns / columns.sum())


def _side(shape: Sequence[int], group: int) -> int:
    """The side of a square that a table lies in, with room to lie in another place: a power of two."""
    side = 1 << max(int(np.ceil(np.log2(max(shape)))), int(np.log2(group)))
    return side if max(shape) <= 3 * side // 4 else 2 * side


def _corners(shape: Sequence[int], side: int, noisy: NoisyTable) -> list[tuple[int, int]]:
    """Return places in the square for the first cell of a table, spread evenly, where no group of cells is cut."""
    room = [(side - length) // noisy.group for length in shape]
    # Multiples of these two numbers fill a square evenly (the sequence R2 of Roberts).
    shares = [((1 + i * 0.7548776662) % 1, (1 + i * 0.5698402910) % 1) for i in range(SHIFTS)]
    places = [(round(room[0] * u) * noisy.group, round(room[1] * v) * noisy.group) for u, v in shares]
    return list(dict.fromkeys(places))


def best_copula(noisy: NoisyTable, rows: FloatArray, columns: FloatArray) -> tuple[FloatArray, float]:
    """Return the table of the Gaussian copula, or of independence, that explains the noisy tables best.

    Nothing is mixed with independence: a ridge of another shape fits better the lower it is, however few rows stray.
    """
    total = float(rows.sum())
    x, y = rows / total, columns / columns.sum()
    correlations = [sign * size for size in CORRELATIONS for sign in (1, -1)]
    found = [(x[:, None] * y[None, :], 0.0)]
    found += [(fit_margins(gaussian_copula(x, y, each), x, y), each) for each in correlations]
    return min(found, key=lambda each: misfit(noisy, total * each[0]))


def misfit(noisy: NoisyTable, table: FloatArray) -> float:
    """Return minus twice the log likelihood of expected counts, up to a constant."""
    coarse = _sum_blocks(table, noisy.group)
    fine = float(((noisy.fine - table) ** 2).sum()) / noisy.fine_sigma**2
    return fine + float(((noisy.coarse - coarse) ** 2).sum()) / noisy.coarse_sigma**2


def gaussian_copula(rows: FloatArray, columns: FloatArray, correlation: float) -> FloatArray:
    """Return the joint probabilities of two discrete margins whose normal scores have this correlation."""
    from scipy.special import ndtr, ndtri  # slow to import: only when a model is fitted

    inside = (np.arange(POINTS) + 0.5) / POINTS
    below = np.cumsum(rows) - rows
    x = ndtri(np.clip(below[:, None] + inside[None, :] * rows[:, None], 1e-9, 1 - 1e-9))
    edges = ndtri(np.clip(np.cumsum(columns), 1e-12, 1 - 1e-12))
    edges[-1] = np.inf
    spread = np.sqrt(1 - correlation**2)
    cumulative = ndtr((edges[None, None, :] - correlation * x[:, :, None]) / spread).mean(axis=1)
    result: FloatArray = np.diff(cumulative, axis=1, prepend=0.0) * rows[:, None]
    return result


def fit_margins(table: FloatArray, rows: FloatArray, columns: FloatArray, iterations: int = 20) -> FloatArray:
    """Scale rows and columns until a table has the given margins (iterative proportional fitting)."""
    table = table + 1e-6 * rows[:, None] * columns[None, :] * max(float(table.sum()), 1e-300)
    for _ in range(iterations):
        table = table * (rows / np.maximum(table.sum(axis=1), 1e-300))[:, None]
        table = table * (columns / np.maximum(table.sum(axis=0), 1e-300))[None, :]
    return table


def _threshold(noisy: NoisyTable, expected: FloatArray, total: float, side: int, corner: tuple[int, int]) -> FloatArray:
    """Split the total again and again into quarters: as expected, or as seen where noise cannot explain it.

    The table lies in a square with this side, its first cell at `corner`.
    """
    group = noisy.group
    prior, seen, variance = (
        _pad(t, side, corner) for t in (expected, noisy.fine, np.full(expected.shape, noisy.fine_sigma**2))
    )
    coarse, coarse_variance = (
        _pad(t, side // group, (corner[0] // group, corner[1] // group))
        for t in (noisy.coarse, np.full(noisy.coarse.shape, noisy.coarse_sigma**2))
    )
    mass, step = np.array([[total]]), side
    while step > 1:
        step //= 2
        fine = _quarters(_sum_blocks(seen, step)), _quarters(_sum_blocks(variance, step))
        if step >= group:
            wide = step // group
            other = _quarters(_sum_blocks(coarse, wide)), _quarters(_sum_blocks(coarse_variance, wide))
            fine = _combine(fine, other)
        mass = _split(mass, _quarters(_sum_blocks(prior, step)), *fine)
    return mass[_inside(expected.shape, corner)]


def _split(mass: FloatArray, prior: FloatArray, seen: FloatArray, variance: FloatArray) -> FloatArray:
    """Split the mass of each block among its quarters (the last axis), and lay them out as a grid."""
    share = prior / np.maximum(prior.sum(axis=2, keepdims=True), 1e-300)
    expected = mass[:, :, None] * share
    real = variance > 0
    surprise = np.where(real, (seen - expected) ** 2 / np.where(real, variance, 1.0), 0.0).sum(axis=2)
    freedom = np.maximum(real.sum(axis=2) - 1, 1)
    believed = surprise > freedom + BELIEVE * np.sqrt(2.0 * freedom)
    split = np.where(believed[:, :, None], onto_simplex(np.where(real, seen, -np.inf), mass), expected)
    half = len(mass)
    result: FloatArray = split.reshape(half, half, 2, 2).transpose(0, 2, 1, 3).reshape(2 * half, 2 * half)
    return result


def onto_simplex(values: FloatArray, total: FloatArray) -> FloatArray:
    """Project the last axis of `values` onto the non-negative vectors with the given sums; -inf becomes 0.

    Guarantees:
        Sums are kept and nothing is negative.  [test_projection_onto_the_simplex]
    """
    ordered = -np.sort(-values, axis=-1)
    finite = np.where(np.isfinite(ordered), ordered, 0.0)
    count = np.arange(1, values.shape[-1] + 1)
    excess = (np.cumsum(finite, axis=-1) - total[..., None]) / count
    keep = (finite - excess > 0) & np.isfinite(ordered)
    last = np.maximum(keep.sum(axis=-1, keepdims=True) - 1, 0)
    shift = np.take_along_axis(excess, last, axis=-1)
    result: FloatArray = np.where(total[..., None] > 0, np.maximum(values - shift, 0.0), 0.0)
    return result


def _combine(
    first: tuple[FloatArray, FloatArray], second: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Combine two measurements with their variances by inverse variance; a variance of 0 means: not measured."""
    weight = [np.divide(1.0, v, out=np.zeros_like(v), where=v > 0) for _, v in (first, second)]
    both = weight[0] + weight[1]
    safe = np.where(both > 0, both, 1.0)
    values = (first[0] * weight[0] + second[0] * weight[1]) / safe
    return values, np.where(both > 0, 1.0 / safe, 0.0)


def _sum_blocks(table: FloatArray, side: int) -> FloatArray:
    """Sum a table in square blocks; what is missing at the ends counts as 0."""
    if side == 1:
        return table
    rows, columns = (-(-length // side) for length in table.shape)
    padded = np.zeros((rows * side, columns * side))
    padded[: table.shape[0], : table.shape[1]] = table
    result: FloatArray = padded.reshape(rows, side, columns, side).sum(axis=(1, 3))
    return result


def _pad(table: FloatArray, side: int, corner: tuple[int, int]) -> FloatArray:
    padded = np.zeros((side, side))
    padded[_inside(table.shape, corner)] = table
    return padded


def _inside(shape: Sequence[int], corner: tuple[int, int]) -> tuple[slice, slice]:
    """Where a table of this shape lies, if its first cell is at `corner`."""
    return slice(corner[0], corner[0] + shape[0]), slice(corner[1], corner[1] + shape[1])


def _quarters(blocks: FloatArray) -> FloatArray:
    """Lay the four quarters of each larger block along a last axis."""
    half = len(blocks) // 2
    result: FloatArray = blocks.reshape(half, 2, half, 2).transpose(0, 2, 1, 3).reshape(half, half, 4)
    return result


def quantile_bins(joint: FloatArray, most: int, null: int | None) -> tuple[IntArray, int]:
    """Return the quantile bin of each cell given its row, and how many there are: half as many as cells a row fills.

    A bin of two cells or more exists in nearly every row, so that quantile bins hardly depend on the row. Null, where
    it is one of the columns, has a bin to itself, the last.
    """
    if null is not None:
        labels, bins = quantile_bins(np.delete(joint, null, axis=1), most, None)
        return np.insert(labels, null, bins, axis=1), bins + 1
    total = joint.sum(axis=1, keepdims=True)
    share = joint / np.maximum(total, 1e-300)
    entropy = -(share * np.log(np.maximum(share, 1e-300))).sum(axis=1)
    filled = float(np.exp(np.average(entropy, weights=np.maximum(total[:, 0], 1e-300))))
    bins = int(np.clip(np.ceil(filled / 2 - 0.2), 1, most))
    middle = np.cumsum(share, axis=1) - share / 2
    return np.clip(np.floor(middle * bins), 0, bins - 1).astype(np.int64), bins
