"""Whether noise has the probabilities it must have. False alarm rate: 1e-6 for each test, stated by the p-value.

Draws alone cannot tell 32 random bits from 128: a million of them never meet the difference. So the sampler is also
given random bits that begin with many zeros or ones, which takes it into either tail, and must have there the
conditional law.
"""

from __future__ import annotations

import math
import os
import time
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare

from kamino.privacy import SecureNoise, SeededNoise
from kamino.privacy.discrete_gaussian import probabilities
from kamino.privacy.gaussian_table import LARGEST_TABLE, draw_gaussian, is_below

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


@cache
def cumulative(sigma, last, bits):
    """F(k) as an mpmath number of `bits` bits, for k = -last to last."""
    with mpmath.workprec(bits):
        far = last + math.ceil(sigma * math.sqrt(2 * bits))
        weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for k in range(far + 1)]
        total = weights[0] + 2 * mpmath.fsum(weights[1:])
        tails = [mpmath.fsum(weights[k:]) / total for k in range(1, last + 2)]
        return {-k: tails[k - 1] for k in range(1, last + 1)} | {k: 1 - tails[k] for k in range(last + 1)}


class LeadingBits:
    """Random bits, but for the first ones of every draw, which are all 0 or all 1."""

    def __init__(self, count, bit, seed):
        self.count, self.flip = count, np.uint64(2**64 - 1 if bit else 0)
        self.rng, self.begun = np.random.default_rng(seed), False

    def __call__(self, size):
        words = np.frombuffer(self.rng.bytes(size), dtype=np.uint64)
        if not self.begun:  # the first words of all draws
            self.begun = True
            return self._lead(words, min(self.count, 64)).tobytes()
        # Then 8 bytes more for an undecided one, first byte first; and after those free ones.
        return self._lead(words, max(self.count - 64, 0)).astype(">u8").tobytes() if size == 8 else words.tobytes()

    def _lead(self, words, count):
        return (np.zeros_like(words) if count == 64 else words >> np.uint64(count)) ^ self.flip


def tail_p_value(draw, sigma, leading, bit, num_draws):
    """How well draws fit their law given that U begins with so many zeros (or ones)."""
    draws = draw(sigma, num_draws, LeadingBits(leading, bit, seed=leading))
    draws = -draws if bit else draws  # by symmetry: P(X >= k) = P(X <= -k)
    part, before, chances = mpmath.mpf(2) ** -leading, mpmath.mpf(0), {}
    for value, edge in sorted(cumulative(sigma, math.ceil(14 * sigma) + 2, 400).items()):
        chances[value] = float((min(edge, part) - min(before, part)) / part)
        before = edge
    likely = [value for value, chance in chances.items() if chance * num_draws >= 5]
    counts = [int((draws == value).sum()) for value in likely]
    expected = [chances[value] * num_draws for value in likely]
    return chisquare([*counts, num_draws - sum(counts)], [*expected, num_draws - sum(expected)]).pvalue


@cache
def opendp_draws(sigma, num_draws):
    """The reference."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    return np.asarray(dp.m.make_gaussian(*space, scale=sigma)(np.zeros(num_draws, dtype=np.int64)))


def opendp_p_value(draw, sigma, num_draws):
    """Chi-square of two samples, ours and OpenDP's, over single values and the two tails."""
    edges = np.arange(-int(3.5 * sigma), int(3.5 * sigma) + 2, max(1, int(sigma // 8))) - 0.5
    samples = draw(sigma, num_draws, os.urandom), opendp_draws(sigma, num_draws)
    counts = np.array([np.bincount(np.searchsorted(edges, sample), minlength=len(edges) + 1) for sample in samples])
    return chi2_contingency(counts[:, counts.sum(axis=0) >= 10]).pvalue


def fits(draw):
    """The p-values of all that is looked at: the bulk, OpenDP's law, and both tails."""
    for sigma in (0.5, 4.24, 25.0):
        yield p_value(draw(sigma, 100_000, os.urandom), sigma)
    for sigma in (0.5, 4.24):
        yield opendp_p_value(draw, sigma, 50_000)
    for bit in (0, 1):
        for leading in (8, 24, 40, 56):
            yield tail_p_value(draw, 3.0, leading, bit, 10_000)
        for leading in (64, 90):
            yield tail_p_value(draw, 1.5, leading, bit, 400)


def half_the_scale(sigma, size, random_bytes):
    return draw_gaussian(sigma / 2, size, random_bytes)


def biased(sigma, size, random_bytes):
    """One draw in fifty is one too large."""
    return draw_gaussian(sigma, size, random_bytes) + (np.arange(size) % 50 == 0)


def of_32_bits(sigma, size, random_bytes):
    """The first 32 bits of every word, and zeros after them: the far tails lump together."""

    def short(count):
        words = np.frombuffer(random_bytes(count), dtype=np.uint64)
        return (words & np.uint64(0xFFFFFFFF00000000)).tobytes()

    return draw_gaussian(sigma, size, short)


def test_the_table_passes_and_broken_ones_fail():
    assert min(fits(draw_gaussian)) > FALSE_ALARM
    for broken in (half_the_scale, biased, of_32_bits):
        assert any(value < FALSE_ALARM for value in fits(broken)), broken.__name__


class Script:
    """Hands out the bits of one number, first to last."""

    def __init__(self, number, bits):
        self.data = number.to_bytes(bits // 8, "big")

    def __call__(self, size):
        part, self.data = self.data[:size], self.data[size:]
        # The first word is read in the machine's order.
        return part if len(self.data) < 24 else np.frombuffer(part, dtype=">u8").astype(np.uint64).tobytes()


@pytest.mark.parametrize("sigma", [0.36, 1.0, 4.24, 30.0])
def test_draws_change_at_the_exact_edges(sigma):
    edges = cumulative(sigma, math.ceil(6 * sigma), 600)
    for value in (-math.ceil(5 * sigma), -2, -1, 0, 1, math.ceil(5 * sigma)):
        with mpmath.workprec(600):
            edge = int(mpmath.floor(edges[value] * mpmath.mpf(2) ** 256))
        # 256 bits are 64 at first, then 64 more, then 128 more.
        assert draw_gaussian(sigma, 1, Script(edge - 1, 256))[0] == value
        assert draw_gaussian(sigma, 1, Script(edge + 1, 256))[0] == value + 1


BLOCKS = 3 * LARGEST_TABLE + 0.1


def block_p_value(draws, sigma):
    """Chi-square over runs of about an eighth of sigma, and the two tails."""
    support = np.arange(-math.ceil(9 * sigma), math.ceil(9 * sigma) + 1)
    edges = np.arange(-math.ceil(4 * sigma), math.ceil(4 * sigma), int(sigma) // 8) - 0.5
    places = np.searchsorted(edges, support)
    expected = np.bincount(places, weights=probabilities(sigma, support)) * draws.size
    counts = np.bincount(np.searchsorted(edges, draws), minlength=len(expected))
    return chisquare(counts, expected * draws.size / expected.sum()).pvalue


def test_blocks_have_the_law():
    assert block_p_value(draw_gaussian(BLOCKS, 200_000), BLOCKS) > FALSE_ALARM
    assert block_p_value(draw_gaussian(BLOCKS * 1.02, 200_000), BLOCKS) < FALSE_ALARM
    assert opendp_p_value(draw_gaussian, BLOCKS, 20_000) > FALSE_ALARM
    # Single values inside a block: the parity, and the place modulo 7, are even to 1 in 400.
    draws = draw_gaussian(BLOCKS, 200_000)
    for modulus in (2, 7):
        assert chisquare(np.bincount(draws % modulus)).pvalue > FALSE_ALARM


@pytest.mark.parametrize("bits", [64, 128, 256])
def test_undecided_blocks_are_decided_exactly(bits):
    exponent = Fraction(1, 3)
    with mpmath.workprec(600):
        edge = int(mpmath.floor(mpmath.exp(-mpmath.mpf(1) / 3) * mpmath.mpf(2) ** bits))
    for number, below in ((edge - 1, True), (edge + 1, False)):
        later = bits - 64
        source = Script(number % 2**later, later) if later else os.urandom
        assert is_below(exponent, number >> later, source) == below


@pytest.mark.parametrize("sigma", [6.0, 300.0, 7e5])
def test_a_million_counts_within_a_second(sigma):
    started = time.process_time()
    SecureNoise().discrete_gaussian(sigma, (1_000_000,))
    assert time.process_time() - started < 1
