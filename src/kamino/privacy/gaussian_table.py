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

LARGEST_SIGMA = 4096.0
"""Beyond it a table takes longer to make than it saves."""
_WORD = 64
_BLOCK = 2**18
_FIRST_PRECISION = 192
# Interval arithmetic loses a few bits more than the square of the number of terms.
_GUARD = 64


def draw_gaussian(sigma: float, size: int, random_bytes: Bytes = os.urandom) -> NDArray[np.int64]:
    """Return `size` independent draws of the discrete Gaussian of scale `sigma`, at most `LARGEST_SIGMA`.

    Guarantees:
        A draw changes at the exact edges, to 2^-256. [test_draws_change_at_the_exact_edges]
        Bulk and tails have the law of OpenDP's draws. [test_the_table_passes_and_broken_ones_fail]
    """
    table = _table(sigma)
    draws = np.empty(size, dtype=np.int64)
    for start in range(0, size, _BLOCK):
        block = draws[start : start + _BLOCK]
        words = np.frombuffer(random_bytes(8 * len(block)), dtype=np.uint64)
        after = np.searchsorted(table.words, words, side="right")
        block[:] = after + table.first
        # `after` is at least 1 where a word reaches the first edge; one below it equals no edge.
        undecided = np.flatnonzero((after > 0) & (table.words[after - 1] == words))
        for place in undecided:
            block[place] = _decide(sigma, int(words[place]), random_bytes)
    return draws


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
    # P(X >= k) = P(X <= -k), for k = 1 to T.
    places = slice(1, _last(sigma, bits) + 1)
    least = [(tail << bits, total_upper) for tail in tails_lower[places]]
    most = [(tail << bits, total_lower) for tail in tails_upper[places]]
    one = 1 << bits
    return (
        [tail // total for tail, total in reversed(least)] + [one + (-tail // total) for tail, total in most],
        [tail // total for tail, total in reversed(most)] + [one + (-tail // total) for tail, total in least],
    )


def _last(sigma: float, bits: int) -> int:
    """Return a T of at least sigma with P(X >= T) below 2^-bits: P(X >= T) <= exp(-(T - 1)²/(2 sigma²))."""
    return math.ceil(sigma * math.sqrt(2 * math.log(2) * (bits + 1))) + 2


def _weights(sigma: float, precision: int, last: int) -> tuple[list[int], list[int]]:
    """Return lower and upper bounds of 2^precision w(k) for k = 0 to `last`."""
    ratio_lower, ratio_upper = _base(sigma, precision)
    square_lower = ratio_lower * ratio_lower >> precision
    square_upper = (ratio_upper * ratio_upper >> precision) + 1
    lower, upper = [1 << precision], [1 << precision]
    for _ in range(last):  # w(k + 1) = w(k) q^(2k + 1)
        lower.append(lower[-1] * ratio_lower >> precision)
        upper.append((upper[-1] * ratio_upper >> precision) + 1)
        ratio_lower = ratio_lower * square_lower >> precision
        ratio_upper = (ratio_upper * square_upper >> precision) + 1
    return lower, upper


def _base(sigma: float, precision: int) -> tuple[int, int]:
    """Return bounds of 2^precision q, with q = exp(-1/(2 sigma²)).

    `decimal` rounds the quotient and the exponential correctly, to d digits: the exponent x is off by at most
    10^(1-d) |x|, so q is off by at most 10^(1-d) (|x| + 1) and little more, for which 10^(3-d) (|x| + 1) leaves room.
    """
    digits = math.ceil(precision * math.log10(2)) + 20
    exact = Fraction(sigma)
    with decimal.localcontext() as context:
        context.prec = digits
        context.Emin, context.Emax = decimal.MIN_EMIN, decimal.MAX_EMAX
        # The two whole numbers are exact: `Decimal` of an int does not round.
        exponent = -decimal.Decimal(exact.denominator**2) / decimal.Decimal(2 * exact.numerator**2)
        near = Fraction(exponent.exp())
    error = Fraction(10) ** (3 - digits) * (math.ceil(abs(Fraction(exponent))) + 1)
    scaled = near * (1 << precision), error * (1 << precision)
    return max(0, math.floor(scaled[0] - scaled[1])), math.ceil(scaled[0] + scaled[1])
