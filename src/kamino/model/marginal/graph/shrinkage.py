"""Taking noise out of measured pairs: what a pair adds to what was known of it is shrunk towards nothing.

A pair is measured because some of its cells are not as the model expects; most of the others are, and there a noisy
count is worse than the expectation. How far the cells of one pair lie from what was expected is described by normal
distributions of mean 0 whose variances are multiples of the expected counts, mixed as best explains all of its cells
(adaptive shrinkage, Stephens 2017); each cell then keeps the part that such a prior lets one believe.

The posterior mean is nearest to the truth cell by cell, but flattens what many cells say together, such as a
correlation. So the noise is taken for half of what it is: halfway between believing all and the posterior mean.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kamino.model.marginal.graph.factor import FloatArray
from kamino.model.marginal.graph.measurement import LEAST_SIGMA, Measurement

#: The part of the variance of the noise that the prior is set against.
BELIEVED_NOISE = 0.5
#: Variances of the prior that are mixed, and steps of expectation-maximisation.
_VARIANCES, _STEPS = 24, 60
#: Rounds of proportional fitting, and what stands for a count of zero in it.
_FITTINGS, _ZERO = 20, 1e-9


def shrink_pair(measured: Measurement, before: FloatArray, now: FloatArray) -> Measurement:
    """Shrink what a measured pair adds to `before`, the model's counts of it without the measurement.

    `now` are the model's counts with all measurements: `before` gets its margins first, so that what is shrunk is the
    dependence. Only public numbers come in.

    Guarantees:
        The margins of the measured counts stay.  [test_margins_stay]
        What is far above the noise stays, noise alone goes.  [test_signals_stay_and_noise_goes]
        On sparse tables the counts come nearer to the truth.  [test_shrunk_counts_are_nearer]
    """
    if measured.counts.ndim != 2 or measured.counts.size < 4:
        return measured
    table = with_margins(before, now).ravel()
    expected = measured.answer(table).reshape(measured.counts.shape)
    scale = np.maximum(measured.grouped(table).reshape(measured.counts.shape), 1.0)
    rest = _interactions(measured.counts - expected)
    free = float(np.prod([1 - 1 / size for size in measured.counts.shape]))
    noise = BELIEVED_NOISE * free * np.maximum(measured.sigma, LEAST_SIGMA) ** 2
    kept = _believed(rest.ravel(), np.broadcast_to(noise, rest.shape).ravel(), scale.ravel()).reshape(rest.shape)
    # Parts of an interaction that each cell keeps are none: what they say of the margins goes again.
    return replace(measured, counts=measured.counts - rest + _interactions(kept * rest))


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


def _believed(rest: FloatArray, noise: FloatArray, scale: FloatArray) -> FloatArray:
    """The part of each number that is believed: its posterior mean, as a share of it."""
    lowest = float(np.min(noise / scale)) / 100
    highest = max(float(np.max(rest**2 / scale)), 2 * lowest)
    grid = np.concatenate([[0.0], np.geomspace(lowest, highest, _VARIANCES)])
    prior = scale[:, None] * grid
    both = noise[:, None] + prior
    log = -0.5 * (rest[:, None] ** 2 / both + np.log(both))
    like = np.exp(log - log.max(axis=1, keepdims=True))
    weight = np.full(len(grid), 1 / len(grid))
    for _ in range(_STEPS):
        weight = weight * (like / (like @ weight)[:, None]).mean(axis=0)
    joint = like * weight
    share: FloatArray = (joint * (prior / both)).sum(axis=1) / joint.sum(axis=1)
    return share
