"""Adaptive shrinkage (Stephens 2017): how much of each of many noisy numbers is to be believed.

The numbers that are looked for are described by normal distributions of mean 0 and several variances, mixed as best
explains all of them together; each number then keeps the part that such a prior lets one believe.
"""

from __future__ import annotations

import numpy as np

from kamino.model.protocol import FloatArray

#: Variances of the prior that are mixed, and steps of expectation-maximisation.
VARIANCES, STEPS = 24, 60


def believed(
    found: FloatArray,
    noise: FloatArray,
    scale: FloatArray,
    *,
    most: float = np.inf,
    variances: int = VARIANCES,
    steps: int = STEPS,
) -> FloatArray:
    """Return the part of each number that is believed: its posterior mean, as a share of it.

    `noise` are the variances of their noise; the prior's are multiples of `scale`, at most `most` times it. All are
    positive.

    Guarantees:
        Numbers far above their noise are believed, noise alone is not.  [test_signals_stay_and_noise_goes]
        No number is believed to vary more than it can.  [test_what_cannot_vary_is_not_believed]
    """
    lowest = float(np.min(noise / scale)) / 100
    highest = min(max(float(np.max(found**2 / scale)), 2 * lowest), most)
    grid = np.concatenate([[0.0], np.geomspace(min(lowest, highest / 2), highest, variances)])
    prior = scale[:, None] * grid
    both = noise[:, None] + prior
    log = -0.5 * (found[:, None] ** 2 / both + np.log(both))
    like = np.exp(log - log.max(axis=1, keepdims=True))
    weight = np.full(len(grid), 1 / len(grid))
    for _ in range(steps):
        weight = weight * (like.T @ (1 / (like @ weight))) / len(found)
    joint = like * weight
    share: FloatArray = (joint * (prior / both)).sum(axis=1) / joint.sum(axis=1)
    return share
