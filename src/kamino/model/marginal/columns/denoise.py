"""Taking noise out of histograms: two estimators, one for ordered domains and one for any domain."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kamino.model.protocol import FloatArray, IntArray

#: A split of an ordered histogram is believed if it is this many standard deviations away from an even one.
BELIEVE = 2.0
#: A cell this many standard deviations above zero needs no smoothing.
SPIKE = 6.0


def even_out(
    noisy: FloatArray,
    width: IntArray | FloatArray,
    sigma: float | FloatArray,
    alone: NDArray[np.bool_],
    known: tuple[float, float] | None = None,
    *,
    believed: float = BELIEVE,
) -> FloatArray:
    """Smooth an ordered histogram: halve it again and again, and split evenly wherever noise could explain the rest.

    This is hard thresholding of Haar wavelets with mass kept non-negative on the way down. Cells that stand far above
    their noise keep their counts and are left out of the halving, which would wear them down level by level; so do
    cells marked `alone` (null). An even split is one in proportion to `width`, in codes or in weights of codes.

    The sum of all cells may be `known` from elsewhere, with its standard deviation: what is left beside spikes is then
    known better than by the sum of its noisy cells.

    Guarantees:
        A spike keeps its rows, however many cells lie beside it.  [test_noise_beside_a_spike_takes_none_of_it]
    """
    spike = (noisy > SPIKE * sigma) & ~alone
    counts = np.where(alone | spike, np.maximum(noisy, 0.0), 0.0)
    cells = np.flatnonzero(~alone)
    if len(cells) == 0 or np.all(alone | spike):
        return counts
    depth = int(np.ceil(np.log2(len(cells))))
    padded = np.zeros((3, 1 << depth))
    padded[:, : len(cells)] = np.where(spike, 0, (noisy, width, np.zeros(len(noisy)) + sigma**2))[:, cells]
    total, variance = float(padded[0].sum()), float(padded[2].sum())
    if known is not None and variance > 0:
        beside = alone | spike
        rest, spread = known[0] - float(counts.sum()), known[1] ** 2 + float((beside * np.square(sigma)).sum())
        total = (total * spread + rest * variance) / (variance + spread)
        variance = variance * spread / (variance + spread)
    if total < np.sqrt(variance) and spike.any():
        return counts
    mass = np.array([max(total, 0.0)])
    for level in range(1, depth + 1):
        half = padded.reshape(3, 1 << level, -1).sum(axis=2)
        left, right = half[:, 0::2], half[:, 1::2]
        both_width = left[1] + right[1]
        even = np.divide(left[1], both_width, out=np.ones_like(both_width), where=both_width > 0)
        surprise = np.abs((1 - even) * left[0] - even * right[0])
        spread = np.sqrt((1 - even) ** 2 * left[2] + even**2 * right[2])
        kept = np.maximum(left[0], 0.0), np.maximum(right[0], 0.0)
        seen = np.divide(kept[0], kept[0] + kept[1], out=even.copy(), where=kept[0] + kept[1] > 0)
        share = np.where(surprise > believed * spread, seen, even)
        split = np.empty(1 << level)
        split[0::2], split[1::2] = mass * share, mass * (1 - share)
        mass = split
    counts[cells] += mass[: len(cells)]
    return counts


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
    grid = np.unique(np.concatenate([near, far]))
    log = -0.5 * ((seen[:, None] - grid[None, :]) / sigma) ** 2
    like = np.exp(log - log.max(axis=1, keepdims=True))
    prior = np.full(len(grid), 1.0 / len(grid))
    for _ in range(iterations):
        prior = prior * (like.T @ (times / (like @ prior))) / len(noisy)
    weight = like * prior
    result: FloatArray = (weight @ grid) / weight.sum(axis=1)
    return result[where]
