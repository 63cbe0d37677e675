"""What a number of right guesses says of epsilon, with confidence.

A fair coin chooses one of two neighbours, a run is made on it, and a player who knows both tables says which it was.
Whoever promises that the outputs are at most V apart in total variation promises that no player is right more often
than (1 + V) / 2. The number of right guesses is binomial, so V has a lower bound at any confidence (Clopper, Pearson
1934). Nothing is chosen by looking at the runs: a guess is the sign of the log-likelihood ratio.

Of total variation alone little follows for epsilon at a small delta. The claim is more than one number, though: it says
that the run is a composition of given Gaussian releases. So the bound is for that family. Among all runs with the same
releases, all noise times one factor, it is the least epsilon that so many right guesses allow. Without sampling that is
a bound of mu (Dong, Roth, Su 2019; Nasr and others 2023 do so for DP-SGD).

`plain_bound` assumes no family: the least epsilon at delta that the rates of two kinds of errors allow, at a threshold
chosen on half of the runs and judged on the other half. It needs far more runs to say much.

>>> mu = gaussian_mu_bound(5_478, 10_000, confidence=0.95)
>>> round(mu, 3)
0.199
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kamino.audit.loss_distribution import Releases, compose, gaussian_epsilon
from kamino.audit.repricing import joined
from kamino.privacy import Neighbours

# Noise is tried from so many times halved to so many times doubled.
_MOST_POWER = 6


def least_probability(successes: int, trials: int, *, confidence: float) -> float:
    """Return the Clopper-Pearson lower bound of a probability, one-sided."""
    from scipy.stats import beta

    return float(beta.ppf(1 - confidence, successes, trials - successes + 1)) if successes else 0.0


def gaussian_mu_bound(right: int, runs: int, *, confidence: float) -> float:
    """Return the least mu of a Gaussian mechanism that so many right guesses allow; 0 if they allow any.

    Guarantees:
        It is above the true mu no more often than the confidence says.  [test_bounds_hold_as_often_as_they_say]
    """
    from scipy.special import ndtri

    return max(0.0, 2 * float(ndtri(least_probability(right, runs, confidence=confidence))))


def family_bound(
    right: int, runs: int, releases: Sequence[Releases], relation: Neighbours, delta: float, *, confidence: float
) -> float:
    """Return the least epsilon at delta, of runs with these releases and all noise times a factor, that guesses allow.

    Guarantees:
        It is above the true epsilon no more often than the confidence says.  [test_bounds_hold_as_often_as_they_say]
    """
    if all(each.sampling_rate >= 1 for each in releases):
        return gaussian_epsilon(gaussian_mu_bound(right, runs, confidence=confidence), delta)
    variation = 2 * least_probability(right, runs, confidence=confidence) - 1
    if variation <= 0:
        return 0.0

    def beyond(power: float) -> float:
        return compose(_scaled(releases, 2.0**power), relation).total_variation - variation

    high = 0
    while beyond(high) > 0 and high < _MOST_POWER:
        high += 1
    low = high - 1
    while beyond(low) < 0 and low > -_MOST_POWER:
        low -= 1
    if beyond(low) < 0 or beyond(high) > 0:
        return math.inf if beyond(low) < 0 else 0.0
    from scipy.optimize import brentq

    found = brentq(beyond, low, high, xtol=1e-4)
    return compose(_scaled(releases, 2.0**found), relation).epsilon(delta)


def plain_bound(scores: NDArray[np.float64], worlds: NDArray[np.bool_], delta: float, *, confidence: float) -> float:
    """Return the least epsilon at delta that the errors at one threshold allow, whatever the noise is like."""
    half = len(scores) // 2
    best, at = 0.0, None
    for direction in (True, False):
        for threshold in np.quantile(scores[:half], np.linspace(0.02, 0.98, 49)):
            found = _at_threshold(scores[:half], worlds[:half], direction, threshold, delta, confidence)
            if found > best:
                best, at = found, (direction, threshold)
    if at is None:
        return 0.0
    return max(0.0, _at_threshold(scores[half:], worlds[half:], *at, delta, confidence))


def _at_threshold(
    scores: NDArray[np.float64],
    worlds: NDArray[np.bool_],
    direction: bool,
    threshold: float,
    delta: float,
    confidence: float,
) -> float:
    said = scores > threshold if direction else scores < threshold
    hit, other = said[worlds == direction], said[worlds != direction]
    each = (1 + confidence) / 2
    right = least_probability(int(hit.sum()), len(hit), confidence=each)
    wrong = 1 - least_probability(int((~other).sum()), len(other), confidence=each)
    return math.log((right - delta) / wrong) if right > delta and wrong > 0 else 0.0


def _scaled(releases: Sequence[Releases], factor: float) -> list[Releases]:
    return [replace(each, noise_multiplier=each.noise_multiplier * factor) for each in joined(releases)]
