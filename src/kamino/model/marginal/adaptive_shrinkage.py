"""Adaptive shrinkage (Stephens 2017): how much of each of many noisy numbers is to be believed.

The numbers that are looked for are described by normal distributions of mean 0 and several variances, mixed as best
explains all of them together; each number then keeps the part that such a prior lets one believe.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kamino.model.protocol import FloatArray

#: Variances of the prior that are mixed, and steps of expectation-maximisation.
VARIANCES, STEPS = 24, 60


def believed(
    found: FloatArray,
    noise: FloatArray,
    scale: FloatArray,
    counted: NDArray[np.bool_] | None = None,
    *,
    most: float = np.inf,
    variances: int = VARIANCES,
    steps: int = STEPS,
) -> FloatArray:
    """Return the part of each number that is believed: its posterior mean, as a share of it.

    `noise` are the variances of their noise; the prior's are multiples of `scale`, at most `most` times it. The numbers
    of the last axis share a prior, those before it are separate problems. What is not `counted` says nothing of the
    prior. All variances and scales are positive.

    Guarantees:
        Numbers far above their noise are believed, noise alone is not.  [test_signals_stay_and_noise_goes]
        No problem matters to another.  [test_problems_of_shrinkage_are_separate]
    """
    weight = np.ones(found.shape) if counted is None else counted.astype(float)
    found, among = found * weight, weight / np.maximum(weight.sum(axis=-1, keepdims=True), 1.0)
    least = np.min(np.where(weight > 0, noise / scale, np.inf), axis=-1)
    lowest = np.where(np.isfinite(least), least, 1.0) / 100
    highest = np.minimum(np.maximum(np.max(found**2 / scale, axis=-1), 2 * lowest), most)
    lowest = np.minimum(lowest, highest / 2)
    grid = lowest[..., None] * (highest / lowest)[..., None] ** np.linspace(0.0, 1.0, variances)
    grid = np.concatenate([np.zeros((*grid.shape[:-1], 1)), grid], axis=-1)
    prior = scale[..., None] * grid[..., None, :]
    both = noise[..., None] + prior
    log = -0.5 * (found[..., None] ** 2 / both + np.log(both))
    like = np.exp(log - log.max(axis=-1, keepdims=True))
    mixed = np.full(grid.shape, 1 / grid.shape[-1])
    for _ in range(steps):
        explained = np.matmul(like, mixed[..., None])[..., 0]
        mixed = mixed * np.matmul((among / explained)[..., None, :], like)[..., 0, :]
        mixed = np.where(mixed.sum(axis=-1, keepdims=True) > 0, mixed, 1 / grid.shape[-1])
    joint = like * mixed[..., None, :]
    share: FloatArray = (joint * (prior / both)).sum(axis=-1) / joint.sum(axis=-1)
    return share
