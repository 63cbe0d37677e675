"""Exact draws of the discrete Gaussian in arrays, by inversion of a table.

Let F be the cumulative distribution and U uniform in [0, 1), with its bits drawn as they are needed. The draw is the
smallest k with U < F(k), which has the law of F exactly. The first 64 bits of U, one word h, nearly always decide: with
H(k) = floor(2^64 F(k)),
    h < H(k) says U < (h + 1) / 2^64 <= H(k) / 2^64 <= F(k), and
    h > H(k) says U >= h / 2^64 >= (H(k) + 1) / 2^64 > F(k).
Only a word that equals some H(k), about one in 2^64 / (20 sigma), is undecided. Its U then gets more bits, and F more
digits, twice as many each time, until they decide. So no probability is rounded anywhere, the tail has no end, and
there is no distance to the true law that would have to be charged.

How H is known: P(k) is w(k) / S with w(k) = q^(k²), q = exp(-1/(2 sigma²)) and S = sum of all w. All of it is computed
in whole numbers between a lower and an upper bound. q comes from `decimal`, whose exp is correctly rounded; products
are rounded down and up; and what lies beyond the last term, w(T), is at most the integral of exp(-x²/(2 sigma²)) from
T, which is at most (sigma² / T) w(T), and so at most sigma w(T) where T >= sigma. A floor is taken where both bounds
have the same one; where they have not, the precision is doubled.

A scale too large for a table is cut into blocks of 2^j values, so that sigma / 2^j is not. Values k >= 0 are
m 2^j + r with 0 <= r < 2^j: m is drawn from the table of sigma / 2^j, which gives it the largest weight of its block,
r is uniform, and the value is kept with the probability that makes up the difference,
    w(k) / w(m 2^j) = exp(-x),   x = r (2 m 2^j + r) / (2 sigma²).
A sign is drawn, and -0 is thrown away. Whether U < exp(-x) is decided in floating point only where U is further from it
than rounding can be; else by more bits and digits, as above.

    >>> draws = draw_gaussian(3.0, 1000)
    >>> draws.dtype, bool(abs(draws.mean()) < 1)
    (dtype('int64'), True)
"""

from __future__ import annotations

import decimal
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = Callable[[int], bytes]
"""Returns that many independent, uniform bytes."""

LARGEST_TABLE = 128.0
"""Scales beyond it are cut into blocks: a table would take longer to make than it saves."""
_WORD = 64
_BLOCK = 2**18
_FIRST_PRECISION = 192
# Interval arithmetic loses a few bits more than the square of the number of terms.
_GUARD = 64
# Floating point decides where it is surer than this. x is below 1 and exact to a few units of 2^-53, and so is exp.
_MARGIN = 2.0**-40


def draw_gaussian(sigma: float, size: int, random_bytes: Bytes = os.urandom) -> NDArray[np.int64]:
    """Return `size` independent draws of the discrete Gaussian of scale `sigma`, below 2^50.

    Guarantees:
        A draw changes at the exact edges, to 2^-256. [test_draws_change_at_the_exact_edges]
        Bulk and tails have the law of OpenDP's draws. [test_the_table_passes_and_broken_ones_fail]
        So have scales that are cut into blocks. [test_blocks_have_the_law, test_undecided_blocks_are_decided_exactly]
    """
    shift = max(0, math.ceil(math.log2(sigma / LARGEST_TABLE)))
    draws = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        block = draws[start : start + _BLOCK]
        block[:] = (
            _by_blocks(sigma, shift, len(block), random_bytes) if shift else _by_table(sigma, len(block), random_bytes)
        )
    return draws


def _words(size: int, random_bytes: Bytes) -> NDArray[np.uint64]:
    return np.frombuffer(random_bytes(8 * size), dtype=np.uint64)


def _by_table(sigma: float, size: int, random_bytes: Bytes) -> NDArray[np.int64]:
    table = _table(sigma)
    words = _words(size, random_bytes)
    after = np.searchsorted(table.words, words, side="right")
    draws: NDArray[np.int64] = after + table.first
    # `after` is at least 1: the first edge is 0, which no word is below.
    for place in np.flatnonzero(table.words[after - 1] == words):
        draws[place] = _decide(sigma, int(words[place]), random_bytes)
    return draws


def _by_blocks(sigma: float, shift: int, size: int, random_bytes: Bytes) -> NDArray[np.int64]:
    kept = np.empty(0, dtype=np.int64)
    while len(kept) < size:
        # A third more than twice the missing ones: half of the blocks are negative, and few values are not kept.
        asked = 64 + (size - len(kept)) * 7 // 3
        blocks = _by_table(math.ldexp(sigma, -shift), asked, random_bytes)
        blocks = blocks[blocks >= 0]
        low = _words(len(blocks), random_bytes)
        rest = (low >> np.uint64(64 - shift)).astype(np.int64)
        negative = (low & np.uint64(1)).astype(bool)
        keep = _keeps(sigma, blocks << shift, rest, random_bytes)
        values = (blocks << shift) + rest
        keep &= ~(negative & (values == 0))
        kept = np.concatenate([kept, np.where(negative, -values, values)[keep]])
    return kept[:size]


def _keeps(sigma: float, first: NDArray[np.int64], rest: NDArray[np.int64], random_bytes: Bytes) -> NDArray[np.bool_]:
    """Whether each value is kept, with probability exp(-r (2 first + r) / (2 sigma²))."""
    words = _words(len(rest), random_bytes)
    exponent = (rest / sigma) * ((2.0 * first + rest) / sigma) / 2
    excess = np.exp(-exponent) - words.astype(np.float64) * 2.0**-64
    kept = excess > 0
    for place in np.flatnonzero(np.abs(excess) < _MARGIN):
        numerator = int(rest[place]) * (2 * int(first[place]) + int(rest[place]))
        kept[place] = is_below(Fraction(numerator) / (2 * Fraction(sigma) ** 2), int(words[place]), random_bytes)
    return kept


def is_below(exponent: Fraction, word: int, random_bytes: Bytes) -> bool:
    """Whether the U that begins with this word is below exp(-exponent), by as many bits as it takes."""
    bits, high = _WORD, word
    while True:
        lower, upper = _exponential(exponent, bits + _GUARD)
        if (high + 1) << _GUARD <= lower:
            return True
        if high << _GUARD >= upper:
            return False
        high = (high << bits) + int.from_bytes(random_bytes(bits // 8), "big")
        bits *= 2


@dataclass(frozen=True, kw_only=True)
class _Table:
    """The words floor(2^64 F(k)) for k = first, first + 1, ...: the first is 0, and the last is 2^64 - 1."""

    first: int
    words: NDArray[np.uint64]


@lru_cache(maxsize=64)
def _table(sigma: float) -> _Table:
    precision = _FIRST_PRECISION
    while True:
        lower, upper = _edges(sigma, precision, _WORD)
        if lower == upper and lower[0] == 0 and lower[-1] == 2**_WORD - 1:
            return _Table(first=-(len(lower) // 2), words=np.asarray(lower, dtype=np.uint64))
        precision *= 2


def _decide(sigma: float, word: int, random_bytes: Bytes) -> int:
    """Return the draw whose U begins with this word, by as many further bits as it takes."""
    bits, high = _WORD, word
    while True:
        extra = bits
        high = (high << extra) + int.from_bytes(random_bytes(extra // 8), "big")
        bits += extra
        lower, upper = _edges(sigma, 2 * bits + _GUARD, bits)
        above = next((place for place, edge in enumerate(lower) if edge > high), None)
        # U is at or past each edge before `above`, and so past all before the first edge of the table.
        if above and upper[above - 1] < high:
            return above - len(lower) // 2


def _edges(sigma: float, precision: int, bits: int) -> tuple[list[int], list[int]]:
    """Return floor(2^bits f) for a lower and an upper bound f of F(k), for k = -T to T - 1, where F(-T) < 2^-bits."""
    # Sums go further than the edges: what lies beyond them blurs every edge.
    lower, upper = _weights(sigma, precision, _last(sigma, bits + _GUARD))
    beyond = math.ceil(sigma) * upper[-1]
    tails_lower = list(accumulate(reversed(lower)))[::-1]
    tails_upper = list(accumulate(reversed(upper), initial=beyond))[:0:-1]
    total_lower, total_upper = tails_lower[0] + tails_lower[1], tails_upper[0] + tails_upper[1]
    # One division each: 2^(2 precision) / total, rounded down and up.
    inverse_lower, inverse_upper = (1 << 2 * precision) // total_upper, (1 << 2 * precision) // total_lower + 1
    # P(X >= k) = P(X <= -k), for k = 1 to T; bounds of it times 2^(bits + shift).
    places, shift = slice(1, _last(sigma, bits) + 1), 2 * precision - bits
    least = [tail * inverse_lower for tail in tails_lower[places]]
    most = [tail * inverse_upper for tail in tails_upper[places]]
    one = 1 << bits
    return (
        [tail >> shift for tail in reversed(least)] + [one + (-tail >> shift) for tail in most],
        [tail >> shift for tail in reversed(most)] + [one + (-tail >> shift) for tail in least],
    )


def _last(sigma: float, bits: int) -> int:
    """Return a T of at least sigma with P(X >= T) below 2^-bits: P(X >= T) <= exp(-(T - 1)²/(2 sigma²))."""
    return math.ceil(sigma * math.sqrt(2 * math.log(2) * (bits + 1))) + 2


def _weights(sigma: float, precision: int, last: int) -> tuple[list[int], list[int]]:
    """Return lower and upper bounds of 2^precision w(k) for k = 0 to `last`."""
    ratio_lower, ratio_upper = _exponential(1 / (2 * Fraction(sigma) ** 2), precision)
    square_lower = ratio_lower * ratio_lower >> precision
    square_upper = (ratio_upper * ratio_upper >> precision) + 1
    least = most = 1 << precision
    lower, upper = [least], [most]
    for _ in range(last):  # w(k + 1) = w(k) q^(2k + 1)
        least = least * ratio_lower >> precision
        most = (most * ratio_upper >> precision) + 1
        lower.append(least)
        upper.append(most)
        ratio_lower = ratio_lower * square_lower >> precision
        ratio_upper = (ratio_upper * square_upper >> precision) + 1
    return lower, upper


def _exponential(exponent: Fraction, precision: int) -> tuple[int, int]:
    """Return bounds of 2^precision exp(-exponent).

    `decimal` rounds the quotient x and its exponential correctly, to d digits: x is off by at most 10^(1-d) |x|, so the
    exponential is off by at most 10^(1-d) (|x| + 1) and little more, for which 10^(3-d) (|x| + 1) leaves room.
    """
    digits = math.ceil(precision * math.log10(2)) + 20
    with decimal.localcontext() as context:
        context.prec = digits
        context.Emin, context.Emax = decimal.MIN_EMIN, decimal.MAX_EMAX
        # The two whole numbers are exact: `Decimal` of an int does not round.
        quotient = -decimal.Decimal(exponent.numerator) / decimal.Decimal(exponent.denominator)
        near = Fraction(quotient.exp())
    error = Fraction(10) ** (3 - digits) * (math.ceil(exponent) + 1)
    scaled = near * (1 << precision), error * (1 << precision)
    return max(0, math.floor(scaled[0] - scaled[1])), math.ceil(scaled[0] + scaled[1])
