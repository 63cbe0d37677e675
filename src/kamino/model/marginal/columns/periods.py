"""Measuring phases: how often each weekday, hour or last digit occurs, and what of it is more than noise.

A phase is measured digit by digit. What null and single codes far above their noise hold is taken off, because the
histogram knows it already; the rest is compared with what evenly filled runs would have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kamino.model.phase import Phase, PhaseWeights
from kamino.model.protocol import CodeMap, FloatArray, IntArray

#: The part of an attribute's share of the budget that measures its phases.
PHASE_SHARE = 0.1
#: Phases are believed to matter if the chi-squared of their counts is this many standard deviations above its mean.
#: What noise makes of even phases is then believed at times, but shrunk to nearly nothing.
BELIEVE = 1.0
#: The same for digits of numbers, of which several places are looked at.
BELIEVE_DIGITS = 2.0
_ITERATIONS = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class CycleMap(CodeMap):
    """A code map of one cycle, of `size` codes, that repeats over a whole domain; code 0 stands at `offset` in it."""

    offset: int

    def __call__(self, codes: IntArray) -> IntArray:
        """Return the bin of each code."""
        return super().__call__((codes + self.offset) % self.size)

    @property
    def key(self) -> Hashable:
        """What tells it from other maps."""
        return "cycle", self.offset, super().key

    @staticmethod
    def of(phase: Phase) -> CycleMap:
        """Give every phase its own bin."""
        bins = np.arange(phase.count, dtype=np.int64)
        starts = bins * phase.block
        return CycleMap(size=phase.cycle, bins=phase.count, starts=starts, labels=bins, offset=phase.offset)


@dataclass(frozen=True, kw_only=True, eq=False)
class Runs:
    """The runs of a denoised histogram: runs of one `family` were denoised together, `spike` runs are single codes."""

    starts: IntArray
    width: IntArray
    counts: FloatArray
    noisy: FloatArray
    sigma: FloatArray
    family: IntArray
    spike: NDArray[np.bool_]


def measure_phase(
    phase: Phase, runs: Runs, count: Callable[[CodeMap], tuple[FloatArray, float]]
) -> PhaseWeights | None:
    """Measure each digit of a phase and return the weights; None if noise explains them all.

    Guarantees:
        A table without rhythm gets no weights in most cases, and small ones in others.
        [test_hardly_any_rhythm_is_found_in_noise]
    """
    parts = []
    believed = False
    for factor in range(len(phase.factors)):
        digit = phase.digit(factor)
        noisy, sigma = count(CycleMap.of(digit))
        part = estimate_weights(digit, runs, noisy, sigma)
        believed |= part is not None
        parts.append(np.full(digit.count, 1.0 / digit.count) if part is None else part)
    return PhaseWeights(phase=phase, parts=tuple(parts)) if believed else None


def estimate_weights(phase: Phase, runs: Runs, noisy: FloatArray, sigma: float) -> FloatArray | None:
    """Return weights of phases, summing to 1, that explain noisy counts; None if even weights explain them.

    Deviations from even weights are shrunk towards none as James and Stein do, by 1 - (degrees of freedom) /
    chi-squared. The weights then follow by iterative proportional fitting: runs keep their counts, phases get theirs.
    """
    spike, rest = runs.spike, ~runs.spike
    where = phase(runs.starts[spike])
    left = noisy - np.bincount(where, weights=runs.noisy[spike], minlength=phase.count)
    family = np.unique(runs.family[rest], return_inverse=True)[1]
    held: FloatArray = np.bincount(family, weights=runs.counts[rest]).astype(float)
    codes = phase.count_codes(runs.starts[rest], runs.width[rest]).astype(float)
    spread: FloatArray = np.stack([np.bincount(family, weights=each) for each in codes.T], axis=1).astype(float)
    share = spread / np.maximum(spread.sum(axis=1, keepdims=True), 1.0)
    even = held @ share
    seen = even > 0
    if seen.sum() < 2:
        return None
    # What the even counts owe to noise in a family's count; what all phases share of it cancels.
    noise = np.bincount(family, weights=runs.sigma[rest] ** 2) / np.bincount(family)
    variance = sigma**2 + np.bincount(where, weights=runs.sigma[spike] ** 2, minlength=phase.count)
    # Even phases of so many rows differ by chance, noise or not.
    variance = variance + noise @ (share - 1.0 / phase.count) ** 2 + even
    surprise = np.where(seen, left - even, 0.0)
    surprise[seen] -= np.average(surprise[seen], weights=1 / np.maximum(variance[seen], 1e-12))
    trust = _trust(surprise[seen], variance[seen])
    if trust <= 0:
        return None
    target = np.zeros(phase.count)
    target[seen] = project((even + trust * surprise)[seen], held.sum())
    return fit_weights(target, held, spread)


def believe(counts: FloatArray, even: FloatArray, variance: FloatArray, apart: int) -> FloatArray | None:
    """Return counts with the total of the even ones, as far as noisy ones differ from these; None if noise may be all.

    What their total is off by is noise, and is taken off in proportion to the variances (generalised least squares).
    Deviations are shrunk as those of phases are. One count stands `apart` from all others together: cutting each of
    these off at zero would leave them the positive half of their noise.
    """
    seen = even > 0
    if seen.sum() < 2:
        return None
    # Even digits of so many rows differ by chance, noise or not.
    surprise, spread = (counts - even)[seen], variance[seen] + even[seen]
    surprise = surprise - spread * surprise.sum() / spread.sum()
    trust = _trust(surprise, spread, believed=BELIEVE_DIGITS)
    if trust <= 0:
        return None
    total, result = float(even.sum()), np.zeros(len(counts))
    result[seen] = even[seen] + trust * surprise
    others = seen.copy()
    others[apart] = False
    result[apart] = min(max(total - result[others].sum(), 0.0), total)
    left = total - result[apart]
    result[others] = project(result[others], left) if left > 0 else 0.0
    return result


def _trust(surprise: FloatArray, variance: FloatArray, *, believed: float = BELIEVE) -> float:
    """Return how much of the deviations to believe, from 0 to 1."""
    degrees = len(surprise) - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        chi_squared = float(np.nansum(surprise**2 / variance))
    believable = chi_squared > degrees + believed * math.sqrt(2 * degrees)
    return 1.0 - degrees / chi_squared if believable else 0.0


def project(counts: FloatArray, total: float) -> FloatArray:
    """Return the nearest counts, in least squares, that are not negative and have this total.

    Cutting negative counts off alone would leave the positive half of the noise to phases that never occur.
    """
    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    result: FloatArray = np.maximum(counts - excess[np.flatnonzero(ordered > excess)[-1]], 0.0)
    return result


def fit_weights(target: FloatArray, held: FloatArray, spread: FloatArray) -> FloatArray:
    """Scale weights until runs with `held` rows and `spread` codes by phase have `target` rows by phase."""
    weight = np.ones(len(target))
    for _ in range(_ITERATIONS):
        expected = weight * ((held / np.maximum(spread @ weight, 1e-300)) @ spread)
        weight = np.where(expected > 0, weight * target / np.maximum(expected, 1e-300), weight)
        weight = np.maximum(weight / weight.max(), 1e-9)
    result: FloatArray = weight / weight.sum()
    return result
