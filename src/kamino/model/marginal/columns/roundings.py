"""Measuring roundings: how many numbers end in zeros, in which digits, and what of it is more than noise.

Four counts at most, which follow from what the earlier ones released. The last digit of all numbers is counted first.
Only where zeros stand out, another count tells numbers with one, two or more of them apart. Then come the digit before
the last one, in front of the zeros that most numbers have, and the two together: prices end in 99.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

import numpy as np

from kamino.model.marginal.columns.periods import Runs, believe, fit_weights
from kamino.model.phase import Phase, PhaseWeights
from kamino.model.protocol import CodeMap, FloatArray, IntArray
from kamino.model.rounding import NINE, Rounding

#: A pair of digits is believed to be frequent by itself if it is so many standard deviations above an even share. Of a
#: hundred pairs, noise makes one in 40 columns seem so.
BELIEVE_PAIR = 3.5
#: Zeros are looked at if they are so many standard deviations above an even share.
_EXCESS = 2.0
# Pairs are counted before as many zeros as this part of the numbers has.
_MOST = 0.5

Ask = Callable[[CodeMap], tuple[FloatArray, float]]


@dataclass(frozen=True, kw_only=True, eq=False)
class EndingMap(CodeMap):
    """A code map of a rounding: `bins_of` says to which bin each class goes."""

    rounding: Rounding
    bins_of: IntArray

    def __call__(self, codes: IntArray) -> IntArray:
        """Return the bin of each code."""
        return self.bins_of[self.rounding(codes)]

    @property
    def key(self) -> Hashable:
        """What tells it from other maps."""
        return "ending", self.rounding, self.bins_of.tobytes()

    @staticmethod
    def of(rounding: Rounding, bins_of: IntArray) -> EndingMap:
        """Count classes together that have the same bin."""
        bins = int(bins_of.max()) + 1
        first = np.arange(bins, dtype=np.int64)
        return EndingMap(
            size=max(rounding.cycle, bins), bins=bins, starts=first, labels=first, rounding=rounding, bins_of=bins_of
        )


def num_counts(phase: Phase) -> int:
    """Return how often the endings of numbers are counted at most."""
    return 4 if len(phase.factors) > 1 else 1


def most_endings(phase: Phase) -> int:
    """Return how many cells a count of endings has at most."""
    return max(NINE * len(phase.factors) + 2, 10 * 10 + 1) if len(phase.factors) > 1 else 10


def measure_rounding(phase: Phase, runs: Runs, ask: Ask) -> PhaseWeights | None:
    """Measure how numbers end and return the weights; None if noise explains them.

    Guarantees:
        A table without such a habit gets no weights in most cases, and small ones in others.
        [test_hardly_any_rhythm_is_found_in_noise]
        Numbers of two decimals stay so on a finer grid, and prices end as they do.  [test_habits_of_digits_are_kept]
    """
    endings = _Endings(rounding=Rounding(depth=len(phase.factors), offset=phase.offset), runs=runs)
    goes_on = endings.count_last_digits(ask)
    if goes_on:
        endings.count_zeros(ask)
    if endings.rounding.depth > 1:
        endings.count_second_digits(ask)
        endings.count_pairs(ask)
    if not endings.believed:
        return None
    held, spread = endings.spread()
    weights = fit_weights(endings.target, held, spread)
    return PhaseWeights(phase=phase, parts=(weights / weights.sum(),), rounding=endings.rounding)


@dataclass(kw_only=True, eq=False)
class _Endings:
    """What is known of the classes of a rounding so far: `target` is the number of rows in each."""

    rounding: Rounding
    runs: Runs
    believed: bool = False
    digits_believed: bool = False
    target: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        held, spread = self.spread()
        self.target = held @ (spread / np.maximum(spread.sum(axis=1, keepdims=True), 1.0))

    def spread(self) -> tuple[FloatArray, FloatArray]:
        """Return the rows of each family of runs, and its codes by class; spikes speak for themselves."""
        rest = ~self.runs.spike
        family = np.unique(self.runs.family[rest], return_inverse=True)[1]
        held: FloatArray = np.bincount(family, weights=self.runs.counts[rest]).astype(float)
        codes = self.rounding.count_codes(self.runs.starts[rest], self.runs.width[rest]).astype(float)
        return held, np.stack([np.bincount(family, weights=each) for each in codes.T], axis=1).astype(float)

    def ask(self, ask: Ask, bins_of: IntArray) -> tuple[FloatArray, FloatArray]:
        """Count classes through the gate, without what spikes hold of them; return counts and variances."""
        noisy, sigma = ask(EndingMap.of(self.rounding, bins_of))
        spike = self.runs.spike
        where = bins_of[self.rounding(self.runs.starts[spike])]
        left = noisy - np.bincount(where, weights=self.runs.noisy[spike], minlength=len(noisy))
        variance = np.bincount(where, weights=self.runs.sigma[spike] ** 2, minlength=len(noisy)).astype(float)
        return left, variance + sigma**2

    def count_last_digits(self, ask: Ask) -> bool:
        """Count the last digit; return whether zeros stand out, so that it pays to look at more."""
        classes = np.arange(self.rounding.plain)
        bins_of = np.where(classes < NINE, classes + 1, 0)
        left, variance = self.ask(ask, bins_of)
        even: FloatArray = np.bincount(bins_of, weights=self.target, minlength=10).astype(float)
        found = believe(left, even, variance, 0)
        if found is None:
            return False
        self.believed = self.digits_believed = True
        self._scale(bins_of, even, found)
        # Zeros are what the other digits leave of all rows, too: both say how many there are.
        excess = found[0] - even[0]
        return bool(excess > _EXCESS * np.sqrt(variance[0]) and self.rounding.depth > 1)

    def count_zeros(self, ask: Ask) -> None:
        """Tell numbers with one zero, two and more apart, as far as each place differs from an even one."""
        classes = np.arange(self.rounding.plain)
        bins_of = np.maximum(classes - NINE + 1, 0)
        left, variance = self.ask(ask, bins_of)
        for zeros in range(1, self.rounding.depth):
            # The digits at this place, and all numbers that have a zero there; the latter are also what is left over.
            first, end = NINE * (zeros - 1) + 1, NINE * zeros + 1
            node = np.where(classes < NINE * zeros, -1, np.minimum(classes - NINE * zeros, NINE))
            inside = node >= 0
            even: FloatArray = np.bincount(node[inside], weights=self.target[inside], minlength=10).astype(float)
            counts = np.append(left[first:end], left[end:].sum())
            found = believe(counts, even, np.append(variance[first:end], variance[end:].sum()), NINE)
            if found is None:
                return
            self._scale(np.where(inside, node, 10), np.append(even, 1.0), np.append(found, 1.0))

    def count_second_digits(self, ask: Ask) -> None:
        """Count the digit before the last one, in front of the zeros that most numbers have."""
        self._split_pairs(self._most_zeros())
        pairs = self._pair_bins()
        bins_of = np.where(pairs < 10 * 10, pairs % 10, 10)
        left, variance = self.ask(ask, bins_of)
        even: FloatArray = np.bincount(bins_of, weights=self.target, minlength=11).astype(float)
        found = believe(left[:10], even[:10], variance[:10], 0)
        if found is not None:
            self.believed = True
            self._scale(bins_of, np.append(even[:10], 1.0), np.append(found, 1.0))

    def count_pairs(self, ask: Ask) -> None:
        """Count the last two digits there together, and keep pairs that stand out by themselves."""
        bins_of, pairs = self._pair_bins(), 10 * 10
        left, variance = self.ask(ask, bins_of)
        even: FloatArray = np.bincount(bins_of, weights=self.target, minlength=pairs + 1).astype(float)
        now, seen, spread = (each[:pairs].reshape(10, 10) for each in (even, left, variance))
        frequent = seen - now > BELIEVE_PAIR * np.sqrt(np.maximum(spread, 1e-18))
        frequent[0, 0] = False
        if not frequent.any():
            return
        now = _with_frequent(now, np.where(frequent, seen, 0.0), keep_digits=self.digits_believed)
        self.believed = True
        scale = np.divide(now.ravel(), even[:pairs], out=np.ones(pairs), where=even[:pairs] > 0)
        self.target = self.target * np.append(scale, 1.0)[bins_of]

    def _split_pairs(self, at: int) -> None:
        """Tell pairs of digits apart in front of so many zeros; each digit's rows are spread evenly over its pairs."""
        plain, place = self.target, slice(NINE * at, NINE * (at + 1))
        self.rounding = replace(self.rounding, pairs_at=at)
        held, spread = self.spread()
        even = held @ (spread / np.maximum(spread.sum(axis=1, keepdims=True), 1.0))
        pairs = even[self.rounding.plain :].reshape(NINE, 10)
        pairs = pairs * (plain[place] / np.maximum(pairs.sum(axis=1), 1e-300))[:, None]
        self.target = np.concatenate([plain, pairs.ravel()])
        self.target[place] = 0.0

    def _pair_bins(self) -> IntArray:
        """Return the pair that each class has, ten times its last digit and the one before; 100 where it has none."""
        at, plain = self.rounding.pairs_at or 0, self.rounding.plain
        bins = np.full(self.rounding.count, 100, dtype=np.int64)
        bins[NINE * (at + 1) : plain] = 0
        bins[NINE * (at + 1) : NINE * (at + 2)] = np.arange(1, 10)
        bins[plain:] = np.arange(10, 100)
        return bins

    def _most_zeros(self) -> int:
        """Return how many zeros most numbers end in; two digits must be left to be counted."""
        behind = np.array([self.target[NINE * zeros :].sum() for zeros in range(self.rounding.depth - 1)])
        return int(np.flatnonzero(behind >= _MOST * behind[0])[-1]) if behind[0] > 0 else 0

    def _scale(self, bins_of: IntArray, old: FloatArray, new: FloatArray) -> None:
        """Give the classes of each bin new totals; inside a bin they keep their proportions."""
        self.target = self.target * np.where(old > 0, new / np.where(old > 0, old, 1.0), 0.0)[bins_of]


def _with_frequent(now: FloatArray, spikes: FloatArray, *, keep_digits: bool) -> FloatArray:
    """Give frequent pairs their counts; others share what is left, of the same last digit if digits were believed."""
    rest = np.where(spikes > 0, 0.0, now)
    if keep_digits:
        wanted = np.maximum(now.sum(axis=1) - spikes.sum(axis=1), 0.0)
        scale = wanted / np.maximum(rest.sum(axis=1), 1e-300)
        return np.asarray(rest * scale[:, None] + spikes)
    left = max(float(now.sum() - spikes.sum()), 0.0) / max(float(rest.sum()), 1e-300)
    return np.asarray(rest * left + spikes)
