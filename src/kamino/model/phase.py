"""Phases: where a code stands in a public cycle, such as its weekday or its last digit, and how codes follow it.

A phase is a public fact of the schema. How often each phase occurs is measured; inside a run of codes, which is all
that a wide histogram knows, a code is then as likely as its phase. Nothing here lists codes: a run of 2^60 is as cheap
as one of ten.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.errors import ModelError
from kamino.model.rounding import Rounding

# The weights of a cycle are kept as one table: seconds of a week, or six digits, are not too many.
MOST_PHASES = 1 << 20
# A cycle of so many codes is still added up exactly in floating point.
_LONGEST = 1 << 52
# Weights are whole numbers of this unit: all sums of up to 2^20 weights, 1 on average, are exact in floating point.
_UNIT = 2.0**-30
# No phase has less than this part of the average weight: that none was seen is an estimate.
_LEAST = 2.0**-20
# A point of [0, 1) chooses among so many places; the bits below are drawn anew.
_FINE = 1 << 40


@dataclass(frozen=True, kw_only=True)
class Phase:
    """The place of a code in a cycle: code c has phase `(c + offset) // block % count`. Every field may be published.

    `factors` multiply to `count`: the digits of a phase, the fastest first, each of which is measured on its own.
    Seconds of a week are (60, 60, 24, 7); the last two digits of a number are (10, 10). Those of numbers, which people
    round (`rounds`), are measured together instead.

    >>> days = Phase(block=24, factors=(7,))
    >>> days(np.array([0, 23, 24, 7 * 24]))
    array([0, 0, 1, 0])
    """

    factors: tuple[int, ...]
    block: int = 1
    offset: int = 0
    rounds: bool = False

    def __post_init__(self) -> None:
        if self.rounds and (set(self.factors) != {10} or self.block != 1):
            raise ModelError("only decimal digits of every code are rounded.")
        if not 0 < len(self.factors) <= 20 or min(self.factors) < 2 or self.count > MOST_PHASES:
            raise ModelError(f"a phase needs factors of at least 2, and at most {MOST_PHASES} phases in all.")
        if self.block < 1 or self.cycle > _LONGEST or not 0 <= self.offset < self.cycle:
            raise ModelError(f"a phase needs a cycle of 1 to {_LONGEST} codes, and an offset inside it.")

    @property
    def count(self) -> int:
        """The number of phases."""
        return math.prod(self.factors)

    @property
    def cycle(self) -> int:
        """The number of codes after which phases come again."""
        return self.block * self.count

    def __call__(self, codes: IntArray) -> IntArray:
        """Return the phase of each code."""
        return np.asarray((codes + self.offset) // self.block % self.count)

    def digit(self, factor: int) -> Phase:
        """Return one factor as a phase of its own."""
        block = self.block * math.prod(self.factors[:factor])
        size = self.factors[factor]
        return Phase(factors=(size,), block=block, offset=self.offset % (block * size))

    def within(self, width: int) -> Phase | None:
        """Return the digits, the fastest first, that change within runs of `width` codes."""
        changing = sum(self.digit(i).block < width for i in range(len(self.factors)))
        if changing == 0:
            return None
        factors = self.factors[:changing]
        return replace(self, factors=factors, offset=self.offset % (self.block * math.prod(factors)))

    def count_codes(self, starts: IntArray, width: IntArray) -> IntArray:
        """Return how many codes of each phase (columns) each run (lines) holds."""
        first = (starts + self.offset) % self.cycle
        ends = np.stack([first, first + width])[:, :, None]
        below = np.clip(ends % self.cycle - np.arange(self.count) * self.block, 0, self.block)
        total = ends // self.cycle * self.block + below
        return np.asarray(total[1] - total[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class PhaseWeights:
    """How likely the phases are: in a run, P(code) is proportional to the weight of its phase.

    `parts[i]` is a distribution over the digit `i` of the phase; the weight of a phase is their product. With a
    `rounding`, there is one part: the weight of a code of each of its classes.

    Guarantees:
        The probabilities of the codes of a run sum to 1.  [test_codes_of_a_run_sum_to_one]
        Codes are drawn as likely as they are said to be.  [test_draws_follow_the_weights]
    """

    phase: Phase
    parts: tuple[FloatArray, ...]
    rounding: Rounding | None = None

    def __post_init__(self) -> None:
        factors = self.phase.factors if self.rounding is None else (self.rounding.count,)
        if self.rounding is not None and (self.rounding.cycle, self.rounding.offset) != (
            self.phase.cycle,
            self.phase.offset,
        ):
            raise ModelError("the rounding of phase weights must have the cycle of their phase.")
        if tuple(len(part) for part in self.parts) != factors:
            raise ModelError("phase weights need one number for each value of each digit of the phase.")
        if any(not np.isfinite(part).all() or part.min() < 0 or part.sum() <= 0 for part in self.parts):
            raise ModelError("phase weights must be finite and not negative, and some must be above 0.")

    @cached_property
    def table(self) -> FloatArray:
        """The weight of each phase, 1 on average but for rounding."""
        table = np.ones(1)
        if self.rounding is not None:
            # Phases start at the offset, and a rounding looks at codes.
            table = self.parts[0][self.rounding(np.arange(self.phase.count) - self.phase.offset)]
        for part in self.parts if self.rounding is None else ():
            table = np.multiply.outer(part / part.mean(), table).ravel()
        return np.asarray(np.rint(np.maximum(table / table.mean(), _LEAST) / _UNIT) * _UNIT)

    @cached_property
    def _below(self) -> FloatArray:
        """The weights added up: entry k is the sum over the phases before k."""
        return np.concatenate([[0.0], np.cumsum(self.table)])

    def __call__(self, codes: IntArray) -> FloatArray:
        """Return the weight of each code."""
        return self.table[self.phase(codes)]

    def mass(self, starts: IntArray, width: IntArray) -> FloatArray:
        """Return the sum of the weights of the codes of each run."""
        block = self.phase.block
        first = (starts + self.phase.offset) % self.phase.cycle
        low, skipped = np.divmod(first, block)
        high, kept = np.divmod(first + width, block)
        between = self._between(low + 1, np.maximum(high - low - 1, 0))
        parts = self.table[low] * (block - skipped) + between * block + self.table[high % self.phase.count] * kept
        return np.asarray(np.where(high == low, self.table[low] * width, parts))

    def draw(self, starts: IntArray, width: IntArray, points: FloatArray, rng: np.random.Generator) -> IntArray:
        """Return the code at each point of [0, 1) of its run: uniform points give codes as likely as their weights."""
        cycle = self.phase.cycle
        first = (starts + self.phase.offset) % cycle
        laps, rest = np.divmod(width, cycle)
        whole = laps * (self._below[-1] * self.phase.block)
        target = points * (whole + self.mass(starts, rest))
        inside = (target < whole) | (rest == 0)
        offset = np.empty(len(starts), dtype=np.int64)
        offset[inside] = self._in_laps(first[inside], laps[inside], (target / np.maximum(whole, 1))[inside], rng)
        last = ~inside
        offset[last] = laps[last] * cycle + self._in_rest(first[last], rest[last], (target - whole)[last], rng)
        return np.asarray(starts + offset)

    def _in_laps(self, first: IntArray, laps: IntArray, points: FloatArray, rng: np.random.Generator) -> IntArray:
        """Return places in a number of whole cycles: the phase first, then one of its codes, which are all alike."""
        block, below = self.phase.block, self._below
        target = points * below[-1]
        phase = np.clip(np.searchsorted(below, target, side="right") - 1, 0, self.phase.count - 1)
        code = even_offsets((target - below[phase]) / self.table[phase], laps * block, rng)
        lap, within = np.divmod(code, block)
        return np.asarray((phase * block + within - first) % self.phase.cycle + lap * self.phase.cycle)

    def _in_rest(self, first: IntArray, rest: IntArray, target: FloatArray, rng: np.random.Generator) -> IntArray:
        """Return places in less than one cycle, where the weights up to the place add up to the target.

        The first and the last block may be cut; each is looked at on its own, because sums over a cycle would round.
        """
        block, below = self.phase.block, self._below
        low, skipped = np.divmod(first, block)
        head = np.minimum(block - skipped, rest)
        tail = np.where(head < rest, (first + rest) % block, 0)
        last = (first + rest) // block % self.phase.count
        beyond = target - self.table[low] * head
        blocks = (rest - head - tail) // block
        middle = self._between(low + 1, blocks) * block
        inner = below[(low + 1) % self.phase.count] + np.minimum(beyond, middle) / block
        inner = np.where(inner >= below[-1], inner - below[-1], inner)
        skip = (np.searchsorted(below, inner, side="right") - 1 - (low + 1)) % self.phase.count
        skip = np.clip(skip, 0, np.maximum(blocks - 1, 0))
        places = (
            np.floor(target / self.table[low]).astype(np.int64),
            head + skip * block + (rng.integers(0, block, len(first)) if block > 1 else 0),
            rest - tail + np.floor((beyond - middle) / self.table[last]).astype(np.int64),
        )
        part = np.where((beyond < 0) | (head == rest), 0, np.where((beyond < middle) | (tail == 0), 1, 2))
        # A part without codes is reached by rounding only; its neighbour's end is as near.
        part = np.where((part == 1) & (blocks == 0), np.where(tail > 0, 2, 0), part)
        return np.asarray(np.clip(np.choose(part, places), 0, rest - 1))

    def _between(self, low: IntArray, blocks: IntArray) -> FloatArray:
        """Return the sum of the weights of a number of phases from `low` on."""
        laps, last = np.divmod(low + blocks, self.phase.count)
        return np.asarray(self._below[last] + laps * self._below[-1] - self._below[low])


def even_offsets(points: FloatArray, width: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the place in 0..width-1 at each point of [0, 1), all as likely.

    A point has 53 bits: in a wider range the last bits are drawn anew, or places would all be multiples of a power
    of two.
    """
    scale = np.maximum(width // _FINE, 1)
    steps = -(-width // scale)
    offset = np.minimum(np.floor(points * steps).astype(np.int64), steps - 1) * scale
    if np.any(scale > 1):
        offset += rng.integers(0, scale)
    return np.asarray(np.clip(offset, 0, width - 1))


def codes_inside(
    weights: PhaseWeights | None, starts: IntArray, width: IntArray, points: FloatArray, rng: np.random.Generator
) -> IntArray:
    """Return the code at each point of [0, 1) of its run of codes; without weights all codes are as likely."""
    if weights is None:
        return np.asarray(starts + even_offsets(points, width, rng))
    return weights.draw(starts, width, points, rng)
