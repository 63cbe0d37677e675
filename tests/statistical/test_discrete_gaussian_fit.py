"""Whether noise has the probabilities it must have. False alarm rate: 1e-6 for each test, stated by the p-value."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from scipy.stats import chisquare

from kamino.privacy import SecureNoise, SeededNoise
from kamino.privacy.discrete_gaussian import probabilities

FALSE_ALARM = 1e-6
NUM_DRAWS = 20_000


class HalfScaleNoise(SeededNoise):
    """Broken on purpose."""

    def discrete_gaussian(self, sigma, shape):
        return super().discrete_gaussian(sigma / 2, shape)


class RoundedNoise(SeededNoise):
    """Broken on purpose, and hard to see: rounded continuous noise has 1/12 more variance."""

    def discrete_gaussian(self, sigma, shape):
        return np.rint(self._rng.normal(0, sigma, shape)).astype(np.int64)


def p_value(draws, sigma):
    """Chi-square over single values where ten draws are expected, and the two tails."""
    half = math.ceil(6 * sigma)
    support = np.arange(-half, half + 1)
    expected = probabilities(sigma, support) * draws.size
    inner = support[expected >= 10]
    counts = np.array([(draws == value).sum() for value in inner])
    chances = probabilities(sigma, inner) * draws.size
    counts = np.concatenate([[(draws < inner[0]).sum()], counts, [(draws > inner[-1]).sum()]])
    tail = (draws.size - chances.sum()) / 2
    return chisquare(counts, np.concatenate([[tail], chances, [tail]])).pvalue


@pytest.mark.parametrize("sigma", [0.5, 1.3, 4.24, 25.0])
@pytest.mark.parametrize("noise", [SecureNoise(), SeededNoise(0)], ids=["secure", "seeded"])
def test_discrete_gaussian_fits_its_probabilities(noise, sigma):
    assert p_value(noise.discrete_gaussian(sigma, (NUM_DRAWS,)), sigma) > FALSE_ALARM


@pytest.mark.parametrize("sigma", [0.5, 1.3, 4.24, 25.0])
def test_half_the_scale_fails_the_fit(sigma):
    assert p_value(HalfScaleNoise(0).discrete_gaussian(sigma, (NUM_DRAWS,)), sigma) < FALSE_ALARM


def test_rounded_noise_fails_the_fit():
    assert p_value(RoundedNoise(0).discrete_gaussian(0.5, (NUM_DRAWS,)), 0.5) < FALSE_ALARM


@pytest.mark.parametrize("sigma", [5_000.0, 3e7])
def test_wide_noise_has_its_deviation(sigma):
    # The sample deviation of 20,000 draws has a relative error of 0.5%: five of them, false alarm below 1e-6.
    for noise in (SecureNoise(), SeededNoise(0)):
        draws = noise.discrete_gaussian(sigma, (NUM_DRAWS,)).astype(float)
        assert np.sqrt((draws**2).mean()) == pytest.approx(sigma, rel=0.026)


def test_cells_are_independent():
    draws = SecureNoise().discrete_gaussian(10.0, (2, 10_000)).astype(float)
    # A correlation of independent cells has deviation 1%: six of them, false alarm below 1e-8.
    assert abs(np.corrcoef(draws)[0, 1]) < 0.06
    assert abs(np.corrcoef(draws[0, 1:], draws[0, :-1])[0, 1]) < 0.06


def test_draws_differ_between_calls():
    first, second = (SecureNoise().discrete_gaussian(50.0, (100,)) for _ in range(2))
    assert not np.array_equal(first, second)
    assert SecureNoise().coins() != SecureNoise().coins()


@pytest.mark.slow
def test_two_hundred_thousand_counts_within_five_seconds():
    SecureNoise().discrete_gaussian(6.0, (10,))
    started = time.process_time()
    SecureNoise().discrete_gaussian(6.0, (200_000,))
    assert time.process_time() - started < 5
