"""Roundings: the habit of digits. Numbers are round to different degrees, and end as prices do.

Every number belongs to one class: by how many zeros it ends in and by the digit before these; at one place, `pairs_at`
zeros, also by the digit before that, so that 99 and 19 are told apart. A class is a residue class, such as all numbers
that are 300 modulo 1000, so that nothing here lists codes. Classes are public; how many rows each has is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kamino.arrays import IntArray
from kamino.errors import ModelError

#: The digits of a number, all but zero.
NINE = 9
# Powers of ten up to this are tables of weights that are not too large.
_DEEPEST = 6


@dataclass(frozen=True, kw_only=True)
class Rounding:
    """The classes of numbers by their last digits, `depth` of them; code 0 stands for a number that ends in `offset`.

    Class `9 z + d - 1` has z zeros behind the digit d; the next one all that end in `depth` zeros. With `pairs_at`,
    numbers of so many zeros are in 90 more classes instead: by the digit d, and by the digit e before it.

    >>> Rounding(depth=3)(np.array([7, 40, 500, 2000, 2001])).tolist()
    [6, 12, 22, 27, 0]
    >>> Rounding(depth=3, pairs_at=0)(np.array([199, 219])).tolist()
    [117, 109]

    Guarantees:
        Every code is in one class, and classes are counted as they are told.  [test_classes_of_a_run_are_counted]
    """

    depth: int
    offset: int = 0
    pairs_at: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= _DEEPEST or not 0 <= self.offset < self.cycle:
            raise ModelError(f"a rounding needs 1 to {_DEEPEST} digits, and an offset inside their cycle.")
        if self.pairs_at is not None and not 0 <= self.pairs_at <= self.depth - 2:
            raise ModelError("pairs of digits of a rounding must lie inside its digits.")

    @property
    def cycle(self) -> int:
        """The number of codes after which classes come again."""
        return int(10**self.depth)

    @property
    def plain(self) -> int:
        """The number of classes without pairs."""
        return NINE * self.depth + 1

    @property
    def count(self) -> int:
        """The number of classes."""
        return self.plain + (0 if self.pairs_at is None else 10 * NINE)

    def __call__(self, codes: IntArray) -> IntArray:
        """Return the class of each code."""
        ending = (np.asarray(codes) + self.offset) % self.cycle
        found = np.full(ending.shape, self.plain - 1, dtype=np.int64)
        for zeros in reversed(range(self.depth)):
            digit = ending // 10**zeros % 10
            label = NINE * zeros + digit - 1
            if zeros == self.pairs_at:
                label = self.plain + 10 * (digit - 1) + ending // 10 ** (zeros + 1) % 10
            found = np.where(digit > 0, label, found)
        return found

    def count_codes(self, starts: IntArray, width: IntArray) -> IntArray:
        """Return how many codes of each class (columns) each run (lines) holds."""
        first = (np.asarray(starts) + self.offset)[:, None]
        residue, modulus = self._residues()
        below = (first - 1 - residue) // modulus, (first + np.asarray(width)[:, None] - 1 - residue) // modulus
        return np.asarray(np.where(residue >= 0, below[1] - below[0], 0))

    def _residues(self) -> tuple[IntArray, IntArray]:
        """The residue and the modulus of each class; -1 for classes that pairs stand for."""
        residue, modulus = np.full(self.count, -1, dtype=np.int64), np.ones(self.count, dtype=np.int64)
        digits, pairs = np.arange(1, 10), np.arange(10)
        for zeros in range(self.depth):
            if zeros == self.pairs_at:
                residue[self.plain :] = ((digits[:, None] + 10 * pairs) * 10**zeros).ravel()
                modulus[self.plain :] = 10 ** (zeros + 2)
            else:
                place = slice(NINE * zeros, NINE * (zeros + 1))
                residue[place], modulus[place] = digits * 10**zeros, 10 ** (zeros + 1)
        residue[self.plain - 1], modulus[self.plain - 1] = 0, self.cycle
        return residue, modulus
