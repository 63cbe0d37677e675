from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy.special import log_ndtr, ndtri_exp

from kamino.privacy.discrete_gaussian import probabilities, scale_for, threshold_for


def gaussian_log_delta(z, epsilon):
    """Balle and Wang 2018, theorem 8."""
    first = log_ndtr(1 / (2 * z) - epsilon * z)
    second = epsilon + log_ndtr(-1 / (2 * z) - epsilon * z)
    return first + np.log1p(-np.exp(second - first))


def worst_excess(sigma, scale, shift):
    """Return the largest log(delta of integer noise / delta of continuous noise) over epsilon."""
    half = math.ceil(40 * scale) + 2 * shift + 50
    support = np.arange(-half, half + 1)
    log_p = -(support**2) / (2 * scale**2)
    log_p = log_p - np.logaddexp.reduce(log_p)
    loss = (support * shift + shift**2 / 2) / scale**2
    worst = -math.inf
    for start in np.unique(np.linspace(-shift, 12 * scale, 50).astype(int)):
        for part in np.linspace(0, 1, 17)[:-1]:  # between two kinks of the piecewise linear profile
            epsilon = ((start - part) * shift + shift**2 / 2) / scale**2
            tail = support >= start
            delta = np.sum(np.exp(log_p[tail]) * (-np.expm1(epsilon - loss[tail])).clip(0))
            if epsilon >= 0 and delta > 1e-30:
                worst = max(worst, np.log(delta) - gaussian_log_delta(sigma / shift, epsilon))
    return worst


@pytest.mark.parametrize("shift", [1, 2, 3, 8])
@pytest.mark.parametrize("sigma", [0.05, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 4.2247, 10.0, 50.0])
def test_integer_noise_is_never_cheaper_than_charged(sigma, shift):
    assert worst_excess(sigma, scale_for(sigma), shift) <= 1e-12


def test_without_the_extra_variance_it_would_be():
    assert worst_excess(4.2247, 4.2247, 1) > 0.01


SIGMAS = np.geomspace(0.02, 3_000, 519)
DEVIATIONS = 38


def largest_step(sigma, extra):
    """Return sigma times the largest of F(k) - F(k - 1), where F(k) is the normal quantile of P(X <= k).

    All k to 38 deviations, where P is below 1e-300; by symmetry those up to 0. Sums of logarithms in long doubles.
    """
    scale = math.sqrt(sigma**2 + extra)
    far = math.ceil((DEVIATIONS + 3) * scale) + 7
    values = np.arange(-far, 1, dtype=np.longdouble)
    sums = np.logaddexp.accumulate(-(values**2) / (2 * np.longdouble(scale) ** 2))
    total = np.logaddexp(sums[-1], sums[-2])  # P(X <= 0) + P(X <= -1) = 1
    quantiles = ndtri_exp((sums - total)[values >= -math.ceil(DEVIATIONS * scale) - 2].astype(float))
    return float(np.diff(quantiles).max()) * sigma


def test_every_step_is_as_far_as_charged():
    """The trade-off function of whole-number noise is above that of the noise that is charged: see `scale_for`."""
    assert max(largest_step(sigma, 1 / 8) for sigma in SIGMAS.tolist()) < 1 - 1e-9


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.2247, 50.0, 300.0])
def test_less_than_a_twelfth_is_too_little(sigma):
    assert largest_step(sigma, 1 / 13) > 1
    assert largest_step(sigma, 0) > largest_step(sigma, 1 / 13)


@pytest.mark.parametrize("shift", [1, 2])
@pytest.mark.parametrize("multiplier", [1.0, 2.5, 4.2247, 4.3, 4.4, 9.0])
def test_integer_noise_by_dp_accounting(multiplier, shift):
    sigma = multiplier * shift
    distribution = pld.from_discrete_gaussian_mechanism(scale_for(sigma), sensitivity=shift)
    # The library rounds losses up to multiples of 1e-4.
    assert distribution.get_epsilon_for_delta(1e-6) <= get_epsilon_gaussian(multiplier, 1e-6) + 1.5e-4


@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.7, 300.0])
def test_probabilities_add_up(sigma):
    support = np.arange(-math.ceil(30 * sigma), math.ceil(30 * sigma) + 1)
    chances = probabilities(sigma, support)
    assert chances.sum() == pytest.approx(1, rel=1e-12)
    assert (chances * support).sum() == pytest.approx(0, abs=1e-9)
    assert chances[support == 2][0] / chances[support == 1][0] == pytest.approx(math.exp(-3 / (2 * sigma**2)))


@pytest.mark.parametrize("tail", [0.3, 0.05, 1e-6, 1e-12])
@pytest.mark.parametrize("sigma", [0.4, 1.0, 6.5, 80.0])
def test_threshold_is_the_smallest(sigma, tail):
    threshold = threshold_for(sigma, tail)
    far = np.arange(threshold, threshold + math.ceil(40 * sigma) + 5)
    assert math.fsum(probabilities(sigma, far)) <= tail
    if threshold > 1:
        assert math.fsum(probabilities(sigma, np.append(far, threshold - 1))) > tail


def test_threshold_of_wide_noise_is_met():
    threshold = threshold_for(20_000.0, 1e-6)
    far = np.arange(threshold, threshold + 400_000)
    assert 1e-8 < probabilities(20_000.0, far).sum() <= 1e-6
